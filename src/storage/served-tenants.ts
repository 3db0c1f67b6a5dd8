// The tenants that are served, each with its keys and its opened store, found by host or by name; and what the operator
// may say of one: its name, its hosts in the one form in which they are compared with what clients ask for, its limits,
// whose logins need a second factor. Everything else is refused with the field's name.
import { activityRecord } from '../core/activity.ts';
import { byOperator } from '../core/authorization.ts';
import type { Limits, Tenant, World } from '../core/context.ts';
import { invalidField, KmsError } from '../errors.ts';
import type { TenantDirectory, TenantHandle } from '../http/tenant-directory.ts';
import type { Deed, Thing } from '../model/deed.ts';
import { isKnownFlag } from '../model/flags.ts';
import { canonicalHost } from '../model/hosts.ts';
import { checkTenantName } from '../model/names.ts';
import type { CustodyPolicy } from '../model/transit.ts';
import { tenantDir } from '../platform/data-dir.ts';
import type { Store } from '../store/port.ts';
import type { TenantRecord } from '../store/tables/tenants.ts';

export interface ServedTenant {
  readonly record: TenantRecord;
  /** One for as long as its store is open: what it tells is as the record is now, for requests under way, too. */
  readonly handle: TenantHandle;
  /** The record was changed. */
  become(record: TenantRecord): void;
}

/** `baseUrl` is where the appliance itself is reached; asked anew for each use. */
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

/** In place of the address of an appliance that nobody has served yet. */
export const noAddress = 'http://kms.local';

/**
 * Where people reach a tenant with these hosts: the appliance's address, with the first of them in it unless that leads
 * there anyhow.
 */
export function addressOf(hosts: readonly string[], base: string): string {
  const url = new URL(base);
  const [first] = hosts;
  if (base === noAddress || first === undefined) return base;
  if (hosts.includes(anyHost) || hosts.includes(canonicalHost(url.hostname) ?? '')) return base;
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

  /** What is served of the tenant is as this record from now on; answers whether it is served. */
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

  #index(): void {
    this.#byHost = new Map(this.all.flatMap(({ record, handle }) => record.hosts.map((host) => [host, handle])));
    this.#byName = new Map(this.all.map(({ record, handle }) => [record.name.toLowerCase(), handle]));
  }
}

/** Stands for every host that no tenant lists. */
export const anyHost = '*';

/**
 * In the form in which hosts are compared, without ports and repetitions. Throws `invalid` for what is no host, and for
 * none at all.
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

/** A port says nothing of the host, and an IPv6 address by itself needs no brackets. */
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
  /** Flags: users who have one of them need a second factor. */
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

/** In lower case. A flag that grants nothing would be a policy for nobody. */
function knownFlagList(flags: readonly string[]): readonly string[] {
  const field = 'secondFactorFor';
  if (flags.length > mostFlags) throw invalidField(field, `expected at most ${mostFlags} flags`);
  for (const flag of flags) {
    if (!isKnownFlag(flag)) throw invalidField(field, `expected permission flags, got "${flag}"`);
  }
  return [...new Set(flags.map((flag) => flag.toLowerCase()))];
}

/** A number for each limit that is set, `null` for each that is lifted. */
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

export function tenantThing({ id, name }: Pick<TenantRecord, 'id' | 'name'>): Thing {
  return { type: 'tenant', id, name };
}

/** What was done to the appliance as a whole: each tenant's log has it, since each tenant's data depends on it. */
export interface ApplianceActivity {
  readonly action: 'system.unseal' | 'system.seal' | 'system.master' | 'system.backup';
  /**
   * Who: `local` for the administrator at the machine, `operator` for an API key or a user of the operator tenant, of
   * which the others learn no more, `network` for whoever unsealed it from elsewhere.
   */
  readonly keyid: string;
  readonly props: Readonly<Record<string, unknown>>;
  readonly deed?: Deed;
  /** Where whoever unsealed it from elsewhere was. */
  readonly address?: string | undefined;
}

/**
 * Resolves when the record is durable in the log of every tenant that is served, but for the one that has its own
 * already.
 */
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
        // One that was deleted meanwhile has a log no more.
        if (tenants.all.includes(tenant)) throw error;
      }
    }),
  );
}
