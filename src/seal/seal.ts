// The opened seal: the master key and, under it, the key of every store. A value: what changes it answers a new one, whose bytes the
// caller makes durable before using it. Opening touches nothing.
import { openXChaCha, sealXChaCha } from '../crypto/aead.ts';
import { concatBytes, equalBytes } from '../crypto/bytes.ts';
import { toHex, utf8 } from '../crypto/encoding.ts';
import { hmacSha256 } from '../crypto/hash.ts';
import { hkdfSha256 } from '../crypto/hkdf.ts';
import { KmsError } from '../errors.ts';
import { formatHeader, headerText, parseHeader, type SealHeader } from './header.ts';
import { fingerprint, makeSlot, type Random, type Slot, slotIdOf, unwrapSlot, wrapForSlot } from './slot.ts';
import { type TenantKeys, tenantKeys } from './tenant-keys.ts';

export interface Seal {
  readonly applianceId: string;
  /** The fingerprint of the master key. */
  readonly fingerprint: string;
  readonly slots: readonly Slot[];
  /** The directories of the stores that have keys. */
  readonly stores: readonly string[];
  /** The keys of the store in `dir`; each call makes an object of its own. */
  keysFor(dir: string): TenantKeys;
  /** This seal with a new random key for the store in `dir`. */
  withStore(dir: string): Seal;
  /** This seal without the keys of the store in `dir`, which nobody can read from then on. */
  withoutStore(dir: string): Seal;
  /** The seal file. */
  toBytes(): Uint8Array;
  /** Overwrites the keys held, best effort. */
  wipe(): void;
}

interface State {
  readonly applianceId: string;
  readonly masterKey: Uint8Array;
  readonly slots: readonly Slot[];
  readonly keys: ReadonlyMap<string, ReadonlyMap<number, Uint8Array>>;
}

/** A seal with a new master key, held by one custodian of the kind `keyfile`. `params` is kept with its slot in clear. */
export function createSeal(secret: Uint8Array, random: Random, params: Slot['params'] = {}): Seal {
  const slots = [makeSlot('keyfile', secret, params)];
  return sealOf({ applianceId: toHex(random(16)), masterKey: random(32), slots, keys: new Map() }, random);
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
  const masterKey = unwrapSlot(slot.id, header.applianceId, slot.wrapped, secret);
  if (!masterKey || !equalBytes(mac, macOf(masterKey, header)) || header.master !== masterFingerprint(masterKey))
    throw damaged(name);
  const wrapKey = hkdfSha256(masterKey, 'kms/master/v1/wrap', 32);
  const keys = new Map<string, Map<number, Uint8Array>>();
  for (const [dir, epochs] of header.keys) {
    const opened = new Map<number, Uint8Array>();
    for (const [epoch, wrapped] of epochs) {
      const key = openXChaCha(
        wrapKey,
        wrapped.subarray(0, 24),
        wrapped.subarray(24),
        place(header.applianceId, dir, epoch),
      );
      if (!key) throw damaged(name);
      opened.set(epoch, key);
    }
    keys.set(dir, opened);
  }
  return sealOf({ applianceId: header.applianceId, masterKey, slots: header.slots, keys }, random);
}

function sealOf(state: State, random: Random): Seal {
  const { applianceId, masterKey, slots, keys } = state;
  return {
    applianceId,
    fingerprint: masterFingerprint(masterKey),
    slots,
    stores: [...keys.keys()],
    keysFor(dir) {
      const epochs = keys.get(dir);
      if (!epochs)
        throw new KmsError('corrupt', `the seal has no key for the store ${dir}`, {
          hint: 'restore the data directory from a backup',
        });
      return tenantKeys(new Map([...epochs].map(([epoch, key]) => [epoch, key.slice()])));
    },
    withStore(dir) {
      if (keys.has(dir)) throw new KmsError('internal', `the seal has a key for the store ${dir} already`);
      return sealOf({ ...state, keys: new Map([...keys, [dir, new Map([[1, random(32)]])]]) }, random);
    },
    withoutStore(dir) {
      return sealOf({ ...state, keys: new Map([...keys].filter(([name]) => name !== dir)) }, random);
    },
    toBytes() {
      const header = headerOf(state, random);
      return formatHeader(header, macOf(masterKey, header));
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
    return concatBytes(nonce, sealXChaCha(wrapKey, nonce, key, place(applianceId, dir, epoch)));
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

/** Associated data of a store's wrapped key. */
function place(applianceId: string, dir: string, epoch: number): Uint8Array {
  return utf8(`kms/store-key/v1/${applianceId}/${dir}/${epoch}`);
}

function damaged(name: string): KmsError {
  return new KmsError('corrupt', `${name}: the seal file is damaged or was changed: it does not verify`, {
    hint: 'restore it from a backup; nothing was changed',
  });
}
