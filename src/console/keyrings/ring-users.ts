// The API keys that may use a keyring: those whose flags name it keep it from being deleted.
import type { SafeApiKey } from '../../api/apikeys.ts';
import type { Client } from '../../client/client.ts';
import { stateOf } from '../apikeys/key-change.ts';
import { namesRing, ringFlags } from '../flags/draft.ts';
import { countedText, countText } from '../text.ts';

export interface RingUsers {
  /** Active keys whose flags name the keyring. */
  readonly naming: readonly SafeApiKey[];
  /** All active keys that may use it. */
  readonly active: readonly SafeApiKey[];
  /** There are more keys than were looked at. */
  readonly hasMore: boolean;
}

const mostNamed = 3;
const mostLooked = 1000;

export async function ringUsers(api: Client, name: string, signal: AbortSignal): Promise<RingUsers> {
  const { data, pagination } = await api.searchKeyringApiKeys(
    { keyringname: name, wildcard: true, limit: mostLooked },
    { signal },
  );
  const active = data.filter((key) => stateOf(key, Date.now()) === 'active');
  const naming = active.filter(({ flags }) => namesRing(ringFlags(flags, name), name));
  return { naming, active, hasMore: pagination.hasMore };
}

/** Why the keyring cannot be deleted, and what to do about it; undefined if no key prevents it. */
export function hindranceText(users: RingUsers | undefined): string | undefined {
  if (users === undefined || users.naming.length === 0) return undefined;
  const { naming, hasMore } = users;
  const names = naming.slice(0, mostNamed).map(({ name, keyid }) => (name === '' ? keyid : name));
  const more = naming.length - names.length;
  const isOne = naming.length === 1;
  const count = `${hasMore ? 'at least ' : ''}${countedText(naming.length, 'active API key')}`;
  const named = `${names.join(', ')}${more > 0 ? ` and ${countText(more)} more` : ''}`;
  const advice = `Disable ${isOne ? 'it' : 'them'} first, or revoke ${isOne ? 'its' : 'their'} flags that name it.`;
  return `${count} ${isOne ? 'names' : 'name'} it (${named}). ${advice}`;
}

/** How many API keys a change to keyrings concerns. */
export function allUsersText(users: readonly RingUsers[], isOne: boolean): string {
  const ids = new Set(users.flatMap(({ active }) => active.map(({ keyid }) => keyid)));
  const count = `${users.some(({ hasMore }) => hasMore) ? 'At least ' : ''}${countedText(ids.size, 'active API key')}`;
  return `${count} may use ${isOne ? 'it' : 'them'}, and so may users with the flags.`;
}
