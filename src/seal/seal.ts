// The opened seal: the master key and, under it, the key of every store. A value: what changes it answers a new one,
// whose bytes the caller makes durable before using it. Opening touches nothing.
import { openXChaCha, sealXChaCha } from '../crypto/aead.ts';
import { concatBytes, equalBytes, toHex, utf8 } from '../crypto/bytes.ts';
import { hkdfSha256, hmacSha256 } from '../crypto/hash.ts';
import { KmsError } from '../errors.ts';
import { formatHeader, headerText, parseHeader, type SealHeader } from './header.ts';
import { fingerprint, makeSlot, type Random, type Slot, slotIdOf, unwrapSlot, wrapForSlot } from './slot.ts';
import { readingKeysOf, type TenantKeys, tenantKeyLength, tenantKeys } from './tenant-keys.ts';

/** A tenant key that there is or was. */
export interface KeyEpoch {
  readonly epoch: number;
  /** Retired: files can no longer be opened with it, only read what left the appliance. */
  readonly retired: boolean;
}

export interface Seal {
  readonly applianceId: string;
  /** The fingerprint of the master key. */
  readonly fingerprint: string;
  readonly slots: readonly Slot[];
  /** The directories of the stores that have keys. */
  readonly stores: readonly string[];
  /** The keys of the store in `dir`; each call makes an object of its own. */
  keysFor(dir: string): TenantKeys;
  /** The epochs of the store in `dir`, the oldest first. */
  epochsOf(dir: string): readonly KeyEpoch[];
  /** This seal with a new random key for the store in `dir`. */
  withStore(dir: string): Seal;
  /** This seal without the keys of the store in `dir`, which nobody can read from then on. */
  withoutStore(dir: string): Seal;
  /** This seal with one more random key for the store in `dir`, of the next epoch. */
  withNextEpoch(dir: string): Seal;
  /** This seal with nothing but the keys for reading of that epoch, which must not be the newest. */
  withRetiredEpoch(dir: string, epoch: number): Seal;
  /** This seal with one more custodian. Throws `conflict` where it has that one. */
  withSlot(slot: Slot): Seal;
  /** This seal without that custodian. Throws `not-found`, and `conflict` for the last one. */
  withoutSlot(id: string): Seal;
  /**
   * This seal under a new random master key, with the same custodians and store keys. The slot of the custodian that
   * opened it becomes one of version 2; others of version 1 stay, since their secrets are elsewhere.
   */
  withNewMaster(): Seal;
  /** The seal file. */
  toBytes(): Uint8Array;
  /**
   * Another seal file of this appliance, opened with the master key that this one holds. `name` is how errors call the
   * file.
   */
  openOther(bytes: Uint8Array, name: string): Seal;
  /** Overwrites the keys held, best effort. */
  wipe(): void;
}

/** Epochs fit 16 bits. */
const lastEpoch = 0xffff;

interface State {
  readonly applianceId: string;
  readonly masterKey: Uint8Array;
  readonly slots: readonly Slot[];
  readonly keys: ReadonlyMap<string, ReadonlyMap<number, Uint8Array>>;
  /** What the slot that opened the seal is to become at a new master key. */
  readonly successor: Slot | undefined;
}

/** A seal with a new master key, held by each of these custodians. */
export function sealFor(slots: readonly [Slot, ...Slot[]], random: Random): Seal {
  return sealOf(
    { applianceId: toHex(random(16)), masterKey: random(32), slots, keys: new Map(), successor: undefined },
    random,
  );
}

/** Opens the bytes of a seal file with a custodian's secret. `name` is how errors call the file. */
export function openSeal(bytes: Uint8Array, secret: Uint8Array, random: Random, name = 'kms.seal'): Seal {
  const { header, mac } = parseHeader(bytes, name);
  const id = slotIdOf(secret);
  const slot = header.slots.find((candidate) => candidate.id === id);
  if (!slot) {
    throw new KmsError(
      'refused',
      `wrong master key file: needs ${header.slots.map((each) => each.id).join(' or ')}, got ${id}`,
      {
        hint: 'give the key file that belongs to this data directory (--key-file); nothing was changed',
      },
    );
  }
  const masterKey = unwrapSlot(slot, header.applianceId, slot.wrapped, secret);
  if (!masterKey) throw damaged(name);
  const successor = slot.version === 1 ? makeSlot(slot.kind, secret, slot.params) : undefined;
  return openWith(masterKey, successor, { header, mac }, random, name);
}

function openWith(
  masterKey: Uint8Array,
  successor: Slot | undefined,
  { header, mac }: { readonly header: SealHeader; readonly mac: Uint8Array },
  random: Random,
  name: string,
): Seal {
  if (!equalBytes(mac, macOf(masterKey, header)) || header.master !== masterFingerprint(masterKey)) throw damaged(name);
  const wrapKey = hkdfSha256(masterKey, 'kms/master/v1/wrap', 32);
  const keys = new Map<string, Map<number, Uint8Array>>();
  for (const [dir, epochs] of header.keys) {
    const opened = new Map<number, Uint8Array>();
    for (const [epoch, wrapped] of epochs) {
      const key = openXChaCha(
        wrapKey,
        wrapped.subarray(0, 24),
        wrapped.subarray(24),
        place(header.applianceId, dir, epoch, wrapped.length - 24 - 16),
      );
      if (!key) throw damaged(name);
      opened.set(epoch, key);
    }
    keys.set(dir, opened);
  }
  const slots = header.slots.map(({ wrapped: _, ...slot }) => slot);
  return sealOf({ applianceId: header.applianceId, masterKey, slots, keys, successor }, random);
}

