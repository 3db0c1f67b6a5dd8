// SHA-256, and HMAC-SHA256 for keys that are used many times.
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 as nobleSha256 } from '@noble/hashes/sha2.js';

/** SHA-256, 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return nobleSha256(bytes);
}

/** SHA-256 of bytes that come in pieces. */
export interface RunningSha256 {
  update(bytes: Uint8Array): void;
  /** 32 bytes; nothing may be added after it. */
  digest(): Uint8Array;
}

export function runningSha256(): RunningSha256 {
  const state = nobleSha256.create();
  return {
    update: (bytes) => void state.update(bytes),
    digest: () => state.digest(),
  };
}

/**
 * HMAC-SHA256 under `key`. The key's two blocks are hashed once, here; each call starts from copies of that state, which
 * saves two of the four or five compressions of a short message.
 */
export function hmacSha256(key: Uint8Array): (message: Uint8Array) => Uint8Array {
  const { iHash, oHash } = hmac.create(nobleSha256, key);
  const worker = nobleSha256.create();
  return (message) => {
    const mac = new Uint8Array(32);
    iHash._cloneInto(worker).update(message).digestInto(mac);
    oHash._cloneInto(worker).update(mac).digestInto(mac);
    return mac;
  };
}
