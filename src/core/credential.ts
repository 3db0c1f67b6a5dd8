// Who a bearer credential is: an API key or an access token, told apart by their form.
import { hashSecret, isWellFormedApiKey } from '../crypto/fast-hash.ts';
import type { AddressSet } from '../model/addresses.ts';
import { flagsOfText, parseFlags } from '../model/flags.ts';
import type { Tables } from '../store/port.ts';
import type { ApiKey } from '../store/tables/api-keys.ts';
import type { Caller } from './context.ts';
import { authenticateToken, type TokenVerdict } from './sessions.ts';

/** Where a request comes from. */
export interface Origin {
  /** Through the local socket or from within the process: at the machine itself, which is no address. */
  readonly local?: boolean;
  readonly remoteAddress?: string | undefined;
}

interface Credential {
  readonly caller: Caller;
  /** False for a known one that no longer lets anybody in: it is recorded, and refused. */
  readonly usable: boolean;
}

/** The administrator at the machine, who opened the data directory or its socket. */
export const localCaller: Caller = { kind: 'local', id: 'local', flags: parseFlags({ '*': true }) };

const noFlags = parseFlags({});

/** The credential of this tenant that the text is; undefined for every other text. */
export async function authenticate(
  tables: Pick<Tables, 'apiKeys' | 'sessions' | 'users'>,
  bearer: string,
  from: Origin,
  now: number,
): Promise<Credential | undefined> {
  if (!isWellFormedApiKey(bearer)) return userOf(await authenticateToken(tables, bearer, now));
  const key = await tables.apiKeys.credential(hashSecret(bearer));
  if (!key) return undefined;
  const caller: Caller = { kind: 'apikey', id: key.id, flags: flagsOfText(key.flagsText), accountId: key.accountId };
  const usable = letsIn(key, now) && isGoodFrom(key.addresses, from);
  return { caller: key.userId === undefined ? caller : { ...caller, userId: key.userId }, usable };
}

/** Whether a key is active and has not ended. */
export function letsIn({ active, expiresAt }: Pick<ApiKey, 'active' | 'expiresAt'>, now: number): boolean {
  return active && (expiresAt === undefined || now < expiresAt);
}

/** Whoever is at the machine itself could do without the key. */
function isGoodFrom(addresses: AddressSet | undefined, { local, remoteAddress }: Origin): boolean {
  return !addresses || local === true || (remoteAddress !== undefined && addresses.has(remoteAddress));
}

/** An access token acts with the flags that its user has now. */
function userOf(verdict: TokenVerdict | undefined): Credential | undefined {
  if (!verdict) return undefined;
  const { userId } = verdict;
  if (verdict.kind === 'ended') return { caller: { kind: 'user', id: userId, userId, flags: noFlags }, usable: false };
  const { session, flagsText } = verdict;
  return { caller: { kind: 'user', id: userId, userId, session, flags: flagsOfText(flagsText) }, usable: true };
}
