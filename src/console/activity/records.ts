// Activity records are what is asked of the activity log: by which filters, the newest of a search up to a bound, for
// charts and counts, and a tail that follows the log while somebody can see it.

import { useLayoutEffect } from 'hono/jsx/dom';
import type { AnswerTo, CallOptions, Client, InputOf } from '../../client/client.ts';
import { ownActions } from '../../model/actions.ts';
import { type Deed, deedOf } from '../../model/deed.ts';
import { type Fields, searchFields } from '../parts/search-fields.ts';
import { type LoadPage, useState } from '../parts/state.ts';
import { idTime } from '../text.ts';

export type ActivityRecord = AnswerTo<'searchActivity'>['data'][number];
/** Of users and API keys, by their ids. */
export type Names = ReadonlyMap<string, string>;
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

/** What others report says nothing of what was done here. */
export function deedOfRecord({ props, reporter }: ActivityRecord): Deed {
  return deedOf(reporter === undefined ? props : {});
}

/** With what those were called that are gone by now, as far as the records say it. */
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
 * Records that follow each other and say the same but for their times, the newest first in each group: what a program
 * does a thousand times over is read once.
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

interface Source {
  readonly filters: ActivityFilters;
  /** What of it is meant, where a filter cannot say it. */
  readonly only?: ((record: ActivityRecord) => boolean) | undefined;
}

interface Stream extends Source {
  /** Fetched and not given yet, the newest first. */
  readonly ahead: ActivityRecord[];
  /** Of the page that comes next; undefined before the first. */
  cursor?: string | undefined;
  isOver: boolean;
}

const goesOn = 'more';

/** Several searches as one list: each record once, the newest first. What it keeps between pages is its own. */
export function mergedActivity(searchActivity: Client['searchActivity'], sources: readonly Source[]) {
  let streams: Stream[] = [];
  let given = new Set<string>();
  /** On its way out, in case a page that is needed does not come. */
  let next: ActivityRecord[] = [];

  const fill = async (stream: Stream, limit: number, signal: AbortSignal): Promise<void> => {
    while (stream.ahead.length === 0 && !stream.isOver) {
      const { filters, cursor, only = () => true } = stream;
      const page = await searchActivity({ ...filters, limit, ...(cursor !== undefined && { cursor }) }, { signal });
      stream.ahead.push(...page.data.filter(only));
      stream.cursor = page.pagination.nextCursor;
      stream.isOver = stream.cursor === undefined;
    }
  };

  const load: LoadPage<ActivityRecord> = async ({ cursor, limit }, signal) => {
    if (cursor === undefined) {
      streams = sources.map((source) => ({ ...source, ahead: [], isOver: false }));
      given = new Set();
      next = [];
    }
    while (next.length < limit) {
      for (const stream of streams) await fill(stream, limit, signal);
      const heads = streams.flatMap(({ ahead }) => ahead.slice(0, 1));
      const newest = heads.reduce<ActivityRecord | undefined>((a, b) => (a && isNewer(a, b) ? a : b), undefined);
      if (!newest) break;
      for (const { ahead } of streams) if (ahead[0]?.id === newest.id) ahead.shift();
      if (!given.has(newest.id)) next.push(newest);
      given.add(newest.id);
    }
    const data = next;
    next = [];
    const hasMore = streams.some(({ ahead, isOver }) => ahead.length > 0 || !isOver);
    return { data, pagination: { hasMore, ...(hasMore && { nextCursor: goesOn }) } };
  };
  return load;
}

const subjectKinds = ['account', 'apikey', 'asset', 'asym-keyring', 'keyring', 'user'] as const;
export type SubjectKind = (typeof subjectKinds)[number];

/** Whether there is a page of all that the log has about one of these. */
export function isSubjectKind(text: string): text is SubjectKind {
  return subjectKinds.some((kind) => kind === text);
}

/** What the log has about one thing. A keyring's `id` is its name. */
export function sourcesOf(kind: SubjectKind, id: string): readonly Source[] {
  switch (kind) {
    case 'apikey':
    case 'user':
      return [{ filters: { keyid: id } }, { filters: { object: id } }];
    case 'account':
      return [{ filters: { accountId: id } }, { filters: { object: id } }];
    case 'keyring':
    case 'asym-keyring': {
      const name = id.toLowerCase();
      const isAsym = kind === 'asym-keyring';
      const isOfIt = (record: ActivityRecord): boolean => {
        const { object, objects = [] } = deedOfRecord(record);
        return [object, ...objects].some((thing) => thing?.type === kind && thing.name?.toLowerCase() === name);
      };
      // Both kinds of rings may have the same name, and other things too.
      const isItsKind = ({ action }: ActivityRecord): boolean =>
        action.startsWith('asym.') === isAsym && !action.startsWith('transit.');
      return [
        { filters: { ring: id }, only: isItsKind },
        { filters: { object: id }, only: isOfIt },
      ];
    }
    default:
      return [{ filters: { object: id } }];
  }
}

function isNewer(a: ActivityRecord, b: ActivityRecord): boolean {
  return a.createdAt === b.createdAt ? a.id > b.id : a.createdAt > b.createdAt;
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
