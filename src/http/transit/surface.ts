// The appliance as software sees it that speaks to Vault or OpenBao: the paths under /v1 of the transit engine, of
// tokens and AppRole logins, and of the state of the server. Who may ask, what is recorded and what comes of it is
// decided by endpoints of our own, which these requests are put to in other words. What clients insist on:
// docs/guide-transit.md.
import type { EndpointId } from '../../api/endpoints.ts';
import { Bearer } from '../../core/credential.ts';
import { KmsError } from '../../errors.ts';
import { readAuthority } from '../../model/hosts.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { knownAsker, sealedError } from '../admission.ts';
import type { Appliance, OpenState } from '../appliance.ts';
import { bodySource, publicBodyLimit } from '../body.ts';
import type { FairQueue } from '../fair-queue.ts';
import type { AppContext, BodySource, RequestEnv } from '../request.ts';
import type { Reply } from '../request-log.ts';
import { failed, headersOf, type Outcome, refused, textOf } from '../respond.ts';
import type { ServedPath } from '../route.ts';
import type { TenantHandle } from '../tenants.ts';
import {
  bodyOf,
  envelopeIds,
  invalid,
  isSealed,
  noSuchRoute,
  nothing,
  permissionDenied,
  problem,
  type Told,
} from './answers.ts';
import { headerOf, namespaceOf, refusedHeader, tokenOf } from './headers.ts';
import { isKnownPath, isWrite, type Operation, operationOf } from './operations.ts';
import { capabilities, isAboutCapabilities, mounts, serverState } from './sys.ts';
import { flagsOf, holderOf, logIn, lookUpSelf, renewSelf, type TokenAsked } from './tokens.ts';

type Handler = (c: AppContext) => Promise<Reply>;
type Straight = (env: RequestEnv) => Promise<Reply>;

/** What it is made over: our endpoints, where requests wait, and who logs and counts what is none of our endpoints. */
interface Served {
  readonly handlers: ReadonlyMap<EndpointId, Handler>;
  readonly queue: FairQueue;
  logged(path: Pick<ServedPath, 'path' | 'serve' | 'counted'>): Handler;
}

interface TransitSurface {
  fetch(request: Request, env: RequestEnv): Promise<Response>;
  /**
   * What serves requests of that method and target without a Request and a Response; undefined where something in the
   * target is escaped or asked for.
   */
  straightTo(target: string): Straight | undefined;
}

/** What is asked for, whoever does. */
interface Place {
  readonly method: string;
  /** The path behind /v1, decoded, without empty parts. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
  /** Where no tenant stands in the path. */
  readonly operation: () => Operation | string | undefined;
}

/** One request, as far as it is understood. */
interface Asked {
  readonly place: Place;
  /** With all headers. */
  readonly env: RequestEnv;
  readonly source: BodySource;
  readonly token: string | undefined;
}

/** Whose a request is, and what of its path is left then. */
interface TenantAsked {
  /** Undefined where there is no such tenant. */
  readonly handle: TenantHandle | undefined;
  /** The tenant's name or host, as the request has it. */
  readonly name: string;
  readonly path: readonly string[];
}

const plainTarget = /^([A-Z]+) \/v1((?:\/[\w-][\w.-]*)+)$/;
const noQuery = new URLSearchParams();

/** Targets that are remembered, of so many characters at most; one more lets go of them all. */
const mostTargets = 1000;
const longestTarget = 200;

/** Characters of a path, and the parts that it has: a mount of several, an operation, and names that are escaped. */
const longestPath = 2048;
const mostParts = 32;

