// The turns of one store on one node. A turn begins with the rows of other nodes, which are replayed, and ends with the
// row of this one, if it has work. If the outcome of a commit is unknown, nothing is answered until the next turn has
// shown it.
import { equalBytes } from '../../crypto/bytes.ts';
import { KmsError, reasonOf } from '../../errors.ts';
import { notServing } from '../availability.ts';
import type { JournalOwner, Served } from '../journal.ts';
import type { StoreEvent } from '../port.ts';
import {
  type Control,
  clockDistance,
  clockLimits,
  EngineError,
  type LogConnection,
  rowsInTurn,
  type SharedEngine,
  type TurnEnd,
  type TurnStart,
} from './engine.ts';
import { storeIdOf } from './recovery.ts';
import { appendRule } from './row.ts';
import { LostBranch, type NextRow, type RowLog } from './row-log.ts';

/** Meter for the turns. */
export interface TurnMeter {
  /** A turn began after a wait of `waited` milliseconds, and replayed `rows` rows of other nodes. */
  turn(waited: number, rows: number): void;
  /** A turn was lost with its connection. */
  lost(): void;
  /** The log did not continue from this node's position. */
  lostBranch(): void;
}

export interface TurnLimits {
  /** Milliseconds to ask for an unknown outcome, and pause between attempts. */
  readonly doubtMs: number;
  readonly doubtRetry: number;
}

export interface TurnWorld {
  readonly engine: Pick<SharedEngine, 'rows'>;
  readonly uid: Uint8Array;
  readonly limits: TurnLimits;
  readonly meter: TurnMeter | undefined;
  readonly now: () => number;
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number;
  readonly later: (milliseconds: number, run: () => void) => void;
  readonly onEvent: (event: StoreEvent) => void;
  /**
   * Gets the control values in each turn, before anything runs in it, while no other node has the turn. Its errors
   * reject all waiting jobs. It must not wait for a turn of this same store.
   */
  onTurnStart(control: Control): Promise<void> | undefined;
}

/** A requested turn, and the time of the request. */
interface TurnRequest {
  /** The time by the clock, and by the process's monotonic clock. */
  readonly at: number;
  readonly since: number;
  readonly start: Promise<TurnStart>;
}

type Live = Served<RowLog>;
type Owner = JournalOwner<RowLog>;

/** A failed `begin` that took longer than this (ms) is not retried: it was no stale idle connection. */
const longestCut = 2000;

export class RowTurns {
  readonly #world: TurnWorld;
  readonly #connection: LogConnection;
  #trouble: string | undefined;
  /** Whether the last turn already failed to continue from this node's state. */
  #isAstray = false;
  /** The next turn, if it was requested with the end of the last one. */
  #asked: TurnRequest | undefined;

  constructor(world: TurnWorld, connection: LogConnection) {
    this.#world = world;
    this.#connection = connection;
  }

