// age encodings of a keyring: recipients (`age1kms1…`), identities (`AGE-PLUGIN-KMS-1…`), and the stanza that seals a
// file key under a key of the ring. See docs/age.md.
import { fromBech32, toBech32 } from '../crypto/bech32.ts';
import { concatBytes, equalBytes, fromBase64, fromUtf8, toBase64, utf8 } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { idFromBytes, idToBytes } from '../crypto/ulid.ts';
import { KmsError } from '../errors.ts';
import type { Kem } from '../model/kems.ts';
import { isRingName } from '../model/names.ts';
import { byteReader } from './byte-streams.ts';
import { decryptChunks, encryptChunks } from './chunked.ts';
import { faultOf } from './file-format.ts';

/** How to reach the ring's appliance: by address, by profile, or by a data directory of this machine. */
export interface AgePlace {
  readonly kind: 'server' | 'profile' | 'data';
  readonly name: string;
}

/** Content common to recipients and identities. */
export interface AgeRecipient {
  readonly ring: string;
  readonly ringId: string;
  /** KEM by which keys are wrapped to the ring. */
  readonly kem: Kem;
  /** Fingerprint of the ring's public key: see `fingerprintOf`. */
  readonly fingerprint: Uint8Array;
  readonly place: AgePlace;
}

export interface AgeIdentity extends AgeRecipient {
  /**
   * The private key for this fingerprint: the path of a file, or its 32 bytes. If absent, it is where `kms` keeps keys.
   */
  readonly privateKey?: string | Uint8Array;
}

const recipientPrefix = 'age1kms';
const identityPrefix = 'age-plugin-kms-';
const version = 1;
const kems: readonly [number: number, kem: Kem][] = [
  [1, 'x25519'],
  [2, 'mlkem768-x25519'],
];
const places = ['server', 'profile', 'data'] as const;
const fingerprintLength = 16;

/** The first 16 bytes of SHA-256 of a public key's SPKI DER, given in base64. Throws `invalid` if it is not base64. */
export function fingerprintOf(publicKey: string): Uint8Array {
  const der = fromBase64(publicKey);
  if (der === undefined) throw new KmsError('invalid', 'expected a public key in base64');
  return sha256(der).slice(0, fingerprintLength);
}

export function formatRecipient(recipient: AgeRecipient): string {
  return toBech32(recipientPrefix, payloadOf(recipient));
}

export function formatIdentity(identity: AgeIdentity): string {
  const { privateKey } = identity;
  const isFile = typeof privateKey === 'string';
  const key = isFile ? utf8(privateKey) : (privateKey ?? new Uint8Array());
  const kind = Uint8Array.of(privateKey === undefined ? 0 : isFile ? 1 : 2);
  return toBech32(identityPrefix, concatBytes(payloadOf(identity), kind, lengthOf(key), key)).toUpperCase();
}

/** Throws `invalid` for anything else. */
export function parseRecipient(text: string): AgeRecipient {
  const payload = payloadIn(text, recipientPrefix, `a recipient ${recipientPrefix}1…`);
  const recipient = payload.recipient();
  payload.end();
  return recipient;
}

/** Throws `invalid` for anything else. The text may be secret, so the error does not repeat it. */
export function parseIdentity(text: string): AgeIdentity {
  const payload = payloadIn(text, identityPrefix, `an identity ${identityPrefix.toUpperCase()}1…`);
  const recipient = payload.recipient();
  const privateKey = payload.privateKey();
  payload.end();
  return { ...recipient, ...(privateKey !== undefined && { privateKey }) };
}

/** version (1) | kem (1) | ring ULID (16) | fingerprint (16) | ring name, place's kind (1), place's name */
function payloadOf({ ring, ringId, kem, fingerprint, place }: AgeRecipient): Uint8Array {
  const [number = 0] = kems.find(([, name]) => name === kem) ?? [];
  const [ringName, placeName] = [utf8(ring), utf8(place.name)];
  return concatBytes(
    Uint8Array.of(version, number),
    ringBytes(ringId),
    fingerprint,
    lengthOf(ringName),
    ringName,
    Uint8Array.of(places.indexOf(place.kind)),
    lengthOf(placeName),
    placeName,
  );
}

/** Length prefix of a variable field: two bytes, big-endian. */
function lengthOf({ length }: Uint8Array): Uint8Array {
  if (length > 0xffff) throw new KmsError('invalid', 'expected a name of less than 64 KiB');
  return Uint8Array.of(length >>> 8, length);
}

function ringBytes(ringId: string): Uint8Array {
  const bytes = idToBytes('ring', ringId);
  if (bytes === undefined) throw new KmsError('invalid', `expected the id of a ring, got "${ringId}"`);
  return bytes;
}

function payloadIn(text: string, prefix: string, expected: string): Payload {
  const read = fromBech32(text);
  if (read?.prefix !== prefix) {
    throw new KmsError('invalid', `expected ${expected}, got something else`, {
      hint: 'copy the whole line that `kms age` printed',
    });
  }
  return new Payload(read.bytes, expected);
}

/** Sequential reader of a payload. Throws `invalid` if the next field is not the expected one. */
class Payload {
  readonly #bytes: Uint8Array;
  readonly #expected: string;
  #at = 0;

  constructor(bytes: Uint8Array, expected: string) {
    this.#bytes = bytes;
    this.#expected = expected;
  }

