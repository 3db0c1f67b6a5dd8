// Primitives that the platform may do instead of noble: those that cost a server something. noble does the rest with
// the same bytes as result, so that everything runs everywhere; nothing here knows of any platform.

/** Cost of Argon2id: memory in KiB, passes, lanes. */
export interface Argon2Cost {
  readonly m: number;
  readonly t: number;
  readonly p: number;
}

/** Incremental SHA-256. */
export interface RunningSha256 {
  update(bytes: Uint8Array): void;
  /** 32 bytes; no `update` may follow. */
  digest(): Uint8Array;
}

export type EcdsaHash = 'sha2-224' | 'sha2-256' | 'sha2-384' | 'sha2-512';

/**
 * All calls are synchronous, since a transaction may not wait. A signing key prepared from an array may be cached for
 * as long as the array lives: its bytes do not change except when wiped.
 */
export interface Primitives {
  sha256(bytes: Uint8Array): Uint8Array;
  runningSha256(): RunningSha256;
  ed25519Sign(seed: Uint8Array, message: Uint8Array): Uint8Array;
  ed25519PublicKey(seed: Uint8Array): Uint8Array;
  /**
   * The equation without the cofactor. The caller has checked the lengths, and that neither key nor R is of small
   * order.
   */
  ed25519Verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean;
  /** ECDSA in DER over the message's hash. Each signature differs, whereas noble's follow RFC 6979. */
  p256Sign(key: Uint8Array, hash: EcdsaHash, message: Uint8Array): Uint8Array;
  /** `publicKey` is an uncompressed point of the curve. Also false for a malformed signature. */
  p256Verify(publicKey: Uint8Array, hash: EcdsaHash, message: Uint8Array, signature: Uint8Array): boolean;
  /** RFC 8439 with a 12-byte nonce: ciphertext and tag. */
  sealChaCha(key: Uint8Array, nonce: Uint8Array, plaintext: Uint8Array, associated: Uint8Array): Uint8Array;
  /** `sealed` has at least 16 bytes. */
  openChaCha(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array, associated: Uint8Array): Uint8Array | undefined;
  /** AES-256-GCM with a 12-byte nonce: ciphertext and tag. */
  sealGcm(key: Uint8Array, nonce: Uint8Array, plaintext: Uint8Array, associated: Uint8Array): Uint8Array;
  /** `sealed` has at least 16 bytes. */
  openGcm(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array, associated: Uint8Array): Uint8Array | undefined;
  x25519PublicKey(privateKey: Uint8Array): Uint8Array;
  /** Undefined for a public key of low order, or one that is not 32 bytes long. */
  x25519Shared(privateKey: Uint8Array, publicKey: Uint8Array): Uint8Array | undefined;
  /** ML-KEM-768 (FIPS 203): the encapsulation key, 1184 bytes, of a 64-byte seed. */
  mlKemPublicKey(seed: Uint8Array): Uint8Array;
  /** Uses the system's randomness. `publicKey` passed ML-KEM's modulus check. */
  mlKemEncapsulate(publicKey: Uint8Array): { readonly cipherText: Uint8Array; readonly sharedSecret: Uint8Array };
  /** The shared secret, 32 bytes; a different one if the ciphertext, of 1088 bytes, was made for another key. */
  mlKemDecapsulate(seed: Uint8Array, ciphertext: Uint8Array): Uint8Array;
  argon2id(secret: Uint8Array, salt: Uint8Array, cost: Argon2Cost, length: number): Uint8Array;
}

let inPlace: Partial<Primitives> = {};

/** The primitives that the platform does in this thread. */
export function native(): Partial<Primitives> {
  return inPlace;
}

/** Installs primitives for this thread from now on; `{}` leaves all to noble. */
export function putIn(primitives: Partial<Primitives>): void {
  inPlace = primitives;
}
