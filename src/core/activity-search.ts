// Searching the activity log: the filters of a search in the log's own terms, and everything about one thing.
import type { Activity } from '../api/activity.ts';
import type { Body } from '../api/endpoints.ts';
import { invalidField } from '../errors.ts';
import { ownActions, readActions } from '../model/actions.ts';
import type { RingType } from '../model/activity-details.ts';
import { canonicalBlock } from '../model/addresses.ts';
import { flagsCovering } from '../model/flags.ts';
import type { ActivityFilter, ActivityRecord, Store } from '../store/port.ts';
import type { Page, PageRequest } from '../store/sql.ts';
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
  const accountId = /^acct_/.test(about) ? about : undefined;
  return Promise.all([
    filterOf(store, { ...others, ...(accountId === undefined ? { keyid: about } : { accountId }) }),
    filterOf(store, { ...others, ring: about }),
    filterOf(store, { ...others, object: about }),
  ]);
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
