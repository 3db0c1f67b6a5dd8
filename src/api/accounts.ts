// Accounts on the wire: their schema, and the endpoints that make, read, change and delete them.
import { z } from 'zod';
import { longestUid } from '../model/names.ts';
import { safeApiKey } from './apikeys.ts';
import { endpoint, missing } from './endpoint.ts';
import { sample } from './example-values.ts';
import { beginningOf, mostAlong, pageOf, pageQuery } from './page.ts';
import { freeForm, idOf, pathText, requiredText, text, timestamp, trueParam } from './values.ts';

const tag = 'Accounts';
const unknown = missing('no such Account');
const byUid = z.object({ uid: trueParam.exactOptional().meta({ description: '`true`: the path value is the uid' }) });

const accountId = idOf('acct').meta({ description: 'id of the Account', examples: [sample.accountId] });
const uid = requiredText
  // Such an Account could not be requested: in a path these names mean something else.
  .refine((value) => value !== '.' && value !== '..', 'expected a name')
  .meta({
    description: `the name under which your own programs know the Account, in at most ${longestUid} characters; unique, upper and lower case differ`,
    maxLength: longestUid,
    pattern: '^(?:[^.\\x00]|\\.[^.\\x00]|\\.\\.[^\\x00])[^\\x00]*$',
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

const createAccountBody = z.object({
  uid,
  notes: notes.exactOptional(),
  props: props.exactOptional(),
});

const updateAccountBody = z.object({
  uid: uid.exactOptional(),
  notes: notes.exactOptional(),
  props: props.exactOptional(),
});

export const accountEndpoints = [
  endpoint('createAccount', {
    tag,
    summary: 'Make an Account',
    access: { kind: 'flag', action: 'account.create' },
    body: createAccountBody,
    answer: account,
  }),
  endpoint('listAccounts', {
    tag,
    summary: 'List Accounts, oldest first',
    access: { kind: 'flag', action: 'account.read' },
    query: z.object(pageQuery),
    answer: pageOf(account),
    paginated: true,
  }),
  endpoint('getAccount', {
    tag,
    summary: 'Read an Account',
    access: { kind: 'flag', action: 'account.read' },
    params: z.object({ id: pathText }),
    query: byUid.extend({ apikeys: trueParam.exactOptional().meta({ description: '`true`: with its API keys' }) }),
    answer: account.extend({
      apikeys: beginningOf(safeApiKey)
        .exactOptional()
        .meta({ description: `with \`apikeys=true\` and the flag \`apikey.read\`: at most ${mostAlong}` }),
    }),
    errors: unknown,
  }),
  endpoint('updateAccount', {
    tag,
    summary: 'Change an Account: each field that is named is replaced whole',
    access: { kind: 'flag', action: 'account.update' },
    params: z.object({ id: pathText }),
    body: updateAccountBody,
    answer: account,
    errors: unknown,
  }),
  endpoint('deleteAccount', {
    tag,
    summary: 'Delete an Account and its API keys',
    access: { kind: 'flag', action: 'account.delete' },
    params: z.object({ id: pathText }),
    query: byUid,
    answer: account,
    errors: unknown,
  }),
  endpoint('listAccountApiKeys', {
    tag,
    summary: "List an Account's API keys, oldest first",
    access: { kind: 'flag', action: 'apikey.read' },
    params: z.object({ accountId: pathText }),
    query: byUid.extend(pageQuery),
    answer: pageOf(safeApiKey),
    paginated: true,
    errors: unknown,
  }),
] as const;
