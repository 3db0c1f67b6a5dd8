// The key that encrypt and decrypt answer, unwrapped with the ring's private key.
import { unwrapRingKey as unwrap } from '../crypto/ring-key.ts';
import { KmsError } from '../errors.ts';
import type { Key } from './methods.ts';

export interface UnwrapInput {
  /** The ring's private key, 32 raw bytes. */
  readonly privateKey: Uint8Array;
  /** As the key service answers it. */
  readonly key: Pick<Key, 'id' | 'type' | 'keyData'>;
}

/** The key's 32 bytes. Throws `invalid` for another ring's private key and for a key of an unknown kind. */
export function unwrapRingKey({ privateKey, key }: UnwrapInput): Uint8Array {
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
