// Reading a JSON body within its limit. What is wrong with it is handed on, not thrown: a caller without the right to ask is
// told that first.
import { parseExactly } from '../api/exact-json.ts';
import { KmsError } from '../errors.ts';
import type { AppContext } from './deps.ts';
import { headerOf } from './header.ts';

export const defaultBodyLimit = 1024 * 1024;

/** A body that was read, or why it was not. */
export type BodyRead = { readonly value: unknown; readonly problem?: undefined } | { readonly problem: KmsError };

const utf8 = new TextDecoder('utf-8', { fatal: true });

export async function readJsonBody(c: AppContext, limit: number): Promise<BodyRead> {
  if (!isJson(headerOf(c, 'content-type'))) {
    return { problem: new KmsError('invalid', 'the body needs the header Content-Type: application/json') };
  }
  let bytes: ArrayBuffer | Uint8Array | undefined;
  try {
    const declared = headerOf(c, 'content-length');
    // The HTTP parser holds the body to its declared length.
    if (declared === undefined) bytes = await readStream(c.req.raw.body, limit);
    else if (Number(declared) <= limit) bytes = await c.req.raw.arrayBuffer();
  } catch {
    return { problem: new KmsError('invalid', 'the body could not be read to its end') };
  }
  if (!bytes || bytes.byteLength > limit)
    return { problem: new KmsError('too-large', `the body is over the limit of ${limit} bytes`) };
  try {
    return { value: parseExactly(utf8.decode(bytes)) };
  } catch {
    return { problem: new KmsError('invalid', 'the body is not valid JSON in UTF-8') };
  }
}

function isJson(contentType: string | undefined): boolean {
  if (contentType === 'application/json') return true;
  if (contentType === undefined) return false;
  const semicolon = contentType.indexOf(';');
  const type = semicolon < 0 ? contentType : contentType.slice(0, semicolon);
  return type.trim().toLowerCase() === 'application/json';
}

/** Undefined when there are more than `limit`. */
async function readStream(body: ReadableStream<Uint8Array> | null, limit: number): Promise<Uint8Array | undefined> {
  if (!body) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > limit) return undefined;
    chunks.push(chunk);
  }
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}
