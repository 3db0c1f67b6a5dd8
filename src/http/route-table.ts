// Every endpoint's route, by the endpoint's id. The compiler checks the table against the declarations: none is
// missing, none too many. Routes with work around their operation have files of their own.
import type { accountEndpoints } from '../api/accounts.ts';
import type { apikeyEndpoints } from '../api/apikeys.ts';
import type { assetEndpoints } from '../api/assets.ts';
import type { asymEndpoints } from '../api/asym.ts';
import type { encryptionEndpoints } from '../api/encryption.ts';
import type { EndpointId } from '../api/endpoints.ts';
import type { keyringEndpoints } from '../api/keyrings.ts';
import type { tangEndpoints } from '../api/tang.ts';
import { createAccount, deleteAccount, listAccounts, updateAccount } from '../core/accounts.ts';
import {
  createApiKey,
  deleteApiKey,
  deleteApiKeyById,
  getApiKey,
  listAccountApiKeys,
  listApiKeys,
  ringToSearch,
  searchApiKeysByRing,
  updateApiKeyById,
  updateApiKeyBySecret,
  validateApiKey,
} from '../core/api-keys.ts';
import { signingKeys } from '../core/asset-signing.ts';
import { deleteAsset, getAsset, searchAssets } from '../core/assets.ts';
import { decrypt, encrypt, hashInfo, headerInfo } from '../core/encryption.ts';
import {
  createAsymKeyring,
  createKeyring,
  deleteKeyring,
  getAsymKey,
  getConfig,
  getKey,
  listKeyrings,
  listKeys,
  putConfig,
  restoreKeyring,
  rotateAsymKeyring,
  rotateKeyring,
} from '../core/keyrings.ts';
import { deleteTangPair, listTangPairs, rotateTangPair } from '../core/tang.ts';
import { rewrapKeys } from '../core/wrappings.ts';
import { beside, listed, type RoutesOf, readerOf } from './route.ts';
import { activityRoutes } from './routes/activity.ts';
import { accountRef, alongRoutes, ringRef } from './routes/along.ts';
import { approvalRoutes } from './routes/approvals.ts';
import { managedKeyRoutes } from './routes/managed-keys.ts';
import { oidcRoutes } from './routes/oidc.ts';
import { loginRoutes, userRoutes } from './routes/people.ts';
import { proofRoutes } from './routes/proofs.ts';
import { secondFactorRoutes } from './routes/second-factors.ts';
import { secretRoutes } from './routes/secrets.ts';
import { systemRoutes } from './routes/system.ts';

const keyringRoutes: RoutesOf<(typeof keyringEndpoints)[number]['id']> = {
  createKeyring: (ctx, { body }) => createKeyring(ctx, body),
  listKeyrings: listed((reader, { query, page }) => listKeyrings(reader, { deleted: query.deleted === 'true', page })),
  getKeyring: alongRoutes.getKeyring,
  deleteKeyring: { slices: (ctx, { params }) => deleteKeyring(ctx, params) },
  restoreKeyring: (ctx, { params }) => restoreKeyring(ctx, params),
  listKeys: listed((reader, { params, query, page }) =>
    listKeys(reader, {
      ring: ringRef(params.ringname, query.id),
      usage: query.usage === 'true',
      wrapped: query.wrapped === 'true',
      page,
    }),
  ),
  getKey: (ctx, { params, query }) => getKey(ctx, { ring: ringRef(params.ringname, query.id), keyId: params.keyId }),
  rotateKeyring: (ctx, { body }) => rotateKeyring(ctx, body),
  rewrapKeys: (ctx, { body }) => rewrapKeys(ctx, body),
  getConfig: (ctx, { query }) => getConfig(ctx, { ring: { name: query.ringname } }),
  putConfig: (ctx, { body }) => putConfig(ctx, body),
};

const encryptionRoutes: RoutesOf<(typeof encryptionEndpoints)[number]['id']> = {
  encrypt: (ctx, { body }) => encrypt(ctx, body),
  decrypt: (ctx, { body }) => decrypt(ctx, body),
  resolveHash: (ctx, { params }) => hashInfo(ctx, params),
  inspectHeader: (ctx, { params }) => headerInfo(ctx, params),
};

