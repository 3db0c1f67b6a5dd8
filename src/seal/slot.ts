// A slot of the seal: the master key, wrapped so that one custodian's secret opens it. The wrapping is to a public key
// (HPKE), so that a new master key is wrapped for every custodian without asking one of them.
import { concatBytes, toHex, utf8 } from '../crypto/bytes.ts';
import { hkdfSha256, sha256 } from '../crypto/hash.ts';
import { hpkeOpen, hpkeSeal } from '../crypto/hpke.ts';
import { publicFromPrivate } from '../crypto/x25519.ts';
import type { CustodianKind } from '../model/custodian-kinds.ts';

/** Gives bytes from a secure generator. */
export type Random = (length: number) => Uint8Array;

export type SlotParam = string | number | readonly string[];

export interface Slot {
  /** The fingerprint of the public key: 16 hex digits, and what people compare. */
  readonly id: string;
  readonly kind: CustodianKind;
  /** What the kind needs to make the secret again; nothing secret. */
  readonly params: Readonly<Record<string, SlotParam>>;
  readonly publicKey: Uint8Array;
}

const info = utf8('kms/slot/v1');
const encLength = 32;

export function makeSlot(kind: CustodianKind, secret: Uint8Array, params: Slot['params'] = {}): Slot {
  const publicKey = publicFromPrivate(privateKeyOf(secret));
  return { id: slotId(publicKey), kind, params, publicKey };
}

/** The id of the slot that `secret` opens. */
export function slotIdOf(secret: Uint8Array): string {
  return slotId(publicFromPrivate(privateKeyOf(secret)));
}

export function slotId(publicKey: Uint8Array): string {
  return fingerprint('kms/slot/v1/fingerprint', publicKey);
}

/** 16 hex digits that name a key without telling anything of it. */
export function fingerprint(label: string, key: Uint8Array): string {
  return toHex(sha256(concatBytes(utf8(label), key)).subarray(0, 8));
}

/** The bytes `enc ‖ ciphertext`. */
export function wrapForSlot(slot: Slot, applianceId: string, masterKey: Uint8Array, random: Random): Uint8Array {
  const { enc, ciphertext } = hpkeSeal(slot.publicKey, info, aad(applianceId, slot.id), masterKey, random);
  return concatBytes(enc, ciphertext);
}

/** The master key, or nothing when the secret is another one or the bytes were changed. */
export function unwrapSlot(
  slotId: string,
  applianceId: string,
  wrapped: Uint8Array,
  secret: Uint8Array,
): Uint8Array | undefined {
  const enc = wrapped.subarray(0, encLength);
  return hpkeOpen(privateKeyOf(secret), enc, info, aad(applianceId, slotId), wrapped.subarray(encLength));
}

function privateKeyOf(secret: Uint8Array): Uint8Array {
  return hkdfSha256(secret, 'kms/slot/v1/x25519', 32);
}

function aad(applianceId: string, slotId: string): Uint8Array {
  return utf8(`${applianceId}/${slotId}`);
}
