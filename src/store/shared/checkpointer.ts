// Checkpoints of a shared store: any node writes them, one at a time, from the rows that the engine has; the others take
// over what they find. Rows go only behind a snapshot that was read back whole and whose row is in the log.
import { KmsError, reasonOf } from '../../errors.ts';
import { droppedFiles } from '../activity/dropped.ts';
import { segmentPath } from '../activity/segment.ts';
import { type CheckpointJob, writeRecovered } from '../checkpoint.ts';
import type { StoreLimits } from '../embedded-options.ts';
import type { WholeFiles } from '../files.ts';
import type { StoreEvent } from '../port.ts';
import { readSnapshot } from '../snapshot.ts';
import { listStoreFiles, snapshotName } from '../store-files.ts';
import type { KnownRow } from './engine.ts';
import type { SharedLive } from './live.ts';
import { newestSnapshot, recoverShared, type SharedRecovered, type SharedRecovery, storeIdOf } from './recovery.ts';

interface CheckpointerWorld<T extends object> extends Required<Omit<SharedRecovery, 'through' | 'files'>> {
  readonly limits: Pick<StoreLimits, 'checkpointBytes' | 'checkpointRetry'> & {
    /** Milliseconds for which rows are kept in any case. */
    readonly keepRows: number;
  };
  readonly random: (length: number) => Uint8Array;
  readonly now: () => number;
  readonly onEvent: (event: StoreEvent) => void;
  /** What is in service; throws while nothing is. */
  serving(): Promise<SharedLive<T>>;
}

export class Checkpointer<T extends object> {
  readonly #world: CheckpointerWorld<T>;
  #running: Promise<void> | undefined;
  #notBefore = Number.NEGATIVE_INFINITY;
  /** Up to which record activity is to be dropped by the next checkpoint. */
  #dropTo: number | undefined;

  constructor(world: CheckpointerWorld<T>) {
    this.#world = world;
  }

