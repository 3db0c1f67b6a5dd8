// Known names are proposed where one of an account or a ring is typed, and stand for the ids of users and API keys; there
// are none where they may not be listed.
import type { Client } from '../client/client.ts';
import { useAnswer } from './parts/state.ts';
import { useSession } from './session.ts';

/** More than this nobody looks through. */
const limit = 500;

export function useRingNames(api: Client): readonly string[] {
  return useNames('keyring.list', async (signal) => {
    const { data } = await api.listKeyrings({ limit }, { signal });
    return data.map(({ name }) => name);
  });
}

export function useAccountUids(api: Client): readonly string[] {
  return useNames('account.read', async (signal) => {
    const { data } = await api.listAccounts({ limit }, { signal });
    return data.map(({ uid }) => uid);
  });
}

/** What people call users and API keys, by their ids. */
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

function useNames(action: string, load: (signal: AbortSignal) => Promise<readonly string[]>): readonly string[] {
  const { may } = useSession();
  const answer = useAnswer(async (signal) => (may.allows(action) ? load(signal).catch(() => []) : []));
  return answer.is === 'ready' ? answer.value : [];
}
