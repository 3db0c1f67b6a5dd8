// The part of a driver that a table file needs: constant statements with parameters, answered at once, since the state
// is in memory.

/**
 * A value that a column can hold. Times are epoch milliseconds, JSON is text, bytes are base64 text, booleans are 0 and
 * 1.
 */
export type SqlValue = string | number | null;
export type Row = Record<string, SqlValue>;

/**
 * Work that is too long for one go: it yields after each part, some milliseconds long, and the store has the event loop
 * turn then. Nothing else reads or writes that store until it is over.
 */
export type Slices<R> = Generator<void, R, void>;

/** Statements take `?` parameters; texts are constants, so that drivers can keep them prepared. */
export interface Sql {
  get<R extends Row>(sql: string, ...params: SqlValue[]): R | undefined;
  all<R extends Row>(sql: string, ...params: SqlValue[]): R[];
  /** The rows up to and with the first that is `enough`; those after it are not read. */
  some<R extends Row>(enough: (row: R) => boolean, sql: string, ...params: SqlValue[]): R[];
  /** Runs a statement that writes; answers the number of rows it changed. */
  run(sql: string, ...params: SqlValue[]): number;
  /**
   * What `load` finds in `table` under `key`, perhaps remembered from before: a driver may keep it until something is
   * written to the table or a transaction is taken back. `load` reads that table alone, and nobody changes what it
   * answers.
   */
  remember<T extends object>(table: string, key: string, load: () => T | undefined): T | undefined;
  /**
   * Counts one: `sql` writes to one table, and adds its first parameter to a number in what its second one names; more
   * parameters are those of the latest count. As durable as a statement that was run, but a driver may add up what it
   * counts and run the sum later, between two transactions, or when the database is opened again; `counted` says what
   * is to be added to the table until then. What `remember` keeps of the table under that name is forgotten when it is.
   */
  count(sql: string, id: string, ...latest: SqlValue[]): void;
  counted(sql: string, id: string): Tally | undefined;
}

/** What was counted: how often, and the further parameters of the latest time. */
export interface Tally {
  readonly sum: number;
  readonly latest: readonly SqlValue[];
}

export interface Page<T> {
  readonly items: T[];
  /** Where the next page starts; absent when this is the last one. */
  readonly next?: number;
}

/** Where a page starts and how long it is: `after` is the `next` of the page before. */
export interface PageRequest {
  readonly limit: number;
  readonly after?: number;
}