  /** Waits for the one under way. */
  async stop(): Promise<void> {
    while (this.#running) await this.#running.catch(() => {});
  }

  /** Starts one when the rows have outgrown the snapshot. */
  startWhenDue({ logBytes, snapshot }: SharedLive<T>): void {
    const { limits, now } = this.#world;
    if (this.#running || logBytes <= Math.max(limits.checkpointBytes, snapshot.bytes)) return;
    if (now() < this.#notBefore) return;
    this.checkpoint().catch(() => {});
  }

  /** Runs one after the one under way. Where another node is at it, that one stands for it. */
  async checkpoint(): Promise<void> {
    await this.stop();
    this.#running = this.#checkpoint();
    try {
      await this.#running;
      this.#notBefore = Number.NEGATIVE_INFINITY;
    } catch (cause) {
      this.#notBefore = this.#world.now() + this.#world.limits.checkpointRetry;
      const message = `a checkpoint failed, nothing is lost, the log grows on: ${reasonOf(cause)}`;
      this.#world.onEvent({ kind: 'checkpoint-failed', message, cause });
      throw cause;
    } finally {
      this.#running = undefined;
    }
  }

  /** Lets go of the segments of the activity log up to record `seq`, by a checkpoint. */
  async drop(seq: number): Promise<void> {
    this.#dropTo = Math.max(seq, this.#dropTo ?? 0);
    await this.checkpoint();
  }

  /**
   * Segments that the state goes by and that are not there: a failover may have cut them off, with their snapshot, behind
   * a row that is still there.
   */
  async missing({ activity }: SharedLive<T>): Promise<readonly string[]> {
    const { segments } = activity;
    const { engine, uid } = this.#world;
    const names = segments.length > 0 ? new Set(await engine.files.list(storeIdOf(uid))) : new Set();
    return segments.map(({ file }) => file).filter((file) => !names.has(file));
  }

  /** Takes over a snapshot that another node wrote, if there is one that the state has reached. */
  async adoptNewer(): Promise<void> {
    const { place, snapshot } = await this.#world.serving();
    const isNewer = (generation: number): boolean => generation > snapshot.generation && generation <= place.seq;
    const found = await newestSnapshot(this.#world, isNewer);
    if (!found) return;
    const { header, manifest, size } = found;
    const live = await this.#world.serving();
    if (live.snapshot.generation >= header.generation || live.place.seq < header.generation) return;
    live.activity.adopt(manifest.activity.segments, manifest.activity.dropped);
    live.adopt({ generation: header.generation, bytes: size, savedAt: manifest.savedAt });
  }

  async #checkpoint(): Promise<void> {
    const { engine, uid } = this.#world;
    const done = await engine.alone(storeIdOf(uid), async () => {
      await this.adoptNewer();
      await this.#write();
    });
    if (!done) await this.adoptNewer();
  }

  async #write(): Promise<void> {
    const { engine, uid, keys, now, onEvent, limits } = this.#world;
    const { place, snapshot } = await this.#world.serving();
    const dropTo = this.#dropTo;
    const through = place.seq;
    if (through <= snapshot.generation && dropTo === undefined) return;
    const dir = storeIdOf(uid);
    const job: Pick<CheckpointJob, 'at' | 'dropTo'> = { at: now(), ...(dropTo === undefined ? {} : { dropTo }) };
    let last: KnownRow | undefined;
    const files = this.#filesBehind(() => last);
    const recovered = await this.#recover(through, files);
    if (!recovered) return;
    last = recovered.place;
    const { tag: chain, sequence, runs } = recovered.place;
    const header = { uid, generation: through, sequence, chain };
    const context = { files, dir, keys, random: this.#world.random };
    await writeRecovered(context, { ...recovered, runs, header }, job);
    // What is trimmed can come from nowhere else: it is proved first.
    const { size, manifest } = await readSnapshot(engine.files, dir, through, keys);
    const file = snapshotName(dir, through);
    const needed = [file, ...manifest.activity.segments.map((segment) => segmentPath(dir, segment.file))];
    const old = await this.#superseded(through);
    // What is not there any more a failover cut off, and nothing may go for it.
    if (!(await engine.trim(dir, { files: needed, seq: through, tag: chain }, limits.keepRows, old))) return;
    const live = await this.#world.serving();
    if (live.place.seq >= through) {
      live.activity.adopt(manifest.activity.segments, manifest.activity.dropped);
      live.adopt({ generation: through, bytes: size, savedAt: manifest.savedAt });
    }
    if (this.#dropTo === dropTo) this.#dropTo = undefined;
    onEvent({ kind: 'checkpoint', message: `${file}: ${size} bytes` });
  }

  /** Files that are made only while the log has the row that `known` answers by then. */
  #filesBehind(known: () => KnownRow | undefined): WholeFiles {
    const { engine, uid } = this.#world;
    const { files } = engine;
    return {
      list: (dir) => files.list(dir),
      exists: (name) => files.exists(name),
      size: (name) => files.size(name),
      read: (name) => files.read(name),
      readAt: (name, offset, length) => files.readAt(name, offset, length),
      remove: (name) => files.remove(name),
      replace: (name, bytes) => {
        const row = known();
        if (!row) throw new KmsError('internal', 'a file of a checkpoint before its place in the log is known');
        return engine.replaceBehind(storeIdOf(uid), row, name, bytes);
      },
    };
  }

  /** Undefined where another node, further on, has written a snapshot and trimmed the log. */
  async #recover(through: number, files: WholeFiles): Promise<SharedRecovered | undefined> {
    try {
      return await recoverShared({ ...this.#world, files, through });
    } catch (error) {
      const { engine, uid } = this.#world;
      const { snapshots } = await listStoreFiles(engine.files, storeIdOf(uid));
      if ((snapshots.at(-1) ?? 0) > through) return undefined;
      throw error;
    }
  }

  /**
   * The files for which the snapshot stands. Segments that it is the first to drop stay until the next one: other nodes
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
