// The one Hono app behind every way in: the network, the local socket, a call in process, whether the appliance is
// sealed or open. Its routes stand here, in the order in which a request is compared with them; what none of them takes
// is an unknown path or another method.
import { Hono } from 'hono';
import type { Endpoint } from '../api/endpoint.ts';
import { endpoints } from '../api/endpoints.ts';
import { localEndpoints } from '../api/local.ts';
import { sealEndpoints } from '../api/system.ts';
import type { Appliance } from './appliance.ts';
import { serveLocal } from './local.ts';
import { consolePaths, descriptionPaths } from './pages.ts';
import { type PlainRoute, serveEndpoint } from './pipeline.ts';
import type { RequestEnv } from './request.ts';
import { logged, requestIds } from './request-log.ts';
import type { ServedPath } from './route.ts';
import { alwaysServed, sealRoute } from './routes/system.ts';
import { routes } from './routes.ts';
import { serveUnmatched } from './unmatched.ts';

export type App = Hono<{ Bindings: RequestEnv }>;

export function createApp(appliance: Appliance): App {
  // Cast: types have bound each route to its endpoint where it is declared; from here on only the declaration counts.
  const ofTenant = (endpoint: Endpoint, route: unknown) => serveEndpoint(appliance, endpoint, route as PlainRoute);
  const registry: readonly ServedPath[] = [
    // Each in one transaction of its tenant, with the record of it: 503 while the appliance is sealed.
    ...endpoints.map((endpoint) => ofTenant(endpoint, routes[endpoint.id])),
    ofTenant(sealEndpoints.seal, sealRoute),
    // Health, the seal's state, unsealing.
    ...alwaysServed(appliance),
    // Files for people.
    ...consolePaths(appliance),
    ...descriptionPaths(appliance),
    // For the administrator at the machine, unknown to everybody else.
    ...localEndpoints.map((endpoint) => serveLocal(appliance, endpoint)),
  ];
  const app: App = new Hono();
  const ids = requestIds(appliance.world.newId('act').slice(-8));
  for (const served of registry) app.on(served.method, honoPath(served.path), logged(appliance, ids, served));
  const serve = serveUnmatched(appliance, registry);
  app.notFound(logged(appliance, ids, { path: 'none', counted: 'none', serve }));
  return app;
}

/** `/ks/hash/{hash}` as Hono has it. */
function honoPath(path: string): string {
  return path.replaceAll('{', ':').replaceAll('}', '');
}