  recipient(): AgeRecipient {
    const [made, number] = this.#take(2);
    const [, kem] = kems.find(([known]) => known === number) ?? [];
    if (made !== version || kem === undefined) {
      throw new KmsError('invalid', `${this.#expected}: it is of a kind that this program does not know`, {
        hint: 'use a newer version of kms',
      });
    }
    const ringId = idFromBytes('ring', this.#take(16));
    const fingerprint = this.#take(fingerprintLength);
    const ring = this.#text();
    const kind = places[this.#take(1)[0] ?? -1];
    const name = this.#text();
    if (!isRingName(ring) || kind === undefined) throw this.#wrong();
    return { ring, ringId, kem, fingerprint, place: { kind, name } };
  }

  privateKey(): string | Uint8Array | undefined {
    const [kind] = this.#take(1);
    if (kind === 1) return this.#text();
    const bytes = this.#sized();
    if (kind === 0 && bytes.length === 0) return undefined;
    if (kind === 2 && bytes.length === 32) return bytes;
    throw this.#wrong();
  }

  end(): void {
    if (this.#at !== this.#bytes.length) throw this.#wrong();
  }

  #take(length: number): Uint8Array {
    const taken = this.#bytes.slice(this.#at, this.#at + length);
    if (taken.length !== length) throw this.#wrong();
    this.#at += length;
    return taken;
  }

  #sized(): Uint8Array {
    const [high = 0, low = 0] = this.#take(2);
    return this.#take((high << 8) | low);
  }

  #text(): string {
    const text = fromUtf8(this.#sized());
    if (text === undefined || /\p{Cc}/u.test(text)) throw this.#wrong();
    return text;
  }

  #wrong(): KmsError {
    return new KmsError('invalid', `${this.#expected}: it holds something that is not possible`);
  }
}

/** A stanza in the header of an age file. */
export interface AgeStanza {
  readonly type: string;
  readonly args: readonly string[];
  readonly body: Uint8Array;
}

/** A stanza received from age; `body` is undefined if it is not valid base64. */
export type HeardStanza = Omit<AgeStanza, 'body'> & { readonly body: Uint8Array | undefined };

/** A parsed stanza of type `kms`. */
export interface KmsStanza {
  readonly tag: string;
  /** Header as returned by the appliance with the key. */
  readonly header: string;
  readonly sealed: Uint8Array;
}

const stanzaType = 'kms';
const stanzaVersion = '1';
/** Bytes of a file key in age. */
const fileKeyLength = 16;
/** Salt and commitment, the key, and the tag of its only chunk. */
const sealedLength = 24 + 32 + fileKeyLength + 16;
const tagLabel = utf8('kms/age/tag/v1');
const contextLabel = utf8('kms/age/stanza/v1');

/** Base64 without padding, as age uses it. */
export function toAgeBase64(bytes: Uint8Array): string {
  return toBase64(bytes).replace(/=+$/, '');
}

/** Undefined for any text that `toAgeBase64` does not produce. */
export function fromAgeBase64(text: string): Uint8Array | undefined {
  return text.includes('=') ? undefined : fromBase64(text.padEnd(Math.ceil(text.length / 4) * 4, '='));
}

/** Lets the ring's owner recognize a stanza; to others it is eight random bytes. */
function tagOf(ringId: string, header: string): string {
  return toAgeBase64(sha256(concatBytes(tagLabel, ringBytes(ringId), utf8(header))).subarray(0, 8));
}

export interface DataKey {
  /** 32 bytes. */
  readonly key: Uint8Array;
  readonly header: string;
}

/** Seals a file key under a key of the ring. Throws `invalid` unless the file key has 16 bytes. */
export async function sealFileKey(
  fileKey: Uint8Array,
  ringId: string,
  { key, header }: DataKey,
  random: (length: number) => Uint8Array,
): Promise<AgeStanza> {
  if (fileKey.length !== fileKeyLength) {
    throw new KmsError('invalid', `expected a file key of ${fileKeyLength} bytes, got ${fileKey.length}`);
  }
  const source = (async function* () {
    yield fileKey;
  })();
  const body = await allOf(encryptChunks(source, { key, context: contextOf(ringId, header), random }));
  return { type: stanzaType, args: [stanzaVersion, tagOf(ringId, header), header], body };
}

/** Parses a stanza of type `kms`; undefined for another type or version. Throws `corrupt` if malformed. */
export function readKmsStanza({ type, args, body }: HeardStanza): KmsStanza | undefined {
  if (type !== stanzaType || args[0] !== stanzaVersion) return undefined;
  const [, tag = '', header = '', ...rest] = args;
  const isWhole =
    fromAgeBase64(tag)?.length === 8 &&
    /^[A-Za-z0-9_-]{1,1024}$/.test(header) &&
    rest.length === 0 &&
    body?.length === sealedLength;
  if (!isWhole) throw altered();
  return { tag, header, sealed: body };
}

export function isForRing({ tag, header }: KmsStanza, ringId: string): boolean {
  return tag === tagOf(ringId, header);
}

/** Opens the file key. Throws `corrupt` if the stanza was altered or the key is another one. */
export async function openFileKey({ header, sealed }: KmsStanza, ringId: string, key: Uint8Array): Promise<Uint8Array> {
  const source = byteReader(
    (async function* () {
      yield sealed;
    })(),
  );
  try {
    return await allOf(decryptChunks(source, { key, context: contextOf(ringId, header) }));
  } catch (error) {
    throw faultOf(error) === undefined ? error : altered(error);
  }
}

function altered(cause?: unknown): KmsError {
  return new KmsError('corrupt', "the file's kms stanza was altered: it does not open with the ring's key", {
    hint: 'get an unaltered copy of the file',
    cause,
  });
}

function contextOf(ringId: string, header: string): Uint8Array {
  return concatBytes(contextLabel, ringBytes(ringId), utf8(header));
}

async function allOf(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return concatBytes(...all);
}

/** Whether a public key, in base64, is the one that the recipient names. */
export function isKeyOf({ fingerprint }: AgeRecipient, publicKey: string): boolean {
  return equalBytes(fingerprintOf(publicKey), fingerprint);
}
