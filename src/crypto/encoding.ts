/// <reference lib="esnext.typedarrays" />
// Bytes to text and back: base64, base64url, hex, UTF-8. Every `from*` is strict and canonical: of all texts that could
// stand for some bytes exactly one is taken, so that a changed spare bit is a change.

import { base64ByText, bytesByText } from './base64-by-text.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const urlOptions = { alphabet: 'base64url', omitPadding: true } as const;
const strict = { lastChunkHandling: 'strict' } as const;
const strictUrl = { alphabet: 'base64url', lastChunkHandling: 'strict' } as const;

/** Typed as always there, which it is not yet. */
const isBuiltIn = 'fromBase64' in Uint8Array;

/** Base64 with padding (RFC 4648 §4). */
export function toBase64(bytes: Uint8Array): string {
  return isBuiltIn ? bytes.toBase64() : base64ByText(bytes);
}

/** The bytes of padded base64; undefined for any text that `toBase64` does not make. */
export function fromBase64(text: string): Uint8Array | undefined {
  if (!isBuiltIn) return bytesByText(text);
  if (text.length % 4 !== 0) return undefined;
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  try {
    const bytes = Uint8Array.fromBase64(text, strict);
    // The built-in decoder skips white space; then there are fewer bytes than the length promises.
    return bytes.length === (text.length / 4) * 3 - padding ? bytes : undefined;
  } catch {
    return undefined;
  }
}

/** Base64url without padding (RFC 4648 §5). */
export function toBase64Url(bytes: Uint8Array): string {
  return bytes.toBase64(urlOptions);
}

/** The bytes of unpadded base64url; undefined for any text that `toBase64Url` does not make. */
export function fromBase64Url(text: string): Uint8Array | undefined {
  const rest = text.length % 4;
  if (rest === 1) return undefined;
  try {
    const bytes = Uint8Array.fromBase64(rest === 0 ? text : text + (rest === 2 ? '==' : '='), strictUrl);
    return bytes.length === (text.length * 3) >>> 2 ? bytes : undefined;
  } catch {
    return undefined;
  }
}

/** Fills `bytes` with those of unpadded base64url; false for any text that does not fill it, or is not canonical. */
export function intoBytesOfBase64Url(text: string, bytes: Uint8Array): boolean {
  if (text.length % 4 !== 0) return false;
  try {
    const { read, written } = bytes.setFromBase64(text, strictUrl);
    return read === text.length && written === bytes.length;
  } catch {
    return false;
  }
}

/** Lower-case hex. */
export function toHex(bytes: Uint8Array): string {
  return bytes.toHex();
}

/** The bytes of lower-case hex; undefined for any other text. */
export function fromHex(text: string): Uint8Array | undefined {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/.test(text)) return undefined;
  return Uint8Array.fromHex(text);
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
