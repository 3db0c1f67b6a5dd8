// Keys of the key service, in full and as list items.
import { z } from 'zod';
import { algorithm, freeForm, id } from './values.ts';

/** The key's 32 bytes, wrapped to the ring's public key. */
export const encryptedKeyData = z.object({
  encrypted: z.object({ key: z.object({ value: z.string(), encoding: z.enum(['base64']) }) }),
  iv: z.string(),
});

export const key = z.object({ id, type: algorithm, props: freeForm, keyData: encryptedKeyData });
export type Key = z.output<typeof key>;

export const keyListItem = z.object({ id, type: algorithm, props: freeForm });
export type KeyListItem = z.output<typeof keyListItem>;
