// The local endpoint by which a fresh appliance gets the link for its first administrator.
import { setUpLink } from '../../core/set-up.ts';
import { sealedError } from '../admission.ts';
import type { AppDeps, LocalRoute } from '../deps.ts';
import { linksOf } from '../people.ts';
import { localTenant } from '../tenants.ts';

/** POST `/local/set-up-link`: `{url, expiresAt}`. */
export function setUpLinkRoute(deps: AppDeps): LocalRoute {
  return {
    method: 'POST',
    path: '/local/set-up-link',
    handle({ tenant: named }) {
      if (deps.sealed?.()) throw sealedError;
      const handle = localTenant(deps.tenants, named);
      const { tenant, store } = handle;
      const links = linksOf({ deps, handle });
      return store.transaction((tx) => setUpLink({ tx, tenant, world: deps.world }, { links }));
    },
  };
}
