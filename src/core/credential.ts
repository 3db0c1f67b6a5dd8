// Who a bearer credential is. Access tokens will be told from API keys here, by their form.
import { hashSecret, isWellFormedApiKey } from '../crypto/api-key.ts';
import type { Tables } from '../store/port.ts';
import type { Caller } from './context.ts';
import { flagsOfText, parseFlags } from './flags.ts';

export interface Credential {
  readonly caller: Caller;
  /** False for a known one that no longer lets anybody in: it is recorded, and refused. */
  readonly usable: boolean;
}

/** The administrator at the machine, who opened the data directory or its socket. */
export const localCaller: Caller = { kind: 'local', id: 'local', flags: parseFlags({ '*': true }) };

/** The credential of this tenant that the text is; undefined for every other text. */
export async function authenticate(tables: Pick<Tables, 'apiKeys'>, bearer: string): Promise<Credential | undefined> {
  if (!isWellFormedApiKey(bearer)) return undefined;
  const key = await tables.apiKeys.credential(hashSecret(bearer));
  if (!key) return undefined;
  const caller: Caller = { kind: 'apikey', id: key.id, flags: flagsOfText(key.flagsText), accountId: key.accountId };
  return { caller: key.userId === undefined ? caller : { ...caller, userId: key.userId }, usable: key.active };
}
