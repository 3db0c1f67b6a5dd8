// The log of a store in service on one node: its place among the rows of all nodes. It replays the rows of others,
// groups what is run in a turn, and makes the row to be appended.
import { equalBytes } from '../../crypto/bytes.ts';
import { KmsError } from '../../errors.ts';
import type { Mark } from '../../model/store-mark.ts';
import { Group, Numbering } from '../commit-group.ts';
import { HistoryLost } from '../files.ts';
import { GroupReplayer } from '../group-replay.ts';
import type { Log, LogEvents, Served } from '../journal.ts';
import type { Written } from '../session.ts';
import { nonceLength } from '../store-files.ts';
import { type Migration, refuseNewer } from '../tables/migrations.ts';
import type { LogRow, TurnStart } from './engine.ts';
import type { RowBytes, RowEnd } from './recovery.ts';
import { beginning, behind, logNameOf, type Place, type RowContext, readRow, sealRow } from './row.ts';

/**
 * The log does not continue from this node's position: a failover of the engine cut it off, or it was trimmed
 * in the meantime.
 */
export class LostBranch extends KmsError {
  constructor(uid: Uint8Array, seq: number) {
    super('unavailable', `${logNameOf(uid)} does not have the row ${seq} that this node had seen`);
  }
}

/** A failover of the engine lost commits that this node had seen, and that its answers may be based on. */
export class CommitsLost extends HistoryLost {
  constructor(what: string) {
    super(
      `the database has lost answered requests: ${what}; let the server that has them take over, or stop the node and ` +
        'restore a backup',
    );
  }
}

interface RowLogWorld extends RowContext {
  readonly migrations: readonly Migration[];
  readonly random: (length: number) => Uint8Array;
}

/** A group as the row to be appended, and the position after it. */
export interface NextRow {
  readonly row: LogRow;
  readonly place: Place;
}

export class RowLog implements Log {
  /** Names of missing segments: see `RowEnd`. */
  readonly missing: string;
  readonly #world: RowLogWorld;
  readonly #events: LogEvents;
  #place: Place;
  #known: Place;
  #rows: RowBytes[];
  #bytes: number;
  /** The turn under way, until its answers may be given; until then the state may be ahead of the log. */
  #turn: Group | undefined;
  /** Why it was released; undefined if it was not. */
  #failure: unknown;
  /** Whether anything was written yet: the rows of one opening form one run. */
  #hasBegun = false;
  /** History of the engine at the last turn; undefined before the first. */
  #history: string | undefined;

  /** `known`: the end of the log that this node's answers are based on so far. */
  constructor(world: RowLogWorld, { at, rows, missing }: RowEnd, events: LogEvents, known: Place = beginning) {
    this.#world = world;
    this.#events = events;
    this.missing = missing;
    this.#place = at;
    this.#known = known;
    this.#rows = [...rows];
    this.#bytes = bytesOf(rows);
  }

  /** Epoch of the newest key held. */
  get epoch(): number {
    return this.#world.keys.epoch;
  }

  /** Position of the last row that is committed and in the state. */
  get place(): Place {
    return this.#place;
  }

  get generation(): number {
    return this.#place.seq;
  }

  get sequence(): number {
    return this.#place.sequence;
  }

  /**
   * The end of the log that was durable with the last turn, and that its answers may be based on. Later commits may
   * still wait for a standby; no answer of this node used them.
   */
  get known(): Place {
    return this.#known;
  }

  get mark(): Mark {
    return this.#known;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Why it was released; undefined if it was not. */
  get failure(): unknown {
    return this.#failure;
  }

  add(written: Written): Promise<void> {
    const group = this.#group;
    group.add(written);
    return group.done;
  }

  durable(): Promise<void> | undefined {
    if (this.#turn) return this.#turn.done;
    return this.#failure === undefined ? undefined : Promise.reject(new LostBranch(this.#world.uid, this.#place.seq));
  }

  get #group(): Group {
    if (!this.#turn) throw new KmsError('internal', 'a transaction outside a turn');
    return this.#turn;
  }

  beginTurn(): void {
    this.#turn = new Group(new Numbering());
  }

  /** The group of the turn, which is already in the state, as the next row; undefined if nothing was run in it. */
  next(): NextRow | undefined {
    const group = this.#group;
    if (group.count === 0) return undefined;
    const begins = !this.#hasBegun;
    const { random } = this.#world;
    const row = sealRow(this.#world, this.#place, group.payload(begins), random(nonceLength));
    return { row, place: behind(this.#place, row, { transactions: group.count, begins }) };
  }

  /** The turn has ended with a commit, of `next` if there was one: this node has all rows up to there. */
  committed(next: NextRow | undefined, ms: number): void {
    const group = this.#group;
    this.#turn = undefined;
    if (next) {
      this.#hasBegun = true;
      this.#take(next.row, next.place);
      this.#events.onDurable({ transactions: group.count, ms, syncMs: ms });
    }
    this.#known = this.#place;
    group.resolve();
  }

  /** The turn has ended, and nothing that was run in it counts. */
  failed(cause: Error): void {
    const group = this.#group;
    this.#turn = undefined;
    group.reject(cause);
  }

  /**
   * Called before anything else in a turn. If the engine's history has changed since the last one, rows that this node
   * never saw may be gone, though other nodes answered with them: its writes from here on are another run, so that
   * clients notice.
   */
  isIn(history: string): void {
    if (this.#history !== undefined && this.#history !== history) this.#hasBegun = false;
    this.#history = history;
  }

  /** Replays the rows of other nodes. Throws `LostBranch`, and `refused` for rows of a newer program. */
  catchUp(live: Served<RowLog>, { tag, behind: rows }: Pick<TurnStart, 'tag' | 'behind'>): void {
    const { uid, migrations } = this.#world;
    if (!tag || !equalBytes(tag, this.#place.tag)) throw new LostBranch(uid, this.#place.seq);
    const { state, session, activity } = live;
    let hasPragma = false;
    const observer: ConstructorParameters<typeof GroupReplayer>[2] = {
      ran(statement) {
        hasPragma ||= statement.text.startsWith('PRAGMA');
        session.ran(statement);
      },
      tally: (...counted) => session.tally(...counted),
    };
    for (const row of rows) {
      const replayer = new GroupReplayer(state, activity, observer);
      this.#take(
        row,
        readRow(this.#world, this.#place, row, (...payload) => replayer.apply(...payload)),
      );
    }
    if (!hasPragma) return;
    refuseNewer(state.schemaVersion, migrations, logNameOf(uid));
    live.isMigrated = state.schemaVersion >= migrations.length;
  }

  #take(row: LogRow, place: Place): void {
    this.#place = place;
    this.#rows.push({ seq: row.seq, bytes: row.sealed.length });
    this.#bytes += row.sealed.length;
  }

  forget(generation: number): void {
    this.#rows = this.#rows.filter(({ seq }) => seq > generation);
    this.#bytes = bytesOf(this.#rows);
  }

  async release(cause: unknown): Promise<void> {
    this.#failure ??= cause;
  }

  async close(): Promise<void> {}
}

function bytesOf(rows: readonly RowBytes[]): number {
  return rows.reduce((sum, { bytes }) => sum + bytes, 0);
}
