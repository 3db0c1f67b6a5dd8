// The secret of an API key: `kms_`, 43 base62 characters from 256 random bits, and a 6-character checksum by which a mistyped
// key is refused without a look-up and a secret scanner knows a leaked one. Only its hash is ever stored.
import { crc32 } from './crc32.ts';
import { toBase64Url, utf8 } from './encoding.ts';
import { sha256 } from './hash.ts';

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const bodyEnd = 4 + 43;
const totalLength = bodyEnd + 6;

const values = new Uint8Array(128).fill(255);
for (let n = 0; n < 62; n++) values[digits.charCodeAt(n)] = n;

/** A new secret from 32 bytes of `random`. */
export function newApiKeySecret(random: (length: number) => Uint8Array): string {
  const body = `kms_${base62(random(32), 43)}`;
  const sum = crc32(utf8(body));
  return body + base62(Uint8Array.of(sum >>> 24, sum >>> 16, sum >>> 8, sum), 6);
}

/** Whether the text has the form of a secret and its checksum fits. It says nothing about whether the key exists. */
export function isWellFormedApiKey(text: string): boolean {
  if (text.length !== totalLength || !text.startsWith('kms_')) return false;
  // As bytes, since the text is a part of a header, whose characters are slow to get at one by one.
  const isAscii = encoder.encodeInto(text, scratch).written === totalLength;
  const isWellFormed = isAscii && checksumFits(scratch);
  scratch.fill(0, 0, totalLength * 3);
  return isWellFormed;
}

function checksumFits(bytes: Uint8Array): boolean {
  let sum = 0;
  for (let i = 4; i < totalLength; i++) {
    const value = values[bytes[i] ?? 0] ?? 255;
    if (value === 255) return false;
    if (i >= bodyEnd) sum = sum * 62 + value;
  }
  return sum === crc32(bytes, bodyEnd);
}

/** What is stored of a secret (API key or token): base64url of its SHA-256. Fit for high-entropy secrets only. */
export function hashSecret(text: string): string {
  // A buffer for each secret would cost as much as the hash. What is longer than any of ours is no hot path.
  if (text.length * 3 > scratch.length) return toBase64Url(sha256(utf8(text)));
  const { written } = encoder.encodeInto(text, scratch);
  const hash = toBase64Url(sha256(scratch.subarray(0, written)));
  scratch.fill(0, 0, written);
  return hash;
}

const encoder = new TextEncoder();
const scratch = new Uint8Array(1024);

/** The bytes as one big-endian number in base62, zero-padded to `length` characters. */
export function base62(bytes: Uint8Array, length: number): string {
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
