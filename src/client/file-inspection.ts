// Inspection of a kms file without a key: how it was made, the content of its headers, the length of its content.
import { type HeaderInspection, inspectHeader } from '../crypto/header.ts';
import type { ByteSource } from './byte-streams.ts';
import { fileFault, readPrelude } from './file-format.ts';

/**
 * Overhead of C2SP chunked encryption with AES-256-GCM: salt and commitment at the start, a tag for each chunk of 16
 * KiB, the last chunk being shorter.
 */
const overhead = { start: 24 + 32, chunk: 16 * 1024, tag: 16 };

export interface FileInspection {
  readonly fileVersion: 1 | 2;
  /** One per ring, in the file's order. */
  readonly headers: readonly InspectedHeader[];
  /** Bytes of the whole file. */
  readonly size: number;
  /** Bytes of its content; undefined if no complete file has this size. */
  readonly contentSize: number | undefined;
}

interface InspectedHeader extends HeaderInspection {
  readonly header: string;
  /** Id of the KEM that seals the file's key; undefined in version 1. */
  readonly kem: number | undefined;
}

/** Id of the Asset in a header, if any. */
export function assetIn(header: string): string | undefined {
  return inspectHeader(header)?.assetId;
}

/**
 * Reads the whole source, or only its beginning if `size` gives its length in bytes. Throws as `readPrelude` does, and
 * `corrupt` for a header of unknown form.
 */
export async function inspectFile(source: ByteSource, size?: number): Promise<FileInspection> {
  const { fileVersion, header, stanzas, context, body } = await readPrelude(source);
  const told = stanzas.length > 0 ? stanzas : [{ header, kem: undefined }];
  const headers = told.flatMap(({ header, kem }) => {
    const inspection = inspectHeader(header);
    return inspection ? [{ ...inspection, header, kem }] : [];
  });
  // Headers say how the file was made, and must agree with the file's version.
  if (headers.length < told.length || headers.some(({ isRecipient }) => isRecipient !== (fileVersion === 2))) {
    await body.return?.();
    throw fileFault('bad-header');
  }
  let length = 0;
  if (size === undefined) for await (const piece of body) length += piece.length;
  else {
    body.giveUp();
    length = size - context.length;
  }
  return { fileVersion, headers, size: context.length + length, contentSize: contentSize(length) };
}

function contentSize(bodyLength: number): number | undefined {
  const sealed = bodyLength - overhead.start;
  const whole = overhead.chunk + overhead.tag;
  const last = sealed % whole;
  if (sealed < overhead.tag || last < overhead.tag) return undefined;
  return Math.floor(sealed / whole) * overhead.chunk + last - overhead.tag;
}
