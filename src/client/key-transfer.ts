// Managed keys on their way in and out, at the caller's end: a key is wrapped to the appliance's wrapping key before it
// crosses the network, and an exported one gets a form that other software reads.
import { toBase64 } from '../crypto/bytes.ts';
import { wrapToRsa } from '../crypto/managed/key-wrap.ts';
import { importPublicKey, keyDerOfPem } from '../crypto/managed/keys.ts';
import { isPem, pemText, toPem } from '../crypto/pem.ts';
import { systemRandom } from '../crypto/random.ts';
import type { AnswerTo } from './methods.ts';

const wrappingType = 'rsa-4096';

/** The key wrapped with RSA-OAEP-SHA256 and AES-KWP, base64. The platform's RSA must be there. */
export function wrapForImport(key: Uint8Array, { publicKey }: AnswerTo<'getWrappingKey'>): string {
  const spki = importPublicKey(wrappingType, 'der', keyDerOfPem(publicKey, 'public'));
  return toBase64(wrapToRsa(wrappingType, spki, 'sha2-256', key, systemRandom));
}

/** A public key from a file as the interface takes it: PEM, or base64 of DER. */
export function publicKeyText(bytes: Uint8Array): string {
  const text = pemText(bytes);
  return isPem(text) ? text : toBase64(bytes);
}

/** PEM of an exported asymmetric key, PKCS #8. */
export function exportedPem(der: Uint8Array): string {
  return toPem('PRIVATE KEY', der);
}
