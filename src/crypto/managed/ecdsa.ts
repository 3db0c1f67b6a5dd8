// ECDSA (FIPS 186-5 §6) and ECDH (NIST SP 800-56A §5.7.1.2) over P-256, P-384, P-521 and secp256k1. Private keys are
// the scalar, as long as the curve's order; public keys are SPKI DER of the uncompressed point.
import { p256, p384, p521 } from '@noble/curves/nist.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { KmsError } from '../../errors.ts';
import { concatBytes, equalBytes } from '../bytes.ts';
import { DerReader, der, derBits, onlySequence, tags } from '../der.ts';
import { type EcType, type HashName, native } from '../primitives.ts';
import { digestOf, type Signable } from './digests.ts';

/** Signatures are DER (ECDSA-Sig-Value of RFC 3279), or both numbers in full length one after the other, as in JWS. */
export type SignatureEncoding = 'der' | 'raw';

interface Curve {
  readonly noble: typeof p256;
  /** Bytes of a scalar and of a coordinate. */
  readonly length: number;
  /** Contents of the curve's OBJECT IDENTIFIER. */
  readonly oid: Uint8Array;
}

const curves: Readonly<Record<EcType, Curve>> = {
  'ecdsa-p256': {
    noble: p256,
    length: 32,
    oid: Uint8Array.of(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07),
  },
  'ecdsa-p384': { noble: p384, length: 48, oid: Uint8Array.of(0x2b, 0x81, 0x04, 0x00, 0x22) },
  'ecdsa-p521': { noble: p521, length: 66, oid: Uint8Array.of(0x2b, 0x81, 0x04, 0x00, 0x23) },
  'ecdsa-secp256k1': { noble: secp256k1, length: 32, oid: Uint8Array.of(0x2b, 0x81, 0x04, 0x00, 0x0a) },
};

/** Contents of id-ecPublicKey (RFC 5480 §2.1.1). */
export const ecPublicKeyOid = Uint8Array.of(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01);

export function scalarLength(type: EcType): number {
  return curves[type].length;
}

/** Contents of the OBJECT IDENTIFIER of the type's curve. */
export function curveOid(type: EcType): Uint8Array {
  return curves[type].oid;
}

/** A new scalar from 1 to the order less 1. */
export function newScalar(type: EcType, random: (length: number) => Uint8Array): Uint8Array {
  const { length, noble } = curves[type];
  for (;;) {
    const scalar = random(length);
    // P-521 has one bit in the first byte. Almost all draws are below the order of their curve.
    if (type === 'ecdsa-p521') scalar[0] = (scalar[0] ?? 0) & 1;
    if (noble.utils.isValidSecretKey(scalar)) return scalar;
  }
}

export function isScalar(type: EcType, bytes: Uint8Array): boolean {
  const { length, noble } = curves[type];
  return bytes.length === length && noble.utils.isValidSecretKey(bytes);
}

/** The public key of a scalar, SPKI DER. */
export function ecPublicKey(type: EcType, scalar: Uint8Array): Uint8Array {
  return pointToSpki(type, curves[type].noble.getPublicKey(scalar, false));
}

/** SPKI DER of an uncompressed point. */
export function pointToSpki(type: EcType, point: Uint8Array): Uint8Array {
  const algorithm = der(tags.sequence, der(tags.oid, ecPublicKeyOid), der(tags.oid, curves[type].oid));
  return der(tags.sequence, algorithm, derBits(point));
}

/**
 * The uncompressed point in SPKI DER that this project made or read. Throws `invalid` for another type's: each has a
 * length of its own.
 */
export function pointOfSpki(type: EcType, spki: Uint8Array): Uint8Array {
  const { length, oid } = curves[type];
  // Tags and lengths, two identifiers, and the point with the first byte of its bit string.
  const head = spki.length - 1 - 2 * length;
  const expected = 4 + 2 + ecPublicKeyOid.length + 2 + oid.length + (length > 60 ? 5 : 3);
  if (head === expected) return spki.subarray(head);
  throw new KmsError('invalid', `expected a public key of the type ${type}`);
}

function needKey(type: EcType, key: Uint8Array): void {
  if (key.length === curves[type].length) return;
  throw new KmsError(
    'invalid',
    `expected a private key of ${curves[type].length} bytes for ${type}, got ${key.length}`,
  );
}

/**
 * SPKI DER of a point in SEC 1's compressed or uncompressed form. Throws `invalid` for the point at infinity and for a
 * point that is not on the curve.
 */
export function readPoint(type: EcType, bytes: Uint8Array): Uint8Array {
  const { noble, length } = curves[type];
  if (bytes.length !== 1 + length && bytes.length !== 1 + 2 * length) {
    throw new KmsError('invalid', `expected a point of ${type}: ${1 + 2 * length} bytes, or ${1 + length} compressed`);
  }
  try {
    return pointToSpki(type, noble.Point.fromBytes(bytes).toBytes(false));
  } catch {
    throw new KmsError('invalid', `expected a point on the curve of ${type}`);
  }
}

/** SPKI DER in the form that `pointToSpki` makes, from SPKI DER of a point in either form. Throws `invalid`. */
export function readEcSpki(type: EcType, spki: Uint8Array): Uint8Array {
  const outer = onlySequence(spki);
  const algorithm = outer.sequence();
  const isEc = equalBytes(algorithm.read(tags.oid), ecPublicKeyOid);
  if (!isEc || !equalBytes(algorithm.read(tags.oid), curves[type].oid)) {
    throw new KmsError('invalid', `expected a public key of the type ${type}, got one of another kind`);
  }
  algorithm.end();
  const point = outer.bits();
  outer.end();
  return readPoint(type, point);
}

