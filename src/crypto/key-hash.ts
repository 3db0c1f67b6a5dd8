// The `hash` of an encrypt: the ids of the ring and the key, sealed so that only their tenant can read them and nothing
// has to be stored.
//
//   version 1 (1) | key epoch (2, big-endian) | nonce (20) | ring ULID (16) and key ULID (16), encrypted | tag (20)
//
// Encrypt-then-MAC with HMAC-SHA256 as the only primitive: two one-block HMACs with cached key state cost a quarter of
// an AEAD's set-up for these 32 bytes. The second yields 32 bytes: 20 are the tag, and the other 12 authenticate a
// header that holds this hash and no asset. The text is base64url, 100 characters. See docs/formats.md.
import { KmsError } from '../errors.ts';
import { equalParts, fromBase64Url, readBase64Url, toBase64Url, utf8 } from './bytes.ts';
import { hmacSha256 } from './fast-hash.ts';
import { idFromBytes, knownIdInto } from './ulid.ts';

/** The tenant's keys for hashes and headers. */
export interface SealingKeys {
  /** The epoch used for new hashes; fits 16 bits. */
  readonly epoch: number;
  /** The 32-byte key with that label. Throws `not-found` for an epoch that is not held. */
  key(label: 'hash' | 'header', epoch?: number): Uint8Array;
}

export interface KeyReference {
  readonly ringId: string;
  readonly keyId: string;
}

/** Bytes of a hash before base64url. */
export const keyHashLength = 75;

const nonceStart = 3;
const nonceLength = 20;
const sealedStart = nonceStart + nonceLength;
const tagStart = sealedStart + 32;
const tagLength = 20;

export interface SealedKeyHash {
  readonly hash: string;
  /** The 55 bytes of the hash before its tag. */
  readonly content: Uint8Array;
  /** 32 bytes: the tag, then the 12 bytes that authenticate a header of this hash without an asset. */
  readonly mac: Uint8Array;
}

/** Buffer for building a hash: arrays over 64 bytes are costly to make. */
const whole = new Uint8Array(keyHashLength);

/** A new hash for that ring and key; each call gives a different one. */
export function sealKeyHash(
  keys: SealingKeys,
  ringId: string,
  keyId: string,
  random: (length: number) => Uint8Array,
): SealedKeyHash {
  const content = new Uint8Array(tagStart);
  const nonce = random(nonceLength);
  content[0] = 1;
  content[1] = keys.epoch >>> 8;
  content[2] = keys.epoch;
  content.set(nonce, nonceStart);
  knownIdInto('ring', ringId, content, sealedStart);
  knownIdInto('key', keyId, content, sealedStart + 16);
  const { stream, tag } = prfsOf(keys.key('hash', keys.epoch));
  mask(content, stream(nonce));
  const mac = tag(content);
  whole.set(content);
  for (let i = 0; i < tagLength; i++) whole[tagStart + i] = mac[i] ?? 0;
  return { hash: toBase64Url(whole), content, mac };
}

/** The result of reading 75 bytes as a hash. */
interface OpenedHash {
  /** Undefined if this tenant did not make the hash: it was altered or is another's. */
  readonly reference: KeyReference | undefined;
  /** 32 bytes: the correct tag, then the 12 bytes that authenticate a header of this hash without an asset. */
  readonly mac: Uint8Array;
}

/** Buffers that a hash is decoded into. */
const read = new Uint8Array(keyHashLength);
const readContent = new Uint8Array(tagStart);
const readNonce = new Uint8Array(nonceLength);

/** Ring and key of a hash; undefined if this tenant cannot read it: malformed, altered or another's. */
export function openKeyHash(keys: SealingKeys, text: string): KeyReference | undefined {
  if (text.length !== 100 || !readBase64Url(text, read) || read[0] !== 1) return undefined;
  return openKeyHashAt(keys, read, 0)?.reference;
}

/** Reads the hash at an offset of `bytes`, whose version is known; undefined if the keys of its epoch are not held. */
export function openKeyHashAt(keys: SealingKeys, bytes: Uint8Array, at: number): OpenedHash | undefined {
  const key = keyOfEpoch(keys, 'hash', epochOfHash(bytes, at));
  if (!key) return undefined;
  const { stream, tag } = prfsOf(key);
  for (let i = 0; i < tagStart; i++) readContent[i] = bytes[at + i] ?? 0;
  const mac = tag(readContent);
  if (!equalParts(mac, 0, bytes, at + tagStart, tagLength)) return { reference: undefined, mac };
  for (let i = 0; i < nonceLength; i++) readNonce[i] = readContent[nonceStart + i] ?? 0;
  mask(readContent, stream(readNonce));
  const ringId = idFromBytes('ring', readContent, sealedStart);
  return { reference: { ringId, keyId: idFromBytes('key', readContent, sealedStart + 16) }, mac };
}

/** Whether the 12 bytes at that offset are the rest of the MAC of a header with this hash and no asset. */
export function headerMacFits({ reference, mac }: OpenedHash, bytes: Uint8Array, at: number): boolean {
  return equalParts(mac, tagLength, bytes, at, 32 - tagLength) && reference !== undefined;
}

/** The 75 bytes of a hash of a known version; undefined for any other text. */
export function keyHashBytes(text: string): Uint8Array | undefined {
  if (text.length !== 100) return undefined;
  const bytes = fromBase64Url(text);
  return bytes?.[0] === 1 ? bytes : undefined;
}

/** The key epoch of the hash at that offset. */
export function epochOfHash(bytes: Uint8Array, at = 0): number {
  return ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
}

/** The key; undefined if its epoch is not held. */
function keyOfEpoch(keys: SealingKeys, label: 'hash' | 'header', epoch: number): Uint8Array | undefined {
  try {
    return keys.key(label, epoch);
  } catch (error) {
    if (error instanceof KmsError && error.code === 'not-found') return undefined;
    throw error;
  }
}

/** Encrypts or decrypts the 32 bytes of the two ULIDs in place. */
function mask(bytes: Uint8Array, stream: Uint8Array): void {
  for (let i = 0; i < 32; i++) bytes[sealedStart + i] = (bytes[sealedStart + i] ?? 0) ^ (stream[i] ?? 0);
}

interface Prfs {
  /** The 32-byte keystream that hides the ULIDs, from a nonce. */
  readonly stream: (nonce: Uint8Array) => Uint8Array;
  readonly tag: (content: Uint8Array) => Uint8Array;
}

/** Keyed states per key in use. They are collected together with their key. */
const prfs = new WeakMap<Uint8Array, Prfs>();

function prfsOf(key: Uint8Array): Prfs {
  let made = prfs.get(key);
  if (!made) {
    const derive = hmacSha256(key);
    made = {
      stream: hmacSha256(derive(utf8('kms/hash/v1/encrypt'))),
      tag: hmacSha256(derive(utf8('kms/hash/v1/mac'))),
    };
    prfs.set(key, made);
  }
  return made;
}
