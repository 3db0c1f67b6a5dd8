// Vault's `sys` paths: the server's state, which anyone may read, and mounts and capabilities, for holders of a token.
// Every response must be true, because programs rely on it.
import type { Access } from '../../api/endpoint.ts';
import { type EndpointId, endpoints } from '../../api/endpoints.ts';
import type { Flags } from '../../model/flags.ts';
import type { JsonObject } from '../../model/json.ts';
import { version } from '../../version.ts';
import { found, hasNoBody, invalid, isSealed, noSuchRoute, type VaultResponse } from './answers.ts';
import { mounts } from './mounts.ts';
import { isWrite } from './operation.ts';
import { operationOf } from './operations.ts';
import type { Target } from './target.ts';

/** The server's state; undefined for paths that need a token. */
export function serverState({ method, parts, query }: Target, sealed: boolean, now: number): VaultResponse | undefined {
  const isRead = method === 'GET' || method === 'HEAD';
  const place = parts.slice(1).join('/');
  switch (isRead ? place : undefined) {
    case 'init':
      return { status: 200, bare: { initialized: true } };
    case 'health':
      return health(query, sealed, now);
    case 'seal-status': {
      const threshold = { t: 1, n: 1, progress: 0, nonce: '' };
      const rest = { version, migration: false, recovery_seal: false, storage_type: 'kms' };
      return { status: 200, bare: { type: 'kms', initialized: true, sealed, ...threshold, ...rest } };
    }
    // `bao status` and `vault status` request it.
    case 'leader': {
      const bare = { ha_enabled: false, is_self: false, leader_address: '', leader_cluster_address: '' };
      return sealed ? isSealed : { status: 200, bare };
    }
    default:
      return isAboutCapabilities(method, parts) || mounts(method, parts) ? undefined : noSuchRoute(parts);
  }
}

function health(query: URLSearchParams, sealed: boolean, now: number): VaultResponse {
  const wanted = Number(query.get('sealedcode') ?? 503);
  const status = sealed ? (Number.isInteger(wanted) && wanted >= 200 && wanted <= 599 ? wanted : 400) : 200;
  const bare = {
    initialized: true,
    sealed,
    standby: sealed,
    replication_performance_mode: sealed ? 'unknown' : 'primary',
    replication_dr_mode: sealed ? 'unknown' : 'disabled',
    server_time_utc: Math.floor(now / 1000),
    version,
  };
  return hasNoBody(status) ? { status } : { status, bare };
}

export function isAboutCapabilities(method: string, path: readonly string[]): boolean {
  return isWrite(method) && path.length === 2 && path[1] === 'capabilities-self';
}

/** Vault's names of the methods. */
const capabilityNames: readonly (readonly [name: string, method: string, isList: boolean])[] = [
  ['create', 'POST', false],
  ['delete', 'DELETE', false],
  ['list', 'GET', true],
  ['read', 'GET', false],
  ['update', 'POST', false],
];

const accesses = new Map<EndpointId, Access>(endpoints.map(({ id, access }) => [id, access]));

/** Whether the flags allow the endpoint, for the key of that name. */
function isAllowed(flags: Flags, id: EndpointId, name: string | undefined): boolean {
  const access = accesses.get(id);
  if (access?.kind !== 'flag') return access?.kind === 'credential';
  const { action, orBoth } = access;
  return flags.allows(action, name) || (orBoth?.every((each) => flags.allows(each, name)) ?? false);
}

const mostPaths = 100;
const longestPath = 512;

/** The name of the key that the parameters of an operation name, perhaps by an alias; undefined if they name none. */
type NameOf = (params: Readonly<Record<string, string>>) => string | undefined;

/** Capabilities that the flags grant on each path that the body names. Throws `invalid`. */
export function capabilities(given: JsonObject, flags: Flags, nameOf: NameOf): VaultResponse {
  const { paths, path } = given;
  const asked: unknown = paths ?? (path === undefined || path === null ? [] : [path]);
  const list: readonly unknown[] = Array.isArray(asked) ? asked : typeof asked === 'string' ? asked.split(',') : [];
  if (list.length === 0) throw invalid('paths must be supplied');
  if (list.length > mostPaths) throw invalid(`expected at most ${mostPaths} paths, got ${list.length}`);
  const data: Record<string, readonly string[]> = {};
  for (const each of list) {
    if (typeof each !== 'string' || each.length > longestPath)
      throw invalid('expected paths of at most 512 characters');
    Object.defineProperty(data, each, {
      value: capabilitiesAt(each, flags, nameOf),
      enumerable: true,
      configurable: true,
    });
  }
  const [first] = list;
  return found(list.length === 1 ? { ...data, capabilities: data[String(first)] } : data);
}

/** Paths that every holder of a token may use. */
const ofHolders: Readonly<Record<string, readonly string[]>> = {
  'auth/token/lookup-self': ['create', 'read', 'update'],
  'auth/token/renew-self': ['create', 'update'],
  'sys/capabilities-self': ['create', 'update'],
};

function capabilitiesAt(text: string, flags: Flags, nameOf: NameOf): readonly string[] {
  const parts = text.split('/').filter((part) => part !== '');
  const own = Object.hasOwn(ofHolders, parts.join('/')) ? ofHolders[parts.join('/')] : undefined;
  if (own) return own;
  if (parts[0] === 'sys') return mounts('GET', parts) ? ['read'] : denied;
  if (parts[0] === 'auth') return denied;
  const able = capabilityNames.filter(([, method, isList]) => {
    const operation = operationOf({ method, path: parts, isList, query: noQuery });
    if (typeof operation !== 'object') return false;
    if ('setting' in operation) return true;
    return isAllowed(flags, operation.id, nameOf(operation.params ?? {}));
  });
  return able.length === 0 ? denied : able.map(([name]) => name);
}

const noQuery = new URLSearchParams();

const denied: readonly string[] = ['deny'];
