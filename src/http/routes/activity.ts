// Routes of the activity log and its auditor: the log's head, its records as an export, and for the administrator its
// whole chain verified on disk. Records may be in closed segments, so they are read outside the transaction.
import type { activityEndpoints } from '../../api/activity.ts';
import {
  type ActivityHead,
  chainBegin,
  chainEnd,
  exportChain,
  exportStart,
  getActivity,
  needOwnHead,
  parseHead,
  signHead,
  verifyActivity,
} from '../../core/activity.ts';
import { searchActivity } from '../../core/activity-search.ts';
import { beside, type RoutesOf, type TenantRoutes } from '../route.ts';
import type { TenantHandle } from '../tenant-directory.ts';

export const activityRoutes: RoutesOf<(typeof activityEndpoints)[number]['id']> = {
  searchActivity: beside(({ handle, body, page }) => searchActivity(handle.store, body, page)),
  getActivity: beside(({ handle, params }) => getActivity(handle.store, params.id)),
  getActivityHead: beside(async ({ appliance, handle: { tenant, store }, query }) => {
    const { seq } = chainBegin(store);
    const end = await chainEnd(store);
    const head = signHead(tenant, end, appliance.world.now(), query.postQuantum === 'true');
    return seq === 0 ? head : { ...head, from: seq + 1 };
  }),
  exportActivity: {
    async prepare({ appliance, handle, body }) {
      const { store, tenant } = handle;
      const since = sinceOf(handle, body);
      const begin = chainBegin(store);
      const start = await exportStart(store, since ?? begin);
      const isLater = since === undefined && begin.seq > 0;
      const leading = isLater ? signHead(tenant, begin, appliance.world.now()) : undefined;
      // Nothing is read before the record of the export itself, its last one, is durable.
      return ({ caller }) => exportChain(store, start, caller.id, leading);
    },
  },
};

/** The administrator's check of the chain on disk, from an earlier head if one is given. */
export const chainRoutes: Pick<TenantRoutes, 'verifyActivity'> = {
  async verifyActivity({ handle, body }) {
    const since = sinceOf(handle, body);
    const { count, head, start, broken } = await verifyActivity(handle.store, since);
    return {
      tenant: handle.tenant.name,
      valid: broken === undefined,
      count,
      head,
      ...(start.seq > 0 && { dropped: start }),
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
