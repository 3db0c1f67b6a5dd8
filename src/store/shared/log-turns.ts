// The turns of one store on one node: all waiting jobs run together in one turn of the log, after the rows of other
// nodes are replayed, and are answered when the turn is committed. If the outcome of a commit is unknown, nothing is
// answered until the next turn has shown it.
import { equalBytes } from '../../crypto/bytes.ts';
import { KmsError, reasonOf } from '../../errors.ts';
import { notServing } from '../availability.ts';
import { Group, Numbering } from '../commit-group.ts';
import type { Commit } from '../commit-log.ts';
import { yieldBeforeRequest } from '../event-loop.ts';
import type { StoreEvent } from '../port.ts';
import {
  type Control,
  clockDistance,
  clockLimits,
  EngineError,
  type LogConnection,
  type LogRow,
  rowsInTurn,
  type TurnEnd,
  type TurnStart,
} from './engine.ts';
import { LostBranch, type NextRow, type SharedLive } from './live.ts';
import { appendRule } from './row.ts';

export interface TurnLimits {
  /** Maximum of requests in a turn, and milliseconds after which no further one is started in it. */
  readonly turnRequests: number;
  readonly turnMs: number;
  /** Milliseconds to ask for an unknown outcome, and pause between attempts. */
  readonly doubtMs: number;
  readonly doubtRetry: number;
}

/** Meter for the turns. */
export interface TurnMeter {
  /** A turn began after a wait of `waited` milliseconds, and replayed `rows` rows of other nodes. */
  turn(waited: number, rows: number): void;
  /** A turn was lost with its connection. */
  lost(): void;
  /** The log did not continue from this node's position. */
  lostBranch(): void;
}

/** A job that waits for a turn. */
interface Job<T extends object> {
  /**
   * Runs on the state, adds its writes to the group, and returns the callback for after the commit. Fails only if the
   * state is lost.
   */
  run(live: SharedLive<T>, group: Group): Promise<() => void>;
  /** Rejects the job with the reason. */
  refuse(error: unknown): void;
}

/** A requested turn, and the time of the request. */
interface TurnRequest {
  /** The time by the clock, and by the process's monotonic clock. */
  readonly at: number;
  readonly since: number;
  readonly start: Promise<TurnStart>;
}

/** A job that has run. */
interface Ran {
  readonly answer: () => void;
  readonly refuse: (error: unknown) => void;
}

/** A failed `begin` that took longer than this (ms) is not retried: it was no stale idle connection. */
const longestCut = 2000;

interface TurnWorld<T extends object> {
  readonly connection: LogConnection;
  rows(from: number, limit: number): Promise<readonly LogRow[]>;
  readonly limits: TurnLimits;
  readonly later: (milliseconds: number, run: () => void) => void;
  readonly now: () => number;
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number;
  readonly onCommit: (commit: Commit) => void;
  /** The store in service; throws while there is none. */
  serving(): Promise<SharedLive<T>>;
  /** Called when the state does not match the log. */
  leave(live: SharedLive<T>, cause: unknown): void;
  /** Called when a turn began, before anything runs in it. All waiting jobs are rejected with its error. */
  onTurnStart(control: Control): Promise<void> | undefined;
  /** Reports that no turn can be had or used, and that turns work again. */
  readonly onEvent: (event: StoreEvent) => void;
  readonly meter: TurnMeter | undefined;
  /** Called after each turn. */
  onTurn(live: SharedLive<T>): void;
}

export class TurnLoop<T extends object> {
  readonly #world: TurnWorld<T>;
  #waiting: Job<T>[] = [];
  #running: Promise<void> | undefined;
  #trouble: string | undefined;
  /** Whether the last turn already failed to continue from this node's state. */
  #isAstray = false;
  /** The next turn, if it was requested with the end of the last one. */
  #asked: TurnRequest | undefined;

  constructor(world: TurnWorld<T>) {
    this.#world = world;
  }

