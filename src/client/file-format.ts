// The file format, but for its encrypted part: a magic string, the format's version and the header that the appliance
// gave, all of it context of the encryption, so that none of it can be changed; and everything that can be wrong with
// such a file, by the classes that the vectors name. See docs/file-format.md.
import { concatBytes, fromUtf8, utf8 } from '../crypto/bytes.ts';
import { type HeaderInspection, inspectHeader } from '../crypto/header.ts';
import { type ErrorCode, KmsError } from '../errors.ts';
import { type ByteReader, type ByteSource, byteReader } from './byte-streams.ts';

const magic = utf8('kms-file');
const fileVersion = 1;
const maxHeaderLength = 1024;

/**
 * Magic string, version, length of the header (two bytes, big-endian), header. Throws `invalid` for what is no header.
 */
export function encodePrelude(header: string): Uint8Array {
  if (!isHeader(header)) throw new KmsError('invalid', 'expected a header of 1 to 1024 base64url characters');
  return concatBytes(magic, Uint8Array.of(fileVersion, header.length >>> 8, header.length), utf8(header));
}

interface Prelude {
  readonly header: string;
  /** Every byte that stands before the encrypted part. */
  readonly context: Uint8Array;
  /** The encrypted part, still to be read. `giveUp` cancels the source. */
  readonly body: ByteReader;
}

/**
 * Reads the prelude and leaves the rest. Throws `invalid` for what is no kms file or has a newer version, `corrupt` for
 * a prelude that is cut or malformed.
 */
export async function readPrelude(source: ByteSource): Promise<Prelude> {
  const body = byteReader(source);
  try {
    const start = await body.take(magic.length);
    for (let i = 0; i < start.length; i++) if (start[i] !== magic[i]) throw fileFault('not-kms');
    if (start.length === 0) throw fileFault('not-kms');
    const fixed = await body.take(3);
    const [version, high, low] = fixed;
    if (version !== undefined && version !== fileVersion) throw fileFault('unknown-version');
    if (high === undefined || low === undefined) throw fileFault('cut-prelude');
    const length = (high << 8) | low;
    if (length === 0 || length > maxHeaderLength) throw fileFault('bad-header');
    const bytes = await body.take(length);
    if (bytes.length < length) throw fileFault('cut-prelude');
    const header = fromUtf8(bytes);
    if (header === undefined || !isHeader(header)) throw fileFault('bad-header');
    return { header, context: concatBytes(start, fixed, bytes), body };
  } catch (error) {
    body.giveUp();
    throw error;
  }
}

function isHeader(text: string): boolean {
  return text.length <= maxHeaderLength && /^[A-Za-z0-9_-]+$/.test(text);
}

const faults = {
  'not-kms': ['invalid', 'not a kms file: it does not start with "kms-file"', 'check that this is the right file'],
  'unknown-version': [
    'invalid',
    'the kms file has a format version that this program does not know',
    'use a newer version of kms',
  ],
  'cut-prelude': ['corrupt', 'the kms file ends before its encrypted part', 'get a complete copy of the file'],
  'bad-header': ['corrupt', 'the kms file has a malformed header', 'get an unaltered copy of the file'],
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

/** Which fault an error stands for, if any. */
export function faultOf(error: unknown): FileFault | undefined {
  if (!(error instanceof KmsError)) return undefined;
  return names.find((fault) => faults[fault][1] === error.message);
}

const names = Object.keys(faults) as FileFault[]; // the keys of an object that nothing adds to

/**
 * C2SP chunked encryption with AES-256-GCM: salt and commitment in front, a tag behind each chunk of 16 KiB, the last
 * one shorter.
 */
const overhead = { start: 24 + 32, chunk: 16 * 1024, tag: 16 };

interface FileInspection extends HeaderInspection {
  readonly fileVersion: number;
  readonly header: string;
  /** Bytes of the whole file. */
  readonly size: number;
  /** Bytes of what it holds; undefined where no file of this size can be whole. */
  readonly contentSize: number | undefined;
}

/** Reads the whole source. Throws as `readPrelude` does, and `corrupt` for a header of no known form. */
export async function inspectFile(source: ByteSource): Promise<FileInspection> {
  const { header, context, body } = await readPrelude(source);
  const inspection = inspectHeader(header);
  if (!inspection) {
    await body.return?.();
    throw fileFault('bad-header');
  }
  let length = 0;
  for await (const piece of body) length += piece.length;
  return { ...inspection, fileVersion, header, size: context.length + length, contentSize: contentSize(length) };
}

function contentSize(bodyLength: number): number | undefined {
  const sealed = bodyLength - overhead.start;
  const whole = overhead.chunk + overhead.tag;
  const last = sealed % whole;
  if (sealed < overhead.tag || last < overhead.tag) return undefined;
  return Math.floor(sealed / whole) * overhead.chunk + last - overhead.tag;
}
