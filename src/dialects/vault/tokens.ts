// Tokens of the transit engine's clients. A token is an API key's secret: clients look it up, try to renew it, or get
// it by an AppRole login with the key's id and that secret.
import { activityRecord } from '../../core/activity.ts';
import type { World } from '../../core/context.ts';
import { Bearer, type Origin } from '../../core/credential.ts';
import type { LoginBackoff } from '../../core/login-backoff.ts';
import { proofProps } from '../../core/proofs/proof-answers.ts';
import { identify } from '../../http/admission.ts';
import type { Credential } from '../../http/request.ts';
import type { TenantHandle } from '../../http/tenant-directory.ts';
import type { Flags } from '../../model/flags.ts';
import type { JsonObject } from '../../model/json.ts';
import { found, permissionDenied, problem, type VaultResponse } from './answers.ts';

/** A request's credential, its origin, and the tenant that it was sent to. */
export interface TokenRequest {
  readonly credential: Credential | undefined;
  /** The credential's token; undefined for a client certificate. */
  readonly token: string | undefined;
  readonly from: Origin;
  readonly handle: TenantHandle;
  readonly world: World;
}

/** A login to a tenant, which may not exist. */
interface LoginRequest extends Omit<TokenRequest, 'handle' | 'credential'> {
  readonly handle: TenantHandle | undefined;
  /** The name or host that the request gave for the tenant. */
  readonly named: string;
}

interface Holder {
  readonly id: string;
  readonly createdAt: number;
  /** Undefined = never. */
  readonly expiresAt: number | undefined;
}

/** Maximum number of characters kept of an unknown tenant's name. */
const longestName = 253;

/**
 * The holder of the credential; undefined if it is unknown or not usable. Records the request if it is known, with the
 * status that a usable holder is answered with.
 */
export async function holderOf(
  asked: TokenRequest,
  action: string,
  answered: number | ((holder: Holder) => number),
): Promise<Holder | undefined> {
  const { credential, from, handle, world } = asked;
  if (credential === undefined) return undefined;
  return handle.store.transaction((tx) => {
    const known = identify(tx, credential, from, world.now());
    if (!known) return undefined;
    const { caller, usable } = known;
    const key = caller.kind === 'apikey' ? tx.apiKeys.byId(caller.id) : undefined;
    const holder = { id: caller.id, createdAt: key?.createdAt ?? world.now(), expiresAt: key?.expiresAt };
    const props = { ...proofProps(caller), dialect: 'vault' };
    const status = !usable ? 401 : typeof answered === 'number' ? answered : answered(holder);
    const told = { keyid: caller.id, action, validAction: status < 400, status, props };
    tx.record(activityRecord(world, { ...told, address: from.remoteAddress }));
    return usable ? holder : undefined;
  });
}

/** Flags of the credential's holder; undefined if it is unknown or not usable. Records nothing. */
export async function flagsOf({ credential, from, handle, world }: TokenRequest): Promise<Flags | undefined> {
  if (credential === undefined) return undefined;
  const known = await handle.store.transaction((tables) => identify(tables, credential, from, world.now()));
  return known?.usable ? known.caller.flags : undefined;
}

export async function lookUpSelf(asked: TokenRequest): Promise<VaultResponse> {
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
    id: asked.token ?? '',
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

/** A key without an expiry is answered like a token that never expires. */
export async function renewSelf(asked: TokenRequest): Promise<VaultResponse> {
  const isLeased = ({ expiresAt }: Holder): boolean => expiresAt !== undefined;
  const holder = await holderOf(asked, 'session.refresh', (each) => (isLeased(each) ? 200 : 400));
  if (!holder) return permissionDenied;
  const { id, expiresAt } = holder;
  if (expiresAt === undefined) return problem(400, 'invalid lease ID');
  return { status: 200, auth: authOf(id, asked.token, secondsUntil(expiresAt, asked.world)) };
}

/**
 * AppRole login: the role id is the API key's id, the secret id is its secret, and the token is that secret again.
 * Subject to the same back-off as other logins: throws `rate-limited` before the body is read.
 *
 * Tries are counted by the name that they give for the tenant, and an unknown tenant answers, waits and counts like
 * one without keys, so that tenants and their hosts cannot be probed for. Tries under other names of the tenant make
 * this one fail like a wrong secret.
 */
export async function logIn(
  asked: LoginRequest,
  backoff: LoginBackoff,
  read: () => Promise<JsonObject>,
): Promise<VaultResponse> {
  const { handle, from, named } = asked;
  const address = from.remoteAddress ?? 'local';
  const origin = { tenant: `named ${named.slice(0, longestName)}`, address };
  const refusal = backoff.refusal(origin);
  if (refusal) throw refusal;
  const { role_id: role, secret_id: secret, jwt } = await read();
  if (role === undefined && jwt !== undefined) {
    return problem(400, 'the mount of a login with a token begins with jwt or kubernetes, such as auth/jwt/login');
  }
  const wrong = problem(400, 'invalid role or secret ID');
  if (typeof role !== 'string' || typeof secret !== 'string' || secret === '') return wrong;
  const turn = await backoff.begin({ ...origin, name: role });
  const own = handle && backoff.take({ tenant: handle.tenant.id, address, userId: role });
  try {
    const holder = own && (await holderOfRole({ ...asked, handle }, role, secret));
    for (const each of [turn, own]) {
      if (holder) each?.succeeded();
      else each?.failed();
    }
    return holder ? { status: 200, auth: authOf(holder.id, secret, 0) } : wrong;
  } finally {
    turn.abandoned();
    own?.abandoned();
  }
}

/** The holder of the role and the secret. A wrong secret for an existing key is recorded as that key's failed login. */
async function holderOfRole(
  asked: Omit<TokenRequest, 'credential'>,
  role: string,
  secret: string,
): Promise<Holder | undefined> {
  const { handle, from, world } = asked;
  const credential = new Bearer(secret);
  const known = await handle.store.transaction((tables) => identify(tables, credential, from, world.now()));
  const caller = known?.caller;
  if (caller?.kind === 'apikey' && caller.id === role && !caller.proof) {
    return holderOf({ ...asked, token: secret, credential }, 'session.create', 200);
  }
  await handle.store.transaction((tx) => {
    if (!tx.apiKeys.byId(role)) return;
    const props = { dialect: 'vault' };
    const told = { keyid: role, action: 'session.create', validAction: false, status: 400, props };
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
