// Ed25519 signatures (RFC 8032), verified by the strictest rules in use: a signature that passes here passes in every
// verifier.
import { ed25519 } from '@noble/curves/ed25519.js';
import { sha512 } from '@noble/hashes/sha2.js';
import { concatBytes, equalBytes, toHex } from './bytes.ts';
import { native } from './primitives.ts';

/** The 64-byte signature of `message` by the key whose 32-byte seed is given. */
export function ed25519Sign(seed32: Uint8Array, message: Uint8Array): Uint8Array {
  return native().ed25519Sign?.(seed32, message) ?? ed25519.sign(message, seed32);
}

/**
 * Whether the signature is the one that `ed25519Sign` makes, for callers who hold the seed: RFC 8032 signatures are
 * deterministic. Faster than verifying, stricter than any verification rule, and in constant time.
 */
export function isEd25519Signature(seed32: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  return equalBytes(ed25519Sign(seed32, message), signature);
}

const { Point } = ed25519;

/**
 * Chooses the tables that noble builds with the first signature. Those for many signatures take 30 ms to build; those
 * for few take 12 ms, but make each signature two or three times as slow.
 */
export function expectSignatures(howMany: 'many' | 'few'): void {
  Point.BASE.precompute(howMany === 'many' ? 8 : 2);
}

/**
 * Whether the signature is valid; also false for a malformed key or signature. Only canonical encodings, no point of
 * small order as key or R, and the equation of RFC 8032 §5.1.7 without the cofactor: libsodium's rules, and
 * node:crypto's since 26.5. noble's own `verify` multiplies by the cofactor and accepts an R of small order, so a key
 * holder could make signatures that only noble accepts.
 */
export function ed25519Verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  const r = signature.subarray(0, 32);
  const s = littleEndian(signature.subarray(32));
  if (s >= Point.Fn.ORDER) return false;
  const { ed25519Verify: verify } = native();
  if (verify) return isOfLargeOrder(publicKey) && isOfLargeOrder(r) && verify(publicKey, message, signature);
  try {
    const key = Point.fromBytes(publicKey);
    const k = Point.Fn.create(littleEndian(sha512(concatBytes(r, publicKey, message))));
    const expected = Point.BASE.multiplyUnsafe(s).subtract(key.multiplyUnsafe(k));
    return !key.isSmallOrder() && !expected.isSmallOrder() && equalBytes(expected.toBytes(), r);
  } catch {
    return false;
  }
}

/** Whether 32 bytes are the canonical encoding of a point that is not of small order. */
export function isEd25519PublicKey(bytes: Uint8Array): boolean {
  if (bytes.length !== 32) return false;
  try {
    return !Point.fromBytes(bytes).isSmallOrder();
  } catch {
    return false;
  }
}

const prime = 2n ** 255n - 19n;

/** y coordinates of the points of order 1, 2, 4 and 8; the points of one y differ in the sign of x only. */
const ofSmallOrder: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  prime - 1n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
]);

/** Whether 32 bytes encode a canonical y that no point of small order has. The curve may have no point with that y. */
function isOfLargeOrder(point: Uint8Array): boolean {
  const y = littleEndian(point) & (2n ** 255n - 1n);
  return y < prime && !ofSmallOrder.has(y);
}

function littleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${toHex(bytes.toReversed())}`);
}

/** The 32-byte public key of a seed. */
export function ed25519PublicKey(seed: Uint8Array): Uint8Array {
  return native().ed25519PublicKey?.(seed) ?? ed25519.getPublicKey(seed);
}

/** SPKI DER up to the 32 bytes of the public key (RFC 8410 §4). */
const spkiPrefix = Uint8Array.of(0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00);

/** SPKI DER of a 32-byte public key. */
export function ed25519ToSpki(publicKey: Uint8Array): Uint8Array {
  return concatBytes(spkiPrefix, publicKey);
}

/** The 32-byte public key in SPKI DER; undefined for anything else. */
export function ed25519FromSpki(spki: Uint8Array): Uint8Array | undefined {
  const { length } = spkiPrefix;
  if (spki.length !== length + 32 || !equalBytes(spki.subarray(0, length), spkiPrefix)) return undefined;
  return spki.subarray(length);
}
