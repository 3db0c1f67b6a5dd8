// The status of an open appliance: for `kms status` versions, fingerprints, counts and sizes of each tenant; for
// `/readyz` whether it can serve.
import type { OpenStatus } from '../api/local/status.ts';
import type { CopiesStatus } from '../backup/service.ts';
import { KmsError, reasonOf } from '../errors.ts';
import type { Readiness } from '../http/appliance-port.ts';
import type { DirectoryLock } from '../platform/lock.ts';
import { cryptoInUse } from '../platform/native-crypto.ts';
import type { SpaceGuard, SpaceStatus } from '../platform/space-guard.ts';
import type { Seal } from '../seal/seal.ts';
import type { Tenants } from '../storage/served-tenants.ts';
import type { SystemStore } from '../storage/stores.ts';
import type { Store } from '../store/port.ts';
import type { RetentionStatus } from '../telemetry/retention.ts';
import type { StreamStatus } from '../telemetry/streaming/stream.ts';
import { version } from '../version.ts';

interface ServicesStatus {
  readonly copies: CopiesStatus;
  readonly activityTo: readonly StreamStatus[];
  readonly activityRetention?: RetentionStatus;
  readonly clock?: NonNullable<OpenStatus['clock']>;
  readonly disk: SpaceStatus | undefined;
  readonly shared?: NonNullable<OpenStatus['shared']>;
}

export async function applianceStatus(
  seal: Seal,
  system: SystemStore,
  tenants: Tenants,
  services: ServicesStatus,
): Promise<OpenStatus> {
  return {
    version,
    sealed: false,
    applianceId: seal.applianceId,
    masterKey: {
      fingerprint: seal.fingerprint,
      custodians: seal.slots.map(({ kind, id }) => ({ kind, fingerprint: id })),
    },
    crypto: cryptoInUse(),
    ...services,
    tenants: await Promise.all(tenants.all.map(tenantStatus)),
    system: system.status(),
  };
}

async function tenantStatus({ record, handle }: Tenants['all'][number]): Promise<OpenStatus['tenants'][number]> {
  const counts = await handle.store.transaction(({ rings, managedKeys, users, accounts, apiKeys, assets }) => ({
    keyrings: rings.count(),
    managedKeys: managedKeys.count(),
    users: users.count(),
    accounts: accounts.count(),
    apikeys: apiKeys.count(),
    assets: assets.count(),
  }));
  return { id: record.id, name: record.name, hosts: record.hosts, counts, store: handle.store.status() };
}

/** Faulty files that `/readyz` names. */
const namedFaults = 5;

export function diskDetails(space: SpaceGuard): Readonly<Record<string, unknown>> {
  const status = space.status();
  return status ? { disk: { freePercent: status.freePercent, writable: status.reason === undefined } } : {};
}

/** Empty unless something is wrong. Faults do not take it out of service: keys, rings and permissions are intact. */
export function activityDetails(stores: readonly Pick<SystemStore, 'status'>[]): Readonly<Record<string, unknown>> {
  const faults = stores.flatMap((store) => store.status().activityFaults);
  const named = faults.slice(0, namedFaults).map(({ path, problem }) => `${path} ${problem}`);
  return faults.length === 0 ? {} : { activity: { faulty: faults.length, segments: named } };
}

/** Number of times that the glass was broken, until it is acknowledged; empty if there are none. */
export function glassDetails({ all }: Tenants): Readonly<Record<string, unknown>> {
  const brokenGlass = brokenIn(all.map(({ handle }) => handle.store));
  return brokenGlass === 0 ? {} : { brokenGlass };
}

export function brokenIn(stores: readonly Pick<Store, 'read'>[]): number {
  let broken = 0;
  for (const store of stores) {
    try {
      broken += store.read(({ brokenGlass }) => brokenGlass.countOpen());
    } catch (error) {
      // A store that is out of service says so elsewhere.
      if (!(error instanceof KmsError) || error.code !== 'unavailable') throw error;
    }
  }
  return broken;
}

export function readiness(
  system: SystemStore,
  tenants: Tenants,
  { refusal }: SpaceGuard,
  lock: Pick<DirectoryLock, 'needInPlace'>,
): Readiness {
  try {
    lock.needInPlace();
  } catch (error) {
    return { ok: false, reason: reasonOf(error) };
  }
  for (const store of [system, ...tenants.all.map(({ handle }) => handle.store)]) {
    const { writable, reason } = store.status();
    if (!writable) return { ok: false, reason: reason ?? 'the store cannot write' };
  }
  return refusal ? { ok: false, reason: refusal.message } : { ok: true };
}
