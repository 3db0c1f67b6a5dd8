// ML-DSA signatures of managed keys (FIPS 204), pure and without a context, or over the 64-byte message representative
// µ computed elsewhere. Private keys are seeds of 32 bytes; public keys are SPKI DER (RFC 9881).
import { ml_dsa44, ml_dsa65, ml_dsa87 } from '@noble/post-quantum/ml-dsa.js';
import { KmsError } from '../../errors.ts';
import { equalBytes } from '../bytes.ts';
import { DerReader, der, derBits, onlySequence, tags } from '../der.ts';
import { type MlDsaSet, native } from '../primitives.ts';
import type { Signable } from './digests.ts';

export type MlDsaType = 'ml-dsa-44' | 'ml-dsa-65' | 'ml-dsa-87';

export const mlDsaSeedLength = 32;
const muLength = 64;

interface Parameters {
  readonly set: MlDsaSet;
  readonly noble: typeof ml_dsa65;
  readonly publicKeyLength: number;
  readonly signatureLength: number;
  /** Contents of the OBJECT IDENTIFIER. */
  readonly oid: Uint8Array;
}

/** id-ml-dsa-44, -65 and -87 (RFC 9881 §2) differ in the last number. */
const oidOf = (last: number): Uint8Array => Uint8Array.of(0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, last);

const parameters: Readonly<Record<MlDsaType, Parameters>> = {
  'ml-dsa-44': { set: 44, noble: ml_dsa44, publicKeyLength: 1312, signatureLength: 2420, oid: oidOf(0x11) },
  'ml-dsa-65': { set: 65, noble: ml_dsa65, publicKeyLength: 1952, signatureLength: 3309, oid: oidOf(0x12) },
  'ml-dsa-87': { set: 87, noble: ml_dsa87, publicKeyLength: 2592, signatureLength: 4627, oid: oidOf(0x13) },
};

/** The public key of a seed, SPKI DER. */
export function mlDsaPublicKey(type: MlDsaType, seed: Uint8Array): Uint8Array {
  const { publicKey, secretKey } = parameters[type].noble.keygen(seed);
  secretKey.fill(0);
  return publicKeyToSpki(type, publicKey);
}

function algorithm(type: MlDsaType): Uint8Array {
  return der(tags.sequence, der(tags.oid, parameters[type].oid));
}

function publicKeyToSpki(type: MlDsaType, publicKey: Uint8Array): Uint8Array {
  return der(tags.sequence, algorithm(type), derBits(publicKey));
}

/** SPKI DER of the bytes of a public key, all of which are one. Throws `invalid` for a wrong length. */
export function readMlDsaPublicKey(type: MlDsaType, publicKey: Uint8Array): Uint8Array {
  const { publicKeyLength } = parameters[type];
  if (publicKey.length === publicKeyLength) return publicKeyToSpki(type, publicKey);
  throw new KmsError('invalid', `expected a public key of ${publicKeyLength} bytes for ${type}`);
}

/** Checks SPKI DER. Throws `invalid`. */
export function readMlDsaSpki(type: MlDsaType, spki: Uint8Array): Uint8Array {
  const outer = onlySequence(spki);
  needMlDsa(type, outer.sequence());
  const key = outer.bits();
  outer.end();
  return readMlDsaPublicKey(type, key);
}

/** Bytes of SPKI DER before the public key: as many in each set. */
const spkiHead = 22;

/** The bytes of the public key in SPKI DER that this project made or read. Throws `invalid` for another type's. */
export function mlDsaPublicBytes(type: MlDsaType, spki: Uint8Array): Uint8Array {
  if (spki.length === spkiHead + parameters[type].publicKeyLength) return spki.subarray(spkiHead);
  throw new KmsError('invalid', `expected a public key of the type ${type}`);
}

