// The local endpoints of tenants: for the operator only.

import type { TenantAnswer } from '../api/local/tenants.ts';
import { accountOf } from '../core/aws-names.ts';
import type { LocalHandlers } from '../http/appliance-port.ts';
import { timestamp } from '../model/timestamp.ts';
import { addressOf, limitChanges, newTenantInput, tenantChanges } from '../storage/served-tenants.ts';
import type { TenantRecord } from '../store/tables/tenants.ts';
import type { Rekeying } from './rekey.ts';
import { restorableFor, type TenantAdmin } from './tenant-admin.ts';

type TenantHandlers = Pick<
  LocalHandlers,
  | 'createTenant'
  | 'listTenants'
  | 'getTenant'
  | 'updateTenant'
  | 'limitTenant'
  | 'deleteTenant'
  | 'restoreTenant'
  | 'rekeyTenant'
>;

export function tenantHandlers(admin: TenantAdmin, rekeying: Rekeying, baseUrl: () => string): TenantHandlers {
  const answer = (record: TenantRecord): TenantAnswer => tenantAnswer(record, baseUrl());
  return {
    async createTenant({ body }) {
      const { record, accountId, apiKey } = await admin.create(newTenantInput(body));
      return { tenant: record.name, hosts: record.hosts, accountId, apiKey };
    },
    async listTenants({ query }) {
      const all = await admin.list();
      const data = all.filter(({ deletedAt }) => deletedAt === undefined || query.deleted === 'true').map(answer);
      return { data, pagination: { limit: Math.max(1, data.length), count: data.length, hasMore: false } };
    },
    getTenant: async ({ params }) => answer(await admin.find(params.name)),
    updateTenant: async ({ params, body }) => answer(await admin.update(params.name, tenantChanges(body))),
    limitTenant: async ({ params, body, plan }) => answer(await admin.limit(params.name, limitChanges(body), plan)),
    deleteTenant: async ({ params }) => answer(await admin.delete(params.name)),
    restoreTenant: async ({ params, body }) => answer(await admin.restore(params.id, tenantChanges(body))),
    rekeyTenant: ({ params }) => rekeying.rekey(params.name),
  };
}

function tenantAnswer(record: TenantRecord, baseUrl: string): TenantAnswer {
  const { id, name, hosts, limits, secondFactorFor, custody, createdAt, updatedAt, deletedAt } = record;
  return {
    id,
    name,
    hosts,
    url: addressOf(hosts, baseUrl),
    awsAccount: accountOf(id),
    limits,
    secondFactorFor,
    custody,
    createdAt: timestamp(createdAt),
    updatedAt: timestamp(updatedAt),
    ...(deletedAt !== undefined && {
      deletedAt: timestamp(deletedAt),
      restorableUntil: timestamp(deletedAt + restorableFor),
    }),
  };
}
