// HPKE (RFC 9180), base mode, single shot: a KEM, HKDF-SHA256 and AES-256-GCM. The KEM is DHKEM(X25519, HKDF-SHA256)
// unless another is given (x-wing.ts). The key schedule takes the AEAD as a parameter, because the published vectors
// exist for others only.
import { gcm } from '@noble/ciphers/aes.js';
import { expand, extract } from '@noble/hashes/hkdf.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { KmsError } from '../errors.ts';
import { bulkGcm } from './aead.ts';
import { concatBytes, utf8 } from './bytes.ts';
import { publicFromPrivate, sharedSecret } from './x25519.ts';

/** A KEM of RFC 9180 §4. */
export interface HpkeKem {
  readonly id: number;
  /** Length of an encapsulated key in bytes. */
  readonly encLength: number;
  /** Throws `invalid` for a public key that is malformed or of low order. */
  encapsulate(
    publicKey: Uint8Array,
    random: (length: number) => Uint8Array,
  ): { readonly enc: Uint8Array; readonly shared: Uint8Array };
  /** Undefined if no sender could have made `enc`. */
  decapsulate(privateKey: Uint8Array, enc: Uint8Array): Uint8Array | undefined;
}

/** The parameters of an AEAD (RFC 9180 §7.3) that the key schedule needs. */
export interface HpkeAead {
  readonly id: number;
  readonly keyLength: number;
}

const aes256Gcm: HpkeAead = { id: 0x0002, keyLength: 32 };

const none = new Uint8Array(0);
const version = utf8('HPKE-v1');
/** "KEM" and the id of DHKEM(X25519, HKDF-SHA256), RFC 9180 §4.1. */
const kemSuite = concatBytes(utf8('KEM'), Uint8Array.of(0x00, 0x20));

/** DHKEM(X25519, HKDF-SHA256); its randomness is an ephemeral private key of 32 bytes. */
const x25519Kem: HpkeKem = {
  id: 0x0020,
  encLength: 32,
  encapsulate(publicKey, random) {
    const privateKey = random(32);
    const enc = publicFromPrivate(privateKey);
    const dh = sharedSecret(privateKey, publicKey);
    if (!dh) throw new KmsError('invalid', 'expected an X25519 public key, got a low-order point');
    return { enc, shared: kemSecret(dh, enc, publicKey) };
  },
  decapsulate(privateKey, enc) {
    const dh = enc.length === 32 ? sharedSecret(privateKey, enc) : undefined;
    return dh && kemSecret(dh, enc, publicFromPrivate(privateKey));
  },
};

/** Values that both sides derive (RFC 9180 §5.1). `key` is secret. */
interface HpkeContext {
  readonly sharedSecret: Uint8Array;
  readonly key: Uint8Array;
  readonly baseNonce: Uint8Array;
  readonly exporterSecret: Uint8Array;
}

/** Sender's side; `random` supplies the KEM's randomness, such as an ephemeral private key. */
export function setupSender(
  publicKey: Uint8Array,
  info: Uint8Array,
  random: (length: number) => Uint8Array,
  aead: HpkeAead = aes256Gcm,
  kem: HpkeKem = x25519Kem,
): HpkeContext & { readonly enc: Uint8Array } {
  const { enc, shared } = kem.encapsulate(publicKey, random);
  return { enc, ...keySchedule(kem.id, shared, info, aead) };
}

/** Recipient's side: decapsulates `enc`; undefined if no sender could have made it. */
export function setupRecipient(
  privateKey: Uint8Array,
  enc: Uint8Array,
  info: Uint8Array,
  aead: HpkeAead = aes256Gcm,
  kem: HpkeKem = x25519Kem,
): HpkeContext | undefined {
  const shared = kem.decapsulate(privateKey, enc);
  return shared && keySchedule(kem.id, shared, info, aead);
}

interface HpkeSealed {
  /** The encapsulated key: 32 bytes for X25519. */
  readonly enc: Uint8Array;
  /** Ciphertext as long as the plaintext, then the 16-byte tag. */
  readonly ciphertext: Uint8Array;
  /** 12 bytes; both sides derive it. */
  readonly baseNonce: Uint8Array;
}

