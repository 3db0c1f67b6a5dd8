// Keys of the key service, in full and as list items.
import { z } from 'zod';
import { sample } from './example-values.ts';
import { algorithm, freeForm, id } from './values.ts';

const keyId = id.meta({ description: 'id of the key', examples: [sample.keyId] });
const props = freeForm.meta({ examples: [{}] });

/** The key's 32 bytes, wrapped to the ring's public key. */
export const encryptedKeyData = z
  .object({
    encrypted: z
      .object({
        key: z
          .object({
            value: z.string().meta({
              description: "the key's 32 bytes, wrapped by HPKE: base64 of `enc` and ciphertext",
              examples: [sample.wrappedKey],
            }),
            encoding: z.enum(['base64']).meta({ description: 'how `value` is written' }),
          })
          .meta({ description: 'the wrapped key' }),
      })
      .meta({ description: 'what only the holder of the private key can open' }),
    iv: z.string().meta({ description: 'base64 of the HPKE base nonce', examples: [sample.iv] }),
  })
  .meta({ id: 'EncryptedKeyData', description: "a key's 32 bytes, wrapped to the KeyRing's public key" });

export const key = z
  .object({ id: keyId, type: algorithm, props, keyData: encryptedKeyData })
  .meta({ id: 'Key', description: 'a key of a KeyRing, wrapped' });
export type Key = z.output<typeof key>;

export const keyListItem = z
  .object({ id: keyId, type: algorithm, props })
  .meta({ id: 'KeyListItem', description: 'a key of a KeyRing, without its bytes' });
export type KeyListItem = z.output<typeof keyListItem>;
