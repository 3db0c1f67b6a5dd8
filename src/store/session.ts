// Session runs transactions on the state in memory, one after the other: begin, run, commit or roll back. It collects
// what a transaction wrote, for the caller to make durable, and knows nothing of how that happens.
import { KmsError } from '../errors.ts';
import { yieldToEventLoop } from './event-loop.ts';
import type { ActivityInput, Transaction } from './port.ts';
import type { Row, Slices, Sql, SqlValue, Tally } from './sql.ts';
import { type LoggedStatement, notLoggable, type State, type Statement } from './state.ts';

/** The part of the activity log that a transaction needs. */
export interface Staging {
  /** Assigns the record its place in the chain. */
  stage(record: ActivityInput): void;
  readonly stagedCount: number;
  /** Discards the records staged after the first `toCount` (default: all). */
  discardStaged(toCount?: number): void;
  /** Makes the staged records part of the log in memory. */
  commitStaged(): void;
}

/** The writes of a transaction, valid until the next one begins. */
export interface Written {
  readonly statements: readonly LoggedStatement[];
  /** The parameters of each statement, in the same order. */
  readonly params: readonly (readonly SqlValue[])[];
  readonly records: readonly ActivityInput[];
  /** One entry each time something is counted. */
  readonly counts: readonly Count[];
}

/** The counted statement, and its parameters except the first, which is the number of times. */
export interface Count {
  readonly statement: Statement;
  readonly id: string;
  readonly latest: readonly SqlValue[];
  /** The tally beside the table before this count. */
  readonly before: Tally | undefined;
}

/** The state of a transaction when a savepoint in it began. */
interface Before {
  /** Depth of the savepoint itself. */
  readonly depth: number;
  readonly statements: number;
  readonly records: number;
  readonly counts: number;
  readonly staged: number;
}

type Mode = 'idle' | 'transaction' | 'read';

/** Thrown if the state in memory may no longer hold exactly what was committed. */
export class StateLost extends KmsError {
  constructor(cause: unknown) {
    super('internal', 'the database in memory did not take a commit or a rollback', { cause });
  }
}

/**
 * Maximum of tallies kept beside a statement's table. Above it the oldest are run, `runAtOnce` at a time. A few keys on
 * a few days never reach it, and cost no statement.
 */
const mostTallies = 16_384;
const runAtOnce = 512;

/**
 * Cached entries per table; one more empties the table's cache. Only entries that exist are cached, so that requests
 * for nothing cannot fill it.
 */
const most = 10_000;

/**
 * Results of look-ups, cached until their table is written to, or a write to it is rolled back. The cache spares hot
 * requests their statements; callers cannot tell that it exists.
 */
class Cache {
  readonly #tables = new Map<string, Map<string, object>>();

  remember<T extends object>(table: string, key: string, load: () => T | undefined): T | undefined {
    const known = this.#tables.get(table)?.get(key);
    // Cast: a table file asks for one type under one kind of key.
    return known ? (known as T) : this.#learn(table, key, load());
  }

  #learn<T extends object>(table: string, key: string, found: T | undefined): T | undefined {
    if (!found) return undefined;
    let entries = this.#tables.get(table);
    if (!entries) {
      entries = new Map();
      this.#tables.set(table, entries);
    }
    if (entries.size >= most) entries.clear();
    entries.set(key, found);
    return found;
  }

  /** Called after a write to the table, or only to the entry under `key`. */
  forget(table: string, key?: string): void {
    const entries = this.#tables.get(table);
    if (key === undefined) entries?.clear();
    else entries?.delete(key);
  }

  forgetAll(): void {
    this.#tables.clear();
  }
}

export class Session<T extends object> {
  readonly written: Written;
  readonly #state: State;
  readonly #staging: Staging;
  readonly #tables: T;
  readonly #transaction: Transaction<T>;
  readonly #statements: Statement[] = [];
  readonly #params: SqlValue[][] = [];
  readonly #records: ActivityInput[] = [];
  readonly #counts: Count[] = [];
  /** All statements that were ever counted. */
  readonly #counting = new Set<Statement>();
  readonly #cache = new Cache();
  #mode: Mode = 'idle';
  /** Number of open savepoints. */
  #depth = 0;
  /**
   * The number of levels (transaction and savepoints) that SQLite knows of. It is told at the first statement, which
   * many transactions never run.
   */
  #begun = 0;

