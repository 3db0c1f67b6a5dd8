// The one Hono app behind every way in: the network, the local socket, a call in process, whether the appliance is
// sealed or open. Its routes stand here, in the order in which a request is compared with them; what none of them takes
// is an unknown path or another method.
import { Hono } from 'hono';
import type { Endpoint } from '../api/endpoint.ts';
import { type EndpointId, endpoints } from '../api/endpoints.ts';
import { localEndpoints } from '../api/local.ts';
import { sealEndpoints } from '../api/system.ts';
import type { Appliance } from './appliance.ts';
import { FairQueue } from './fair-queue.ts';
import { serveLocal } from './local.ts';
import { consolePaths, descriptionPaths } from './pages.ts';
import { type PlainRoute, serveEndpoint } from './pipeline.ts';
import type { AppContext, RequestEnv } from './request.ts';
import { logged, type Reply, requestIds } from './request-log.ts';
import { respond } from './respond.ts';
import type { ServedPath } from './route.ts';
import { alwaysServed, sealRoute } from './routes/system.ts';
import { routes } from './routes.ts';
import { tangSurface } from './tang.ts';
import { transitSurface } from './transit/surface.ts';
import { isShadowed, serveUnmatched } from './unmatched.ts';

export interface App {
  /** What it serves, in the order in which a request is compared with it. */
  readonly paths: readonly Pick<ServedPath, 'method' | 'path'>[];
  /** Answers any request. */
  fetch: (request: Request, env: RequestEnv) => Response | Promise<Response>;
  /**
   * What serves requests of that method and target, such as `POST /ks/encrypt`, where that is a path without parameters
   * or with one plain one at its end; undefined for all others. A server that has a request's parts may ask this, and
   * spare itself the making of a Request, its routing, and of a Response: a fifth of what an encrypt takes.
   */
  straightTo(target: string, surface?: Surface): Straight | undefined;
}

/** Which listener requests come to, where it is not the usual one. */
export type Surface = Pick<RequestEnv, 'transit' | 'tang'>;

/** Never fails. */
export type Straight = (env: RequestEnv) => Promise<Reply>;

export function createApp(appliance: Appliance): App {
  // Cast: types have bound each route to its endpoint where it is declared; from here on only the declaration counts.
  const queue = new FairQueue(appliance.fairLimits);
  const ofTenant = (endpoint: Endpoint, route: unknown) =>
    serveEndpoint(appliance, endpoint, route as PlainRoute, queue);
  const ofTenants = new Map(endpoints.map((each) => [each.id, ofTenant(each, routes[each.id])] as const));
  const registry: readonly ServedPath[] = [
    // Each in one transaction of its tenant, with the record of it: 503 while the appliance is sealed.
    ...ofTenants.values(),
    ofTenant(sealEndpoints.seal, sealRoute),
    // Health, the seal's state, unsealing.
    ...alwaysServed(appliance),
    // Files for people.
    ...consolePaths(appliance),
    ...descriptionPaths(appliance),
    // For the administrator at the machine, unknown to everybody else.
    ...localEndpoints.map((endpoint) => serveLocal(appliance, endpoint)),
  ];
  const straight = new Map<string, Straight>();
  const withParameter = new Map<string, (value: string) => Straight>();
  const ids = requestIds(appliance.world.newId('act').slice(-8));
  const responding = (handle: Handler) => async (c: AppContext) => {
    const { outcome, state } = await handle(c);
    return respond(outcome, state);
  };
  const serve = serveUnmatched(appliance, registry);
  const unmatched = responding(logged(appliance, ids, { path: 'none', counted: 'none', serve }));
  // Hono takes a HEAD for a GET.
  const refusingHead = (handle: Handler) => (c: AppContext) =>
    c.req.method === 'HEAD' ? unmatched(c) : responding(handle)(c);
  const concrete = new Map<string, Set<string>>();
  for (const { method, path } of registry) {
    if (!path.includes('{')) concrete.set(path, (concrete.get(path) ?? new Set()).add(method));
  }
  const handled = registry.map((served) => ({ served, handle: logged(appliance, ids, served) }));
  for (const { served, handle } of handled) {
    const target = `${served.method} ${served.path}`;
    const [, start, name] = /^([^{]*\/)\{(\w+)\}$/.exec(target) ?? [];
    if (!target.includes('{')) straight.set(target, straightTo(served, handle, {}));
    else if (start !== undefined && name !== undefined) {
      withParameter.set(start, (value) => straightTo(served, handle, { [name]: value }));
    }
  }
  const makeRouter = () => {
    const hono = new Hono<{ Bindings: RequestEnv }>();
    for (const [path, methods] of concrete) {
      for (const other of registry) {
        if (!methods.has(other.method) && isShadowed(path, other.path)) hono.on(other.method, path, unmatched);
      }
    }
    for (const { served, handle } of handled) {
      hono.on(served.method, honoPath(served.path), (served.noHead ? refusingHead : responding)(handle));
    }
    hono.notFound(unmatched);
    return hono;
  };
  /** A start needs none. */
  let router: ReturnType<typeof makeRouter> | undefined;
  const handlers = new Map<EndpointId, Handler>();
  for (const [id, served] of ofTenants) handlers.set(id, logged(appliance, ids, served));
  const transit = transitSurface(appliance, { handlers, queue, logged: (served) => logged(appliance, ids, served) });
  const tang = tangSurface(appliance, queue, (served) => logged(appliance, ids, served));
  return {
    paths: registry,
    fetch(request, env) {
      if (env.tang) return tang(request, env);
      if (env.transit) return transit.fetch(request, env);
      router ??= makeRouter();
      return router.fetch(request, env);
    },
    straightTo(target, surface) {
      if (surface?.tang) return undefined;
      if (surface?.transit) return transit.straightTo(target);
      const known = straight.get(target);
      if (known) return known;
      const end = target.lastIndexOf('/') + 1;
      const value = target.slice(end);
      if (!plainValue.test(value) || concrete.has(target.slice(target.indexOf(' ') + 1))) return undefined;
      return withParameter.get(target.slice(0, end))?.(value);
    },
  };
}

/**
 * A value that stands for itself: nothing in it is escaped, and nothing follows it. Neither `.` nor `..`, which lead
 * away.
 */
const plainValue = /^[\w-][\w.-]*$/;

type Handler = (c: AppContext) => Promise<Reply>;

/** Of a request there is nothing to know but its headers and its body, which are the server's to give. */
function straightTo({ method, path }: ServedPath, handle: Handler, params: Readonly<Record<string, string>>): Straight {
  const req: AppContext['req'] = {
    method,
    path,
    url: path,
    raw: { body: null },
    query: () => ({}),
    param: () => params,
    header: () => undefined,
  };
  return (env) => handle({ env, req });
}

/** `/ks/hash/{hash}` as Hono has it. */
function honoPath(path: string): string {
  return path.replaceAll('{', ':').replaceAll('}', '');
}
