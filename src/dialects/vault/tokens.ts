// Tokens of the transit engine's clients: an API key's secret, which they look up, try to renew, or get by AppRole for
// the key's id and that secret.
import { activityRecord } from '../../core/activity.ts';
import type { World } from '../../core/context.ts';
import { Bearer, type Origin } from '../../core/credential.ts';
import type { LoginBackoff } from '../../core/login-backoff.ts';
import { identify } from '../../http/admission.ts';
import type { TenantHandle } from '../../http/tenant-directory.ts';
import type { Flags } from '../../model/flags.ts';
import type { JsonObject } from '../../model/json.ts';
import { found, permissionDenied, problem, type Told } from './answers.ts';

/** A token that came, and to whom. */
export interface TokenAsked {
  readonly token: string | undefined;
  readonly from: Origin;
  readonly handle: TenantHandle;
  readonly world: World;
}

/** A login to a tenant, or to one that there is not. */
interface LoginAsked extends Omit<TokenAsked, 'handle'> {
  readonly handle: TenantHandle | undefined;
  /** What named a tenant that there is not. */
  readonly unknownTenant: string;
}

interface Holder {
  readonly id: string;
  readonly createdAt: number;
  /** Undefined = never. */
  readonly expiresAt: number | undefined;
}

/** Characters that are remembered of a tenant that there is not. */
const longestName = 253;

/** Who holds the token, which is recorded; undefined where nobody does that is let in. */
export async function holderOf(asked: TokenAsked, action: string, status: number): Promise<Holder | undefined> {
  const { token, from, handle, world } = asked;
  if (token === undefined) return undefined;
  return handle.store.transaction((tx) => {
    const known = identify(tx, new Bearer(token), from, world.now());
    if (!known) return undefined;
    const { caller, usable } = known;
    const told = { keyid: caller.id, action, validAction: usable && status < 400, status: usable ? status : 401 };
    tx.record(activityRecord(world, { ...told, address: from.remoteAddress }));
    if (!usable) return undefined;
    const key = caller.kind === 'apikey' ? tx.apiKeys.byId(caller.id) : undefined;
    return { id: caller.id, createdAt: key?.createdAt ?? world.now(), expiresAt: key?.expiresAt };
  });
}

/** What the token's holder may do; undefined where nobody holds it, or may use it. Records nothing. */
export async function flagsOf({ token, from, handle, world }: TokenAsked): Promise<Flags | undefined> {
  if (token === undefined) return undefined;
  const known = await handle.store.transaction((tables) => identify(tables, new Bearer(token), from, world.now()));
  return known?.usable ? known.caller.flags : undefined;
}

export async function lookUpSelf(asked: TokenAsked): Promise<Told> {
  const holder = await holderOf(asked, 'session.read', 200);
  if (!holder) return permissionDenied;
  const { id, createdAt, expiresAt } = holder;
  return found({
    accessor: id,
    creation_time: Math.floor(createdAt / 1000),
    creation_ttl: expiresAt === undefined ? 0 : Math.floor((expiresAt - createdAt) / 1000),
    display_name: id,
    entity_id: '',
    expire_time: expiresAt === undefined ? null : new Date(expiresAt).toISOString(),
    explicit_max_ttl: 0,
    id: asked.token,
    issue_time: new Date(createdAt).toISOString(),
    meta: null,
    num_uses: 0,
    orphan: true,
    path: 'auth/token/create',
    policies: ['default'],
    renewable: false,
    ttl: expiresAt === undefined ? 0 : secondsUntil(expiresAt, asked.world),
    type: 'service',
  });
}

/** A key without an end is answered as a token that has none. */
export async function renewSelf(asked: TokenAsked): Promise<Told> {
  const holder = await holderOf(asked, 'session.refresh', 200);
  if (!holder) return permissionDenied;
  const { id, expiresAt } = holder;
  if (expiresAt === undefined) return problem(400, 'invalid lease ID');
  return { status: 200, auth: authOf(id, asked.token, secondsUntil(expiresAt, asked.world)) };
}

/**
 * By AppRole: the role is the API key's id, the secret id its secret, and the token that secret again. At the pace of
 * other logins. Throws `rate-limited`, for whoever comes from there before the body is read.
 *
 * A tenant that there is not answers, waits and counts as one without keys, so that nobody learns which there are.
 */
export async function logIn(asked: LoginAsked, backoff: LoginBackoff, read: () => Promise<JsonObject>): Promise<Told> {
  const { handle, from, unknownTenant } = asked;
  const tenant = handle?.tenant.id ?? `none ${unknownTenant.slice(0, longestName)}`;
  const origin = { tenant, address: from.remoteAddress ?? 'local' };
  const refusal = backoff.refusal(origin);
  if (refusal) throw refusal;
  const { role_id: role, secret_id: secret } = await read();
  const wrong = problem(400, 'invalid role or secret ID');
  if (typeof role !== 'string' || typeof secret !== 'string' || secret === '') return wrong;
  const turn = await backoff.begin({ ...origin, name: role });
  try {
    const holder = handle && (await holderOfRole({ ...asked, handle }, role, secret));
    if (holder) turn.succeeded();
    else turn.failed();
    return holder ? { status: 200, auth: authOf(holder.id, secret, 0) } : wrong;
  } finally {
    turn.abandoned();
  }
}

/** Whose role and secret these are. A wrong secret of a key is recorded as that key's failed login. */
async function holderOfRole(asked: TokenAsked, role: string, secret: string): Promise<Holder | undefined> {
  const { handle, from, world } = asked;
  const known = await handle.store.transaction((tables) => identify(tables, new Bearer(secret), from, world.now()));
  if (known?.caller.kind === 'apikey' && known.caller.id === role) {
    return holderOf({ ...asked, token: secret }, 'session.create', 200);
  }
  await handle.store.transaction((tx) => {
    if (!tx.apiKeys.byId(role)) return;
    const told = { keyid: role, action: 'session.create', validAction: false, status: 400 };
    tx.record(activityRecord(world, { ...told, address: from.remoteAddress }));
  });
  return undefined;
}

function secondsUntil(time: number, world: World): number {
  return Math.max(0, Math.floor((time - world.now()) / 1000));
}

function authOf(id: string, token: string | undefined, seconds: number): object {
  const policies = ['default'];
  const lease = { lease_duration: seconds, renewable: false, entity_id: '', token_type: 'service', orphan: true };
  return { client_token: token, accessor: id, policies, token_policies: policies, metadata: {}, ...lease };
}
