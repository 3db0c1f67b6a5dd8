// The database in memory: SQLite in WebAssembly (sql.js), opened empty or from an image, with its statements kept
// prepared by their text. It knows nothing of logs and files; its caller decides what becomes durable.
import initSqlJs from 'sql.js';
import { KmsError } from '../errors.ts';
import { isLoggable } from './loggable.ts';
import type { Row, SqlValue, Tally } from './sql.ts';

type SqlJs = Awaited<ReturnType<typeof initSqlJs>>;
type Database = InstanceType<SqlJs['Database']>;
type Prepared = ReturnType<Database['prepare']>;

let library: Promise<SqlJs> | undefined;

/** Loads sql.js once for the process; `wasm` is the content of its sql-wasm.wasm. */
function loadSqlJs(wasm: Uint8Array | ArrayBuffer): Promise<SqlJs> {
  if (!library) {
    // Cast: emscripten's types want an ArrayBuffer; it accepts a view as well.
    library = initSqlJs({ wasmBinary: wasm as ArrayBuffer });
    library.catch(() => {
      library = undefined;
    });
  }
  return library;
}

/**
 * A statement as the log writer sees it. `logged` and `place` are the writer's: the numbering, and the statement's
 * number in it.
 */
export interface LoggedStatement {
  readonly text: string;
  logged: object | undefined;
  place: number;
}

/** A prepared statement. */
export interface Statement extends LoggedStatement {
  readonly prepared: Prepared;
  /** Whether it changes nothing, and so needs no place in a log. */
  readonly reads: boolean;
  /** Whether a log may hold it. */
  readonly isLoggable: boolean;
  /** The only table that it writes to; undefined if that may be several or none. */
  readonly writes: string | undefined;
  columns: readonly string[] | undefined;
  /** For a counted statement: the tallies still to be run, by their second parameter. */
  counts: Map<string, Tally> | undefined;
}

// Locking mode EXCLUSIVE: no other process can open this database, so nothing is re-read at the start of a transaction.
// The cache is small because the file is in memory itself, and because a commit that grows the file visits every cached
// page: with 256 MiB that takes 120 µs at a million rows, with 4 MiB the same 10 µs as at a thousand.
const pragmas = [
  'PRAGMA locking_mode = EXCLUSIVE',
  'PRAGMA journal_mode = MEMORY',
  'PRAGMA synchronous = OFF',
  'PRAGMA temp_store = MEMORY',
  'PRAGMA cache_size = -4096',
  'PRAGMA foreign_keys = ON',
].join(';');

const readsOnly = /^\s*(?:SELECT|VALUES)\b/i;
const readsWith = /^\s*WITH\b/i;
const writes = /\b(?:INSERT|UPDATE|DELETE|REPLACE)\b/i;
const oneTable = /^\s*(?:INSERT INTO|UPDATE)\s+(\w+)/i;
const control =
  /^\s*(?:BEGIN|COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE|PRAGMA|ATTACH|DETACH|VACUUM|ANALYZE|REINDEX|EXPLAIN)\b/i;
