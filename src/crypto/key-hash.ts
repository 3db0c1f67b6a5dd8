// The `hash` of an encrypt: which ring and key it was, sealed so that its tenant alone can read it, and nothing is stored.
//
//   version 1 (1) | key epoch (2, big-endian) | nonce (24) | XChaCha20-Poly1305 of ring ULID (16) and key ULID (16), tag (16)
//
// The associated data is `kms/hash/v1` and the first three bytes; the text is base64url, 100 characters. See docs/formats.md.
import { KmsError } from '../errors.ts';
import { openXChaCha, sealXChaCha } from './aead.ts';
import { fromBase64Url, toBase64Url, utf8 } from './encoding.ts';
import { idFromBytes, knownIdToBytes } from './ulid.ts';

/** The keys of a tenant, as far as hashes and headers need them. */
export interface SealingKeys {
  /** The epoch that new bytes are made under; fits 16 bits. */
  readonly epoch: number;
  /** The 32-byte key of that label. Throws `not-found` for an epoch that is not held. */
  key(label: 'hash' | 'header', epoch?: number): Uint8Array;
}

export interface KeyReference {
  readonly ringId: string;
  readonly keyId: string;
}

/** Bytes of a hash before base64url. */
export const keyHashLength = 75;

const label = utf8('kms/hash/v1');

/** A new hash for that ring and key; each call gives another. */
export function sealKeyHash(
  keys: SealingKeys,
  ringId: string,
  keyId: string,
  random: (length: number) => Uint8Array,
): string {
  const bytes = new Uint8Array(keyHashLength);
  bytes[0] = 1;
  bytes[1] = keys.epoch >>> 8;
  bytes[2] = keys.epoch;
  const nonce = random(24);
  bytes.set(nonce, 3);
  const plaintext = new Uint8Array(32);
  plaintext.set(knownIdToBytes('ring', ringId));
  plaintext.set(knownIdToBytes('key', keyId), 16);
  bytes.set(sealXChaCha(keys.key('hash', keys.epoch), nonce, plaintext, associated(bytes)), 27);
  return toBase64Url(bytes);
}

/** Ring and key of a hash; undefined when this tenant cannot read it: malformed, altered, another's. */
export function openKeyHash(keys: SealingKeys, text: string): KeyReference | undefined {
  const bytes = keyHashBytes(text);
  if (!bytes) return undefined;
  const key = keyOfEpoch(keys, 'hash', epochOfHash(bytes));
  if (!key) return undefined;
  const plaintext = openXChaCha(key, bytes.subarray(3, 27), bytes.subarray(27), associated(bytes));
  return plaintext && { ringId: idFromBytes('ring', plaintext), keyId: idFromBytes('key', plaintext, 16) };
}

/** The 75 bytes of a hash of a known version; undefined for any other text. */
export function keyHashBytes(text: string): Uint8Array | undefined {
  if (text.length !== 100) return undefined;
  const bytes = fromBase64Url(text);
  return bytes?.[0] === 1 ? bytes : undefined;
}

/** The key epoch that a hash names. */
export function epochOfHash(bytes: Uint8Array): number {
  return ((bytes[1] ?? 0) << 8) | (bytes[2] ?? 0);
}

/** The key, or undefined where the epoch is not held. */
export function keyOfEpoch(keys: SealingKeys, label: 'hash' | 'header', epoch: number): Uint8Array | undefined {
  try {
    return keys.key(label, epoch);
  } catch (error) {
    if (error instanceof KmsError && error.code === 'not-found') return undefined;
    throw error;
  }
}

function associated(bytes: Uint8Array): Uint8Array {
  const data = new Uint8Array(label.length + 3);
  data.set(label);
  data.set(bytes.subarray(0, 3), label.length);
  return data;
}
