// The files of a store as they are at one commit, kept from being removed while somebody copies them. Nothing waits for the
// copy: what is written meanwhile stands behind the part that is held, or in other files.

import { KmsError } from '../errors.ts';
import type { ChainHead } from './activity/activity-log.ts';
import { segmentPath } from './activity/segment-read.ts';
import type { Checkpointer } from './checkpointer.ts';
import type { EmbeddedWorld } from './embedded-options.ts';
import { logName, snapshotName } from './file-names.ts';
import type { Live } from './live.ts';

/** A file, or the first `bytes` bytes of one. */
export interface HeldFile {
  /** As the store's files have it: with the store's directory in front. */
  readonly name: string;
  readonly bytes: number;
}

export interface StoreHold {
  /** The store's 16 bytes. */
  readonly uid: Uint8Array;
  /** Transactions up to the commit. */
  readonly sequence: number;
  /** The snapshot from which a recovery starts. */
  readonly snapshot: number;
  /** The last log, and where in it the commit ends. */
  readonly log: { readonly generation: number; readonly offset: number };
  /** All that a recovery up to the commit reads. The last one is the last log. */
  readonly files: readonly HeldFile[];
  /** The end of the activity log at the commit. */
  readonly activity: ChainHead;
  /** Rows of each table at the commit; empty where they were not asked for. */
  readonly tables: Readonly<Record<string, number>>;
  /** Lets the files go; may be called twice. */
  release(): void;
}

/** The log that is being written is not in its place: what is acknowledged from now on would be lost. */
export class FilesGone extends KmsError {
  constructor(name: string) {
    super('unavailable', `${name}: the file is gone, or was cut`, { hint: 'restore the data directory' });
  }
}

/** Between transactions. Waits for the sync that is under way, so that the commit is the last one of the state. */
export async function holdLive<T extends object>(
  live: Live<T>,
  { dir, files }: EmbeddedWorld<T>,
  checkpoints: Checkpointer<T>,
  counted: boolean,
): Promise<StoreHold> {
  const release = checkpoints.hold();
  try {
    await live.log.durable();
    // Nothing is awaited until all is noted: a checkpoint that ends puts a new snapshot in the place of logs.
    const held = noted(live, dir, counted, release);
    const last = logName(dir, held.log.generation);
    if (!(await files.exists(last)) || (await files.size(last)) < held.log.offset) throw new FilesGone(last);
    return held;
  } catch (error) {
    release();
    throw error;
  }
}

function noted<T extends object>(live: Live<T>, dir: string, counted: boolean, release: () => void): StoreHold {
  const { snapshot, activity, log, uid, state } = live;
  const { generation, place } = log.writer;
  return {
    uid,
    sequence: place.sequence,
    snapshot: snapshot.generation,
    log: { generation, offset: place.offset },
    files: [
      { name: snapshotName(dir, snapshot.generation), bytes: snapshot.bytes },
      ...activity.segments.map(({ file, bytes }) => ({ name: segmentPath(dir, file), bytes })),
      ...log.closed.map((closed) => ({ name: logName(dir, closed.generation), bytes: closed.bytes })),
      { name: logName(dir, generation), bytes: place.offset },
    ],
    activity: activity.head,
    // Counting takes as long as the tables are.
    tables: counted ? state.countRows() : {},
    release,
  };
}
