// A checkpoint replays the closed log files as a start does and writes the result as a new snapshot. It runs beside the
// serving thread, on the files alone, and removes nothing.
import { equalBytes } from '../crypto/bytes.ts';
import type { Mark } from '../model/store-mark.ts';
import type { LogContext } from './log-file.ts';
import type { DroppedActivity, SegmentSummary } from './port.ts';
import { type Recovered, type RecoverOptions, recover } from './recover.ts';
import { type SnapshotContext, writeSnapshot } from './snapshot.ts';
import { corrupt, type FileHeader, logName } from './store-files.ts';

export interface CheckpointJob {
  readonly dir: string;
  /** The last log file to cover; it must be closed. */
  readonly through: number;
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
}

/** The result, as far as every kind of store reports it. */
export interface WrittenCheckpoint {
  readonly snapshotBytes: number;
  /** The beginning of the activity log that retention dropped, if any. */
  readonly dropped: DroppedActivity | undefined;
}

export interface CheckpointResult extends WrittenCheckpoint {
  /** The activity segments after record `known`. Returning all would mean the whole history each time. */
  readonly segments: readonly SegmentSummary[];
}

type CheckpointWorld = Pick<RecoverOptions, 'files' | 'keys' | 'wasm'> & Pick<LogContext, 'random'>;

/** Resolves when the snapshot and the segments that it names are durable. */
export async function writeCheckpoint(world: CheckpointWorld, job: CheckpointJob): Promise<CheckpointResult> {
  const { state, activity, uid, log } = await recover({ ...world, ...job, rolls: true });
  const { sequence, chain, runs } = log.place;
  // The files were replaced by those of another history; a snapshot of that would replace this history's.
  if (job.chain && !equalBytes(job.chain, chain)) {
    state.close();
    throw corrupt(logName(job.dir, job.through), log.place.offset, 'the log does not lead to the end that was written');
  }
  const header = { uid, generation: job.through, sequence, chain };
  const written = await writeRecovered({ ...world, dir: job.dir }, { state, activity, runs, header }, job);
  const { known = 0 } = job;
  return { ...written, segments: activity.segments.filter(({ lastSeq }) => lastSeq > known) };
}

/** A store recovered only for a checkpoint, and the log position that it covers. */
interface Covered extends Pick<Recovered, 'state' | 'activity'>, Pick<Mark, 'runs'> {
  readonly header: Omit<FileHeader, 'epoch'>;
}

/** Writes the snapshot of a recovered store and closes its database. */
export async function writeRecovered(
  context: SnapshotContext,
  { state, activity, runs, header }: Covered,
  { at, dropTo }: Pick<CheckpointJob, 'at' | 'dropTo'>,
): Promise<WrittenCheckpoint> {
  try {
    await activity.roll();
    // The dropped segments' files stay until the snapshot without them is durable.
    if (dropTo !== undefined) activity.drop(dropTo);
    const { segments, dropped, head } = activity;
    const content = { schema: state.schemaVersion, savedAt: at, runs, activity: { segments, head, dropped } };
    const snapshotBytes = await writeSnapshot(context, header, content, activity.tailLines(), state.image());
    return { snapshotBytes, dropped };
  } finally {
    state.close();
  }
}
