// What an encrypted file says of itself, without a key and without a proof of any of it.
import { type HeaderInspection, inspectHeader } from '../crypto/header.ts';
import type { ByteSource } from './byte-source.ts';
import { fileFault } from './file-faults.ts';
import { fileVersion, readPrelude } from './file-format.ts';

/** C2SP chunked encryption with AES-256-GCM: salt and commitment in front, a tag behind each chunk of 16 KiB, the last one shorter. */
const overhead = { start: 24 + 32, chunk: 16 * 1024, tag: 16 };

export interface FileInspection extends HeaderInspection {
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
