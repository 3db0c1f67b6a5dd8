// A ring's private key in the forms that people keep it in. The appliance tells it once and never has it again.
import { fromUtf8, toBase64 } from '../crypto/encoding.ts';
import {
  parsePrivateKey,
  parsePublicKey,
  pkcs8ToPem,
  privateKeyToPkcs8,
  publicFromPrivate,
  publicKeyToSpki,
} from '../crypto/x25519.ts';
import { KmsError } from '../errors.ts';

/** RFC 8410: sixteen bytes and the key. Neither this nor 32 is the length of any of the texts. */
const pkcs8Length = 48;

/** PEM, base64 of PKCS#8 DER, base64 of the 32 bytes, one of these as the bytes of a file, PKCS#8 DER, or the 32 bytes. */
export type PrivateKey = string | Uint8Array;

/** The 32 raw bytes of a private key. `source` names it in the error. Throws `invalid` for anything else. */
export function readPrivateKey(key: PrivateKey, source: string): Uint8Array {
  // A program without types may give what it found nothing under.
  const raw = parsePrivateKey(typeof key === 'string' ? key : textOf(key ?? new Uint8Array()));
  if (raw) return raw;
  throw new KmsError('invalid', `${source} holds no X25519 private key`, {
    hint: 'expected PEM (PKCS#8), base64 of PKCS#8 DER, or base64 of the 32 bytes',
  });
}

function textOf(bytes: Uint8Array): string {
  const isBinary = bytes.length === 32 || bytes.length === pkcs8Length;
  return isBinary ? toBase64(bytes) : (fromUtf8(bytes) ?? '');
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
