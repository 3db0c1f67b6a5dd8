// What stands in front of the encrypted part of a kms file: a magic string, the format's version and the header that the
// appliance gave. All of it is the context of the encryption, so that none of it can be changed. See docs/file-format.md.
import { concatBytes } from '../crypto/bytes.ts';
import { fromUtf8, utf8 } from '../crypto/encoding.ts';
import { KmsError } from '../errors.ts';
import { type ByteReader, type ByteSource, byteReader } from './byte-source.ts';
import { fileFault } from './file-faults.ts';

const magic = utf8('kms-file');
export const fileVersion = 1;
const maxHeaderLength = 1024;

/** Magic string, version, length of the header (two bytes, big-endian), header. Throws `invalid` for what is no header. */
export function encodePrelude(header: string): Uint8Array {
  if (!isHeader(header)) throw new KmsError('invalid', 'expected a header of 1 to 1024 base64url characters');
  return concatBytes(magic, Uint8Array.of(fileVersion, header.length >>> 8, header.length), utf8(header));
}

export interface Prelude {
  readonly header: string;
  /** Every byte that stands before the encrypted part. */
  readonly context: Uint8Array;
  /** The encrypted part, still to be read. `giveUp` cancels the source. */
  readonly body: ByteReader;
}

/**
 * Reads the prelude and leaves the rest. Throws `invalid` for what is no kms file or has a newer version, `corrupt` for a
 * prelude that is cut or malformed.
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
