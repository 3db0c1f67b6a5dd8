// Disabling an API key: what stops with it, and how it is taken back.
import type { SafeApiKey } from '../../api/apikeys.ts';
import type { Client } from '../../client/client.ts';
import { toast } from '../parts/messages.tsx';
import { useAnswer } from '../parts/state.ts';
import { Ago } from '../parts/values.tsx';

/** Disables the key, and offers to take that back. */
export async function disableKey(api: Client, apikeyid: string, onUndone: () => void = () => {}): Promise<void> {
  await api.updateApiKey({ op: 'merge', apikeyid, active: false });
  toast('The key is disabled.', async () => {
    await api.updateApiKey({ op: 'merge', apikeyid, active: true });
    toast('The key is active again.');
    onUndone();
  });
}

/** Tells that programs stop, and when they last used the keys. */
export function KeysUse({ keys }: { readonly keys: readonly SafeApiKey[] }) {
  const isOne = keys.length === 1;
  const latest = Math.max(...keys.map(({ lastUsedAt }) => lastUsedAt ?? 0));
  return (
    <p>
      Programs that use {isOne ? 'it' : 'them'} are refused at once.{' '}
      {latest === 0 ? (
        <span key="never">{isOne ? 'It was never used.' : 'None was ever used.'}</span>
      ) : (
        <span key="used">
          {isOne ? 'It was last used' : 'The last use was'} <Ago at={latest} />.
        </span>
      )}
      <Mighty keys={keys} />
    </p>
  );
}

/** Names the active keys that may do everything. */
export function Mighty({ keys }: { readonly keys: readonly SafeApiKey[] }) {
  const mighty = keys.filter(({ active, flags }) => active && flags['*'] === true);
  if (mighty.length === 0) return null;
  const named = mighty.slice(0, mostNamed).map(({ name, keyid }) => (name === '' ? keyid : name));
  const more = mighty.length > mostNamed ? ` and ${mighty.length - mostNamed} more` : '';
  return <strong key="mighty"> {keys.length === 1 ? 'It' : `${named.join(', ')}${more}`} may do everything.</strong>;
}

const mostNamed = 5;

export function KeyUse({ api, id }: { readonly api: Client; readonly id: string }) {
  const answer = useAnswer((signal) => api.getApiKey({ apikeyid: id }, { signal }), [id]);
  return answer.is === 'ready' ? (
    <KeysUse keys={[answer.value]} />
  ) : (
    <p key="waiting">Programs that use it are refused at once.</p>
  );
}
