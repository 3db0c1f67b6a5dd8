// Searching the activity log: the filters of a search in the log's own terms, and everything about one thing.
import type { Activity } from '../api/activity.ts';
import type { Body } from '../api/endpoints.ts';
import { invalidField } from '../errors.ts';
import { ownActions, readActions } from '../model/actions.ts';
import { detailsIn, type RingType, ringTypes } from '../model/activity-details.ts';
import { canonicalBlock } from '../model/addresses.ts';
import { flagsCovering } from '../model/flags.ts';
import type { ActivityFilter, ActivityRecord, Store } from '../store/port.ts';
import type { Page, PageRequest } from '../store/sql.ts';
import type { ManagedKey } from '../store/tables/managed-keys.ts';
import { toActivity } from './activity.ts';
import { looksAt } from './pages.ts';

type Search = Body<'searchActivity'>;

/** Newest first. A record must match all given filters. */
export async function searchActivity(store: Store, search: Search, page: PageRequest): Promise<Page<Activity>> {
  if (search.aboutType !== undefined && search.about === undefined) throw invalidField('about', 'is required');
  const filters = search.about === undefined ? [await filterOf(store, search)] : await filtersAbout(store, search);
  const pages = await Promise.all(filters.map((filter) => filter && store.activity.search(filter, page)));
  const found = newestOf(
    pages.filter((each) => each !== undefined),
    page.limit,
  );
  const items = found.items.map(toActivity);
  return found.next === undefined ? { items } : { items, next: found.next };
}

/** The log's filter; undefined if nothing can match. */
async function filterOf(store: Store, search: Search): Promise<ActivityFilter | undefined> {
  const keyids = await keysMeant(store, search);
  if (keyids?.length === 0) return undefined;
  return {
    ...(keyids && { keyids }),
    ...(search.action !== undefined && { actions: actionsMeant(search.action) }),
    ...(search.ring !== undefined && { ringname: search.ring.toLowerCase() }),
    ...(search.valid !== undefined && { valid: search.valid }),
    ...(search.start !== undefined && { start: search.start }),
    ...(search.end !== undefined && { end: search.end }),
    ...(search.props !== undefined && { props: search.props }),
    ...(search.address !== undefined && { address: blockOf(search.address) }),
    ...(search.object !== undefined && { object: search.object }),
    ...(search.granted !== undefined && { granted: flagsMeant(search.granted) }),
    ...(search.revoked !== undefined && { revoked: flagsMeant(search.revoked) }),
    ...(search.exclude !== undefined && { exclude: search.exclude }),
    ...(search.reads === false && { withoutGranted: readActions }),
  };
}

const insteadOfAbout = ['keyid', 'accountId', 'accountUid', 'ring', 'object'] as const;

/** The filters that together find what was done by one thing, with it and to it. Throws `invalid`. */
async function filtersAbout(store: Store, { about = '', aboutType, ...others }: Search) {
  const beside = insteadOfAbout.find((name) => others[name] !== undefined);
  if (beside !== undefined) throw invalidField('about', `cannot be combined with ${beside}`);
  if (aboutType !== undefined) return ofType(store, aboutType, about, others);
  const ring = await ringOfId(store, about);
  if (ring) {
    const { start = ring.start, end = ring.end } = others;
    const inItsTime = { ...others, start: Math.max(start, ring.start), end: Math.min(end, ring.end) };
    const itsName = await ofType(store, ring.type, ring.name, inItsTime);
    return [...itsName, await filterOf(store, { ...others, object: about })];
  }
  const { callers, accounts } = await meantBy(store, about);
  const objects = [...new Set([about, ...callers, ...accounts])];
  return Promise.all([
    filterOf(store, { ...others, ring: about }),
    ...accounts.map((accountId) => filterOf(store, { ...others, accountId })),
    ...callers.map((keyid) => filterOf(store, { ...others, keyid })),
    ...objects.map((object) => filterOf(store, { ...others, object })),
  ]);
}

