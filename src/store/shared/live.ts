// What a shared store has in service: the state that its rows make, at a place of the log. It runs what others
// appended, and knows the row that the next group of its own becomes.
import { equalBytes } from '../../crypto/bytes.ts';
import { KmsError } from '../../errors.ts';
import type { ActivityLog } from '../activity/activity-log.ts';
import type { Group } from '../commit-group.ts';
import { HistoryLost } from '../files.ts';
import { GroupReplayer, type ReplayWitness } from '../group-replay.ts';
import { Session } from '../session.ts';
import type { Sql } from '../sql.ts';
import type { State, Statement } from '../state.ts';
import { nonceLength } from '../store-files.ts';
import { type Migration, migrate, refuseNewer } from '../tables/migrations.ts';
import type { LogRow, TurnStart } from './engine.ts';
import type { RowBytes, SharedRecovered } from './recovery.ts';
import { beginning, behind, logNameOf, type Place, type RowContext, readRow, sealRow } from './row.ts';

/** The log does not go on where this node is: a failover of the engine cut it off, or it was trimmed meanwhile. */
export class LostBranch extends KmsError {
  constructor(uid: Uint8Array, seq: number) {
    super('unavailable', `${logNameOf(uid)} does not have the row ${seq} that this node had seen`);
  }
}

/** A failover of the engine lost commits that this node had seen, which its requests may rest on. */
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

/** A group as a row that is to follow the place. */
export interface NextRow {
  readonly row: LogRow;
  readonly place: Place;
}

export class SharedLive<T extends object> implements ReplayWitness {
  readonly uid: Uint8Array;
  readonly state: State;
  readonly session: Session<T>;
  readonly activity: ActivityLog;
  snapshot: SharedRecovered['snapshot'];
  readonly missing: string;
  /** What it holds is thrown away: nothing of it may be shown. */
  dead = false;
  /** The turn under way, until its answers may be given; what the state holds may be ahead of the log till then. */
  turn: Promise<void> | undefined;
  readonly #world: LiveWorld<T>;
  #place: Place;
  #known: Place;
  #rows: RowBytes[];
  #logBytes: number;
  /** Whether it wrote anything yet: what it writes is one run. */
  #hasBegun = false;
  /** Of the engine, at the last turn; undefined before the first. */
  #history: string | undefined;
  #ranControl = false;
  #isMigrated: boolean;

  /** `known`: the end of what answers of this node rest on so far. */
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

  /** Of the newest key that is held. */
  get epoch(): number {
    return this.#world.keys.epoch;
  }

  /** Of the last row that is committed and in the state. */
  get place(): Place {
    return this.#place;
  }

  /**
   * The end of what was durable with the last turn, and its answers may rest on. What is committed behind that may wait
   * for a standby yet, and has been answered to nobody here.
   */
  get known(): Place {
    return this.#known;
  }

  /** A turn that had all up to the place has ended with a commit. */
  confirm(): void {
    this.#known = this.#place;
  }

  /** Bytes of the rows since the snapshot. */
  get logBytes(): number {
    return this.#logBytes;
  }

  /** Resolves when all that the state holds is committed; undefined when it is. */
  durable(): Promise<void> | undefined {
    return this.dead ? Promise.reject(new LostBranch(this.uid, this.#place.seq)) : this.turn;
  }

  /**
   * Before anything of a turn. In another history of the engine than at the last one, rows may be gone that this node
   * never saw, and whose transactions others were answered: what it writes from here on is another run, by which they
   * notice.
   */
  isIn(history: string): void {
    if (this.#history !== undefined && this.#history !== history) this.#hasBegun = false;
    this.#history = history;
  }

  /** Runs what others appended. Throws `LostBranch`, and `refused` for what a newer program wrote. */
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

  /** Runs the migrations that are missing, unless another node did: in the turn, before anything else. */
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

  tally(...counted: Parameters<ReplayWitness['tally']>): void {
    this.session.tally(...counted);
  }

  /** The group, which the state has already, as a row behind the place. */
  next(group: Group): NextRow {
    const begins = !this.#hasBegun;
    const { random } = this.#world;
    const row = sealRow(this.#world, this.#place, group.payload(begins), random(nonceLength));
    return { row, place: behind(this.#place, row, { transactions: group.count, begins }) };
  }

  /** That row is committed. */
  committed({ row, place }: NextRow): void {
    this.#hasBegun = true;
    this.#take(row, place);
  }

  #take(row: LogRow, place: Place): void {
    this.#place = place;
    this.#rows.push({ seq: row.seq, bytes: row.sealed.length });
    this.#logBytes += row.sealed.length;
  }

  /** A snapshot stands for the rows up to its own now. */
  adopt(snapshot: SharedRecovered['snapshot']): void {
    this.snapshot = snapshot;
    this.#rows = this.#rows.filter(({ seq }) => seq > snapshot.generation);
    this.#logBytes = bytesOf(this.#rows);
  }
}

function bytesOf(rows: readonly RowBytes[]): number {
  return rows.reduce((sum, { bytes }) => sum + bytes, 0);
}
