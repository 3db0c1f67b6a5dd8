// The embedded store: the state in memory, the truth on disk. Transactions run one after the other in memory and become
// durable in groups; each resolves only after the fsync of what it wrote, or of what it may have read.
import { KmsError } from '../errors.ts';
import { Checkpointer, removeSuperseded } from './checkpointer.ts';
import { type EmbeddedOptions, type EmbeddedWorld, embeddedWorld } from './embedded-options.ts';
import { listStoreFiles } from './file-names.ts';
import { FilesGone, holdLive, type StoreHold } from './hold.ts';
import { type Live, openLive } from './live.ts';
import { inWords } from './notice.ts';
import type { ActivityFilter, ActivityRecord, ChainedActivity, Store, StoreStatus, Transaction } from './port.ts';
import { repairLog } from './repair.ts';
import { Resealer } from './reseal.ts';
import { StateLost } from './session.ts';
import type { Page, PageRequest } from './sql.ts';
import { Turns } from './turns.ts';

export class EmbeddedStore<T extends object> implements Store<T> {
  readonly #world: EmbeddedWorld<T>;
  readonly #checkpoints: Checkpointer<T>;
  readonly #resealer: Resealer<T>;
  readonly #turns = new Turns<Live<T>>(() => this.#live ?? this.#serving(), {
    begins: (live) => {
      live.inUse = true;
    },
    ended: (live) => {
      live.inUse = false;
      if (live.dead) live.state.close();
    },
  });
  #live: Live<T> | undefined;
  #status: StoreStatus | undefined;
  #reason = 'the store is being opened';
  #recovery: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(world: EmbeddedWorld<T>) {
    this.#world = world;
    this.#checkpoints = new Checkpointer(world, () => this.#serving());
    this.#resealer = new Resealer(world, this.#checkpoints, () => this.#inService());
  }

  /** For `openEmbedded`. */
  async open(): Promise<void> {
    const { files, dir } = this.#world;
    const { leftovers } = await listStoreFiles(files, dir);
    for (const name of leftovers) await files.remove(name);
    this.#live = await this.#openLive();
    // What a crash left of a checkpoint; only space is lost when that fails.
    await removeSuperseded(this.#world, this.#live.snapshot.generation).catch(() => {});
    this.#checkpoints.startWhenDue(this.#live);
  }

  transaction<R>(fn: (tx: Transaction<T>) => Promise<R>): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#turns.add({
        refuse: reject,
        run: async (live) => {
          // An error is an answer too, and may rest on something read that is not durable yet.
          let answer: () => void;
          try {
            const result = await live.session.run(fn);
            answer = () => resolve(result);
          } catch (error) {
            if (error instanceof StateLost) this.#leaveService(live, error, live.log.close());
            answer = () => reject(error);
          }
          const durable = this.#commit(live);
          if (durable) durable.then(answer, reject);
          else answer();
        },
      });
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
      this.#leaveService(live, error, log.close());
      return Promise.reject(error);
    }
  }

  peek<R>(fn: (tables: T) => Promise<R>): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#turns.add({ refuse: reject, run: (live) => live.session.peek(fn).then(resolve, reject) });
    });
  }

  async hold(counted: boolean): Promise<StoreHold> {
    const { activity } = await this.#inService();
    await activity.hashed();
    return new Promise((resolve, reject) => {
      this.#turns.add({ refuse: reject, run: (live) => this.#hold(live, counted).then(resolve, reject) });
    });
  }

  async #hold(live: Live<T>, counted: boolean): Promise<StoreHold> {
    try {
      return await holdLive(live, this.#world, this.#checkpoints, counted);
    } catch (error) {
      if (error instanceof FilesGone) this.#leaveService(live, error, live.log.close());
      throw error;
    }
  }

  async searchActivity(filter: ActivityFilter, page: PageRequest): Promise<Page<ActivityRecord>> {
    const { activity, log } = await this.#inService();
    const found = await activity.search(filter, page);
    await log.durable();
    return found;
  }

  async findActivity(id: string): Promise<ActivityRecord | undefined> {
    const { activity, log } = await this.#inService();
    const found = await activity.find(id);
    await log.durable();
    return found;
  }

  async *readActivity(fromSeq: number): AsyncIterable<ChainedActivity> {
    const { activity, log } = await this.#inService();
    const end = activity.count;
    await log.durable();
    for await (const chained of activity.read(fromSeq)) {
      if (chained.record.seq > end) return;
      yield chained;
    }
  }

  get sequence(): number {
    return this.#live?.log.writer.place.sequence ?? this.#status?.sequence ?? 0;
  }

  status(): StoreStatus {
    const live = this.#live;
    if (live) {
      const { log, snapshot, activity } = live;
      this.#status = {
        writable: true,
        logBytes: log.bytes,
        snapshotBytes: snapshot.bytes,
        activityBytes: activity.bytes,
        sequence: log.writer.place.sequence,
        lastCheckpointAt: snapshot.generation === 0 ? undefined : snapshot.savedAt,
        activityCount: activity.count,
        activitySegments: activity.segments.length,
      };
      return this.#status;
    }
    const known = this.#status ?? {
      logBytes: 0,
      snapshotBytes: 0,
      activityBytes: 0,
      sequence: 0,
      activityCount: 0,
      activitySegments: 0,
    };
    return { lastCheckpointAt: undefined, ...known, writable: false, reason: this.#reason };
  }

  async checkpoint(): Promise<void> {
    await this.#inService();
    return this.#checkpoints.run();
  }

  async reseal(): Promise<readonly number[]> {
    await this.#inService();
    return this.#resealer.run();
  }

  close(): Promise<void> {
    this.#closing ??= this.#shut();
    return this.#closing;
  }

  async #shut(): Promise<void> {
    await this.#turns.close();
    await this.#resealer.stop();
    await this.#checkpoints.idle();
    await this.#recovery;
    const live = this.#live;
    this.status();
    this.#live = undefined;
    this.#reason = 'the store is closed';
    await live?.log.close();
    live?.state.close();
    await this.#world.onClosed();
  }

  /** What is in service, after the recovery under way if there is one. */
  async #serving(): Promise<Live<T>> {
    while (this.#recovery) await this.#recovery;
    if (this.#live) return this.#live;
    throw unavailable(this.#reason);
  }

  #inService(): Promise<Live<T>> {
    return this.#closing ? Promise.reject(unavailable('the store is closed')) : this.#serving();
  }

  async #openLive(): Promise<Live<T>> {
    let live: Live<T> | undefined;
    live = await openLive(this.#world, {
      onDurable: (commit) => {
        this.#world.onCommit(commit);
        if (live) this.#checkpoints.startWhenDue(live);
      },
      onFailure: (cause, takenBack) => live && this.#leaveService(live, cause, takenBack),
    });
    return live;
  }

  /** Throws the state away and recovers it from the disk, once `ready` resolves. */
  #leaveService(live: Live<T>, cause: unknown, ready: Promise<void>): void {
    if (live.dead) return;
    this.status();
    live.dead = true;
    this.#live = undefined;
    this.#reason = `a write failed: ${inWords(cause)}`;
    this.#world.onNotice({ kind: 'write-failed', message: this.#reason, cause });
    this.#recover(live, ready);
  }

  #recover(dead: Live<T>, ready?: Promise<void>): void {
    this.#recovery = (async () => {
      await ready;
      if (!dead.inUse) dead.state.close();
      await this.#tryToRecover(dead);
      this.#recovery = undefined;
    })();
  }

  async #tryToRecover(dead: Live<T>): Promise<void> {
    const { context, limits, later, onNotice } = this.#world;
    try {
      const { broken } = dead.log;
      if (broken) await repairLog(context, dead.uid, broken);
      this.#live = await this.#openLive();
      onNotice({ kind: 'recovered', message: 'the store was recovered from the disk and writes again' });
    } catch (cause) {
      const reason = `a write failed, and the store is not recovered yet: ${inWords(cause)}`;
      // Said once, not at each try.
      if (reason !== this.#reason) onNotice({ kind: 'recovery-failed', message: reason, cause });
      this.#reason = reason;
      later(limits.recoveryRetry, () => {
        if (!this.#closing && !this.#recovery) this.#recover(dead);
      });
    }
  }
}

/** Opens the store in `options.dir`, which `createEmbedded` made. Throws `corrupt` for anything that does not verify. */
export async function openEmbedded<T extends object>(options: EmbeddedOptions<T>): Promise<Store<T>> {
  const store = new EmbeddedStore(embeddedWorld(options));
  await store.open();
  return store;
}

function unavailable(reason: string): KmsError {
  return new KmsError('unavailable', `the store does not serve: ${reason}`, {
    hint: 'it goes on by itself once the cause is gone',
  });
}
