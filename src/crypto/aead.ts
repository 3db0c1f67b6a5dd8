// AEADs: XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha), which the appliance seals its own bytes with under random
// 24-byte nonces, and AES-256-GCM for the bulk data of clients, by the platform's Web Crypto.
import { xchacha20poly1305 } from '@noble/ciphers/chacha.js';
import { KmsError } from '../errors.ts';

/** Ciphertext and 16-byte tag. The caller sees to it that no nonce is used twice under a key. */
export function sealXChaCha(
  key: Uint8Array,
  nonce24: Uint8Array,
  plaintext: Uint8Array,
  associated: Uint8Array,
): Uint8Array {
  return xchacha20poly1305(key, nonce24, associated).encrypt(plaintext);
}

/** The plaintext, or undefined when key, nonce, associated data or any sealed byte is another. */
export function openXChaCha(
  key: Uint8Array,
  nonce24: Uint8Array,
  sealed: Uint8Array,
  associated: Uint8Array,
): Uint8Array | undefined {
  if (sealed.length < 16) return undefined;
  const cipher = xchacha20poly1305(key, nonce24, associated);
  try {
    return cipher.decrypt(sealed);
  } catch {
    return undefined;
  }
}

/**
 * AES-256-GCM, the same in Node and in browsers. The key is imported once for a stream; `@noble/ciphers/webcrypto`
 * imports it again for each message, which costs a quarter of the throughput at 16 KiB.
 */
export interface BulkGcm {
  /** Ciphertext and 16-byte tag. The caller sees to it that no nonce is used twice. */
  seal(nonce: Uint8Array, plaintext: Uint8Array): Promise<ArrayBuffer>;
  /** The plaintext; rejects when it does not authenticate. */
  open(nonce: Uint8Array, sealed: Uint8Array): Promise<ArrayBuffer>;
}

/** Imports a key of 32 bytes. Throws `unavailable` where the platform has no Web Crypto (a page without HTTPS). */
export async function bulkGcm(key: Uint8Array): Promise<BulkGcm> {
  const subtle = globalThis.crypto?.subtle as SubtleCrypto | undefined; // typed as always there, which it is not
  if (!subtle) {
    throw new KmsError('unavailable', 'expected Web Crypto, and this page has none', { hint: 'open it over HTTPS' });
  }
  const imported = await subtle.importKey('raw', unshared(key), 'AES-GCM', false, ['encrypt', 'decrypt']);
  return {
    seal: (iv, plaintext) => subtle.encrypt({ name: 'AES-GCM', iv: unshared(iv) }, imported, unshared(plaintext)),
    open: (iv, sealed) => subtle.decrypt({ name: 'AES-GCM', iv: unshared(iv) }, imported, unshared(sealed)),
  };
}

/** Web Crypto's types exclude shared memory, which it refuses itself at run time; ours do not say. */
function unshared(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes as Uint8Array<ArrayBuffer>;
}
