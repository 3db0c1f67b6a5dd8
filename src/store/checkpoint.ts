// A checkpoint: what a start does, up to the end of the closed log files, written out as a new snapshot. It runs beside
// the serving thread, on the files alone, and removes nothing.
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
  /** The tag at its end, as whoever closed it knows that; absent = whatever is there. */
  readonly chain?: Uint8Array;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly segmentRecords?: number;
  /** The last record that whoever asks knows a segment of; absent = none. */
  readonly known?: number;
  /** Segments of the activity log that hold no record behind this one are dropped. */
  readonly dropTo?: number;
  /** Whether it gives way to what is asked of the server: nobody waits for it. */
  readonly yields?: boolean;
}

/** What was written, as far as every kind of store tells it. */
export interface WrittenCheckpoint {
  readonly snapshotBytes: number;
  /** What retention let go of before the segments that are left. */
  readonly dropped: DroppedActivity | undefined;
}

export interface CheckpointResult extends WrittenCheckpoint {
  /** The segments of the activity log behind the record `known`: all of them would be a history's worth each time. */
  readonly segments: readonly SegmentSummary[];
}

type CheckpointWorld = Pick<RecoverOptions, 'files' | 'keys' | 'wasm'> & Pick<LogContext, 'random'>;

/** Resolves when the snapshot and the segments that it names are durable. */
export async function writeCheckpoint(world: CheckpointWorld, job: CheckpointJob): Promise<CheckpointResult> {
  const { state, activity, uid, log } = await recover({ ...world, ...job, rolls: true });
  const { sequence, chain, runs } = log.place;
  // Files of another history were put there: a snapshot of that would replace the one of this history.
  if (job.chain && !equalBytes(job.chain, chain)) {
    state.close();
    throw corrupt(logName(job.dir, job.through), log.place.offset, 'the log does not lead to the end that was written');
  }
  const header = { uid, generation: job.through, sequence, chain };
  const written = await writeRecovered({ ...world, dir: job.dir }, { state, activity, runs, header }, job);
  const { known = 0 } = job;
  return { ...written, segments: activity.segments.filter(({ lastSeq }) => lastSeq > known) };
}

/** What was recovered for a checkpoint alone, and the place in the log up to which it was. */
interface Covered extends Pick<Recovered, 'state' | 'activity'>, Pick<Mark, 'runs'> {
  readonly header: Omit<FileHeader, 'epoch'>;
}

/** The same for what was recovered; closes its database. */
export async function writeRecovered(
  context: SnapshotContext,
  { state, activity, runs, header }: Covered,
  { at, dropTo }: Pick<CheckpointJob, 'at' | 'dropTo'>,
): Promise<WrittenCheckpoint> {
  try {
    await activity.roll();
    // Their files stay until the snapshot that does without them is durable.
    if (dropTo !== undefined) activity.drop(dropTo);
    const { segments, dropped, head } = activity;
    const content = { schema: state.schemaVersion, savedAt: at, runs, activity: { segments, head, dropped } };
    const snapshotBytes = await writeSnapshot(context, header, content, activity.tailLines(), state.image());
    return { snapshotBytes, dropped };
  } finally {
    state.close();
  }
}
