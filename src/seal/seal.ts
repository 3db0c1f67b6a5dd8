// The opened seal: the master key and, under it, the key of every store. It is an immutable value: a change returns a
// new one, whose bytes the caller makes durable before using it. Opening writes nothing.
import { openXChaCha, sealXChaCha } from '../crypto/aead.ts';
import { concatBytes, equalBytes, toHex, utf8 } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';
import { formatHeader, headerText, parseHeader, type SealHeader } from './header.ts';
import { chainKeyOf, commitmentTo, fingerprintOf, sealMac, wrapKeyOf } from './master-key.ts';
import {
  type Custodian,
  mostOfKind,
  proofKeyOf,
  proofOf,
  type Random,
  type Slot,
  slotFor,
  slotIdOf,
  unwrapSlot,
  wrapForSlot,
} from './slot.ts';
import { readingKeysOf, type TenantKeys, tenantKeyLength, tenantKeys } from './tenant-keys.ts';

/** A present or past tenant key. */
export interface KeyEpoch {
  readonly epoch: number;
  /** Retired: the key no longer opens files, and only reads data that left the appliance. */
  readonly retired: boolean;
}

export interface Seal {
  readonly applianceId: string;
  /** The commitment to the master key, which the proofs of new slots refer to. */
  readonly master: string;
  /** The fingerprint of the master key. */
  readonly fingerprint: string;
  readonly slots: readonly Slot[];
  /** The directories of the stores that have keys. */
  readonly stores: readonly string[];
  /** The keys of the store in `dir`; each call makes a new object. */
  keysFor(dir: string): TenantKeys;
  /** The epochs of the store in `dir`, oldest first. */
  epochsOf(dir: string): readonly KeyEpoch[];
  /** This seal with a new random key for the store in `dir`. */
  withStore(dir: string): Seal;
  /** This seal without the keys of the store in `dir`, whose data can no longer be read. */
  withoutStore(dir: string): Seal;
  /** This seal with another random key for the store in `dir`, of the next epoch. */
  withNextEpoch(dir: string): Seal;
  /** This seal with only the reading keys of that epoch, which must not be the newest. */
  withRetiredEpoch(dir: string, epoch: number): Seal;
  /**
   * This seal with another custodian. Throws `conflict` if it already has that custodian or as many of its kind as are
   * tried, or if the slot is of an earlier master key.
   */
  withSlot(slot: Slot): Seal;
  /** This seal without that custodian. Throws `not-found`, and `conflict` for the last one. */
  withoutSlot(id: string): Seal;
  /**
   * This seal under a new random master key, with the same custodians and store keys. The custodian that opened it gets
   * a proof of the new key; for the others, whose secrets are not here, the former key's chain key proves the descent.
   */
  withNewMaster(): Seal;
  /** The bytes of the seal file. */
  toBytes(): Uint8Array;
  /** Opens another seal file of this appliance with the same master key. `name` is the file's name in errors. */
  openOther(bytes: Uint8Array, name: string): Seal;
  /** Overwrites the keys held, best effort. */
  wipe(): void;
}

/** Epochs fit 16 bits. */
const lastEpoch = 0xffff;

interface State {
  readonly applianceId: string;
  readonly masterKey: Uint8Array;
  /** The chain keys of earlier master keys that proofs refer to, by their commitments. */
  readonly former: ReadonlyMap<string, Uint8Array>;
  readonly slots: readonly Slot[];
  /** The proof keys of custodians whose secrets were given, by slot. */
  readonly proofKeys: ReadonlyMap<string, Uint8Array>;
  readonly keys: ReadonlyMap<string, ReadonlyMap<number, Uint8Array>>;
}

/** A seal with a new master key, held by each of these custodians. */
export function sealFor(custodians: readonly [Custodian, ...Custodian[]], random: Random): Seal {
  const applianceId = toHex(random(16));
  const masterKey = random(32);
  const master = commitmentTo(chainKeyOf(masterKey));
  const slots = custodians.map((custodian) => slotFor(custodian, applianceId, master));
  return sealOf({ applianceId, masterKey, former: new Map(), slots, proofKeys: new Map(), keys: new Map() }, random);
}