  /** Why the last turn failed; undefined if it did not. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  add(job: Job<T>): void {
    this.#waiting.push(job);
    // Waits one turn of the event loop, so that everything from one read of the sockets goes into one turn of the log.
    this.#running ??= new Promise((resolve) => setImmediate(resolve)).then(() => this.#run());
  }

  /** Resolves when all jobs so far are done. */
  async idle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      await yieldBeforeRequest();
      let live: SharedLive<T>;
      try {
        live = await this.#world.serving();
      } catch (error) {
        this.#refuseWaiting(error);
        continue;
      }
      await this.#turn(live);
    }
    this.#running = undefined;
  }

  #refuseWaiting(error: unknown): void {
    for (const { refuse } of this.#waiting.splice(0)) refuse(error);
  }

  async #turn(live: SharedLive<T>): Promise<void> {
    const { connection } = this.#world;
    let start: TurnStart;
    let astray: KmsError | undefined;
    try {
      [start, astray] = await this.#begin(live);
    } catch (cause) {
      this.#world.meter?.lost();
      this.#noTurn(cause);
      return;
    }
    try {
      // Without a row at this position, its control values are meaningless.
      const changed = start.tag && this.#world.onTurnStart(start.control);
      if (changed) await changed;
    } catch (cause) {
      await connection.abandon();
      this.#refuseWaiting(cause);
      return;
    }
    if (astray) {
      await connection.abandon();
      this.#noTurn(astray);
      return;
    }
    this.#hasTurn();
    live.isIn(start.history);
    try {
      live.catchUp(start);
      this.#isAstray = false;
    } catch (cause) {
      await connection.abandon();
      if (cause instanceof LostBranch) this.#world.meter?.lostBranch();
      this.#world.leave(live, cause);
      // Nothing of it was shown: waiting jobs are served once the store is recovered, unless the last recovery did not
      // help.
      if (this.#isAstray) this.#refuseWaiting(notServing(reasonOf(cause), cause));
      this.#isAstray = !this.#isAstray;
      return;
    }
    if (start.hasMore) {
      await connection.abandon();
      await this.#follow(live);
      return;
    }
    const turn = Promise.withResolvers<void>();
    // No caller may be waiting when it fails.
    turn.promise.catch(() => {});
    live.turn = turn.promise;
    await this.#serve(live, turn);
    live.turn = undefined;
    this.#world.onTurn(live);
  }

  /** Replays other nodes' rows without a turn, page by page, up to a key epoch that only a turn announces. */
  async #follow(live: SharedLive<T>): Promise<void> {
    try {
      for (let page = rowsInTurn; page === rowsInTurn; ) {
        const { seq } = live.place;
        const rows = await this.#world.rows(seq, rowsInTurn + 1);
        const [tag, behind] = rows[0]?.seq === seq ? [rows[0].tag, rows.slice(1)] : [undefined, []];
        const known = behind.filter(({ epoch }) => epoch <= live.epoch);
        live.catchUp({ tag, behind: known });
        page = known.length;
      }
    } catch (cause) {
      if (cause instanceof EngineError) return this.#noTurn(cause);
      if (cause instanceof LostBranch) this.#world.meter?.lostBranch();
      this.#world.leave(live, cause);
    }
  }

  /**
   * Begins a turn; also returns why nothing may be done in it, if so. Nothing has run yet, so a failure can simply be
   * retried: an idle connection may have been cut.
   */
  async #begin(live: SharedLive<T>): Promise<[TurnStart, KmsError | undefined]> {
    const { meter } = this.#world;
    const { seq } = live.place;
    let asked = this.#asked ?? this.#ask(seq);
    this.#asked = undefined;
    let start: TurnStart;
    try {
      start = await asked.start;
    } catch (cause) {
      // The attempt took long; the jobs have waited enough.
      if (performance.now() - asked.since > longestCut) throw cause;
      meter?.lost();
      asked = this.#ask(seq);
      start = await asked.start;
    }
    meter?.turn(performance.now() - asked.since, start.behind.length);
    return [start, this.#refusal(start, asked.at)];
  }

  #ask(from: number): TurnRequest {
    return { at: this.#world.now(), since: performance.now(), start: this.#world.connection.begin(from) };
  }

  #refusal({ protocol, now }: TurnStart, asked: number): KmsError | undefined {
    if (protocol !== appendRule) {
      return new KmsError('refused', `the store is appended to by rule ${protocol}, this program knows ${appendRule}`, {
        hint: 'use the newer program',
      });
    }
    const apart = now === undefined ? 0 : clockDistance(now, asked, this.#world.now());
    if (apart < clockLimits.most) return undefined;
    const seconds = Math.round(apart / 1000);
    return new KmsError('unavailable', `the clocks of this machine and of the database are ${seconds} seconds apart`, {
      hint: 'set the clock that is wrong',
    });
  }

  /** Refuses all waiting jobs. Reports the trouble once, not at each try. */
  #noTurn(cause: unknown): void {
    const before = this.#trouble;
    this.#trouble = reasonOf(cause);
    if (before === undefined) {
      const message = `the store does not serve: ${this.#trouble}`;
      this.#world.onEvent({ kind: 'no-turn', message, cause });
    }
    this.#refuseWaiting(notServing(this.#trouble, cause));
  }

  #hasTurn(): void {
    if (this.#trouble === undefined) return;
    this.#trouble = undefined;
    this.#world.onEvent({ kind: 'turn-again', message: 'the store serves again' });
  }

  async #serve(live: SharedLive<T>, turn: PromiseWithResolvers<void>): Promise<void> {
    const { connection } = this.#world;
    const ran: Ran[] = [];
    const refuse = (error: unknown): void => {
      turn.reject(error);
      for (const each of ran) each.refuse(error);
    };
    const group = new Group(new Numbering());
    let row: NextRow | undefined;
    try {
      live.migrate(group);
      await this.#runWaiting(live, group, ran);
      row = group.count > 0 ? live.next(group) : undefined;
    } catch (cause) {
      await connection.abandon();
      this.#world.leave(live, cause);
      refuse(takenBack(cause));
      return;
    }
    const started = performance.now();
    const again = this.#waiting.length > 0 ? (row?.row ?? live.place).seq : undefined;
    const { committed, next } = connection.end(row?.row, again);
    next?.catch(() => {});
    this.#asked = next && { at: this.#world.now(), since: performance.now(), start: next };
    const failure = await this.#outcome(live, row, committed, started);
    if (failure) {
      if (failure instanceof EngineError) this.#world.meter?.lost();
      // Without a row the state still matches the log.
      if (row) this.#world.leave(live, failure);
      refuse(takenBack(failure));
      return;
    }
    if (row) {
      live.committed(row);
      const ms = performance.now() - started;
      this.#world.onCommit({ transactions: group.count, ms, syncMs: ms });
    }
    live.confirm();
    turn.resolve();
    for (const { answer } of ran) answer();
  }

  async #runWaiting(live: SharedLive<T>, group: Group, ran: Ran[]): Promise<void> {
    const { turnRequests, turnMs } = this.#world.limits;
    const until = performance.now() + turnMs;
    do {
      const job = this.#waiting.shift();
      if (!job) return;
      const { refuse } = job;
      const each = { answer: () => {}, refuse };
      ran.push(each);
      each.answer = await job.run(live, group);
    } while (ran.length < turnRequests && performance.now() < until);
  }

  /** Why the turn is not, or perhaps not, committed; undefined if it is. */
  async #outcome(
    live: SharedLive<T>,
    row: NextRow | undefined,
    committed: TurnEnd['committed'],
    started: number,
  ): Promise<unknown> {
    try {
      await committed;
      return undefined;
    } catch (cause) {
      if (!row || !isInDoubt(cause)) return cause;
      const found = await this.#isThere(live, row, performance.now() - started);
      this.#trouble = undefined;
      if (found) return undefined;
      return found === undefined ? cause : new EngineError('retry', cause);
    }
  }

  /**
   * Whether the row was committed after all. Only a turn can tell: getting one means that the old one has ended. It
   * ends with a commit, which waits for a standby, since a row that is visible here may not have reached the standby
   * yet. Undefined if no turn could be had in time, `waited` milliseconds of which are over, or if the log does not
   * reach back to where the row would be.
   */
  async #isThere(live: SharedLive<T>, { row }: NextRow, waited: number): Promise<boolean | undefined> {
    const { connection, limits, elapsed, later } = this.#world;
    const until = elapsed() + limits.doubtMs - waited;
    for (;;) {
      try {
        const { tag, behind } = await connection.begin(live.place.seq);
        await connection.end(undefined, undefined).committed;
        if (!tag || !equalBytes(tag, live.place.tag)) return undefined;
        const [first] = behind;
        return first !== undefined && equalBytes(first.tag, row.tag);
      } catch (cause) {
        this.#trouble = reasonOf(cause);
        if (elapsed() >= until) return undefined;
        await new Promise<void>((resolve) => later(limits.doubtRetry, resolve));
      }
    }
  }
}

function isInDoubt(error: unknown): boolean {
  return error instanceof EngineError && error.fault === 'in-doubt';
}

function takenBack(cause: unknown): KmsError {
  const what = isInDoubt(cause) ? 'it is not known whether the request was done' : 'the request was taken back';
  return new KmsError('unavailable', `${what}: ${reasonOf(cause)}`, { hint: 'try again', retryAfter: 1, cause });
}
