// The tenants in service, each with its keys and its opened store, found by host or by name. Also validates the
// operator's changes to a tenant: name, hosts in the one form in which they are compared with requests, limits, and
// flags that need a second factor; other values are refused with the field's name.
import { activityRecord } from '../core/activity.ts';
import { byOperator } from '../core/authorization.ts';
import type { Limits, Tenant, World } from '../core/context.ts';
import { invalidField, KmsError } from '../errors.ts';
import type { TenantDirectory, TenantHandle } from '../http/tenant-directory.ts';
import type { ActivityDetails, ResourceRef } from '../model/activity-details.ts';
import type { CustodyPolicy } from '../model/custody.ts';
import { isKnownFlag } from '../model/flags.ts';
import { canonicalHost } from '../model/hosts.ts';
import { checkTenantName } from '../model/names.ts';
import { tenantDir } from '../platform/data-dir.ts';
import type { Store } from '../store/port.ts';
import type { TenantRecord } from '../store/tables/tenants.ts';

export interface ServedTenant {
  readonly record: TenantRecord;
  /** One object for as long as the store is open. It reflects changes of the record even for requests under way. */
  readonly handle: TenantHandle;
  /** Takes over a changed record. */
  become(record: TenantRecord): void;
}

/** `baseUrl` returns the address of the appliance itself; called for each use. */
export function servedTenant(
  first: TenantRecord,
  keys: Tenant['keys'],
  store: Store,
  baseUrl: () => string,
): ServedTenant {
  let record = first;
  const tenant: Tenant = {
    id: record.id,
    keys,
    get name() {
      return record.name;
    },
    get limits() {
      // Cast: the column holds what the core wrote into it.
      return record.limits as Limits;
    },
    get secondFactorFor() {
      return record.secondFactorFor;
    },
    get custody() {
      return record.custody;
    },
  };
  return {
    get record() {
      return record;
    },
    handle: {
      tenant,
      store,
      get baseUrl() {
        return addressOf(record.hosts, baseUrl());
      },
    },
    become(next) {
      record = next;
    },
  };
}

/** Stands for the address of an appliance that was never served. */
export const noAddress = 'http://kms.local';

/**
 * The address of a tenant with these hosts: the appliance's, with the first host in it unless the address already leads
 * to the tenant.
 */
export function addressOf(hosts: readonly string[], base: string): string {
  const url = new URL(base);
  const [first] = hosts;
  if (base === noAddress || first === undefined) return base;
  if (hosts.includes(anyHost) || hosts.includes(canonicalHost(url.hostname) ?? '')) return base;
  url.hostname = first;
  return url.href.replace(/\/+$/, '');
}

/** The tenants now in service. A change to one, or a new one, takes effect with the next request. */
export class Tenants implements TenantDirectory {
  #served = new Map<string, ServedTenant>();
  #byHost = new Map<string, TenantHandle>();
  #byName = new Map<string, TenantHandle>();
  #handles: readonly TenantHandle[] = [];

  get all(): readonly ServedTenant[] {
    return [...this.#served.values()];
  }

  put(tenant: ServedTenant): void {
    this.#served.set(tenant.record.id, tenant);
    this.#index();
  }

  /** Applies a changed record to the served tenant; returns whether it is served. */
  change(record: TenantRecord): boolean {
    const served = this.#served.get(record.id);
    served?.become(record);
    this.#index();
    return served !== undefined;
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
    const served = this.#served.get(id);
    return served ? tenantDir(served.record.dir) : '';
  }

  names(): readonly string[] {
    return this.all.map(({ record }) => record.name);
  }

  handles(): readonly TenantHandle[] {
    return this.#handles;
  }

  #index(): void {
    this.#handles = this.all.map(({ handle }) => handle);
    this.#byHost = new Map(this.all.flatMap(({ record, handle }) => record.hosts.map((host) => [host, handle])));
    this.#byName = new Map(this.all.map(({ record, handle }) => [record.name.toLowerCase(), handle]));
  }
}

/** Stands for every host that no tenant lists. */
export const anyHost = '*';

/**
 * The hosts in the form in which they are compared, without ports and duplicates. Throws `invalid` for a value that is
 * no host, and for an empty list.
 */
export function hostList(value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw invalidField('hosts', 'expected an array of host names');
  const hosts = [...new Set(value.map(hostOf))];
  if (hosts.length === 0) throw invalidField('hosts', 'expected at least one host name');
  return hosts;
}

