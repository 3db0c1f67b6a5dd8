// Key agreement by node:crypto (OpenSSL), for wrapping and unwrapping keys of rings. Separate from the other
// primitives, since commands need only this and start without the rest.

import * as nodeCrypto from 'node:crypto';
import { createPublicKey, diffieHellman, type KeyObject } from 'node:crypto';
import { concatBytes, equalBytes, toHex } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/fast-hash.ts';
import { native, type Primitives, putIn } from '../crypto/primitives.ts';
import { systemRandom } from '../crypto/random.ts';
import { decapsulateXWing, encapsulateXWing, xWingPublicKey } from '../crypto/x-wing.ts';
import { plain, privateKeyFrom } from './native-key-objects.ts';

/** Available since Node 24.7. */
const { encapsulate, decapsulate } = nodeCrypto as Partial<typeof nodeCrypto>;

/** The last bytes of the public key's SPKI DER, which are the key itself. */
function publicBytes(key: KeyObject, length: number): Uint8Array {
  return plain(createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-length));
}

/** X25519 (RFC 8410 §7 and §4), and ML-KEM-768 with its seed (RFC 9935 §6). */
const x25519Prefix = Buffer.from('302e020100300506032b656e04220420', 'hex');
const x25519SpkiPrefix = Buffer.from('302a300506032b656e032100', 'hex');
const mlKemSpkiPrefix = Buffer.from('308204b2300b0609608648016503040402038204a100', 'hex');
const mlKemPrefix = Buffer.from('3054020100300b060960864801650304040204428040', 'hex');

function x25519Shared(privateKey: Uint8Array, publicKey: Uint8Array): Uint8Array | undefined {
  const own = privateKeyFrom(x25519Prefix, privateKey, 32);
  if (publicKey.length !== 32) return undefined;
  try {
    const der = Buffer.concat([x25519SpkiPrefix, publicKey]);
    const other = createPublicKey({ key: der, format: 'der', type: 'spki' });
    return plain(diffieHellman({ privateKey: own, publicKey: other }));
  } catch {
    return undefined;
  }
}

/** The primitives for wrapping and unwrapping keys of rings. */
export const nodeAgreement: Partial<Primitives> = {
  x25519PublicKey: (privateKey) => publicBytes(privateKeyFrom(x25519Prefix, privateKey, 32), 32),
  x25519Shared,
  ...(encapsulate && {
    mlKemEncapsulate(publicKey) {
      const der = Buffer.concat([mlKemSpkiPrefix, publicKey]);
      const { ciphertext, sharedKey } = encapsulate(createPublicKey({ key: der, format: 'der', type: 'spki' }));
      return { cipherText: plain(ciphertext), sharedSecret: plain(sharedKey) };
    },
  }),
  ...(decapsulate && {
    mlKemPublicKey: (seed) => publicBytes(privateKeyFrom(mlKemPrefix, seed, 64), 1184),
    mlKemDecapsulate: (seed, ciphertext) => plain(decapsulate(privateKeyFrom(mlKemPrefix, seed, 64), ciphertext)),
  }),
};

const counted = (length: number): Uint8Array => Uint8Array.from({ length }, (_, at) => at);

/**
 * Digest for X-Wing, including X25519: the public key of a seed, and the secret that the seed decapsulates from
 * arbitrary bytes.
 */
const knownAnswer = '0000f8db796bac7880de9468fc4f1ec5aa5dab816ba663c8897da56f699f02e8';

/** Takes less than a millisecond if OpenSSL does all of it; noble's first call would take many. */
function isRight(): boolean {
  const seed = counted(32);
  const publicKey = xWingPublicKey(seed);
  const { enc, shared } = encapsulateXWing(publicKey, systemRandom);
  const opened = decapsulateXWing(seed, enc);
  const other = decapsulateXWing(seed, counted(enc.length));
  if (!opened || !other || !equalBytes(opened, shared)) return false;
  return toHex(sha256(concatBytes(publicKey, other))) === knownAnswer;
}

/** Once per process, even if the test failed. */
const tested = new WeakSet<Partial<Primitives>>();

/**
 * For a command, which does little else: only key agreement, without calling noble for the test. If agreement is
 * already set, or fails its test, nothing changes.
 */
export function startAgreement(offered: Partial<Primitives> = nodeAgreement): void {
  const before = native();
  if (before.x25519Shared || tested.has(offered)) return;
  tested.add(offered);
  putIn({ ...before, ...offered });
  try {
    if (isRight()) return;
  } catch {
    // noble does it then.
  }
  putIn(before);
}
