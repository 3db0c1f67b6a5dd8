// A slot of the seal: the master key, wrapped so that one custodian's secret opens it. It is wrapped to a public key
// (HPKE with X-Wing, which a quantum computer does not break), so that a new master key can be wrapped for every
// custodian without asking any of them. Anyone could wrap a key of their own to that public key: the slot's proof, a
// MAC under a key derived from the secret, shows the custodian that the master key is one that they were given.
import { concatBytes, toHex, utf8 } from '../crypto/bytes.ts';
import { hkdfSha256, hmacSha256, sha256 } from '../crypto/hash.ts';
import { hpkeOpen, hpkeSeal } from '../crypto/hpke.ts';
import { xWingEncLength, xWingKem, xWingPublicKey } from '../crypto/x-wing.ts';
import type { CustodianKind } from '../model/custodian-kinds.ts';

/** Returns bytes from a secure generator. */
export type Random = (length: number) => Uint8Array;

export type SlotParam = string | number | readonly string[];

/** A custodian as described in a slot. */
interface Holder {
  /** 16 hex digits for comparison by eye: the fingerprint of the public key. */
  readonly id: string;
  readonly kind: CustodianKind;
  /** Parameters for recreating the secret, by kind; not secret. */
  readonly params: Readonly<Record<string, SlotParam>>;
  readonly publicKey: Uint8Array;
}

/** A custodian to be given a slot, made from their secret. */
export interface Custodian extends Holder {
  /** Makes and checks the slot's proof; as secret as the secret itself. */
  readonly proofKey: Uint8Array;
}

export interface Slot extends Holder {
  /** The commitment to the master key in the proof: the seal's, or one that it descends from. */
  readonly master: string;
  readonly proof: Uint8Array;
}

/** Maximum of custodians of a kind whose trial takes time: the writer of a seal decides how many there are. */
export const mostOfKind = 8;

const info = utf8('kms/slot/v1');
/** Length of the result of `wrapForSlot`: HPKE's encapsulated key, the master key and a tag. */
export const wrappedLength = xWingEncLength + 32 + 16;
export const proofLength = 32;

export function makeCustodian(kind: CustodianKind, secret: Uint8Array, params: Slot['params'] = {}): Custodian {
  const publicKey = xWingPublicKey(seedOf(secret));
  return { id: slotId(publicKey), kind, params, publicKey, proofKey: proofKeyOf(secret) };
}

/** The slot of a custodian in the seal of that appliance, under the master key of that commitment. */
export function slotFor({ proofKey, ...holder }: Custodian, applianceId: string, master: string): Slot {
  return { ...holder, master, proof: proofOf({ ...holder, master }, applianceId, proofKey) };
}

/** The id of the slot that `secret` opens. */
export function slotIdOf(secret: Uint8Array): string {
  return slotId(xWingPublicKey(seedOf(secret)));
}

export function slotId(publicKey: Uint8Array): string {
  return fingerprint('kms/slot/v1/fingerprint', publicKey);
}

/** 16 hex digits that identify a key without revealing anything about it. */
function fingerprint(label: string, key: Uint8Array): string {
  return toHex(sha256(concatBytes(utf8(label), key)).subarray(0, 8));
}

/** The key for a custodian's proofs. */
export function proofKeyOf(secret: Uint8Array): Uint8Array {
  return hkdfSha256(secret, 'kms/slot/v1/proof', 32);
}

/** Covers everything in a slot except the wrapped bytes, which hold either the key of this commitment or none. */
export function proofOf(
  { id, kind, params, publicKey, master }: Omit<Slot, 'proof'>,
  applianceId: string,
  proofKey: Uint8Array,
): Uint8Array {
  const covered = { appliance: applianceId, master, id, kind, params, publicKey: toHex(publicKey) };
  return hmacSha256(proofKey)(utf8(JSON.stringify(covered)));
}

/** Returns the bytes `enc ‖ ciphertext`. */
export function wrapForSlot(
  { id, publicKey }: Holder,
  applianceId: string,
  masterKey: Uint8Array,
  random: Random,
): Uint8Array {
  const { enc, ciphertext } = hpkeSeal(publicKey, info, aad(applianceId, id), masterKey, random, xWingKem);
  return concatBytes(enc, ciphertext);
}

/** The master key; undefined if the secret is another one or the bytes were changed. */
export function unwrapSlot(
  { id }: Holder,
  applianceId: string,
  wrapped: Uint8Array,
  secret: Uint8Array,
): Uint8Array | undefined {
  const enc = wrapped.subarray(0, xWingEncLength);
  const ciphertext = wrapped.subarray(xWingEncLength);
  return hpkeOpen(seedOf(secret), enc, info, aad(applianceId, id), ciphertext, xWingKem);
}

/** 32 bytes, X-Wing's private key. */
function seedOf(secret: Uint8Array): Uint8Array {
  return hkdfSha256(secret, 'kms/slot/v1/mlkem768-x25519', 32);
}

function aad(applianceId: string, slotId: string): Uint8Array {
  return utf8(`${applianceId}/${slotId}`);
}