/** Opens the bytes of a seal file with a custodian's secret. `name` is the file's name in errors. */
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
  const proofKey = proofKeyOf(secret);
  const state = openWith(masterKey, new Map([[id, proofKey]]), { header, mac }, name);
  // No mere damage: the file was made with a foreign master key.
  const isKnown = slot.master === header.master || state.former.has(slot.master);
  if (!isKnown || !equalBytes(slot.proof, proofOf(slot, header.applianceId, proofKey))) {
    sealOf(state, random).wipe();
    throw foreign(name);
  }
  return sealOf(renewed(state), random);
}

/** Throws `corrupt` unless the whole seal was made by a holder of this master key. */
function openWith(
  masterKey: Uint8Array,
  proofKeys: State['proofKeys'],
  { header, mac }: { readonly header: SealHeader; readonly mac: Uint8Array },
  name: string,
): State {
  const { applianceId, master } = header;
  if (!equalBytes(mac, sealMac(masterKey, headerText(header)))) throw damaged(name);
  if (master !== commitmentTo(chainKeyOf(masterKey))) throw damaged(name);
  const wrapKey = wrapKeyOf(masterKey);
  // The MAC of the whole file fits, so a key that does not open is no mere damage.
  const unwrap = (wrapped: Uint8Array, place: Uint8Array): Uint8Array => {
    const key = openXChaCha(wrapKey, wrapped.subarray(0, 24), wrapped.subarray(24), place);
    if (!key) throw foreign(name);
    return key;
  };
  const former = new Map<string, Uint8Array>();
  for (const [commitment, wrapped] of header.former) {
    const chainKey = unwrap(wrapped, chainPlace(applianceId, commitment));
    if (commitmentTo(chainKey) !== commitment) throw foreign(name);
    former.set(commitment, chainKey);
  }
  const keys = new Map<string, Map<number, Uint8Array>>();
  for (const [dir, epochs] of header.keys) {
    const opened = new Map<number, Uint8Array>();
    for (const [epoch, wrapped] of epochs) {
      opened.set(epoch, unwrap(wrapped, place(applianceId, dir, epoch, wrapped.length - 24 - 16)));
    }
    keys.set(dir, opened);
  }
  const slots = header.slots.map(({ wrapped: _, ...slot }) => slot);
  return { applianceId, masterKey, former, slots, proofKeys, keys };
}

/**
 * Renews the proofs for the present master key where the proof key is held, and keeps the chain keys that the other
 * proofs still need.
 */
function renewed(state: State): State {
  const { applianceId, masterKey, proofKeys } = state;
  const master = commitmentTo(chainKeyOf(masterKey));
  const slots = state.slots.map((slot) => {
    const proofKey = proofKeys.get(slot.id);
    return proofKey && slot.master !== master ? slotFor({ ...holderOf(slot), proofKey }, applianceId, master) : slot;
  });
  const former = new Map([...state.former].filter(([commitment]) => slots.some((slot) => slot.master === commitment)));
  return { ...state, slots, former };
}

function copies(keys: ReadonlyMap<string, Uint8Array>): ReadonlyMap<string, Uint8Array> {
  return new Map([...keys].map(([name, key]) => [name, key.slice()]));
}

function holderOf({ id, kind, params, publicKey }: Slot): Omit<Custodian, 'proofKey'> {
  return { id, kind, params, publicKey };
}

