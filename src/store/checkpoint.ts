// A checkpoint recovers the store up to a place in its log, as a start does, and writes the result as a new snapshot,
// with the activity segments that it closes. It runs beside the serving thread, on the journal alone, takes no turn and
// removes nothing.
import { equalBytes } from '../crypto/bytes.ts';
import type { WholeFiles } from './files.ts';
import type { ChainHead, DroppedActivity, SegmentSummary } from './port.ts';
import type { Recovered, RecoverOptions } from './recover.ts';
import { writeSnapshot } from './snapshot.ts';
import { corrupt, type StoreKeys } from './store-files.ts';

export interface CheckpointJob {
  /** The last log file to cover, which must be closed, or the last row; absent = the last one there is. */
  readonly through?: number;
  /** The tag at the end of that file, as its writer knows it; absent = whatever is there. */
  readonly chain?: Uint8Array;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly segmentRecords?: number;
  /** The last record in a segment that the caller already knows; absent = none. */
  readonly known?: number;
  /** Segments of the activity log with no record after this one are dropped. */
  readonly dropTo?: number;
  /** Whether it gives way to requests because no caller waits for it. */
  readonly yields?: boolean;
  /** Whether to count the rows of the tables. */
  readonly counted?: boolean;
}

export interface CheckpointResult {
  /** The snapshot's number, that of the last file or row that it covers; and the tag at the end of that. */
  readonly generation: number;
  readonly chain: Uint8Array;
  /** Number of transactions up to there. */
  readonly sequence: number;
  readonly snapshotBytes: number;
  /** The beginning of the activity log that retention dropped, if any. */
  readonly dropped: DroppedActivity | undefined;
  /** The activity segments after record `known`. Returning all would mean the whole history each time. */
  readonly segments: readonly SegmentSummary[];
  /** The end of the activity log. */
  readonly activity: ChainHead;
  /** Rows of each table; empty if not asked for. */
  readonly tables: Readonly<Record<string, number>>;
}

/** A journal that a checkpoint reads, and writes its files to. */
export interface CheckpointJournal {
  readonly dir: string;
  readonly keys: StoreKeys;
  /** The files, which are made only as part of the log that was recovered. */
  readonly files: WholeFiles;
  /** Undefined if another process, further ahead, has made a checkpoint and trimmed the log. */
  recover(options: RecoverOptions): Promise<Recovered | undefined>;
  /** Verifies the written snapshot, if the log will not be kept until the next one. */
  verify?(generation: number): Promise<void>;
}

interface CheckpointWorld extends Pick<RecoverOptions, 'wasm'> {
  readonly random: (length: number) => Uint8Array;
}

/**
 * Resolves when the snapshot and the segments that it names are durable. Undefined if another process made a later one.
 */
export async function writeCheckpoint(
  journal: CheckpointJournal,
  { wasm, random }: CheckpointWorld,
  job: CheckpointJob,
): Promise<CheckpointResult | undefined> {
  const { dir, keys, files } = journal;
  const { through, segmentRecords, known = 0, at, dropTo } = job;
  const recovered = await journal.recover({ wasm, through, segmentRecords, rolls: true });
  if (!recovered) return undefined;
  const { state, activity, uid, log } = recovered;
  const { generation, place } = log;
  const { sequence, chain, runs } = place;
  try {
    // The files were replaced by those of another history; a snapshot of that would replace this history's.
    if (job.chain && !equalBytes(job.chain, chain)) {
      throw corrupt(log.name, log.offset, 'the log does not lead to the end that was written');
    }
    const tables = job.counted ? state.countRows() : {};
    await activity.roll();
    // The dropped segments' files stay until the snapshot without them is durable.
    if (dropTo !== undefined) activity.drop(dropTo);
    const { segments, dropped, head } = activity;
    const content = { schema: state.schemaVersion, savedAt: at, runs, activity: { segments, head, dropped } };
    const header = { uid, generation, sequence, chain };
    const context = { files, dir, keys, random };
    const snapshotBytes = await writeSnapshot(context, header, content, activity.tailLines(), state.image());
    await journal.verify?.(generation);
    const newest = segments.filter(({ lastSeq }) => lastSeq > known);
    return { generation, chain, sequence, snapshotBytes, dropped, segments: newest, activity: head, tables };
  } finally {
    state.close();
  }
}
