// Managed keys as bytes: making them, taking them in and giving them out. A key is kept as its raw bytes (AES,
// ChaCha20, HMAC, secrets), as the scalar or seed (ECDSA, Ed25519, ML-DSA), or as PKCS #8 DER (RSA); its public key is
// SPKI DER. Keys from outside are checked, so that whatever is kept can be used.
import { KmsError } from '../../errors.ts';
import { equalBytes } from '../bytes.ts';
import { DerReader, der, onlySequence, tags, wholeBytes } from '../der.ts';
import { ed25519FromSpki, ed25519PublicKey, ed25519ToSpki, isEd25519PublicKey } from '../ed25519.ts';
import { isPem, pemBlocks, toPem } from '../pem.ts';
import type { EcType } from '../primitives.ts';
import { type CipherType, cipherKeyLengths } from './ciphers.ts';
import { digestLengths, type HmacType, hmacHashes } from './digests.ts';
import {
  curveOid,
  ecPublicKey,
  ecPublicKeyOid,
  isScalar,
  newScalar,
  paddedScalar,
  pointOfSpki,
  readEcSpki,
  readPoint,
  scalarLength,
  scalarToPkcs8,
  scalarToSec1,
} from './ecdsa.ts';
import {
  type MlDsaType,
  mlDsaPublicBytes,
  mlDsaPublicKey,
  mlDsaSeedLength,
  mlDsaSeedToPkcs8,
  needMlDsa,
  readMlDsaPrivateKey,
  readMlDsaPublicKey,
  readMlDsaSpki,
} from './ml-dsa-keys.ts';
import {
  modulusBits,
  type RsaType,
  readRsaPrivateKey,
  readRsaPublicKey,
  readRsaSpki,
  rsaOid,
  rsaPrivateNumbers,
  rsaPublicKey,
  rsaPublicNumbers,
  tryRsaKey,
} from './rsa-keys.ts';

type SymmetricType = CipherType | HmacType | 'secret';
type SeedType = EcType | MlDsaType | 'ed25519';

export type AsymmetricType = SeedType | RsaType;
export type ManagedKeyType = SymmetricType | AsymmetricType;

/** Private keys in DER are PKCS #8, PKCS #1 (RSA) or SEC 1 (ECDSA); public keys in DER are SPKI. */
export type KeyFormat = 'raw' | 'der';

const leastHmacKey = 16;
const mostHmacKey = 512;
const mostSecret = 65536;
const newSecret = 32;
const seedLength = 32;

const isCipher = (type: ManagedKeyType): type is CipherType => type in cipherKeyLengths;
const isHmac = (type: ManagedKeyType): type is HmacType => type in hmacHashes;
const isMlDsa = (type: ManagedKeyType): type is MlDsaType => type.startsWith('ml-dsa-');

function isSymmetric(type: ManagedKeyType): type is SymmetricType {
  return type === 'secret' || isCipher(type) || isHmac(type);
}

export function isRsaType(type: ManagedKeyType): type is RsaType {
  return type in modulusBits;
}

/** Fewest and most bytes of a symmetric key. */
function rawLengths(type: SymmetricType): readonly [least: number, most: number] {
  if (type === 'secret') return [1, mostSecret];
  if (isHmac(type)) return [leastHmacKey, mostHmacKey];
  return [cipherKeyLengths[type], cipherKeyLengths[type]];
}

/** A new key in the form in which it is kept. RSA keys take too long for this: see `generateRsaKey`. */
export function generateKey(
  type: Exclude<ManagedKeyType, RsaType>,
  random: (length: number) => Uint8Array,
): Uint8Array {
  if (type === 'secret') return random(newSecret);
  if (isCipher(type)) return random(cipherKeyLengths[type]);
  if (isHmac(type)) return random(digestLengths[hmacHashes[type]]);
  if (type === 'ed25519') return random(seedLength);
  return isMlDsa(type) ? random(mlDsaSeedLength) : newScalar(type, random);
}

/**
 * A key from outside in the form in which it is kept. `raw` is the key's bytes, a scalar or a seed, and for RSA the
 * RSAPrivateKey of PKCS #1. Throws `invalid` with the reason for anything that is not a sound key of the type.
 */
export function importKey(
  type: ManagedKeyType,
  format: KeyFormat,
  bytes: Uint8Array,
  random: (length: number) => Uint8Array,
): Uint8Array {
  if (isSymmetric(type)) return importSymmetric(type, format, bytes);
  if (format === 'der') return importDer(type, bytes, random);
  if (isRsaType(type)) return tried(type, readRsaPrivateKey(type, bytes), random);
  return importSeed(type, bytes);
}