const asymRoutes: RoutesOf<(typeof asymEndpoints)[number]['id']> = {
  createAsymKeyring: (ctx, { body }) => createAsymKeyring(ctx, body),
  getAsymKey: (ctx, { params, query }) =>
    getAsymKey(ctx, { ring: ringRef(params.ringname, query.id), keyId: params.keyId }),
  rotateAsymKeyring: (ctx, { body }) => rotateAsymKeyring(ctx, body),
};

const tangRoutes: RoutesOf<(typeof tangEndpoints)[number]['id']> = {
  listTangPairs: (ctx) => listTangPairs(ctx),
  rotateTangPair: (ctx) => rotateTangPair(ctx),
  deleteTangPair: (ctx, { params }) => deleteTangPair(ctx, params),
};

const assetRoutes: RoutesOf<(typeof assetEndpoints)[number]['id']> = {
  // The time since which a key signs is in the activity log, perhaps in closed segments.
  listSigningKeys: beside(async ({ handle: { tenant, store } }) => ({ keys: await signingKeys(tenant, store) })),
  getAsset: (ctx, { params }) => getAsset(ctx, params),
  deleteAsset: { slices: (ctx, { params }) => deleteAsset(ctx, params) },
  searchAssets: listed((reader, { body, page }) => searchAssets(reader, body, page)),
};

const accountRoutes: RoutesOf<(typeof accountEndpoints)[number]['id']> = {
  createAccount: (ctx, { body }) => createAccount(ctx, body),
  listAccounts: listed((reader, { page }) => listAccounts(reader, { page })),
  getAccount: alongRoutes.getAccount,
  updateAccount: (ctx, { params, body }) => updateAccount(ctx, { account: params, ...body }),
  deleteAccount: {
    slices: (ctx, { params, query }) => deleteAccount(ctx, { account: accountRef(params.id, query.uid) }),
  },
  listAccountApiKeys: listed((reader, { params, query, page }) =>
    listAccountApiKeys(reader, { account: accountRef(params.accountId, query.uid), page }),
  ),
};

const apikeyRoutes: RoutesOf<(typeof apikeyEndpoints)[number]['id']> = {
  validateApiKey: (ctx, { body }) => validateApiKey(ctx, body),
  listApiKeys: listed((reader, { page }) => listApiKeys(reader, { page })),
  createApiKey: (ctx, { query, body: { accountId, ...rest } }) =>
    createApiKey(ctx, { account: accountRef(accountId, query.uid), ...rest }),
  updateApiKeyBySecret: (ctx, { body }) => updateApiKeyBySecret(ctx, body),
  updateApiKey: (ctx, { body }) => updateApiKeyById(ctx, body),
  getApiKey: (ctx, { params, query }) => getApiKey(ctx, { keyid: params.apikeyid, proofs: query.proofs === 'true' }),
  deleteApiKey: (ctx, { params }) => deleteApiKey(ctx, { key: params.apikey }),
  deleteApiKeyById: (ctx, { params }) => deleteApiKeyById(ctx, params),
  getApiKeyProps: (ctx, { params }) => getApiKey(ctx, { keyid: params.apikeyid }),
  searchKeyringApiKeys: {
    async prepare(input, caller) {
      const { params, query, page } = input;
      const ring = ringRef(params.keyringname, query.id);
      const found = await searchApiKeysByRing(
        { ...readerOf(input), caller },
        { ring, wildcard: query.wildcard === 'true', page },
      );
      return (ctx) => {
        // Whether the caller may read that ring is decided together with the request's record.
        ringToSearch(ctx.tx, ctx.caller, ring);
        return found;
      };
    },
  },
};

export const routes: RoutesOf<EndpointId> = {
  ...keyringRoutes,
  ...encryptionRoutes,
  ...assetRoutes,
  ...asymRoutes,
  ...secretRoutes,
  ...managedKeyRoutes,
  ...tangRoutes,
  ...accountRoutes,
  ...apikeyRoutes,
  ...proofRoutes,
  ...approvalRoutes,
  ...activityRoutes,
  ...userRoutes,
  ...loginRoutes,
  ...secondFactorRoutes,
  ...oidcRoutes,
  ...systemRoutes,
};
