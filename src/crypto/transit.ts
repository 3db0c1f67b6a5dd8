// Keys that the appliance holds for its clients, and the operations with them. Ciphertexts and signatures are
// `vault:vN:` and base64, of nonce, ciphertext and tag or of the signature. Each message is bound to ring, version and
// the caller's associated data, and each sealed key to ring, version and type (docs/formats.md).
import { p256 } from '@noble/curves/nist.js';
import { hkdf } from '@noble/hashes/hkdf.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { openXChaCha, sealXChaCha } from './aead.ts';
import { concatBytes, fromBase64, toBase64, utf8 } from './bytes.ts';
import { ed25519PublicKey, ed25519Sign, ed25519Verify } from './ed25519.ts';
import { openAead, sealAead, tagLength } from './managed/ciphers.ts';
import { digest } from './managed/digests.ts';
import { pointToSpki } from './managed/ecdsa.ts';
import { toPem } from './pem.ts';
import { type HashName, native } from './primitives.ts';

/** The ring and version that a key belongs to. */
interface KeyPlace {
  readonly ringId: string;
  /** From 1 on. */
  readonly version: number;
}

type CipherName = 'aes256-gcm96' | 'chacha20-poly1305';
type SignerName = 'ed25519' | 'ecdsa-p256';

const keyLength = 32;
const none = new Uint8Array(0);

/** A new key: 32 random bytes; for ECDSA, a valid scalar of the curve. */
export function newTransitKey(type: CipherName | SignerName, random: (length: number) => Uint8Array): Uint8Array {
  for (;;) {
    const key = random(keyLength);
    // All but one in 2^32 are valid.
    if (type !== 'ecdsa-p256' || p256.utils.isValidSecretKey(key)) return key;
  }
}

const sealedFormat = 1;

/** Seals `key` for the database under a key of the tenant: base64 of the format number, a nonce and the ciphertext. */
export function sealTransitKey(
  sealing: Uint8Array,
  place: KeyPlace,
  type: string,
  key: Uint8Array,
  random: (length: number) => Uint8Array,
): string {
  const nonce = random(24);
  const sealed = sealXChaCha(sealing, nonce, key, placeBytes('kms/transit/key/1', place, utf8(type)));
  return toBase64(concatBytes(Uint8Array.of(sealedFormat), nonce, sealed));
}

/** Undefined if it was sealed for another ring, version or type, or altered. */
export function openTransitKey(
  sealing: Uint8Array,
  place: KeyPlace,
  type: string,
  text: string,
): Uint8Array | undefined {
  const bytes = fromBase64(text);
  if (bytes?.[0] !== sealedFormat || bytes.length !== 1 + 24 + keyLength + tagLength) return undefined;
  const associated = placeBytes('kms/transit/key/1', place, utf8(type));
  return openXChaCha(sealing, bytes.slice(1, 25), bytes.subarray(25), associated);
}

/** A unique encoding of each place: neither label nor id contains a zero byte. */
function placeBytes(label: string, { ringId, version }: KeyPlace, rest: Uint8Array): Uint8Array {
  const number = new Uint8Array(4);
  new DataView(number.buffer).setUint32(0, version);
  return concatBytes(utf8(`${label}\0${ringId}\0`), number, rest);
}

/** Bound data of messages without associated data, made once per place. */
const messagePlaces = new WeakMap<KeyPlace, Uint8Array>();

function messageBytes(place: KeyPlace, associated: Uint8Array): Uint8Array {
  let bytes = messagePlaces.get(place);
  if (!bytes) {
    bytes = placeBytes('kms/transit/1', place, none);
    messagePlaces.set(place, bytes);
  }
  return associated.length === 0 ? bytes : concatBytes(bytes, associated);
}

/** The key for a context, in rings that derive keys: HKDF-SHA256 without a salt. */
export function derivedKey(key: Uint8Array, context: Uint8Array): Uint8Array {
  return hkdf(sha256, key, undefined, concatBytes(utf8('kms/transit/derived/1\0'), context), keyLength);
}

/** A sealed message: `vault:vN:` and base64. */
export function sealMessage(
  type: CipherName,
  key: Uint8Array,
  place: KeyPlace,
  plaintext: Uint8Array,
  associated: Uint8Array,
  random: (length: number) => Uint8Array,
): string {
  const sealed = sealAead(ciphers[type], key, plaintext, messageBytes(place, associated), random);
  return prefixed(place.version, sealed);
}

/** The plaintext; undefined if key, place, associated data or message is wrong. */
export function openMessage(
  type: CipherName,
  key: Uint8Array,
  place: KeyPlace,
  bytes: Uint8Array,
  associated: Uint8Array,
): Uint8Array | undefined {
  return openAead(ciphers[type], key, bytes, messageBytes(place, associated));
}

const ciphers = { 'aes256-gcm96': 'aes256-gcm', 'chacha20-poly1305': 'chacha20-poly1305' } as const;

function prefixed(version: number, bytes: Uint8Array): string {
  return `vault:v${version}:${toBase64(bytes)}`;
}

