// API keys on the wire: the safe form, the secret, returned once, and the endpoints that make, read, change, delete and
// validate keys.
import { z } from 'zod';
import { maxActionLength, unnamedAction } from '../model/actions.ts';
import { lastTime } from '../model/timestamp.ts';
import { emptyBody, endpoint, missing } from './endpoint.ts';
import { sample } from './example-values.ts';
import { pageOf, pageQuery } from './page.ts';
import { proof } from './proofs.ts';
import {
  addressPattern,
  callerId,
  epochTime,
  flags,
  freeForm,
  idOf,
  pastTime,
  pathText,
  requiredText,
  ringNameOrNone,
  shownFlags,
  text,
  textList,
  timestamp,
  trueParam,
  wordPattern,
} from './values.ts';

const tag = 'API keys';
const unknown = missing('no such API key');

/** Maximum length of a key's name, in code points. */
const longestName = 128;

const keyid = idOf('apik').meta({ description: 'id of the API key', examples: [sample.apikeyId] });
const active = z.boolean().meta({ description: '`false`: the key is refused', examples: [true] });
const references = z
  .object({
    accountId: idOf('acct').meta({ description: 'the Account that owns the key', examples: [sample.accountId] }),
  })
  .meta({ description: 'what the key belongs to' });
const secret = {
  description: 'the secret; told once, only a hash of it is stored; empty for a key that was made without one',
  examples: [sample.apikey],
};
const props = freeForm.meta({ examples: [{ host: 'batch-1' }] });

const name = text
  .refine(
    (value) => value.length <= 2 * longestName && [...value].length <= longestName,
    `has at most ${longestName} characters`,
  )
  // Refuses characters that would disguise the name or control a terminal.
  .refine((value) => !/\p{C}/u.test(value), 'expected no control characters and none that cannot be seen')
  .meta({
    description: `what people call the key, in at most ${longestName} characters, none of them a control character; may be empty`,
    examples: ['nightly batch'],
    maxLength: longestName,
    pattern: '^\\P{C}*$',
  });
const expiresAt = epochTime
  .min(0)
  .max(lastTime)
  .nullable()
  .meta({
    description: 'from when on the key is as if inactive, in milliseconds since 1970-01-01T00:00:00Z; `null`: never',
    examples: [1798761600000],
  });
const allowedAddresses = textList(100, addressPattern).meta({
  description:
    'IPv4 and IPv6 addresses and CIDR blocks that requests with the key may come from, at most 100; none: from anywhere',
  examples: [['192.0.2.0/24', '2001:db8::7']],
});

/** Optional fields of a request that makes or changes a key, beside its flags. */
const given = {
  name: name.exactOptional(),
  expiresAt: expiresAt.exactOptional(),
  allowedAddresses: allowedAddresses.exactOptional(),
};

const shown = {
  keyid,
  name: z.string().meta({ description: 'what people call the key; may be empty', examples: ['nightly batch'] }),
  active,
  expiresAt,
  allowedAddresses: z.array(z.string()).meta({
    description: 'addresses and blocks that requests with the key may come from, in one form; none: from anywhere',
    examples: [['192.0.2.0/24', '2001:db8::7']],
  }),
  references,
  flags: shownFlags,
  props,
  createdAt: timestamp,
  createdBy: callerId.nullable().meta({
    description:
      'id of the API key or User that made it, `local` for the administrator at the machine; `null` where that was not noted',
    examples: [sample.userId],
  }),
  lastUsedAt: pastTime.nullable().meta({
    description:
      'the last granted request with the key, or validation of it, to a minute, in milliseconds since 1970-01-01T00:00:00Z; `null` before the first',
    examples: [sample.epochTime],
  }),
};

export const safeApiKey = z
  .object({ ...shown, updatedAt: timestamp })
  .meta({ id: 'SafeApiKey', description: 'an API key without its secret' });
export type SafeApiKey = z.output<typeof safeApiKey>;

export const fullApiKey = safeApiKey
  .extend({ key: z.string().meta(secret) })
  .meta({ id: 'ApiKey', description: 'an API key with its secret' });
export type FullApiKey = z.output<typeof fullApiKey>;

