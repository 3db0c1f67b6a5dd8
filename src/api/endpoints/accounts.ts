// Accounts.
import { z } from 'zod';
import { account, createAccountBody, updateAccountBody } from '../account.ts';
import { safeApiKey } from '../apikey.ts';
import { endpoint } from '../endpoint.ts';
import { errorBody } from '../error.ts';
import { pageOf, pageQuery } from '../page.ts';
import { pathText, trueParam } from '../values.ts';

const tag = 'Accounts';
const unknown = { 404: { description: 'no such Account', schema: errorBody } };
const byUid = z.object({ uid: trueParam.exactOptional().meta({ description: '`true`: the path value is the uid' }) });

export const accountEndpoints = [
  endpoint({
    id: 'createAccount',
    method: 'POST',
    path: '/auth/accounts',
    tag,
    summary: 'Make an Account',
    access: { kind: 'flag', action: 'account.create' },
    body: createAccountBody,
    answer: account,
  }),
  endpoint({
    id: 'listAccounts',
    method: 'GET',
    path: '/auth/accounts',
    tag,
    summary: 'List Accounts, oldest first',
    access: { kind: 'flag', action: 'account.read' },
    query: z.object(pageQuery),
    answer: pageOf(account),
    paginated: true,
  }),
  endpoint({
    id: 'getAccount',
    method: 'GET',
    path: '/auth/accounts/{id}',
    tag,
    summary: 'Read an Account',
    access: { kind: 'flag', action: 'account.read' },
    params: z.object({ id: pathText }),
    query: byUid,
    answer: account,
    errors: unknown,
  }),
  endpoint({
    id: 'updateAccount',
    method: 'PATCH',
    path: '/auth/accounts/{id}',
    tag,
    summary: 'Change an Account: each field that is named is replaced whole',
    access: { kind: 'flag', action: 'account.update' },
    params: z.object({ id: pathText }),
    body: updateAccountBody,
    answer: account,
    errors: unknown,
  }),
  endpoint({
    id: 'deleteAccount',
    method: 'DELETE',
    path: '/auth/accounts/{id}',
    tag,
    summary: 'Delete an Account and its API keys',
    access: { kind: 'flag', action: 'account.delete' },
    params: z.object({ id: pathText }),
    query: byUid,
    answer: account,
    errors: unknown,
  }),
  endpoint({
    id: 'listAccountApiKeys',
    method: 'GET',
    path: '/auth/accounts/{accountId}/apikeys',
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
