// What a kms file says of itself, without a key: how it was made, what its headers hold, how long its content is.
import { type HeaderInspection, inspectHeader } from '../crypto/header.ts';
import type { ByteSource } from './byte-streams.ts';
import { fileFault, readPrelude } from './file-format.ts';

/**
 * C2SP chunked encryption with AES-256-GCM: salt and commitment in front, a tag behind each chunk of 16 KiB, the last
 * one shorter.
 */
const overhead = { start: 24 + 32, chunk: 16 * 1024, tag: 16 };

export interface FileInspection {
  readonly fileVersion: 1 | 2;
  /** One for each ring, in the file's order. */
  readonly headers: readonly InspectedHeader[];
  /** Bytes of the whole file. */
  readonly size: number;
  /** Bytes of what it holds; undefined where no file of this size can be whole. */
  readonly contentSize: number | undefined;
}

interface InspectedHeader extends HeaderInspection {
  readonly header: string;
  /** The id of the KEM by which the file's key is sealed; undefined in version 1. */
  readonly kem: number | undefined;
}

/** The id of the Asset that a header carries, if any. */
export function assetIn(header: string): string | undefined {
  return inspectHeader(header)?.assetId;
}

/**
 * Reads the whole source, or its beginning alone where `size` says how many bytes it has. Throws as `readPrelude` does,
 * and `corrupt` for a header of no known form.
 */
export async function inspectFile(source: ByteSource, size?: number): Promise<FileInspection> {
  const { fileVersion, header, stanzas, context, body } = await readPrelude(source);
  const told = stanzas.length > 0 ? stanzas : [{ header, kem: undefined }];
  const headers = told.flatMap(({ header, kem }) => {
    const inspection = inspectHeader(header);
    return inspection ? [{ ...inspection, header, kem }] : [];
  });
  // What a header says of how the file was made, the file's version says too.
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
