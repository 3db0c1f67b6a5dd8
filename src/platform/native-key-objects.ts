// Key objects and bytes as node:crypto has them.
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { KmsError } from '../errors.ts';

/** The same bytes as a plain array: a Buffer differs, as in a `slice` that copies nothing. */
export function plain(bytes: Buffer): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
}

export function privateKeyFrom(prefix: Uint8Array, bytes: Uint8Array, length: number): KeyObject {
  // Node ignores excess bytes.
  if (bytes.length !== length) throw new KmsError('internal', `expected ${length} bytes of a key, got ${bytes.length}`);
  const der = Buffer.concat([prefix, bytes]);
  try {
    return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  } finally {
    der.fill(0);
  }
}

/**
 * Caches the key object of each byte array, since making one takes as long as a signature. The key is collected with
 * its array.
 */
export function kept(make: (bytes: Uint8Array) => KeyObject): (bytes: Uint8Array) => KeyObject {
  const keys = new WeakMap<Uint8Array, KeyObject>();
  return (bytes) => {
    const known = keys.get(bytes);
    if (known) return known;
    const key = make(bytes);
    keys.set(bytes, key);
    return key;
  };
}

/** The key object of SPKI DER. */
export const publicKey = kept((spki) => createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' }));
