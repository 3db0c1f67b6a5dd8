// Keyset pages and slices. A table reads part of a page at once, and one row more, which shows whether there is a next
// one. Slices divide work on rows that are too many, or too long, for one turn of the event loop.
import type { Page, PageRequest, Row, Slices, Sql, SqlValue } from '../sql.ts';

/** Rows, and bytes of their long columns, to write or pass at once: some 10 ms. */
export const sliceRows = 1000;
const sliceBytes = 256 * 1024;

/** Rows, and characters of their texts, to read at once for a page: some 2 ms. */
const partRows = 128;
const partLength = 32 * 1024;

/**
 * Reads part of a page with `text`, each row mapped by `answer`. The last two parameters of `text`, the position to
 * start after and a limit, are added here. If the requested items would take long to read, the part has fewer, and the
 * next part continues.
 */
export function readPart<R extends Row & { seq: number }, T>(
  sql: Sql,
  { limit, after = 0 }: PageRequest,
  answer: (row: R) => T,
  text: string,
  ...params: SqlValue[]
): Page<T> {
  const most = Math.min(limit, partRows);
  let count = 0;
  let length = 0;
  let isFull = false;
  // The row after the part shows that there is a next one.
  const isNext = (row: R): boolean => {
    isFull = count === most || length >= partLength;
    if (isFull) return true;
    count++;
    length += lengthOf(row);
    return false;
  };
  const rows = sql.some<R>(isNext, text, ...params, after, most + 1);
  const read = rows.slice(0, count);
  const items = read.map(answer);
  const last = isFull ? read.at(-1) : undefined;
  return last ? { items, next: last.seq } : { items };
}

/** Length of a row's texts, in characters. */
function lengthOf(row: Row): number {
  let length = 0;
  for (const name in row) {
    const value = row[name];
    if (typeof value === 'string') length += value.length;
  }
  return length;
}

/** A row as a slice sees it: its position. */
interface SliceRow extends Row {
  place: number;
  /** Bytes of the row's long columns. */
  bytes: number;
}

/**
 * Calls `work` with one slice after the other until it returns true, yields in between, and returns whether it did.
 * `text` reads `place` and `bytes` of the rows in order; its last two parameters, the position to start after and a
 * limit, are added here. `work` gets the position before the first row and that of the last one.
 */
export function* inSlices(
  sql: Sql,
  text: string,
  params: readonly SqlValue[],
  work: (after: number, last: number) => unknown,
): Slices<boolean> {
  for (let after = 0; ; yield) {
    const last = endOfSlice(sql, text, params, after);
    if (last === undefined) return false;
    if (work(after, last) === true) return true;
    after = last;
  }
}

/** The position of the last row of the slice after `after`; undefined if no row is left. */
export function endOfSlice(
  sql: Sql,
  text: string,
  params: readonly SqlValue[],
  after: number,
  most = sliceRows,
): number | undefined {
  let bytes = 0;
  const isFull = (row: SliceRow): boolean => {
    bytes += row.bytes;
    return bytes >= sliceBytes;
  };
  const rows = sql.some<SliceRow>(isFull, text, ...params, after, most);
  return rows.at(-1)?.place;
}
