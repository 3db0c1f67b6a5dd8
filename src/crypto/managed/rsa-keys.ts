// RSA keys (RFC 8017): private ones as PKCS #8 DER, public ones as SPKI DER, both in the one form that this file
// writes. Keys from outside are checked here; the arithmetic with them is the platform's.
import { invert } from '@noble/curves/abstract/modular.js';
import { bytesToNumberBE, numberToVarBytesBE } from '@noble/curves/utils.js';
import { KmsError } from '../../errors.ts';
import { equalBytes } from '../bytes.ts';
import { type DerReader, der, derBits, derUnsigned, onlySequence, tags } from '../der.ts';
import { native, type RsaPrimitives } from '../primitives.ts';

export type RsaType = 'rsa-2048' | 'rsa-3072' | 'rsa-4096';

export const modulusBits: Readonly<Record<RsaType, number>> = { 'rsa-2048': 2048, 'rsa-3072': 3072, 'rsa-4096': 4096 };

export function modulusLength(type: RsaType): number {
  return modulusBits[type] / 8;
}

/** The platform's RSA. Throws `unavailable` where there is none. */
export function platformRsa(): RsaPrimitives {
  const { rsa } = native();
  if (rsa) return rsa;
  throw new KmsError('unavailable', 'RSA keys cannot be used here: this platform has no RSA', {
    hint: 'run the appliance with the cryptography of node:crypto, or use a key of another type',
  });
}

/** A new key, PKCS #8 DER, made off this thread. */
export async function generateRsaKey(type: RsaType): Promise<Uint8Array> {
  const made = await platformRsa().generate(modulusBits[type]);
  try {
    return readRsaPkcs8(type, made);
  } finally {
    made.fill(0);
  }
}

interface PrivateNumbers {
  readonly n: bigint;
  readonly e: bigint;
  readonly d: bigint;
  readonly p: bigint;
  readonly q: bigint;
}

/** Contents of rsaEncryption (RFC 8017 appendix A.1). */
export const rsaOid = Uint8Array.of(0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01);
const rsaAlgorithm = der(tags.sequence, der(tags.oid, rsaOid), der(tags.null));
const zero = der(tags.integer, Uint8Array.of(0));

/** Exponents that every verifier takes: some hold them in 31 bits, and small ones invite attacks on bad padding. */
const leastExponent = 65537n;
const exponentLimit = 1n << 31n;

function unfit(problem: string): KmsError {
  return new KmsError('invalid', `the RSA key cannot be used: ${problem}`);
}

function bitsOf(number: bigint): number {
  return number.toString(2).length;
}

function checkPublic(type: RsaType, n: bigint, e: bigint): void {
  const bits = modulusBits[type];
  if (bitsOf(n) !== bits) throw unfit(`expected ${bits} bits for ${type}, got ${bitsOf(n)}`);
  if (n % 2n === 0n) throw unfit('its modulus is even');
  if (e < leastExponent || e >= exponentLimit || e % 2n === 0n) {
    throw unfit('expected a public exponent from 65537 to 2^31 that is odd');
  }
}

/** Reads an RSAPublicKey (RFC 8017 appendix A.1.1). Throws `invalid`. */
export function readRsaPublicKey(type: RsaType, pkcs1: Uint8Array): Uint8Array {
  const reader = onlySequence(pkcs1);
  const [n, e] = [numberOf(reader), numberOf(reader)];
  reader.end();
  checkPublic(type, n, e);
  return der(tags.sequence, rsaAlgorithm, derBits(publicNumbers(n, e)));
}

/** Reads SPKI DER. Throws `invalid`. */
export function readRsaSpki(type: RsaType, spki: Uint8Array): Uint8Array {
  const outer = onlySequence(spki);
  needRsa(type, outer.sequence());
  const key = outer.bits();
  outer.end();
  return readRsaPublicKey(type, key);
}

/** The RSAPublicKey in SPKI DER of the form above. */
export function rsaPublicNumbers(spki: Uint8Array): Uint8Array {
  const outer = onlySequence(spki);
  outer.sequence();
  return outer.bits();
}

/** The RSAPrivateKey in PKCS #8 DER of the form above. */
export function rsaPrivateNumbers(pkcs8: Uint8Array): Uint8Array {
  const outer = onlySequence(pkcs8);
  outer.read(tags.integer);
  outer.sequence();
  return outer.read(tags.octetString);
}

/** The public key of a private key of the form above, SPKI DER. */
export function rsaPublicKey(pkcs8: Uint8Array): Uint8Array {
  const { n, e } = privateNumbersOf(onlySequence(rsaPrivateNumbers(pkcs8)));
  return der(tags.sequence, rsaAlgorithm, derBits(publicNumbers(n, e)));
}

/** Reads PKCS #8 DER, without trying the key. Throws `invalid`. */
function readRsaPkcs8(type: RsaType, pkcs8: Uint8Array): Uint8Array {
  const outer = onlySequence(pkcs8);
  outer.read(tags.integer);
  needRsa(type, outer.sequence());
  return readRsaPrivateKey(type, outer.read(tags.octetString));
}

