// The tenants that are served: each with its keys and its opened store, found by host or by name.
import type { Limits, Tenant } from '../core/context.ts';
import type { TenantDirectory, TenantHandle } from '../http/deps.ts';
import type { Store } from '../store/port.ts';
import type { TenantRecord } from '../store/tables/tenants.ts';
import { anyHost } from './host-names.ts';

export interface ServedTenant {
  readonly record: TenantRecord;
  readonly handle: TenantHandle;
}

/** The directory of a tenant's store, by the random name that its record and the seal have. */
export function tenantDir(name: string): string {
  return `tenants/${name}`;
}

/** `baseUrl` is where the appliance itself is reached; asked anew for each use. */
export function servedTenant(
  record: TenantRecord,
  keys: Tenant['keys'],
  store: Store,
  baseUrl: () => string,
): ServedTenant {
  // Cast: the column holds what the core wrote into it.
  const limits = record.limits as Limits;
  const handle: TenantHandle = {
    tenant: { id: record.id, name: record.name, limits, keys },
    store,
    get baseUrl() {
      return addressOf(record.hosts, baseUrl());
    },
  };
  return { record, handle };
}

/** Where people reach a tenant with these hosts: the appliance's address, with the first of them in it unless that leads there anyhow. */
export function addressOf(hosts: readonly string[], base: string): string {
  const url = new URL(base);
  const [first] = hosts;
  if (first === undefined || hosts.includes(anyHost) || hosts.includes(url.hostname)) return base;
  url.hostname = first;
  return url.href.replace(/\/+$/, '');
}

/** Those that are served now. A change to one, or a new one, takes effect with the next request. */
export class Tenants implements TenantDirectory {
  #served = new Map<string, ServedTenant>();
  #byHost = new Map<string, TenantHandle>();
  #byName = new Map<string, TenantHandle>();

  get all(): readonly ServedTenant[] {
    return [...this.#served.values()];
  }

  put(tenant: ServedTenant): void {
    this.#served.set(tenant.record.id, tenant);
    this.#index();
  }

  remove(id: string): void {
    this.#served.delete(id);
    this.#index();
  }

  byHost(host: string): TenantHandle | undefined {
    return this.#byHost.get(host) ?? this.#byHost.get(anyHost);
  }

  byName(name: string): TenantHandle | undefined {
    return this.#byName.get(name);
  }

  /** The directory of a tenant's store. */
  dirOf(id: string): string {
    return tenantDir(this.#served.get(id)?.record.dir ?? '');
  }

  names(): readonly string[] {
    return this.all.map(({ record }) => record.name);
  }

  #index(): void {
    this.#byHost = new Map(
      this.all.flatMap(({ record, handle }) => record.hosts.map((host) => [host.toLowerCase(), handle])),
    );
    this.#byName = new Map(this.all.map(({ record, handle }) => [record.name.toLowerCase(), handle]));
  }
}
