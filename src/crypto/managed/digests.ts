// SHA-2 by the names that managed keys use, with HMAC (RFC 2104) and HKDF (RFC 5869) over it; SHA-3 for hashes alone.
import { hkdf } from '@noble/hashes/hkdf.js';
import { hmac as nobleHmac } from '@noble/hashes/hmac.js';
import { sha224, sha256, sha384, sha512 } from '@noble/hashes/sha2.js';
import { sha3_224, sha3_256, sha3_384, sha3_512 } from '@noble/hashes/sha3.js';
import { KmsError } from '../../errors.ts';
import { equalBytes } from '../bytes.ts';
import { type HashName, native, type Sha3Name } from '../primitives.ts';

const hashes = { 'sha2-224': sha224, 'sha2-256': sha256, 'sha2-384': sha384, 'sha2-512': sha512 } as const;

/** Bytes of a hash. */
export const digestLengths: Readonly<Record<HashName, number>> = {
  'sha2-224': 28,
  'sha2-256': 32,
  'sha2-384': 48,
  'sha2-512': 64,
};

export function digest(hash: HashName, message: Uint8Array): Uint8Array {
  return native().hash?.(hash, message) ?? hashes[hash](message);
}

const sha3: Readonly<Record<Sha3Name, (message: Uint8Array) => Uint8Array>> = {
  'sha3-224': sha3_224,
  'sha3-256': sha3_256,
  'sha3-384': sha3_384,
  'sha3-512': sha3_512,
};

const isSha3 = (hash: HashName | Sha3Name): hash is Sha3Name => hash in sha3;

/** The hash of a message that no key has a part in, SHA-3 among the choices. */
export function plainDigest(hash: HashName | Sha3Name, message: Uint8Array): Uint8Array {
  if (!isSha3(hash)) return digest(hash, message);
  return native().hash?.(hash, message) ?? sha3[hash](message);
}

/** Bytes to sign, either a message or its hash made elsewhere. */
export interface Signable {
  readonly bytes: Uint8Array;
  readonly isDigest: boolean;
}

/**
 * The hash to sign. A hash made elsewhere must have the length that its name says: of a longer one only the first bits
 * would count, and a shorter one easily collides with another message's. Throws `invalid`.
 */
export function digestOf(hash: HashName, { bytes, isDigest }: Signable): Uint8Array {
  if (!isDigest) return digest(hash, bytes);
  if (bytes.length === digestLengths[hash]) return bytes;
  throw new KmsError(
    'invalid',
    `prehashed input: expected the ${digestLengths[hash]} bytes of ${hash}, got ${bytes.length}`,
  );
}

export type HmacType = 'hmac-sha224' | 'hmac-sha256' | 'hmac-sha384' | 'hmac-sha512';

export const hmacHashes: Readonly<Record<HmacType, HashName>> = {
  'hmac-sha224': 'sha2-224',
  'hmac-sha256': 'sha2-256',
  'hmac-sha384': 'sha2-384',
  'hmac-sha512': 'sha2-512',
};

/** The whole MAC, as long as the hash. */
export function hmac(hash: HashName, key: Uint8Array, message: Uint8Array): Uint8Array {
  return native().hmac?.(hash, key, message) ?? nobleHmac(hashes[hash], key, message);
}

/** Whether `mac` is the message's whole MAC, compared in constant time. */
export function isHmac(hash: HashName, key: Uint8Array, message: Uint8Array, mac: Uint8Array): boolean {
  const right = hmac(hash, key, message);
  try {
    return equalBytes(right, mac);
  } finally {
    right.fill(0);
  }
}

interface HkdfInput {
  readonly hash: HashName;
  readonly salt?: Uint8Array | undefined;
  readonly info: Uint8Array;
  /** Bytes to derive, at most 255 hashes. */
  readonly length: number;
}

/** Derives bytes from a key. Throws `invalid` for a length that HKDF has not. */
export function hkdfBytes(key: Uint8Array, { hash, salt, info, length }: HkdfInput): Uint8Array {
  const most = 255 * digestLengths[hash];
  if (!Number.isInteger(length) || length < 1 || length > most) {
    throw new KmsError('invalid', `length: expected 1 to ${most} bytes for ${hash}, got ${length}`);
  }
  return hkdf(hashes[hash], key, salt, info, length);
}
