// The one Hono app behind every way in: the network, the local socket, a call in process, whether the appliance is
// sealed or open. Its routes stand here, in the order in which a request is compared with them; what none of them takes
// is an unknown path or another method.
import { Hono } from 'hono';
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
  const registry: readonly ServedPath[] = [
    ...[...endpoints, sealEndpoints.seal].map((endpoint) =>
      // The types of `routes` have bound this route to this endpoint; here only the declaration counts.
      serveEndpoint(appliance, endpoint, { ...routes, seal: sealRoute }[endpoint.id] as PlainRoute),
    ),
    ...alwaysServed(appliance),
    ...consolePaths(appliance),
    ...descriptionPaths(appliance),
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
