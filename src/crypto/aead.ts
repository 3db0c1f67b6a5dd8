// XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha): what the appliance seals its own bytes with, under random 24-byte nonces.
import { xchacha20poly1305 } from '@noble/ciphers/chacha.js';

/** Ciphertext and 16-byte tag. The caller sees to it that no nonce is used twice under a key. */
export function sealXChaCha(
  key: Uint8Array,
  nonce24: Uint8Array,
  plaintext: Uint8Array,
  associated: Uint8Array,
): Uint8Array {
  return xchacha20poly1305(key, nonce24, associated).encrypt(plaintext);
}

/** The plaintext, or undefined when key, nonce, associated data or any sealed byte is another. */
export function openXChaCha(
  key: Uint8Array,
  nonce24: Uint8Array,
  sealed: Uint8Array,
  associated: Uint8Array,
): Uint8Array | undefined {
  if (sealed.length < 16) return undefined;
  const cipher = xchacha20poly1305(key, nonce24, associated);
  try {
    return cipher.decrypt(sealed);
  } catch {
    return undefined;
  }
}
