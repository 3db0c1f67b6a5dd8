// Routes of the activity log, and the local endpoints of its auditor: the log's head, its whole chain verified, its
// records as an export. Records may lie in closed segments on disk, so they are read before the transaction.
import type { activityEndpoints } from '../../api/activity.ts';
import {
  type ActivityHead,
  activityRecord,
  chainEnd,
  exportChain,
  getActivity,
  needOwnHead,
  parseHead,
  searchActivity,
  signHead,
  verifyActivity,
} from '../../core/activity.ts';
import { localCaller } from '../../core/credential.ts';
import { beside, type RoutesOf, type TenantRoutes } from '../route.ts';
import type { TenantHandle } from '../tenants.ts';

export const activityRoutes: RoutesOf<(typeof activityEndpoints)[number]['id']> = {
  searchActivity: beside(({ handle, body, page }) => searchActivity(handle.store, body, page)),
  getActivity: beside(({ handle, params }) => getActivity(handle.store, params.id)),
};

/** What the auditor asks of the chain, from a head that was kept on where there is one. */
export const chainRoutes: Pick<TenantRoutes, 'activityHead' | 'verifyActivity' | 'exportActivity'> = {
  activityHead: async ({ appliance, handle: { tenant, store } }) =>
    signHead(tenant, await chainEnd(store), appliance.world.now()),
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
  async exportActivity({ appliance, handle, body }) {
    const { store } = handle;
    const since = sinceOf(handle, body);
    await exportChain(store, since);
    // Who takes the whole log away is in it, as its last record.
    const record = activityRecord(appliance.world, { keyid: localCaller.id, action: 'activity.read' });
    await store.transaction(async (tx) => tx.record(record));
    return exportChain(store, since);
  },
};

function sinceOf({ tenant }: TenantHandle, { since }: { readonly since?: unknown }): ActivityHead | undefined {
  if (since === undefined) return undefined;
  const head = parseHead(since, 'since');
  needOwnHead(tenant, head);
  return head;
}
