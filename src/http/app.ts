// The one app behind every entry: network, local socket and in-process calls, sealed or open. Its paths are listed
// here. The router picks the handler; requests on another system's listener go to the surface of that name.
import type { Endpoint } from '../api/endpoint.ts';
import { type EndpointId, endpoints } from '../api/endpoints.ts';
import { localEndpoints } from '../api/local-endpoints.ts';
import { sealEndpoints } from '../api/system.ts';
import type { AppliancePort } from './appliance-port.ts';
import { FairQueue } from './fair-queue.ts';
import { type AppFetch, fetchFrom } from './fetch.ts';
import { serveLocal } from './local.ts';
import type { PlainRoute } from './plain-route.ts';
import { consolePaths, descriptionPaths } from './public-files.ts';
import { type Answer, type Handler, logged, requestIds } from './request-log.ts';
import { EndpointWay } from './request-way.ts';
import type { PathParams, ServedPath } from './route.ts';
import { routes } from './route-table.ts';
import { Router } from './router.ts';
import { alwaysServed, sealRoute } from './routes/system.ts';
import type { EndpointCall, Surfaces, Ways } from './surface.ts';
import { serveUnmatched } from './unmatched.ts';

export interface App {
  /** All served paths, in the order of declaration. */
  readonly paths: readonly Pick<ServedPath, 'method' | 'path'>[];
  handle: Answer;
  /** The same app as a `fetch` function. */
  fetch: AppFetch;
}

/** A path with the handler of its requests. */
interface HandledPath extends ServedPath {
  readonly handle: Handler<PathParams>;
}

const noParams: PathParams = Object.freeze({});

export function createApp(appliance: AppliancePort, surfaces: Surfaces): App {
  const queue = new FairQueue(appliance.fairLimits);
  const ids = requestIds(appliance.world.newId('act').slice(-8));
  const ways = endpointWays(appliance, queue);
  const served = servedPaths(appliance, [...ways.values(), wayOf(appliance, sealEndpoints.seal, sealRoute, queue)]);
  const handled = served.map((each): HandledPath => ({ ...each, handle: logged(appliance, ids, each, each.serve) }));
  const router = new Router(handled);
  const unmatched = logged(appliance, ids, { path: 'none', counted: 'none' }, serveUnmatched(appliance, router));
  const fromSurfaces: Ways = {
    endpoints: new Map<EndpointId, Handler<EndpointCall>>(
      [...ways].map(([id, way]) => [id, logged(appliance, ids, way.served, way.answerCall)]),
    ),
    queue,
    logged: (path, serve) => logged(appliance, ids, path, serve),
  };
  const bySurface = new Map(Object.entries(surfaces).map(([name, make]) => [name, make(appliance, fromSurfaces)]));
  const native: Answer = (request) => {
    const found = router.find(request.method, request.path);
    return found ? found.served.handle(request, found.params) : unmatched(request, noParams);
  };
  const handle: Answer = (request) => {
    const answer = request.surface === undefined ? native : bySurface.get(request.surface);
    return answer ? answer(request) : unmatched(request, noParams);
  };
  return { paths: served, handle, fetch: fetchFrom(handle) };
}

/** One transaction of the tenant for each request, activity record included; 503 while the appliance is sealed. */
function endpointWays(appliance: AppliancePort, queue: FairQueue): Map<EndpointId, EndpointWay> {
  return new Map(
    endpoints.map((endpoint) => [endpoint.id, wayOf(appliance, endpoint, routes[endpoint.id], queue)] as const),
  );
}

function wayOf(appliance: AppliancePort, endpoint: Endpoint, route: unknown, queue: FairQueue): EndpointWay {
  // Cast: types have bound each route to its endpoint at its declaration; from here on only the declaration counts.
  return new EndpointWay(appliance, endpoint, route as PlainRoute, queue);
}

function servedPaths(appliance: AppliancePort, ways: readonly EndpointWay[]): readonly ServedPath[] {
  return [
    ...ways.map(({ served }) => served),
    // Health, seal status, unsealing.
    ...alwaysServed(appliance),
    // Files for people.
    ...consolePaths(appliance),
    ...descriptionPaths(appliance),
    // For the administrator at the machine; all others get an unknown path.
    ...localEndpoints.map((endpoint) => serveLocal(appliance, endpoint)),
  ];
}
