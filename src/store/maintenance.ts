// Maintenance looks after a store's files while it serves: checkpoints that keep the logs short, holds for copying the
// files, and resealing under the newest key. No request waits for any of it.
import { KmsError } from '../errors.ts';
import type { ActivityLog } from './activity/activity-log.ts';
import { droppedFiles } from './activity/dropped.ts';
import { epochsOfSegments, resealSegments } from './activity/resealing.ts';
import { segmentPath } from './activity/segment.ts';
import type { CheckpointResult } from './checkpoint.ts';
import { CheckpointRuns } from './checkpoint-runs.ts';
import type { EmbeddedWorld } from './embedded-options.ts';
import { FileLost } from './files.ts';
import { needEnd } from './known-end.ts';
import type { LogWriter } from './log-file.ts';
import type { SegmentSummary, StoreHold } from './port.ts';
import type { ClosedLog, Recovered } from './recover.ts';
import { SerialQueue } from './serial-queue.ts';
import type { State } from './state.ts';
import { decodeFileHeader, headerLength, listStoreFiles, logName, snapshotName } from './store-files.ts';

/** The store in service, as maintenance sees it. */
export interface Maintained {
  readonly uid: Uint8Array;
  readonly state: Pick<State, 'countRows'>;
  readonly activity: ActivityLog;
  readonly log: MaintainedLog;
  snapshot: Recovered['snapshot'];
}

/** The durable log: the files since the snapshot, the last of which is being written. */
interface MaintainedLog {
  readonly bytes: number;
  readonly closed: readonly ClosedLog[];
  readonly writer: Pick<LogWriter, 'generation' | 'place'>;
  durable(): Promise<void> | undefined;
  /**
   * Closes the current file, starts the next and returns the number of the last closed one. A file without a record may
   * stay open unless `must`.
   */
  rotate(must: boolean): Promise<number>;
  /** Drops the files up to `generation`: a snapshot now covers them. */
  forget(generation: number): void;
}

/** The owner of the store in service, which may replace it. */
export interface Serving<L extends Maintained = Maintained> {
  /** The store in service, after any recovery under way. Throws `unavailable` if there is none. */
  serving(): Promise<L>;
}

/** The same for callers that may find files changed. */
interface ServingFiles<L extends Maintained> extends Serving<L> {
  /** Takes the store out of service until its files again hold everything that was durable. */
  lost(live: L, cause: FileLost): void;
}

type MaintenanceWorld = Pick<
  EmbeddedWorld<object>,
  'files' | 'dir' | 'context' | 'limits' | 'now' | 'elapsed' | 'runCheckpoint' | 'onEvent'
>;

export class Maintenance<L extends Maintained> {
  readonly #world: MaintenanceWorld;
  readonly #service: ServingFiles<L>;
  readonly checkpoints: CheckpointRuns<CheckpointResult>;
  #resealing: Promise<readonly number[]> | undefined;
  #stopped = false;
  /** The number of holds on the files, and the generation up to which files are removed once there is no hold. */
  #holders = 0;
  #superseded: number | undefined;
  readonly #removing = new SerialQueue();
  #waiting: (() => void)[] = [];

  constructor(world: MaintenanceWorld, service: ServingFiles<L>) {
    this.#world = world;
    this.#service = service;
    this.checkpoints = new CheckpointRuns(world, (dropTo, _how, yields) =>
      this.#onWhole((live) => this.#checkpoint(live, dropTo, yields)),
    );
  }

  /**
   * Ends a resealing after the current file, and waits for a checkpoint and a removal under way. After that it leaves
   * the files alone: another process may own them.
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wake();
    const checkpoint = this.checkpoints.stop();
    while (this.#resealing) await this.#resealing.catch(() => {});
    await checkpoint;
    await this.#removing.idle();
  }

  /** Starts a checkpoint when the logs have outgrown the snapshot. */
  startWhenDue({ log, snapshot }: Maintained): void {
    this.checkpoints.startWhenDue(log.bytes, snapshot.bytes);
  }

