// A slot of the seal: the master key, wrapped so that one custodian's secret opens it. The wrapping is to a public key
// (HPKE), so that a new master key is wrapped for every custodian without asking one of them. Of version 2 it is to one
// of X-Wing, which a quantum computer does not break; of version 1 to one of X25519.
import { concatBytes, toHex, utf8 } from '../crypto/bytes.ts';
import { hkdfSha256, sha256 } from '../crypto/hash.ts';
import { hpkeOpen, hpkeSeal } from '../crypto/hpke.ts';
import { xWingEncLength, xWingKem, xWingPublicKey, xWingPublicKeyLength } from '../crypto/x-wing.ts';
import { publicFromPrivate } from '../crypto/x25519.ts';
import type { CustodianKind } from '../model/custodian-kinds.ts';

/** Gives bytes from a secure generator. */
export type Random = (length: number) => Uint8Array;

export type SlotParam = string | number | readonly string[];

type SlotVersion = 1 | 2;

export interface Slot {
  /**
   * 16 hex digits, and what people compare: the fingerprint of the X25519 public key of the secret, in version 2 as
   * well, so that a custodian keeps its id when its slot becomes one of version 2.
   */
  readonly id: string;
  readonly version: SlotVersion;
  readonly kind: CustodianKind;
  /** What the kind needs to make the secret again; nothing secret. */
  readonly params: Readonly<Record<string, SlotParam>>;
  readonly publicKey: Uint8Array;
}

const infos: Readonly<Record<SlotVersion, Uint8Array>> = { 1: utf8('kms/slot/v1'), 2: utf8('kms/slot/v2') };
const encLengths: Readonly<Record<SlotVersion, number>> = { 1: 32, 2: xWingEncLength };
/** How long a slot's public key is, by which its version is known. */
export const publicKeyLengths: Readonly<Record<SlotVersion, number>> = { 1: 32, 2: xWingPublicKeyLength };

/** The slot of a new custodian, or of one whose slot is of version 1. */
export function makeSlot(kind: CustodianKind, secret: Uint8Array, params: Slot['params'] = {}): Slot {
  return { id: slotIdOf(secret), version: 2, kind, params, publicKey: xWingPublicKey(privateKeyOf(secret, 2)) };
}

/** The id of the slot that `secret` opens. */
export function slotIdOf(secret: Uint8Array): string {
  return slotId(publicFromPrivate(privateKeyOf(secret, 1)));
}

/** The id of a slot with this public key of X25519. */
export function slotId(publicKey: Uint8Array): string {
  return fingerprint('kms/slot/v1/fingerprint', publicKey);
}

/** Binds the id of a slot of version 2 to its public key, so that damage to either is told from a wrong key. */
export function slotCheck({ id, publicKey }: Pick<Slot, 'id' | 'publicKey'>): string {
  return fingerprint('kms/slot/v2/check', concatBytes(utf8(id), publicKey));
}

/** How many bytes `wrapForSlot` makes. */
export function wrappedLength(version: SlotVersion): number {
  return encLengths[version] + 32 + 16;
}

/** 16 hex digits that name a key without telling anything of it. */
export function fingerprint(label: string, key: Uint8Array): string {
  return toHex(sha256(concatBytes(utf8(label), key)).subarray(0, 8));
}

/** The bytes `enc ‖ ciphertext`. */
export function wrapForSlot(slot: Slot, applianceId: string, masterKey: Uint8Array, random: Random): Uint8Array {
  const { id, version, publicKey } = slot;
  const kem = version === 1 ? undefined : xWingKem;
  const { enc, ciphertext } = hpkeSeal(publicKey, infos[version], aad(applianceId, id), masterKey, random, kem);
  return concatBytes(enc, ciphertext);
}

/** The master key, or nothing when the secret is another one or the bytes were changed. */
export function unwrapSlot(
  { id, version }: Pick<Slot, 'id' | 'version'>,
  applianceId: string,
  wrapped: Uint8Array,
  secret: Uint8Array,
): Uint8Array | undefined {
  const enc = wrapped.subarray(0, encLengths[version]);
  const ciphertext = wrapped.subarray(encLengths[version]);
  const kem = version === 1 ? undefined : xWingKem;
  return hpkeOpen(privateKeyOf(secret, version), enc, infos[version], aad(applianceId, id), ciphertext, kem);
}

/** 32 bytes: the private key of X25519, or the seed of X-Wing's. */
function privateKeyOf(secret: Uint8Array, version: SlotVersion): Uint8Array {
  return hkdfSha256(secret, version === 1 ? 'kms/slot/v1/x25519' : 'kms/slot/v2/mlkem768-x25519', 32);
}

function aad(applianceId: string, slotId: string): Uint8Array {
  return utf8(`${applianceId}/${slotId}`);
}
