// How a tenant is shown to people.
import type { TenantAnswer } from '../../../server/tenant-routes.ts';
import type { Pair } from '../../output.ts';
import type { Column } from '../../table.ts';

export type { TenantAnswer };

/** The limits by the options that set them. */
export const limitOptions = {
  '--keyrings': 'keyrings',
  '--keys-per-ring': 'keysPerRing',
  '--users': 'users',
  '--accounts': 'accounts',
  '--apikeys': 'apikeys',
  '--assets': 'assets',
} as const;

export function tenantPairs(tenant: TenantAnswer): readonly Pair[] {
  return [
    ['name', tenant.name],
    ['id', tenant.id],
    ['hosts', tenant.hosts.join(' ')],
    ['address', tenant.url],
    ['limits', limitsOf(tenant) || 'none'],
    ['created', tenant.createdAt],
    ['updated', tenant.updatedAt],
    ['deleted', tenant.deletedAt],
    ['restorable', tenant.restorableUntil && `until ${tenant.restorableUntil}`],
  ];
}

export const tenantColumns: readonly Column<TenantAnswer>[] = [
  { title: 'name', value: ({ name }) => name, name: true },
  { title: 'hosts', value: ({ hosts }) => hosts.join(' ') },
  { title: 'limits', value: limitsOf },
  { title: 'created', value: ({ createdAt }) => createdAt, whole: true, spare: true },
  { title: 'id', value: ({ id }) => id, whole: true },
];

export const deletedColumn: Column<TenantAnswer> = {
  title: 'deleted',
  value: ({ deletedAt }) => deletedAt ?? '',
  whole: true,
};

function limitsOf({ limits }: TenantAnswer): string {
  return Object.entries(limitOptions)
    .flatMap(([option, name]) => (limits[name] === undefined ? [] : [`${option.slice(2)}=${limits[name]}`]))
    .join(' ');
}

/** The path of a tenant's endpoint. Dot segments cannot be: the URL would be another one. */
export function tenantPath(name: string): string {
  return `/local/tenants/${encodeURIComponent(name.toWellFormed()).replace(/^\.+$/, '-')}`;
}
