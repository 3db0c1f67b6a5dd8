// Keyset pages: a table reads one row more than asked for, which tells whether there is a next page.
import type { Page } from '../sql.ts';

/** The page made of up to `limit + 1` rows; the next one starts after the last row kept. */
export function pageOf<T extends { readonly seq: number }>(rows: T[], limit: number): Page<T> {
  if (rows.length <= limit) return { items: rows };
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return last ? { items, next: last.seq } : { items };
}
