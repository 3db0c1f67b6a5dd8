// A ring's key pair on its owner's side: making one, reading the formats of private keys, and unwrapping keys from
// encrypt and decrypt answers. The appliance reveals a private key once, or never has it.
import { equalBytes, fromBase64, toBase64, toHex } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { hybridKeyToSpki, parseHybridKey, parseSeed, seedToPkcs8 } from '../crypto/hybrid-keys.ts';
import { isPem, pemBlocks, pemText } from '../crypto/pem.ts';
import { systemRandom } from '../crypto/random.ts';
import { kemOf, unwrapRingKey as unwrap } from '../crypto/ring-key.ts';
import { xWingPublicKey } from '../crypto/x-wing.ts';
import {
  parsePrivateKey,
  parsePublicKey,
  pkcs8ToPem,
  privateKeyToPkcs8,
  publicFromPrivate,
  publicKeyToSpki,
} from '../crypto/x25519.ts';
import { KmsError } from '../errors.ts';
import type { Kem } from '../model/kems.ts';
import type { Key } from './methods.ts';

/**
 * Lengths of the 32 raw bytes, and of PKCS#8 DER of X25519 (RFC 8410) and X-Wing. No text form has one of these
 * lengths.
 */
const binaryLengths: readonly number[] = [32, 48, 54];

/** A private key of a ring. */
export interface RingPrivateKey {
  /** Absent if only the 32 bytes were given: they fit either KEM. */
  readonly kem?: Kem;
  /** 32 secret bytes: an X25519 key, or the seed of a hybrid one. */
  readonly bytes: Uint8Array;
}

/**
 * PEM, base64 of PKCS#8 DER, one of these as the bytes of a file, or PKCS#8 DER; the 32 bytes, or base64 of them; for a
 * hybrid ring also a JWK, or an age identity (`AGE-SECRET-KEY-PQ-1…`). PEM may hold several keys, those of a ring that
 * changed its pair, and text around them. Or the result of `readPrivateKeys`.
 */
export type PrivateKey = string | Uint8Array | readonly RingPrivateKey[];

/** All private keys in `key`, one or more. `source` names it in the error. Throws `invalid` for anything else. */
export function readPrivateKeys(key: PrivateKey, source: string): readonly RingPrivateKey[] {
  // Untyped programs may pass a lookup that found nothing.
  const given = key ?? '';
  const isRead = typeof given !== 'string' && !(given instanceof Uint8Array);
  const keys = isRead ? given : keysIn(typeof given === 'string' ? given : textOf(given));
  if (keys.length > 0) return keys;
  throw new KmsError('invalid', `${source} holds no private key of X25519 or MLKEM768-X25519`, {
    hint: 'expected PEM (PKCS#8), base64 of PKCS#8 DER, or base64 of the 32 bytes',
  });
}

function textOf(bytes: Uint8Array): string {
  return binaryLengths.includes(bytes.length) ? toBase64(bytes) : pemText(bytes);
}

/** All keys of PEM, or none if one of them cannot be read. */
function keysIn(text: string): readonly RingPrivateKey[] {
  const texts = isPem(text) ? pemBlocks(text, 'PRIVATE KEY').map((der) => der && toBase64(der)) : [text];
  const keys = texts.map((each) => (each === undefined ? undefined : keyIn(each)));
  const read = keys.filter((key) => key !== undefined);
  return read.length === keys.length ? read : [];
}

function keyIn(text: string): RingPrivateKey | undefined {
  const seed = parseSeed(text);
  if (seed) return { kem: 'mlkem768-x25519', bytes: seed };
  const bytes = parsePrivateKey(text);
  if (!bytes) return undefined;
  return fromBase64(text.trim())?.length === 32 ? { bytes } : { kem: 'x25519', bytes };
}

/** The public half as in the API (base64 SPKI DER); if the KEM is unknown, that of X25519. */
export function publicKeyOf({ kem, bytes }: RingPrivateKey): string {
  const isHybrid = kem === 'mlkem768-x25519';
  return toBase64(isHybrid ? hybridKeyToSpki(xWingPublicKey(bytes)) : publicKeyToSpki(publicFromPrivate(bytes)));
}

/** Private keys as PEM, one block each, in order; the API returns one as base64 of PKCS#8 DER. */
export function privateKeyPem(key: PrivateKey): string {
  return readPrivateKeys(key, 'the private key')
    .map(({ kem, bytes }) => pkcs8ToPem(kem === 'mlkem768-x25519' ? seedToPkcs8(bytes) : privateKeyToPkcs8(bytes)))
    .join('');
}

