// The tenants as a request finds them: by its Host, or by name if it comes from the machine itself.

import type { Tenant } from '../core/context.ts';
import { KmsError } from '../errors.ts';
import { type Authority, readAuthority } from '../model/hosts.ts';
import { tenantHeader } from '../model/names.ts';
import { nearest } from '../model/nearest.ts';
import type { Store } from '../store/port.ts';
import { type ApiRequest, headerOf } from './request.ts';

export interface TenantHandle {
  readonly tenant: Tenant;
  readonly store: Store;
  /** The tenant's own address, without a trailing slash. Absent: the appliance's address. */
  readonly baseUrl?: string;
}

/** The tenants being served. Names are in lower case, hosts as from `canonicalHost`. */
export interface TenantDirectory {
  /** The tenant that lists the host (no port), or the one that lists `*`. */
  byHost(host: string): TenantHandle | undefined;
  byName(name: string): TenantHandle | undefined;
  names(): readonly string[];
  /** All of them: the same array until one comes, goes or changes. */
  handles(): readonly TenantHandle[];
}

/** The address at which people reach the tenant, without a trailing slash. */
export function baseUrlOf({ open, handle }: { open: { readonly baseUrl: string }; handle: TenantHandle }): string {
  return handle.baseUrl ?? open.baseUrl;
}

/**
 * Throws `not-found` for a host that no tenant answers, `invalid` for a local request that does not say which of
 * several.
 */
export function resolveTenant({ tenants }: { readonly tenants: TenantDirectory }, request: ApiRequest): TenantHandle {
  if (request.local) return localTenant(tenants, headerOf(request, tenantHeader));
  const named = request.tenant;
  const host = named === undefined ? hostOf(request)?.host : undefined;
  const handle = named === undefined ? host && tenants.byHost(host) : tenants.byName(named.toLowerCase());
  if (!handle) throw new KmsError('not-found', 'no tenant answers this host');
  return handle;
}

/**
 * Whether any tenant has a proof by client certificates, so that clients are asked for theirs. `before` is the last
 * answer, which stands while a store cannot tell.
 */
export function trustsCertificates(tenants: TenantDirectory, before: boolean): boolean {
  try {
    return tenants.handles().some(({ store }) => store.read(({ proofs }) => proofs.hasKind('certificate')));
  } catch (error) {
    if (error instanceof KmsError && error.code === 'unavailable') return before;
    throw error;
  }
}

export function localTenant(tenants: TenantDirectory, wanted: string | undefined): TenantHandle {
  const names = tenants.names();
  const name = wanted ?? (names.length === 1 ? names[0] : undefined);
  const handle = name === undefined ? undefined : tenants.byName(name.toLowerCase());
  if (handle) return handle;
  if (wanted !== undefined) throw unknownTenant(wanted, names);
  const choice = `one of: ${names.join(', ')}`;
  throw new KmsError('invalid', `name a tenant in the header ${tenantHeader}, ${choice}`, {
    fields: { [tenantHeader]: choice },
  });
}

function unknownTenant(wanted: string, names: readonly string[]): KmsError {
  const near = nearest(wanted, names);
  if (near !== undefined) return new KmsError('not-found', `there is no tenant ${wanted}; did you mean ${near}?`);
  return new KmsError('not-found', `no tenant has that name; there are: ${names.join(', ')}`);
}

/** The host of the request in canonical form; undefined if the header is missing or malformed. */
export function hostOf(request: ApiRequest): Authority | undefined {
  return readAuthority(headerOf(request, 'host') ?? '');
}
