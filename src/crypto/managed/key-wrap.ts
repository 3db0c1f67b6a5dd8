// Keys wrapped for their way in and out: AES key wrap with padding (RFC 5649, NIST SP 800-38F's KWP), and beneath an
// RSA key the two steps of CKM_RSA_AES_KEY_WRAP (PKCS #11 §6.1.16), which Vault and AWS use too.
import { aeskwp } from '@noble/ciphers/aes.js';
import { KmsError } from '../../errors.ts';
import { concatBytes } from '../bytes.ts';
import type { OaepHash } from '../primitives.ts';
import { oaepDecrypt, oaepEncrypt } from './rsa.ts';
import { modulusLength, type RsaType } from './rsa-keys.ts';

/** Bytes that one wrapping takes: as many as the longest secret. */
const longestWrapped = 65536;

function needKek(kek: Uint8Array): void {
  if (kek.length === 16 || kek.length === 24 || kek.length === 32) return;
  throw new KmsError('invalid', `expected an AES key of 16, 24 or 32 bytes to wrap with, got ${kek.length}`);
}

/** Wraps 1 to 65,536 bytes under an AES key; the result is 8 bytes longer, after padding to a multiple of 8. */
export function wrapKwp(kek: Uint8Array, bytes: Uint8Array): Uint8Array {
  needKek(kek);
  if (bytes.length < 1 || bytes.length > longestWrapped) {
    throw new KmsError('invalid', `expected 1 to ${longestWrapped} bytes to wrap, got ${bytes.length}`);
  }
  return aeskwp(kek).encrypt(bytes);
}

/** The wrapped bytes; undefined if the key or any byte is wrong. */
export function unwrapKwp(kek: Uint8Array, wrapped: Uint8Array): Uint8Array | undefined {
  needKek(kek);
  if (wrapped.length < 16 || wrapped.length % 8 !== 0 || wrapped.length > longestWrapped + 8) return undefined;
  try {
    return aeskwp(kek).decrypt(wrapped);
  } catch {
    return undefined;
  }
}

const none = new Uint8Array(0);
const ephemeralLength = 32;

/**
 * Wraps bytes of any length to an RSA public key: a new AES-256 key encrypted with OAEP, as long as the modulus, then
 * the bytes wrapped under that key.
 */
export function wrapToRsa(
  type: RsaType,
  publicKey: Uint8Array,
  hash: OaepHash,
  bytes: Uint8Array,
  random: (length: number) => Uint8Array,
): Uint8Array {
  const kek = random(ephemeralLength);
  try {
    return concatBytes(oaepEncrypt(type, publicKey, hash, kek, none), wrapKwp(kek, bytes));
  } finally {
    kek.fill(0);
  }
}

/** The bytes that `wrapToRsa` wrapped; undefined if anything is wrong. */
export function unwrapFromRsa(
  type: RsaType,
  key: Uint8Array,
  hash: OaepHash,
  wrapped: Uint8Array,
): Uint8Array | undefined {
  const length = modulusLength(type);
  const kek = oaepDecrypt(type, key, hash, wrapped.subarray(0, length), none);
  if (!kek) return undefined;
  try {
    return kek.length === ephemeralLength ? unwrapKwp(kek, wrapped.subarray(length)) : undefined;
  } finally {
    kek.fill(0);
  }
}
