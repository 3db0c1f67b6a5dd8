// AEADs of managed keys: AES-GCM (NIST SP 800-38D) and ChaCha20-Poly1305 (RFC 8439), with nonces of 12 bytes and tags
// of 16. The caller sees to it that no nonce is used twice under a key.
import { gcm } from '@noble/ciphers/aes.js';
import { chacha20poly1305 } from '@noble/ciphers/chacha.js';
import { KmsError } from '../../errors.ts';
import { concatBytes } from '../bytes.ts';
import { native } from '../primitives.ts';

export type CipherType = 'aes128-gcm' | 'aes256-gcm' | 'chacha20-poly1305';

export const cipherKeyLengths: Readonly<Record<CipherType, number>> = {
  'aes128-gcm': 16,
  'aes256-gcm': 32,
  'chacha20-poly1305': 32,
};

/** Whether the platform does the cipher, some twenty times as fast as noble. */
export function isFast(type: CipherType): boolean {
  const { sealGcm: gcmHere, sealChaCha } = native();
  return (type === 'chacha20-poly1305' ? sealChaCha : gcmHere) !== undefined;
}

/** The type, if it is a cipher's. */
export function cipherIn(type: string): CipherType | undefined {
  return type === 'aes128-gcm' || type === 'aes256-gcm' || type === 'chacha20-poly1305' ? type : undefined;
}

const nonceLength = 12;
export const tagLength = 16;

/** Ciphertext and tag. `key` has 16 or 32 bytes, `nonce` 12. */
export function sealGcm(key: Uint8Array, nonce: Uint8Array, plaintext: Uint8Array, associated: Uint8Array): Uint8Array {
  return native().sealGcm?.(key, nonce, plaintext, associated) ?? gcm(key, nonce, associated).encrypt(plaintext);
}

/** `sealed` has at least 16 bytes. */
export function openGcm(
  key: Uint8Array,
  nonce: Uint8Array,
  sealed: Uint8Array,
  associated: Uint8Array,
): Uint8Array | undefined {
  const { openGcm: open } = native();
  return open ? open(key, nonce, sealed, associated) : opened(() => gcm(key, nonce, associated).decrypt(sealed));
}

/** Ciphertext and tag. */
export function sealWithNonce(
  type: CipherType,
  key: Uint8Array,
  nonce: Uint8Array,
  plaintext: Uint8Array,
  associated: Uint8Array,
): Uint8Array {
  needLengths(type, key, nonce);
  if (type !== 'chacha20-poly1305') return sealGcm(key, nonce, plaintext, associated);
  const { sealChaCha } = native();
  return sealChaCha?.(key, nonce, plaintext, associated) ?? chacha20poly1305(key, nonce, associated).encrypt(plaintext);
}

/** The plaintext; undefined if the key, the nonce, the associated data or any sealed byte is wrong. */
export function openWithNonce(
  type: CipherType,
  key: Uint8Array,
  nonce: Uint8Array,
  sealed: Uint8Array,
  associated: Uint8Array,
): Uint8Array | undefined {
  needLengths(type, key, nonce);
  if (sealed.length < tagLength) return undefined;
  if (type !== 'chacha20-poly1305') return openGcm(key, nonce, sealed, associated);
  const { openChaCha } = native();
  if (openChaCha) return openChaCha(key, nonce, sealed, associated);
  return opened(() => chacha20poly1305(key, nonce, associated).decrypt(sealed));
}

/** A random nonce, the ciphertext and the tag. */
export function sealAead(
  type: CipherType,
  key: Uint8Array,
  plaintext: Uint8Array,
  associated: Uint8Array,
  random: (length: number) => Uint8Array,
): Uint8Array {
  const nonce = random(nonceLength);
  return concatBytes(nonce, sealWithNonce(type, key, nonce, plaintext, associated));
}

/** Opens what `sealAead` made; undefined if anything is wrong. */
export function openAead(
  type: CipherType,
  key: Uint8Array,
  bytes: Uint8Array,
  associated: Uint8Array,
): Uint8Array | undefined {
  if (bytes.length < nonceLength + tagLength) return undefined;
  return openWithNonce(type, key, bytes.slice(0, nonceLength), bytes.slice(nonceLength), associated);
}

function needLengths(type: CipherType, key: Uint8Array, nonce: Uint8Array): void {
  if (key.length !== cipherKeyLengths[type]) {
    throw new KmsError('invalid', `expected a key of ${cipherKeyLengths[type]} bytes for ${type}, got ${key.length}`);
  }
  if (nonce.length !== nonceLength) {
    throw new KmsError('invalid', `expected a nonce of ${nonceLength} bytes, got ${nonce.length}`);
  }
}

function opened(decrypt: () => Uint8Array): Uint8Array | undefined {
  try {
    return decrypt();
  } catch {
    return undefined;
  }
}
