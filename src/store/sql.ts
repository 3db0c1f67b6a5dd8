// What a table file needs of a driver, and nothing more: constant statements with parameters, answered asynchronously.

/** A value that a column can hold. Times are epoch milliseconds, JSON is text, bytes are base64 text, booleans are 0 and 1. */
export type SqlValue = string | number | null;
export type Row = Record<string, SqlValue>;

/** What a table file needs of a driver. Statements take `?` parameters; texts are constants, so that drivers can keep them prepared. */
export interface Sql {
  get<R extends Row>(sql: string, ...params: SqlValue[]): Promise<R | undefined>;
  all<R extends Row>(sql: string, ...params: SqlValue[]): Promise<R[]>;
  /** Runs a statement that writes; answers the number of rows it changed. */
  run(sql: string, ...params: SqlValue[]): Promise<number>;
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
