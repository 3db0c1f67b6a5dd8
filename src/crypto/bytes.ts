/// <reference lib="esnext.typedarrays" />
// Bytes: joining, comparing, and text encodings (base64, base64url, hex, UTF-8). Every `from*` is strict and canonical:
// exactly one text is accepted for given bytes, so that even a changed spare bit is noticed. @scure/base also serves
// platforms without the base64 and hex methods of Uint8Array: Node 20 to 24, and browsers from before autumn 2025.
import { base64, base64urlnopad, hex } from '@scure/base';

/** A new array with all parts in order. */
export function concatBytes(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  let length = 0;
  for (const part of parts) length += part.length;
  const joined = new Uint8Array(length);
  let offset = 0;
  for (const part of parts) {
    joined.set(part, offset);
    offset += part.length;
  }
  return joined;
}

/** Whether both hold the same bytes, in a time that depends on the lengths alone. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && equalParts(a, 0, b, 0, a.length);
}

/** The same for `length` bytes from an offset in each. */
export function equalParts(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number, length: number): boolean {
  let difference = 0;
  for (let i = 0; i < length; i++) difference |= (a[aStart + i] ?? 0) ^ (b[bStart + i] ?? 0);
  return difference === 0;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const urlOptions = { alphabet: 'base64url', omitPadding: true } as const;
const strict = { lastChunkHandling: 'strict' } as const;
const looseUrl = { alphabet: 'base64url', lastChunkHandling: 'loose' } as const;

/** Whether the platform has the base64 and hex methods of Uint8Array; the types claim that it always does. */
const isBuiltIn = 'fromBase64' in Uint8Array;

/** Up to this many bytes are stored inline with the array, which takes a quarter of the time of a separate buffer. */
const fewBytes = 64;

/** Base64 with padding (RFC 4648 §4). */
export function toBase64(bytes: Uint8Array): string {
  return base64.encode(bytes);
}

/** The bytes of padded base64; undefined for any text that `toBase64` does not make. */
export function fromBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0) return undefined;
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  // The built-in decoder skips white space, which then leaves fewer bytes than the length promises.
  const length = (text.length / 4) * 3 - padding;
  try {
    if (!isBuiltIn) return base64.decode(text);
    if (length > fewBytes) {
      const bytes = Uint8Array.fromBase64(text, strict);
      return bytes.length === length ? bytes : undefined;
    }
    const bytes = new Uint8Array(length);
    const { read, written } = bytes.setFromBase64(text, strict);
    return read === text.length && written === length ? bytes : undefined;
  } catch {
    return undefined;
  }
}

/** Base64url without padding (RFC 4648 §5). */
export function toBase64Url(bytes: Uint8Array): string {
  return isBuiltIn ? bytes.toBase64(urlOptions) : base64urlnopad.encode(bytes);
}

/** The bytes of unpadded base64url; undefined for any text that `toBase64Url` does not make. */
export function fromBase64Url(text: string): Uint8Array | undefined {
  const bytes = new Uint8Array((text.length * 3) >>> 2);
  return readBase64Url(text, bytes) ? bytes : undefined;
}

/**
 * Writes the bytes to the start of `into`, as many as the text's length says. Returns false for a text that
 * `toBase64Url` does not make, or one that does not fit. For hot paths: an array of more than 64 bytes is costly to
 * make.
 */
export function readBase64Url(text: string, into: Uint8Array): boolean {
  const rest = text.length % 4;
  const length = (text.length * 3) >>> 2;
  if (rest === 1 || length > into.length) return false;
  // Spare bits of the last character must be zero.
  if (rest !== 0 && !(rest === 2 ? 'AQgw' : 'AEIMQUYcgkosw048').includes(text.charAt(text.length - 1))) return false;
  try {
    if (!isBuiltIn) {
      into.set(base64urlnopad.decode(text));
      return true;
    }
    // White space and padding, which the decoder accepts, yield fewer bytes than the length promises.
    return into.setFromBase64(text, looseUrl).written === length;
  } catch {
    return false;
  }
}

/** Lower-case hex. */
export function toHex(bytes: Uint8Array): string {
  return hex.encode(bytes);
}

/** The bytes of lower-case hex; undefined for any other text. */
export function fromHex(text: string): Uint8Array | undefined {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/.test(text)) return undefined;
  return hex.decode(text);
}

/** UTF-8; a lone surrogate becomes U+FFFD. */
export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** The text of well-formed UTF-8 (a byte order mark is kept); undefined for anything else. */
export function fromUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}
