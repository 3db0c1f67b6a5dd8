// Local endpoints that make, limit and delete tenants, and verify the whole chain of a tenant's activity log.
import { z } from 'zod';
import { custodyPolicies } from '../../model/custody.ts';
import { activityHead } from '../activity.ts';
import { fullApiKey } from '../apikeys.ts';
import { endpoint, ofAppliance, ofTenant } from '../endpoint.ts';
import type { Sent } from '../endpoints.ts';
import { pageOf } from '../page.ts';
import { only, pathText, trueParam } from '../values.ts';

const limitNames = ['keyrings', 'keysPerRing', 'users', 'accounts', 'apikeys', 'assets', 'assetVersions'] as const;

const custodyPolicy = z
  .enum(custodyPolicies)
  .meta({ description: 'who may hold the keys of new rings: `client` keeps the appliance from it' });

const tenant = z.object({
  id: z.string(),
  name: z.string(),
  hosts: z.array(z.string()),
  url: z.string().meta({ description: 'where it is reached' }),
  awsAccount: z.string().meta({ description: 'the account that it is for clients of AWS, 12 digits' }),
  limits: z.partialRecord(z.enum(limitNames), z.int()).meta({ description: 'by kind; what is not there is unlimited' }),
  secondFactorFor: z.array(z.string()).meta({ description: 'flags: users who have one need a second factor' }),
  custody: custodyPolicy,
  createdAt: z.string(),
  updatedAt: z.string(),
  deletedAt: z.string().exactOptional(),
  restorableUntil: z.string().exactOptional().meta({ description: 'when a deleted one is erased' }),
});
export type TenantAnswer = Sent<z.output<typeof tenant>>;

function texts(problem: string) {
  return z.custom<readonly string[]>(
    (value) => Array.isArray(value) && value.every((each) => typeof each === 'string'),
    problem,
  );
}

const hosts = texts('expected an array of host names');
const flags = texts('expected an array of permission flags');
const limit = z
  .custom<number | null>(
    (value) => value === null || (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0),
    'expected an integer from 0 on, or null for no limit',
  )
  .exactOptional();
const limits = Object.fromEntries(limitNames.map((name) => [name, limit])) as Record<
  (typeof limitNames)[number],
  typeof limit
>;
const tenantParams = z.object({ name: pathText });
const newName = { name: z.string().exactOptional(), hosts: hosts.exactOptional() };

/** `since` is a head saved earlier. */
const sinceBody = z.object({ since: z.unknown().optional() });

export const tenantEndpoints = [
  endpoint('createTenant', {
    summary: 'Make a tenant, with its root API key',
    ...ofAppliance,
    body: only({ name: z.string(), hosts: hosts.exactOptional() }),
    answer: z.object({ tenant: z.string(), hosts: z.array(z.string()), accountId: z.string(), apiKey: fullApiKey }),
  }),
  endpoint('listTenants', {
    summary: 'List all tenants, with `deleted` the deleted ones, too',
    ...ofAppliance,
    query: z.object({ deleted: trueParam.exactOptional() }),
    answer: pageOf(tenant),
  }),
  endpoint('getTenant', {
    summary: 'Read a tenant, by name or id',
    ...ofAppliance,
    params: tenantParams,
    answer: tenant,
  }),
  endpoint('updateTenant', {
    summary: 'Change the name or the hosts of a tenant, whose logins need a second factor, or who may hold keys',
    ...ofAppliance,
    params: tenantParams,
    body: only({ ...newName, secondFactorFor: flags.exactOptional(), custody: custodyPolicy.exactOptional() }),
    answer: tenant,
  }),
  endpoint('limitTenant', {
    summary: 'Set or lift limits of a tenant',
    ...ofAppliance,
    params: tenantParams,
    body: only(limits),
    answer: tenant,
  }),
  endpoint('deleteTenant', {
    summary: 'Delete a tenant; for a while it can be restored',
    ...ofAppliance,
    params: tenantParams,
    answer: tenant,
  }),
  endpoint('restoreTenant', {
    summary: 'Bring a deleted tenant back, under another name or with other hosts where these are taken',
    ...ofAppliance,
    params: z.object({ id: pathText }),
    body: only(newName),
    answer: tenant,
  }),
  endpoint('rekeyTenant', {
    summary: 'Give a tenant a new key, and its files with it',
    ...ofAppliance,
    params: tenantParams,
    answer: z.object({ tenant: z.string(), epoch: z.int(), complete: z.boolean() }),
  }),
  endpoint('verifyActivity', {
    changes: false,
    summary: "Verify the whole chain of the tenant's activity log",
    ...ofTenant,
    body: sinceBody,
    answer: z.object({
      tenant: z.string(),
      valid: z.boolean(),
      count: z.int(),
      head: z.object({ seq: z.int(), hash: z.string() }),
      dropped: z
        .object({ seq: z.int(), hash: z.string() })
        .exactOptional()
        .meta({ description: 'the last record that retention dropped, after which the chain begins' }),
      broken: z.object({ position: z.int(), seq: z.int(), problem: z.string() }).exactOptional(),
      since: activityHead.exactOptional(),
    }),
  }),
] as const;
