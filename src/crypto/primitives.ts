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

export type HashName = 'sha2-224' | 'sha2-256' | 'sha2-384' | 'sha2-512';
/** Hashes of messages alone. */
export type Sha3Name = 'sha3-224' | 'sha3-256' | 'sha3-384' | 'sha3-512';

/** Types of keys for ECDSA, by their curve. */
export type EcType = 'ecdsa-p256' | 'ecdsa-p384' | 'ecdsa-p521' | 'ecdsa-secp256k1';

/** Hashes that OAEP is used with; SHA-1 is safe there, and the only one that some clients have. */
export type OaepHash = 'sha1' | 'sha2-256' | 'sha2-384' | 'sha2-512';

/**
 * RSA, which noble has not: a platform without it has no RSA keys. Private keys are PKCS #8 DER, public keys SPKI DER,
 * both checked already; messages and ciphertexts are as long as the modulus.
 */
export interface RsaPrimitives {
  /** A new key, made off this thread: 2048 bits take some 100 ms, 4096 bits a second and more. */
  generate(bits: number): Promise<Uint8Array>;
  /** RSASP1 (RFC 8017 §5.2.1). `block` is a number below the modulus. */
  privateOperation(privateKey: Uint8Array, block: Uint8Array): Uint8Array;
  /** RSAVP1 (RFC 8017 §5.2.2); undefined for a number that is not below the modulus. */
  publicOperation(publicKey: Uint8Array, block: Uint8Array): Uint8Array | undefined;
  /** RSAES-OAEP (RFC 8017 §7.1), MGF1 with the same hash. `message` is not too long. */
  oaepEncrypt(publicKey: Uint8Array, hash: OaepHash, label: Uint8Array, message: Uint8Array): Uint8Array;
  /** Undefined for any ciphertext that does not open; the time does not tell why. */
  oaepDecrypt(privateKey: Uint8Array, hash: OaepHash, label: Uint8Array, sealed: Uint8Array): Uint8Array | undefined;
}

/** ML-DSA's parameter sets (FIPS 204 §4). */
export type MlDsaSet = 44 | 65 | 87;

/**
 * All calls are synchronous, since a transaction may not wait. A signing key prepared from an array may be cached for
 * as long as the array lives: its bytes do not change except when wiped.
 */
export interface Primitives {
  sha256(bytes: Uint8Array): Uint8Array;
  runningSha256(): RunningSha256;
  hash(hash: HashName | Sha3Name, message: Uint8Array): Uint8Array;
  hmac(hash: HashName, key: Uint8Array, message: Uint8Array): Uint8Array;
  ed25519Sign(seed: Uint8Array, message: Uint8Array): Uint8Array;
  ed25519PublicKey(seed: Uint8Array): Uint8Array;
  /**
   * The equation without the cofactor. The caller has checked the lengths, and that neither key nor R is of small
   * order.
   */
  ed25519Verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean;
  /** ECDSA in DER over the message's hash. Each signature differs, whereas noble's follow RFC 6979. */
  ecdsaSign(type: EcType, key: Uint8Array, hash: HashName, message: Uint8Array): Uint8Array;
  /** `publicKey` is SPKI DER of a point of the curve. Also false for a malformed signature. */
  ecdsaVerify(publicKey: Uint8Array, hash: HashName, message: Uint8Array, signature: Uint8Array): boolean;
  /** Pure ML-DSA without a context. Each signature differs. `seed` has 32 bytes. */
  mlDsaSign(set: MlDsaSet, seed: Uint8Array, message: Uint8Array): Uint8Array;
  /** `publicKey` is SPKI DER. Also false for a malformed signature. */
  mlDsaVerify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean;
  readonly rsa: RsaPrimitives;
  /** RFC 8439 with a 12-byte nonce: ciphertext and tag. */
  sealChaCha(key: Uint8Array, nonce: Uint8Array, plaintext: Uint8Array, associated: Uint8Array): Uint8Array;
  /** `sealed` has at least 16 bytes. */
  openChaCha(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array, associated: Uint8Array): Uint8Array | undefined;
  /** AES-GCM with a key of 16 or 32 bytes and a 12-byte nonce: ciphertext and tag. */
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
