// Limits of tenants in configuration files. They belong to the operator, so they are set on the appliance's machine
// alone, and only lifted where a file says so: nothing is ever removed.
import type { TenantAnswer } from '../../../api/local/tenants.ts';
import { KmsError } from '../../../errors.ts';
import { isJsonObject } from '../../../model/json.ts';
import { differing, withoutDefaults } from '../differing.ts';
import type { Desk, Found, Kind } from '../kind.ts';

const limitNames = ['keyrings', 'keysPerRing', 'users', 'accounts', 'apikeys', 'assets', 'assetVersions'] as const;
const onlyHere = 'limits of tenants are for the administrator at the machine alone';
const unlimited = Object.fromEntries(limitNames.map((name) => [name, null]));

function foundOf({ id, name, limits }: TenantAnswer): Found {
  return { id, name, fields: { ...unlimited, ...limits } };
}

function localOf({ local }: Desk): NonNullable<Desk['local']> {
  if (local) return local;
  throw new KmsError('forbidden', onlyHere);
}

export const limitsKind: Kind = {
  name: 'tenant-limits',
  noun: ['limits of the tenant', 'limits of tenants'],
  listFlag: '*',
  onlyHere,
  nameKey: (name) => name.toLowerCase(),
  references: () => [],
  async list(desk) {
    const { data } = await localOf(desk).ask('listTenants');
    return data.filter(({ deletedAt }) => deletedAt === undefined).map(foundOf);
  },
  differences: (wanted, found) => differing(wanted.fields, found.fields),
  problems: (_wanted, found) => (found ? [] : [{ path: ['name'], message: 'there is no such tenant' }]),
  flagsFor: () => [],
  secrets: () => [],
  async create() {
    throw new KmsError('internal', 'a plan makes no tenants');
  },
  async update(desk, { fields }, { name }, differences) {
    const changed = new Set(differences.map(({ field }) => field));
    const body = Object.fromEntries(Object.entries(fields).filter(([field]) => changed.has(field)));
    await localOf(desk).ask('limitTenant', { params: { name }, body });
  },
  exported({ fields }) {
    const limits = withoutDefaults(fields, unlimited);
    return isJsonObject(limits) && Object.keys(limits).length > 0 ? limits : undefined;
  },
};