function hostOf(value: unknown): string {
  if (typeof value !== 'string') throw invalidField('hosts', 'expected an array of host names');
  const host = value.trim() === anyHost ? anyHost : listedHost(value.trim());
  if (host !== undefined) return host;
  const expected = `expected host names such as kms.example.org, or ${anyHost} for all others`;
  throw invalidField('hosts', `${expected}, got "${value}"`);
}

/** A port is ignored, and an IPv6 address by itself needs no brackets. */
function listedHost(given: string): string | undefined {
  const address = canonicalHost(`[${given}]`);
  if (address !== undefined) return address;
  const [, name = given] = /^(.*):[0-9]{1,5}$/s.exec(given) ?? [];
  return canonicalHost(name);
}

const limitNames = [
  'keyrings',
  'keysPerRing',
  'users',
  'accounts',
  'apikeys',
  'assets',
  'assetVersions',
] as const satisfies readonly (keyof Limits)[];

export function newTenantInput({ name, hosts = [] }: { readonly name: string; readonly hosts?: readonly string[] }) {
  return { name: checkTenantName(name), hosts: hostList(hosts) };
}

export interface TenantChanges {
  readonly name?: string;
  readonly hosts?: readonly string[];
  /** Names of flags; users who have one of them need a second factor. */
  readonly secondFactorFor?: readonly string[];
  readonly custody?: CustodyPolicy;
}

export function tenantChanges({ name, hosts, secondFactorFor, custody }: TenantChanges): TenantChanges {
  return {
    ...(secondFactorFor === undefined ? {} : { secondFactorFor: knownFlagList(secondFactorFor) }),
    ...(custody === undefined ? {} : { custody }),
    ...(name === undefined ? {} : { name: checkTenantName(name) }),
    ...(hosts === undefined ? {} : { hosts: hostList(hosts) }),
  };
}

const mostFlags = 100;

/** Lower-case names. An unknown flag is refused, since it would apply to no user. */
function knownFlagList(flags: readonly string[]): readonly string[] {
  const field = 'secondFactorFor';
  if (flags.length > mostFlags) throw invalidField(field, `expected at most ${mostFlags} flags`);
  for (const flag of flags) {
    if (!isKnownFlag(flag)) throw invalidField(field, `expected permission flags, got "${flag}"`);
  }
  return [...new Set(flags.map((flag) => flag.toLowerCase()))];
}

/** A number for each limit to set, `null` for each to remove. */
export type LimitChanges = Readonly<Partial<Record<keyof Limits, number | null>>>;

export function limitChanges(changes: LimitChanges): LimitChanges {
  if (Object.keys(changes).length > 0) return changes;
  throw new KmsError('invalid', `expected a limit, one of: ${limitNames.join(', ')}`);
}

export function limitsAfter(limits: Limits, changes: LimitChanges): Limits {
  const after: Record<string, number> = {};
  for (const name of limitNames) {
    const value = changes[name] === undefined ? limits[name] : changes[name];
    if (typeof value === 'number') after[name] = value;
  }
  return after;
}

export function tenantThing({ id, name }: Pick<TenantRecord, 'id' | 'name'>): ResourceRef {
  return { type: 'tenant', id, name };
}

/** An activity of the whole appliance: each tenant's log gets it, since each tenant's data depends on it. */
export interface ApplianceActivity {
  readonly action: 'system.unseal' | 'system.seal' | 'system.master' | 'system.backup';
  /**
   * The actor: `local` for the administrator at the machine, `operator` for an API key or a user of the operator
   * tenant, of which other tenants learn no more, `network` for a custodian who unsealed it remotely.
   */
  readonly keyid: string;
  readonly props: Readonly<Record<string, unknown>>;
  readonly deed?: ActivityDetails;
  /** The address of a remote unsealing. */
  readonly address?: string | undefined;
}

/** Resolves when the record is durable in the log of every served tenant except the one that already has it. */
export async function recordInTenants(
  tenants: Tenants,
  world: World,
  activity: ApplianceActivity,
  except?: string,
): Promise<void> {
  const others = tenants.all.filter(({ record }) => record.id !== except);
  const made = () => activityRecord(world, { ...activity, props: { ...activity.props, ...byOperator } });
  await Promise.all(
    others.map(async (tenant) => {
      try {
        await tenant.handle.store.transaction((tx) => tx.record(made()));
      } catch (error) {
        // A tenant deleted in the meantime no longer has a log.
        if (tenants.all.includes(tenant)) throw error;
      }
    }),
  );
}
