// SHA-256, HMAC-SHA256 and HKDF (RFC 5869) in plain form. Those on the path of every request have faster forms in
// fast-hash.ts.
import { hkdf } from '@noble/hashes/hkdf.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 as nobleSha256 } from '@noble/hashes/sha2.js';
import { utf8 } from './bytes.ts';
import { native, type RunningSha256 } from './primitives.ts';

/** SHA-256, 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return nobleSha256(bytes);
}

export function runningSha256(): RunningSha256 {
  const running = native().runningSha256?.();
  if (running) return running;
  const state = nobleSha256.create();
  return {
    update: (bytes) => void state.update(bytes),
    digest: () => state.digest(),
  };
}

/** HMAC-SHA256 (RFC 2104) under `key`, 32 bytes for each message. */
export function hmacSha256(key: Uint8Array): (message: Uint8Array) => Uint8Array {
  return (message) => hmac(nobleSha256, key, message);
}

/** The same of one message that comes in pieces; `key` has at most 64 bytes. */
export function runningHmacSha256(key: Uint8Array): RunningSha256 {
  const block = (pad: number): Uint8Array => {
    const bytes = new Uint8Array(64).fill(pad);
    for (let at = 0; at < key.length; at++) bytes[at] = (key[at] ?? 0) ^ pad;
    return bytes;
  };
  const inner = runningSha256();
  inner.update(block(0x36));
  return {
    update: (bytes) => inner.update(bytes),
    digest() {
      const outer = runningSha256();
      outer.update(block(0x5c));
      outer.update(inner.digest());
      return outer.digest();
    },
  };
}

/** `length` bytes derived from `key` for the purpose `label`: HKDF-SHA256 with an empty salt and the label as info. */
export function hkdfSha256(key: Uint8Array, label: string, length: number): Uint8Array {
  return hkdf(nobleSha256, key, undefined, utf8(label), length);
}

/** The same with a salt. */
export function hkdfSha256Salted(key: Uint8Array, salt: Uint8Array, label: string, length: number): Uint8Array {
  return hkdf(nobleSha256, key, salt, utf8(label), length);
}
