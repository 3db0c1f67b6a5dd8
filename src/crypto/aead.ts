// AEADs: XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha), with which the appliance seals its own data under random 24-byte
// nonces, and AES-256-GCM through Web Crypto for the bulk data of clients.
import { hchacha, xchacha20poly1305 } from '@noble/ciphers/chacha.js';
import { KmsError } from '../errors.ts';
import { utf8 } from './bytes.ts';
import { native } from './primitives.ts';

/** Ciphertext and 16-byte tag. The caller ensures that no nonce is used twice under a key. */
export function sealXChaCha(
  key: Uint8Array,
  nonce24: Uint8Array,
  plaintext: Uint8Array,
  associated: Uint8Array,
): Uint8Array {
  needLengths(key, nonce24);
  const { sealChaCha } = native();
  if (!sealChaCha) return xchacha20poly1305(key, nonce24, associated).encrypt(plaintext);
  const { subkey, nonce } = shortNonce(key, nonce24);
  try {
    return sealChaCha(subkey, nonce, plaintext, associated);
  } finally {
    subkey.fill(0);
  }
}

/** The plaintext; undefined if the key, the nonce, the associated data or any sealed byte is wrong. */
export function openXChaCha(
  key: Uint8Array,
  nonce24: Uint8Array,
  sealed: Uint8Array,
  associated: Uint8Array,
): Uint8Array | undefined {
  if (sealed.length < 16) return undefined;
  needLengths(key, nonce24);
  const { openChaCha } = native();
  if (openChaCha) {
    const { subkey, nonce } = shortNonce(key, nonce24);
    try {
      return openChaCha(subkey, nonce, sealed, associated);
    } finally {
      subkey.fill(0);
    }
  }
  const cipher = xchacha20poly1305(key, nonce24, associated);
  try {
    return cipher.decrypt(sealed);
  } catch {
    return undefined;
  }
}

function needLengths(key: Uint8Array, nonce24: Uint8Array): void {
  if (key.length !== 32 || nonce24.length !== 24) {
    throw new KmsError(
      'internal',
      `expected a key of 32 bytes and a nonce of 24, got ${key.length} and ${nonce24.length}`,
    );
  }
}

/** "expand 32-byte k" as words. */
const sigma = /* @__PURE__ */ wordsOf(utf8('expand 32-byte k'));

/** Derives the subkey and the 12-byte nonce for the inner ChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03, §2.3). */
function shortNonce(key: Uint8Array, nonce24: Uint8Array): { subkey: Uint8Array; nonce: Uint8Array } {
  const subkey = new Uint32Array(8);
  const ownKey = wordsOf(key);
  hchacha(sigma, ownKey, wordsOf(nonce24.subarray(0, 16)), subkey);
  ownKey.fill(0);
  const nonce = new Uint8Array(12);
  nonce.set(nonce24.subarray(16), 4);
  return { subkey: new Uint8Array(subkey.buffer), nonce };
}

/** An aligned copy as words in the platform's byte order, which noble expects. */
function wordsOf(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(new Uint8Array(bytes).buffer);
}

/**
 * AES-256-GCM, the same in Node and in browsers. The key is imported once per stream; `@noble/ciphers/webcrypto`
 * imports it again for each message, which costs a quarter of the throughput at 16 KiB.
 */
export interface BulkGcm {
  /** Ciphertext and 16-byte tag. The caller ensures that no nonce is used twice. */
  seal(nonce: Uint8Array, plaintext: Uint8Array): Promise<ArrayBuffer>;
  /** The plaintext; rejects if it does not authenticate. */
  open(nonce: Uint8Array, sealed: Uint8Array, associated?: Uint8Array): Promise<ArrayBuffer>;
}

/** Imports a 32-byte key. Throws `unavailable` if the platform has no Web Crypto (a page without HTTPS). */
export async function bulkGcm(key: Uint8Array): Promise<BulkGcm> {
  const subtle = webCrypto();
  const imported = await subtle.importKey('raw', unshared(key), 'AES-GCM', false, ['encrypt', 'decrypt']);
  return {
    seal: (iv, plaintext) => subtle.encrypt({ name: 'AES-GCM', iv: unshared(iv) }, imported, unshared(plaintext)),
    open(iv, sealed, associated) {
      const additionalData = associated && { additionalData: unshared(associated) };
      return subtle.decrypt({ name: 'AES-GCM', iv: unshared(iv), ...additionalData }, imported, unshared(sealed));
    },
  };
}

/** Throws `unavailable` if the platform has no Web Crypto (a page without HTTPS). */
export function webCrypto(): SubtleCrypto {
  const subtle = globalThis.crypto?.subtle as SubtleCrypto | undefined; // typed as always present, which it is not
  if (subtle) return subtle;
  throw new KmsError('unavailable', 'expected Web Crypto, but this page has none', { hint: 'open it over HTTPS' });
}

/** Casts for Web Crypto, which takes no shared memory: its types say so, and it checks. Our types leave it open. */
export function unshared(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes as Uint8Array<ArrayBuffer>;
}