function sealOf(state: State, random: Random): Seal {
  const { applianceId, masterKey, slots, keys, successor } = state;
  const held = (dir: string): ReadonlyMap<number, Uint8Array> => {
    const epochs = keys.get(dir);
    if (epochs) return epochs;
    throw new KmsError('corrupt', `the seal has no key for the store ${dir}`, {
      hint: 'restore the data directory from a backup',
    });
  };
  const withKeys = (dir: string, epochs: ReadonlyMap<number, Uint8Array>): Seal =>
    sealOf({ ...state, keys: new Map([...keys].map(([name, each]) => [name, name === dir ? epochs : each])) }, random);
  return {
    applianceId,
    fingerprint: masterFingerprint(masterKey),
    slots,
    stores: [...keys.keys()],
    keysFor(dir) {
      return tenantKeys(new Map([...held(dir)].map(([epoch, key]) => [epoch, key.slice()])));
    },
    withStore(dir) {
      if (keys.has(dir)) throw new KmsError('internal', `the seal has a key for the store ${dir} already`);
      return sealOf({ ...state, keys: new Map([...keys, [dir, new Map([[1, random(32)]])]]) }, random);
    },
    withoutStore(dir) {
      return sealOf({ ...state, keys: new Map([...keys].filter(([name]) => name !== dir)) }, random);
    },
    epochsOf(dir) {
      return [...held(dir)]
        .map(([epoch, key]) => ({ epoch, retired: key.length !== tenantKeyLength }))
        .sort((a, b) => a.epoch - b.epoch);
    },
    withNextEpoch(dir) {
      const epochs = held(dir);
      const next = Math.max(...epochs.keys()) + 1;
      if (next > lastEpoch) throw new KmsError('conflict', `the store ${dir} has had as many keys as there can be`);
      return withKeys(dir, new Map([...epochs, [next, random(tenantKeyLength)]]));
    },
    withRetiredEpoch(dir, epoch) {
      const epochs = held(dir);
      const key = epochs.get(epoch);
      if (!key || epoch === Math.max(...epochs.keys())) {
        throw new KmsError('internal', `epoch ${epoch} of the store ${dir} is none to retire`);
      }
      if (key.length !== tenantKeyLength) return sealOf(state, random);
      return withKeys(dir, new Map([...epochs].map(([n, each]) => [n, n === epoch ? readingKeysOf(each) : each])));
    },
    withSlot(slot) {
      if (slots.some(({ id }) => id === slot.id)) {
        throw new KmsError('conflict', `the custodian ${slot.id} holds the master key already`);
      }
      return sealOf({ ...state, slots: [...slots, slot] }, random);
    },
    withoutSlot(id) {
      if (!slots.some((slot) => slot.id === id)) throw new KmsError('not-found', 'there is no such custodian');
      if (slots.length === 1) {
        throw new KmsError('conflict', 'it is the last custodian: without it nobody could open the data again', {
          hint: 'add another one first with `kms master add-custodian`',
        });
      }
      return sealOf({ ...state, slots: slots.filter((slot) => slot.id !== id) }, random);
    },
    withNewMaster() {
      const next = slots.map((slot) => (slot.id === successor?.id ? successor : slot));
      return sealOf({ ...state, masterKey: random(32), slots: next }, random);
    },
    toBytes() {
      const header = headerOf(state, random);
      return formatHeader(header, macOf(masterKey, header));
    },
    openOther(bytes, name) {
      const parsed = parseHeader(bytes, name);
      const own = masterFingerprint(masterKey);
      const { header } = parsed;
      if (header.master !== own) {
        throw new KmsError('refused', `${name}: wrong master key: needs ${header.master}, got ${own}`, {
          hint: 'it is sealed under another master key, of another appliance or from before a rotation',
        });
      }
      return openWith(masterKey.slice(), successor, parsed, random, name);
    },
    wipe() {
      masterKey.fill(0);
      for (const epochs of keys.values()) for (const key of epochs.values()) key.fill(0);
    },
  };
}

/** Everything wrapped anew: for all slots, and each store's keys under the master key. */
function headerOf({ applianceId, masterKey, slots, keys }: State, random: Random): SealHeader {
  const wrapKey = hkdfSha256(masterKey, 'kms/master/v1/wrap', 32);
  const wrap = (dir: string, epoch: number, key: Uint8Array): Uint8Array => {
    const nonce = random(24);
    return concatBytes(nonce, sealXChaCha(wrapKey, nonce, key, place(applianceId, dir, epoch, key.length)));
  };
  return {
    applianceId,
    master: masterFingerprint(masterKey),
    slots: slots.map((slot) => ({ ...slot, wrapped: wrapForSlot(slot, applianceId, masterKey, random) })),
    keys: new Map(
      [...keys].map(([dir, epochs]) => [
        dir,
        new Map([...epochs].map(([epoch, key]) => [epoch, wrap(dir, epoch, key)])),
      ]),
    ),
  };
}

function masterFingerprint(masterKey: Uint8Array): string {
  return fingerprint('kms/master/v1/fingerprint', masterKey);
}

function macOf(masterKey: Uint8Array, header: SealHeader): Uint8Array {
  return hmacSha256(hkdfSha256(masterKey, 'kms/master/v1/mac', 32))(utf8(headerText(header)));
}

/** Associated data of what is wrapped of a store: its whole key, or that of reading alone. */
function place(applianceId: string, dir: string, epoch: number, length: number): Uint8Array {
  const kind = length === tenantKeyLength ? 'store-key' : 'store-reading-keys';
  return utf8(`kms/${kind}/v1/${applianceId}/${dir}/${epoch}`);
}

function damaged(name: string): KmsError {
  return new KmsError('corrupt', `${name}: the seal file is damaged or was changed: it does not verify`, {
    hint: 'restore it from a backup; nothing was changed',
  });
}