export function transitSurface(appliance: Appliance, { handlers, queue, logged }: Served): TransitSurface {
  const { world } = appliance;
  const nextId = envelopeIds(world.random);

  async function told(asked: Asked): Promise<Outcome> {
    const { parts, method, query, operation: ofWhole } = asked.place;
    const [root] = parts;
    const { state } = appliance;
    const answer = root === 'sys' ? serverState(asked.place, state.sealed, world.now()) : undefined;
    if (answer) return outcomeOf(answer);
    if (state.sealed) return outcomeOf(isSealed);
    const tenant = tenantAsked(asked, state);
    const { handle, path } = tenant;
    const refusal = refusedHeader(asked.env);
    if (isLogin(method, path)) return loggedIn(asked, state, tenant, refusal).then(outcomeOf);
    if (!handle) return outcomeOf(permissionDenied);
    if (refusal !== undefined) return toHolder(asked, handle, problem(400, refusal)).then(outcomeOf);
    if (path[0] === 'sys') return aboutSystem(asked, handle, path).then(outcomeOf);
    if (path[0] === 'auth') return aboutToken(asked, handle, path).then(outcomeOf);
    if (path.length < 2 || asked.token === undefined) return noRoute(asked, handle).then(outcomeOf);
    const operation = path === parts ? ofWhole() : operationOf(method, path, isList(query));
    if (operation === undefined) return unsupported(asked, handle, path).then(outcomeOf);
    if (typeof operation === 'string') return toHolder(asked, handle, problem(400, operation)).then(outcomeOf);
    return run(asked, handle, operation);
  }

  function outcomeOf(told: Told): Outcome {
    const { status, headers } = told;
    const body = bodyOf(told, nextId);
    return { status, body: body ?? {}, ...(!body && { content: null }), ...(headers && { headers }) };
  }

  /** By the namespace, by the first part of the path where several stand before the operation, or by the host. */
  function tenantAsked(asked: Asked, state: OpenState): TenantAsked {
    const { env, place } = asked;
    const { parts, method, query } = place;
    const namespace = namespaceOf(env);
    if (namespace !== '' && namespace !== 'root') {
      return { handle: state.tenants.byName(namespace), name: namespace, path: parts };
    }
    const tail = parts.slice(1);
    const lists = isList(query);
    // Of three parts the first is the mount, but where the last asks for a list.
    const mayName = parts.length > 3 || tail[0] === 'auth' || (lists && tail[1] === 'keys');
    const name = parts[0]?.toLowerCase() ?? '';
    const first = mayName ? state.tenants.byName(name) : undefined;
    if (first ? tail[0] === 'auth' || operationOf(method, tail, lists) !== undefined : isLogin(method, tail)) {
      return { handle: first, name, path: tail };
    }
    const host = readAuthority(headerOf(env, 'host') ?? '')?.host ?? '';
    return { handle: state.tenants.byHost(host), name: host, path: parts };
  }

  /** Has our endpoint do it, with the body in our words, and its answer in theirs. */
  async function run(asked: Asked, handle: TenantHandle, operation: Operation): Promise<Outcome> {
    const handler = handlers.get(operation.id);
    if (!handler) throw new KmsError('internal', 'expected an endpoint that is served');
    let given: JsonObject = {};
    let answer: Told = nothing;
    const { body, missing } = operation;
    const source: BodySource | undefined = body && {
      read: () => Promise.reject(new KmsError('internal', 'expected a body to be read as a value')),
      async value(limit, holder) {
        given = bodyOfBytes(await asked.source.read(limit, holder), limit);
        return body(given);
      },
    };
    const env = envOf(asked, handle, source, (ours) => {
      answer = operation.answer(ours, given);
      return bodyOf(answer, nextId) ?? {};
    });
    const { outcome } = await handler(contextOf(asked, env, operation));
    if (outcome.status !== 200) return outcomeOf(refusalTo(handle, outcome, missing));
    const { status, data, errors } = answer;
    return data || errors ? { ...outcome, status } : outcomeOf(answer);
  }

  /** What none of our endpoints does. */
  async function own(asked: Asked, handle: TenantHandle | undefined, action: string, work: () => Promise<Told>) {
    let answer: Told | undefined;
    const serve: ServedPath['serve'] = async () => {
      const counted = { action, ...(handle && { tenant: handle.tenant.id }) };
      try {
        answer = await work();
      } catch (error) {
        return { outcome: refused(error), ...counted };
      }
      const { status } = answer;
      return { outcome: { status, body: {} }, ...counted, granted: status < 400 };
    };
    const handler = logged({ path: '/v1', counted: action, serve });
    const { outcome } = await handler(contextOf(asked, asked.env, {}));
    return answer ?? (handle ? refusalTo(handle, outcome) : refusalOf(outcome, undefined));
  }

  /** Where its tenant was deleted while the request was on its way, what the next one is told. */
  function refusalTo({ tenant }: TenantHandle, outcome: Outcome, missing?: string): Told {
    const { state } = appliance;
    const isGone = !state.sealed && state.tenants.byName(tenant.name)?.tenant.id !== tenant.id;
    return isGone ? permissionDenied : refusalOf(outcome, missing);
  }

  function aboutToken(asked: Asked, handle: TenantHandle, path: readonly string[]): Promise<Told> {
    const { method } = asked.place;
    const whole = path.slice(1).join('/');
    if (whole === 'token/lookup-self' && (method === 'GET' || isWrite(method))) {
      return byToken(asked, handle, 'session.read', lookUpSelf);
    }
    if (whole === 'token/renew-self' && isWrite(method)) return byToken(asked, handle, 'session.refresh', renewSelf);
    return noRoute(asked, handle);
  }

  function aboutSystem(asked: Asked, handle: TenantHandle, path: readonly string[]): Promise<Told> {
    const { place, source } = asked;
    if (!isAboutCapabilities(place.method, path)) {
      return toHolder(asked, handle, mounts(place.method, path) ?? noSuchRoute(place.parts));
    }
    return byToken(asked, handle, 'none', async (token) => {
      const flags = await flagsOf(token);
      if (!flags) {
        await holderOf(token, 'none', 403);
        return permissionDenied;
      }
      const bytes = await source.read(publicBodyLimit, undefined);
      const answer = toldOf(() => capabilities(bodyOfBytes(bytes, publicBodyLimit), flags));
      return (await holderOf(token, 'none', answer.status)) ? answer : permissionDenied;
    });
  }

  /** A tenant that there is not is answered as one where nobody has that role. */
  function loggedIn(asked: Asked, open: OpenState, { handle, name }: TenantAsked, refusal: string | undefined) {
    const { token, env, source } = asked;
    const read = async () => bodyOfBytes(await source.read(publicBodyLimit, undefined), publicBodyLimit);
    return own(asked, handle, 'session.create', async () => {
      if (refusal !== undefined) return problem(400, refusal);
      return logIn({ token, env, handle, unknownTenant: name, world }, open.people.appRoleBackoff, read);
    });
  }

  /** In its turn among all requests: who sends tokens that nobody holds waits with the others who do. */
  function byToken(asked: Asked, handle: TenantHandle, action: string, work: (asked: TokenAsked) => Promise<Told>) {
    const { token, env } = asked;
    return own(asked, handle, action, async () => {
      if (token === undefined) return permissionDenied;
      const asker = knownAsker(handle, new Bearer(token), env, world.now());
      const turn = queue.enter(handle.tenant.id, asker ?? 'unknown');
      if (turn) await turn;
      return work({ token, env, handle, world }).finally(() => queue.leave());
    });
  }

  /** What is told to who holds a token alone. */
  function toHolder(asked: Asked, handle: TenantHandle, answer: Told): Promise<Told> {
    return byToken(asked, handle, 'none', async (token) =>
      (await holderOf(token, 'none', answer.status)) ? answer : permissionDenied,
    );
  }

  function noRoute(asked: Asked, handle: TenantHandle): Promise<Told> {
    return toHolder(asked, handle, noSuchRoute(asked.place.parts));
  }

  function unsupported(asked: Asked, handle: TenantHandle, path: readonly string[]): Promise<Told> {
    const isKnown = !isList(asked.place.query) && isKnownPath(path);
    const [status, what] = isKnown ? [405, 'operation'] : [404, 'path'];
    return toHolder(asked, handle, problem(Number(status), `1 error occurred:\n\t* unsupported ${what}\n\n`));
  }

  /** Never fails. `understand` answers undefined for a path that is not under /v1. */
  async function replyTo(understand: () => Asked | undefined): Promise<Reply> {
    try {
      const asked = understand();
      if (!asked) return { outcome: outcomeOf(problem(404, 'no handler for this path: all are under /v1/')) };
      return { outcome: await told(asked) };
    } catch (error) {
      const isMeant = error instanceof KmsError && refused(error).status < 500;
      if (!isMeant) appliance.logger.error({ err: error, route: '/v1' }, 'request failed');
      return { outcome: outcomeOf(refusalOf(isMeant ? refused(error) : failed(error), undefined)) };
    }
  }

  function straightAt(place: Place): Straight {
    return (env) => replyTo(() => ({ place, env, source: env.body ?? noBody, token: tokenOf(env) }));
  }

  const straight = new Map<string, Straight>();

  return {
    async fetch(request, env) {
      const { outcome } = await replyTo(() => askedByRequest(request, env));
      const { status, stream } = outcome;
      const headers = headersOf(outcome);
      const content = request.method === 'HEAD' ? null : (stream ?? textOf(outcome) ?? null);
      return new Response(content, { status, headers });
    },
    straightTo(target) {
      const known = straight.get(target);
      if (known) return known;
      const [, method, path] = (target.length <= longestPath && plainTarget.exec(target)) || [];
      const parts = path?.slice(1).split('/') ?? [];
      if (method === undefined || parts.length > mostParts || method === 'HEAD') return undefined;
      const made = straightAt(placeOf(method, parts, noQuery));
      if (straight.size >= mostTargets) straight.clear();
      if (target.length <= longestTarget) straight.set(target, made);
      return made;
    },
  };
}

