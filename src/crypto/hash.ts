// SHA-256, and HMAC-SHA256 for keys that are used many times. Both are on the path of every request, so one hash state
// is kept and used again: making one costs as much as the hashing. `digest` wipes what it held.
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 as nobleSha256 } from '@noble/hashes/sha2.js';

const fresh = nobleSha256.create();
const state = nobleSha256.create();

/** SHA-256, 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return fresh._cloneInto(state).update(bytes).digest();
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
  return (message) => {
    const inner = iHash._cloneInto(state).update(message).digest();
    return oHash._cloneInto(state).update(inner).digest();
  };
}
