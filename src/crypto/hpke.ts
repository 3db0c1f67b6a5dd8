// HPKE (RFC 9180), base mode, single shot: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-256-GCM. The key schedule
// takes the AEAD as a parameter because the published vectors for X25519 exist for others only.
import { gcm } from '@noble/ciphers/aes.js';
import { expand, extract } from '@noble/hashes/hkdf.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { KmsError } from '../errors.ts';
import { concatBytes, utf8 } from './bytes.ts';
import { type KeyPair, publicFromPrivate, sharedSecret } from './x25519.ts';

/** An AEAD of RFC 9180 §7.3. */
export interface HpkeAead {
  readonly id: number;
  readonly keyLength: number;
  readonly seal: (key: Uint8Array, nonce: Uint8Array, aad: Uint8Array, plaintext: Uint8Array) => Uint8Array;
  /** Throws when it does not authenticate. */
  readonly open: (key: Uint8Array, nonce: Uint8Array, aad: Uint8Array, ciphertext: Uint8Array) => Uint8Array;
}

const hpkeAes256Gcm: HpkeAead = {
  id: 0x0002,
  keyLength: 32,
  seal: (key, nonce, aad, plaintext) => gcm(key, nonce, aad).encrypt(plaintext),
  open: (key, nonce, aad, ciphertext) => gcm(key, nonce, aad).decrypt(ciphertext),
};

const none = new Uint8Array(0);
const version = utf8('HPKE-v1');
/** "KEM" and the id of DHKEM(X25519, HKDF-SHA256), RFC 9180 §4.1. */
const kemSuite = concatBytes(utf8('KEM'), Uint8Array.of(0x00, 0x20));

/** What both sides derive (RFC 9180 §5.1). `key` is secret. */
interface HpkeContext {
  readonly sharedSecret: Uint8Array;
  readonly key: Uint8Array;
  readonly baseNonce: Uint8Array;
  readonly exporterSecret: Uint8Array;
}

/** Encapsulates to `publicKey` with the ephemeral pair given. Throws `invalid` for a low-order public key. */
export function setupSender(
  publicKey: Uint8Array,
  info: Uint8Array,
  ephemeral: KeyPair,
  aead: HpkeAead = hpkeAes256Gcm,
): HpkeContext & { readonly enc: Uint8Array } {
  const enc = ephemeral.publicKey;
  const dh = sharedSecret(ephemeral.privateKey, publicKey);
  if (!dh) throw new KmsError('invalid', 'expected an X25519 public key, got a low-order point');
  return { enc, ...keySchedule(kemSecret(dh, enc, publicKey), info, aead) };
}

/** Decapsulates `enc`; undefined where it is no usable public key. */
export function setupRecipient(
  privateKey: Uint8Array,
  enc: Uint8Array,
  info: Uint8Array,
  aead: HpkeAead = hpkeAes256Gcm,
): HpkeContext | undefined {
  if (enc.length !== 32) return undefined;
  const dh = sharedSecret(privateKey, enc);
  return dh && keySchedule(kemSecret(dh, enc, publicFromPrivate(privateKey)), info, aead);
}

interface HpkeSealed {
  /** The encapsulated key, 32 bytes. */
  readonly enc: Uint8Array;
  /** As long as the plaintext, and the 16-byte tag. */
  readonly ciphertext: Uint8Array;
  /** 12 bytes; both sides derive it. */
  readonly baseNonce: Uint8Array;
}

/** Seals one message to a public key. Throws `invalid` for a low-order public key. */
export function hpkeSeal(
  publicKey: Uint8Array,
  info: Uint8Array,
  aad: Uint8Array,
  plaintext: Uint8Array,
  random: (length: number) => Uint8Array,
): HpkeSealed {
  const privateKey = random(32);
  const { enc, key, baseNonce } = setupSender(publicKey, info, {
    privateKey,
    publicKey: publicFromPrivate(privateKey),
  });
  return { enc, ciphertext: hpkeAes256Gcm.seal(key, baseNonce, aad, plaintext), baseNonce };
}

/** Opens what `hpkeSeal` made; undefined when anything about it is another. */
export function hpkeOpen(
  privateKey: Uint8Array,
  enc: Uint8Array,
  info: Uint8Array,
  aad: Uint8Array,
  ciphertext: Uint8Array,
): Uint8Array | undefined {
  const context = setupRecipient(privateKey, enc, info);
  if (!context || ciphertext.length < 16) return undefined;
  try {
    return hpkeAes256Gcm.open(context.key, context.baseNonce, aad, ciphertext);
  } catch {
    return undefined;
  }
}

/** RFC 9180 §4.1, ExtractAndExpand. */
function kemSecret(dh: Uint8Array, enc: Uint8Array, publicKey: Uint8Array): Uint8Array {
  const prk = labeledExtract(kemSuite, none, 'eae_prk', dh);
  return labeledExpand(kemSuite, prk, 'shared_secret', concatBytes(enc, publicKey), 32);
}

/** RFC 9180 §5.1, KeySchedule in mode_base: no pre-shared key. */
function keySchedule(shared: Uint8Array, info: Uint8Array, aead: HpkeAead): HpkeContext {
  const suite = concatBytes(utf8('HPKE'), Uint8Array.of(0x00, 0x20, 0x00, 0x01, aead.id >>> 8, aead.id));
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