/** What is asked for is found out once, and for who has a token alone. */
function placeOf(method: string, parts: readonly string[], query: URLSearchParams): Place {
  let found: { readonly operation: ReturnType<typeof operationOf> } | undefined;
  const operation = () => {
    found ??= { operation: operationOf(method, parts, isList(query)) };
    return found.operation;
  };
  return { method, parts, query, operation };
}

/** An answer, or the refusal that making it threw. */
function toldOf(make: () => Told): Told {
  try {
    return make();
  } catch (error) {
    return refusalOf(refused(error), undefined);
  }
}

const noBody: BodySource = { read: async () => new Uint8Array() };

/** As Go reads truth values: hvac asks with `list=True`. */
function isList(query: URLSearchParams): boolean {
  return query !== noQuery && /^(?:1|t|T|true|TRUE|True)$/.test(query.get('list') ?? '');
}

/** What a refusal of ours is in their words. */
function refusalOf({ status, headers, body }: Outcome, missing: string | undefined): Told {
  const message: unknown = Reflect.get(body, 'message');
  const text = typeof message === 'string' ? message : 'the request was refused';
  if (status === 401) return permissionDenied;
  if (status === 403 && text.startsWith('the permission flag')) return permissionDenied;
  if (status === 404) return missing === undefined ? nothing : problem(400, missing);
  if (status === 503 && text === sealedError.message) return isSealed;
  return { ...problem(status, text), headers };
}

