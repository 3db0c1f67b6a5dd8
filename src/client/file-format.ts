// The file format without its encrypted part: a magic string, the format's version and the appliance's header, or, in
// version 2, one header per ring with the file's key sealed to that ring. All of it is bound to the encryption as
// context, so that none of it can be changed. Also all faults of such a file, by the classes that the test vectors
// name. See docs/file-format.md.
import { concatBytes, fromUtf8, utf8 } from '../crypto/bytes.ts';
import { fitsKem, type SealedFileKey, wrappedLength } from '../crypto/recipient.ts';
import { type ErrorCode, KmsError } from '../errors.ts';
import { type ByteReader, type ByteSource, byteReader } from './byte-streams.ts';

const magic = utf8('kms-file');
const maxHeaderLength = 1024;
/** Far more than any KEM of today needs. */
const maxSealedLength = 4096;
/** Maximum number of rings that a file can be sealed to. */
export const maxRings = 20;

/** A file's key, sealed to one ring. */
export interface Stanza extends SealedFileKey {
  readonly header: string;
}

/** Encodes the header of version 1, or the stanzas of version 2. Throws `invalid` if they are malformed. */
export function encodePrelude(header: string | readonly Stanza[]): Uint8Array {
  if (typeof header === 'string') return concatBytes(magic, Uint8Array.of(1), encodeHeader(header));
  if (header.length < 1 || header.length > maxRings || hasTwice(header)) {
    throw new KmsError('invalid', `expected 1 to ${maxRings} stanzas of different headers`);
  }
  return concatBytes(magic, Uint8Array.of(2, header.length), ...header.map(encodeStanza));
}

/** Length in two bytes, big-endian, and the header. */
function encodeHeader(header: string): Uint8Array {
  if (!isHeader(header)) throw new KmsError('invalid', 'expected a header of 1 to 1024 base64url characters');
  return concatBytes(uint16(header.length), utf8(header));
}

function encodeStanza({ header, kem, sealed, wrapped }: Stanza): Uint8Array {
  return concatBytes(encodeHeader(header), uint16(kem), uint16(sealed.length), sealed, wrapped);
}

function uint16(value: number): Uint8Array {
  return Uint8Array.of(value >>> 8, value);
}

function hasTwice(stanzas: readonly Stanza[]): boolean {
  return new Set(stanzas.map(({ header }) => header)).size < stanzas.length;
}

export interface Prelude {
  readonly fileVersion: 1 | 2;
  /** In version 2 the header of the first stanza. */
  readonly header: string;
  /** 1 to 20 in version 2, none in version 1. */
  readonly stanzas: readonly Stanza[];
  /** All bytes before the encrypted part. */
  readonly context: Uint8Array;
  /** The encrypted part, not read yet. `giveUp` cancels the source. */
  readonly body: ByteReader;
}

/**
 * Reads the prelude and leaves the rest unread. Throws `invalid` if it is not a kms file or has a newer version,
 * `corrupt` if the prelude is cut or malformed.
 */
export async function readPrelude(source: ByteSource): Promise<Prelude> {
  const body = byteReader(source);
  const read: Uint8Array[] = [];
  const take = async (length: number): Promise<Uint8Array> => {
    const bytes = await body.take(length);
    if (bytes.length < length) throw fileFault('cut-prelude');
    read.push(bytes);
    return bytes;
  };
  try {
    const start = await body.take(magic.length);
    for (let i = 0; i < start.length; i++) if (start[i] !== magic[i]) throw fileFault('not-kms');
    if (start.length === 0) throw fileFault('not-kms');
    read.push(start);
    const [fileVersion] = await take(1);
    if (fileVersion === 1) {
      const header = await takeHeader(take);
      return { fileVersion, header, stanzas: [], context: concatBytes(...read), body };
    }
    if (fileVersion !== 2) throw fileFault('unknown-version');
    const stanzas = await takeStanzas(take);
    const [{ header } = { header: '' }] = stanzas;
    return { fileVersion, header, stanzas, context: concatBytes(...read), body };
  } catch (error) {
    body.giveUp();
    throw error;
  }
}

type Take = (length: number) => Promise<Uint8Array>;

async function takeHeader(take: Take): Promise<string> {
  const length = await takeUint16(take);
  if (length === 0 || length > maxHeaderLength) throw fileFault('bad-header');
  const header = fromUtf8(await take(length));
  if (header === undefined || !isHeader(header)) throw fileFault('bad-header');
  return header;
}

async function takeStanzas(take: Take): Promise<readonly Stanza[]> {
  const [count = 0] = await take(1);
  if (count === 0 || count > maxRings) throw fileFault('bad-header');
  const stanzas: Stanza[] = [];
  while (stanzas.length < count) {
    const header = await takeHeader(take);
    const kem = await takeUint16(take);
    const length = await takeUint16(take);
    if (length === 0 || length > maxSealedLength || !fitsKem(kem, length)) throw fileFault('bad-header');
    stanzas.push({ header, kem, sealed: await take(length), wrapped: await take(wrappedLength) });
  }
  if (hasTwice(stanzas)) throw fileFault('bad-header');
  return stanzas;
}

async function takeUint16(take: Take): Promise<number> {
  const [high = 0, low = 0] = await take(2);
  return (high << 8) | low;
}

function isHeader(text: string): boolean {
  return text.length <= maxHeaderLength && /^[A-Za-z0-9_-]+$/.test(text);
}

const faults = {
  'not-kms': ['invalid', 'not a kms file: it does not start with "kms-file"', 'check that this is the right file'],
  'unknown-version': [
    'invalid',
    'the kms file has a format version, or is sealed by a KEM, that this program does not know',
    'use a newer version of kms',
  ],
  'cut-prelude': ['corrupt', 'the kms file ends before its encrypted part', 'get a complete copy of the file'],
  'bad-header': ['corrupt', 'the kms file has a malformed header', 'get an unaltered copy of the file'],
  'wrong-private-key': [
    'invalid',
    'the private key opens no part of the kms file: it is of another ring, or the beginning of the file was altered',
    "give the private key of one of the file's rings",
  ],
  'wrong-key': [
    'corrupt',
    'the kms file does not open with this key: it is another key, or the beginning of the file was altered',
    'get an unaltered copy of the file',
  ],
  altered: [
    'corrupt',
    'the kms file was altered or cut: a part of it does not verify',
    'throw away what was decrypted of it and get an unaltered copy of the file',
  ],
  cut: [
    'corrupt',
    'the kms file was cut: its end is missing',
    'throw away what was decrypted of it and get a complete copy of the file',
  ],
} as const satisfies Record<string, readonly [ErrorCode, string, string]>;

export type FileFault = keyof typeof faults;

/** The error for a fault. */
export function fileFault(fault: FileFault, cause?: unknown): KmsError {
  const [code, message, hint] = faults[fault];
  return new KmsError(code, message, { hint, cause });
}

/** The fault of an error, if it is one of these. */
export function faultOf(error: unknown): FileFault | undefined {
  if (!(error instanceof KmsError)) return undefined;
  return names.find((fault) => faults[fault][1] === error.message);
}

const names = Object.keys(faults) as FileFault[]; // cast: keys of an object that is never extended
