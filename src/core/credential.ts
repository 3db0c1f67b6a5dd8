// Who a bearer credential is: an API key or an access token, told apart by their form.
import { hashSecret, isWellFormedApiKey } from '../crypto/fast-hash.ts';
import { flagsOfText, parseFlags } from '../model/flags.ts';
import type { Tables } from '../store/port.ts';
import type { Caller } from './context.ts';
import { authenticateToken, type TokenVerdict } from './sessions.ts';

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
  now: number,
): Promise<Credential | undefined> {
  if (!isWellFormedApiKey(bearer)) return userOf(await authenticateToken(tables, bearer, now));
  const key = await tables.apiKeys.credential(hashSecret(bearer));
  if (!key) return undefined;
  const caller: Caller = { kind: 'apikey', id: key.id, flags: flagsOfText(key.flagsText), accountId: key.accountId };
  return { caller: key.userId === undefined ? caller : { ...caller, userId: key.userId }, usable: key.active };
}

/** An access token acts with the flags that its user has now. */
function userOf(verdict: TokenVerdict | undefined): Credential | undefined {
  if (!verdict) return undefined;
  const { userId } = verdict;
  if (verdict.kind === 'ended') return { caller: { kind: 'user', id: userId, userId, flags: noFlags }, usable: false };
  const { session, flagsText } = verdict;
  return { caller: { kind: 'user', id: userId, userId, session, flags: flagsOfText(flagsText) }, usable: true };
}