function importSymmetric(type: SymmetricType, format: KeyFormat, bytes: Uint8Array): Uint8Array {
  if (format !== 'raw') throw new KmsError('invalid', `a key of the type ${type} has no DER form: give its bytes`);
  const [least, most] = rawLengths(type);
  if (bytes.length >= least && bytes.length <= most) return bytes.slice();
  const expected = least === most ? `${least}` : `${least} to ${most}`;
  throw new KmsError('invalid', `expected a key of ${expected} bytes for ${type}, got ${bytes.length}`);
}

function importSeed(type: SeedType, bytes: Uint8Array): Uint8Array {
  const length = type === 'ed25519' || isMlDsa(type) ? seedLength : scalarLength(type);
  if (bytes.length !== length) {
    throw new KmsError('invalid', `expected a private key of ${length} bytes for ${type}, got ${bytes.length}`);
  }
  if (type === 'ed25519' || isMlDsa(type) || isScalar(type, bytes)) return bytes.slice();
  throw new KmsError('invalid', `expected a private key of ${type} from 1 to the order of its curve`);
}

function tried(type: RsaType, pkcs8: Uint8Array, random: (length: number) => Uint8Array): Uint8Array {
  tryRsaKey(type, pkcs8, random);
  return pkcs8;
}

/** The three forms differ in the second value: an algorithm, a modulus or the scalar. */
function importDer(type: AsymmetricType, bytes: Uint8Array, random: (length: number) => Uint8Array): Uint8Array {
  const reader = onlySequence(bytes);
  reader.read(tags.integer);
  if (reader.isNext(tags.integer)) {
    if (!isRsaType(type)) throw anotherKind(type);
    return tried(type, readRsaPrivateKey(type, bytes), random);
  }
  if (reader.isNext(tags.octetString)) {
    if (!isEc(type)) throw anotherKind(type);
    return readSec1(type, bytes);
  }
  const algorithm = reader.sequence();
  const inside = reader.read(tags.octetString);
  reader.readIf(tags.explicit0);
  const publicBits = reader.readIf(tags.implicit1);
  reader.end();
  const key = importPkcs8(type, algorithm, inside, random);
  if (publicBits && !equalBytes(rawPublicKey(type, publicKeyOf(type, key)), wholeBytes(publicBits))) throw unlikePair();
  return key;
}

function importPkcs8(
  type: AsymmetricType,
  algorithm: DerReader,
  inside: Uint8Array,
  random: (length: number) => Uint8Array,
): Uint8Array {
  if (isMlDsa(type)) {
    needMlDsa(type, algorithm);
    return readMlDsaPrivateKey(type, inside);
  }
  const oid = algorithm.read(tags.oid);
  if (isRsaType(type)) {
    if (!equalBytes(oid, rsaOid)) throw anotherKind(type);
    return tried(type, readRsaPrivateKey(type, inside), random);
  }
  if (type === 'ed25519') {
    if (!equalBytes(oid, ed25519Oid)) throw anotherKind(type);
    algorithm.end();
    const seed = new DerReader(inside);
    const bytes = seed.read(tags.octetString);
    seed.end();
    return importSeed(type, bytes);
  }
  if (!equalBytes(oid, ecPublicKeyOid) || !equalBytes(algorithm.read(tags.oid), curveOid(type))) {
    throw anotherKind(type);
  }
  algorithm.end();
  return readSec1(type, inside);
}

const ed25519Oid = Uint8Array.of(0x2b, 0x65, 0x70);

function isEc(type: ManagedKeyType): type is EcType {
  return type.startsWith('ecdsa-');
}

/** ECPrivateKey (RFC 5915 §3); its curve and public key, where given, must be the type's and the scalar's. */
function readSec1(type: EcType, bytes: Uint8Array): Uint8Array {
  const reader = onlySequence(bytes);
  reader.read(tags.integer);
  const scalar = importSeed(type, paddedScalar(type, reader.read(tags.octetString)));
  const curve = reader.readIf(tags.explicit0);
  if (curve && !equalBytes(curve, der(tags.oid, curveOid(type)))) throw anotherKind(type);
  const point = reader.readIf(tags.explicit1);
  reader.end();
  if (!point) return scalar;
  const bits = new DerReader(point);
  const given = readPoint(type, bits.bits());
  bits.end();
  if (!equalBytes(given, ecPublicKey(type, scalar))) throw unlikePair();
  return scalar;
}

