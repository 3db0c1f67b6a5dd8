// API keys: the safe form without the secret, the full form with it, and the ways to change one.
import { z } from 'zod';
import { sample } from './example-values.ts';
import { flags, shownFlags } from './flags.ts';
import { epochTime, freeForm, id, requiredText, text, timestamp } from './values.ts';

const keyid = id.meta({ description: 'id of the API key', examples: [sample.apikeyId] });
const active = z.boolean().meta({ description: '`false`: the key is refused', examples: [true] });
const references = z
  .object({ accountId: id.meta({ description: 'the Account that owns the key', examples: [sample.accountId] }) })
  .meta({ description: 'what the key belongs to' });
const secret = { description: 'the secret; told once, only a hash of it is stored', examples: [sample.apikey] };
const props = freeForm.meta({ examples: [{ host: 'batch-1' }] });

export const safeApiKey = z
  .object({
    keyid,
    active,
    references,
    flags: shownFlags,
    props,
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'SafeApiKey', description: 'an API key without its secret' });
export type SafeApiKey = z.output<typeof safeApiKey>;

export const fullApiKey = safeApiKey
  .extend({ key: z.string().meta(secret) })
  .meta({ id: 'ApiKey', description: 'an API key with its secret' });
export type FullApiKey = z.output<typeof fullApiKey>;

export const createApiKeyBody = z.object({
  accountId: requiredText.meta({ description: 'the Account that the key is for', examples: [sample.accountId] }),
  flags: flags.exactOptional(),
  props: props.exactOptional(),
});

const op = z.enum(['delete', 'merge', 'replace']).meta({
  description:
    'what becomes of `flags` and `props`: `merge` sets what is given, deep in `props`; `replace` puts what is given in place of the whole field; `delete` removes the named entries',
  examples: ['merge'],
});

const change = {
  op,
  active: active.exactOptional(),
  references: z
    .object({
      accountId: requiredText.exactOptional().meta({
        description: 'the Account that the key moves to',
        examples: [sample.accountId],
      }),
    })
    .exactOptional()
    .meta({ description: 'what the key shall belong to' }),
  flags: flags.exactOptional(),
  props: props.exactOptional(),
};

export const updateApiKeyBySecretBody = z.object({
  ...change,
  key: requiredText.meta({ description: 'the secret of the API key to change', examples: [sample.apikey] }),
});
export const updateApiKeyBody = z.object({
  ...change,
  apikeyid: requiredText.meta({ description: 'id of the API key to change', examples: [sample.apikeyId] }),
});

export const updatedApiKey = z.object({
  keyid,
  op,
  active,
  references,
  flags: shownFlags,
  props,
});
export const updatedApiKeyWithSecret = updatedApiKey.extend({
  key: z.string().meta({ description: 'the secret, as it was given', examples: [sample.apikey] }),
});

export const validateBody = z.object({
  key: requiredText.meta({ description: 'the secret of the API key to check', examples: [sample.apikey] }),
  activity: z
    .object({
      action: text.exactOptional().meta({ description: 'what the key is used for', examples: ['invoice.print'] }),
      apikeyId: text.exactOptional().meta({
        description: 'accepted and ignored: the record is that of the validated key',
        examples: [sample.apikeyId],
      }),
      createdAt: epochTime.exactOptional().meta({
        description: 'when it happened, in milliseconds since 1970-01-01T00:00:00Z; now, where absent',
      }),
      props: freeForm.exactOptional().meta({ examples: [{ invoice: 17 }] }),
      ringname: text.exactOptional().meta({ description: 'the KeyRing that it is about', examples: ['payroll'] }),
      validAction: z
        .boolean()
        .exactOptional()
        .meta({
          description: 'whether it was allowed; what `valid` says, where absent',
          examples: [true],
        }),
    })
    .exactOptional()
    .meta({ description: 'a record to store for the validated key' }),
});
export const validateAnswer = z.object({
  valid: z.boolean().meta({ description: 'the key exists in this tenant and is active', examples: [true] }),
});
