// Users, and what creates, invites and changes one.
import { z } from 'zod';
import { flags, shownFlags } from './flags.ts';
import { freeForm, id, requiredText, text } from './values.ts';

export const user = z.object({
  id,
  username: z.string(),
  firstName: z.string(),
  lastName: z.string(),
  displayName: z.string(),
  keys: z.array(id).meta({ description: 'ids of the API keys that the user owns' }),
  email: z.string(),
  flags: shownFlags,
  props: freeForm,
});
export type User = z.output<typeof user>;

export const createUserBody = z.object({
  username: requiredText,
  email: requiredText,
  firstName: requiredText,
  lastName: requiredText,
  displayName: text.exactOptional(),
  flags: flags.exactOptional(),
  props: freeForm.exactOptional(),
});
export const createUserAnswer = z.object({
  user,
  password: z.string().meta({ description: 'generated; told once' }),
});

export const updateUserBody = z.object({
  email: requiredText.exactOptional(),
  firstName: requiredText.exactOptional(),
  lastName: requiredText.exactOptional(),
  flags: flags.exactOptional(),
  props: freeForm.exactOptional(),
});

export const inviteBody = z.object({
  username: requiredText,
  email: requiredText,
  firstName: requiredText,
  lastName: requiredText,
  flags: flags.exactOptional(),
  props: freeForm.exactOptional(),
});
export const inviteAnswer = z.object({ loginUrl: z.string() });
