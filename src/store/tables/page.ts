// Keyset pages, of which a table reads a part in one go, and one row more, which tells whether there is a next one. And
// slices, in which rows are gone through that are too many, or too long, for one go.
import type { Page, PageRequest, Row, Slices, Sql, SqlValue } from '../sql.ts';

/** Rows, and bytes of their long columns, that are written or gone by in one go: some 10 ms. */
export const sliceRows = 1000;
const sliceBytes = 256 * 1024;

/** Rows, and characters of their texts, that are read for a page in one go: some 2 ms. */
const partRows = 128;
const partLength = 32 * 1024;

/**
 * The part of a page that `text` reads, each row as `answer` makes it; the last two parameters of `text`, the place to
 * start after and a limit, are added here. It has fewer items than were asked for where those would take long to read:
 * the next part goes on.
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
  // The row after those of the part tells that there is a next one.
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

/** Of a row's texts, in characters. */
function lengthOf(row: Row): number {
  let length = 0;
  for (const name in row) {
    const value = row[name];
    if (typeof value === 'string') length += value.length;
  }
  return length;
}

/** Where a slice ends: the place of its last row. */
interface SliceRow extends Row {
  place: number;
  /** Bytes of what is long in the row. */
  bytes: number;
}

/**
 * Calls `work` with one slice after the other until it answers true, yields between two, and answers whether it did.
 * `text` reads `place` and `bytes` of the rows in order; its last two parameters, the place to start after and a limit,
 * are added here. `work` gets the places before the first row and of the last one.
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

/** The place of the last row of the slice after `after`; undefined when no row is left. */
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
