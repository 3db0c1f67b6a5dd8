// The local endpoints of the auditor: the activity log's head, its whole chain verified, its records as an export.
import { chainEnd, exportChain, verifyActivity } from '../../core/activity-chain.ts';
import { type ActivityHead, needOwnHead, parseHead, signHead } from '../../core/activity-head.ts';
import { localCaller } from '../../core/credential.ts';
import { sealedError } from '../admission.ts';
import type { AppDeps, LocalInput, LocalRoute, TenantHandle } from '../deps.ts';
import { LocalStream } from '../local.ts';
import { localTenant } from '../tenants.ts';

/**
 * GET `/local/activity/head`; POST `/local/activity/verify` and `/local/activity/export`, both with `since`, a head that was kept,
 * where there is one. All of the tenant that the request names.
 */
export function activityChainRoutes(deps: AppDeps): readonly LocalRoute[] {
  const { world } = deps;
  const route = (
    method: LocalRoute['method'],
    path: string,
    handle: (tenant: TenantHandle, since: ActivityHead | undefined) => Promise<object>,
  ): LocalRoute => ({ method, path, handle: async (input) => handle(tenantOf(deps, input), sinceOf(deps, input)) });

  return [
    route('GET', '/local/activity/head', async ({ tenant, store }) =>
      signHead(tenant, await chainEnd(store), world.now()),
    ),
    route('POST', '/local/activity/verify', async ({ tenant, store }, since) => {
      const { count, head, broken } = await verifyActivity(store, since);
      const { name } = tenant;
      return {
        tenant: name,
        valid: broken === undefined,
        count,
        head,
        ...(broken && { broken }),
        ...(since && { since }),
      };
    }),
    route('POST', '/local/activity/export', async ({ store }, since) => {
      await exportChain(store, since);
      // Who takes the whole log away is in it, as its last record.
      const id = world.newId('act');
      const entry = { id, createdAt: world.now(), keyid: localCaller.id, action: 'activity.read', ringname: '' };
      await store.transaction(async (tx) => tx.record({ ...entry, validAction: true, status: 200, props: {} }));
      return new LocalStream('application/jsonl', await exportChain(store, since));
    }),
  ];
}

function tenantOf(deps: AppDeps, { tenant }: LocalInput): TenantHandle {
  if (deps.sealed?.()) throw sealedError;
  return localTenant(deps.tenants, tenant);
}

function sinceOf(deps: AppDeps, input: LocalInput): ActivityHead | undefined {
  const { since } = input.body;
  if (since === undefined) return undefined;
  const head = parseHead(since, 'since');
  needOwnHead(tenantOf(deps, input).tenant, head);
  return head;
}
