// The part of a driver that a table file needs: constant statements with parameters, answered synchronously, since the
// state is in memory.

/**
 * A value that a column can hold. Times are epoch milliseconds, JSON is text, bytes are base64 text, booleans are 0 and
 * 1.
 */
export type SqlValue = string | number | null;
export type Row = Record<string, SqlValue>;

/**
 * Work too long for one turn of the event loop: it yields after each part, some milliseconds long, and the store then
 * yields to the event loop. No other transaction of that store runs until it is done.
 */
export type Slices<R> = Generator<void, R, void>;

/** Statements take `?` parameters; texts are constants, so that drivers can keep them prepared. */
export interface Sql {
  get<R extends Row>(sql: string, ...params: SqlValue[]): R | undefined;
  all<R extends Row>(sql: string, ...params: SqlValue[]): R[];
  /** The rows up to and including the first for which `enough` returns true; later ones are not read. */
  some<R extends Row>(enough: (row: R) => boolean, sql: string, ...params: SqlValue[]): R[];
  /** Runs a statement that writes; returns the number of rows changed. */
  run(sql: string, ...params: SqlValue[]): number;
  /**
   * The result of `load` for `table` and `key`, perhaps cached: a driver may keep it until the table is written to, or
   * a write to it is rolled back. `load` reads only that table, and callers must not change the result.
   */
  remember<T extends object>(table: string, key: string, load: () => T | undefined): T | undefined;
  /**
   * Counts one. `sql` writes to one table: it adds its first parameter to a number in the row that its second one
   * names; further parameters are those of the latest count. A count is as durable as a statement, but a driver may add
   * counts up and run the sum later, between two transactions or when the database is opened again; until then
   * `counted` returns what is still to be added to the table. Running the sum makes `remember` forget the table's entry
   * of that name.
   */
  count(sql: string, id: string, ...latest: SqlValue[]): void;
  counted(sql: string, id: string): Tally | undefined;
}

/** Accumulated counts: their number, and the further parameters of the latest. */
export interface Tally {
  readonly sum: number;
  readonly latest: readonly SqlValue[];
}

export interface Page<T> {
  readonly items: T[];
  /** The start of the next page; absent if this is the last. */
  readonly next?: number;
}

/** Start and length of a page: `after` is the `next` of the previous page. */
export interface PageRequest {
  readonly limit: number;
  readonly after?: number;
}
