// ML-DSA-65 signatures (FIPS 204), pure and without a context string, which a quantum computer cannot forge. Signing is
// deterministic, so that the same head always gives the same text.
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js';
import { concatBytes, equalBytes } from './bytes.ts';

const publicKeyLength = 1952;
export const mlDsaSignatureLength = 3309;

/** SPKI DER up to the public key (RFC 9881 §4). */
const spkiPrefix = Uint8Array.of(
  ...[0x30, 0x82, 0x07, 0xb2, 0x30, 0x0b, 0x06, 0x09, 0x60, 0x86, 0x48],
  ...[0x01, 0x65, 0x03, 0x04, 0x03, 0x12, 0x03, 0x82, 0x07, 0xa1, 0x00],
);

/** Signs with the key of a 32-byte seed; returns the signature and the public key as SPKI DER. */
export function mlDsaSign(seed: Uint8Array, message: Uint8Array): { spki: Uint8Array; signature: Uint8Array } {
  const { publicKey, secretKey } = ml_dsa65.keygen(seed);
  try {
    const signature = ml_dsa65.sign(message, secretKey, { extraEntropy: false });
    return { spki: concatBytes(spkiPrefix, publicKey), signature };
  } finally {
    secretKey.fill(0);
  }
}

/** SPKI DER of a seed's public key. */
export function mlDsaSpki(seed: Uint8Array): Uint8Array {
  const { publicKey, secretKey } = ml_dsa65.keygen(seed);
  secretKey.fill(0);
  return concatBytes(spkiPrefix, publicKey);
}

/** Whether these bytes are a public key in SPKI DER: any 1952 bytes after the prefix are one. */
export function isMlDsaSpki(spki: Uint8Array): boolean {
  const { length } = spkiPrefix;
  return spki.length === length + publicKeyLength && equalBytes(spki.subarray(0, length), spkiPrefix);
}

/** Whether the signature is valid; also false for a malformed key or signature. */
export function mlDsaVerify(spki: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (!isMlDsaSpki(spki) || signature.length !== mlDsaSignatureLength) return false;
  try {
    return ml_dsa65.verify(signature, message, spki.subarray(spkiPrefix.length));
  } catch {
    return false;
  }
}
