// API keys: create, list, get, delete.
import { hashSecret, isWellFormedApiKey } from '../crypto/api-key.ts';
import { KmsError } from '../errors.ts';
import type { Tables } from '../store/port.ts';
import type { Page, PageRequest } from '../store/sql.ts';
import type { ApiKey } from '../store/tables/api-keys.ts';
import { type AccountRef, findAccount } from './account-lookup.ts';
import { makeApiKey } from './api-key-making.ts';
import { type FullApiKey, type SafeApiKey, safeApiKey } from './api-key-wire.ts';
import type { Context } from './context.ts';
import { checkFlags, flagsOfText, parseFlags } from './flags.ts';
import { mayGrant, mayTouch } from './grants.ts';
import type { JsonObject } from './json.ts';
import { mapPage } from './pages.ts';
import { needRoom } from './quotas.ts';

export interface CreateApiKeyInput {
  readonly account: AccountRef;
  readonly flags?: JsonObject;
  readonly props?: JsonObject;
}

/** The answer alone has the secret. A key made by a user belongs to that user. */
export async function createApiKey(ctx: Context, input: CreateApiKeyInput): Promise<FullApiKey> {
  const { tx, caller } = ctx;
  const flags = checkFlags(input.flags ?? {});
  const account = await findAccount(tx, input.account);
  mayGrant(caller, parseFlags(flags));
  await needRoom(ctx, 'apikeys', () => tx.apiKeys.count());
  const userId = caller.kind === 'user' ? caller.userId : undefined;
  return makeApiKey(ctx, { accountId: account.id, userId, flags, props: input.props ?? {} });
}

/** The oldest first. */
export async function listApiKeys({ tx }: Context, input: { readonly page: PageRequest }): Promise<Page<SafeApiKey>> {
  return mapPage(await tx.apiKeys.list(input.page), safeApiKey);
}

export async function getApiKey({ tx }: Context, input: { readonly keyid: string }): Promise<SafeApiKey> {
  return safeApiKey(await findApiKey(tx, input.keyid));
}

/** `key` is the secret. */
export async function deleteApiKey(
  { tx, caller }: Context,
  input: { readonly key: string },
): Promise<Record<string, never>> {
  const key = await findBySecret(tx, input.key);
  mayTouch(caller, { id: key.id, flags: flagsOfText(key.flagsText) });
  await tx.apiKeys.erase(key.id);
  return {};
}

export async function findApiKey(tables: Pick<Tables, 'apiKeys'>, id: string): Promise<ApiKey> {
  const key = await tables.apiKeys.byId(id);
  if (!key) throw unknownApiKey();
  return key;
}

/** The key of a secret. What is no secret by its form is not looked up. */
export async function findBySecret(tables: Pick<Tables, 'apiKeys'>, secret: string): Promise<ApiKey> {
  const key = isWellFormedApiKey(secret) ? await tables.apiKeys.bySecretHash(hashSecret(secret)) : undefined;
  if (!key) throw unknownApiKey();
  return key;
}

function unknownApiKey(): KmsError {
  return new KmsError('not-found', 'there is no such API key');
}
