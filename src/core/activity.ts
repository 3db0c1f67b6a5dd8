// The activity log: making a record, fetching one, and a search whose filters speak of accounts. Reading runs beside a
// transaction, since records may have to be fetched from closed segments.
import type { Activity } from '../api/activity.ts';
import type { Body } from '../api/endpoints.ts';
import { KmsError } from '../errors.ts';
import type { ActivityFilter, ActivityInput, ActivityRecord, Store } from '../store/port.ts';
import type { Page, PageRequest } from '../store/sql.ts';
import type { World } from './context.ts';

/** A record made now, of something that was done: granted, status 200, about no ring, unless it says otherwise. */
export function activityRecord(
  world: World,
  {
    keyid,
    action,
    ringname = '',
    validAction = true,
    status = 200,
    props = {},
  }: Pick<ActivityInput, 'keyid' | 'action'> &
    Partial<Pick<ActivityInput, 'ringname' | 'validAction' | 'status' | 'props'>>,
): ActivityInput {
  return {
    id: world.newId('act'),
    createdAt: world.now(),
    keyid,
    action,
    ringname,
    validAction,
    status,
    props,
  };
}

/** All given filters must hold. The newest first. */
export async function searchActivity(
  store: Store,
  search: Body<'searchActivity'>,
  page: PageRequest,
): Promise<Page<Activity>> {
  const keyids = await keysMeant(store, search);
  if (keyids?.length === 0) return { items: [] };
  const filter: ActivityFilter = {
    ...(keyids && { keyids }),
    ...(search.action !== undefined && { action: search.action }),
    ...(search.ring !== undefined && { ringname: search.ring.toLowerCase() }),
    ...(search.valid !== undefined && { valid: search.valid }),
    ...(search.start !== undefined && { start: search.start }),
    ...(search.end !== undefined && { end: search.end }),
    ...(search.props !== undefined && { props: search.props }),
  };
  const found = await store.searchActivity(filter, page);
  const items = found.items.map(toActivity);
  return found.next === undefined ? { items } : { items, next: found.next };
}

/** Throws `not-found`. */
export async function getActivity(store: Store, id: string): Promise<Activity> {
  const record = await store.findActivity(id);
  if (!record) throw new KmsError('not-found', 'no such activity');
  return toActivity(record);
}

/** The keys that `keyid`, `accountId` and `accountUid` leave; undefined when none of them is given. */
async function keysMeant(store: Store, search: Body<'searchActivity'>): Promise<string[] | undefined> {
  const { keyid, accountId, accountUid } = search;
  const sets: ReadonlySet<string>[] = [];
  if (keyid !== undefined) sets.push(new Set([keyid]));
  if (accountId !== undefined) sets.push(await keysOf(store, accountId));
  if (accountUid !== undefined) {
    const account = await store.peek(({ accounts }) => accounts.byUid(accountUid));
    // One account under both of its names is gone through once.
    if (!account) sets.push(new Set());
    else if (account.id !== accountId) sets.push(await keysOf(store, account.id));
  }
  const [first, ...others] = sets;
  return first && Array.from(first).filter((id) => others.every((set) => set.has(id)));
}

/** An account's keys, and the users behind those, whose access tokens are recorded under the user's id. */
async function keysOf(store: Store, accountId: string): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  let after: number | undefined;
  do {
    const request = { limit: 5000, ...(after !== undefined && { after }) };
    const page = await store.peek(({ apiKeys }) => apiKeys.idsOfAccount(accountId, request));
    for (const key of page.items) {
      ids.add(key.id);
      if (key.userId !== undefined) ids.add(key.userId);
    }
    after = page.next;
  } while (after !== undefined);
  return ids;
}

function toActivity(record: ActivityRecord): Activity {
  const { seq: _, ...activity } = record;
  return activity;
}
