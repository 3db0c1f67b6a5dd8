// Accounts, which own API keys: make, find, list, change and delete them.
import type { Account } from '../api/accounts.ts';
import type { Body } from '../api/endpoints.ts';
import { fieldsError, invalidField, KmsError } from '../errors.ts';
import { changedFields, FlagNames, mostNamed, mostTouched, type ResourceRef } from '../model/activity-details.ts';
import { flagsOfText } from '../model/flags.ts';
import { longestUid } from '../model/names.ts';
import { timestamp } from '../model/timestamp.ts';
import type { Tables } from '../store/port.ts';
import type { PageRequest, Slices } from '../store/sql.ts';
import type { NewAccount, Account as Row } from '../store/tables/accounts.ts';
import type { ApiKey } from '../store/tables/api-keys.ts';
import { holderNeeded, mayTouchAll } from './authorization.ts';
import { type Context, needQuota } from './context.ts';
import { looksAt, type Reader, readInParts, type WrittenPage } from './pages.ts';

export type AccountRef = { readonly id: string } | { readonly uid: string };

/** The account. Throws `not-found`. */
export function findAccount(tables: Pick<Tables, 'accounts'>, ref: AccountRef): Row {
  const account = 'uid' in ref ? tables.accounts.byUid(ref.uid) : tables.accounts.byId(ref.id);
  if (!account) throw new KmsError('not-found', 'there is no such account');
  return account;
}

export function createAccount(ctx: Context, input: Body<'createAccount'>): Account {
  checkUid(ctx.tx, input.uid);
  needQuota(ctx, 'accounts', () => ctx.tx.accounts.count());
  const account = makeAccount(ctx, input);
  ctx.note({ object: accountThing(account) });
  return accountAnswer(account);
}

/** The caller has checked permission and quota. */
export function makeAccount({ tx, world }: Pick<Context, 'tx' | 'world'>, input: Body<'createAccount'>): NewAccount {
  const now = world.now();
  const { uid, notes = '', props = {} } = input;
  const account = { id: world.newId('acct'), uid, notes, props, createdAt: now, updatedAt: now };
  tx.accounts.insert(account);
  return account;
}

/** Oldest first. */
export function listAccounts(
  { store }: Reader,
  { page }: { readonly page: PageRequest },
): Promise<WrittenPage<Account>> {
  return readInParts(looksAt(store), page, ({ accounts }, part) => accounts.list(part, accountAnswer));
}

export function getAccount({ tx }: Context, input: { readonly account: AccountRef }): Account {
  return accountAnswer(findAccount(tx, input.account));
}

/** Replaces each given field as a whole. */
export function updateAccount(ctx: Context, input: Body<'updateAccount'> & { readonly account: AccountRef }): Account {
  const { tx, world } = ctx;
  const account = findAccount(tx, input.account);
  const { uid = account.uid, notes = account.notes, props = account.props } = input;
  if (uid !== account.uid) checkUid(tx, uid);
  const change = { uid, notes, props };
  const updated = { ...account, ...change, updatedAt: world.now() };
  tx.accounts.update(updated);
  ctx.note({ object: accountThing(updated), changed: changedFields({ ...account }, change) });
  return accountAnswer(updated);
}

/** Deletes its API keys too; none of them may be stronger than the caller. Returns the deleted account. */
export function* deleteAccount(ctx: Context, input: { readonly account: AccountRef }): Slices<Account> {
  const { tx, caller } = ctx;
  const account = findAccount(tx, input.account);
  yield* mayTouchAll(caller, (look) => tx.apiKeys.lookAtAllOfAccount(account.id, caller.id, look));
  const revoked = new FlagNames();
  yield* tx.apiKeys.lookAtActiveOfAccount(account.id, (text) => revoked.add(flagsOfText(text)));
  const { items } = tx.apiKeys.idsOfAccount(account.id, { limit: mostTouched });
  const things = items.map(apiKeyThing);
  if (things.length > 0) ctx.touches({ actions: ['apikey.delete'], objects: things });
  const needHolder = holderNeeded(ctx);
  const objectCount = yield* tx.apiKeys.eraseOfAccount(account.id);
  tx.accounts.erase(account.id);
  needHolder();
  ctx.note({ object: accountThing(account), objects: things.slice(0, mostNamed), objectCount, revoked: revoked.list });
  return accountAnswer(account);
}

export function accountThing({ id, uid }: Pick<Row, 'id' | 'uid'>): ResourceRef {
  return { type: 'account', id, name: uid };
}

/** The API key. Throws `not-found`. */
export function findApiKey(tables: Pick<Tables, 'apiKeys'>, id: string): ApiKey {
  const key = tables.apiKeys.byId(id);
  if (!key) throw new KmsError('not-found', 'there is no such API key');
  return key;
}

export function apiKeyThing({ id, name }: Pick<ApiKey, 'id' | 'name'>): ResourceRef {
  return { type: 'apikey', id, name };
}

export function accountAnswer(account: Omit<Row, 'seq'>): Account {
  return {
    id: account.id,
    uid: account.uid,
    notes: account.notes,
    props: account.props,
    createdAt: timestamp(account.createdAt),
    updatedAt: timestamp(account.updatedAt),
  };
}

/** Throws `invalid` if it is too long, `conflict` if it is taken. Longer ones from older versions stay valid. */
function checkUid({ accounts }: Pick<Tables, 'accounts'>, uid: string): void {
  if ([...uid].length > longestUid) throw invalidField('uid', `expected at most ${longestUid} characters`);
  if (!accounts.byUid(uid)) return;
  throw fieldsError('conflict', [{ field: 'uid', message: 'another account has this uid' }]);
}

/** Whether a key is active and not expired. */
export function letsIn({ active, expiresAt }: Pick<ApiKey, 'active' | 'expiresAt'>, now: number): boolean {
  return active && (expiresAt === undefined || now < expiresAt);
}
