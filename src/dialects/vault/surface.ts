// The appliance as a Vault or OpenBao server: the paths under /v1 for the transit engine, tokens and AppRole logins,
// and the server's state. Authorization, execution and the activity log are left to our endpoints: each request is
// mapped to one of them or answered here. For what clients depend on, see docs/guide-vault.md.
import { Bearer } from '../../core/credential.ts';
import { lookUpManagedKey } from '../../core/managed-key-names.ts';
import { presentedKey, presentedProblem } from '../../core/proofs/client-certificates.ts';
import { secretNameAt } from '../../core/secret-paths.ts';
import { KmsError } from '../../errors.ts';
import { certificateOf, knownAsker } from '../../http/admission.ts';
import type { AppliancePort, OpenState } from '../../http/appliance-port.ts';
import type { Codec } from '../../http/codec.ts';
import { type ApiRequest, type Credential, headerOf, programsCertificate } from '../../http/request.ts';
import type { Answer, Handler, Reply } from '../../http/request-log.ts';
import { failed, type Outcome, refused } from '../../http/respond.ts';
import type { Ways } from '../../http/surface.ts';
import type { TenantHandle } from '../../http/tenant-directory.ts';
import { readAuthority } from '../../model/hosts.ts';
import { isJsonObject } from '../../model/json.ts';
import type { Tables } from '../../store/port.ts';
import { envelopeIds, isSealed, noSuchRoute, permissionDenied, problem, type VaultResponse } from './answers.ts';
import { codecOf, objectOf, outcomeOf, readBytes, refusalOf, toldBy } from './codec.ts';
import { namespaceOf, refusedHeader, tokenOf } from './headers.ts';
import { mounts } from './mounts.ts';
import { isWrite, type Operation, type Setting } from './operation.ts';
import { isKnownPath, operationOf, unsupportedOperation, unsupportedPath } from './operations.ts';
import { capabilities, isAboutCapabilities, serverState } from './sys.ts';
import { type Target, Targets } from './target.ts';
import { type Method, methodOf, noCertificate, ownTokenOperation, tokenLogins, unknownRole } from './token-logins.ts';
import { flagsOf, holderOf, logIn, lookUpSelf, renewSelf, type TokenRequest } from './tokens.ts';

/** A request as parsed so far. */
interface VaultRequest {
  readonly request: ApiRequest;
  readonly target: Target;
  readonly token: string | undefined;
  /** The token, or the client's certificate. */
  readonly credential: Credential | undefined;
}

/** The tenant that a request names, and the rest of its path. */
interface TenantRequest {
  /** Undefined if there is no such tenant. */
  readonly handle: TenantHandle | undefined;
  /** The tenant's name or host as the request gives it. */
  readonly name: string;
  readonly path: readonly string[];
}

/** Work that no endpoint does, for the tenant with this id, if any. */
interface OwnWork {
  readonly tenant: string | undefined;
  work(): Promise<VaultResponse>;
}

const noParams: Readonly<Record<string, string>> = Object.freeze({});

export function vaultSurface(appliance: AppliancePort, ways: Ways): Answer {
  const surface = new VaultSurface(appliance, ways);
  return (request) => surface.handle(request);
}

class VaultSurface {
  readonly #appliance: AppliancePort;
  readonly #ways: Ways;
  readonly #targets = new Targets();
  readonly #nextId: () => string;
  readonly #codecs = new WeakMap<Operation, Codec>();
  /** Handlers by the action they are counted under. */
  readonly #own = new Map<string, Handler<OwnWork>>();

  constructor(appliance: AppliancePort, ways: Ways) {
    this.#appliance = appliance;
    this.#ways = ways;
    this.#nextId = envelopeIds(appliance.world.random);
  }