  /** Runs `run` on the store in service, and takes that out of service if its files are lost. */
  async #onWhole<R>(run: (live: L) => Promise<R>): Promise<R> {
    const live = await this.#service.serving();
    try {
      return await run(live);
    } catch (error) {
      if (error instanceof FileLost) this.#service.lost(live, error);
      throw error;
    }
  }

  /** Throws `FileLost` unless each log file still has its known end. */
  async #needLog({ closed, writer: { generation, place } }: MaintainedLog): Promise<void> {
    const { context } = this.#world;
    const ends = closed.map((log) => ({ generation: log.generation, place: { offset: log.bytes, chain: log.chain } }));
    for (const end of [...ends, { generation, place }]) await needEnd(context, end);
  }

  /** Writes a snapshot and removes the files that it replaces. */
  async #checkpoint(
    { log, snapshot, activity }: L,
    dropTo: number | undefined,
    yields: boolean,
  ): Promise<CheckpointResult | undefined> {
    const { dir, now, runCheckpoint, limits } = this.#world;
    await this.#needLog(log);
    const through = await log.rotate(dropTo !== undefined);
    // Nothing new to cover, but files whose hold has ended may have to go.
    if (through <= snapshot.generation) {
      await this.#removeSuperseded();
      return undefined;
    }
    const at = now();
    const chain = log.closed.find(({ generation }) => generation === through)?.chain;
    const result = await runCheckpoint({
      dir,
      through,
      ...(chain && { chain }),
      at,
      segmentRecords: limits.segmentRecords,
      known: activity.segments.at(-1)?.lastSeq ?? 0,
      yields,
      ...(dropTo === undefined ? {} : { dropTo }),
    });
    // A write may have failed meanwhile: the store now in service was recovered from the old snapshot or from this one.
    const live = await this.#service.serving();
    if (live.snapshot.generation < through) {
      live.activity.extend(result.segments, result.dropped);
      live.log.forget(through);
      live.snapshot = { generation: through, bytes: result.snapshotBytes, savedAt: at };
    }
    this.#superseded = through;
    await this.#removeSuperseded();
    this.#world.onEvent({
      kind: 'checkpoint',
      message: `${snapshotName(dir, through)}: ${result.snapshotBytes} bytes`,
    });
    return result;
  }

  /** One removal at a time: two at once would list the same files and both remove them. */
  #removeSuperseded(): Promise<void> {
    return this.#removing.run(async () => {
      const through = this.#superseded;
      if (this.#holders > 0 || through === undefined) return;
      this.#superseded = undefined;
      await this.removeUpTo(through, (await this.#service.serving()).activity);
    });
  }

  /**
   * Removes the files that the durable snapshot `generation` replaces, and the dropped segments unless they are being
   * read. Files left over are removed next time.
   */
  async removeUpTo(generation: number, { dropped, isRead }: Pick<ActivityLog, 'dropped' | 'isRead'>): Promise<void> {
    const { files, dir } = this.#world;
    const { snapshots, logs } = await listStoreFiles(files, dir);
    for (const number of snapshots) if (number < generation) await files.remove(snapshotName(dir, number));
    for (const number of logs) if (number <= generation) await files.remove(logName(dir, number));
    if (!dropped || isRead) return;
    for (const name of droppedFiles(await files.list(dir), dropped)) await files.remove(segmentPath(dir, name));
  }

  /**
   * Holds the files as they are at one commit. Called between transactions. Waits for the sync under way, so that the
   * commit is the state's latest. No writer waits for the copy: later writes go after the held part, or to other files.
   * Throws `FileLost`.
   */
  async hold(live: Maintained, counted: boolean): Promise<StoreHold> {
    const release = this.#keepFiles();
    try {
      await live.log.durable();
      // No await until the list is complete: a checkpoint that ends replaces logs with a new snapshot.
      const held = filesOf(live, this.#world, counted, release);
      await this.#needLog(live.log);
      return held;
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Keeps all files until the returned function is called. */
  #keepFiles(): () => void {
    this.#holders++;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#holders--;
      this.#wake();
      // Files left over are removed by the next checkpoint or start.
      if (!this.#stopped) this.#removeSuperseded().catch(() => {});
    };
  }

  /** Has the waiters for free files check again. */
  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Resolves when there is no hold on the files. */
  async #free(): Promise<void> {
    while (this.#holders > 0 && !this.#stopped) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#needUnstopped();
  }

  #needUnstopped(): void {
    if (this.#stopped) throw new KmsError('unavailable', 'the store was closed before all its files had the new key');
  }

  /**
   * Brings every file under the newest key: snapshot and log by a checkpoint, then the segments of the activity log one
   * by one, each replaced whole. After an interruption the next call continues. Returns the key epochs that the files
   * still need: only the newest, unless a newer one came in the meantime.
   */
  async reseal(): Promise<readonly number[]> {
    while (this.#resealing) await this.#resealing.catch(() => {});
    this.#needUnstopped();
    this.#resealing = this.#resealOnce();
    try {
      return await this.#resealing;
    } finally {
      this.#resealing = undefined;
    }
  }

  async #resealOnce(): Promise<readonly number[]> {
    await this.checkpoints.run();
    await resealSegments(await this.#resealed());
    // A copy under way may include old versions of the files.
    await this.#free();
    return this.#epochs();
  }

  async #resealed() {
    const { activity, uid } = await this.#service.serving();
    const { files, dir, context } = this.#world;
    return {
      files,
      dir,
      keys: context.keys,
      uid,
      segments: activity.segments,
      isKept: async ({ file }: SegmentSummary) =>
        (await this.#service.serving()).activity.segments.some((segment) => segment.file === file),
      free: () => this.#free(),
    };
  }

  /** Key epochs of the files that a recovery reads. */
  async #epochs(): Promise<readonly number[]> {
    const { files, dir } = this.#world;
    const { snapshot } = await this.#service.serving();
    const found = await epochsOfSegments(await this.#resealed());
    const name = snapshotName(dir, snapshot.generation);
    found.add(decodeFileHeader('snapshot', name, await files.readAt(name, 0, headerLength)).epoch);
    const { logs } = await listStoreFiles(files, dir);
    for (const generation of logs.filter((number) => number > snapshot.generation)) {
      const log = logName(dir, generation);
      found.add(decodeFileHeader('log', log, await files.readAt(log, 0, headerLength)).epoch);
    }
    return [...found].sort((a, b) => a - b);
  }
}

function filesOf(
  live: Maintained,
  { files, dir }: Pick<MaintenanceWorld, 'files' | 'dir'>,
  counted: boolean,
  release: () => void,
): StoreHold {
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
    source: files,
    activity: activity.head,
    // Counting takes time in proportion to the tables.
    tables: counted ? state.countRows() : {},
    release,
  };
}