const ofDigest = { prehash: false, lowS: false, format: 'der' } as const;

/** Signs the hash of a message, or a hash made elsewhere. Throws `invalid` for a hash of another length. */
export function ecdsaSign(
  type: EcType,
  key: Uint8Array,
  input: Signable,
  hash: HashName,
  encoding: SignatureEncoding = 'der',
): Uint8Array {
  needKey(type, key);
  const curve = curves[type];
  const sign = input.isDigest ? undefined : native().ecdsaSign;
  const made = sign?.(type, key, hash, input.bytes) ?? curve.noble.sign(digestOf(hash, input), key, ofDigest);
  // Users of secp256k1 (Bitcoin, Ethereum) take the smaller of the two values of s alone.
  const signature = type === 'ecdsa-secp256k1' ? withLowS(made) : made;
  return encoding === 'der' ? signature : curve.noble.Signature.fromBytes(signature, 'der').toBytes('compact');
}

function withLowS(signature: Uint8Array): Uint8Array {
  const { Signature, Point } = secp256k1;
  const { r, s } = Signature.fromBytes(signature, 'der');
  const other = Point.Fn.ORDER - s;
  return other < s ? new Signature(r, other).toBytes('der') : signature;
}

/**
 * Whether the signature is valid; also false for a malformed one. Both values of s are accepted on all curves. Throws
 * `invalid` for a hash made elsewhere of another length.
 */
export function ecdsaVerify(
  type: EcType,
  publicKey: Uint8Array,
  input: Signable,
  hash: HashName,
  signature: Uint8Array,
  encoding: SignatureEncoding = 'der',
): boolean {
  const point = pointOfSpki(type, publicKey);
  const curve = curves[type];
  const inDer = encoding === 'der' ? signature : rawToDer(curve, signature);
  if (!inDer) {
    // The length of a hash is checked whatever the signature looks like.
    digestOf(hash, input);
    return false;
  }
  const verify = input.isDigest ? undefined : native().ecdsaVerify;
  if (verify) return verify(publicKey, hash, input.bytes, inDer);
  const hashed = digestOf(hash, input);
  try {
    return curve.noble.verify(inDer, hashed, point, ofDigest);
  } catch {
    return false;
  }
}

/** A signature of `raw` encoding in DER; undefined if it is malformed. */
function rawToDer({ noble, length }: Curve, signature: Uint8Array): Uint8Array | undefined {
  if (signature.length !== 2 * length) return undefined;
  try {
    return noble.Signature.fromBytes(signature, 'compact').toBytes('der');
  } catch {
    return undefined;
  }
}

/**
 * The x coordinate that both sides of a key agreement compute, as long as the curve's field. `publicKey` is SPKI DER
 * that was read here. It is not a key yet: derive one from it.
 */
export function ecdhShared(type: EcType, key: Uint8Array, publicKey: Uint8Array): Uint8Array {
  needKey(type, key);
  const { noble, length } = curves[type];
  return noble.getSharedSecret(key, pointOfSpki(type, publicKey), false).slice(1, 1 + length);
}

/** SEC 1 DER of a scalar with its public key (RFC 5915 §3). */
export function scalarToSec1(type: EcType, scalar: Uint8Array): Uint8Array {
  return sec1(scalar, curves[type].noble.getPublicKey(scalar, false), curves[type].oid);
}

/** The curve is left out within PKCS #8. */
function sec1(scalar: Uint8Array, point: Uint8Array, oid: Uint8Array | undefined): Uint8Array {
  const version = der(tags.integer, Uint8Array.of(1));
  const curve = oid ? der(tags.explicit0, der(tags.oid, oid)) : new Uint8Array();
  return der(tags.sequence, version, der(tags.octetString, scalar), curve, der(tags.explicit1, derBits(point)));
}

/** PKCS #8 DER of a scalar, with its public key, as OpenSSL writes it. A known public key saves milliseconds. */
export function scalarToPkcs8(type: EcType, scalar: Uint8Array, spki?: Uint8Array): Uint8Array {
  const point = spki ? pointOfSpki(type, spki) : curves[type].noble.getPublicKey(scalar, false);
  const key = sec1(scalar, point, undefined);
  const algorithm = der(tags.sequence, der(tags.oid, ecPublicKeyOid), der(tags.oid, curves[type].oid));
  try {
    return der(tags.sequence, der(tags.integer, Uint8Array.of(0)), algorithm, der(tags.octetString, key));
  } finally {
    key.fill(0);
  }
}

/** SEC 1 DER of a key in the PKCS #8 DER that was written here. */
export function sec1OfPkcs8(type: EcType, pkcs8: Uint8Array): Uint8Array {
  const outer = onlySequence(pkcs8);
  outer.read(tags.integer);
  outer.sequence();
  const inner = onlySequence(outer.read(tags.octetString));
  inner.read(tags.integer);
  const scalar = inner.read(tags.octetString);
  return sec1(scalar, new DerReader(inner.read(tags.explicit1)).bits(), curves[type].oid);
}

/** The scalar in full length from one whose leading zeros some software leaves out. */
export function paddedScalar(type: EcType, bytes: Uint8Array): Uint8Array {
  const { length } = curves[type];
  return bytes.length < length ? concatBytes(new Uint8Array(length - bytes.length), bytes) : bytes.slice();
}
