// JournalStore is the store of every journal: the state is in memory, the truth in the journal. Transactions run one
// after the other in memory and become durable in groups; each resolves only once everything that it wrote or may have
// read is durable.
import { systemRandom } from '../crypto/random.ts';
import { KmsError } from '../errors.ts';
import type { Mark } from '../model/store-mark.ts';
import { ActivityReads } from './activity/activity-reads.ts';
import { SegmentWatch } from './activity/segment-watch.ts';
import { Availability, notServing, storeClosed } from './availability.ts';
import { type CheckpointJournal, type CheckpointResult, writeCheckpoint } from './checkpoint.ts';
import { runSlices } from './event-loop.ts';
import { FileLost } from './files.ts';
import {
  type CheckpointHow,
  type Commit,
  defaultLimits,
  type Journal,
  type JournalOwner,
  type Log,
  type Served,
  type StoreOptions,
  type StoreWorld,
} from './journal.ts';
import { Maintenance } from './maintenance.ts';
import type { DroppedActivity, ReadStore, Store, StoreHold, StoreStatus, Transaction } from './port.ts';
import type { LogEnd, Recovered, RecoverOptions } from './recover.ts';
import { Session, StateLost } from './session.ts';
import type { Slices } from './sql.ts';
import { emptyStatus, type ServiceStatus, statusOf } from './status.ts';
import { migrate } from './tables/migrations.ts';
import { Turns } from './turns.ts';

interface Live<T extends object, L extends Log> extends Served<L> {
  readonly session: Session<T>;
  dead: boolean;
  /** A transaction is running on it. */
  inUse: boolean;
}

/** Milliseconds between two looks for what another process is about to end. */
const shortPause = 100;
/** Milliseconds for which a checkpoint of the present moment is tried. */
const longestCover = 60_000;

class JournalStore<T extends object, L extends Log, E extends LogEnd> implements Store<T>, JournalOwner<L> {
  readonly activity: ActivityReads;
  readonly segments: SegmentWatch;
  readonly #world: StoreWorld<T>;
  readonly #journal: Journal<L, E>;
  readonly #availability: Availability<Live<T, L>>;
  readonly #turns: Turns<Live<T, L>>;
  readonly #maintenance: Maintenance<L>;
  /** The log and the status when the store was last in service. */
  #log: L | undefined;
  #status: ServiceStatus = emptyStatus;
  #hadTurn = false;
  #closing: Promise<void> | undefined;

