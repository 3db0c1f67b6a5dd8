// A shared store in service: the state that its rows make, at a position of the log. It replays the rows of other
// nodes, and builds the row for the next group of its own.
import { equalBytes } from '../../crypto/bytes.ts';
import { KmsError } from '../../errors.ts';
import type { ActivityLog } from '../activity/activity-log.ts';
import type { Group } from '../commit-group.ts';
import { HistoryLost } from '../files.ts';
import { GroupReplayer, type ReplayObserver } from '../group-replay.ts';
import { Session } from '../session.ts';
import type { Sql } from '../sql.ts';
import type { State, Statement } from '../state.ts';
import { nonceLength } from '../store-files.ts';
import { type Migration, migrate, refuseNewer } from '../tables/migrations.ts';
import type { LogRow, TurnStart } from './engine.ts';
import type { RowBytes, SharedRecovered } from './recovery.ts';
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

interface LiveWorld<T> extends RowContext {
  readonly migrations: readonly Migration[];
  readonly tables: (sql: Sql) => T;
  readonly random: (length: number) => Uint8Array;
}

/** A group as the row to be appended, and the position after it. */
export interface NextRow {
  readonly row: LogRow;
  readonly place: Place;
}

export class SharedLive<T extends object> implements ReplayObserver {
  readonly uid: Uint8Array;
  readonly state: State;
  readonly session: Session<T>;
  readonly activity: ActivityLog;
  snapshot: SharedRecovered['snapshot'];
  readonly missing: string;
  /** Its state is discarded: nothing in it may be shown. */
  dead = false;
  /** The turn under way, until its answers may be given; until then the state may be ahead of the log. */
  turn: Promise<void> | undefined;
  readonly #world: LiveWorld<T>;
  #place: Place;
  #known: Place;
  #rows: RowBytes[];
  #logBytes: number;
  /** Whether anything was written yet: the rows of one opening form one run. */
  #hasBegun = false;
  /** History of the engine at the last turn; undefined before the first. */
  #history: string | undefined;
  #ranControl = false;
  #isMigrated: boolean;

  /** `known`: the end of the log that this node's answers are based on so far. */
  constructor(
    world: LiveWorld<T>,
    { state, activity, place, rows, snapshot, missing }: SharedRecovered,
    known: Place = beginning,
  ) {
    this.#world = world;
    this.uid = world.uid;
    this.state = state;
    this.activity = activity;
    this.snapshot = snapshot;
    this.missing = missing;
    this.session = new Session(state, (sql) => world.tables(sql), activity);
    this.#place = place;
    this.#known = known;
    this.#rows = [...rows];
    this.#logBytes = bytesOf(rows);
    this.#isMigrated = state.schemaVersion >= world.migrations.length;
  }

  /** Epoch of the newest key held. */
  get epoch(): number {
    return this.#world.keys.epoch;
  }

  /** Position of the last row that is committed and in the state. */
  get place(): Place {
    return this.#place;
  }

  /**
   * The end of the log that was durable with the last turn, and that its answers may be based on. Later commits may
   * still wait for a standby; no answer of this node used them.
   */
  get known(): Place {
    return this.#known;
  }

  /** Called when a turn that had all rows up to `place` has ended with a commit. */
  confirm(): void {
    this.#known = this.#place;
  }

  /** Bytes of the rows since the snapshot. */
  get logBytes(): number {
    return this.#logBytes;
  }

  /** Resolves when everything in the state is committed; undefined if it already is. */
  durable(): Promise<void> | undefined {
    return this.dead ? Promise.reject(new LostBranch(this.uid, this.#place.seq)) : this.turn;
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
  catchUp({ tag, behind: rows }: Pick<TurnStart, 'tag' | 'behind'>): void {
    const { migrations } = this.#world;
    if (!tag || !equalBytes(tag, this.#place.tag)) throw new LostBranch(this.uid, this.#place.seq);
    for (const row of rows) {
      const replayer = new GroupReplayer(this.state, this.activity, this);
      this.#take(
        row,
        readRow(this.#world, this.#place, row, (...payload) => replayer.apply(...payload)),
      );
    }
    if (!this.#ranControl) return;
    this.#ranControl = false;
    const version = this.state.schemaVersion;
    refuseNewer(version, migrations, logNameOf(this.uid));
    this.#isMigrated = version >= migrations.length;
  }

  /** Runs the missing migrations, unless another node did. Called in the turn, before anything else. */
  migrate(group: Group): void {
    if (this.#isMigrated) return;
    const written = migrate(this.state, this.session, this.#world.migrations);
    if (written) group.add(written);
    this.#isMigrated = true;
  }

  ran(statement: Statement): void {
    if (statement.text.startsWith('PRAGMA')) this.#ranControl = true;
    this.session.ran(statement);
  }

  tally(...counted: Parameters<ReplayObserver['tally']>): void {
    this.session.tally(...counted);
  }

  /** The group, which is already in the state, as the next row after `place`. */
  next(group: Group): NextRow {
    const begins = !this.#hasBegun;
    const { random } = this.#world;
    const row = sealRow(this.#world, this.#place, group.payload(begins), random(nonceLength));
    return { row, place: behind(this.#place, row, { transactions: group.count, begins }) };
  }

  /** Moves to the position after that row, which is now committed. */
  committed({ row, place }: NextRow): void {
    this.#hasBegun = true;
    this.#take(row, place);
  }

  #take(row: LogRow, place: Place): void {
    this.#place = place;
    this.#rows.push({ seq: row.seq, bytes: row.sealed.length });
    this.#logBytes += row.sealed.length;
  }

  /** Takes over a snapshot, which now covers the rows up to its own. */
  adopt(snapshot: SharedRecovered['snapshot']): void {
    this.snapshot = snapshot;
    this.#rows = this.#rows.filter(({ seq }) => seq > snapshot.generation);
    this.#logBytes = bytesOf(this.#rows);
  }
}

function bytesOf(rows: readonly RowBytes[]): number {
  return rows.reduce((sum, { bytes }) => sum + bytes, 0);
}
