// Primitives that the platform may do in place of noble: those that cost a server something. noble does each that is
// not put in, so that everything runs everywhere, and gives the same bytes; nothing here knows of any platform.

/** What Argon2id costs: memory in KiB, passes, lanes. */
export interface Argon2Cost {
  readonly m: number;
  readonly t: number;
  readonly p: number;
}

/** SHA-256 of bytes that come in pieces. */
export interface RunningSha256 {
  update(bytes: Uint8Array): void;
  /** 32 bytes; nothing may be added after it. */
  digest(): Uint8Array;
}

export type EcdsaHash = 'sha2-224' | 'sha2-256' | 'sha2-384' | 'sha2-512';

/**
 * Everything is done at once, before it returns: a transaction waits for nothing. What is made of a key for signatures
 * may be kept for as long as the array is: its bytes don't change but for the wipe.
 */
export interface Primitives {
  sha256(bytes: Uint8Array): Uint8Array;
  runningSha256(): RunningSha256;
  ed25519Sign(seed: Uint8Array, message: Uint8Array): Uint8Array;
  ed25519PublicKey(seed: Uint8Array): Uint8Array;
  /** By the equation without the cofactor. Lengths are right, and neither key nor R is of small order. */
  ed25519Verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean;
  /** ECDSA in DER over the message's hash: another signature each time, where noble's follow RFC 6979. */
  p256Sign(key: Uint8Array, hash: EcdsaHash, message: Uint8Array): Uint8Array;
  /** `publicKey` is an uncompressed point of the curve. False, too, for what is no signature. */
  p256Verify(publicKey: Uint8Array, hash: EcdsaHash, message: Uint8Array, signature: Uint8Array): boolean;
  /** RFC 8439, a nonce of 12 bytes: ciphertext and tag. */
  sealChaCha(key: Uint8Array, nonce: Uint8Array, plaintext: Uint8Array, associated: Uint8Array): Uint8Array;
  /** `sealed` has 16 bytes or more. */
  openChaCha(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array, associated: Uint8Array): Uint8Array | undefined;
  /** AES-256-GCM, a nonce of 12 bytes: ciphertext and tag. */
  sealGcm(key: Uint8Array, nonce: Uint8Array, plaintext: Uint8Array, associated: Uint8Array): Uint8Array;
  /** `sealed` has 16 bytes or more. */
  openGcm(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array, associated: Uint8Array): Uint8Array | undefined;
  x25519PublicKey(privateKey: Uint8Array): Uint8Array;
  /** Undefined for a public key of low order, or one that is not of 32 bytes. */
  x25519Shared(privateKey: Uint8Array, publicKey: Uint8Array): Uint8Array | undefined;
  /** ML-KEM-768 (FIPS 203): the encapsulation key, 1184 bytes, of a seed of 64. */
  mlKemPublicKey(seed: Uint8Array): Uint8Array;
  /** By the system's randomness. `publicKey` passed ML-KEM's check of the modulus. */
  mlKemEncapsulate(publicKey: Uint8Array): { readonly cipherText: Uint8Array; readonly sharedSecret: Uint8Array };
  /** The shared secret, 32 bytes; another one where the ciphertext, of 1088 bytes, was made for another key. */
  mlKemDecapsulate(seed: Uint8Array, ciphertext: Uint8Array): Uint8Array;
  argon2id(secret: Uint8Array, salt: Uint8Array, cost: Argon2Cost, length: number): Uint8Array;
}

let inPlace: Partial<Primitives> = {};

/** What the platform does here. */
export function native(): Partial<Primitives> {
  return inPlace;
}

/** From here on, in this thread; `{}` leaves all to noble. */
export function putIn(primitives: Partial<Primitives>): void {
  inPlace = primitives;
}