  /** Never rejects. */
  async handle(request: ApiRequest): Promise<Reply> {
    try {
      const target = this.#targets.of(request);
      if (!target) return { outcome: this.#tell(problem(404, 'no handler for this path: all are under /v1/')) };
      const token = tokenOf(request);
      const credential = token === undefined ? withoutToken(request) : new Bearer(token);
      return { outcome: await this.#answerTo({ request, target, token, credential }) };
    } catch (error) {
      const isMeant = error instanceof KmsError && refused(error).status < 500;
      if (!isMeant) this.#appliance.logger.error({ err: error, route: '/v1' }, 'request failed');
      return { outcome: this.#tell(refusalOf(isMeant ? refused(error) : failed(error), undefined)) };
    }
  }

  #tell(told: VaultResponse): Outcome {
    return outcomeOf(told, this.#nextId);
  }

  #answerTo(asked: VaultRequest): Promise<Outcome> {
    const { target, credential } = asked;
    const { parts, method, isList, query } = target;
    const { state, world } = this.#appliance;
    const answer = parts[0] === 'sys' ? serverState(target, state.sealed, world.now()) : undefined;
    if (answer) return Promise.resolve(this.#tell(answer));
    if (state.sealed) return Promise.resolve(this.#tell(isSealed));
    const tenant = matchTenant(asked, state);
    const { handle, path } = tenant;
    const refusal = refusedHeader(asked.request);
    if (isLogin(method, path)) return this.#logIn(asked, state, tenant, refusal);
    if (!handle) return Promise.resolve(this.#tell(permissionDenied));
    if (refusal !== undefined) return this.#toHolder(asked, handle, problem(400, refusal));
    if (path[0] === 'sys') return this.#aboutSystem(asked, handle, path);
    if (path[0] === 'auth') return this.#aboutToken(asked, handle, path);
    if (path.length < 2 || credential === undefined) return this.#toHolder(asked, handle, noSuchRoute(target.parts));
    const operation = path === parts ? target.operation() : operationOf({ method, path, isList, query });
    if (operation === undefined) return this.#toHolder(asked, handle, unsupported(target, path));
    if (typeof operation === 'string') return this.#toHolder(asked, handle, problem(400, operation));
    if ('setting' in operation) return this.#set(asked, handle, operation);
    return this.#run(asked.request, handle, operation, credential);
  }

  /** Runs one of our endpoints. */
  async #run(
    request: ApiRequest,
    handle: TenantHandle,
    operation: Operation,
    credential: Credential | undefined,
  ): Promise<Outcome> {
    const { id, params = noParams, query = noParams, makes } = operation;
    const { key } = params;
    const way = this.#ways.endpoints.get(id);
    if (!way) throw new KmsError('internal', 'expected an endpoint that is served');
    const ofTenant = { ...request, tenant: handle.tenant.name };
    const { outcome } = await way(ofTenant, {
      credential,
      params,
      query,
      codec: this.#codecOf(operation),
      dialect: 'vault',
      ...(key !== undefined && !makes && { isHidden: (tables: Tables) => isSecret(tables, key) }),
    });
    return this.#sent(handle, outcome, operation);
  }

  #codecOf(operation: Operation): Codec {
    const known = this.#codecs.get(operation);
    if (known) return known;
    const codec = codecOf(operation, this.#nextId);
    this.#codecs.set(operation, codec);
    return codec;
  }

  /** The final outcome: a refusal of ours is translated into Vault's terms. */
  #sent(handle: TenantHandle | undefined, outcome: Outcome, operation?: Operation): Outcome {
    const { sentStatus: status } = outcome;
    if (status !== undefined) return { ...outcome, status };
    const { state } = this.#appliance;
    // If the tenant was deleted mid-flight, the response is the one that the next request will get.
    const isGone = handle && !state.sealed && !isServed(state, handle);
    if (isGone) return this.#tell(permissionDenied);
    const own = isJsonObject(outcome.body) ? operation?.refusal?.(outcome.body) : undefined;
    return this.#tell(own ?? refusalOf(outcome, operation?.missing));
  }

  #aboutToken(asked: VaultRequest, handle: TenantHandle, path: readonly string[]): Promise<Outcome> {
    const { target } = asked;
    const { method } = target;
    const whole = path.slice(1).join('/');
    const own = asked.token === undefined ? undefined : ownTokenOperation(whole, method, asked.token);
    if (own) return this.#run(asked.request, handle, own, asked.credential);
    if (whole === 'token/lookup-self' && (method === 'GET' || isWrite(method))) {
      return this.#byToken(asked, handle, 'session.read', lookUpSelf);
    }
    if (whole === 'token/renew-self' && isWrite(method)) {
      return this.#byToken(asked, handle, 'session.refresh', renewSelf);
    }
    return this.#toHolder(asked, handle, noSuchRoute(target.parts));
  }

  #aboutSystem(asked: VaultRequest, handle: TenantHandle, path: readonly string[]): Promise<Outcome> {
    const { method, parts } = asked.target;
    if (!isAboutCapabilities(method, path)) {
      return this.#toHolder(asked, handle, mounts(method, path) ?? noSuchRoute(parts));
    }
    return this.#byToken(asked, handle, 'none', async (token) => {
      const flags = await flagsOf(token);
      if (!flags) {
        await holderOf(token, 'none', 403);
        return permissionDenied;
      }
      const bytes = await readBytes(asked.request);
      // Flags go by a key's name, while a path may have its alias.
      const answer = await handle.store.transaction((tables) =>
        toldBy(() => capabilities(objectOf(bytes), flags, (params) => keyNamed(tables, params))),
      );
      return (await holderOf(token, 'none', answer.status)) ? answer : permissionDenied;
    });
  }

  /** Settings of the engine, of which none can be changed, for holders of a valid token. */
  #set(asked: VaultRequest, handle: TenantHandle, { setting }: Setting): Promise<Outcome> {
    return this.#byToken(asked, handle, 'none', async (token) => {
      if (!(await flagsOf(token))) {
        await holderOf(token, 'none', 403);
        return permissionDenied;
      }
      const bytes = await readBytes(asked.request);
      const answer = toldBy(() => setting(objectOf(bytes)));
      return (await holderOf(token, 'none', answer.status)) ? answer : permissionDenied;
    });
  }

  /** A login to an unknown tenant is answered as one to a tenant without that role. */
  #logIn(
    asked: VaultRequest,
    open: OpenState,
    { handle, name, path: [, mount = ''] }: TenantRequest,
    refusal: string | undefined,
  ): Promise<Outcome> {
    const { token, request } = asked;
    const { world } = this.#appliance;
    const method = methodOf(mount);
    if (method !== undefined && handle && refusal === undefined) {
      return this.#run(request, handle, tokenLogins[method], undefined);
    }
    return this.#ownWork(asked, handle, 'session.create', async () => {
      if (refusal !== undefined) return problem(400, refusal);
      if (method !== undefined) return this.#logInNowhere(method, request, name, open);
      const login = { token, from: request, handle, named: name, world };
      return logIn(login, open.people.appRoleBackoff, async () => objectOf(await readBytes(request)));
    });
  }

  /** A login to an unknown tenant is braked and answered as one of which no role is known. */
  async #logInNowhere(
    method: Method,
    request: ApiRequest,
    name: string,
    { people }: OpenState,
  ): Promise<VaultResponse> {
    const given = objectOf(await readBytes(request));
    // Refused like those to a tenant that there is.
    tokenLogins[method].body?.(given);
    const { role, jwt, name: named } = given;
    const certificate = programsCertificate(request);
    const asked =
      method === 'cert'
        ? { token: presentedKey(certificate) ?? '', role: String(named ?? '') }
        : { token: String(jwt), role: String(role) };
    const origin = { tenant: `named ${name.slice(0, 253)}`, address: request.remoteAddress ?? 'local' };
    await people.workloads.attempt(origin, asked, async () => ({}));
    const isWithout = !certificate || presentedProblem(certificate) !== undefined;
    return method === 'cert' && isWithout ? noCertificate : unknownRole(method, role);
  }

  /** Queues like all other requests: senders of unknown tokens wait along with holders of known ones. */
  #byToken(
    asked: VaultRequest,
    handle: TenantHandle,
    action: string,
    work: (asked: TokenRequest) => Promise<VaultResponse>,
  ): Promise<Outcome> {
    const { token, credential, request } = asked;
    const { queue } = this.#ways;
    const { world } = this.#appliance;
    return this.#ownWork(asked, handle, action, async () => {
      if (credential === undefined) return permissionDenied;
      const asker = () => knownAsker(handle, credential, request, world.now()) ?? 'unknown';
      const turn = queue.enter(handle.tenant.id, asker);
      if (turn) await turn;
      return work({ token, credential, from: request, handle, world }).finally(() => queue.leave());
    });
  }

  async #ownWork(
    { request }: VaultRequest,
    handle: TenantHandle | undefined,
    action: string,
    work: () => Promise<VaultResponse>,
  ): Promise<Outcome> {
    const { outcome } = await this.#ownHandler(action)(request, { tenant: handle?.tenant.id, work });
    return this.#sent(handle, outcome);
  }

  #ownHandler(action: string): Handler<OwnWork> {
    const known = this.#own.get(action);
    if (known) return known;
    const handler = this.#ways.logged<OwnWork>(
      { path: '/v1', counted: action },
      async (_request, _state, { tenant, work }) => {
        const counted = { action, ...(tenant !== undefined && { tenant }) };
        try {
          const told = await work();
          const outcome = { ...this.#tell(told), sentStatus: told.status };
          return { outcome, ...counted, granted: told.status < 400 };
        } catch (error) {
          return { outcome: refused(error), ...counted };
        }
      },
    );
    this.#own.set(action, handler);
    return handler;
  }

  /** Gives the response to holders of a valid token only. */
  #toHolder(asked: VaultRequest, handle: TenantHandle, answer: VaultResponse): Promise<Outcome> {
    return this.#byToken(asked, handle, 'none', async (token) =>
      (await holderOf(token, 'none', answer.status)) ? answer : permissionDenied,
    );
  }
}

