// The appliance as software sees it that speaks to Vault or OpenBao: the paths under /v1 of the transit engine, of token
// and AppRole logins, and of the state of the server. Each is a request to an endpoint of our own, in other words: who
// may ask, what is recorded and what comes of it is decided there alone. What each client insists on: docs/guide-transit.md.
import type { EndpointId } from '../api/endpoints.ts';
import type { TransitMade, TransitRing } from '../api/transit.ts';
import { activityRecord } from '../core/activity.ts';
import { Bearer } from '../core/credential.ts';
import { KmsError } from '../errors.ts';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import { isCipher, transitHashes, transitTypes } from '../model/transit.ts';
import { version } from '../version.ts';
import { identify, sealedError } from './admission.ts';
import type { Appliance, OpenState } from './appliance.ts';
import { bodySource, publicBodyLimit } from './body.ts';
import type { AppContext, RequestEnv } from './request.ts';
import type { Reply } from './request-log.ts';
import { failed, headersOf, type Outcome, refused } from './respond.ts';
import { type TenantHandle, tenantOf } from './tenants.ts';

/** Answers the requests to one endpoint. */
type Handler = (c: AppContext) => Promise<Reply>;
type Handlers = ReadonlyMap<EndpointId, Handler>;

/** What is sent: no body where there is none. */
interface Answered {
  readonly status: number;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An endpoint of our own in the engine's words. */
interface Operation {
  readonly id: EndpointId;
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** Makes our body of the one that came. Throws `invalid`. */
  readonly body?: (given: JsonObject) => object;
  /** Makes their answer of ours. */
  readonly answer: (ours: JsonObject, given: JsonObject) => Answered;
  /** What is said of a ring that is not there; none: 404 without a word. */
  readonly missing?: string;
}

const json = 'application/json';
const permissionDenied: Answered = { status: 403, body: { errors: ['permission denied'] } };
const sealedAnswer: Answered = { status: 503, body: { errors: ['Vault is sealed'] } };
const done: Answered = { status: 204 };
const nothing: Answered = { status: 404, body: { errors: [] } };

function problem(status: number, message: string): Answered {
  return { status, body: { errors: [message] } };
}

function invalid(message: string): KmsError {
  return new KmsError('invalid', message);
}

/** One request, as far as it is understood. */
interface Asked {
  readonly method: string;
  /** The path behind /v1, decoded, without empty parts. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
  readonly env: RequestEnv;
  readonly token: string | undefined;
  header(name: string): string | undefined;
  /** An object; empty where nothing came. Throws `invalid`, and what keeps a body from being read. */
  body(limit: number, holder: string | undefined): Promise<JsonObject>;
}

export function transitSurface(appliance: Appliance, handlers: Handlers) {
  const { world } = appliance;

  /** Every answer but those about the server is one of these. */
  function wrapped(data: object | null, auth: object | null = null): object {
    const hex = world.random(16).toHex();
    const request_id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    const lease = { lease_id: '', renewable: false, lease_duration: 0 };
    return { request_id, ...lease, data, wrap_info: null, warnings: null, auth };
  }

  async function answer(asked: Asked): Promise<Answered> {
    const { parts, method } = asked;
    const [root, ...rest] = parts;
    if (root === 'sys') return aboutServer(asked, rest.join('/'));
    const { state } = appliance;
    if (state.sealed) return sealedAnswer;
    const found = tenantAsked(asked, state);
    if (!found) return permissionDenied;
    const { handle, path } = found;
    if (path[0] === 'auth') {
      const place = path.slice(1).join('/');
      if (place === 'token/lookup-self' && method === 'GET') return lookUpSelf(asked, handle);
      if (place === 'token/renew-self' && isWrite(method)) return renewSelf(asked, handle);
      if (path.length === 3 && path[2] === 'login' && isWrite(method)) return logIn(asked, handle);
      return noRoute(asked, handle);
    }
    if (path.length < 2) return noRoute(asked, handle);
    const operation = operationOf(method, path, asked.query, wrapped);
    if (operation === undefined) return unsupported(asked, handle, path);
    if (typeof operation === 'string') {
      return (await ofCaller(asked, handle, 'none', 400)) ? problem(400, operation) : permissionDenied;
    }
    return run(asked, handle, operation);
  }

  /** By the namespace, by the first part of the path where several stand before the operation, or by the host. */
  function tenantAsked(asked: Asked, state: OpenState): { handle: TenantHandle; path: readonly string[] } | undefined {
    const { parts } = asked;
    const namespace = (asked.header('x-vault-namespace') ?? '').replace(/^\/+|\/+$/g, '').toLowerCase();
    if (namespace !== '' && namespace !== 'root') {
      const handle = state.tenants.byName(namespace);
      return handle && { handle, path: parts };
    }
    const first =
      parts.length > 3 || parts[1] === 'auth' ? state.tenants.byName(parts[0]?.toLowerCase() ?? '') : undefined;
    const tail = parts.slice(1);
    if (first && (tail[0] === 'auth' || operationOf(asked.method, tail, asked.query, wrapped) !== undefined)) {
      return { handle: first, path: tail };
    }
    try {
      return { handle: tenantOf(state, contextOf(asked, undefined, {})), path: parts };
    } catch {
      return undefined;
    }
  }

  /** The request to one of our endpoints, made of the one that came. */
  function contextOf(
    { method, env, token, header }: Asked,
    tenant: string | undefined,
    { params = {}, query = {} }: Pick<Operation, 'params' | 'query'>,
    body?: RequestEnv['body'],
  ): AppContext {
    const kept = ['host', 'content-length', 'content-encoding', 'transfer-encoding'];
    const headers: Record<string, string> = { 'content-type': json };
    for (const name of kept) {
      const value = header(name);
      if (value !== undefined) headers[name] = value;
    }
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    const { remoteAddress, room } = env;
    const inner: RequestEnv = {
      headers,
      ...(remoteAddress !== undefined && { remoteAddress }),
      ...(room && { room }),
      ...(tenant !== undefined && { tenant }),
      ...(body && { body }),
    };
    const req = {
      method,
      path: '/v1',
      url: 'http://kms/v1',
      raw: { body: null },
      query: () => ({ ...query }),
      param: () => params,
      header: (name: string) => headers[name],
    };
    return { env: inner, req };
  }

  async function run(asked: Asked, handle: TenantHandle, operation: Operation): Promise<Answered> {
    let given: JsonObject = {};
    const { body: translated } = operation;
    const source: RequestEnv['body'] = translated && {
      async read(limit, holder) {
        given = await asked.body(limit, holder);
        return new TextEncoder().encode(JSON.stringify(translated(given)));
      },
    };
    const c = contextOf(asked, handle.tenant.name, operation, source);
    const handler = handlers.get(operation.id);
    if (!handler) throw new KmsError('internal', 'expected an endpoint that is served');
    const { outcome } = await handler(c);
    if (outcome.status !== 200) return refusalOf(outcome, operation.missing);
    return operation.answer(await bodyOf(outcome), given);
  }

  function refusalOf(outcome: Outcome, missing: string | undefined): Answered {
    const { status, headers } = outcome;
    const message: unknown = Reflect.get(outcome.body, 'message');
    const text = typeof message === 'string' ? message : 'the request was refused';
    const kept = headers && { headers };
    if (status === 401) return permissionDenied;
    if (status === 403 && text.startsWith('the permission flag')) return permissionDenied;
    if (status === 404) return missing === undefined ? nothing : problem(400, missing);
    if (status === 503 && text === sealedError.message) return sealedAnswer;
    return { ...problem(status, text), ...kept };
  }

  async function aboutServer(asked: Asked, place: string): Promise<Answered> {
    const { method } = asked;
    if (method !== 'GET' && method !== 'HEAD') return noSuchRoute(asked);
    const { sealed } = appliance.state;
    if (place === 'health') {
      const wanted = Number(asked.query.get('sealedcode') ?? 503);
      const status = sealed ? (Number.isInteger(wanted) && wanted >= 200 && wanted <= 599 ? wanted : 400) : 200;
      const body = {
        initialized: true,
        sealed,
        standby: sealed,
        replication_performance_mode: sealed ? 'unknown' : 'primary',
        replication_dr_mode: sealed ? 'unknown' : 'disabled',
        server_time_utc: Math.floor(world.now() / 1000),
        version,
      };
      // Statuses without a body.
      return status === 204 || status === 205 || status === 304 ? { status } : { status, body };
    }
    if (place === 'seal-status') {
      const body = {
        type: 'kms',
        initialized: true,
        sealed,
        t: 1,
        n: 1,
        progress: 0,
        nonce: '',
        version,
        migration: false,
        recovery_seal: false,
        storage_type: 'kms',
      };
      return { status: 200, body };
    }
    // `bao status` and `vault status` ask for it.
    if (place === 'leader') {
      if (sealed) return sealedAnswer;
      const body = { ha_enabled: false, is_self: false, leader_address: '', leader_cluster_address: '' };
      return { status: 200, body };
    }
    return noSuchRoute(asked);
  }

  function noSuchRoute({ parts }: Asked): Answered {
    const path = parts.join('/').slice(0, 200);
    return problem(404, `no handler for route "${path}". route entry not found.`);
  }

  async function noRoute(asked: Asked, handle: TenantHandle): Promise<Answered> {
    return (await ofCaller(asked, handle, 'none', 404)) ? noSuchRoute(asked) : permissionDenied;
  }

  async function unsupported(asked: Asked, handle: TenantHandle, path: readonly string[]): Promise<Answered> {
    const known = ['GET', 'POST', 'DELETE'].some((each) => operationOf(each, path, listing, wrapped) !== undefined);
    const status = known ? 405 : 404;
    if (!(await ofCaller(asked, handle, 'none', status))) return permissionDenied;
    return problem(status, `1 error occurred:\n\t* unsupported ${known ? 'operation' : 'path'}\n\n`);
  }

  /** Who holds the token, which is recorded; undefined where nobody does that is let in. */
  async function ofCaller(
    { token, env }: Asked,
    handle: TenantHandle,
    action: string,
    status: number,
  ): Promise<{ readonly id: string; readonly createdAt: number; readonly expiresAt: number | undefined } | undefined> {
    if (token === undefined) return undefined;
    return handle.store.transaction(async (tx) => {
      const found = await identify(tx, new Bearer(token), env, world.now());
      if (!found) return undefined;
      const { caller, usable } = found;
      const told = { keyid: caller.id, action, validAction: usable && status < 400, status: usable ? status : 403 };
      tx.record(activityRecord(world, { ...told, address: env.remoteAddress }));
      if (!usable) return undefined;
      const key = caller.kind === 'apikey' ? await tx.apiKeys.byId(caller.id) : undefined;
      return { id: caller.id, createdAt: key?.createdAt ?? world.now(), expiresAt: key?.expiresAt };
    });
  }

  const secondsLeft = (expiresAt: number | undefined): number =>
    expiresAt === undefined ? 0 : Math.max(0, Math.floor((expiresAt - world.now()) / 1000));

  async function lookUpSelf(asked: Asked, handle: TenantHandle): Promise<Answered> {
    const caller = await ofCaller(asked, handle, 'session.read', 200);
    if (!caller) return permissionDenied;
    const { id, createdAt, expiresAt } = caller;
    const data = {
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
      ttl: secondsLeft(expiresAt),
      type: 'service',
    };
    return { status: 200, body: wrapped(data) };
  }

  /** A key without an end is answered as a token that has none. */
  async function renewSelf(asked: Asked, handle: TenantHandle): Promise<Answered> {
    const caller = await ofCaller(asked, handle, 'session.refresh', 200);
    if (!caller) return permissionDenied;
    if (caller.expiresAt === undefined) return problem(400, 'invalid lease ID');
    return { status: 200, body: wrapped(null, authOf(caller.id, asked.token, secondsLeft(caller.expiresAt))) };
  }

  function authOf(id: string, token: string | undefined, seconds: number): object {
    const policies = ['default'];
    const lease = { lease_duration: seconds, renewable: false, entity_id: '', token_type: 'service', orphan: true };
    return { client_token: token, accessor: id, policies, token_policies: policies, metadata: {}, ...lease };
  }

  /** AppRole: the role is the API key's id, the secret id its secret, and the token that secret again. */
  async function logIn(asked: Asked, handle: TenantHandle): Promise<Answered> {
    const { role_id: role, secret_id: token } = await asked.body(publicBodyLimit, undefined);
    const wrong = problem(400, 'invalid role or secret ID');
    if (typeof role !== 'string' || typeof token !== 'string' || token === '') return wrong;
    const known = await handle.store.peek(async (tables) =>
      identify(tables, new Bearer(token), asked.env, world.now()),
    );
    if (known?.caller.kind !== 'apikey' || known.caller.id !== role) return wrong;
    const caller = await ofCaller({ ...asked, token }, handle, 'session.create', 200);
    return caller ? { status: 200, body: wrapped(null, authOf(caller.id, token, 0)) } : wrong;
  }

  return async (request: Request, env: RequestEnv): Promise<Response> => {
    let answered: Answered;
    try {
      const asked = askedOf(request, env);
      answered = asked ? await answer(asked) : problem(404, 'no handler for this path: all are under /v1/');
    } catch (error) {
      const isMeant = error instanceof KmsError && refused(error).status < 500;
      const outcome = isMeant ? refused(error) : failed(error);
      if (!isMeant) appliance.logger.error({ err: error, route: '/v1' }, 'request failed');
      answered = refusalOf(outcome, undefined);
    }
    const { status, body } = answered;
    const { 'Content-Type': type, ...headers } = headersOf({ status, body: {}, headers: answered.headers ?? {} });
    if (body === undefined) return new Response(null, { status, headers });
    const text = request.method === 'HEAD' ? null : JSON.stringify(body);
    return new Response(text, { status, headers: { ...headers, 'Content-Type': type ?? json } });
  };
}

const listing = new URLSearchParams({ list: 'true' });

function isWrite(method: string): boolean {
  return method === 'POST' || method === 'PUT';
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Undefined for a path that is not under /v1. Throws `invalid` for one that cannot be read. */
function askedOf(request: Request, env: RequestEnv): Asked | undefined {
  const url = new URL(request.url);
  const parts = url.pathname.split('/').filter((part) => part !== '');
  if (parts.shift() !== 'v1') return undefined;
  let decoded: string[];
  try {
    decoded = parts.map(decodeURIComponent);
  } catch {
    throw invalid('the path is not well-formed');
  }
  const header = (name: string): string | undefined => {
    const value = env.headers ? env.headers[name] : (request.headers.get(name) ?? undefined);
    return Array.isArray(value) ? value.join(', ') : value;
  };
  const bearer = /^bearer +(\S+) *$/i.exec(header('authorization') ?? '')?.[1];
  const source = bodySource(env, request);
  return {
    method: request.method,
    parts: decoded,
    query: url.searchParams,
    env,
    token: header('x-vault-token') || bearer,
    header,
    async body(limit, holder) {
      const bytes = await source.read(limit, holder);
      if (!bytes) throw new KmsError('too-large', `the body is over the limit of ${limit} bytes`);
      if (bytes.length === 0) return {};
      let value: unknown;
      try {
        value = JSON.parse(utf8.decode(bytes));
      } catch {
        throw invalid('failed to decode JSON input');
      }
      // `bao write -f` and `vault write -f` send null.
      if (value === null) return {};
      if (!isJsonObject(value)) throw invalid('failed to decode JSON input');
      return value;
    },
  };
}

async function bodyOf(outcome: Outcome): Promise<JsonObject> {
  const { content, stream, body } = outcome;
  const made: unknown = stream
    ? await new Response(stream).json()
    : typeof content === 'string'
      ? JSON.parse(content)
      : body;
  // Our own answers are objects.
  return made as JsonObject;
}

type Wrapped = (data: object) => object;

/**
 * What a path asks for, told by its end, since a mount may have any name; text says why it is refused, undefined stands
 * for what there is not.
 */
function operationOf(
  method: string,
  path: readonly string[],
  query: URLSearchParams,
  wrapped: Wrapped,
): Operation | string | undefined {
  const [c = '', b = '', a = ''] = path.toReversed();
  const writes = isWrite(method);
  if (path.length >= 2 && c === 'keys') {
    const isList = method === 'LIST' || (method === 'GET' && query.get('list') === 'true');
    return isList ? listRings(wrapped) : undefined;
  }
  if (path.length >= 4 && a === 'keys' && writes && c === 'rotate') return rotate(b);
  if (path.length >= 4 && a === 'keys' && writes && c === 'config') return configure(b);
  if (path.length >= 4 && a === 'datakey' && writes && (b === 'plaintext' || b === 'wrapped')) {
    return dataKey(c, b === 'wrapped', wrapped);
  }
  if (path.length >= 4 && writes && a === 'sign') return sign(b, c, wrapped);
  if (path.length >= 4 && writes && a === 'verify') return verify(b, c, wrapped);
  if (path.length < 3) return undefined;
  if (b === 'keys') {
    if (method === 'GET') return readRing(c, wrapped);
    if (writes) return makeRing(c);
    return method === 'DELETE' ? deleteRing(c) : undefined;
  }
  if (writes && b === 'encrypt')
    return onItems('transitEncrypt', c, ['plaintext'], 'encryption key not found', wrapped);
  if (writes && b === 'decrypt')
    return onItems('transitDecrypt', c, ['ciphertext'], 'encryption key not found', wrapped);
  if (writes && b === 'rewrap') return onItems('transitRewrap', c, ['ciphertext'], 'encryption key not found', wrapped);
  if (writes && b === 'sign') return sign(c, undefined, wrapped);
  if (writes && b === 'verify') return verify(c, undefined, wrapped);
  return refusedFor(path);
}

/** What Vault has and this has not, and why. */
function refusedFor(path: readonly string[]): string | undefined {
  if (path.includes('export', 1)) return 'private key material is not exportable';
  const [last = '', before = ''] = path.toReversed();
  if (before === 'backup') return 'plaintext backup is disallowed: keys never leave the appliance';
  if (before === 'restore' || last === 'restore')
    return 'restore is not supported: keys are made by the appliance alone';
  if (last === 'import' || last === 'import_version')
    return 'import is not supported: keys are made by the appliance alone';
  return undefined;
}

function isAbsent(value: unknown): value is undefined | null | '' {
  return value === undefined || value === null || value === '';
}

function textOf(given: JsonObject, name: string): string | undefined {
  const value = given[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value;
  throw invalid(`error converting input for field "${name}": expected a string`);
}

/** Numbers come as numbers or as text; undefined for what is absent. */
function numberOf(given: JsonObject, name: string): number | undefined {
  const value = given[name];
  if (isAbsent(value)) return undefined;
  const number = typeof value === 'string' && /^-?[0-9]{1,15}$/.test(value) ? Number(value) : value;
  if (typeof number === 'number' && Number.isSafeInteger(number)) return number;
  throw invalid(`error converting input for field "${name}": expected an integer`);
}

function booleanOf(given: JsonObject, name: string): boolean | undefined {
  const value = given[name];
  if (isAbsent(value)) return undefined;
  if (typeof value === 'boolean') return value;
  if (['true', '1'].includes(String(value).toLowerCase())) return true;
  if (['false', '0'].includes(String(value).toLowerCase())) return false;
  throw invalid(`error converting input for field "${name}": expected true or false`);
}

/** Seconds, or text as Go has durations. 0: never. */
function rotationOf(given: JsonObject): { rotateAfter?: number | null } {
  const value = given.auto_rotate_period;
  if (isAbsent(value)) return {};
  const seconds = secondsOf(String(value));
  if (seconds === 0) return { rotateAfter: null };
  if (seconds !== undefined && seconds >= 3600) return { rotateAfter: seconds };
  throw invalid('auto rotate period must be 0 to disable or at least an hour');
}

const units: Readonly<Record<string, number>> = { d: 86_400, h: 3600, m: 60, s: 1 };

function secondsOf(text: string): number | undefined {
  if (/^[0-9]{1,10}$/.test(text)) return Number(text);
  if (!/^(?:[0-9]{1,9}[dhms])+$/.test(text)) return undefined;
  return [...text.matchAll(/([0-9]+)([dhms])/g)].reduce(
    (sum, [, digits, unit = '']) => sum + Number(digits) * (units[unit] ?? 0),
    0,
  );
}

function makeRing(name: string): Operation {
  return {
    id: 'createTransitRing',
    body(given) {
      const type = textOf(given, 'type') || 'aes256-gcm96';
      const known = transitTypes.find((each) => each === type);
      if (!known) throw invalid(`unknown key type ${type.slice(0, 100)}`);
      if (booleanOf(given, 'convergent_encryption')) {
        throw invalid('convergent encryption is not supported: the same plaintext would show as the same ciphertext');
      }
      if (booleanOf(given, 'exportable')) {
        throw invalid('private key material is not exportable: keys never leave the appliance');
      }
      if (booleanOf(given, 'allow_plaintext_backup')) {
        throw invalid('plaintext backup is disallowed: keys never leave the appliance');
      }
      const derived = booleanOf(given, 'derived') ?? false;
      return { name, type: known, derived, keepExisting: true, ...rotationOf(given) };
    },
    answer: () => done,
  };
}

function listRings(wrapped: Wrapped): Operation {
  return {
    id: 'listTransitRings',
    query: { limit: '10000' },
    answer(ours) {
      const keys = (ours.data as readonly TransitRing[]).map(({ name }) => name).sort();
      return keys.length === 0 ? nothing : { status: 200, body: wrapped({ keys }) };
    },
  };
}

function readRing(ringname: string, wrapped: Wrapped): Operation {
  return {
    id: 'getTransitRing',
    params: { ringname },
    answer: (ours) => ({ status: 200, body: wrapped(ringData(ours.ring as TransitRing)) }),
  };
}

function ringData(ring: TransitRing): object {
  const { type, versions = [] } = ring;
  const encrypts = isCipher(type);
  const keys: Record<string, unknown> = {};
  for (const { version: n, createdAt, publicKey } of versions.toReversed()) {
    const name = type === 'ed25519' ? 'ed25519' : 'P-256';
    keys[n] = encrypts
      ? Math.floor(Date.parse(createdAt) / 1000)
      : { certificate_chain: '', creation_time: createdAt, name, public_key: publicKey };
  }
  return {
    allow_plaintext_backup: false,
    auto_rotate_period: ring.rotateAfter ?? 0,
    deletion_allowed: ring.deletionAllowed,
    derived: ring.derived,
    exportable: false,
    imported_key: false,
    ...(ring.derived && { kdf: 'hkdf_sha256', convergent_encryption: false }),
    keys,
    latest_version: ring.latestVersion,
    min_available_version: 0,
    min_decryption_version: ring.minDecryptionVersion,
    min_encryption_version: ring.minEncryptionVersion,
    name: ring.name,
    soft_deleted: false,
    supports_decryption: encrypts,
    supports_derivation: encrypts,
    supports_encryption: encrypts,
    supports_signing: !encrypts,
    type,
  };
}

function rotate(ringname: string): Operation {
  return { id: 'rotateTransitRing', params: { ringname }, answer: () => done, missing: 'key not found' };
}

function configure(ringname: string): Operation {
  return {
    id: 'configureTransitRing',
    params: { ringname },
    body(given) {
      const minDecryptionVersion = numberOf(given, 'min_decryption_version');
      const minEncryptionVersion = numberOf(given, 'min_encryption_version');
      const deletionAllowed = booleanOf(given, 'deletion_allowed');
      if (minDecryptionVersion !== undefined && minDecryptionVersion < 0) {
        throw invalid('min decryption version cannot be negative');
      }
      if (minEncryptionVersion !== undefined && minEncryptionVersion < 0) {
        throw invalid('min encryption version cannot be negative');
      }
      if (booleanOf(given, 'exportable') || booleanOf(given, 'allow_plaintext_backup')) {
        throw invalid('private key material is not exportable: keys never leave the appliance');
      }
      return {
        ...(minDecryptionVersion !== undefined && { minDecryptionVersion }),
        ...(minEncryptionVersion !== undefined && { minEncryptionVersion }),
        ...(deletionAllowed !== undefined && { deletionAllowed }),
        ...rotationOf(given),
      };
    },
    answer: () => done,
    missing: `no existing key named ${ringname.slice(0, 128)} could be found`,
  };
}

function deleteRing(ringname: string): Operation {
  const missing = `error deleting policy ${ringname.slice(0, 128)}: could not delete key; not found`;
  return { id: 'deleteTransitRing', params: { ringname }, answer: () => done, missing };
}

/** What both single requests and the items of a batch may say. */
function itemOf(given: unknown, own: readonly string[]): object {
  if (!isJsonObject(given)) throw invalid('error parsing batch input: expected objects');
  const item: Record<string, unknown> = {};
  for (const name of own) item[name] = textOf(given, name);
  const version = numberOf(given, 'key_version');
  if (version !== undefined && version < 0) throw invalid('requested version for encryption is negative');
  return {
    ...item,
    associatedData: textOf(given, 'associated_data'),
    context: textOf(given, 'context'),
    keyVersion: version,
  };
}

function batchOf({ batch_input: batch }: JsonObject): readonly unknown[] | undefined {
  if (batch === undefined || batch === null) return undefined;
  if (Array.isArray(batch)) return batch;
  throw invalid('error parsing batch input: expected an array');
}

function onItems(
  id: 'transitEncrypt' | 'transitDecrypt' | 'transitRewrap',
  ringname: string,
  own: readonly string[],
  missing: string,
  wrapped: Wrapped,
): Operation {
  return {
    id,
    params: { ringname },
    missing,
    body: (given) => ({ items: (batchOf(given) ?? [given]).map((item) => itemOf(item, own)) }),
    answer(ours, given) {
      const items = ours.items as readonly TransitMade[];
      const batch = batchOf(given);
      const [only] = items;
      if (!batch) {
        const { error } = only ?? {};
        return error === undefined ? { status: 200, body: wrapped(madeData(only ?? {})) } : problem(400, error);
      }
      const batch_results = items.map((made, n) => {
        const item = batch[n];
        const reference = isJsonObject(item) && typeof item.reference === 'string' ? item.reference : '';
        return { ...madeData(made), reference };
      });
      const isWhole = items.every(({ error }) => error === undefined);
      const partial = numberOf(given, 'partial_failure_response_code') ?? 400;
      const status = isWhole ? 200 : partial >= 200 && partial <= 499 && partial !== 204 ? partial : 400;
      return { status, body: wrapped({ batch_results }) };
    },
  };
}

function madeData({ ciphertext, keyVersion, plaintext, error }: TransitMade): object {
  if (error !== undefined) return { error };
  return plaintext === undefined ? { ciphertext, key_version: keyVersion } : { plaintext };
}

function dataKey(ringname: string, isWrapped: boolean, wrapped: Wrapped): Operation {
  return {
    id: 'transitDataKey',
    params: { ringname },
    missing: 'encryption key not found',
    body(given) {
      const bits = numberOf(given, 'bits');
      const associatedData = textOf(given, 'associated_data');
      const context = textOf(given, 'context');
      return {
        wrapped: isWrapped,
        ...(bits !== undefined && { bits }),
        ...(associatedData !== undefined && { associatedData }),
        ...(context !== undefined && { context }),
      };
    },
    answer: ({ ciphertext, keyVersion, plaintext }) => {
      const shown = isWrapped ? {} : { plaintext };
      return { status: 200, body: wrapped({ ciphertext, key_version: keyVersion, ...shown }) };
    },
  };
}

/** The hash may stand in the path or in either of two fields. */
function signedOf(given: JsonObject, inPath: string | undefined): object {
  if (given.batch_input !== undefined && given.batch_input !== null) {
    throw invalid('batch_input is not supported for signatures: send one request for each');
  }
  const hash = inPath ?? (textOf(given, 'hash_algorithm') || textOf(given, 'algorithm') || 'sha2-256');
  const known = transitHashes.find((each) => each === hash);
  if (!known) throw invalid(`invalid hash algorithm "${hash.slice(0, 100)}"`);
  const marshaling = textOf(given, 'marshaling_algorithm') || 'asn1';
  if (marshaling !== 'asn1')
    throw invalid(`marshaling algorithm ${marshaling.slice(0, 100)} is not supported: asn1 is`);
  const input = textOf(given, 'input');
  if (input === undefined) throw invalid('missing input');
  return { input, hash: known, prehashed: booleanOf(given, 'prehashed') ?? false };
}

function sign(ringname: string, hash: string | undefined, wrapped: Wrapped): Operation {
  return {
    id: 'transitSign',
    params: { ringname },
    missing: 'signing key not found',
    body(given) {
      const keyVersion = numberOf(given, 'key_version') ?? 0;
      if (keyVersion < 0) throw invalid('requested version for signing is negative');
      return { ...signedOf(given, hash), keyVersion };
    },
    answer: ({ signature, keyVersion }) => ({
      status: 200,
      body: wrapped({ signature, key_version: keyVersion }),
    }),
  };
}

function verify(ringname: string, hash: string | undefined, wrapped: Wrapped): Operation {
  return {
    id: 'transitVerify',
    params: { ringname },
    missing: 'signature verification key not found',
    body(given) {
      const signature = textOf(given, 'signature');
      if (isAbsent(signature)) throw invalid("neither a 'signature' nor an 'hmac' were given to verify");
      return { ...signedOf(given, hash), signature };
    },
    answer: ({ valid }) => ({ status: 200, body: wrapped({ valid }) }),
  };
}