function sealOf(state: State, random: Random): Seal {
  const { applianceId, masterKey, former, slots, proofKeys, keys } = state;
  const chainKey = chainKeyOf(masterKey);
  const master = commitmentTo(chainKey);
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
    master,
    fingerprint: fingerprintOf(master),
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
      const isCostly = slot.kind === 'passphrase' || slot.kind === 'exec';
      if (isCostly && slots.filter(({ kind }) => kind === slot.kind).length >= mostOfKind) {
        throw new KmsError(
          'conflict',
          `there are ${mostOfKind} custodians of the kind ${slot.kind}, and no more are tried`,
          {
            hint: 'remove one first with `kms master remove-custodian`',
          },
        );
      }
      if (slot.master !== master) {
        throw new KmsError('conflict', 'the master key was rotated meanwhile; no custodian was added', {
          hint: 'try again',
        });
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
      return sealOf(renewed({ ...state, slots: slots.filter((slot) => slot.id !== id) }), random);
    },
    withNewMaster() {
      const known = copies(new Map([...former, [master, chainKey]]));
      return sealOf(renewed({ ...state, masterKey: random(32), former: known }), random);
    },
    toBytes() {
      const header = headerOf(state, random);
      return formatHeader(header, sealMac(masterKey, headerText(header)));
    },
    openOther(bytes, name) {
      const parsed = parseHeader(bytes, name);
      const other = parsed.header.master;
      if (other !== master) {
        const [needed, own] = [other, master].map(fingerprintOf);
        throw new KmsError('refused', `${name}: wrong master key: needs ${needed}, got ${own}`, {
          hint: 'it is sealed under another master key, of another appliance or from before a rotation',
        });
      }
      return sealOf(renewed(openWith(masterKey.slice(), copies(proofKeys), parsed, name)), random);
    },
    wipe() {
      masterKey.fill(0);
      chainKey.fill(0);
      for (const key of [...former.values(), ...proofKeys.values()]) key.fill(0);
      for (const epochs of keys.values()) for (const key of epochs.values()) key.fill(0);
    },
  };
}

/** Wraps everything again: the master key for all slots, and under it each store's keys and the chain keys. */
function headerOf({ applianceId, masterKey, former, slots, keys }: State, random: Random): SealHeader {
  const wrapKey = wrapKeyOf(masterKey);
  const wrap = (key: Uint8Array, place: Uint8Array): Uint8Array => {
    const nonce = random(24);
    return concatBytes(nonce, sealXChaCha(wrapKey, nonce, key, place));
  };
  return {
    applianceId,
    master: commitmentTo(chainKeyOf(masterKey)),
    former: new Map([...former].map(([master, key]) => [master, wrap(key, chainPlace(applianceId, master))])),
    slots: slots.map((slot) => ({ ...slot, wrapped: wrapForSlot(slot, applianceId, masterKey, random) })),
    keys: new Map(
      [...keys].map(([dir, epochs]) => [
        dir,
        new Map([...epochs].map(([epoch, key]) => [epoch, wrap(key, place(applianceId, dir, epoch, key.length))])),
      ]),
    ),
  };
}

/** Associated data of a store's wrapped keys: the whole key, or only the reading keys. */
function place(applianceId: string, dir: string, epoch: number, length: number): Uint8Array {
  const kind = length === tenantKeyLength ? 'store-key' : 'store-reading-keys';
  return utf8(`kms/${kind}/v1/${applianceId}/${dir}/${epoch}`);
}

function chainPlace(applianceId: string, commitment: string): Uint8Array {
  return utf8(`kms/chain-key/v1/${applianceId}/${commitment}`);
}

/**
 * The error if the secret opens the seal although its custodian was never given this master key, or one that it
 * descends from.
 */
function foreign(name: string): KmsError {
  const what =
    'it is not the appliance that this custodian was made for: somebody made another one to their public key';
  return new KmsError('corrupt', `${name}: ${what}`, {
    hint: 'somebody else can write there: restore from a copy that you trust; nothing of this one was used',
  });
}

function damaged(name: string): KmsError {
  return new KmsError('corrupt', `${name}: the seal file is damaged or was changed: it does not verify`, {
    hint: 'restore it from a backup; nothing was changed',
  });
}
