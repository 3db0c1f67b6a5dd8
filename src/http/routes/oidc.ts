// Routes of OpenID Connect: logins, which talk to the provider before the transaction, and the settings that the
// administrator at the machine makes.
import type { oidcEndpoints } from '../../api/oidc.ts';
import {
  getProvider,
  noProvider,
  type Provider,
  providerOf,
  removeProvider,
  setProvider,
  shownName,
  unlinkUser,
} from '../../core/identity-provider.ts';
import { finishLogin, loginByClaims, startLogin } from '../../core/oidc.ts';
import { KmsError } from '../../errors.ts';
import type { Transaction } from '../../store/port.ts';
import type { RequestScope, RoutesOf, TenantRoutes } from '../route.ts';

export const oidcRoutes: RoutesOf<(typeof oidcEndpoints)[number]['id']> = {
  describeOidc({ tx }) {
    const provider = providerOf(tx);
    return { enabled: provider !== undefined, name: provider ? shownName(provider) : null };
  },
  startOidc: {
    async prepare(input) {
      const started = await startLogin(placeOf(input, await neededProvider(input)));
      return () => started;
    },
  },
  finishOidc: {
    async prepare(input) {
      const { body, open, handle, address } = input;
      const { backoff, lifetimes } = open.people;
      const provider = await neededProvider(input);
      const origin = { tenant: handle.tenant.id, address };
      const attempt = await backoff.begin(origin);
      try {
        const proven = await finishLogin(placeOf(input, provider), body);
        return (ctx) => {
          const answer = loginByClaims(ctx, { provider, proven, lifetimes });
          // Only here: a login accepted by the provider but unknown to the tenant is no success.
          backoff.forgive(origin);
          return answer;
        };
      } catch (error) {
        if (!(error instanceof KmsError) || error.code !== 'invalid') throw error;
        attempt.failed();
        return (ctx) => {
          ctx.identify?.(undefined);
          throw error;
        };
      } finally {
        attempt.abandoned();
      }
    },
  },
};

function placeOf({ open, handle, appliance: { world } }: RequestScope, provider: Provider) {
  const redirectUri = `${handle.baseUrl ?? open.baseUrl}/console/oidc`;
  return { tenant: handle.tenant, provider, redirectUri, world, client: open.people.oidc };
}

async function neededProvider({ handle }: RequestScope): Promise<Provider> {
  const provider = await handle.store.transaction(providerOf);
  if (!provider) throw noProvider();
  return provider;
}

export const oidcAdminRoutes: Pick<TenantRoutes, 'getOidc' | 'setOidc' | 'removeOidc' | 'unlinkOidc'> = {
  getOidc: ({ handle }) => handle.store.transaction((tx) => getProvider({ tx })),
  setOidc: (input) => asAdmin(input, (ctx) => setProvider(ctx, input.body)),
  removeOidc: (input) => asAdmin(input, removeProvider),
  unlinkOidc: (input) => asAdmin(input, (ctx) => unlinkUser(ctx, input.body.username)),
};

function asAdmin<R>(
  { handle, appliance: { world } }: RequestScope,
  run: (ctx: Parameters<typeof removeProvider>[0] & { readonly tx: Transaction }) => R,
): Promise<R> {
  const { id, name } = handle.tenant;
  return handle.store.transaction((tx) => run({ tx, world, tenant: { type: 'tenant', id, name } }));
}