/** Seals one message to a public key. Throws `invalid` for a key that is malformed or of low order. */
export function hpkeSeal(
  publicKey: Uint8Array,
  info: Uint8Array,
  aad: Uint8Array,
  plaintext: Uint8Array,
  random: (length: number) => Uint8Array,
  kem: HpkeKem = x25519Kem,
): HpkeSealed {
  const { enc, key, baseNonce } = setupSender(publicKey, info, random, aes256Gcm, kem);
  return { enc, ciphertext: gcm(key, baseNonce, aad).encrypt(plaintext), baseNonce };
}

/** Opens a message of `hpkeSeal`; undefined if any input differs from the sender's. */
export function hpkeOpen(
  privateKey: Uint8Array,
  enc: Uint8Array,
  info: Uint8Array,
  aad: Uint8Array,
  ciphertext: Uint8Array,
  kem: HpkeKem = x25519Kem,
): Uint8Array | undefined {
  const context = setupRecipient(privateKey, enc, info, aes256Gcm, kem);
  try {
    return context && gcm(context.key, context.baseNonce, aad).decrypt(ciphertext);
  } catch {
    return undefined;
  }
}

/**
 * `hpkeOpen` by Web Crypto, for clients, which have it anyway: noble's AES would be a tenth of their library. Throws
 * `unavailable` if there is no Web Crypto.
 */
export async function hpkeOpenSoon(
  privateKey: Uint8Array,
  enc: Uint8Array,
  info: Uint8Array,
  aad: Uint8Array,
  ciphertext: Uint8Array,
  kem: HpkeKem = x25519Kem,
): Promise<Uint8Array | undefined> {
  const context = setupRecipient(privateKey, enc, info, aes256Gcm, kem);
  if (!context) return undefined;
  const { open } = await bulkGcm(context.key);
  return open(context.baseNonce, ciphertext, aad).then(
    (opened) => new Uint8Array(opened),
    () => undefined,
  );
}

/** RFC 9180 §4.1, ExtractAndExpand. */
function kemSecret(dh: Uint8Array, enc: Uint8Array, publicKey: Uint8Array): Uint8Array {
  const prk = labeledExtract(kemSuite, none, 'eae_prk', dh);
  return labeledExpand(kemSuite, prk, 'shared_secret', concatBytes(enc, publicKey), 32);
}

/** RFC 9180 §5.1, KeySchedule in mode_base: no pre-shared key. */
function keySchedule(kemId: number, shared: Uint8Array, info: Uint8Array, aead: HpkeAead): HpkeContext {
  const ids = Uint8Array.of(kemId >>> 8, kemId, 0x00, 0x01, aead.id >>> 8, aead.id);
  const suite = concatBytes(utf8('HPKE'), ids);
  const pskIdHash = labeledExtract(suite, none, 'psk_id_hash', none);
  const infoHash = labeledExtract(suite, none, 'info_hash', info);
  const context = concatBytes(Uint8Array.of(0x00), pskIdHash, infoHash);
  const secret = labeledExtract(suite, shared, 'secret', none);
  return {
    sharedSecret: shared,
    key: labeledExpand(suite, secret, 'key', context, aead.keyLength),
    baseNonce: labeledExpand(suite, secret, 'base_nonce', context, 12),
    exporterSecret: labeledExpand(suite, secret, 'exp', context, 32),
  };
}

function labeledExtract(suite: Uint8Array, salt: Uint8Array, label: string, ikm: Uint8Array): Uint8Array {
  return extract(sha256, concatBytes(version, suite, utf8(label), ikm), salt);
}

function labeledExpand(
  suite: Uint8Array,
  prk: Uint8Array,
  label: string,
  info: Uint8Array,
  length: number,
): Uint8Array {
  const prefix = Uint8Array.of(length >>> 8, length);
  return expand(sha256, prk, concatBytes(prefix, version, suite, utf8(label), info), length);
}