function isLogin(method: string, path: readonly string[]): boolean {
  return path.length === 3 && path[0] === 'auth' && path[2] === 'login' && isWrite(method);
}

const tooLong = invalid(`the path is longer than ${longestPath} characters, or has more than ${mostParts} parts`);

/** Undefined for a path that is not under /v1. Throws `invalid` for one that cannot be read. */
function askedByRequest(request: Request, given: RequestEnv): Asked | undefined {
  const url = new URL(request.url);
  const { pathname } = url;
  if (pathname.length > longestPath) throw tooLong;
  const parts = pathname.split('/').filter((part) => part !== '');
  if (parts.shift() !== 'v1') return undefined;
  if (parts.length > mostParts) throw tooLong;
  let decoded: string[];
  try {
    decoded = parts.map(decodeURIComponent);
  } catch {
    throw invalid('the path is not well-formed');
  }
  // The host of a request that has no such header is that of its address.
  const env = given.headers ? given : { ...given, headers: { host: url.host, ...Object.fromEntries(request.headers) } };
  const source = bodySource(env, request);
  return { place: placeOf(request.method, decoded, url.searchParams), env, source, token: tokenOf(env) };
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** An object; empty where nothing came. `bytes` is undefined for more than the limit. Throws `invalid`, `too-large`. */
function bodyOfBytes(bytes: Uint8Array | undefined, limit: number): JsonObject {
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
}

/** What an endpoint of ours is told of where the request came from, with the headers that it goes by. */
function envOf(
  { env, token }: Asked,
  { tenant }: TenantHandle,
  body?: BodySource,
  answer?: RequestEnv['answer'],
): RequestEnv {
  const { headers: given = {}, remoteAddress, room } = env;
  const headers = {
    'content-type': 'application/json',
    'content-length': given['content-length'],
    'content-encoding': given['content-encoding'],
    authorization: token === undefined ? undefined : `Bearer ${token}`,
  };
  return { headers, tenant: tenant.name, remoteAddress, room, body, answer };
}

function contextOf({ place }: Asked, env: RequestEnv, operation: Pick<Operation, 'params' | 'query'>): AppContext {
  return { env, req: new OurRequest(place.method, operation) };
}

const noParams: Readonly<Record<string, string>> = {};

/** A request to one of our endpoints, of which the path says nothing more. */
class OurRequest {
  readonly method: string;
  readonly #operation: Pick<Operation, 'params' | 'query'>;

  constructor(method: string, operation: Pick<Operation, 'params' | 'query'>) {
    this.method = method;
    this.#operation = operation;
  }

  get path(): string {
    return '/v1';
  }

  get url(): string {
    return this.#operation.query ? '/v1?' : '/v1';
  }

  get raw(): AppContext['req']['raw'] {
    return { body: null };
  }

  query(): Record<string, string> {
    return { ...this.#operation.query };
  }

  param(): Readonly<Record<string, string>> {
    return this.#operation.params ?? noParams;
  }

  header(): undefined {
    return undefined;
  }
}
