// Writes a checkpoint of a shared store, on any thread that reaches the engine: the log up to a row as a snapshot, with
// the activity segments that it closes. It takes no turn and removes nothing.
import { KmsError, systemCode } from '../../errors.ts';
import { type WrittenCheckpoint, writeRecovered } from '../checkpoint.ts';
import type { WholeFiles } from '../files.ts';
import type { ChainHead, SegmentSummary } from '../port.ts';
import { readSnapshot } from '../snapshot.ts';
import { listStoreFiles } from '../store-files.ts';
import { EngineError, type KnownRow, type SharedEngine } from './engine.ts';
import { recoverShared, type SharedRecovered, type SharedRecovery, storeIdOf } from './recovery.ts';

export interface SharedCheckpointJob {
  /** The store's 16 bytes. */
  readonly uid: Uint8Array;
  /** The last row to cover; absent = the last one there is. */
  readonly through?: number;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly segmentRecords: number;
  /** Segments of the activity log with no record after this one are dropped. */
  readonly dropTo?: number;
  /** Whether it gives way to requests because no caller waits for it. */
  readonly yields?: boolean;
  /** Whether to count the rows of the tables. */
  readonly counted: boolean;
}

export interface SharedCheckpoint extends WrittenCheckpoint {
  /** All segments of the activity log. */
  readonly segments: readonly SegmentSummary[];
  /** The number of its row, which is the snapshot's generation. */
  readonly generation: number;
  /** Number of transactions up to that row, and the row's tag. */
  readonly sequence: number;
  readonly chain: Uint8Array;
  /** The end of the activity log. */
  readonly activity: ChainHead;
  /** Rows of each table; empty if not asked for. */
  readonly tables: Readonly<Record<string, number>>;
}

interface CheckpointWorld extends Pick<SharedRecovery, 'engine' | 'keys' | 'wasm'> {
  readonly random: (length: number) => Uint8Array;
}

/**
 * Resolves when the snapshot and the segments that it names are durable and the snapshot was read back whole: once the
 * log is trimmed for it, there is no other source. Undefined if another node, further ahead, has written one and
 * trimmed the log.
 */
export async function writeSharedCheckpoint(
  world: CheckpointWorld,
  job: SharedCheckpointJob,
): Promise<SharedCheckpoint | undefined> {
  const { engine, keys, random } = world;
  const { uid, counted } = job;
  const dir = storeIdOf(uid);
  let last: KnownRow | undefined;
  const files = filesBehind(engine, uid, () => last);
  const recovered = await recover(world, job, files);
  if (!recovered) return undefined;
  const { state, place } = recovered;
  last = place;
  const { seq: generation, tag: chain, sequence, runs } = place;
  const activity = recovered.activity.head;
  const tables = counted ? state.countRows() : {};
  const header = { uid, generation, sequence, chain };
  const written = await writeRecovered({ files, dir, keys, random }, { ...recovered, runs, header }, job);
  await readSnapshot(engine.files, dir, generation, keys).catch((cause: unknown) => {
    // A failover cut the snapshot off.
    throw systemCode(cause) === 'ENOENT' ? new EngineError('retry', cause) : cause;
  });
  const { segments } = recovered.activity;
  return { ...written, segments, generation, sequence, chain, activity, tables };
}

async function recover(
  world: CheckpointWorld,
  { uid, through, segmentRecords }: SharedCheckpointJob,
  files: WholeFiles,
): Promise<SharedRecovered | undefined> {
  const { engine } = world;
  try {
    const upTo = through === undefined ? {} : { through };
    return await recoverShared({ ...world, uid, files, ...upTo, segmentRecords, activityCacheBytes: 0 });
  } catch (error) {
    if (through === undefined) throw error;
    const { snapshots } = await listStoreFiles(engine.files, storeIdOf(uid));
    if ((snapshots.at(-1) ?? 0) > through) return undefined;
    throw error;
  }
}

/** File port that only makes files while the log has the row that `known` returns by then. */
export function filesBehind(engine: SharedEngine, uid: Uint8Array, known: () => KnownRow | undefined): WholeFiles {
  const { files } = engine;
  return {
    list: (dir) => files.list(dir),
    exists: (name) => files.exists(name),
    size: (name) => files.size(name),
    read: (name, most) => files.read(name, most),
    readAt: (name, offset, length) => files.readAt(name, offset, length),
    remove: (name) => files.remove(name),
    replace: (name, bytes) => {
      const row = known();
      if (!row) throw new KmsError('internal', 'a file of a checkpoint before its place in the log is known');
      return engine.replaceBehind(storeIdOf(uid), row, name, bytes);
    },
  };
}
