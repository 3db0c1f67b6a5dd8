// EmbeddedStore is the driver that keeps the state in memory and the truth in files. Transactions run one after the
// other in memory and become durable in groups; each resolves only after the fsync of what it wrote, or of what it may
// have read.

import { systemRandom } from '../crypto/random.ts';
import { KmsError } from '../errors.ts';
import type { Mark } from '../model/store-mark.ts';
import { emptyHead } from './activity/activity-log.ts';
import { ActivityReads } from './activity/activity-reads.ts';
import { SegmentWatch } from './activity/segment-watch.ts';
import { storeClosed } from './availability.ts';
import { writeCheckpoint } from './checkpoint.ts';
import { defaultLimits, type EmbeddedOptions, type EmbeddedWorld } from './embedded-options.ts';
import { FileLost, type Files } from './files.ts';
import { createLog, type LogContext } from './log-file.ts';
import { logHeaderLength } from './log-format.ts';
import type { DroppedActivity, Store, StoreHold, StoreStatus, Transaction } from './port.ts';
import { type ReadStore, readStore } from './read-store.ts';
import type { Recovered } from './recover.ts';
import { SerialQueue } from './serial-queue.ts';
import { type Live, markOf, recoverFor, Service } from './service.ts';
import { StateLost } from './session.ts';
import { writeSnapshot } from './snapshot.ts';
import { type Soon, soon } from './sql.ts';
import { listStoreFiles, logName, tagLength, uidLength } from './store-files.ts';

class EmbeddedStore<T extends object> implements Store<T> {
  readonly activity: ActivityReads;
  readonly segments: SegmentWatch;
  readonly #service: Service<T>;
  /** What uses the state: transactions, peeks, holds. */
  readonly #queue = new SerialQueue();
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

  transaction<R>(fn: (tx: Transaction<T>) => Soon<R>): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#inTurn(reject, (live) => {
        const answer = (answered: () => void): void => {
          const durable = this.#commit(live);
          if (durable) durable.then(answered, reject);
          else answered();
        };
        const done = (result: R): void => answer(() => resolve(result));
        // An error is an answer too, and may rest on something read that is not durable yet.
        const failed = (error: unknown): void => {
          if (error instanceof StateLost) this.#service.leave(live, error, live.log.close());
          answer(() => reject(error));
        };
        let result: Soon<R>;
        try {
          result = live.session.run(fn);
        } catch (error) {
          return failed(error);
        }
        return result instanceof Promise ? result.then(done, failed) : done(result);
      });
    });
  }

  /**
   * Runs `job`, which must not fail, on what is in service when its turn comes, at once where that is now. `refuse` is
   * told why there is none.
   */
  #inTurn(refuse: (error: unknown) => void, job: (live: Live<T>) => Soon<void>): void {
    if (this.#closing) {
      refuse(storeClosed());
      return;
    }
    const use = (live: Live<T>): Soon<void> => {
      live.inUse = true;
      return soon(job(live), () => {
        live.inUse = false;
        if (live.dead) live.state.close();
      });
    };
    this.#queue.add(() => {
      const { live } = this.#service;
      return live ? use(live) : this.#service.serving().then(use, refuse);
    });
  }

  /** What the transaction that just ended has to wait for. */
  #commit(live: Live<T>): Promise<void> | undefined {
    const { session, log } = live;
    if (!session.wrote) return log.durable();
    try {
      return log.add(session.written);
    } catch (error) {
      // The state has what the log could not take.
      this.#service.leave(live, error, log.close());
      return Promise.reject(error);
    }
  }

  glance<R>(fn: (tables: T) => R): R | undefined {
    const { live } = this.#service;
    return live && fn(live.session.tables);
  }

  peek<R>(fn: (tables: T) => Promise<R>): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#inTurn(reject, (live) => live.session.peek(fn).then(resolve, reject));
    });
  }

  async hold(counted: boolean): Promise<StoreHold> {
    const { activity } = await this.#service.inService();
    await activity.hashed();
    return new Promise((resolve, reject) => {
      this.#inTurn(reject, (live) => this.#hold(live, counted).then(resolve, reject));
    });
  }

  async #hold(live: Live<T>, counted: boolean): Promise<StoreHold> {
    try {
      // What was counted may be rows that the tables do not have yet.
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
    await this.#queue.idle();
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
  /** 16 bytes to bind the store's files to; random when absent. */
  readonly uid?: Uint8Array;
  /** Epoch milliseconds. */
  readonly at: number;
}

/**
 * Makes the files of a new, empty store: the first log, then the snapshot, whose presence says that the store exists.
 * The store is on disk, durably, when this resolves. Throws `refused` where one is.
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

/** A first log without a record may be there: a crash came while the store was being made. */
async function refuseExisting(files: Files, dir: string): Promise<void> {
  const { snapshots, logs } = await listStoreFiles(files, dir);
  const empty = snapshots.length === 0 && logs.every((number) => number === 1);
  if (empty && (logs.length === 0 || (await files.size(logName(dir, 1))) <= logHeaderLength)) return;
  throw new KmsError('refused', `there is a store in ${dir} already`);
}