/** Version and bytes of a ciphertext or signature, or the problem with it in Vault's wording. */
export function readPrefixed(
  text: string,
  what: 'ciphertext' | 'signature',
): { readonly version: number; readonly bytes: Uint8Array } | { readonly problem: string } {
  if (!text.startsWith('vault:v')) return { problem: `invalid ${what}: no prefix` };
  const colon = text.indexOf(':', 7);
  if (colon < 0) return { problem: `invalid ${what}: wrong number of fields` };
  const digits = text.slice(7, colon);
  if (!/^[0-9]{1,9}$/.test(digits)) return { problem: `invalid ${what}: version number could not be decoded` };
  // Transit once counted from 0, and still reads 0 as 1.
  const version = Math.max(1, Number(digits));
  const bytes = readBase64(text.slice(colon + 1));
  return bytes instanceof Uint8Array ? { version, bytes } : { problem: `invalid ${what}: could not decode base64` };
}

/**
 * Decodes base64 as Go does: line ends are skipped, and spare bits of the last character ignored. For malformed text,
 * returns the offset that Go reports.
 */
export function readBase64(text: string): Uint8Array | { readonly wrongAt: number } {
  // The common case.
  const canonical = fromBase64(text);
  if (canonical) return canonical;
  const lone = text.replace(/[\r\n]/g, '');
  const bad = lone.search(/[^A-Za-z0-9+/=]/);
  const whole = lone.length - (lone.length % 4);
  if (bad < 0 && whole === lone.length && /^[^=]*={0,2}$/.test(lone)) {
    try {
      return Uint8Array.fromBase64(lone);
    } catch {
      // The remaining errors are located below.
    }
  }
  return { wrongAt: bad >= 0 ? bad : (misplaced(lone) ?? whole) };
}

/** The offset at which Go finds misplaced padding, or text after the padding. */
function misplaced(text: string): number | undefined {
  const padding = text.indexOf('=');
  if (padding < 0) return undefined;
  const place = padding % 4;
  if (place < 2) return padding;
  const end = place === 2 && text[padding + 1] === '=' ? padding + 2 : padding + 1;
  return end < text.length ? end : undefined;
}

/** The hash that ECDSA makes of its input; undefined if the input is a hash already. */
type SignedAs = HashName | undefined;

const ecdsa = { prehash: false, lowS: false, format: 'der' } as const;

/** The leftmost 256 bits of a hash, which are what is signed (FIPS 186-5 §6.4.1). */
function leftmost(hash: Uint8Array): Uint8Array {
  return hash.subarray(0, 32);
}

/** `vault:vN:` and base64 of the signature: DER for ECDSA, 64 bytes for Ed25519. */
export function signMessage(
  type: SignerName,
  key: Uint8Array,
  version: number,
  message: Uint8Array,
  as: SignedAs,
): string {
  if (type === 'ed25519') return prefixed(version, ed25519Sign(key, message));
  return prefixed(version, p256Sign(key, message, as));
}

/** ECDSA in DER. The platform signs messages only; noble signs hashes made elsewhere. */
export function p256Sign(key: Uint8Array, message: Uint8Array, as: SignedAs): Uint8Array {
  if (as === undefined) return p256.sign(leftmost(message), key, ecdsa);
  return native().ecdsaSign?.('ecdsa-p256', key, as, message) ?? p256.sign(digest(as, message), key, ecdsa);
}

export function p256Verify(publicKey: Uint8Array, message: Uint8Array, as: SignedAs, signature: Uint8Array): boolean {
  const { ecdsaVerify: verify } = native();
  if (verify && as !== undefined) return verify(p256ToSpki(publicKey), as, message, signature);
  try {
    return p256.verify(signature, as === undefined ? leftmost(message) : digest(as, message), publicKey, ecdsa);
  } catch {
    return false;
  }
}

/** Whether the signature is valid; also false for a malformed one. */
export function isSignature(
  type: SignerName,
  publicKey: Uint8Array,
  message: Uint8Array,
  as: SignedAs,
  signature: Uint8Array,
): boolean {
  if (type === 'ed25519') return ed25519Verify(publicKey, message, signature);
  return p256Verify(publicKey, message, as, signature);
}

/** 32 bytes for Ed25519, the uncompressed point for P-256; empty for encryption keys. */
export function transitPublicKey(type: CipherName | SignerName, key: Uint8Array): Uint8Array {
  if (type === 'ed25519') return ed25519PublicKey(key);
  return type === 'ecdsa-p256' ? p256.getPublicKey(key, false) : none;
}

/** SPKI DER of each point, since the platform keeps what it prepared with the array. */
const spkis = new WeakMap<Uint8Array, Uint8Array>();

function p256ToSpki(point: Uint8Array): Uint8Array {
  const known = spkis.get(point);
  if (known) return known;
  const spki = pointToSpki('ecdsa-p256', point);
  spkis.set(point, spki);
  return spki;
}

/** PEM of an uncompressed point of P-256. */
export function p256Pem(point: Uint8Array): string {
  return toPem('PUBLIC KEY', pointToSpki('ecdsa-p256', point));
}
