// Accounts, which own API keys.
import { z } from 'zod';
import { freeForm, id, requiredText, text, timestamp } from './values.ts';

export const account = z.object({
  id,
  uid: z.string(),
  notes: z.string(),
  props: freeForm,
  createdAt: timestamp,
  updatedAt: timestamp,
});
export type Account = z.output<typeof account>;

export const createAccountBody = z.object({
  uid: requiredText,
  notes: text.exactOptional(),
  props: freeForm.exactOptional(),
});

export const updateAccountBody = z.object({
  uid: requiredText.exactOptional(),
  notes: text.exactOptional(),
  props: freeForm.exactOptional(),
});
