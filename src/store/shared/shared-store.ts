// SharedStore is the driver of one of several equal nodes: the state is in memory, the truth in the log of an engine
// that all nodes share. There is no leader: a node with work takes a turn of the log, replays the rows of the others,
// then runs its own transactions, and answers at the commit. So every answer of every node belongs to one position in
// one history.
import { equalBytes } from '../../crypto/bytes.ts';
import { systemRandom } from '../../crypto/random.ts';
import { KmsError } from '../../errors.ts';
import type { Mark } from '../../model/store-mark.ts';
import { ActivityReads } from '../activity/activity-reads.ts';
import { SegmentWatch } from '../activity/segment-watch.ts';
import { Availability, notServing, storeClosed } from '../availability.ts';
import type { Group } from '../commit-group.ts';
import { defaultLimits, type EmbeddedOptions, type StoreLimits } from '../embedded-options.ts';
import { runSlices } from '../event-loop.ts';
import { lostOf } from '../known-end.ts';
import type { DroppedActivity, Store, StoreHold, StoreStatus, Transaction } from '../port.ts';
import { type ReadStore, readStore } from '../read-store.ts';
import { emptyStatus, markOf, type ServiceStatus, statusOf } from '../service.ts';
import { StateLost } from '../session.ts';
import type { Slices } from '../sql.ts';
import { nonceLength } from '../store-files.ts';
import { type SharedCheckpoint, type SharedCheckpointJob, writeSharedCheckpoint } from './checkpoint.ts';
import { Checkpointer, type How } from './checkpointer.ts';
import type { Control, LogConnection, SharedEngine } from './engine.ts';
import { SharedHold } from './hold.ts';
import { CommitsLost, LostBranch, SharedLive } from './live.ts';
import { type TurnLimits, TurnLoop, type TurnMeter } from './log-turns.ts';
import { recoverShared, type SharedRecovered, storeIdOf } from './recovery.ts';
import { resealShared } from './reseal.ts';
import { appendRule, firstRow, logNameOf, type RowContext } from './row.ts';

interface SharedLimits extends StoreLimits, TurnLimits {
  /** Milliseconds after which an idle node checks for rows of other nodes. */
  readonly poll: number;
  /** Milliseconds for which rows are always kept. */
  readonly keepRows: number;
  /** Milliseconds after which a hold on the files runs out if it is not renewed. */
  readonly holdMs: number;
}

const sharedLimits: SharedLimits = {
  ...defaultLimits,
  turnRequests: 512,
  turnMs: 5,
  doubtMs: 10_000,
  doubtRetry: 100,
  poll: 1000,
  keepRows: 3_600_000,
  holdMs: 60_000,
};

type Common = 'keys' | 'wasm' | 'migrations' | 'tables' | 'onClosed' | 'beforeMigration' | 'onEvent' | 'onCommit';

export interface SharedOptions<T extends object>
  extends Pick<EmbeddedOptions<T>, Common | 'now' | 'elapsed' | 'random' | 'later'> {
  readonly engine: SharedEngine;
  /** The store's 16 bytes, which also identify it in the engine. */
  readonly uid: Uint8Array;
  /** The directory of its files in a copy, such as a backup. */
  readonly dir: string;
  /** Whether other stores may wait for its turn inside theirs: then it has a connection of its own. */
  readonly hasOwnConnection?: boolean;
  /** Runs a checkpoint and returns its result. Default: on this thread. */
  readonly runCheckpoint?: (job: SharedCheckpointJob) => Promise<SharedCheckpoint | undefined>;
  readonly limits?: Partial<SharedLimits>;
  readonly meter?: TurnMeter | undefined;
  /**
   * Gets the control values in each turn, before anything runs in it, while no other node has the turn. Its errors
   * reject all waiting jobs. It must not wait for a turn of this same store.
   */
  onTurnStart?(control: Control): Promise<void> | undefined;
  /** Called before a recovery, since the rows may be under newer keys. */
  beforeRecovery?(): Promise<void>;
}

type SharedWorld<T extends object> = Required<Omit<SharedOptions<T>, 'limits'>> & { readonly limits: SharedLimits };

