// EmbeddedStore is the driver that keeps the state in memory and the truth in local files. Transactions run one after
// the other in memory and become durable in groups; each resolves only after the fsync of everything it wrote or may
// have read.

import { systemRandom } from '../crypto/random.ts';
import { KmsError } from '../errors.ts';
import type { Mark } from '../model/store-mark.ts';
import { emptyHead } from './activity/activity-log.ts';
import { ActivityReads } from './activity/activity-reads.ts';
import { SegmentWatch } from './activity/segment-watch.ts';
import { notServing, storeClosed } from './availability.ts';
import { writeCheckpoint } from './checkpoint.ts';
import { defaultLimits, type EmbeddedOptions, type EmbeddedWorld } from './embedded-options.ts';
import { runSlices } from './event-loop.ts';
import { FileLost, type Files } from './files.ts';
import { createLog, type LogContext } from './log-file.ts';
import { logHeaderLength } from './log-format.ts';
import type { DroppedActivity, Store, StoreHold, StoreStatus, Transaction } from './port.ts';
import { type ReadStore, readStore } from './read-store.ts';
import type { Recovered } from './recover.ts';
import { type Live, markOf, recoverFor, Service } from './service.ts';
import { StateLost } from './session.ts';
import { writeSnapshot } from './snapshot.ts';
import type { Slices } from './sql.ts';
import { listStoreFiles, logName, tagLength, uidLength } from './store-files.ts';

class EmbeddedStore<T extends object> implements Store<T> {
  readonly activity: ActivityReads;
  readonly segments: SegmentWatch;
  readonly #service: Service<T>;
  /** Pending while one job has the state to itself: a transaction in slices, or the start of a hold. */
  #alone: Promise<unknown> | undefined;
  #closing: Promise<void> | undefined;

  constructor(world: EmbeddedWorld<T>) {
    this.#service = new Service(world);
    this.segments = new SegmentWatch(world, this.#service);
    this.activity = new ActivityReads(this.segments, async () => {
      const { activity, log } = await this.#service.inService();
      return { activity, durable: () => log.durable() };
    });
  }

  /** For `readEmbedded`. */
  async open(recovered: Recovered): Promise<void> {
    const live = await this.#service.open(recovered);
    await this.segments.open(live);
    this.#service.maintenance.startWhenDue(live);
  }

  transaction<R>(fn: (tx: Transaction<T>) => R): Promise<R> {
    if (this.#closing) return Promise.reject(storeClosed());
    const live = this.#free;
    return live ? this.#transaction(live, fn) : this.#whenFree((free) => this.#transaction(free, fn));
  }

  #transaction<R>(live: Live<T>, fn: (tx: Transaction<T>) => R): Promise<R> {
    let result: R;
    try {
      result = live.session.run(fn);
    } catch (error) {
      return this.#refused(live, error);
    }
    const durable = this.#commit(live);
    return durable ? durable.then(() => result) : Promise.resolve(result);
  }

  transactionInSlices<R>(fn: (tx: Transaction<T>) => Slices<R>): Promise<R> {
    if (this.#closing) return Promise.reject(storeClosed());
    return this.#whenFree(async (live) => {
      const { result, durable } = await this.#haveAlone(live, async () => {
        try {
          const result = await runSlices(live.session.runInSlices(fn));
          return { result, durable: this.#commit(live) };
        } catch (error) {
          return { durable: this.#refused(live, error) };
        }
      });
      await durable;
      // Cast: without a result there was an error, and `durable` fails.
      return result as R;
    });
  }

