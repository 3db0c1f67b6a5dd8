// API keys: the safe form without the secret, the full form with it, and the ways to change one.
import { z } from 'zod';
import { flags, shownFlags } from './flags.ts';
import { epochTime, freeForm, id, requiredText, text, timestamp } from './values.ts';

const references = z.object({ accountId: id });

export const safeApiKey = z.object({
  keyid: id,
  active: z.boolean(),
  references,
  flags: shownFlags,
  props: freeForm,
  createdAt: timestamp,
  updatedAt: timestamp,
});
export type SafeApiKey = z.output<typeof safeApiKey>;

export const fullApiKey = safeApiKey.extend({
  key: z.string().meta({ description: 'the secret; told once, only a hash of it is stored' }),
});
export type FullApiKey = z.output<typeof fullApiKey>;

export const createApiKeyBody = z.object({
  accountId: requiredText,
  flags: flags.exactOptional(),
  props: freeForm.exactOptional(),
});

const op = z.enum(['delete', 'merge', 'replace']);

const change = {
  op,
  active: z.boolean().exactOptional(),
  references: z.object({ accountId: requiredText.exactOptional() }).exactOptional(),
  flags: flags.exactOptional(),
  props: freeForm.exactOptional(),
};

export const updateApiKeyBySecretBody = z.object({ ...change, key: requiredText });
export const updateApiKeyBody = z.object({ ...change, apikeyid: requiredText });

export const updatedApiKey = z.object({
  keyid: id,
  op,
  active: z.boolean(),
  references,
  flags: shownFlags,
  props: freeForm,
});
export const updatedApiKeyWithSecret = updatedApiKey.extend({ key: z.string() });

export const validateBody = z.object({
  key: requiredText,
  activity: z
    .object({
      action: text.exactOptional(),
      apikeyId: text.exactOptional(),
      createdAt: epochTime.exactOptional(),
      props: freeForm.exactOptional(),
      ringname: text.exactOptional(),
      validAction: z.boolean().exactOptional(),
    })
    .exactOptional(),
});
export const validateAnswer = z.object({ valid: z.boolean() });
