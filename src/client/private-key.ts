// A ring's private key in the forms that people keep it in. The appliance tells it once and never has it again.

import { toBase64 } from '../crypto/encoding.ts';
import {
  parsePrivateKey,
  parsePublicKey,
  pkcs8ToPem,
  privateKeyToPkcs8,
  publicFromPrivate,
  publicKeyToSpki,
} from '../crypto/x25519.ts';
import { KmsError } from '../errors.ts';

/** The 32 raw bytes of a private key given as PEM, base64 PKCS#8 DER or base64. `source` names it in the error. */
export function readPrivateKey(text: string, source: string): Uint8Array {
  const raw = parsePrivateKey(text);
  if (raw) return raw;
  throw new KmsError('invalid', `${source} holds no X25519 private key`, {
    hint: 'expected PEM (PKCS#8), base64 of PKCS#8 DER, or base64 of the 32 bytes',
  });
}

/** The public half, as the API answers it (base64 SPKI DER). */
export function publicKeyOf(privateKey: Uint8Array): string {
  return toBase64(publicKeyToSpki(publicFromPrivate(privateKey)));
}

/** A private key as the API answers it (base64 PKCS#8 DER) as PEM. */
export function privateKeyPem(base64: string): string {
  return pkcs8ToPem(privateKeyToPkcs8(readPrivateKey(base64, 'the answer')));
}

/** Whether the text is a public key that a ring can be made with. */
export function isPublicKey(text: string): boolean {
  return parsePublicKey(text) !== undefined;
}
