// Keys of KMIP as bytes: from a key block to a managed key, and back in any format that the key has.

import { isAsymmetric, isRsa } from '../../core/key-versions.ts';
import type { KeyWork } from '../../core/key-work.ts';
import { equalBytes } from '../../crypto/bytes.ts';
import { der, tags as derTags, derUnsigned, onlySequence } from '../../crypto/der.ts';
import { exportPkcs8, exportTraditional, importKey, importPublicKey } from '../../crypto/managed/keys.ts';
import { rsaOid, rsaPublicNumbers } from '../../crypto/managed/rsa-keys.ts';
import { KmsError } from '../../errors.ts';
import { type KeyType, keyTypeFacts, keyTypes } from '../../model/key-types.ts';
import { algorithms, curveNumbers, formats, objectTypes } from './enumerations.ts';
import { Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import { bigInteger, byteString, fieldOf, type Item, type Structure, structure } from './ttlv.ts';

/** A key as it is kept. */
export type KeptKey =
  | { readonly type: KeyType; readonly key: Uint8Array }
  | { readonly type: KeyType; readonly publicKey: Uint8Array };

/** Key material that a block gave: bytes, or the structure of a transparent format. */
type Material = Uint8Array | Structure;

const algorithmNumbers: Readonly<Record<string, number>> = {
  AES: algorithms.aes,
  RSA: algorithms.rsa,
  EC: algorithms.ec,
  Ed25519: algorithms.ed25519,
  ChaCha20Poly1305: algorithms.chaCha20Poly1305,
  HMAC_SHA224: algorithms.hmacSha224,
  HMAC_SHA256: algorithms.hmacSha256,
  HMAC_SHA384: algorithms.hmacSha384,
  HMAC_SHA512: algorithms.hmacSha512,
};

/** Cryptographic Algorithm of a type; undefined if it has none. */
export function algorithmOf(type: KeyType): number | undefined {
  const name = keyTypeFacts[type].kmip?.algorithm;
  return name === undefined ? undefined : algorithmNumbers[name];
}

/** Whether that is the type's algorithm, by any of its names. */
function isAlgorithmOf(type: KeyType, algorithm: number): boolean {
  const own = algorithmOf(type);
  if (own === algorithms.ec) return ecAlgorithms.includes(algorithm);
  return own === algorithm;
}

const ecAlgorithms: readonly number[] = [algorithms.ec, algorithms.ecdsa, algorithms.ecdh];

const curves: Readonly<Record<number, KeyType>> = {
  [curveNumbers.p256]: 'ecdsa-p256',
  [curveNumbers.p384]: 'ecdsa-p384',
  [curveNumbers.p521]: 'ecdsa-p521',
  [curveNumbers.secp256k1]: 'ecdsa-secp256k1',
  [curveNumbers.curve25519]: 'ed25519',
};

/** Facts of a key that attributes may say. */
export interface KeyFacts {
  readonly algorithm: number | undefined;
  readonly bits: number | undefined;
  readonly curve: number | undefined;
}

/** The first fact that is not that of a key of the type, by its name; undefined if all are. */
export function wrongFact(type: KeyType, { algorithm, bits, curve }: KeyFacts): string | undefined {
  if (algorithm !== undefined && !isAlgorithmOf(type, algorithm)) return 'Cryptographic Algorithm';
  if (bits !== undefined && bits !== keyTypeFacts[type].kmip?.length) return 'Cryptographic Length';
  return curve !== undefined && curves[curve] !== type ? 'Cryptographic Domain Parameters' : undefined;
}

const pairAlgorithms: readonly number[] = [algorithms.rsa, ...ecAlgorithms, algorithms.ed25519];

/** Whether keys of the algorithm are pairs, as far as that is known here. */
export function isOfPairs(algorithm: number): boolean {
  return pairAlgorithms.includes(algorithm);
}

/** Whether keys of the algorithm are symmetric, as far as that is known here. */
export function isOfOne(algorithm: number): boolean {
  return !isOfPairs(algorithm) && Object.values<number>(algorithms).includes(algorithm);
}

/** The type of a key to make; undefined if there is none. */
export function typeToMake(
  algorithm: number,
  bits: number | undefined,
  curve: number | undefined,
): KeyType | undefined {
  if (curve !== undefined && ecAlgorithms.includes(algorithm)) return curves[curve];
  return keyTypes.find(
    (type) =>
      isAlgorithmOf(type, algorithm) &&
      (bits === undefined ? type !== 'aes128-gcm' : keyTypeFacts[type].kmip?.length === bits),
  );
}

/** The managed key that symmetric bytes are; of the type `secret` if nothing here works with such keys. */
export function symmetricKey(algorithm: number | undefined, bytes: Uint8Array): KeptKey {
  const type = keyTypes.find((each) => {
    const { isAsymmetric: isPair, length = 0, importLengths: [least, most] = [length, length] } = keyTypeFacts[each];
    return !isPair && isAlgorithmOf(each, algorithm ?? 0) && bytes.length >= least && bytes.length <= most;
  });
  return { type: type ?? 'secret', key: bytes };
}

/**
 * The managed key that a private or public key is; undefined if nothing here works with such keys, or if it would not
 * come out again as it came in.
 */
export function asymmetricKey(
  objectType: number,
  format: number,
  material: Material,
  work: KeyWork,
): KeptKey | undefined {
  const isPrivate = objectType === objectTypes.privateKey;
  const bytes = material instanceof Uint8Array ? material : pkcs1Of(material, isPrivate);
  if (!bytes || format === formats.opaque) return undefined;
  const kept = isPrivate ? privateKeyOf(bytes, work) : publicKeyOf(format, bytes);
  return kept && comesBack(kept, format, material) ? kept : undefined;
}

/** The result of `make`; undefined if it refuses the bytes. */
function tried<R>(make: () => R): R | undefined {
  try {
    return make();
  } catch (error) {
    if (error instanceof KmsError && error.code === 'invalid') return undefined;
    throw error;
  }
}

function privateKeyOf(bytes: Uint8Array, work: KeyWork): KeptKey | undefined {
  const bits = tried(() => rsaBits(bytes));
  const rsa = keyTypes.find((type) => isRsa(type) && keyTypeFacts[type].bits === bits);
  // Trying an RSA key takes long, so that is ordered; all others are read here.
  if (rsa && isRsa(rsa)) {
    const key = tried(() => work.run('import', { type: rsa, format: 'der', bytes }));
    return key && { type: rsa, key };
  }
  for (const type of keyTypes) {
    if (!isAsymmetric(type) || isRsa(type)) continue;
    const key = tried(() => importKey(type, 'der', bytes, noRandom));
    if (key) return { type, key };
  }
  return undefined;
}

/** Only trying an RSA key takes random bytes. */
function noRandom(): Uint8Array {
  throw new KmsError('internal', 'expected a key that is read without random bytes');
}

/** Bits of the modulus of a private key in PKCS #1 or PKCS #8; undefined for a key of another kind. */
function rsaBits(bytes: Uint8Array): number | undefined {
  const reader = onlySequence(bytes);
  reader.read(derTags.integer);
  if (reader.isNext(derTags.sequence)) {
    const isRsaKey = equalBytes(reader.sequence().read(derTags.oid), rsaOid);
    return isRsaKey ? rsaBits(reader.read(derTags.octetString)) : undefined;
  }
  if (!reader.isNext(derTags.integer)) return undefined;
  const modulus = reader.unsigned();
  return modulus.length * 8 - (Math.clz32(modulus[0] ?? 0) - 24);
}

function publicKeyOf(format: number, bytes: Uint8Array): KeptKey | undefined {
  const isPkcs1 = format === formats.pkcs1 || format === formats.transparentRsaPublic;
  for (const type of keyTypes) {
    if (!isAsymmetric(type) || (isPkcs1 && !isRsa(type))) continue;
    const publicKey = tried(() => importPublicKey(type, isPkcs1 ? 'raw' : 'der', bytes));
    if (publicKey) return { type, publicKey };
  }
  return undefined;
}

function comesBack(kept: KeptKey, format: number, material: Material): boolean {
  if (!(material instanceof Uint8Array)) return true;
  const out = formatted(kept, format);
  return out?.type === 'bytes' && equalBytes(out.value, material);
}

const privateNumbers = [
  tags.modulus,
  tags.publicExponent,
  tags.privateExponent,
  tags.p,
  tags.q,
  tags.primeExponentP,
  tags.primeExponentQ,
  tags.crtCoefficient,
] as const;
const publicNumbers = [tags.modulus, tags.publicExponent] as const;

/** The numbers of a transparent RSA key in PKCS #1; undefined if some are missing. */
function pkcs1Of(material: Structure, isPrivate: boolean): Uint8Array | undefined {
  const numbers = (isPrivate ? privateNumbers : publicNumbers).map((tag) => fieldOf(material, tag, 'big'));
  if (numbers.some((number) => number === undefined || (number[0] ?? 0) > 0x7f)) return undefined;
  const version = isPrivate ? [der(derTags.integer, Uint8Array.of(0))] : [];
  return der(derTags.sequence, ...version, ...numbers.map((number) => derUnsigned(number ?? new Uint8Array())));
}

function transparentRsa(pkcs1: Uint8Array, isPrivate: boolean): Item {
  const reader = onlySequence(pkcs1);
  if (isPrivate) reader.unsigned();
  const items = (isPrivate ? privateNumbers : publicNumbers).map((tag) => bigInteger(tag, reader.unsigned()));
  // The specification lists the private exponent before the public one.
  return structure(tags.keyMaterial, isPrivate ? items.toSorted((a, b) => rank(a) - rank(b)) : items);
}

function rank({ tag }: Item): number {
  const order: readonly number[] = [tags.modulus, tags.privateExponent, tags.publicExponent];
  const at = order.indexOf(tag);
  return at < 0 ? order.length : at;
}

/** The material of a key in that format; undefined if it has none of it. Owned by the caller. */
export function formatted(kept: KeptKey, format: number): Item | undefined {
  const { type } = kept;
  const bytes = 'key' in kept ? privateFormat(kept, format) : publicFormat(type, kept.publicKey, format);
  return bytes && (bytes instanceof Uint8Array ? byteString(tags.keyMaterial, bytes) : bytes);
}

function privateFormat(
  { type, key }: { type: KeyType; key: Uint8Array },
  format: number,
): Uint8Array | Item | undefined {
  if (!isAsymmetric(type)) {
    if (format === formats.raw || (type === 'secret' && format === formats.opaque)) return key.slice();
    return format === formats.transparentSymmetric
      ? structure(tags.keyMaterial, byteString(tags.key, key.slice()))
      : undefined;
  }
  if (format === formats.pkcs8) return exportPkcs8(type, key);
  if (isRsa(type)) {
    if (format === formats.pkcs1) return exportTraditional(type, key);
    return format === formats.transparentRsaPrivate ? transparentRsa(exportTraditional(type, key), true) : undefined;
  }
  // Cast: a curve of ECDSA.
  const isEc = type.startsWith('ecdsa-');
  return isEc && format === formats.ecPrivateKey
    ? exportTraditional(type as Parameters<typeof exportTraditional>[0], key)
    : undefined;
}

function publicFormat(type: KeyType, spki: Uint8Array, format: number): Uint8Array | Item | undefined {
  if (format === formats.x509) return spki.slice();
  if (!isRsa(type)) return undefined;
  if (format === formats.pkcs1) return rsaPublicNumbers(spki).slice();
  return format === formats.transparentRsaPublic ? transparentRsa(rsaPublicNumbers(spki), false) : undefined;
}

/** The format of a key that was made here. */
export function usualFormat(type: KeyType, objectType: number): number {
  if (!isAsymmetric(type)) return formats.raw;
  if (isRsa(type)) return formats.pkcs1;
  if (objectType === objectTypes.publicKey) return formats.x509;
  return type.startsWith('ecdsa-') ? formats.ecPrivateKey : formats.pkcs8;
}

/** Throws `Refusal`: the key has no such format. */
export function noFormat(): Refusal {
  return new Refusal(reasons.keyFormatTypeNotSupported, 'the object is not to be had in this format');
}
