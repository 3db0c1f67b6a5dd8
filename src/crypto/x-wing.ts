// X-Wing (draft-connolly-cfrg-xwing-kem), also called MLKEM768-X25519: a KEM that is secure as long as ML-KEM-768 (FIPS
// 203) or X25519 is, so that data sealed today does not fall to a later quantum computer. A private key is a 32-byte
// seed. In HPKE it is the KEM 0x647a.
import { sha3_256, shake256 } from '@noble/hashes/sha3.js';
import { ml_kem768 } from '@noble/post-quantum/ml-kem.js';
import { KmsError } from '../errors.ts';
import { concatBytes, utf8 } from './bytes.ts';
import type { HpkeKem } from './hpke.ts';
import { native } from './primitives.ts';
import { isSystemRandom } from './random.ts';
import { isUsablePublicKey, publicFromPrivate, sharedSecret } from './x25519.ts';

/** ML-KEM part of a public key and of an encapsulated key; 32 bytes of X25519 follow each. */
const mlKemKeyLength = 1184;
const mlKemCiphertextLength = 1088;
const seedLength = 32;
export const xWingPublicKeyLength = mlKemKeyLength + 32;
export const xWingEncLength = mlKemCiphertextLength + 32;

/** ML-KEM's modulus, above the 768 twelve-bit numbers at the start of a public key. */
const q = 3329;
const numbersLength = (768 * 12) / 8;

const label = utf8('\\.//^\\');

/** The keys that a seed expands to. All of it is secret. */
interface Expanded {
  readonly mlKemSeed: Uint8Array;
  readonly x25519Key: Uint8Array;
  wipe(): void;
}

function expandSeed(seed: Uint8Array): Expanded {
  if (seed.length !== seedLength) {
    throw new KmsError('internal', `expected a seed of ${seedLength} bytes, got ${seed.length}`);
  }
  const bytes = shake256(seed, { dkLen: 96 });
  return { mlKemSeed: bytes.subarray(0, 64), x25519Key: bytes.subarray(64), wipe: () => void bytes.fill(0) };
}

/** The 1216-byte public key of a 32-byte seed. */
export function xWingPublicKey(seed: Uint8Array): Uint8Array {
  const { mlKemSeed, x25519Key, wipe } = expandSeed(seed);
  try {
    const mlKemKey = native().mlKemPublicKey?.(mlKemSeed) ?? ml_kem768.keygen(mlKemSeed).publicKey;
    return concatBytes(mlKemKey, publicFromPrivate(x25519Key));
  } finally {
    wipe();
  }
}

/** A new pair from 32 bytes of `random`, which serve as seed and private key. */
export function generateXWing(random: (length: number) => Uint8Array) {
  const privateKey = random(seedLength);
  return { privateKey, publicKey: xWingPublicKey(privateKey) };
}

/** Whether this public key can be sealed to: its length, ML-KEM's modulus check, and X25519's point check. */
export function isUsableXWingKey(publicKey: Uint8Array): boolean {
  if (publicKey.length !== xWingPublicKeyLength) return false;
  // FIPS 203 §7.2. Three bytes hold two numbers, lower bits first.
  for (let at = 0; at < numbersLength; at += 3) {
    const [a = 0, b = 0, c = 0] = publicKey.subarray(at, at + 3);
    if ((a | ((b & 0x0f) << 8)) >= q || ((b >>> 4) | (c << 4)) >= q) return false;
  }
  return isUsablePublicKey(publicKey.subarray(mlKemKeyLength));
}

/** Encapsulates with 64 bytes of `random`. Throws `invalid` for a malformed public key. */
export function encapsulateXWing(
  publicKey: Uint8Array,
  random: (length: number) => Uint8Array,
): { readonly enc: Uint8Array; readonly shared: Uint8Array } {
  if (!isUsableXWingKey(publicKey)) {
    throw new KmsError('invalid', 'expected an X-Wing public key (MLKEM768-X25519), got other bytes');
  }
  const bytes = random(64);
  const x25519Key = publicKey.subarray(mlKemKeyLength);
  // The platform's version accepts no randomness but its own.
  const encapsulate = isSystemRandom(random) ? native().mlKemEncapsulate : undefined;
  const mlKemKey = publicKey.subarray(0, mlKemKeyLength);
  const mlKem = encapsulate?.(mlKemKey) ?? ml_kem768.encapsulate(mlKemKey, bytes.subarray(0, 32));
  const ephemeral = bytes.subarray(32);
  const x25519Enc = publicFromPrivate(ephemeral);
  const dh = sharedSecret(ephemeral, x25519Key);
  if (!dh) throw new KmsError('internal', 'a public key that was checked is of low order');
  return {
    enc: concatBytes(mlKem.cipherText, x25519Enc),
    shared: combine(mlKem.sharedSecret, dh, x25519Enc, x25519Key),
  };
}

/**
 * The shared secret; a different one if `enc` was made for another key. Undefined if no sender could have made `enc`: a
 * wrong length, or a point of low order, which the draft accepts.
 */
export function decapsulateXWing(seed: Uint8Array, enc: Uint8Array): Uint8Array | undefined {
  if (enc.length !== xWingEncLength) return undefined;
  const { mlKemSeed, x25519Key, wipe } = expandSeed(seed);
  try {
    const x25519Enc = enc.subarray(mlKemCiphertextLength);
    const dh = sharedSecret(x25519Key, x25519Enc);
    if (!dh) return undefined;
    const mlKemSecret = decapsulateMlKem(mlKemSeed, enc.subarray(0, mlKemCiphertextLength));
    return combine(mlKemSecret, dh, x25519Enc, publicFromPrivate(x25519Key));
  } finally {
    wipe();
  }
}

function decapsulateMlKem(seed: Uint8Array, ciphertext: Uint8Array): Uint8Array {
  const { mlKemDecapsulate } = native();
  if (mlKemDecapsulate) return mlKemDecapsulate(seed, ciphertext);
  const { secretKey } = ml_kem768.keygen(seed);
  try {
    return ml_kem768.decapsulate(ciphertext, secretKey);
  } finally {
    secretKey.fill(0);
  }
}

function combine(mlKemSecret: Uint8Array, dh: Uint8Array, x25519Enc: Uint8Array, x25519Key: Uint8Array): Uint8Array {
  return sha3_256(concatBytes(mlKemSecret, dh, x25519Enc, x25519Key, label));
}

export const xWingKem: HpkeKem = {
  id: 0x647a,
  encLength: xWingEncLength,
  encapsulate: encapsulateXWing,
  decapsulate: decapsulateXWing,
};
