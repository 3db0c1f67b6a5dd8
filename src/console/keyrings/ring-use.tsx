// RingUse tells who a change to a keyring concerns: how many API keys may use it, and its last use.
import type { Client } from '../../client/client.ts';
import { Actor } from '../activity/record-parts.tsx';
import { useActorNames } from '../known-names.ts';
import { useAnswer } from '../parts/state.ts';
import { Ago } from '../parts/values.tsx';
import { countedText } from '../text.ts';

interface RingUseProps {
  readonly api: Client;
  /** Name of a keyring. */
  readonly name: string;
}

interface Use {
  readonly at: number;
  readonly by: string | null;
}

const mostLooked = 1000;

/** Nothing of what the user may not see. */
export function RingUse({ api, name }: RingUseProps) {
  const names = useActorNames();
  const users = useAnswer(
    async (signal) =>
      (await api.searchKeyringApiKeys({ keyringname: name, wildcard: true, limit: mostLooked }, { signal })).data,
    [name],
  );
  const use = useAnswer(async (signal) => latestUse(api, name, signal), [name]);
  const active = users.is === 'ready' ? users.value.filter(isUsable).length : undefined;
  const last = use.is === 'ready' ? use.value : undefined;
  if (active === undefined && last === undefined) return null;
  return (
    <p>
      {active !== undefined && (
        <span key="keys">{countedText(active, 'active API key')} may use it, and so may users with the flags. </span>
      )}
      {last && (
        <span key="last">
          It was last used <Ago at={last.at} />
          {last.by !== null && (
            <>
              {' '}
              by <Actor keyid={last.by} names={names} isInside />
            </>
          )}
          .
        </span>
      )}
    </p>
  );
}

function isUsable({ active, expiresAt }: { readonly active: boolean; readonly expiresAt: number | null }): boolean {
  return active && (expiresAt ?? Number.POSITIVE_INFINITY) > Date.now();
}

async function latestUse(api: Client, ringname: string, signal: AbortSignal): Promise<Use | undefined> {
  const { data } = await api.listKeys({ ringname, usage: true, limit: mostLooked }, { signal });
  const uses = data.flatMap(({ usage }) =>
    usage
      ? [
          { at: usage.lastEncryptAt ?? 0, by: usage.lastEncryptBy },
          { at: usage.lastDecryptAt ?? 0, by: usage.lastDecryptBy },
        ]
      : [],
  );
  const [latest] = uses.filter(({ at }) => at > 0).sort((one, other) => other.at - one.at);
  return latest;
}