/** A ring or managed key, whose uses are recorded under its name, and the time in which that name was its own. */
interface NamedRing {
  readonly type: RingType;
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

/** The ring or managed key of an id; one that is gone as the newest record about it tells. */
async function ringOfId(store: Store, id: string): Promise<NamedRing | undefined> {
  if (!/^(?:ring|mkey)_/.test(id)) return undefined;
  const known = await store.transaction(({ managedKeys, rings }): NamedRing | undefined => {
    const key = managedKeys.byId(id);
    if (key) return named('managed-key', key);
    const [ring, asym] = [rings.byId('ks', id), rings.byId('asym', id)];
    if (ring) return named('keyring', ring);
    return asym && named('asym-keyring', asym);
  });
  return known ?? recordedRing(store, id);
}

function named(
  type: RingType,
  { name, createdAt, deletedAt = Number.MAX_SAFE_INTEGER }: Pick<ManagedKey, 'name' | 'createdAt' | 'deletedAt'>,
): NamedRing {
  return { type, name, start: createdAt, end: deletedAt };
}

async function recordedRing(store: Store, id: string): Promise<NamedRing | undefined> {
  const [record] = (await store.activity.search({ object: id }, { limit: 1 })).items;
  if (!record) return undefined;
  const { object, objects = [] } = detailsIn(record.props);
  const it = [...(object ? [object] : []), ...objects].find((each) => each.id === id);
  const type = ringTypes.find((each) => each === it?.type);
  return type && it?.name !== undefined ? { type, name: it.name, start: 0, end: record.createdAt } : undefined;
}

/** API keys of one name that a search is about together. */
const mostOfName = 5;

/** Ids of the callers and accounts that an id or name stands for. Throws `invalid` if they are too many. */
async function meantBy(store: Store, about: string) {
  const found = await store.transaction(({ apiKeys, users, accounts }) => ({
    keys: apiKeys.idsByName(about, mostOfName + 1),
    user: users.byUsername(about)?.id,
    account: accounts.byUid(about)?.id,
  }));
  if (found.keys.length > mostOfName) {
    throw invalidField('about', `is the name of more than ${mostOfName} API keys: give the id of one`);
  }
  const isAccount = /^acct_/.test(about);
  return {
    callers: [...(isAccount ? [] : [about]), ...found.keys, ...(found.user === undefined ? [] : [found.user])],
    accounts: [...(isAccount ? [about] : []), ...(found.account === undefined ? [] : [found.account])],
  };
}

/** The same for what is of one type. Actions that other programs report are about keyrings. */
async function ofType(store: Store, type: RingType, name: string, others: Search) {
  const withoutActions = new Set([...ownActions].filter((action) => typeOfAction(action) !== type));
  const itsOwn = [...ownActions].filter((action) => typeOfAction(action) === type);
  const used = await filterOf(store, { ...others, ring: name });
  const changed = await filterOf(store, { ...others, object: name });
  const wanted = used?.actions;
  const actions = wanted ? itsOwn.filter((action) => wanted.includes(action)) : itsOwn;
  return [
    used && { ...used, ...(type === 'keyring' ? { withoutActions } : { actions }) },
    changed && { ...changed, objectType: type },
  ];
}

function typeOfAction(action: string): RingType {
  if (action.startsWith('asym.')) return 'asym-keyring';
  return action.startsWith('key.') ? 'managed-key' : 'keyring';
}

/** The newest `limit` records of several pages that begin at the same place. */
function newestOf(pages: readonly Page<ActivityRecord>[], limit: number): Page<ActivityRecord> {
  const [only] = pages;
  if (pages.length < 2) return only ?? { items: [] };
  // A page that goes on says nothing of what is older than its end.
  const known = Math.max(...pages.map(({ next = 0 }) => next));
  const bySeq = new Map(pages.flatMap(({ items }) => items).map((record) => [record.seq, record]));
  const all = [...bySeq.values()].filter(({ seq }) => seq >= known).sort((a, b) => b.seq - a.seq);
  const items = all.slice(0, limit);
  const last = items.at(-1);
  return last && (known > 0 || all.length > limit) ? { items, next: last.seq } : { items };
}

/** Expands a `*` before or after the dot to all of the service's own actions that match. */
function actionsMeant(action: string): string[] {
  const [, resource, operation] = /^(?:(\*)\.[\w-]+|[\w-]+\.(\*))$/.exec(action) ?? [];
  if (resource === undefined && operation === undefined) return [action];
  const fits = (own: string): boolean =>
    resource === undefined ? own.startsWith(action.slice(0, -1)) : own.endsWith(action.slice(1));
  return [action, ...[...ownActions].filter(fits)];
}

function blockOf(text: string): string {
  const block = canonicalBlock(text);
  if (block !== undefined) return block;
  throw invalidField('address', 'expected an IPv4 or IPv6 address, or a block of them such as 192.0.2.0/24');
}

/** Flags that cover the searched one. An empty list means any flag. */
function flagsMeant(flag: string | true): string[] {
  return flag === true ? [] : flagsCovering(flag);
}

/** The key ids that match `keyid`, `accountId` and `accountUid` together. Undefined if none of them is given. */
async function keysMeant(store: Store, search: Search): Promise<string[] | undefined> {
  const { keyid, accountId, accountUid } = search;
  const sets: ReadonlySet<string>[] = [];
  if (keyid !== undefined) sets.push(new Set([keyid]));
  if (accountId !== undefined) sets.push(await keysOf(store, accountId));
  if (accountUid !== undefined) {
    const account = await store.transaction(({ accounts }) => accounts.byUid(accountUid));
    // The same account given by id and by uid is read once.
    if (!account) sets.push(new Set());
    else if (account.id !== accountId) sets.push(await keysOf(store, account.id));
  }
  const [first, ...others] = sets;
  return first && Array.from(first).filter((id) => others.every((set) => set.has(id)));
}

/** The account's keys and their owners: access tokens are recorded under the user's id. */
async function keysOf(store: Store, accountId: string): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  const looks = looksAt(store);
  let after: number | undefined;
  do {
    const request = { limit: 5000, ...(after !== undefined && { after }) };
    const page = await looks.look(({ apiKeys }) => apiKeys.idsOfAccount(accountId, request));
    for (const key of page.items) {
      ids.add(key.id);
      if (key.userId !== undefined) ids.add(key.userId);
    }
    after = page.next;
  } while (after !== undefined);
  await looks.durable();
  return ids;
}
