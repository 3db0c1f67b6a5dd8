// Mounts, as Vault's clients look them up. Every name is one: of the KV engine if it begins with `secret` or `kv`, else
// of the transit engine.
import { version } from '../../version.ts';
import { found, type VaultResponse } from './answers.ts';
import { isKvMount } from './kv.ts';

/** An entry in a list of mounts, without settings. */
function mount(type: string, description: string, options: object | null): object {
  return {
    accessor: type,
    config: { default_lease_ttl: 0, force_no_cache: false, max_lease_ttl: 0 },
    deprecation_status: 'supported',
    description,
    external_entropy_access: false,
    local: false,
    options,
    plugin_version: '',
    running_plugin_version: version,
    running_sha256: '',
    seal_wrap: false,
    type,
    uuid: '',
  };
}

const transitText = 'keys of the appliance, under any name of a mount; no backup, no restore, no convergent encryption';
const transit = mount('transit', transitText, null);
const kvText = 'secrets of databases, under names of mounts that begin with secret or kv; no patch, no subkeys';
const kvOptions = { version: '2' };
const kv = mount('kv', kvText, kvOptions);
const secret = { 'secret/': kv, 'transit/': transit };
const auth = {
  'approle/': mount('approle', 'the id of an API key as role id, its secret as secret id', null),
  'token/': mount('token', 'secrets of API keys: lookup-self and renew-self', null),
};

/** Lists of mounts, one of them, or how it is tuned; undefined for any other path. */
export function mounts(method: string, path: readonly string[]): VaultResponse | undefined {
  if (method !== 'GET') return undefined;
  const [first, ...rest] = path.slice(1);
  if (first === 'auth') return rest.length === 0 ? found(auth) : undefined;
  if (first === 'mounts') return rest.length === 0 ? found(secret) : oneMount(rest);
  if (first !== 'internal' || rest[0] !== 'ui' || rest[1] !== 'mounts') return undefined;
  const below = rest.slice(2);
  return found(below.length === 0 ? { secret, auth } : mountOf(below));
}

function oneMount(name: readonly string[]): VaultResponse {
  const isTune = name.length > 1 && name.at(-1) === 'tune';
  const isKv = isKvMount(isTune ? name.slice(0, -1) : name);
  const description = isKv ? kvText : transitText;
  const tuned = { default_lease_ttl: 0, description, force_no_cache: false, max_lease_ttl: 0 };
  const data = isTune ? { ...tuned, ...(isKv && { options: kvOptions }) } : isKv ? kv : transit;
  return { ...found(data), beside: data };
}

/** The mount of a path below it: up to the first part that can end a KV engine's name, or else the first part. */
function mountOf(path: readonly string[]): object {
  const end = path.findIndex((part) => isKvMount([part]));
  return end < 0 ? { ...transit, path: `${path[0]}/` } : { ...kv, path: `${path.slice(0, end + 1).join('/')}/` };
}
