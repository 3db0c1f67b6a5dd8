// A checkpoint: what a start does, up to the end of the closed log files, written out as a new snapshot. It runs beside
// the serving thread, on the files alone, and removes nothing.

import type { LogContext } from './log-file.ts';
import type { DroppedActivity, SegmentSummary } from './port.ts';
import { type RecoverOptions, recover } from './recover.ts';
import { writeSnapshot } from './snapshot.ts';

export interface CheckpointJob {
  readonly dir: string;
  /** The last log file to cover; it must be closed. */
  readonly through: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** Whether it takes its full share of the processor, whatever requests there are. */
  readonly isUrgent: boolean;
  readonly segmentRecords?: number;
  /** Segments of the activity log that hold no record behind this one are dropped. */
  readonly dropTo?: number;
}

export interface CheckpointResult {
  readonly snapshotBytes: number;
  /** All segments of the activity log. */
  readonly segments: readonly SegmentSummary[];
  /** What retention let go of before them. */
  readonly dropped: DroppedActivity | undefined;
}

type CheckpointWorld = Pick<RecoverOptions, 'files' | 'keys' | 'wasm'> & Pick<LogContext, 'random'>;

/** Resolves when the snapshot and the segments that it names are durable. */
export async function writeCheckpoint(world: CheckpointWorld, job: CheckpointJob): Promise<CheckpointResult> {
  const { state, activity, uid, log } = await recover({ ...world, ...job });
  try {
    await activity.roll();
    // Their files stay until the snapshot that does without them is durable.
    if (job.dropTo !== undefined) activity.drop(job.dropTo);
    const { segments, dropped, head } = activity;
    const { sequence, chain, runs } = log.place;
    const content = {
      schema: state.schemaVersion,
      savedAt: job.at,
      runs,
      activity: { segments, head, dropped },
    };
    const snapshotBytes = await writeSnapshot(
      { ...world, dir: job.dir },
      { uid, generation: job.through, sequence, chain },
      content,
      activity.tailLines(),
      state.image(),
    );
    return { snapshotBytes, segments, dropped };
  } finally {
    state.close();
  }
}
