// Users, and what creates, invites and changes one.
import { z } from 'zod';
import { sample } from './example-values.ts';
import { flags, shownFlags } from './flags.ts';
import { freeForm, id, requiredText, text } from './values.ts';

const username = { description: 'the name to log in with; unique but for case', examples: ['ada'] };
const email = { description: 'the e-mail address; unique but for case', examples: ['ada@example.org'] };
const firstName = { description: 'the first name', examples: ['Ada'] };
const lastName = { description: 'the last name', examples: ['Lovelace'] };
const displayName = {
  description: 'the name to show; made of first and last name where none was given',
  examples: ['Ada Lovelace'],
};
const props = freeForm.meta({ examples: [{ department: 'finance' }] });

export const user = z
  .object({
    id: id.meta({ description: 'id of the User', examples: [sample.userId] }),
    username: z.string().meta(username),
    firstName: z.string().meta(firstName),
    lastName: z.string().meta(lastName),
    displayName: z.string().meta(displayName),
    keys: z.array(id).meta({ description: 'ids of the API keys that the user owns', examples: [[sample.apikeyId]] }),
    email: z.string().meta(email),
    flags: shownFlags,
    props,
  })
  .meta({ id: 'User', description: 'a person who can log in' });
export type User = z.output<typeof user>;

export const createUserBody = z.object({
  username: requiredText.meta(username),
  email: requiredText.meta(email),
  firstName: requiredText.meta(firstName),
  lastName: requiredText.meta(lastName),
  displayName: text.exactOptional().meta(displayName),
  flags: flags.exactOptional(),
  props: props.exactOptional(),
});
export const createUserAnswer = z.object({
  user,
  password: z.string().meta({ description: 'generated; told once', examples: [sample.password] }),
});

export const updateUserBody = z.object({
  email: requiredText.exactOptional().meta(email),
  firstName: requiredText.exactOptional().meta(firstName),
  lastName: requiredText.exactOptional().meta(lastName),
  flags: flags.exactOptional(),
  props: props.exactOptional(),
});

export const inviteBody = z.object({
  username: requiredText.meta(username),
  email: requiredText.meta(email),
  firstName: requiredText.meta(firstName),
  lastName: requiredText.meta(lastName),
  flags: flags.exactOptional(),
  props: props.exactOptional(),
});
export const inviteAnswer = z.object({
  loginUrl: z.string().meta({
    description: 'the link to hand to the person; it works once, for 7 days',
    examples: [`https://kms.example.org/console/invite?token=${sample.inviteToken}`],
  }),
});