  constructor(state: State, tables: (sql: Sql) => T, staging: Staging) {
    this.#state = state;
    this.#staging = staging;
    this.written = { statements: this.#statements, params: this.#params, records: this.#records, counts: this.#counts };
    this.#tables = tables({
      get: <R extends Row>(text: string, ...params: SqlValue[]) => this.#get<R>(text, params),
      all: <R extends Row>(text: string, ...params: SqlValue[]) => this.#all<R>(text, params),
      some: <R extends Row>(enough: (row: R) => boolean, text: string, ...params: SqlValue[]) =>
        this.#all<R>(text, params, enough),
      run: (text: string, ...params: SqlValue[]) => this.write(text, params),
      remember: (table, key, load) => this.#cache.remember(table, key, load),
      count: (text, id, ...latest) => this.#count(text, id, latest),
      counted: (text, id) => this.#state.statement(text).counts?.get(id),
    });
    this.#transaction = {
      ...this.#tables,
      savepoint: (fn) => this.#savepoint(fn),
      savepointInSlices: (fn) => this.#savepointInSlices(fn),
      record: (activity) => {
        if (this.#mode !== 'transaction') throw outside();
        this.#staging.stage(activity);
        this.#records.push(activity);
      },
    };
  }

  /** Whether the last transaction left anything to make durable. */
  get wrote(): boolean {
    return this.#statements.length > 0 || this.#records.length > 0 || this.#counts.length > 0;
  }

  /** Runs one transaction to its commit in memory. Must not be called while one in slices is under way. */
  run<R>(fn: (tx: Transaction<T>) => R): R {
    this.#start();
    let result: R;
    try {
      result = fn(this.#transaction);
    } catch (error) {
      return this.#failed(error);
    }
    // An asynchronous `fn` would be committed before it is done.
    if (result instanceof Promise) this.#failed(new KmsError('internal', 'a transaction waits for nothing'));
    return this.#committed(result);
  }

  /** The same in slices: the transaction ends with the generator. No other may run before that. */
  *runInSlices<R>(fn: (tx: Transaction<T>) => Slices<R>): Slices<R> {
    this.#start();
    let result: R;
    try {
      result = yield* fn(this.#transaction);
    } catch (error) {
      return this.#failed(error);
    }
    return this.#committed(result);
  }

  #start(): void {
    if (this.#mode !== 'idle') throw new KmsError('internal', 'a transaction began inside another one');
    this.#clear();
    for (const statement of this.#counting) if (tallied(statement) > mostTallies) this.#runTallies(statement);
    this.#mode = 'transaction';
  }

  #committed<R>(result: R): R {
    this.#mode = 'idle';
    try {
      if (this.#begun > 0) this.#state.control('COMMIT');
    } catch (cause) {
      this.#rollBack();
      throw new StateLost(cause);
    }
    this.#begun = 0;
    this.#staging.commitStaged();
    return result;
  }

  #failed(error: unknown): never {
    this.#mode = 'idle';
    this.#rollBack();
    throw error;
  }

  /**
   * Runs all tallies, between transactions, so that the tables equal those of a replayed log. This adds nothing to the
   * log, which has the counts themselves.
   */
  async runCounts(): Promise<void> {
    for (const statement of this.#counting) {
      for (; tallied(statement) > 0; await yieldToEventLoop()) this.#runTallies(statement);
    }
  }

  /**
   * Called when a statement of another node ran on the state between transactions: cached entries of its table are
   * stale.
   */
  ran({ writes }: Statement): void {
    // A deletion may reach other tables through their references.
    if (writes === undefined) this.#cache.forgetAll();
    else this.#cache.forget(writes);
  }

  /** Adds a count of another node, between transactions, as if it had been made here. */
  tally(statement: Statement, id: string, { sum, latest }: Tally): void {
    const counts = this.#countsOf(statement);
    counts.set(id, { sum: (counts.get(id)?.sum ?? 0) + sum, latest });
  }

  #countsOf(statement: Statement): Map<string, Tally> {
    if (!statement.counts) {
      statement.counts = new Map();
      this.#counting.add(statement);
    }
    return statement.counts;
  }

  /** Runs some of the statement's tallies, the oldest first. */
  #runTallies(statement: Statement): void {
    const { counts, writes } = statement;
    if (!counts) return;
    try {
      this.#state.control('BEGIN');
      let left = runAtOnce;
      for (const [id, { sum, latest }] of counts) {
        if (left-- === 0) break;
        this.#state.run(statement, [sum, id, ...latest]);
        counts.delete(id);
        if (writes !== undefined) this.#cache.forget(writes, id);
      }
      this.#state.control('COMMIT');
    } catch (cause) {
      throw new StateLost(cause);
    }
  }

  /** Runs `fn` on the state as it is, even during a transaction in slices; writing is refused. */
  read<R>(fn: (tables: T) => R): R {
    const before = this.#mode;
    this.#mode = 'read';
    try {
      return fn(this.#tables);
    } finally {
      this.#mode = before;
    }
  }

  /** Runs a statement that writes, inside a transaction. */
  write(text: string, params: SqlValue[]): number {
    if (this.#mode !== 'transaction') throw outside();
    this.#begin();
    const statement = this.#writable(text);
    const changed = this.#state.run(statement, params);
    this.#keep(statement, params);
    return changed;
  }

  /** Keeps a tally beside the table. The log gets the sum of each group, which a replay runs as a statement. */
  #count(text: string, id: string, latest: readonly SqlValue[]): void {
    if (this.#mode !== 'transaction') throw outside();
    const statement = this.#writable(text);
    const counts = this.#countsOf(statement);
    const before = counts.get(id);
    counts.set(id, { sum: (before?.sum ?? 0) + 1, latest });
    this.#counts.push({ statement, id, latest, before });
  }

  #writable(text: string): Statement {
    const statement = this.#state.statement(text);
    if (!statement.isLoggable) throw notLoggable(text);
    return statement;
  }

  #get<R extends Row>(text: string, params: SqlValue[]): R | undefined {
    const statement = this.#readable(text);
    const row = this.#state.get<R>(statement, params);
    if (!statement.reads) this.#keep(statement, params);
    return row;
  }

  #all<R extends Row>(text: string, params: SqlValue[], enough?: (row: R) => boolean): R[] {
    const statement = this.#readable(text);
    const rows = this.#state.all<R>(statement, params, enough);
    if (!statement.reads) this.#keep(statement, params);
    return rows;
  }

  #readable(text: string): Statement {
    const statement = this.#state.statement(text);
    if (!statement.reads && !statement.isLoggable) throw notLoggable(text);
    if (this.#mode === 'idle' || (this.#mode === 'read' && !statement.reads)) throw outside();
    if (this.#mode === 'transaction') this.#begin();
    return statement;
  }

  #keep(statement: Statement, params: SqlValue[]): void {
    this.#statements.push(statement);
    this.#params.push(params);
    this.ran(statement);
  }

  #savepoint<R>(fn: () => R): R {
    const before = this.#open();
    let result: R;
    try {
      result = fn();
    } catch (error) {
      return this.#takenBack(before, error);
    }
    return this.#kept(before, result);
  }

  *#savepointInSlices<R>(fn: () => Slices<R>): Slices<R> {
    const before = this.#open();
    let result: R;
    try {
      result = yield* fn();
    } catch (error) {
      return this.#takenBack(before, error);
    }
    return this.#kept(before, result);
  }

  #open(): Before {
    if (this.#mode !== 'transaction') throw outside();
    return {
      depth: ++this.#depth,
      statements: this.#statements.length,
      records: this.#records.length,
      counts: this.#counts.length,
      staged: this.#staging.stagedCount,
    };
  }

  #kept<R>({ depth }: Before, result: R): R {
    this.#release(depth);
    this.#depth--;
    return result;
  }

  #takenBack({ depth, statements, records, counts, staged }: Before, error: unknown): never {
    if (this.#begun > depth) this.#state.control(`ROLLBACK TO s${depth}`);
    this.#release(depth);
    this.#forgetFrom(statements, counts);
    this.#records.length = records;
    this.#staging.discardStaged(staged);
    this.#depth--;
    throw error;
  }

  /** Tells SQLite about the transaction and the open savepoints that it has not begun yet. */
  #begin(): void {
    for (; this.#begun <= this.#depth; this.#begun++) {
      this.#state.control(this.#begun === 0 ? 'BEGIN' : `SAVEPOINT s${this.#begun}`);
    }
  }

  #release(depth: number): void {
    if (this.#begun <= depth) return;
    this.#state.control(`RELEASE s${depth}`);
    this.#begun = depth;
  }

  /** Discards everything written from these positions on. */
  #forgetFrom(statements: number, counts: number): void {
    for (const statement of this.#statements.slice(statements)) this.ran(statement);
    this.#statements.length = statements;
    this.#params.length = statements;
    for (const { statement, id, before } of this.#counts.splice(counts).reverse()) {
      if (before) statement.counts?.set(id, before);
      else statement.counts?.delete(id);
    }
  }

  #rollBack(): void {
    this.#forgetFrom(0, 0);
    this.#clear();
    this.#staging.discardStaged();
    try {
      if (this.#begun > 0) this.#state.control('ROLLBACK');
    } catch (cause) {
      throw new StateLost(cause);
    } finally {
      this.#begun = 0;
    }
  }

  #clear(): void {
    empty(this.#statements);
    empty(this.#params);
    empty(this.#records);
    empty(this.#counts);
    this.#depth = 0;
  }
}

/** Pops, since setting the `length` of such short lists takes V8 longer. */
function empty(list: unknown[]): void {
  while (list.length > 0) list.pop();
}

function tallied({ counts }: Statement): number {
  return counts?.size ?? 0;
}

function outside(): KmsError {
  return new KmsError('internal', 'a write, or a look at a table, outside a transaction');
}
