// An access token as a browser keeps it for the console: sealed in a cookie that no script can read, under a key that
// only the console's pages have. Neither alone is a credential: browsers send a cookie to every port of a host, and a
// script from another port may set one there.
import { openXChaCha, sealXChaCha } from '../crypto/aead.ts';
import { concatBytes, fromBase64Url, fromUtf8, toBase64Url, utf8 } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import type { World } from './context.ts';

/** Format version and purpose. */
const version = 'k1.';
const purpose = utf8('kms console token 1');
const nonceLength = 24;

/** The key that a page of the console sends: 32 bytes in base64url. Undefined for any other text. */
export function keepingKey(text: string): Uint8Array | undefined {
  const key = text.length === 43 ? fromBase64Url(text) : undefined;
  return key?.length === 32 ? key : undefined;
}

/** Name of the cookie. It differs for each key, so that appliances on other ports of a host do not overwrite it. */
export function keptName(key: Uint8Array): string {
  return `kms-${toBase64Url(sha256(concatBytes(purpose, key))).slice(0, 16)}`;
}

/** `k1.` and base64url of nonce (24 bytes), ciphertext and tag of XChaCha20-Poly1305. */
export function sealToken(key: Uint8Array, token: string, random: World['random']): string {
  const nonce = random(nonceLength);
  return version + toBase64Url(concatBytes(nonce, sealXChaCha(key, nonce, utf8(token), purpose)));
}

/** Undefined if the text was not sealed under this key. */
export function openToken(key: Uint8Array, sealed: string): string | undefined {
  if (!sealed.startsWith(version) || sealed.length > 512) return undefined;
  const bytes = fromBase64Url(sealed.slice(version.length));
  if (!bytes || bytes.length <= nonceLength) return undefined;
  const token = openXChaCha(key, bytes.subarray(0, nonceLength), bytes.subarray(nonceLength), purpose);
  return token && fromUtf8(token);
}
