// The asym service's rings and keys.
import { z } from 'zod';
import { algorithm, freeForm, id, requiredText, timestamp } from './values.ts';

export const asymKeyring = z.object({
  id,
  name: z.string(),
  displayName: z.string(),
  activeKey: id,
  activeAlgorithm: algorithm,
  publicKey: z.string(),
  createdAt: timestamp,
  updatedAt: timestamp,
});
export type AsymKeyRing = z.output<typeof asymKeyring>;

export const asymKey = z.object({
  id,
  type: z.enum(['AES256']),
  props: freeForm,
  keyData: z.object({ key: z.string() }),
});
export type AsymKey = z.output<typeof asymKey>;

export const createAsymKeyringBody = z.object({
  name: requiredText,
  algo: algorithm.exactOptional(),
  props: freeForm.exactOptional(),
  keyProps: freeForm.exactOptional(),
});
export const createAsymKeyringAnswer = z.object({ ring: asymKeyring, key: asymKey, privateKey: z.string() });
export const rotateAsymAnswer = z.object({ key: asymKey });
