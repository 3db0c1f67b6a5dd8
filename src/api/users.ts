// Users on the wire: their schema, and the endpoints that make, invite, read, change and delete them.
import { z } from 'zod';
import { safeApiKey } from './apikeys.ts';
import { endpoint, messageBody, missing } from './endpoint.ts';
import { sample } from './example-values.ts';
import { beginningOf, mostAlong, pageOf, pageQuery } from './page.ts';
import { flags, freeForm, idOf, pastTime, pathText, requiredText, shownFlags, text, trueParam } from './values.ts';

const tag = 'Users';
const unknown = missing('no such User');
const params = z.object({ username: pathText });

const username = {
  description: 'the name to log in with; unique but for case',
  examples: ['ada'],
  maxLength: 256,
  // No control characters, no space around it.
  pattern: '^[^\\s\\x00-\\x1f\\x7f-\\x9f](?:[^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f])?$',
};
const addressPart = '[^\\s@<>()\\[\\]\\\\,;:"\\x00-\\x1f\\x7f-\\x9f]+';
const email = {
  description: 'the e-mail address; unique but for case',
  examples: ['ada@example.org'],
  maxLength: 254,
  // Not `format: email`: generated clients would refuse addresses that are accepted here.
  pattern: `^${addressPart}@${addressPart}$`,
};
const firstName = { description: 'the first name', examples: ['Ada'] };
const lastName = { description: 'the last name', examples: ['Lovelace'] };
const displayName = {
  description: 'the name to show; made of first and last name where none was given',
  examples: ['Ada Lovelace'],
};
const props = freeForm.meta({ examples: [{ department: 'finance' }] });

export const user = z
  .object({
    id: idOf('user').meta({ description: 'id of the User', examples: [sample.userId] }),
    username: z.string().meta(username),
    firstName: z.string().meta(firstName),
    lastName: z.string().meta(lastName),
    displayName: z.string().meta(displayName),
    keys: z
      .array(idOf('apik'))
      .meta({ description: 'ids of the API keys that the user owns', examples: [[sample.apikeyId]] }),
    email: z.string().meta(email),
    flags: shownFlags,
    props,
    state: z.enum(['invited', 'active']).meta({
      description: '`invited` until the invite is completed: such a User cannot log in',
      examples: ['active'],
    }),
    lastLoginAt: pastTime.nullable().meta({
      description: 'the last login, in milliseconds since 1970-01-01T00:00:00Z; `null` before the first',
      examples: [sample.epochTime],
    }),
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
const createUserAnswer = z.object({
  user,
  password: z.string().meta({ description: 'generated; told once', examples: [sample.password] }),
});

const updateUserBody = z.object({
  email: requiredText.exactOptional().meta(email),
  firstName: requiredText.exactOptional().meta(firstName),
  lastName: requiredText.exactOptional().meta(lastName),
  flags: flags.exactOptional(),
  props: props.exactOptional(),
});

const inviteBody = z.object({
  username: requiredText.meta(username),
  email: requiredText.meta(email),
  firstName: requiredText.meta(firstName),
  lastName: requiredText.meta(lastName),
  flags: flags.exactOptional(),
  props: props.exactOptional(),
  unique: z
    .boolean()
    .exactOptional()
    .meta({ description: '`true`: refused if a User has this name, instead of making a new link', examples: [false] }),
});
const inviteAnswer = z.object({
  loginUrl: z.string().meta({
    format: 'uri',
    description: 'the link to hand to the person; it works once, for 7 days',
    examples: [`https://kms.example.org/console/invite?token=${sample.inviteToken}`],
  }),
});

export const userEndpoints = [
  endpoint('listUsers', {
    tag,
    summary: 'List Users, oldest first',
    access: { kind: 'flag', action: 'user.read' },
    query: z.object(pageQuery),
    answer: pageOf(user),
    paginated: true,
  }),
  endpoint('createUser', {
    tag,
    summary: 'Make a User with a generated password',
    access: { kind: 'flag', action: 'user.create' },
    body: createUserBody,
    answer: createUserAnswer,
  }),
  endpoint('getUser', {
    tag,
    summary: 'Read a User',
    access: { kind: 'flag', action: 'user.read', orSelf: 'username' },
    params,
    query: z.object({
      email: trueParam.exactOptional().meta({ description: '`true`: the path value is an e-mail address' }),
      apikeys: trueParam.exactOptional().meta({ description: '`true`: with the API keys that the user owns' }),
    }),
    answer: user.extend({
      apikeys: beginningOf(safeApiKey)
        .exactOptional()
        .meta({ description: `with \`apikeys=true\` and the flag \`apikey.read\`: at most ${mostAlong}` }),
    }),
    errors: unknown,
  }),
  endpoint('updateUser', {
    tag,
    summary: 'Change a User: each field that is named is replaced whole',
    access: { kind: 'flag', action: 'user.update', orSelf: 'username' },
    params,
    body: updateUserBody,
    answer: user,
    errors: unknown,
  }),
  endpoint('deleteUser', {
    tag,
    summary: 'Delete a User, end its sessions and disable its API keys',
    access: { kind: 'flag', action: 'user.delete' },
    params,
    query: z.object({ id: trueParam.exactOptional().meta({ description: '`true`: the path value is a User id' }) }),
    answer: messageBody,
    errors: unknown,
  }),
  endpoint('inviteUser', {
    tag,
    summary: 'Make a User that completes an invite to log in',
    access: { kind: 'flag', action: 'user.invite' },
    body: inviteBody,
    answer: inviteAnswer,
  }),
] as const;