/** PKCS #8 DER of a seed (RFC 9881 §6, the choice `seed`). */
export function mlDsaSeedToPkcs8(type: MlDsaType, seed: Uint8Array): Uint8Array {
  const key = der(tags.implicit0, seed);
  return der(tags.sequence, der(tags.integer, Uint8Array.of(0)), algorithm(type), der(tags.octetString, key));
}

/**
 * The seed in an ML-DSA private key's OCTET STRING: alone, or beside the expanded key, which must be the seed's. Throws
 * `invalid`, also for an expanded key without its seed.
 */
export function readMlDsaPrivateKey(type: MlDsaType, bytes: Uint8Array): Uint8Array {
  const reader = new DerReader(bytes);
  if (reader.isNext(tags.octetString)) {
    throw new KmsError('invalid', 'the ML-DSA key is in expanded form without its seed, from which it cannot be made');
  }
  if (!reader.isNext(tags.sequence)) {
    const seed = reader.read(tags.implicit0);
    reader.end();
    return needSeed(seed);
  }
  const both = reader.sequence();
  reader.end();
  const seed = needSeed(both.read(tags.octetString));
  const expanded = both.read(tags.octetString);
  both.end();
  const { secretKey } = parameters[type].noble.keygen(seed);
  try {
    if (equalBytes(secretKey, expanded)) return seed;
  } finally {
    secretKey.fill(0);
  }
  throw new KmsError('invalid', 'the expanded ML-DSA key is not that of its seed');
}

function needSeed(seed: Uint8Array): Uint8Array {
  if (seed.length === mlDsaSeedLength) return seed.slice();
  throw wrongSeed(seed);
}

function wrongSeed({ length }: Uint8Array): KmsError {
  return new KmsError('invalid', `expected a seed of ${mlDsaSeedLength} bytes for ML-DSA, got ${length}`);
}

/** Throws `invalid` unless the AlgorithmIdentifier is the type's, which has no parameters. */
export function needMlDsa(type: MlDsaType, identifier: DerReader): void {
  if (!equalBytes(identifier.read(tags.oid), parameters[type].oid)) {
    throw new KmsError('invalid', `expected a key of the type ${type}, got one of another kind`);
  }
  identifier.end();
}

/** Signs a message, or a µ of 64 bytes. Throws `invalid` for a µ of another length. */
export function mlDsaSignWith(type: MlDsaType, seed: Uint8Array, { bytes, isDigest }: Signable): Uint8Array {
  if (seed.length !== mlDsaSeedLength) throw wrongSeed(seed);
  const { noble, set } = parameters[type];
  if (isDigest) needMu(bytes);
  else {
    const made = native().mlDsaSign?.(set, seed, bytes);
    if (made) return made;
  }
  const { secretKey } = noble.keygen(seed);
  try {
    return isDigest ? noble.internal.sign(bytes, secretKey, { externalMu: true }) : noble.sign(bytes, secretKey);
  } finally {
    secretKey.fill(0);
  }
}

/** Whether the signature is valid; also false for a malformed one. Throws `invalid` for a µ of another length. */
export function mlDsaVerifyWith(
  type: MlDsaType,
  publicKey: Uint8Array,
  { bytes, isDigest }: Signable,
  signature: Uint8Array,
): boolean {
  const key = mlDsaPublicBytes(type, publicKey);
  const { noble, signatureLength } = parameters[type];
  if (isDigest) needMu(bytes);
  if (signature.length !== signatureLength) return false;
  const { mlDsaVerify } = native();
  if (mlDsaVerify && !isDigest) return mlDsaVerify(publicKey, bytes, signature);
  try {
    return isDigest
      ? noble.internal.verify(signature, bytes, key, { externalMu: true })
      : noble.verify(signature, bytes, key);
  } catch {
    return false;
  }
}

function needMu(bytes: Uint8Array): void {
  if (bytes.length === muLength) return;
  throw new KmsError(
    'invalid',
    `prehashed input: expected the ${muLength} bytes of ML-DSA's message representative, got ${bytes.length}`,
  );
}