  /** An error is an answer too, and may be based on data that is not durable yet. */
  async #refused(live: Live<T>, error: unknown): Promise<never> {
    if (error instanceof StateLost) this.#service.leave(live, error, live.log.close());
    await live.log.durable();
    throw error;
  }

  read<R>(fn: (tables: T) => R): R {
    const { live } = this.#service;
    if (!live) throw notServing(this.#service.reason);
    return live.session.read(fn);
  }

  /** The store in service; undefined while a job has it to itself. */
  get #free(): Live<T> | undefined {
    return this.#alone ? undefined : this.#service.live;
  }

  /** Runs `job` once the store is in service and free. Waiters go in the order in which they came. */
  async #whenFree<R>(job: (live: Live<T>) => Promise<R>): Promise<R> {
    for (;;) {
      const live = this.#free;
      if (live) return job(live);
      await (this.#alone?.catch(() => {}) ?? this.#service.serving());
    }
  }

  /** Keeps all others off the store in service until `job` is done. */
  async #haveAlone<R>(live: Live<T>, job: () => Promise<R>): Promise<R> {
    live.inUse = true;
    const ended = job();
    this.#alone = ended;
    try {
      return await ended;
    } finally {
      this.#alone = undefined;
      live.inUse = false;
      if (live.dead) live.state.close();
    }
  }

  /** The promise that the transaction just ended has to wait for, if any. */
  #commit(live: Live<T>): Promise<void> | undefined {
    const { session, log } = live;
    if (!session.wrote) return log.durable();
    try {
      return log.add(session.written);
    } catch (error) {
      // The state holds a transaction that the log did not take.
      this.#service.leave(live, error, log.close());
      return Promise.reject(error);
    }
  }

  async hold(counted: boolean): Promise<StoreHold> {
    const { activity } = await this.#service.inService();
    await activity.hashed();
    return this.#whenFree((live) => this.#haveAlone(live, () => this.#hold(live, counted)));
  }

  async #hold(live: Live<T>, counted: boolean): Promise<StoreHold> {
    try {
      // Tallies may stand for rows that the tables do not have yet.
      if (counted) await live.session.runCounts();
      return await this.#service.maintenance.hold(live, counted);
    } catch (error) {
      if (error instanceof FileLost || error instanceof StateLost) this.#service.leave(live, error, live.log.close());
      throw error;
    }
  }

  get mark(): Mark {
    return this.#service.mark;
  }

  status(): StoreStatus {
    return { ...this.#service.status(), ...this.segments.status };
  }

  async checkpoint(): Promise<void> {
    await this.#service.inService();
    await this.#service.maintenance.checkpoints.run();
  }

  droppable(before: number, upTo: number): DroppedActivity | undefined {
    return this.#service.live?.activity.droppable(before, upTo);
  }

  async dropActivity(seq: number): Promise<void> {
    await this.#service.inService();
    return this.#service.maintenance.checkpoints.drop(seq);
  }

  async reseal(): Promise<readonly number[]> {
    await this.#service.inService();
    return this.activity.noting(() => this.#service.maintenance.reseal());
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#service.beginClosing();
    // After all waiting jobs.
    await this.#whenFree(async () => {}).catch(() => {});
    await this.#service.close();
  }
}

/**
 * Reads the store in `options.dir`, which `createEmbedded` made. Throws `corrupt` for anything that does not verify.
 */
export async function readEmbedded<T extends object>(options: EmbeddedOptions<T>): Promise<ReadStore<T>> {
  const world = embeddedWorld(options);
  const recovered = await recoverFor(world);
  const { state, log } = recovered;
  return readStore<T, EmbeddedStore<T>>({
    mark: markOf(log.place),
    log: logName(world.dir, log.header.generation),
    state,
    onClosed: world.onClosed,
    driver: () => new EmbeddedStore(world),
    open: (store) => store.open(recovered),
  });
}

function embeddedWorld<T extends object>(options: EmbeddedOptions<T>): EmbeddedWorld<T> {
  const { files, dir, keys, wasm, random = systemRandom } = options;
  return {
    onEvent: () => {},
    onCommit: () => {},
    onClosed: async () => {},
    beforeMigration: async () => {},
    now: Date.now,
    elapsed: () => performance.now(),
    later: (milliseconds, run) => void setTimeout(run, milliseconds).unref(),
    runCheckpoint: (job) => writeCheckpoint({ files, keys, wasm, random }, job),
    ...options,
    tables: (sql) => options.tables(sql),
    uid: options.uid,
    random,
    limits: { ...defaultLimits, ...options.limits },
    context: { files, dir, keys, random },
  };
}

interface CreateOptions extends LogContext {
  /** 16 bytes that the store's files are bound to. Default: random. */
  readonly uid?: Uint8Array;
  /** Epoch milliseconds. */
  readonly at: number;
}

/**
 * Makes the files of a new, empty store: the first log, then the snapshot, whose presence says that the store exists.
 * Both are durable when this resolves. Throws `refused` if there is a store already.
 */
export async function createEmbedded(options: CreateOptions): Promise<void> {
  const { files, dir, at } = options;
  await files.makeDir(dir);
  await refuseExisting(files, dir);
  const uid = options.uid ?? options.random(uidLength);
  const start = { uid, sequence: 0, chain: new Uint8Array(tagLength), runs: [] };
  const log = await createLog(options, { ...start, generation: 1 });
  await log.close();
  const content = { schema: 0, savedAt: at, runs: [], activity: { segments: [], head: emptyHead } };
  await writeSnapshot(options, { ...start, generation: 0 }, content, [], new Uint8Array(0));
}

/** A first log without a record may be left from a crash while the store was being made. */
async function refuseExisting(files: Files, dir: string): Promise<void> {
  const { snapshots, logs } = await listStoreFiles(files, dir);
  const empty = snapshots.length === 0 && logs.every((number) => number === 1);
  if (empty && (logs.length === 0 || (await files.size(logName(dir, 1))) <= logHeaderLength)) return;
  throw new KmsError('refused', `there is a store in ${dir} already`);
}