const createApiKeyBody = z.object({
  accountId: requiredText.meta({ description: 'the Account that the key is for', examples: [sample.accountId] }),
  flags: flags.exactOptional(),
  props: props.exactOptional(),
  secret: z
    .boolean()
    .exactOptional()
    .meta({
      description: '`false`: the key has no secret, and is known by the proofs that are added to it',
      examples: [true],
    }),
  active: active.exactOptional().meta({ description: '`false`: the key is refused until it is made active' }),
  unique: z
    .boolean()
    .exactOptional()
    .meta({ description: '`true`: refused if another API key has this name', examples: [false] }),
  ...given,
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
  ...given,
};

const updateApiKeyBySecretBody = z.object({
  ...change,
  key: requiredText.meta({ description: 'the secret of the API key to change', examples: [sample.apikey] }),
});
const updateApiKeyBody = z.object({
  ...change,
  apikeyid: requiredText.meta({ description: 'id of the API key to change', examples: [sample.apikeyId] }),
  owner: requiredText.exactOptional().meta({
    description: 'id of the User that the key shall belong to, with whom it ends',
    examples: [sample.userId],
  }),
});

const updatedApiKey = safeApiKey.extend({ op });
const updatedApiKeyWithSecret = updatedApiKey.extend({
  key: z.string().meta({ pattern: wordPattern, description: 'the secret, as it was given', examples: [sample.apikey] }),
});

const validateBody = z.object({
  key: requiredText.meta({ description: 'the secret of the API key to check', examples: [sample.apikey] }),
  activity: z
    .object({
      action: text.exactOptional().meta({
        description: `what the key is used for, in at most ${maxActionLength} characters; none of the names that the service records itself; \`${unnamedAction}\`, where absent or empty`,
        examples: ['invoice.print'],
      }),
      apikeyId: text.exactOptional().meta({
        description: 'accepted and ignored: the record is that of the validated key',
        examples: [sample.apikeyId],
      }),
      createdAt: epochTime.min(0).max(lastTime).exactOptional().meta({
        description: 'when it happened, in milliseconds since 1970-01-01T00:00:00Z; now, where absent',
      }),
      props: freeForm.exactOptional().meta({ examples: [{ invoice: 17 }] }),
      ringname: text.exactOptional().meta({
        pattern: ringNameOrNone,
        description: 'the KeyRing that it is about, by a name that one can have',
        examples: ['payroll'],
      }),
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
const validateAnswer = z.object({
  valid: z
    .boolean()
    .meta({ description: 'the key exists in this tenant, is active and has not expired', examples: [true] }),
});

export const apikeyEndpoints = [
  endpoint('validateApiKey', {
    changes: false,
    tag,
    summary: 'Tell whether an API key exists and is active, and store an activity for it',
    access: { kind: 'flag', action: 'apikey.validate' },
    body: validateBody,
    answer: validateAnswer,
  }),
  endpoint('listApiKeys', {
    tag,
    summary: 'List API keys, oldest first',
    access: { kind: 'flag', action: 'apikey.read' },
    query: z.object(pageQuery),
    answer: pageOf(safeApiKey),
    paginated: true,
  }),
  endpoint('createApiKey', {
    tag,
    summary: 'Make an API key; the answer alone holds its secret',
    access: { kind: 'flag', action: 'apikey.create' },
    query: z.object({ uid: trueParam.exactOptional().meta({ description: '`true`: accountId is the uid' }) }),
    body: createApiKeyBody,
    answer: fullApiKey,
    errors: missing('no such Account'),
  }),
  endpoint('updateApiKeyBySecret', {
    tag,
    summary: 'Change the API key that has this secret',
    access: { kind: 'flag', action: 'apikey.update' },
    body: updateApiKeyBySecretBody,
    answer: updatedApiKeyWithSecret,
    errors: unknown,
  }),
  endpoint('updateApiKey', {
    tag,
    summary: 'Change the API key that has this id',
    access: { kind: 'flag', action: 'apikey.update' },
    body: updateApiKeyBody,
    answer: updatedApiKey,
    errors: unknown,
  }),
  endpoint('getApiKey', {
    tag,
    summary: 'Read an API key',
    access: { kind: 'flag', action: 'apikey.read' },
    params: z.object({ apikeyid: pathText }),
    query: z.object({ proofs: trueParam.exactOptional().meta({ description: '`true`: with its proofs' }) }),
    answer: safeApiKey.extend({
      proofs: z.array(proof).exactOptional().meta({ description: 'if they were asked for; at most 20' }),
    }),
    errors: unknown,
  }),
  endpoint('deleteApiKey', {
    tag,
    summary: 'Delete the API key that has this secret',
    access: { kind: 'flag', action: 'apikey.delete' },
    params: z.object({ apikey: pathText }),
    answer: emptyBody,
    errors: unknown,
  }),
  endpoint('deleteApiKeyById', {
    tag,
    summary: 'Delete the API key that has this id',
    access: { kind: 'flag', action: 'apikey.delete' },
    params: z.object({ keyid: pathText }),
    answer: emptyBody,
    errors: unknown,
  }),
  endpoint('getApiKeyProps', {
    tag,
    summary: 'Read an API key with its props',
    access: { kind: 'flag', action: 'apikey.read' },
    params: z.object({ apikeyid: pathText }),
    answer: safeApiKey,
    errors: unknown,
  }),
  endpoint('searchKeyringApiKeys', {
    tag,
    summary: 'List the API keys whose flags name a KeyRing, oldest first',
    access: {
      kind: 'flag',
      action: 'apikey.read',
      about: { from: 'path', param: 'keyringname', byId: true },
    },
    params: z.object({ keyringname: pathText }),
    query: z.object({
      id: trueParam.exactOptional().meta({ description: '`true`: keyringname is the KeyRing id' }),
      wildcard: trueParam.exactOptional().meta({ description: '`true`: also those that a wildcard lets in' }),
      ...pageQuery,
    }),
    answer: pageOf(safeApiKey),
    paginated: true,
    errors: missing('no such KeyRing'),
  }),
] as const;
