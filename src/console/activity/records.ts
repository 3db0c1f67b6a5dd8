// Queries of the activity log: filters, the newest records up to a maximum for charts and counts, and a tail that
// follows the log while the page is visible.

import { useLayoutEffect } from 'hono/jsx/dom';
import type { AnswerTo, CallOptions, Client, InputOf } from '../../client/client.ts';
import { ownActions } from '../../model/actions.ts';
import { type ActivityDetails, detailsIn } from '../../model/activity-details.ts';
import { type Fields, searchFields } from '../parts/search-fields.ts';
import { useState } from '../parts/state.ts';
import { idTime } from '../text.ts';

export type ActivityRecord = AnswerTo<'searchActivity'>['data'][number];
/** Names of users and API keys by their ids. */
export type Names = ReadonlyMap<string, string>;
export type ActivityFilters = Omit<InputOf<'searchActivity'>, 'cursor' | 'limit'>;
type TypedFilters = Omit<ActivityFilters, 'exclude' | 'reads' | 'about' | 'aboutType'>;

interface Newest {
  /** Newest first. */
  readonly records: readonly ActivityRecord[];
  /** Whether there are older records that were not fetched. */
  readonly isCut: boolean;
}

/** Maximum page size of the appliance. */
const pageSize = 10_000;

interface NewestOptions extends CallOptions {
  /** Maximum number of records to fetch. */
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

/**
 * The deed in a record's props; records from other programs never have one, since their props say nothing about this
 * appliance.
 */
export function deedOfRecord({ props, reporter }: ActivityRecord): ActivityDetails {
  return detailsIn(reporter === undefined ? props : {});
}

/** Adds names found in the records, so that things deleted since still have theirs. */
export function namesWith(names: Names, records: readonly ActivityRecord[]): Names {
  const known = new Map<string, string>();
  for (const record of records) {
    const { object, objects = [] } = deedOfRecord(record);
    for (const { type, id, name } of object ? [object, ...objects] : objects) {
      const isActor = type === 'user' || type === 'apikey';
      if (isActor && name !== undefined && !known.has(id)) known.set(id, name);
    }
  }
  for (const [id, name] of names) known.set(id, name);
  return known;
}

/**
 * Groups consecutive records that differ only in their times, newest first in each group, so that a program's thousand
 * repetitions read as one entry.
 */
export function alikeTogether(records: readonly ActivityRecord[]): ActivityRecord[][] {
  const groups: ActivityRecord[][] = [];
  let last = '';
  for (const record of records) {
    const { id: _, createdAt: __, ...said } = record;
    const text = JSON.stringify(said);
    const group = text === last ? groups.at(-1) : undefined;
    if (group) group.push(record);
    else groups.push([record]);
    last = text;
  }
  return groups;
}

const subjectKinds = ['account', 'apikey', 'asset', 'asym-keyring', 'keyring', 'user'] as const;
export type SubjectKind = (typeof subjectKinds)[number];

/** Whether there are pages with all records about this kind of thing. */
export function isSubjectKind(text: string): text is SubjectKind {
  return subjectKinds.some((kind) => kind === text);
}

/** The search for all records about one thing; for a keyring, `id` is its name. */
export function aboutFilters(kind: SubjectKind, id: string): ActivityFilters {
  return kind === 'keyring' || kind === 'asym-keyring' ? { about: id, aboutType: kind } : { about: id };
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

/** Leaves out the reader's own reads of the log, which are recorded too, unless the reader asks for them. */
export function withoutOwn(filters: ActivityFilters, ownId: string | undefined, showsOwn: boolean): ActivityFilters {
  const isAskedFor = showsOwn || filters.action === ownReading;
  return ownId === undefined || isAskedFor ? filters : { ...filters, exclude: { keyid: ownId, action: ownReading } };
}

const ownReading = 'activity.read';

interface ShownReads {
  readonly showsReads: boolean;
  readonly showsOwn: boolean;
}

/** Leaves out all reads, unless the user wants to see them or searches for an action; then as `withoutOwn`. */
export function shownFilters(
  filters: ActivityFilters,
  ownId: string | undefined,
  { showsReads, showsOwn }: ShownReads,
): ActivityFilters {
  if (!showsReads && !showsOwn && filters.action === undefined) return { ...filters, reads: false };
  return withoutOwn(filters, ownId, showsOwn);
}

export const actionNames: readonly string[] = [...ownActions].sort();

export interface Tail {
  /** Newest first. */
  readonly records: readonly ActivityRecord[];
  /** Number of new records in the last response. */
  readonly added: number;
  /** Whether records came faster than they were fetched, so that some are missing. */
  readonly isGapped: boolean;
}

export const emptyTail: Tail = { records: [], added: 0, isGapped: false };

/**
 * Each search starts this much (ms) before the newest record: records written at the same time may arrive in any order.
 */
const overlap = 5_000;

/** Start of the next search, in milliseconds since 1970; `given` until there is a record. */
export function tailStart({ records }: Tail, given: number | undefined): number | undefined {
  return records.length === 0 ? given : Math.max(given ?? 0, newestTime(records) - overlap);
}

/** Adds a page of a search from `tailStart`, newest first. `hasMore`: the page did not hold all results. */
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

/**
 * Time of the newest record, at most the time in its id: programs may give records a time of their own, even in the
 * future, whereas the id tells when a record was written.
 */
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

/** Maximum number of rows kept. */
export const mostRows = 500;
const mostAtATime = 200;
/** Milliseconds; each look is recorded. */
export const pollEvery = 5_000;
const retryAfter = 10_000;

/** Follows the log; starts over when the filters (compared as JSON) change. */
export function useTail({ api, filters }: TailOptions): Following {
  const [state, setState] = useState<Following>({ ...emptyTail, is: 'starting' });

  // A layout effect, since a normal one might start after unmount, when nothing would stop it.
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
