// Names to propose where one of an account or a ring is typed; none where they may not be listed.
import type { Client } from '../../client/client.ts';
import { useAnswer } from '../parts/answer.tsx';
import { useSession } from '../session.ts';

/** More than this nobody looks through. */
const most = 500;

export function useRingNames(api: Client): readonly string[] {
  const { may } = useSession();
  const answer = useAnswer(async (signal) => {
    if (!may.allows('keyring.list')) return [];
    const { data } = await api.listKeyrings({ limit: most }, { signal }).catch(() => ({ data: [] }));
    return data.map(({ name }) => name);
  });
  return answer.is === 'ready' ? answer.value : [];
}

export function useAccountUids(api: Client): readonly string[] {
  const { may } = useSession();
  const answer = useAnswer(async (signal) => {
    if (!may.allows('account.read')) return [];
    const { data } = await api.listAccounts({ limit: most }, { signal }).catch(() => ({ data: [] }));
    return data.map(({ uid }) => uid);
  });
  return answer.is === 'ready' ? answer.value : [];
}

export function isAccountId(text: string): boolean {
  return /^acct_[0-9a-z]{26}$/.test(text);
}
