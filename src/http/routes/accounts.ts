// Routes of Accounts.
import type { accountEndpoints } from '../../api/endpoints/accounts.ts';
import {
  createAccount,
  deleteAccount,
  getAccount,
  listAccountApiKeys,
  listAccounts,
  updateAccount,
} from '../../core/accounts.ts';
import type { RoutesOf } from '../route.ts';
import { accountRef } from './refs.ts';

export const accountRoutes: RoutesOf<(typeof accountEndpoints)[number]['id']> = {
  createAccount: (ctx, { body }) => createAccount(ctx, body),
  listAccounts: (ctx, { page }) => listAccounts(ctx, { page }),
  getAccount: (ctx, { params, query }) => getAccount(ctx, { account: accountRef(params.id, query.uid) }),
  updateAccount: (ctx, { params, body }) => updateAccount(ctx, { account: params, ...body }),
  deleteAccount: (ctx, { params, query }) => deleteAccount(ctx, { account: accountRef(params.id, query.uid) }),
  listAccountApiKeys: (ctx, { params, query, page }) =>
    listAccountApiKeys(ctx, { account: accountRef(params.accountId, query.uid), page }),
};
