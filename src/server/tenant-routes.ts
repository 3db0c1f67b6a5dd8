// The local endpoints of tenants: the operator's, never anybody else's.
import { timestamp } from '../core/time.ts';
import type { LocalRoute } from '../http/deps.ts';
import type { TenantRecord } from '../store/tables/tenants.ts';
import { restorableFor, type TenantAdmin } from './tenant-admin.ts';
import { limitChanges, newTenantInput, tenantChanges } from './tenant-input.ts';
import { addressOf } from './tenants.ts';

export interface TenantAnswer {
  readonly id: string;
  readonly name: string;
  readonly hosts: readonly string[];
  /** Where it is reached. */
  readonly url: string;
  /** By kind; what is not there is unlimited. */
  readonly limits: Readonly<Record<string, unknown>>;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly deletedAt?: string;
  /** When a deleted one is erased. */
  readonly restorableUntil?: string;
}

/**
 * GET and POST `/local/tenants` (with `deleted=true` also the deleted ones); GET, PATCH and DELETE `/local/tenants/{name}`; PUT its
 * `/limits`; POST `/local/tenants/{id}/restore`.
 */
export function tenantRoutes(admin: TenantAdmin, baseUrl: () => string): readonly LocalRoute[] {
  const path = '/local/tenants';
  const answer = (record: TenantRecord): TenantAnswer => tenantAnswer(record, baseUrl());
  return [
    {
      method: 'POST',
      path,
      async handle({ body }) {
        const { record, accountId, apiKey } = await admin.create(newTenantInput(body));
        return { tenant: record.name, hosts: record.hosts, accountId, apiKey };
      },
    },
    {
      method: 'GET',
      path,
      async handle({ query }) {
        const all = await admin.list();
        const data = all.filter(({ deletedAt }) => deletedAt === undefined || query.deleted === 'true').map(answer);
        return { data, pagination: { limit: Math.max(1, data.length), count: data.length, hasMore: false } };
      },
    },
    {
      method: 'GET',
      path: `${path}/{name}`,
      handle: async ({ params: { name = '' } }) => answer(await admin.find(name)),
    },
    {
      method: 'PATCH',
      path: `${path}/{name}`,
      handle: async ({ params: { name = '' }, body }) => answer(await admin.update(name, tenantChanges(body))),
    },
    {
      method: 'PUT',
      path: `${path}/{name}/limits`,
      handle: async ({ params: { name = '' }, body }) => answer(await admin.limit(name, limitChanges(body))),
    },
    {
      method: 'DELETE',
      path: `${path}/{name}`,
      handle: async ({ params: { name = '' } }) => answer(await admin.delete(name)),
    },
    {
      method: 'POST',
      path: `${path}/{id}/restore`,
      handle: async ({ params: { id = '' }, body }) => answer(await admin.restore(id, tenantChanges(body))),
    },
  ];
}

function tenantAnswer(record: TenantRecord, baseUrl: string): TenantAnswer {
  const { id, name, hosts, limits, createdAt, updatedAt, deletedAt } = record;
  return {
    id,
    name,
    hosts,
    url: addressOf(hosts, baseUrl),
    limits,
    createdAt: timestamp(createdAt),
    updatedAt: timestamp(updatedAt),
    ...(deletedAt !== undefined && {
      deletedAt: timestamp(deletedAt),
      restorableUntil: timestamp(deletedAt + restorableFor),
    }),
  };
}