const versionText = /^PRAGMA user_version = \d+$/;
// Functions whose result may differ in a replay of the log, and clauses that leave part of a failed statement behind.
const unrepeatable =
  /\b(?:random|randomblob|last_insert_rowid|changes|total_changes|date|time|datetime|julianday|unixepoch|strftime|timediff)\s*\(|\bCURRENT_(?:TIMESTAMP|TIME|DATE)\b|\bOR\s+(?:FAIL|ROLLBACK)\b/i;

export class State {
  readonly #statements = new Map<string, Statement>();
  readonly #database: Database;
  #open = true;

  constructor(library: SqlJs, image?: Uint8Array) {
    this.#database = opened(library, image);
  }

  /**
   * The statement for `text`, prepared once. Refuses statements that a log could not repeat, and more than one in a
   * text.
   */
  statement(text: string): Statement {
    const known = this.#statements.get(text);
    if (known) return known;
    if (control.test(text) && !versionText.test(text))
      throw new KmsError('internal', `a statement that tables may not run: ${text}`);
    const reads = readsOnly.test(text) || (readsWith.test(text) && !writes.test(text));
    if (!reads && unrepeatable.test(text)) throw new KmsError('internal', `not repeatable from a log: ${text}`);
    return this.#prepare(text, reads);
  }

  /** The same for a text from a log. Nothing that a log may not hold is prepared. */
  logged(text: string): Statement {
    const known = this.#statements.get(text);
    if (known?.isLoggable) return known;
    if (!isLoggable(text)) throw notLoggable(text);
    return this.statement(text);
  }

  #prepare(text: string, reads: boolean): Statement {
    let prepared: Prepared;
    try {
      prepared = this.#database.prepare(text);
    } catch (cause) {
      throw sqlError(cause);
    }
    if (text.slice(prepared.getSQL().length).trim() !== '') {
      prepared.free();
      throw new KmsError('internal', `more than one statement in one text: ${text}`);
    }
    const writes = oneTable.exec(text)?.[1];
    const statement = {
      text,
      prepared,
      reads,
      isLoggable: !reads && isLoggable(text),
      writes,
      columns: undefined,
      counts: undefined,
      logged: undefined,
      place: 0,
    };
    this.#statements.set(text, statement);
    return statement;
  }

  get<R extends Row>(statement: Statement, params: SqlValue[]): R | undefined {
    const { prepared } = statement;
    try {
      bind(statement, params);
      const row = prepared.step() ? this.#row<R>(statement) : undefined;
      // A writing statement with RETURNING has to run to its end.
      if (row && !statement.reads) while (prepared.step());
      return row;
    } catch (cause) {
      throw sqlError(cause);
    } finally {
      prepared.reset();
    }
  }

  /** The rows; with `enough`, those up to and including the first for which it returns true. */
  all<R extends Row>(statement: Statement, params: SqlValue[], enough?: (row: R) => boolean): R[] {
    const { prepared } = statement;
    const rows: R[] = [];
    try {
      bind(statement, params);
      while (prepared.step()) {
        const row = this.#row<R>(statement);
        rows.push(row);
        if (statement.reads && enough?.(row)) break;
      }
      return rows;
    } catch (cause) {
      throw sqlError(cause);
    } finally {
      prepared.reset();
    }
  }

  run(statement: Statement, params: SqlValue[]): number {
    const { prepared } = statement;
    try {
      bind(statement, params);
      while (prepared.step());
    } catch (cause) {
      throw sqlError(cause);
    } finally {
      prepared.reset();
    }
    return this.#database.getRowsModified();
  }

  #row<R extends Row>(statement: Statement): R {
    const values = statement.prepared.get();
    statement.columns ??= statement.prepared.getColumnNames();
    const { columns } = statement;
    const row: Row = {};
    // Cast: no column holds bytes (see SqlValue), so no value is a Uint8Array.
    for (let i = 0; i < columns.length; i++) row[columns[i] ?? ''] = values[i] as SqlValue;
    return row as R;
  }

  /** Runs a constant statement of the driver itself: begin, commit, savepoints. */
  control(text: string): void {
    const statement = this.#statements.get(text) ?? this.#prepare(text, true);
    try {
      statement.prepared.step();
    } catch (cause) {
      throw sqlError(cause);
    } finally {
      statement.prepared.reset();
    }
  }

  /** Number of migrations done on the schema. */
  get schemaVersion(): number {
    const row = this.get<{ user_version: number }>(this.#prepare('PRAGMA user_version', true), []);
    return row?.user_version ?? 0;
  }

  /** Each table, index and the like, with the text that made it, in the order of their names. */
  get schema(): readonly string[] {
    const text = 'SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name';
    return this.all(this.statement(text), []).map(({ type, name, tbl_name, sql }) =>
      [type, name, tbl_name, sql ?? ''].join(' '),
    );
  }

  /** Number of rows in each table. */
  countRows(): Record<string, number> {
    const names = this.all<{ name: string }>(
      this.statement(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name`),
      [],
    );
    const count = (name: string): number =>
      this.get<{ n: number }>(this.statement(`SELECT count(*) AS n FROM "${name}"`), [])?.n ?? 0;
    return Object.fromEntries(names.map(({ name }) => [name, count(name)]));
  }

  /** The faults that SQLite finds in the database and its references; it reads the whole database. */
  faults(): string[] {
    const integrity = this.all(this.#prepare('PRAGMA integrity_check', true), []).map((row) =>
      String(Object.values(row)[0]),
    );
    const dangling = this.all(this.#prepare('PRAGMA foreign_key_check', true), []);
    const found = integrity.filter((line) => line !== 'ok');
    return dangling.length === 0 ? found : [...found, `${dangling.length} references lead nowhere`];
  }

  /** The whole database as bytes. Frees every prepared statement: only for the end of a checkpoint. */
  image(): Uint8Array {
    this.#statements.clear();
    return this.#database.export();
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#statements.clear();
    this.#database.close();
  }
}

/** Opens a database: a new one, or the one in `image`. */
export async function openState(wasm: Uint8Array | ArrayBuffer, image?: Uint8Array): Promise<State> {
  return new State(await loadSqlJs(wasm), image);
}

function opened(library: SqlJs, image: Uint8Array | undefined): Database {
  const database = new library.Database(image);
  database.run(pragmas);
  return database;
}

function bind(statement: Statement, params: SqlValue[]): void {
  if (!statement.reads) {
    for (let i = 0; i < params.length; i++) {
      const value = params[i];
      // JSON, and so the log, has no infinities and no NaN.
      if (typeof value === 'number' && !Number.isFinite(value)) throw new Error('a number that is not finite');
    }
  }
  statement.prepared.bind(params);
}

/** The error for a statement that a log may not hold. */
export function notLoggable(text: string): KmsError {
  return new KmsError('internal', `a statement that no log may hold: ${JSON.stringify(text.slice(0, 100))}`);
}

/** SQLite's messages name tables and columns, never values. */
function sqlError(cause: unknown): KmsError {
  const message = cause instanceof Error ? cause.message : String(cause);
  if (/^UNIQUE constraint failed/.test(message)) {
    return new KmsError('conflict', message.replace(/^UNIQUE constraint failed:/, 'already there:'), { cause });
  }
  return new KmsError('internal', `the database refused a statement: ${message}`, { cause });
}
