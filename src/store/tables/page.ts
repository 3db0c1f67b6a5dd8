// Keyset pages: a table reads one row more than the page holds, which tells whether there is a next one. And slices:
// the parts in which rows are gone through that are too many, or too long, for one go.
import type { Page, PageRequest, Row, Sql, SqlValue } from '../sql.ts';

/**
 * No more rows are added to a page that is as long as this, in characters: it holds fewer than were asked for, and the
 * next one goes on.
 */
export const longestPage = 4 * 1024 * 1024;

/** Rows, and bytes of their long columns, that are read or written in one go: some 10 ms. */
const sliceRows = 1000;
const sliceBytes = 256 * 1024;

/**
 * The page that `text` reads, each row as `answer` makes it; the last two parameters of `text`, the place to start
 * after and a limit, are added here.
 */
export async function readPage<R extends Row & { seq: number }, T>(
  sql: Sql,
  { limit, after = 0 }: PageRequest,
  answer: (row: R) => T,
  text: string,
  ...params: SqlValue[]
): Promise<Page<T>> {
  const items: T[] = [];
  let length = 0;
  for (let last = after; ; await sql.pause()) {
    const most = Math.min(limit + 1 - items.length, sliceRows);
    let sliced = 0;
    const isEnough = (row: R): boolean => {
      sliced += lengthOf(row);
      return sliced >= sliceBytes;
    };
    const rows = await sql.some<R>(isEnough, text, ...params, last, most);
    for (const row of rows) {
      // This row is one more than the page holds, and tells that there is a next one.
      if (items.length === limit || length >= longestPage) return { items, next: last };
      items.push(answer(row));
      length += lengthOf(row);
      last = row.seq;
    }
    if (rows.length < most && sliced < sliceBytes) return { items };
  }
}

export function lengthOf(row: Row): number {
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
 * Calls `work` with one slice after the other until it answers true, letting the event loop turn between two, and
 * answers whether it did. `text` reads `place` and `bytes` of the rows in order; its last two parameters, the place to
 * start after and a limit, are added here. `work` gets the places before the first row and of the last one.
 */
export async function inSlices(
  sql: Sql,
  text: string,
  params: readonly SqlValue[],
  work: (after: number, last: number) => Promise<unknown>,
): Promise<boolean> {
  for (let after = 0; ; await sql.pause()) {
    const last = await endOfSlice(sql, text, params, after);
    if (last === undefined) return false;
    if ((await work(after, last)) === true) return true;
    after = last;
  }
}

/** The place of the last row of the slice after `after`; undefined when no row is left. */
export async function endOfSlice(
  sql: Sql,
  text: string,
  params: readonly SqlValue[],
  after: number,
  most = sliceRows,
): Promise<number | undefined> {
  let bytes = 0;
  const isFull = (row: SliceRow): boolean => {
    bytes += row.bytes;
    return bytes >= sliceBytes;
  };
  const rows = await sql.some<SliceRow>(isFull, text, ...params, after, most);
  return rows.at(-1)?.place;
}
