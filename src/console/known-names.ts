// Known names of accounts, rings, users and API keys: suggested in input fields, and shown instead of ids. Empty if the
// user may not list them.
import type { KeyRing } from '../api/keyrings.ts';
import type { User } from '../api/users.ts';
import type { Client } from '../client/client.ts';
import { useAnswer } from './parts/state.ts';
import { useSession } from './session.ts';

/** Maximum number of names; no user looks through more. */
const limit = 500;

export function useRingNames(api: Client): readonly string[] {
  return useRings(api).map(({ name }) => name);
}

export function useRings(api: Client): readonly KeyRing[] {
  return useKnown('keyring.list', none, async (signal) => (await api.listKeyrings({ limit }, { signal })).data);
}

/** Account UIDs by account id. */
export function useAccountUids(api: Client): ReadonlyMap<string, string> {
  return useKnown('account.read', new Map(), async (signal) => {
    const { data } = await api.listAccounts({ limit }, { signal });
    return new Map(data.map(({ id, uid }) => [id, uid]));
  });
}

/** Names of users and API keys by their ids. */
export function useActorNames(api: Client): ReadonlyMap<string, string> {
  const { may } = useSession();
  const answer = useAnswer(async (signal) => {
    const page = { limit };
    const nothing = { data: [] };
    const [users, keys] = await Promise.all([
      may.allows('user.read') ? api.listUsers(page, { signal }).catch(() => nothing) : nothing,
      may.allows('apikey.read') ? api.listApiKeys(page, { signal }).catch(() => nothing) : nothing,
    ]);
    return new Map<string, string>([
      ...users.data.map(({ id, username }): [string, string] => [id, username]),
      ...keys.data.filter(({ name }) => name !== '').map(({ keyid, name }): [string, string] => [keyid, name]),
    ]);
  });
  return answer.is === 'ready' ? answer.value : noNames;
}

const noNames: ReadonlyMap<string, string> = new Map();

type KnownUser = Pick<User, 'id' | 'username' | 'displayName'>;

/** Users by their ids. */
export function useUsers(api: Client): ReadonlyMap<string, KnownUser> {
  return useKnown('user.read', new Map(), async (signal) => {
    const { data } = await api.listUsers({ limit }, { signal });
    return new Map(data.map((user) => [user.id, user]));
  });
}

const none: readonly KeyRing[] = [];

function useKnown<T>(action: string, nothing: T, load: (signal: AbortSignal) => Promise<T>): T {
  const { may } = useSession();
  const answer = useAnswer(async (signal) => (may.allows(action) ? load(signal).catch(() => nothing) : nothing));
  return answer.is === 'ready' ? answer.value : nothing;
}