  constructor(world: StoreWorld<T>, journal: Journal<L, E>) {
    const { limits, later, onEvent } = world;
    this.#world = world;
    this.#journal = journal;
    this.#availability = new Availability({
      retry: limits.recoveryRetry,
      later,
      onEvent,
      words: journal.words,
      kindOf: (cause) => journal.kindOf(cause),
      release: (dead) => {
        if (!dead.inUse) dead.state.close();
      },
      recover: async ({ log }) => this.#goLive(await journal.recoverFrom(log, recoverOptions(world)), log),
    });
    this.#turns = new Turns({
      limits,
      serving: () => this.serving(),
      begin: (live) => this.#begin(live),
      end: (live, more) => this.#end(live, more),
    });
    this.#maintenance = new Maintenance(world, journal, this);
    const { files, dir } = journal;
    this.segments = new SegmentWatch(
      { ...world, files, dir },
      { inService: () => this.#availability.inService(), upToDate: () => this.#current() },
    );
    this.activity = new ActivityReads(this.segments, async () => {
      const { activity, log } = await this.#current();
      return { activity, durable: () => log.durable() };
    });
  }

  /** For `readStore`. */
  async open(recovered: Recovered<E>): Promise<void> {
    const { migrations, beforeMigration } = this.#world;
    const { state, log } = recovered;
    const isNew = state.schemaVersion === 0 && log.place.sequence === 0;
    if (state.schemaVersion < migrations.length && !isNew) await beforeMigration();
    this.#availability.begin(await this.#goLive(recovered));
    // The first turn runs the migrations.
    const live = await this.#turn();
    await live.log.durable();
    await this.segments.open(live);
    this.#startWhenDue(live);
    this.#pollLater();
  }

  async #goLive(recovered: Recovered<E>, before?: L): Promise<Live<T, L>> {
    const { migrations, tables } = this.#world;
    const { state, activity, uid, snapshot } = recovered;
    let live: Live<T, L> | undefined;
    try {
      const events = {
        onDurable: (commit: Commit) => {
          this.#world.onCommit(commit);
          if (live) this.#startWhenDue(live);
        },
        onFailure: (cause: unknown) => live && this.leave(live, cause),
      };
      const session = new Session(state, (sql) => tables(sql), activity);
      const log = await this.#journal.open(recovered, events, before);
      this.#log = log;
      const isMigrated = state.schemaVersion >= migrations.length;
      live = { uid, state, session, activity, log, snapshot, isMigrated, dead: false, inUse: false };
      return live;
    } catch (error) {
      state.close();
      throw error;
    }
  }

  transaction<R>(fn: (tx: Transaction<T>) => R): Promise<R> {
    if (this.#closing) return Promise.reject(storeClosed());
    const live = this.#free;
    if (live) return this.#transaction(live, fn);
    return this.#queue((live, answer) => answer(this.#transaction(live, fn)));
  }

  #transaction<R>(live: Live<T, L>, fn: (tx: Transaction<T>) => R): Promise<R> {
    let result: R;
    try {
      result = live.session.run(fn);
    } catch (error) {
      return this.#refused(live, error);
    }
    return this.#committed(live, result);
  }

  transactionInSlices<R>(fn: (tx: Transaction<T>) => Slices<R>): Promise<R> {
    return this.#queue(async (live, answer) => {
      const result = await runSlices(live.session.runInSlices(fn));
      answer(this.#committed(live, result));
    });
  }

  #committed<R>(live: Live<T, L>, result: R): Promise<R> {
    const { session, log } = live;
    let durable: Promise<void> | undefined;
    try {
      durable = session.wrote ? log.add(session.written) : log.durable();
    } catch (error) {
      // The state holds a transaction that the log did not take.
      this.leave(live, error);
      return Promise.reject(error);
    }
    return durable ? durable.then(() => result) : Promise.resolve(result);
  }

  /** An error is an answer too, and may be based on data that is not durable yet. */
  async #refused(live: Live<T, L>, error: unknown): Promise<never> {
    if (error instanceof StateLost || error instanceof FileLost) this.leave(live, error);
    await live.log.durable();
    throw error;
  }

  read<R>(fn: (tables: T) => R): R {
    const { live, reason } = this.#availability;
    if (!live) throw notServing(reason);
    return live.session.read(fn);
  }

  /** The store in service, if a transaction may run on it now. */
  get #free(): Live<T, L> | undefined {
    return this.#journal.hasTurn && this.#turns.isIdle ? this.#availability.live : undefined;
  }

  /** Runs `run` in a turn; resolves with what it answers. */
  #queue<R>(run: (live: Live<T, L>, answer: (result: R | Promise<R>) => void) => Promise<void> | void): Promise<R> {
    if (this.#closing) return Promise.reject(storeClosed());
    return new Promise((resolve, reject) => {
      const job = async (live: Live<T, L>): Promise<void> => {
        try {
          await run(live, resolve);
        } catch (error) {
          resolve(this.#refused(live, error));
        }
      };
      this.#turns.add({ run: job, refuse: reject });
    });
  }

  /** Resolves with the store in service, at the end of the log at the time of the call or later. */
  #turn(): Promise<Live<T, L>> {
    return this.#queue((live, answer) => {
      const durable = live.log.durable();
      answer(durable ? durable.then(() => live) : live);
    });
  }

  async #begin(live: Live<T, L>): Promise<boolean> {
    const { migrations } = this.#world;
    if (!(await this.#journal.begin(live, this))) return false;
    this.#hadTurn = true;
    live.inUse = true;
    if (live.isMigrated) return true;
    try {
      const written = migrate(live.state, live.session, migrations);
      if (written) live.log.add(written).catch(() => {});
      live.isMigrated = true;
      return true;
    } catch (cause) {
      this.leave(live, cause);
      await this.#end(live, false);
      throw cause;
    }
  }

  async #end(live: Live<T, L>, more: boolean): Promise<void> {
    await this.#journal.end(live, this, more);
    live.inUse = false;
    if (live.dead) live.state.close();
    else this.#startWhenDue(live);
  }

  inTurn<R>(job: (live: Served<L>) => Promise<R>): Promise<R> {
    return this.#queue(async (live, answer) => answer(await job(live)));
  }

  /** The same, without waiting for jobs if no other process appends. */
  #latest(): Promise<Live<T, L>> {
    return this.#journal.hasTurn ? this.#availability.inService() : this.#turn();
  }

  /** The same for reading activity: other processes may have appended records, or moved them to segments. */
  async #current(): Promise<Live<T, L>> {
    const live = await this.#latest();
    const cause = await this.#journal.adoptNewer(this);
    if (cause === undefined) return live;
    await this.#queue<void>((now, answer) => {
      if (now === live) this.leave(live, cause);
      answer();
    });
    return this.#latest();
  }

  serving(): Promise<Live<T, L>> {
    return this.#availability.serving();
  }

  get mark(): Mark {
    const { sequence, runs } = this.#log?.mark ?? { sequence: 0, runs: [] };
    return { sequence, runs };
  }

  status(): StoreStatus {
    return { ...this.#serviceStatus(), ...this.segments.status };
  }

  #serviceStatus(): ServiceStatus {
    const { live, reason } = this.#availability;
    if (live) this.#status = statusOf(live);
    const trouble = live ? this.#journal.trouble : reason;
    return trouble === undefined ? this.#status : { ...this.#status, writable: false, reason: trouble };
  }

  #startWhenDue({ dead, log, snapshot }: Live<T, L>): void {
    if (!dead) this.#maintenance.checkpoints.startWhenDue(log.bytes, snapshot.bytes);
  }

  async checkpoint(): Promise<void> {
    await this.#latest();
    await this.#maintenance.checkpoints.run();
  }

  droppable(before: number, upTo: number): DroppedActivity | undefined {
    return this.#availability.live?.activity.droppable(before, upTo);
  }

  async dropActivity(seq: number): Promise<void> {
    this.#maintenance.checkpoints.drop(seq);
    await this.cover({});
  }

  /** Appends an empty transaction, which gives the next checkpoint something to cover, under the newest key. */
  #appendNothing(): Promise<void> {
    return this.#queue((live, answer) => {
      live.session.run(() => {});
      answer(live.log.add(live.session.written));
    });
  }

  async cover(how: CheckpointHow): Promise<CheckpointResult> {
    const { elapsed } = this.#world;
    for (const until = elapsed() + longestCover; ; await this.pause()) {
      await this.#appendNothing();
      const made = await this.#maintenance.checkpoints.run(how);
      if (made) return made;
      if (elapsed() > until) {
        throw new KmsError('unavailable', 'another node writes one snapshot after the other', { hint: 'try again' });
      }
    }
  }

  async pause(): Promise<void> {
    await new Promise<void>((resolve) => this.#world.later(shortPause, resolve));
    if (this.#closing) throw storeClosed();
  }

  async hold(counted: boolean): Promise<StoreHold> {
    await this.#availability.inService();
    return this.#journal.hold(this, counted);
  }

  async reseal(): Promise<readonly number[]> {
    await this.#availability.inService();
    return this.activity.noting(() => this.#maintenance.reseal());
  }

  leave(live: Served<L>, cause: unknown): void {
    if (live.dead) return;
    this.status();
    // Cast: every store in service is one of this class.
    this.#availability.leave(live as Live<T, L>, cause, live.log.release(cause));
  }

  /** Keeps an idle store near the end of the log, so that its next turn has little to replay. */
  #pollLater(): void {
    const { poll } = this.#journal;
    if (poll === undefined) return;
    this.#world.later(poll, () => {
      if (this.#closing) return;
      if (!this.#hadTurn) this.#turn().catch(() => {});
      this.#hadTurn = false;
      this.#pollLater();
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#availability.beginClosing();
    await this.#turns.idle();
    await this.#maintenance.stop();
    // If a write fails now, the log is repaired before the store ends.
    await this.#availability.live?.log.durable()?.catch(() => {});
    await this.serving().catch(() => {});
    this.status();
    const live = await this.#availability.end();
    await live?.log.close();
    live?.state.close();
    await this.#journal.close();
    await this.#world.onClosed();
  }
}

/** The options with their defaults; `journal` is for checkpoints on this thread. */
export function storeWorld<T extends object>(options: StoreOptions<T>, journal: CheckpointJournal): StoreWorld<T> {
  const { wasm, random = systemRandom } = options;
  return {
    onEvent: () => {},
    onCommit: () => {},
    onClosed: async () => {},
    beforeMigration: async () => {},
    now: Date.now,
    elapsed: () => performance.now(),
    later: (milliseconds, run) => void setTimeout(run, milliseconds).unref(),
    runCheckpoint: (job) => writeCheckpoint(journal, { wasm, random }, job),
    ...options,
    tables: (sql) => options.tables(sql),
    random,
    limits: { ...defaultLimits, ...options.limits },
  };
}

function recoverOptions<T extends object>({ wasm, migrations, limits }: StoreWorld<T>): RecoverOptions {
  const { segmentRecords, activityCacheBytes } = limits;
  return { wasm, migrations, segmentRecords, activityCacheBytes };
}

/** Recovers a store into memory. Changes nothing in the journal. */
export async function readStore<T extends object, L extends Log, E extends LogEnd>(
  world: StoreWorld<T>,
  journal: Journal<L, E>,
): Promise<ReadStore<T>> {
  const recovered = await journal.recover(recoverOptions(world)).catch(async (error: unknown) => {
    await journal.close();
    throw error;
  });
  const { state, log } = recovered;
  let isOpen = false;
  return {
    mark: { sequence: log.place.sequence, runs: log.place.runs },
    log: log.name,
    rows: (queryFor) => state.all(state.statement(queryFor(state.schemaVersion)), []),
    async open() {
      isOpen = true;
      const store = new JournalStore(world, journal);
      try {
        await store.open(recovered);
        return store;
      } catch (error) {
        await store.close().catch(() => {});
        state.close();
        throw error;
      }
    },
    async discard() {
      if (isOpen) return;
      state.close();
      await journal.close();
      await world.onClosed();
    },
  };
}
