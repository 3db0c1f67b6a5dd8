// Accounts: create, list, get, update, delete, and the API keys of one.
import { KmsError } from '../errors.ts';
import type { Tables } from '../store/port.ts';
import type { Page, PageRequest } from '../store/sql.ts';
import type { Account, NewAccount } from '../store/tables/accounts.ts';
import type { ApiKey } from '../store/tables/api-keys.ts';
import { type AccountRef, findAccount } from './account-lookup.ts';
import { type SafeApiKey, safeApiKey } from './api-key-wire.ts';
import type { Context } from './context.ts';
import { flagsOfText } from './flags.ts';
import { mayTouch } from './grants.ts';
import type { JsonObject } from './json.ts';
import { mapPage } from './pages.ts';
import { needRoom } from './quotas.ts';
import { timestamp } from './time.ts';

export interface AccountAnswer {
  readonly id: string;
  readonly uid: string;
  readonly notes: string;
  readonly props: JsonObject;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface AccountFields {
  readonly uid?: string;
  readonly notes?: string;
  readonly props?: JsonObject;
}

export async function createAccount(
  ctx: Context,
  input: AccountFields & { readonly uid: string },
): Promise<AccountAnswer> {
  await needFreeUid(ctx.tx, input.uid);
  await needRoom(ctx, 'accounts', () => ctx.tx.accounts.count());
  return accountAnswer(await makeAccount(ctx, input));
}

/** Who may make it, and whether there is room, was decided before. */
export async function makeAccount(
  { tx, world }: Pick<Context, 'tx' | 'world'>,
  input: AccountFields & { readonly uid: string },
): Promise<NewAccount> {
  const now = world.now();
  const { uid, notes = '', props = {} } = input;
  const account = { id: world.newId('acct'), uid, notes, props, createdAt: now, updatedAt: now };
  await tx.accounts.insert(account);
  return account;
}

/** The oldest first. */
export async function listAccounts(
  { tx }: Context,
  input: { readonly page: PageRequest },
): Promise<Page<AccountAnswer>> {
  return mapPage(await tx.accounts.list(input.page), accountAnswer);
}

export async function getAccount({ tx }: Context, input: { readonly account: AccountRef }): Promise<AccountAnswer> {
  return accountAnswer(await findAccount(tx, input.account));
}

/** Replaces each field that is given, whole. */
export async function updateAccount(
  { tx, world }: Context,
  input: AccountFields & { readonly account: AccountRef },
): Promise<AccountAnswer> {
  const account = await findAccount(tx, input.account);
  const { uid = account.uid, notes = account.notes, props = account.props } = input;
  if (uid !== account.uid) await needFreeUid(tx, uid);
  const updated = { ...account, uid, notes, props, updatedAt: world.now() };
  await tx.accounts.update(updated);
  return accountAnswer(updated);
}

/** Deletes its API keys too; none of them may be stronger than the caller. Answers the deleted account. */
export async function deleteAccount(
  { tx, caller }: Context,
  input: { readonly account: AccountRef },
): Promise<AccountAnswer> {
  const account = await findAccount(tx, input.account);
  const keys = await keysOf(tx, account.id);
  for (const key of keys) mayTouch(caller, { id: key.id, flags: flagsOfText(key.flagsText) });
  for (const key of keys) await tx.apiKeys.erase(key.id);
  await tx.accounts.erase(account.id);
  return accountAnswer(account);
}

/** The oldest first. */
export async function listAccountApiKeys(
  { tx }: Context,
  input: { readonly account: AccountRef; readonly page: PageRequest },
): Promise<Page<SafeApiKey>> {
  const account = await findAccount(tx, input.account);
  return mapPage(await tx.apiKeys.listByAccount(account.id, input.page), safeApiKey);
}

export function accountAnswer(account: Omit<Account, 'seq'>): AccountAnswer {
  return {
    id: account.id,
    uid: account.uid,
    notes: account.notes,
    props: account.props,
    createdAt: timestamp(account.createdAt),
    updatedAt: timestamp(account.updatedAt),
  };
}

async function keysOf({ apiKeys }: Pick<Tables, 'apiKeys'>, accountId: string): Promise<ApiKey[]> {
  const { items } = await apiKeys.listByAccount(accountId, { limit: Number.MAX_SAFE_INTEGER - 1 });
  return items;
}

async function needFreeUid({ accounts }: Pick<Tables, 'accounts'>, uid: string): Promise<void> {
  if (!(await accounts.byUid(uid))) return;
  const problem = 'another account has this uid';
  throw new KmsError('conflict', `uid: ${problem}`, { fields: { uid: problem } });
}
