// Secrets by which callers authenticate: API keys (`kms_`, 43 base62 characters from 256 random bits, and a 6-character
// checksum that lets a mistyped key be refused without a look-up and a secret scanner recognise a leaked one), and the
// tokens of sessions, invites and resets. Only a hash of each is ever stored.
import { toBase64Url, utf8 } from './bytes.ts';
import { sha256 } from './hash.ts';

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const bodyEnd = 4 + 43;
/** Length of an API key in characters. */
export const apiKeyLength = bodyEnd + 6;
export const apiKeyPrefix = 'kms_';

const values = new Uint8Array(128).fill(255);
for (let n = 0; n < 62; n++) values[digits.charCodeAt(n)] = n;

/** A new secret from 32 bytes of `random`. */
export function newApiKeySecret(random: (length: number) => Uint8Array): string {
  const body = apiKeyPrefix + base62(random(32), 43);
  const sum = crc32(utf8(body));
  return body + base62(Uint8Array.of(sum >>> 24, sum >>> 16, sum >>> 8, sum), 6);
}

/** Whether the text is formed like an API key and its checksum is right. It does not tell whether the key exists. */
export function isWellFormedApiKey(text: string): boolean {
  return text.length === apiKeyLength && text.startsWith(apiKeyPrefix) && checksumFits(utf8(text));
}

/** Whether an API key's text, as bytes, has only valid digits and a checksum that fits. */
export function checksumFits(bytes: Uint8Array): boolean {
  let sum = 0;
  for (let i = 4; i < apiKeyLength; i++) {
    const value = values[bytes[i] ?? 0] ?? 255;
    if (value === 255) return false;
    if (i >= bodyEnd) sum = sum * 62 + value;
  }
  return sum === crc32(bytes, bodyEnd);
}

/** The stored form of a secret (API key or token): base64url of its SHA-256. Fit for high-entropy secrets only. */
export function hashSecret(text: string): string {
  return toBase64Url(sha256(utf8(text)));
}

/** The bytes as one big-endian number in base62, zero-padded to `length` characters. */
function base62(bytes: Uint8Array, length: number): string {
  const number = Uint8Array.from(bytes);
  let text = '';
  for (let i = 0; i < length; i++) {
    let remainder = 0;
    for (let j = 0; j < number.length; j++) {
      const value = remainder * 256 + (number[j] ?? 0);
      number[j] = Math.floor(value / 62);
      remainder = value % 62;
    }
    text = digits.charAt(remainder) + text;
  }
  return text;
}

const prefixes = { session: 'kmsat_', workload: 'kmswt_', invite: 'kmsin_', reset: 'kmsrs_' } as const;
const body = /^[0-9A-Za-z]{43}$/;

export type TokenKind = keyof typeof prefixes;

/** A new token from 32 bytes of `random`. */
export function newToken(kind: TokenKind, random: (length: number) => Uint8Array): string {
  return prefixes[kind] + base62(random(32), 43);
}

/** Whether the text is formed like such a token; if not, no look-up is needed. */
export function isWellFormedToken(kind: TokenKind, text: string): boolean {
  return text.startsWith(prefixes[kind]) && body.test(text.slice(prefixes[kind].length));
}

const table = new Uint32Array(256);
for (let n = 0; n < 256; n++) {
  let c = n;
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
  table[n] = c;
}

/** CRC-32 of the first `length` bytes, by default all, as an unsigned number. */
export function crc32(bytes: Uint8Array, length = bytes.length): number {
  let c = 0xffffffff;
  for (let i = 0; i < length; i++) c = (table[(c ^ (bytes[i] ?? 0)) & 0xff] ?? 0) ^ (c >>> 8);
  return ~c >>> 0;
}
