// Routes of API keys.
import type { apikeyEndpoints } from '../../api/endpoints/apikeys.ts';
import { searchApiKeysByRing } from '../../core/api-key-search.ts';
import { updateApiKeyById, updateApiKeyBySecret } from '../../core/api-key-update.ts';
import { createApiKey, deleteApiKey, getApiKey, listApiKeys } from '../../core/api-keys.ts';
import { validateApiKey } from '../../core/validate.ts';
import type { RoutesOf } from '../route.ts';
import { accountRef, isOn, ringRef } from './refs.ts';

export const apikeyRoutes: RoutesOf<(typeof apikeyEndpoints)[number]['id']> = {
  validateApiKey: (ctx, { body }) => validateApiKey(ctx, body),
  listApiKeys: (ctx, { page }) => listApiKeys(ctx, { page }),
  createApiKey: (ctx, { query, body: { accountId, ...rest } }) =>
    createApiKey(ctx, { account: accountRef(accountId, query.uid), ...rest }),
  updateApiKeyBySecret: (ctx, { body }) => updateApiKeyBySecret(ctx, body),
  updateApiKey: (ctx, { body }) => updateApiKeyById(ctx, body),
  getApiKey: (ctx, { params }) => getApiKey(ctx, { keyid: params.apikeyid }),
  deleteApiKey: (ctx, { params }) => deleteApiKey(ctx, { key: params.apikey }),
  getApiKeyProps: (ctx, { params }) => getApiKey(ctx, { keyid: params.apikeyid }),
  searchKeyringApiKeys: (ctx, { params, query, page }) =>
    searchApiKeysByRing(ctx, {
      ring: ringRef(params.keyringname, query.id),
      wildcard: isOn(query.wildcard),
      page,
    }),
};
