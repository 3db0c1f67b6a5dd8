// What `kms status` tells of an opened appliance: versions, fingerprints, and per tenant counts and sizes.
import type { Seal } from '../seal/seal.ts';
import type { StoreStatus } from '../store/port.ts';
import { version } from '../version.ts';
import type { CopiesStatus } from './backup/service.ts';
import type { SpaceStatus } from './space/space-guard.ts';
import type { SystemStore } from './stores.ts';
import type { Tenants } from './tenants.ts';

export interface ApplianceStatus {
  readonly version: string;
  readonly sealed: false;
  readonly applianceId: string;
  readonly masterKey: {
    readonly fingerprint: string;
    readonly custodians: readonly { readonly kind: string; readonly fingerprint: string }[];
  };
  /** Which life of the appliance this is, its last verified backup, and how far shipping is. */
  readonly copies: CopiesStatus;
  /** Room on the disk, where the system tells. */
  readonly disk: SpaceStatus | undefined;
  readonly tenants: readonly TenantStatus[];
  readonly system: StoreStatus;
}

/** What a sealed appliance can tell. */
export interface SealedStatus {
  readonly version: string;
  readonly sealed: true;
  /** Of the custodians. */
  readonly kinds: readonly string[];
  /** How many shares it takes, and how many were given. */
  readonly threshold?: number;
  readonly progress?: number;
}

export interface TenantStatus {
  readonly id: string;
  readonly name: string;
  readonly hosts: readonly string[];
  readonly counts: {
    readonly keyrings: number;
    readonly users: number;
    readonly accounts: number;
    readonly apikeys: number;
    readonly assets: number;
  };
  readonly store: StoreStatus;
}

export async function applianceStatus(
  seal: Seal,
  system: SystemStore,
  tenants: Tenants,
  copies: CopiesStatus,
  disk: SpaceStatus | undefined,
): Promise<ApplianceStatus> {
  return {
    version,
    sealed: false,
    applianceId: seal.applianceId,
    masterKey: {
      fingerprint: seal.fingerprint,
      custodians: seal.slots.map(({ kind, id }) => ({ kind, fingerprint: id })),
    },
    copies,
    disk,
    tenants: await Promise.all(tenants.all.map(tenantStatus)),
    system: system.status(),
  };
}

async function tenantStatus({ record, handle }: Tenants['all'][number]): Promise<TenantStatus> {
  const counts = await handle.store.peek(async ({ rings, users, accounts, apiKeys, assets }) => ({
    keyrings: await rings.count(),
    users: await users.count(),
    accounts: await accounts.count(),
    apikeys: await apiKeys.count(),
    assets: await assets.count(),
  }));
  return { id: record.id, name: record.name, hosts: record.hosts, counts, store: handle.store.status() };
}
