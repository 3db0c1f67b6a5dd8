// Activity records are what is asked of the activity log: by which filters, the newest of a search up to a bound, for
// charts and counts, and a tail that follows the log while somebody can see it.

import { useLayoutEffect } from 'hono/jsx/dom';
import type { AnswerTo, CallOptions, Client, InputOf } from '../../client/client.ts';
import { ownActions } from '../../model/actions.ts';
import { type Fields, searchFields } from '../parts/search-fields.ts';
import { useState } from '../parts/state.ts';
import { idTime } from '../text.ts';

export type ActivityRecord = AnswerTo<'searchActivity'>['data'][number];
export type ActivityFilters = Omit<InputOf<'searchActivity'>, 'cursor' | 'limit'>;
type TypedFilters = Omit<ActivityFilters, 'exclude'>;

interface Newest {
  /** The newest first. */
  readonly records: readonly ActivityRecord[];
  /** Whether there are older ones that were not fetched. */
  readonly isCut: boolean;
}

/** The most that the appliance gives at a time. */
const pageSize = 10_000;

interface NewestOptions extends CallOptions {
  /** The most records to fetch. */
  readonly most: number;
}

export async function newestActivity(
  searchActivity: Client['searchActivity'],
  filters: ActivityFilters,
  { most, ...options }: NewestOptions,
): Promise<Newest> {
  const records: ActivityRecord[] = [];
  let cursor: string | undefined;
  for (;;) {
    const limit = Math.min(pageSize, most - records.length);
    const page = await searchActivity({ ...filters, limit, ...(cursor !== undefined && { cursor }) }, options);
    for (const record of page.data) records.push(record);
    cursor = page.pagination.nextCursor;
    if (cursor === undefined) return { records, isCut: false };
    if (records.length >= most) return { records, isCut: true };
  }
}

type Name = keyof TypedFilters;
export type FilterFields = Fields<Name>;

export const activityFields = searchFields<Name, TypedFilters>({
  accountUid: 'text',
  accountId: 'text',
  action: 'text',
  ring: 'text',
  keyid: 'text',
  valid: 'switch',
  start: 'start',
  end: 'end',
  object: 'text',
  address: 'text',
  granted: 'flag',
  revoked: 'flag',
  props: 'object',
});

/** Somebody's own reading of the log is in the log: it is left out unless they ask for it. */
export function withoutOwn(filters: ActivityFilters, ownId: string | undefined, showsOwn: boolean): ActivityFilters {
  const isAskedFor = showsOwn || filters.action === ownReading;
  return ownId === undefined || isAskedFor ? filters : { ...filters, exclude: { keyid: ownId, action: ownReading } };
}

const ownReading = 'activity.read';

export const actionNames: readonly string[] = [...ownActions].sort();

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

export interface Following extends Tail {
  readonly is: 'starting' | 'following' | 'paused' | 'failed';
  readonly error?: unknown;
}

interface TailOptions {
  readonly api: Client;
  readonly filters: ActivityFilters;
}

/** The most rows that are kept. */
export const mostRows = 500;
const mostAtATime = 200;
const pollEvery = 2_000;
const retryAfter = 10_000;

/** Begins anew when the filters change, as JSON. */
export function useTail({ api, filters }: TailOptions): Following {
  const [state, setState] = useState<Following>({ ...emptyTail, is: 'starting' });

  // An effect that is run later might be run after the part is gone, and then nobody would stop it.
  useLayoutEffect(() => {
    const stopped = new AbortController();
    void follow({ api, filters, signal: stopped.signal, tell: setState });
    return () => stopped.abort();
  }, [JSON.stringify(filters)]);

  return state;
}

interface FollowInput extends TailOptions {
  readonly signal: AbortSignal;
  readonly tell: (state: Following) => void;
}

async function follow({ api, filters, signal, tell }: FollowInput): Promise<void> {
  let tail = emptyTail;
  tell({ ...tail, is: 'starting' });
  while (!signal.aborted) {
    if (document.hidden) {
      tell({ ...tail, is: 'paused' });
      await untilVisible(signal);
      continue;
    }
    const start = tailStart(tail, filters.start);
    try {
      const { data, pagination } = await api.searchActivity(
        { ...filters, ...(start !== undefined && { start }), limit: mostAtATime },
        { signal },
      );
      tail = withPage(tail, data, { hasMore: pagination.hasMore, most: mostRows });
      if (!signal.aborted) tell({ ...tail, is: 'following' });
      await pause(pollEvery, signal);
    } catch (error) {
      if (signal.aborted) return;
      tell({ ...tail, is: 'failed', error });
      await pause(retryAfter, signal);
    }
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', done);
  });
}

function untilVisible(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener('visibilitychange', look);
      signal.removeEventListener('abort', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    signal.addEventListener('abort', look);
    look();
  });
}
