// What a live view of the activity log holds: the newest records, each once, and no more than a bound, however often it asks.
import { idTime } from '../id-time.ts';
import type { ActivityRecord } from './newest.ts';

export interface Tail {
  /** The newest first. */
  readonly records: readonly ActivityRecord[];
  /** Of the last answer: what of it had not been there. */
  readonly added: number;
  /** Whether records came faster than they were asked for, so that some between were not seen. */
  readonly isGapped: boolean;
}

export const emptyTail: Tail = { records: [], added: 0, isGapped: false };

/** Records are asked for again from this much before the newest: those written at the same time come in any order. */
const overlap = 5_000;

/** Where the next search begins, in milliseconds since 1970; `given` until there is a record. */
export function tailStart({ records }: Tail, given: number | undefined): number | undefined {
  return records.length === 0 ? given : Math.max(given ?? 0, newestTime(records) - overlap);
}

/** With the page of a search from `tailStart`, the newest first. `hasMore`: the page did not hold all of it. */
export function withPage(
  tail: Tail,
  page: readonly ActivityRecord[],
  { hasMore, most }: { readonly hasMore: boolean; readonly most: number },
): Tail {
  const known = new Set(tail.records.map(({ id }) => id));
  const fresh = page.filter(({ id }) => !known.has(id));
  const records = [...fresh, ...tail.records].slice(0, most);
  const hasCaughtUp = !hasMore || fresh.length < page.length;
  return { records, added: fresh.length, isGapped: tail.isGapped || (!hasCaughtUp && tail.records.length > 0) };
}

/** A record's own time may be one that a program gave it, in the future even; its id knows when it was written. */
function newestTime(records: readonly ActivityRecord[]): number {
  return records.reduce(
    (newest, { id, createdAt }) => Math.max(newest, Math.min(createdAt, idTime(id) ?? createdAt)),
    0,
  );
}