/** The client's certificate, if the request names no other credential. */
function withoutToken(request: ApiRequest): Credential | undefined {
  return headerOf(request, 'authorization') === undefined ? certificateOf(request) : undefined;
}

function isServed({ tenants }: OpenState, { tenant }: TenantHandle): boolean {
  return tenants.byName(tenant.name)?.tenant.id === tenant.id;
}

/** Whether it is of the KV engine, which alone shows it: the transit engine has no such type. */
function isSecret(tables: Tables, key: string): boolean {
  return lookUpManagedKey(tables, key)?.type === 'secret';
}

/** The name of the key that an operation's path names; undefined if it names none. */
function keyNamed(tables: Tables, { key, path }: Readonly<Record<string, string>>): string | undefined {
  if (path !== undefined) return secretNameAt(tables, path);
  return key === undefined ? undefined : (lookUpManagedKey(tables, key)?.name ?? key);
}

function isLogin(method: string, path: readonly string[]): boolean {
  return path.length >= 3 && path[0] === 'auth' && path.at(-1) === 'login' && isWrite(method);
}

/** Finds the tenant by namespace, by the first path part if several precede the operation, or by host. */
function matchTenant({ request, target }: VaultRequest, { tenants }: OpenState): TenantRequest {
  const { parts, method, isList, query } = target;
  const namespace = namespaceOf(request);
  if (namespace !== '' && namespace !== 'root') {
    return { handle: tenants.byName(namespace), name: namespace, path: parts };
  }
  const tail = parts.slice(1);
  // The first of three parts is the mount, unless this is a list of keys.
  const mayName = parts.length > 3 || tail[0] === 'auth' || (isList && ['keys', 'metadata'].includes(tail[1] ?? ''));
  const name = parts[0]?.toLowerCase() ?? '';
  const first = mayName ? tenants.byName(name) : undefined;
  if (
    first
      ? tail[0] === 'auth' || operationOf({ method, path: tail, isList, query }) !== undefined
      : isLogin(method, tail)
  ) {
    return { handle: first, name, path: tail };
  }
  const host = readAuthority(headerOf(request, 'host') ?? '')?.host ?? '';
  return { handle: tenants.byHost(host), name: host, path: parts };
}

function unsupported({ isList }: Target, path: readonly string[]): VaultResponse {
  return !isList && isKnownPath(path) ? unsupportedOperation : unsupportedPath;
}
