// Accounts, which own API keys.
import { z } from 'zod';
import { sample } from './example-values.ts';
import { freeForm, id, requiredText, text, timestamp } from './values.ts';

const accountId = id.meta({ description: 'id of the Account', examples: [sample.accountId] });
const uid = requiredText.meta({
  description: 'the name under which your own programs know the Account; unique, upper and lower case differ',
  examples: ['billing'],
});
const notes = text.meta({ description: 'anything that people should know', examples: ['Nightly invoices'] });
const props = freeForm.meta({ examples: [{ costCentre: 4711 }] });

export const account = z
  .object({
    id: accountId,
    uid: z.string().meta({ description: 'the Account UID', examples: ['billing'] }),
    notes: z.string().meta({ description: 'anything that people should know', examples: ['Nightly invoices'] }),
    props,
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Account', description: 'what owns API keys: a program, a team, a customer' });
export type Account = z.output<typeof account>;

export const createAccountBody = z.object({
  uid,
  notes: notes.exactOptional(),
  props: props.exactOptional(),
});

export const updateAccountBody = z.object({
  uid: uid.exactOptional(),
  notes: notes.exactOptional(),
  props: props.exactOptional(),
});
