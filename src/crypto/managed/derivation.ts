// Derivations of keys as KMIP has them: by a password (PBKDF2, RFC 8018 §5.2), by a hash or a MAC, and in counter mode
// (SP 800-108 §4.1). SHA-1 is among the hashes, since clients derive keys again that they derived long ago.
import { hmac } from '@noble/hashes/hmac.js';
import { sha1 } from '@noble/hashes/legacy.js';
import { pbkdf2 } from '@noble/hashes/pbkdf2.js';
import { sha224, sha256, sha384, sha512 } from '@noble/hashes/sha2.js';
import { concatBytes } from '../bytes.ts';
import type { HashName } from '../primitives.ts';

export type DerivingHash = 'sha1' | HashName;

const hashes = { sha1, 'sha2-224': sha224, 'sha2-256': sha256, 'sha2-384': sha384, 'sha2-512': sha512 } as const;

/** In bytes. */
export const hashLengths = {
  sha1: 20,
  'sha2-224': 28,
  'sha2-256': 32,
  'sha2-384': 48,
  'sha2-512': 64,
} as const satisfies Record<DerivingHash, number>;

export interface PasswordDerivation {
  readonly hash: DerivingHash;
  readonly key: Uint8Array;
  readonly salt: Uint8Array;
  readonly iterations: number;
  readonly length: number;
}

export function passwordKey({ hash, key, salt, iterations, length }: PasswordDerivation): Uint8Array {
  return pbkdf2(hashes[hash], key, salt, { c: iterations, dkLen: length });
}

export function hashKey(hash: DerivingHash, bytes: Uint8Array): Uint8Array {
  return hashes[hash](bytes);
}

export function hmacKey(hash: DerivingHash, key: Uint8Array, bytes: Uint8Array): Uint8Array {
  return hmac(hashes[hash], key, bytes);
}

export interface CounterDerivation {
  readonly hash: DerivingHash;
  readonly key: Uint8Array;
  /** Hashed once for each block of the hash. */
  readonly fixed: Uint8Array;
  readonly length: number;
}

/** A counter of 32 bits before the fixed input; at most 2^16 blocks. */
export function counterKey({ hash, key, fixed, length }: CounterDerivation): Uint8Array {
  const blocks: Uint8Array[] = [];
  for (let made = 0, count = 1; made < length; count++) {
    const counter = new Uint8Array(4);
    new DataView(counter.buffer).setUint32(0, count);
    const block = hmacKey(hash, key, concatBytes(counter, fixed));
    blocks.push(block);
    made += block.length;
  }
  return concatBytes(...blocks).subarray(0, length);
}
