// A ring's key pair on its owner's side: making one, the forms that people keep a private key in, and unwrapping with
// it the keys that encrypt and decrypt answer. The appliance tells a private key once, or never has it.
import { fromUtf8, toBase64 } from '../crypto/bytes.ts';
import { systemRandom } from '../crypto/random.ts';
import { unwrapRingKey as unwrap } from '../crypto/ring-key.ts';
import {
  generateX25519,
  parsePrivateKey,
  parsePublicKey,
  pkcs8ToPem,
  privateKeyToPkcs8,
  publicFromPrivate,
  publicKeyToSpki,
} from '../crypto/x25519.ts';
import { KmsError } from '../errors.ts';
import type { Key } from './methods.ts';

/** RFC 8410: sixteen bytes and the key. Neither this nor 32 is the length of any of the texts. */
const pkcs8Length = 48;

/**
 * PEM, base64 of PKCS#8 DER, base64 of the 32 bytes, one of these as the bytes of a file, PKCS#8 DER, or the 32 bytes.
 */
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

export interface RingKeyPair {
  /** PEM (PKCS#8), secret. Whoever loses it cannot decrypt any more: nobody else has it. */
  readonly privateKey: string;
  /** Base64 of SPKI DER, as `createKeyring` takes it and as the ring shows it. */
  readonly publicKey: string;
}

/** A new X25519 pair from 32 bytes of `random`; default: the platform's secure generator. */
export function generateRingKey(random: (length: number) => Uint8Array = systemRandom): RingKeyPair {
  const { privateKey, publicKey } = generateX25519(random);
  return { privateKey: pkcs8ToPem(privateKeyToPkcs8(privateKey)), publicKey: toBase64(publicKeyToSpki(publicKey)) };
}

interface UnwrapInput {
  /** The ring's private key, 32 raw bytes. */
  readonly privateKey: Uint8Array;
  /** As the key service answers it; not one whose `keyData` was left out because `knownKeys` named it. */
  readonly key: Pick<Key, 'id' | 'type'> & Partial<Pick<Key, 'keyData'>>;
}

/** The key's 32 bytes. Throws `invalid` for another ring's private key and for a key of an unknown kind. */
export function unwrapRingKey({ privateKey, key }: UnwrapInput): Uint8Array {
  if (!key.keyData) {
    throw new KmsError('invalid', `expected the wrapped bytes of ${key.id}, got a key without keyData`, {
      hint: 'ask without naming it in knownKeys',
    });
  }
  const { value, encoding } = key.keyData.encrypted.key;
  if (key.type !== 'aes256' || encoding !== 'base64') {
    throw new KmsError('invalid', `expected an aes256 key in base64, got ${key.type} in ${encoding}`, {
      hint: 'use a newer version of kms',
    });
  }
  const bytes = unwrap('ks', privateKey, key.id, value);
  if (bytes?.length !== 32) {
    throw new KmsError('invalid', `the private key does not open ${key.id}: it is not the private key of its ring`, {
      hint: "give the ring's own private key",
    });
  }
  return bytes;
}
