// Known names are proposed where one of an account or a ring is typed; there are none where they may not be listed.
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

function useNames(action: string, load: (signal: AbortSignal) => Promise<readonly string[]>): readonly string[] {
  const { may } = useSession();
  const answer = useAnswer(async (signal) => (may.allows(action) ? load(signal).catch(() => []) : []));
  return answer.is === 'ready' ? answer.value : [];
}