class SharedStore<T extends object> implements Store<T> {
  readonly activity: ActivityReads;
  readonly segments: SegmentWatch;
  readonly #world: SharedWorld<T>;
  readonly #availability: Availability<SharedLive<T>>;
  readonly #connection: LogConnection;
  readonly #turns: TurnLoop<T>;
  readonly #checkpointer: Checkpointer<T>;
  /** The mark and the status when the store was last in service. */
  #mark: Mark = { sequence: 0, runs: [] };
  #status: ServiceStatus = emptyStatus;
  #hadTurn = false;
  #resealing: Promise<readonly number[]> | undefined;
  #closing: Promise<void> | undefined;

  constructor(world: SharedWorld<T>) {
    const { engine, uid, limits, later, now, elapsed, onEvent, onCommit } = world;
    const dir = storeIdOf(uid);
    this.#world = world;
    this.#availability = new Availability<SharedLive<T>>({
      retry: limits.recoveryRetry,
      later,
      onEvent,
      words: { failed: 'a turn failed', mended: 'the store was recovered from the shared log and serves again' },
      // Rows trimmed by a rekeying are no fault; commits cut off by a failover are reported with what was lost.
      kindOf: (cause) => {
        if (cause instanceof CommitsLost) return 'commits-lost';
        return cause instanceof LostBranch ? 'log-moved' : undefined;
      },
      release: (dead) => dead.state.close(),
      recover: async (dead) => {
        await world.beforeRecovery();
        const recovered = await recoverOf(world);
        try {
          await this.#needAllKnown(dead, recovered);
        } catch (error) {
          recovered.state.close();
          throw error;
        }
        return new SharedLive(world, recovered, dead.known);
      },
    });
    const serving = (): Promise<SharedLive<T>> => this.#availability.serving();
    this.#connection = engine.logConnection(dir, world.hasOwnConnection);
    this.#turns = new TurnLoop({
      connection: this.#connection,
      rows: (from, limit) => engine.rows(dir, from, limit),
      limits,
      later,
      now,
      elapsed,
      onCommit,
      onEvent,
      meter: world.meter,
      onTurnStart: (control) => world.onTurnStart(control),
      serving,
      leave: (live, cause) => this.#leave(live, cause),
      onTurn: (live) => {
        this.#hadTurn = true;
        if (!live.dead) this.#checkpointer.runs.startWhenDue(live.logBytes, live.snapshot.bytes);
      },
    });
    this.#checkpointer = new Checkpointer({ ...world, serving });
    const watched = {
      inService: () => this.#availability.inService(),
      // A failover may have cut segments off, or a node may have resealed them under a newer key.
      upToDate: () => this.#current(),
    };
    this.segments = new SegmentWatch({ ...world, files: engine.files, dir }, watched);
    this.activity = new ActivityReads(this.segments, async () => {
      const live = await this.#current();
      return { activity: live.activity, durable: () => live.durable() };
    });
  }

  /** For `readShared`. */
  async open(recovered: SharedRecovered): Promise<void> {
    const { migrations, beforeMigration } = this.#world;
    const { state, place } = recovered;
    const isNew = state.schemaVersion === 0 && place.sequence === 0;
    if (state.schemaVersion < migrations.length && !isNew) await beforeMigration();
    const live = new SharedLive(this.#world, recovered);
    this.#availability.begin(live);
    await this.#barrier();
    await this.segments.open(live);
    this.#pollLater();
  }

  transaction<R>(fn: (tx: Transaction<T>) => R): Promise<R> {
    return this.#run(async ({ session }) => session.run(fn));
  }

  transactionInSlices<R>(fn: (tx: Transaction<T>) => Slices<R>): Promise<R> {
    return this.#run(({ session }) => runSlices(session.runInSlices(fn)));
  }

  #run<R>(run: (live: SharedLive<T>) => Promise<R>): Promise<R> {
    return this.#inTurn(async (live, group, resolve, reject) => {
      const { session } = live;
      let answer: () => void;
      try {
        const result = await run(live);
        answer = () => resolve(result);
      } catch (error) {
        if (error instanceof StateLost) throw error;
        // An error is an answer too, and may be based on data that is not durable yet.
        answer = () => reject(error);
      }
      if (session.wrote) group.add(session.written);
      return answer;
    });
  }

  read<R>(fn: (tables: T) => R): R {
    const { live, reason } = this.#availability;
    if (!live) throw notServing(reason);
    return live.session.read(fn);
  }

  /**
   * The store for reading activity, after catching up: other nodes may have appended records, or moved them to
   * segments.
   */
  async #current(): Promise<SharedLive<T>> {
    const live = await this.#barrier();
    await this.#checkpointer.adoptNewer();
    const missing = (await this.#checkpointer.missing(live)).join();
    if (missing === '' || missing === live.missing) return live;
    const leaving = this.#inTurn<void>(async (now, _group, resolve) => {
      if (now === live) throw new LostBranch(live.uid, live.snapshot.generation);
      return resolve;
    });
    await leaving.catch(() => {});
    return this.#barrier();
  }

  /** Resolves with the store in service, at the end of the log at the time of the call or later. */
  #barrier(): Promise<SharedLive<T>> {
    return this.#inTurn(async (live, _group, resolve) => () => resolve(live));
  }

  #inTurn<R>(
    run: (
      live: SharedLive<T>,
      group: Group,
      resolve: (result: R) => void,
      reject: (error: unknown) => void,
    ) => Promise<() => void>,
  ): Promise<R> {
    if (this.#closing) return Promise.reject(storeClosed());
    return new Promise((resolve, reject) => {
      this.#turns.add({ run: (live, group) => run(live, group, resolve, reject), refuse: reject });
    });
  }

  get mark(): Mark {
    const { live } = this.#availability;
    if (live && live.known.seq > 0) this.#mark = markOf(live.known);
    return this.#mark;
  }

  status(): StoreStatus {
    return { ...this.#serviceStatus(), ...this.segments.status };
  }

  #serviceStatus(): ServiceStatus {
    const { live, reason } = this.#availability;
    if (live) this.#status = statusOf(live.logBytes, live.place.sequence, live.snapshot, live.activity);
    const trouble = live ? this.#turns.trouble : reason;
    return trouble === undefined ? this.#status : { ...this.#status, writable: false, reason: trouble };
  }

  async checkpoint(): Promise<void> {
    await this.#barrier();
    await this.#checkpointer.runs.run();
  }

  droppable(before: number, upTo: number): DroppedActivity | undefined {
    return this.#availability.live?.activity.droppable(before, upTo);
  }

  async dropActivity(seq: number): Promise<void> {
    // Appends a row, since the other nodes tell a newer snapshot by its row.
    await this.#appendNothing();
    return this.#checkpointer.runs.drop(seq);
  }

  /** Appends an empty transaction. */
  #appendNothing(): Promise<void> {
    return this.#inTurn(async ({ session }, group, resolve) => {
      session.run(() => {});
      group.add(session.written);
      return resolve;
    });
  }

  /** Holds a checkpoint made by this node, whose result describes the commit that it covers in full. */
  async hold(counted: boolean): Promise<StoreHold> {
    const { dir, limits } = this.#world;
    const hold = await SharedHold.begin({ ...this.#world, ...limits });
    try {
      return hold.filesOf(await this.#cover({ counted }), dir);
    } catch (error) {
      hold.release();
      throw error;
    }
  }

  /** Makes a checkpoint on this node, of the present moment. */
  async #cover(how: How): Promise<SharedCheckpoint> {
    const { limits, elapsed } = this.#world;
    for (const until = elapsed() + limits.holdMs; ; await this.#pause()) {
      // The new row gives the checkpoint something to cover, under the newest key.
      await this.#appendNothing();
      const made = await this.#checkpointer.runs.run(how);
      if (made) return made;
      if (elapsed() > until) {
        throw new KmsError('unavailable', 'another node writes one snapshot after the other', { hint: 'try again' });
      }
    }
  }

  async #pause(): Promise<void> {
    const { later, limits } = this.#world;
    await new Promise<void>((resolve) => later(limits.doubtRetry, resolve));
    if (this.#closing) throw storeClosed();
  }

  async reseal(): Promise<readonly number[]> {
    while (this.#resealing) await this.#resealing.catch(() => {});
    if (this.#closing) throw storeClosed();
    this.#resealing = this.activity.noting(() => this.#reseal());
    try {
      return await this.#resealing;
    } finally {
      this.#resealing = undefined;
    }
  }

  #reseal(): Promise<readonly number[]> {
    return resealShared({
      ...this.#world,
      serving: () => this.#availability.serving(),
      renew: async () => {
        const { generation, chain } = await this.#cover({ keep: 0 });
        return { seq: generation, tag: chain };
      },
      pause: () => this.#pause(),
    });
  }

  #leave(live: SharedLive<T>, cause: unknown): void {
    this.status();
    this.#mark = this.mark;
    this.#availability.leave(live, cause, Promise.resolve());
  }

  /** Whatever failed: the log, or a snapshot of it, must include everything that this node's answers were based on. */
  async #needAllKnown({ known: place }: SharedLive<T>, found: SharedRecovered): Promise<void> {
    const { engine, uid } = this.#world;
    if (place.seq === 0) return;
    const what = lostOf(found.place, place);
    if (what !== undefined) throw new CommitsLost(`${logNameOf(uid)}: ${what}`);
    const [row] = await engine.rows(storeIdOf(uid), place.seq, 1);
    // A later row means that the log was trimmed in the meantime.
    if (row && (row.seq > place.seq || equalBytes(row.tag, place.tag))) return;
    throw new CommitsLost(new LostBranch(uid, place.seq).message);
  }

  /** Keeps an idle node near the end of the log, so that its next turn has little to replay. */
  #pollLater(): void {
    const { later, limits } = this.#world;
    later(limits.poll, () => {
      if (this.#closing) return;
      if (!this.#hadTurn) this.#barrier().catch(() => {});
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
    await this.#resealing?.catch(() => {});
    await this.#turns.idle();
    await this.#checkpointer.runs.stop();
    this.status();
    this.#mark = this.mark;
    const live = await this.#availability.end();
    live?.state.close();
    await this.#connection.close();
    await this.#world.onClosed();
  }
}

function recoverOf<T extends object>({ limits, ...world }: SharedWorld<T>): Promise<SharedRecovered> {
  return recoverShared({ ...world, ...limits });
}

/**
 * Reads the store `options.uid`, which `createShared` made, without a turn. Throws `corrupt` for anything that does not
 * verify.
 */
export async function readShared<T extends object>(options: SharedOptions<T>): Promise<ReadStore<T>> {
  const { engine, keys, wasm, random = systemRandom } = options;
  const world: SharedWorld<T> = {
    onEvent: () => {},
    onCommit: () => {},
    onClosed: async () => {},
    beforeMigration: async () => {},
    beforeRecovery: async () => {},
    hasOwnConnection: false,
    meter: undefined,
    now: Date.now,
    elapsed: () => performance.now(),
    later: (milliseconds, run) => void setTimeout(run, milliseconds).unref(),
    runCheckpoint: (job) => writeSharedCheckpoint({ engine, keys, wasm, random }, job),
    ...options,
    onTurnStart: (control) => options.onTurnStart?.(control),
    tables: (sql) => options.tables(sql),
    random,
    limits: { ...sharedLimits, ...options.limits },
  };
  const recovered = await recoverOf(world);
  const { state, place } = recovered;
  return readStore<T, SharedStore<T>>({
    mark: markOf(place),
    log: logNameOf(world.uid),
    state,
    onClosed: world.onClosed,
    driver: () => new SharedStore(world),
    open: (store) => store.open(recovered),
  });
}

interface CreateShared extends RowContext {
  readonly engine: SharedEngine;
  /** The store's name in the engine's list. Default: its id. */
  readonly name?: string;
  random(length: number): Uint8Array;
}

/** Makes a new, empty store, durable when this resolves. Throws `refused` if it exists. */
export function createShared({ engine, name, random, ...context }: CreateShared): Promise<void> {
  return engine.create(storeIdOf(context.uid), appendRule, firstRow(context, random(nonceLength)), name);
}