/**
 * Reads an RSAPrivateKey (RFC 8017 appendix A.1.2) of two primes, and returns PKCS #8 DER. Throws `invalid` unless all
 * its numbers fit together; `tryRsaKey` finds factors that are no primes.
 */
export function readRsaPrivateKey(type: RsaType, pkcs1: Uint8Array): Uint8Array {
  const reader = onlySequence(pkcs1);
  const numbers = privateNumbersOf(reader);
  const [dp, dq, inverse] = [numberOf(reader), numberOf(reader), numberOf(reader)];
  reader.end();
  const { n, e, d, p, q } = numbers;
  checkPublic(type, n, e);
  const half = modulusBits[type] / 2;
  if (p * q !== n) throw unfit('its factors are not those of the modulus');
  if (bitsOf(p) !== half || bitsOf(q) !== half) throw unfit(`expected two factors of ${half} bits`);
  // FIPS 186-5 appendix A.1.3: factors close to each other are found from the modulus.
  const distance = p > q ? p - q : q - p;
  if (bitsOf(distance) <= half - 100) throw unfit('its factors are too close to each other');
  const [p1, q1] = [p - 1n, q - 1n];
  if (d >= n || (e * d) % p1 !== 1n || (e * d) % q1 !== 1n) throw unfit('its exponents do not fit together');
  if (bitsOf(d) <= half) throw unfit('its private exponent is too small');
  if (dp !== d % p1 || dq !== d % q1 || inverse !== inverseOf(q, p)) {
    throw unfit('its numbers for the Chinese remainder theorem do not fit');
  }
  return rsaPkcs8(numbers);
}

/** PKCS #8 DER of numbers that fit together. */
function rsaPkcs8({ n, e, d, p, q }: PrivateNumbers): Uint8Array {
  const numbers = [n, e, d, p, q, d % (p - 1n), d % (q - 1n), inverseOf(q, p)].map(derNumber);
  const key = der(tags.sequence, zero, ...numbers);
  for (const number of numbers) number.fill(0);
  try {
    return der(tags.sequence, zero, rsaAlgorithm, der(tags.octetString, key));
  } finally {
    key.fill(0);
  }
}

/** PKCS #8 DER of the key with these factors and the exponent 65537, unchecked: for known answers. */
export function rsaKeyOfFactors(p: bigint, q: bigint): Uint8Array {
  const e = leastExponent;
  const d = invert(e, (p - 1n) * (q - 1n));
  return rsaPkcs8({ n: p * q, e, d, p, q });
}

/** Blocks that a new key must take there and back. */
const trials = 3;

/**
 * Throws `invalid` unless the key undoes what it did to random blocks. With exponents that fit, that is Fermat's test
 * of both factors to random bases, which only Carmichael numbers pass without being primes. A test for primes proper
 * takes a tenth of a second and more.
 */
export function tryRsaKey(type: RsaType, pkcs8: Uint8Array, random: (length: number) => Uint8Array): void {
  const { privateOperation, publicOperation } = platformRsa();
  const publicKey = rsaPublicKey(pkcs8);
  for (let trial = 0; trial < trials; trial++) {
    const block = random(modulusLength(type));
    // Below the modulus, whose first bit is set.
    block[0] = (block[0] ?? 0) & 0x7f;
    if (!isUndone(block)) throw unfit('its factors are not primes');
  }

  function isUndone(block: Uint8Array): boolean {
    try {
      return equalBytes(publicOperation(publicKey, privateOperation(pkcs8, block)) ?? new Uint8Array(), block);
    } catch {
      return false;
    }
  }
}

function needRsa(type: RsaType, algorithm: DerReader): void {
  if (!equalBytes(algorithm.read(tags.oid), rsaOid)) {
    throw new KmsError('invalid', `expected a key of the type ${type}, got one of another kind`);
  }
}

function privateNumbersOf(reader: DerReader): PrivateNumbers {
  if (numberOf(reader) !== 0n) throw unfit('it has more than two factors');
  const [n, e, d] = [numberOf(reader), numberOf(reader), numberOf(reader)];
  return { n, e, d, p: numberOf(reader), q: numberOf(reader) };
}

function publicNumbers(n: bigint, e: bigint): Uint8Array {
  return der(tags.sequence, derNumber(n), derNumber(e));
}

function numberOf(reader: DerReader): bigint {
  const bytes = reader.unsigned();
  return bytes.length === 0 ? 0n : bytesToNumberBE(bytes);
}

function derNumber(number: bigint): Uint8Array {
  return derUnsigned(numberToVarBytesBE(number));
}

function inverseOf(q: bigint, p: bigint): bigint {
  try {
    return invert(q, p);
  } catch {
    throw unfit('its factors have a common divisor');
  }
}