/** KEM of a public key; undefined if no ring can be made with it. */
export function kemOfPublicKey(text: string): Kem | undefined {
  if (parsePublicKey(text)) return 'x25519';
  return parseHybridKey(text) && 'mlkem768-x25519';
}

/** Raw bytes of a public key that a ring can be made with, given as PEM or base64; undefined for anything else. */
export function publicKeyBytes(text: string): Uint8Array | undefined {
  return parsePublicKey(text) ?? parseHybridKey(text);
}

/** Whether two texts are the same public key, in any format. */
export function isSamePublicKey(one: string, other: string): boolean {
  const [a, b] = [publicKeyBytes(one), publicKeyBytes(other)];
  return a !== undefined && b !== undefined && equalBytes(a, b);
}

/** SPKI DER of a public key in any format, without surrounding text; undefined for anything else. */
export function publicKeySpki(text: string): Uint8Array | undefined {
  const bytes = publicKeyBytes(text);
  return bytes && (bytes.length === 32 ? publicKeyToSpki(bytes) : hybridKeyToSpki(bytes));
}

/**
 * Fingerprint for people to compare: SHA-256 of the SPKI DER in hex, in groups of eight. Undefined if it is not a
 * public key.
 */
export function fingerprintOf(publicKey: string): string | undefined {
  const spki = publicKeySpki(publicKey);
  return spki && toHex(sha256(spki)).replace(/.{8}(?=.)/g, '$& ');
}

export interface RingKeyPair {
  /** PEM (PKCS#8), secret. It exists nowhere else: without it nothing can be decrypted any more. */
  readonly privateKey: string;
  /** Base64 of SPKI DER, as `createKeyring` takes it and the ring shows it. */
  readonly publicKey: string;
}

/** A new pair of the given KEM. Takes 32 bytes from the platform's secure generator by default. */
export function generateRingKey(
  kem: Kem = 'x25519',
  random: (length: number) => Uint8Array = systemRandom,
): RingKeyPair {
  const pair = { kem, bytes: random(32) };
  return { privateKey: privateKeyPem([pair]), publicKey: publicKeyOf(pair) };
}

/**
 * PEM of a ring's private keys with a hybrid one last, and the public half of that: an existing one that waits to be
 * used, or else a new one.
 */
export function withHybridKey(keys: readonly RingPrivateKey[]): RingKeyPair {
  const last = keys.at(-1);
  if (last?.kem === 'mlkem768-x25519') return { privateKey: privateKeyPem(keys), publicKey: publicKeyOf(last) };
  const { privateKey, publicKey } = generateRingKey('mlkem768-x25519');
  return { privateKey: (keys.length > 0 ? privateKeyPem(keys) : '') + privateKey, publicKey };
}

interface UnwrapInput {
  /** The ring's private key, including earlier ones. */
  readonly privateKey: PrivateKey;
  /** The key as the key service returns it, with its `keyData`: not one named in `knownKeys`. */
  readonly key: Pick<Key, 'id' | 'type'> & Partial<Pick<Key, 'keyData'>>;
}

/**
 * The key's 32 bytes. Throws `invalid` for another ring's private key and for a key of unknown type, `unavailable` if
 * there is no Web Crypto (a page without HTTPS).
 */
export async function unwrapRingKey({ privateKey, key }: UnwrapInput): Promise<Uint8Array> {
  if (!key.keyData) {
    throw new KmsError('invalid', `expected the wrapped bytes of ${key.id}, got a key without keyData`, {
      hint: 'ask without naming it in knownKeys',
    });
  }
  // Anything may have answered.
  const { value, encoding } = Object(Object(key.keyData.encrypted).key);
  if (key.type !== 'aes256' || encoding !== 'base64') {
    throw new KmsError('invalid', `expected an aes256 key in base64, got ${key.type} in ${encoding}`, {
      hint: 'use a newer version of kms',
    });
  }
  const wrappedBy = kemOf(value) ?? 'x25519';
  const keys = readPrivateKeys(privateKey, 'privateKey');
  const fitting = keys.filter(({ kem = wrappedBy }) => kem === wrappedBy);
  for (const { bytes } of fitting) {
    const unwrapped = await unwrap('ks', bytes, key.id, value);
    if (unwrapped?.length === 32) return unwrapped;
  }
  if (fitting.length > 0) {
    throw new KmsError('invalid', `the private key does not open ${key.id}: it is not the private key of its ring`, {
      hint: "give the ring's own private key",
    });
  }
  throw new KmsError('invalid', `${key.id} is wrapped by ${wrappedBy}, and the private key is one of ${keys[0]?.kem}`, {
    hint: 'if the ring was upgraded, give the file with both of its private keys',
  });
}
