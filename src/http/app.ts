// The one Hono app behind every way in: the network, the local socket, a call in process. Each declared endpoint is
// bound to its route; health, local endpoints and the console's files stand beside them; what is left is an unknown
// path or another method.
import { Hono } from 'hono';
import { actionOf, type Endpoint } from '../api/endpoint.ts';
import { endpoints } from '../api/endpoints.ts';
import { localEndpoints } from '../api/local.ts';
import type { AppDeps } from './deps.ts';
import { type LocalHandlers, type PlainLocalHandler, serveLocal } from './local.ts';
import { consoleRoutes, descriptionRoutes, serveUnknownPage } from './pages.ts';
import { type PlainRoute, serveEndpoint } from './pipeline.ts';
import type { RequestEnv } from './request.ts';
import { logged, requestIds } from './request-log.ts';
import { chainHandlers } from './routes/activity.ts';
import { linkHandlers } from './routes/people.ts';
import { healthRoutes, sealRoutes } from './routes/system.ts';
import { routes } from './routes.ts';
import { serveUnmatched } from './unmatched.ts';

export type App = Hono<{ Bindings: RequestEnv }>;

export function createApp(deps: AppDeps): App {
  const app: App = new Hono();
  const ids = requestIds(deps.world.newId('act').slice(-8));
  const beside = [...healthRoutes(deps), ...sealRoutes(deps), ...consoleRoutes(deps), ...descriptionRoutes(deps)];
  const local: Partial<LocalHandlers> = { ...linkHandlers(deps), ...chainHandlers(deps), ...deps.local };
  const localHere = localEndpoints.filter(({ id }) => local[id]);

  for (const endpoint of endpoints) {
    // The types of `routes` have bound this route to this endpoint; here only the declaration counts.
    const serve = serveEndpoint(deps, endpoint, routes[endpoint.id] as PlainRoute);
    app.on(endpoint.method, honoPath(endpoint.path), logged(deps, ids, endpoint.path, serve, countedAs(endpoint)));
  }
  for (const { method, path, serve } of beside) app.on(method, honoPath(path), logged(deps, ids, path, serve));
  for (const endpoint of localHere) {
    // Likewise bound to its endpoint by the type of `local`.
    const serve = serveLocal(deps, endpoint, local[endpoint.id] as PlainLocalHandler);
    app.on(endpoint.method, honoPath(endpoint.path), logged(deps, ids, endpoint.path, serve));
  }
  if (deps.consoleFiles) app.get('/console/*', logged(deps, ids, 'none', serveUnknownPage(deps)));

  const known = [...endpoints, ...beside, ...localHere.map((endpoint) => ({ ...endpoint, local: true }))];
  app.notFound(logged(deps, ids, 'none', serveUnmatched(deps, known), 'none'));
  return app;
}

/** The action; where there is none in the activity log, the endpoint's id. */
function countedAs({ id, access }: Endpoint): string {
  return access.kind === 'public' ? id : actionOf(access);
}

/** `/ks/hash/{hash}` as Hono has it. */
function honoPath(path: string): string {
  return path.replaceAll('{', ':').replaceAll('}', '');
}
