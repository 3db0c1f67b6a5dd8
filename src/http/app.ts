// The one Hono app behind every way in: the network, the local socket, a call in process. Each declared endpoint is bound to
// its route; health, local endpoints and the console's files stand beside them; what is left is an unknown path or another method.
import { Hono } from 'hono';
import type { Endpoint } from '../api/endpoint.ts';
import { endpoints } from '../api/endpoints.ts';
import { publicEndpoints } from '../api/health.ts';
import { consoleRoutes, serveUnknownPage } from './console.ts';
import type { AppDeps, RequestEnv } from './deps.ts';
import { descriptionRoutes } from './description.ts';
import { serveHealth, serveReadiness } from './health.ts';
import { serveLocal } from './local.ts';
import { type PlainRoute, serveEndpoint } from './pipeline.ts';
import { logged, requestIds } from './request-log.ts';
import { activityChainRoutes } from './routes/activity-chain.ts';
import { resetLinkRoute } from './routes/reset-link.ts';
import { setUpLinkRoute } from './routes/set-up-link.ts';
import { routes } from './routes.ts';
import { sealRoutes } from './seal.ts';
import { serveUnmatched } from './unmatched.ts';

export type App = Hono<{ Bindings: RequestEnv }>;

export function createApp(deps: AppDeps): App {
  const app: App = new Hono();
  const ids = requestIds(deps.world.newId('act').slice(-8));
  const localRoutes = [
    resetLinkRoute(deps),
    setUpLinkRoute(deps),
    ...activityChainRoutes(deps),
    ...(deps.localRoutes ?? []),
  ];
  const health = [
    { method: 'GET', path: publicEndpoints.health.path, serve: serveHealth },
    { method: 'GET', path: publicEndpoints.readiness.path, serve: serveReadiness(deps) },
  ] as const;
  const pages = consoleRoutes(deps);
  const description = descriptionRoutes(deps);
  const seal = sealRoutes(deps);

  for (const endpoint of endpoints) {
    const route = routes[endpoint.id];
    // The types of `routes` have bound this route to this endpoint; here only the declaration counts.
    const plain = (typeof route === 'function' ? { run: route } : route) as PlainRoute;
    const serve = serveEndpoint(deps, endpoint, plain);
    app.on(endpoint.method, honoPath(endpoint.path), logged(deps, ids, endpoint.path, serve, countedAs(endpoint)));
  }
  for (const { method, path, serve } of [...health, ...seal, ...pages, ...description]) {
    app.on(method, honoPath(path), logged(deps, ids, path, serve));
  }
  for (const route of localRoutes) {
    app.on(route.method, honoPath(route.path), logged(deps, ids, route.path, serveLocal(deps, route)));
  }

  if (pages.length > 0) app.get('/console/*', logged(deps, ids, 'none', serveUnknownPage(deps)));

  const known = [
    ...endpoints,
    ...health,
    ...seal,
    ...pages,
    ...description,
    ...localRoutes.map((route) => ({ ...route, local: true })),
  ];
  app.notFound(logged(deps, ids, 'none', serveUnmatched(deps, known), 'none'));
  return app;
}

/** The action; where there is none in the activity log, the endpoint's id. */
function countedAs({ id, access }: Endpoint): string {
  return access.kind === 'public' ? id : access.action;
}

/** `/ks/hash/{hash}` as Hono has it. */
function honoPath(path: string): string {
  return path.replaceAll('{', ':').replaceAll('}', '');
}
