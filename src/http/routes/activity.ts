// Routes of the activity log, and of its auditor: the log's head, its records as an export, and for the administrator
// its whole chain verified on the disk. Records may lie in closed segments, so they are read beside the transaction.
import type { activityEndpoints } from '../../api/activity.ts';
import {
  type ActivityHead,
  chainEnd,
  exportChain,
  exportStart,
  getActivity,
  needOwnHead,
  parseHead,
  searchActivity,
  signHead,
  verifyActivity,
} from '../../core/activity.ts';
import { beside, type RoutesOf, type TenantRoutes } from '../route.ts';
import type { TenantHandle } from '../tenants.ts';

export const activityRoutes: RoutesOf<(typeof activityEndpoints)[number]['id']> = {
  searchActivity: beside(({ handle, body, page }) => searchActivity(handle.store, body, page)),
  getActivity: beside(({ handle, params }) => getActivity(handle.store, params.id)),
  getActivityHead: beside(async ({ appliance, handle: { tenant, store } }) =>
    signHead(tenant, await chainEnd(store), appliance.world.now()),
  ),
  exportActivity: {
    async prepare({ handle, body }) {
      const { store } = handle;
      const start = await exportStart(store, sinceOf(handle, body));
      // Nothing is read before the record of it is durable: it is the last one.
      return async ({ caller }) => exportChain(store, start, caller.id);
    },
  },
};

/** What the administrator asks of the chain on the disk, from a head that was kept on where there is one. */
export const chainRoutes: Pick<TenantRoutes, 'verifyActivity'> = {
  async verifyActivity({ handle, body }) {
    const since = sinceOf(handle, body);
    const { count, head, broken } = await verifyActivity(handle.store, since);
    return {
      tenant: handle.tenant.name,
      valid: broken === undefined,
      count,
      head,
      ...(broken && { broken }),
      ...(since && { since }),
    };
  },
};

function sinceOf({ tenant }: TenantHandle, { since }: { readonly since?: unknown }): ActivityHead | undefined {
  if (since === undefined) return undefined;
  const head = parseHead(since, 'since');
  needOwnHead(tenant, head);
  return head;
}