function anotherKind(type: ManagedKeyType): KmsError {
  return new KmsError('invalid', `expected a key of the type ${type}, got one of another kind`);
}

function unlikePair(): KmsError {
  return new KmsError('invalid', 'the public key given with the private key is not its own');
}

/** PKCS #8 DER of an asymmetric key; `spki` is its public key, which is worked out if absent. */
export function exportPkcs8(type: AsymmetricType, key: Uint8Array, spki?: Uint8Array): Uint8Array {
  if (isRsaType(type)) return key.slice();
  if (isMlDsa(type)) return mlDsaSeedToPkcs8(type, key);
  if (type !== 'ed25519') return scalarToPkcs8(type, key, spki);
  const algorithm = der(tags.sequence, der(tags.oid, ed25519Oid));
  const seed = der(tags.octetString, der(tags.octetString, key));
  return der(tags.sequence, der(tags.integer, Uint8Array.of(0)), algorithm, seed);
}

/** PKCS #1 DER of an RSA key or SEC 1 DER of an ECDSA key, which OpenSSL calls the traditional forms. */
export function exportTraditional(type: RsaType | EcType, key: Uint8Array): Uint8Array {
  return isRsaType(type) ? rsaPrivateNumbers(key).slice() : scalarToSec1(type, key);
}

/** The public key of a kept key, SPKI DER. */
export function publicKeyOf(type: AsymmetricType, key: Uint8Array): Uint8Array {
  if (isRsaType(type)) return rsaPublicKey(key);
  if (type === 'ed25519') return ed25519ToSpki(ed25519PublicKey(key));
  return isMlDsa(type) ? mlDsaPublicKey(type, key) : ecPublicKey(type, key);
}

/**
 * A public key from outside, SPKI DER in the form that this project writes. `raw` is a point of SEC 1, 32 bytes for
 * Ed25519, the bytes of ML-DSA, and for RSA the RSAPublicKey of PKCS #1. Throws `invalid` with the reason.
 */
export function importPublicKey(type: AsymmetricType, format: KeyFormat, bytes: Uint8Array): Uint8Array {
  const isRaw = format === 'raw';
  if (isRsaType(type)) return isRaw ? readRsaPublicKey(type, bytes) : readRsaSpki(type, bytes);
  if (isMlDsa(type)) return isRaw ? readMlDsaPublicKey(type, bytes) : readMlDsaSpki(type, bytes);
  if (type !== 'ed25519') return isRaw ? readPoint(type, bytes) : readEcSpki(type, bytes);
  const key = isRaw ? bytes : ed25519FromSpki(bytes);
  if (key && isEd25519PublicKey(key)) return ed25519ToSpki(key);
  throw new KmsError('invalid', `expected a public key of ed25519: ${isRaw ? '32 bytes of a point' : 'SPKI DER'}`);
}

/** The `raw` form of a public key that was made or read here; points are uncompressed. */
export function rawPublicKey(type: AsymmetricType, spki: Uint8Array): Uint8Array {
  if (isRsaType(type)) return rsaPublicNumbers(spki);
  if (isMlDsa(type)) return mlDsaPublicBytes(type, spki);
  return type === 'ed25519' ? spki.subarray(-32) : pointOfSpki(type, spki);
}

/** PEM of SPKI DER. */
export function publicKeyPem(spki: Uint8Array): string {
  return toPem('PUBLIC KEY', spki);
}

const pemLabels = {
  private: ['PRIVATE KEY', 'RSA PRIVATE KEY', 'EC PRIVATE KEY'],
  public: ['PUBLIC KEY'],
} as const;

/**
 * DER of the one key in PEM, to be imported. Throws `invalid` if there is none, or several, or one that is encrypted or
 * damaged.
 */
export function keyDerOfPem(text: string, half: keyof typeof pemLabels): Uint8Array {
  if (!isPem(text)) throw new KmsError('invalid', `expected a ${half} key in PEM`);
  const blocks = pemLabels[half].flatMap((label) => pemBlocks(text, label));
  const [only] = blocks;
  if (blocks.length > 1) throw new KmsError('invalid', `expected one ${half} key in PEM, got ${blocks.length}`);
  if (only) return only;
  const isEncrypted = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type:.*ENCRYPTED/m.test(text);
  throw new KmsError('invalid', `expected a ${half} key in PEM, got ${isEncrypted ? 'an encrypted one' : 'none'}`);
}
