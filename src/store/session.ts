// Session runs transactions on the state in memory, one after the other: begin, run, commit or take back. It keeps what
// a transaction wrote, for whoever makes that durable, and knows nothing of how that happens.
import { KmsError } from '../errors.ts';
import { yieldToEventLoop } from './event-loop.ts';
import type { ActivityInput, Transaction } from './port.ts';
import type { Row, Slices, Sql, SqlValue, Tally } from './sql.ts';
import type { LoggedStatement, State, Statement } from './state.ts';

/** The part of the activity log that a transaction needs. */
export interface Staging {
  /** Gives the record its place and answers its canonical line. */
  stage(record: ActivityInput): void;
  readonly stagedCount: number;
  /** Takes back what was staged after the first `toCount` (default: all). */
  discardStaged(toCount?: number): void;
  /** The staged records are now part of the log in memory. */
  commitStaged(): void;
}

/** What a transaction wrote, valid until the next one begins. */
export interface Written {
  readonly statements: readonly LoggedStatement[];
  /** Of each statement, in the same order. */
  readonly params: readonly (readonly SqlValue[])[];
  readonly records: readonly ActivityInput[];
  /** What was counted, once for each time. */
  readonly counts: readonly Count[];
}

/** The statement that is counted, and its parameters but the first, which is how often. */
export interface Count {
  readonly statement: Statement;
  readonly id: string;
  readonly latest: readonly SqlValue[];
  /** What stood beside the table before. */
  readonly before: Tally | undefined;
}

/** How far a transaction was when a savepoint of it began. */
interface Before {
  /** Of the savepoint itself. */
  readonly depth: number;
  readonly statements: number;
  readonly records: number;
  readonly counts: number;
  readonly staged: number;
}

type Mode = 'idle' | 'transaction' | 'read';

/** Thrown where the state in memory can no longer be trusted to hold what was committed and nothing else. */
export class StateLost extends KmsError {
  constructor(cause: unknown) {
    super('internal', 'the database in memory did not take a commit or a rollback', { cause });
  }
}

/**
 * Tallies of a statement that stand beside its table; with more, the oldest are run, so many at once. Those of few keys
 * on few days never are, and cost no statement.
 */
const mostTallies = 16_384;
const runAtOnce = 512;

/**
 * Entries of a table in the cache; one more lets go of them all. Only what exists is kept, so that nobody fills it by
 * asking for nothing.
 */
const most = 10_000;

/**
 * What look-ups found, kept as long as it is certainly still so: until its table is written to or a transaction is
 * taken back. It spares the hot requests their statements; whoever asks cannot tell that it is there.
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

  /** Something was written to the table, or to what is kept under that key alone. */
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
  /** The statements that were ever counted. */
  readonly #counting = new Set<Statement>();
  readonly #cache = new Cache();
  #mode: Mode = 'idle';
  /** Savepoints that are open. */
  #depth = 0;
  /**
   * How many of the transaction and its savepoints SQLite knows of: it is told with the first statement, which many
   * transactions never run.
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

  /** Whether the last transaction has anything to make durable. */
  get wrote(): boolean {
    return this.#statements.length > 0 || this.#records.length > 0 || this.#counts.length > 0;
  }

  /** Runs one transaction to its commit in memory. Never call it while one in slices is under way. */
  run<R>(fn: (tx: Transaction<T>) => R): R {
    this.#start();
    let result: R;
    try {
      result = fn(this.#transaction);
    } catch (error) {
      return this.#failed(error);
    }
    // What waits would be committed before it is done.
    if (result instanceof Promise) this.#failed(new KmsError('internal', 'a transaction waits for nothing'));
    return this.#committed(result);
  }

  /** The same in slices: it ends with the generator. Nothing else may be run before that. */
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
   * Runs all that was counted, between transactions: the tables are then what a replay of the log makes of them. It has
   * no place in the log, which has the counts themselves.
   */
  async runCounts(): Promise<void> {
    for (const statement of this.#counting) {
      for (; tallied(statement) > 0; await yieldToEventLoop()) this.#runTallies(statement);
    }
  }

  /** Between transactions a statement of somebody else was run on the state: what is remembered of its table is old. */
  ran({ writes }: Statement): void {
    // A deletion may reach other tables through their references.
    if (writes === undefined) this.#cache.forgetAll();
    else this.#cache.forget(writes);
  }

  /** Adds what somebody else counted between transactions, as if it had been counted here. */
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

  /** Some of the statement's, the oldest first. */
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

  /** Runs `fn` on the state as it is, in the midst of a transaction in slices too; writing is refused. */
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
    const statement = this.#state.statement(text);
    const changed = this.#state.run(statement, params);
    this.#keep(statement, params);
    return changed;
  }

  /** The log gets the sum of a group, which is run when it is read; here a tally is kept beside the table. */
  #count(text: string, id: string, latest: readonly SqlValue[]): void {
    if (this.#mode !== 'transaction') throw outside();
    const statement = this.#state.statement(text);
    const counts = this.#countsOf(statement);
    const before = counts.get(id);
    counts.set(id, { sum: (before?.sum ?? 0) + 1, latest });
    this.#counts.push({ statement, id, latest, before });
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

  /** Tells SQLite of the transaction and of every open savepoint that it does not know yet. */
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

  /** What was written from these places on is taken back. */
  #forgetFrom(statements: number, counts: number): void {
    if (this.#statements.length > statements) this.#cache.forgetAll();
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

/** Those are short: to set their length takes V8 longer. */
function empty(list: unknown[]): void {
  while (list.length > 0) list.pop();
}

function tallied({ counts }: Statement): number {
  return counts?.size ?? 0;
}

function outside(): KmsError {
  return new KmsError('internal', 'a write, or a look at a table, outside a transaction');
}
