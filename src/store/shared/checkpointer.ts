// Checkpoints of a shared store: any node writes them, one at a time, from the engine's rows; the others adopt the
// snapshots that they find. Rows are only removed for a snapshot that was read back whole and whose row is in the log.
import { droppedFiles } from '../activity/dropped.ts';
import { segmentPath } from '../activity/segment.ts';
import { CheckpointRuns } from '../checkpoint-runs.ts';
import type { StoreLimits } from '../embedded-options.ts';
import type { StoreEvent } from '../port.ts';
import { listStoreFiles, snapshotName } from '../store-files.ts';
import type { SharedCheckpoint, SharedCheckpointJob } from './checkpoint.ts';
import type { SharedLive } from './live.ts';
import { newestSnapshot, type SharedRecovery, storeIdOf } from './recovery.ts';

interface CheckpointerWorld<T extends object> extends Pick<SharedRecovery, 'engine' | 'uid' | 'keys'> {
  readonly limits: Pick<StoreLimits, 'checkpointBytes' | 'checkpointRetry' | 'segmentRecords'> & {
    /** Milliseconds for which rows are always kept. */
    readonly keepRows: number;
  };
  readonly now: () => number;
  readonly elapsed: () => number;
  readonly runCheckpoint: (job: SharedCheckpointJob) => Promise<SharedCheckpoint | undefined>;
  readonly onEvent: (event: StoreEvent) => void;
  /** The store in service; throws while there is none. */
  serving(): Promise<SharedLive<T>>;
}

export interface How {
  /** Whether to count the rows of the tables. */
  readonly counted?: boolean;
  /** Milliseconds for which rows are kept. Default: the store's limit. */
  readonly keep?: number;
}

export class Checkpointer<T extends object> {
  readonly #world: CheckpointerWorld<T>;
  /** Checkpoints of this node. If another node is writing or has just written one, that checkpoint is used instead. */
  readonly runs: CheckpointRuns<SharedCheckpoint, How>;

  constructor(world: CheckpointerWorld<T>) {
    this.#world = world;
    this.runs = new CheckpointRuns(world, (dropTo, how, yields) => this.#checkpoint(dropTo, yields, how));
  }

  /**
   * Segments that the state refers to but that do not exist: a failover may have cut them off, with their snapshot,
   * though an earlier row is still there.
   */
  async missing({ activity }: SharedLive<T>): Promise<readonly string[]> {
    const { segments } = activity;
    const { engine, uid } = this.#world;
    const names = segments.length > 0 ? new Set(await engine.files.list(storeIdOf(uid))) : new Set();
    return segments.map(({ file }) => file).filter((file) => !names.has(file));
  }

  /** Adopts a snapshot that another node wrote, if there is one up to the state's position. */
  async adoptNewer(): Promise<void> {
    const { place, snapshot } = await this.#world.serving();
    const isNewer = (generation: number): boolean => generation > snapshot.generation && generation <= place.seq;
    const found = await newestSnapshot(this.#world, isNewer);
    if (!found || found.missing.length > 0) return;
    const { header, manifest, size } = found;
    const live = await this.#world.serving();
    if (live.snapshot.generation >= header.generation || live.place.seq < header.generation) return;
    live.activity.adopt(manifest.activity.segments, manifest.activity.dropped);
    live.adopt({ generation: header.generation, bytes: size, savedAt: manifest.savedAt });
  }

  async #checkpoint(dropTo: number | undefined, yields: boolean, how: How = {}): Promise<SharedCheckpoint | undefined> {
    const { engine, uid } = this.#world;
    let made: SharedCheckpoint | undefined;
    const done = await engine.alone(storeIdOf(uid), async () => {
      await this.adoptNewer();
      made = await this.#write(dropTo, yields, how);
    });
    if (!done) await this.adoptNewer();
    return made;
  }

  async #write(
    dropTo: number | undefined,
    yields: boolean,
    { counted = false, keep = this.#world.limits.keepRows }: How,
  ): Promise<SharedCheckpoint | undefined> {
    const { engine, uid, now, onEvent, limits, runCheckpoint } = this.#world;
    const { segmentRecords } = limits;
    const { place, snapshot } = await this.#world.serving();
    const through = place.seq;
    if (through <= snapshot.generation && dropTo === undefined) return undefined;
    const at = now();
    const dropping = dropTo === undefined ? {} : { dropTo };
    const made = await runCheckpoint({ uid, through, at, segmentRecords, counted, yields, ...dropping });
    if (!made) return undefined;
    const dir = storeIdOf(uid);
    const { segments, dropped, snapshotBytes } = made;
    const file = snapshotName(dir, through);
    const needed = [file, ...segments.map((segment) => segmentPath(dir, segment.file))];
    const old = await this.#superseded(through);
    // A failover cut off files that are missing; nothing may be removed on their account.
    const covered = { files: needed, seq: through, tag: made.chain };
    if (!(await engine.trim(dir, covered, keep, old))) return undefined;
    const live = await this.#world.serving();
    // A store recovered in the meantime may already use a newer snapshot, of another node.
    if (live.place.seq >= through && live.snapshot.generation <= through) {
      live.activity.adopt(segments, dropped);
      live.adopt({ generation: through, bytes: snapshotBytes, savedAt: at });
    }
    onEvent({ kind: 'checkpoint', message: `${file}: ${snapshotBytes} bytes` });
    return made;
  }

  /**
   * The files that the snapshot replaces. Segments that it is the first to drop stay until the next one: other nodes
   * may still read them.
   */
  async #superseded(generation: number): Promise<readonly string[]> {
    const { engine, uid } = this.#world;
    const dir = storeIdOf(uid);
    const names = await engine.files.list(dir);
    const { snapshots } = await listStoreFiles(engine.files, dir);
    const { dropped, isRead } = (await this.#world.serving()).activity;
    const segments = dropped && !isRead ? droppedFiles(names, dropped) : [];
    return [
      ...snapshots.filter((number) => number < generation).map((number) => snapshotName(dir, number)),
      ...segments.map((name) => segmentPath(dir, name)),
    ];
  }
}