  /** Why the last turn failed; undefined if it did not. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  async begin(live: Live, owner: Owner): Promise<boolean> {
    const { meter, onTurnStart } = this.#world;
    let start: TurnStart;
    let astray: KmsError | undefined;
    try {
      [start, astray] = await this.#turn(live.log);
    } catch (cause) {
      meter?.lost();
      throw this.#noTurn(cause);
    }
    try {
      // Without a row at this position, its control values are meaningless.
      const changed = start.tag && onTurnStart(start.control);
      if (changed) await changed;
      if (astray) throw this.#noTurn(astray);
    } catch (cause) {
      await this.#connection.abandon();
      throw cause;
    }
    this.#hasTurnAgain();
    live.log.isIn(start.history);
    try {
      live.log.catchUp(live, start);
      this.#isAstray = false;
    } catch (cause) {
      await this.#connection.abandon();
      this.#left(live, owner, cause);
      // Nothing of it was shown: waiting jobs are served once the store is recovered, unless the last recovery did not
      // help.
      this.#isAstray = !this.#isAstray;
      if (!this.#isAstray) throw notServing(reasonOf(cause), cause);
      return false;
    }
    if (start.hasMore) {
      await this.#connection.abandon();
      await this.#follow(live, owner);
      return false;
    }
    live.log.beginTurn();
    return true;
  }

  #left(live: Live, owner: Owner, cause: unknown): void {
    if (cause instanceof LostBranch) this.#world.meter?.lostBranch();
    owner.leave(live, cause);
  }

  /** Replays other nodes' rows without a turn, page by page, up to a key epoch that only a turn announces. */
  async #follow(live: Live, owner: Owner): Promise<void> {
    const { engine, uid } = this.#world;
    const { log } = live;
    try {
      for (let page = rowsInTurn; page === rowsInTurn; ) {
        const { seq } = log.place;
        const rows = await engine.rows(storeIdOf(uid), seq, rowsInTurn + 1);
        const [tag, behind] = rows[0]?.seq === seq ? [rows[0].tag, rows.slice(1)] : [undefined, []];
        const known = behind.filter(({ epoch }) => epoch <= log.epoch);
        log.catchUp(live, { tag, behind: known });
        page = known.length;
      }
    } catch (cause) {
      if (cause instanceof EngineError) throw this.#noTurn(cause);
      this.#left(live, owner, cause);
    }
  }

  /**
   * Begins a turn; also returns why nothing may be done in it, if so. Nothing has run yet, so a failure can simply be
   * retried: an idle connection may have been cut.
   */
  async #turn({ place: { seq } }: RowLog): Promise<[TurnStart, KmsError | undefined]> {
    const { meter } = this.#world;
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
    return { at: this.#world.now(), since: performance.now(), start: this.#connection.begin(from) };
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

  /** The error for all waiting jobs. Reports the trouble once, not at each try. */
  #noTurn(cause: unknown): KmsError {
    const before = this.#trouble;
    this.#trouble = reasonOf(cause);
    if (before === undefined) {
      this.#world.onEvent({ kind: 'no-turn', message: `the store does not serve: ${this.#trouble}`, cause });
    }
    return notServing(this.#trouble, cause);
  }

  #hasTurnAgain(): void {
    if (this.#trouble === undefined) return;
    this.#trouble = undefined;
    this.#world.onEvent({ kind: 'turn-again', message: 'the store serves again' });
  }

  async end(live: Live, owner: Owner, more: boolean): Promise<void> {
    const { log } = live;
    let next: NextRow | undefined;
    try {
      if (live.dead) throw log.failure;
      next = log.next();
    } catch (cause) {
      await this.#connection.abandon();
      owner.leave(live, cause);
      log.failed(takenBack(cause));
      return;
    }
    const started = performance.now();
    const { committed, next: asked } = this.#connection.end(next?.row, more ? (next?.row ?? log.place).seq : undefined);
    asked?.catch(() => {});
    this.#asked = asked && { at: this.#world.now(), since: performance.now(), start: asked };
    const failure = await this.#outcome(log, next, committed, started);
    if (failure === undefined) return log.committed(next, performance.now() - started);
    if (failure instanceof EngineError) this.#world.meter?.lost();
    // Without a row the state still matches the log.
    if (next) owner.leave(live, failure);
    log.failed(takenBack(failure));
  }

  /** Why the turn is not, or perhaps not, committed; undefined if it is. */
  async #outcome(
    log: RowLog,
    next: NextRow | undefined,
    committed: TurnEnd['committed'],
    started: number,
  ): Promise<unknown> {
    try {
      await committed;
      return undefined;
    } catch (cause) {
      if (!next || !isInDoubt(cause)) return cause;
      const found = await this.#isThere(log, next, performance.now() - started);
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
  async #isThere({ place }: RowLog, { row }: NextRow, waited: number): Promise<boolean | undefined> {
    const { limits, elapsed, later } = this.#world;
    const until = elapsed() + limits.doubtMs - waited;
    for (;;) {
      try {
        const { tag, behind } = await this.#connection.begin(place.seq);
        await this.#connection.end(undefined, undefined).committed;
        if (!tag || !equalBytes(tag, place.tag)) return undefined;
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
