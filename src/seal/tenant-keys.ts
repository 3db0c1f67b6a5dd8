// The keys of one tenant, all derived from its tenant key: one label each, so that no key serves two purposes.
import { hkdfSha256 } from '../crypto/hkdf.ts';
import { KmsError } from '../errors.ts';

/** What a key is for. The label is part of the derivation and never changes once released. */
export type KeyLabel =
  | 'log'
  | 'snapshot'
  | 'activity'
  | 'hash'
  | 'header'
  | 'cursor'
  | 'asset-signing'
  | 'activity-head';

export interface TenantKeys {
  /** Counts the tenant keys that there have been; new bytes are made under this one. Fits 16 bits. */
  readonly epoch: number;
  /** The 32-byte key for `label` in `epoch` (default: the current one). Owned by this object: callers don't change or wipe it. Throws `not-found` for an epoch that is not held. */
  key(label: KeyLabel, epoch?: number): Uint8Array;
  /** Overwrites all key bytes, best effort. */
  wipe(): void;
}

/** Makes the keys from the tenant keys held, by epoch (32 bytes each). */
export function tenantKeys(byEpoch: ReadonlyMap<number, Uint8Array>): TenantKeys {
  const epoch = Math.max(...byEpoch.keys());
  const derived = new Map<string, Uint8Array>();
  return {
    epoch,
    key(label, wanted = epoch) {
      const name = `${wanted} ${label}`;
      const known = derived.get(name);
      if (known) return known;
      const tenantKey = byEpoch.get(wanted);
      if (!tenantKey) throw new KmsError('not-found', `no tenant key of epoch ${wanted}`);
      const key = hkdfSha256(tenantKey, `kms/tenant/v1/${label}`, 32);
      derived.set(name, key);
      return key;
    },
    wipe() {
      for (const key of byEpoch.values()) key.fill(0);
      for (const key of derived.values()) key.fill(0);
      derived.clear();
    },
  };
}
