// HKDF (RFC 5869): the product's own derivations with SHA-256, and the bare Expand step with SHA-512 for formats whose
// input is a uniformly random key already.
import { hkdf } from '@noble/hashes/hkdf.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256, sha512 } from '@noble/hashes/sha2.js';
import { concatBytes } from './bytes.ts';
import { utf8 } from './encoding.ts';

/** `length` bytes from `key` for the purpose `label`: HKDF-SHA256 with an empty salt and the label as info. */
export function hkdfSha256(key: Uint8Array, label: string, length: number): Uint8Array {
  return hkdf(sha256, key, undefined, utf8(label), length);
}

/**
 * HKDF-Expand with SHA-512. Unlike the library's it takes a `prk` shorter than the hash (RFC 5869 §2.3 asks for a hash
 * length): c2sp.org/chunked-encryption expands its 32-byte key directly.
 */
export function hkdfExpandSha512(prk: Uint8Array, info: Uint8Array, length: number): Uint8Array {
  const blocks = Math.ceil(length / 64);
  const output = new Uint8Array(blocks * 64);
  let previous: Uint8Array = new Uint8Array(0);
  for (let block = 1; block <= blocks; block++) {
    previous = hmac(sha512, prk, concatBytes(previous, info, Uint8Array.of(block)));
    output.set(previous, (block - 1) * 64);
  }
  return output.subarray(0, length);
}
