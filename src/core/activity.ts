// Reading the activity log: one record, and a search whose filters speak of accounts. Both run beside a transaction, since
// records may have to be fetched from closed segments.
import { KmsError } from '../errors.ts';
import type { ActivityFilter, ActivityRecord, Store, Tables } from '../store/port.ts';
import type { Page, PageRequest } from '../store/sql.ts';
import type { JsonObject } from './json.ts';

export interface Activity {
  readonly id: string;
  readonly keyid: string;
  readonly createdAt: number;
  readonly action: string;
  readonly ringname: string;
  readonly validAction: boolean;
  readonly status: number;
  readonly props: JsonObject;
}

export interface ActivitySearch {
  readonly accountUid?: string;
  readonly accountId?: string;
  readonly action?: string;
  readonly ring?: string;
  readonly start?: number;
  readonly end?: number;
  readonly keyid?: string;
  readonly valid?: boolean;
  readonly props?: JsonObject;
}

/** All given filters must hold. The newest first. */
export async function searchActivity(store: Store, search: ActivitySearch, page: PageRequest): Promise<Page<Activity>> {
  const keyids = await store.peek((tables) => keysMeant(tables, search));
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
async function keysMeant(tables: Tables, search: ActivitySearch): Promise<string[] | undefined> {
  const sets: string[][] = [];
  if (search.keyid !== undefined) sets.push([search.keyid]);
  if (search.accountId !== undefined) sets.push(await keysOf(tables, search.accountId));
  if (search.accountUid !== undefined) {
    const account = await tables.accounts.byUid(search.accountUid);
    sets.push(account ? await keysOf(tables, account.id) : []);
  }
  const [first, ...others] = sets;
  return first?.filter((id) => others.every((set) => set.includes(id)));
}

/** An account's keys, and the users behind those, whose access tokens are recorded under the user's id. */
async function keysOf(tables: Tables, accountId: string): Promise<string[]> {
  const ids = new Set<string>();
  let after: number | undefined;
  do {
    const page = await tables.apiKeys.listByAccount(accountId, { limit: 1000, ...(after !== undefined && { after }) });
    for (const key of page.items) {
      ids.add(key.id);
      if (key.userId !== undefined) ids.add(key.userId);
    }
    after = page.next;
  } while (after !== undefined);
  return [...ids];
}

function toActivity(record: ActivityRecord): Activity {
  const { id, keyid, createdAt, action, ringname, validAction, status, props } = record;
  return { id, keyid, createdAt, action, ringname, validAction, status, props };
}
