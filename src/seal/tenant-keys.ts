// The keys of one tenant, all derived from its tenant key: one label each, so that no key serves two purposes. Of an
// epoch that was retired, only the keys that read what left the appliance are left.

import { concatBytes } from '../crypto/bytes.ts';
import { hkdfSha256 } from '../crypto/hash.ts';
import { KmsError } from '../errors.ts';

/** Keys of what clients and auditors hold: hashes, headers, cursors, signatures. They stay readable for ever. */
const readingLabels = ['hash', 'header', 'cursor', 'asset-signing', 'activity-head'] as const;

/** What a key is for. The label is part of the derivation and never changes once released. */
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
  | (typeof readingLabels)[number];

export const tenantKeyLength = 32;
export const readingKeysLength = readingLabels.length * tenantKeyLength;

export interface TenantKeys {
  /** Counts the tenant keys that there have been; new bytes are made under this one. Fits 16 bits. */
  readonly epoch: number;
  /** All that are held, retired ones too, the oldest first. */
  readonly epochs: readonly number[];
  /**
   * The 32-byte key for `label` in `epoch` (default: the current one). Owned by this object: callers don't change or
   * wipe it. Throws `not-found` for an epoch that is not held, `sealed` after a wipe.
   */
  key(label: KeyLabel, epoch?: number): Uint8Array;
  /**
   * What `open` opens with one of the keys; undefined where it does not. It is kept, with others that were asked for of
   * late, until the wipe: `what` names it, with all that it is bound to. Owned by this object, which overwrites the one
   * asked for longest ago: callers don't change it, and use it at once or ask again.
   */
  opened(what: string, open: () => Uint8Array | undefined): Uint8Array | undefined;
  /** Overwrites all key bytes, best effort. */
  wipe(): void;
}

/** Opened keys that are kept. */
const mostOpened = 500;

/** What stays of a tenant key when its epoch is retired: the keys for reading, one behind the other. */
export function readingKeysOf(tenantKey: Uint8Array): Uint8Array {
  return concatBytes(...readingLabels.map((label) => derive(tenantKey, label)));
}

/** Makes the keys from what is held by epoch: tenant keys (32 bytes), or the keys for reading of retired epochs. */
export function tenantKeys(byEpoch: ReadonlyMap<number, Uint8Array>): TenantKeys {
  const epochs = [...byEpoch.keys()].sort((a, b) => a - b);
  const epoch = epochs.at(-1) ?? 0;
  const derived = new Map<string, Uint8Array>();
  /** The one asked for longest ago first. */
  const open = new Map<string, Uint8Array>();
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
      const key = open.get(what) ?? openIt();
      if (!key) return undefined;
      open.delete(what);
      open.set(what, key);
      const [oldest] = open.size > mostOpened ? open : [];
      if (oldest) {
        oldest[1].fill(0);
        open.delete(oldest[0]);
      }
      return key;
    },
    wipe() {
      wiped = true;
      for (const key of open.values()) key.fill(0);
      open.clear();
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
   * From here on `next` is what is used. What was handed out before stays good until the wipe, since files are being
   * written with it.
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
