// Ed25519 signatures (RFC 8032), verified by its strict rules rather than ZIP 215's lenient ones.
import { ed25519 } from '@noble/curves/ed25519.js';

/** The 64-byte signature of `message` by the key whose 32-byte seed is given. */
export function ed25519Sign(seed32: Uint8Array, message: Uint8Array): Uint8Array {
  return ed25519.sign(message, seed32);
}

/** Whether the signature fits; false, too, for a key or signature that is malformed. */
export function ed25519Verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  try {
    return ed25519.verify(signature, message, publicKey, { zip215: false });
  } catch {
    return false;
  }
}

/** The 32-byte public key of a seed. */
export function ed25519PublicKey(seed: Uint8Array): Uint8Array {
  return ed25519.getPublicKey(seed);
}
