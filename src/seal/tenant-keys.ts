// The keys of one tenant, all derived from its tenant key with one label each, so that no key serves two purposes. Of a
// retired epoch only the keys that read data outside the appliance are left.

import { concatBytes } from '../crypto/bytes.ts';
import { hkdfSha256 } from '../crypto/hash.ts';
import { KmsError } from '../errors.ts';

/**
 * Keys for data held by clients and auditors: hashes, headers, cursors, signatures. That data stays readable for ever.
 */
const readingLabels = ['hash', 'header', 'cursor', 'asset-signing', 'activity-head'] as const;

/** The purpose of a key. The label is part of the derivation and never changes once released. */
export type KeyLabel =
  | 'log'
  | 'snapshot'
  | 'activity'
  | 'backup'
  | 'set-up'
  | 'passkey'
  | 'oidc'
  | 'witness'
  | 'transit'
  | 'tang'
  | 'proof'
  | 'approval'
  | (typeof readingLabels)[number];

export const tenantKeyLength = 32;
export const readingKeysLength = readingLabels.length * tenantKeyLength;

export interface TenantKeys {
  /** The number of the current tenant key, which new data is sealed under. Fits 16 bits. */
  readonly epoch: number;
  /** All epochs held, retired ones included, oldest first. */
  readonly epochs: readonly number[];
  /**
   * The 32-byte key for `label` in `epoch` (default: the current one). Owned by this object: callers must not change or
   * wipe it. Throws `not-found` for an epoch that is not held, `sealed` after a wipe.
   */
  key(label: KeyLabel, epoch?: number): Uint8Array;
  /**
   * The result of `open`, cached until the wipe under the name `what`, which must include all that the result is bound
   * to; undefined if `open` fails. Owned by this object, which overwrites the least recently used results: callers must
   * not change it, and use it at once or ask again.
   */
  opened(what: string, open: () => Uint8Array | undefined): Uint8Array | undefined;
  /** Overwrites all key bytes, best effort. */
  wipe(): void;
}

/** Maximum of opened keys in the cache, and of their bytes with their names. */
const mostOpened = 500;
const mostOpenedBytes = 4 * 1024 * 1024;

/** The remainder of a tenant key when its epoch is retired: the reading keys, concatenated. */
export function readingKeysOf(tenantKey: Uint8Array): Uint8Array {
  return concatBytes(...readingLabels.map((label) => derive(tenantKey, label)));
}

/** Makes the keys from the bytes held by epoch: tenant keys (32 bytes), or the reading keys of retired epochs. */
export function tenantKeys(byEpoch: ReadonlyMap<number, Uint8Array>): TenantKeys {
  const epochs = [...byEpoch.keys()].sort((a, b) => a - b);
  const epoch = epochs.at(-1) ?? 0;
  const derived = new Map<string, Uint8Array>();
  /** Least recently used first. */
  const open = new Map<string, Uint8Array>();
  let openBytes = 0;
  let wiped = false;
  return {
    epoch,
    epochs,
    key(label, wanted = epoch) {
      if (wiped) throw new KmsError('sealed', 'the appliance was sealed');
      const name = `${wanted} ${label}`;
      const known = derived.get(name);
      if (known) return known;
      const held = byEpoch.get(wanted);
      const key = held && (held.length === tenantKeyLength ? derive(held, label) : readingKey(held, label));
      if (!key) throw new KmsError('not-found', `no tenant key of epoch ${wanted} for this`);
      derived.set(name, key);
      return key;
    },
    opened(what, openIt) {
      const known = open.get(what);
      const key = known ?? openIt();
      if (!key) return undefined;
      if (known) open.delete(what);
      else openBytes += what.length + key.length;
      open.set(what, key);
      while (open.size > mostOpened || (openBytes > mostOpenedBytes && open.size > 1)) {
        const [oldest] = open;
        if (!oldest) break;
        openBytes -= oldest[0].length + oldest[1].length;
        oldest[1].fill(0);
        open.delete(oldest[0]);
      }
      return key;
    },
    wipe() {
      wiped = true;
      for (const key of open.values()) key.fill(0);
      open.clear();
      openBytes = 0;
      for (const key of byEpoch.values()) key.fill(0);
      for (const key of derived.values()) key.fill(0);
      derived.clear();
    },
  };
}

function derive(tenantKey: Uint8Array, label: KeyLabel): Uint8Array {
  return hkdfSha256(tenantKey, `kms/tenant/v1/${label}`, tenantKeyLength);
}

function readingKey(held: Uint8Array, label: KeyLabel): Uint8Array | undefined {
  const labels: readonly KeyLabel[] = readingLabels;
  const place = labels.indexOf(label);
  return place < 0 ? undefined : held.slice(place * tenantKeyLength, (place + 1) * tenantKeyLength);
}

export interface LiveKeys extends TenantKeys {
  /**
   * From now on uses `next`. Keys handed out before stay valid until the wipe, since files are being written with them.
   */
  replace(next: TenantKeys): void;
}

export function liveKeys(first: TenantKeys): LiveKeys {
  let current = first;
  const before: TenantKeys[] = [];
  return {
    get epoch() {
      return current.epoch;
    },
    get epochs() {
      return current.epochs;
    },
    key: (label, epoch) => current.key(label, epoch),
    opened: (what, open) => current.opened(what, open),
    replace(next) {
      before.push(current);
      current = next;
    },
    wipe() {
      current.wipe();
      for (const keys of before) keys.wipe();
    },
  };
}
