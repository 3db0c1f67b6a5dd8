// Where each endpoint is, without the schemas behind it, so that a program with the client in it carries no validator.
// The compiler holds this table against the declarations in `api`; a test does so at run time.

import type { loginEndpoints } from '../api/endpoints/login.ts';
import type { userEndpoints } from '../api/endpoints/users.ts';
import type { AnyEndpoint } from '../api/endpoints.ts';

/** All that answer JSON. */
export type ClientEndpoint =
  | Exclude<AnyEndpoint, { readonly binary: true } | { readonly text: string }>
  | (typeof loginEndpoints)[number]
  | (typeof userEndpoints)[number];
export type ClientEndpointId = ClientEndpoint['id'];

/** Method, path, and which fields of the input go into the query. The others go into the path where it names them, else into the body. */
export type Route = readonly [method: string, path: string, ...query: readonly string[]];

type RouteOf<E extends ClientEndpoint> = readonly [E['method'], E['path'], ...query: readonly string[]];

export const routes = {
  createKeyring: ['POST', '/ks/keyrings'],
  listKeyrings: ['GET', '/ks/keyrings', 'cursor', 'limit'],
  getKeyring: ['GET', '/ks/keyrings/{ringname}', 'id'],
  deleteKeyring: ['DELETE', '/ks/keyrings/{name}'],
  restoreKeyring: ['POST', '/ks/keyrings/{id}/restore'],
  listKeys: ['GET', '/ks/keyrings/{ringname}/keys', 'id', 'cursor', 'limit'],
  getKey: ['GET', '/ks/keyrings/{ringname}/keys/{keyId}', 'id'],
  rotateKeyring: ['POST', '/ks/rotate'],
  getConfig: ['GET', '/ks/config', 'ringname'],
  putConfig: ['PUT', '/ks/config'],

  encrypt: ['POST', '/ks/encrypt'],
  decrypt: ['POST', '/ks/decrypt'],
  resolveHash: ['GET', '/ks/hash/{hash}'],
  inspectHeader: ['GET', '/ks/header/{header}'],

  getAsset: ['GET', '/assets/{id}'],
  deleteAsset: ['DELETE', '/assets/{id}'],
  searchAssets: ['POST', '/assets/search', 'cursor', 'limit'],

  createAsymKeyring: ['POST', '/asym/keyrings'],
  getAsymKey: ['GET', '/asym/keyrings/{ringname}/keys/{keyId}', 'id'],
  rotateAsymKeyring: ['POST', '/asym/rotate'],

  validateInvite: ['GET', '/auth/user/invite-validate', 'token'],
  completeInvite: ['POST', '/auth/user/invite-complete'],
  completeSetUp: ['POST', '/auth/user/set-up-complete'],
  login: ['POST', '/auth/basic/login', 'email'],
  refreshSession: ['GET', '/auth/basic/refresh'],
  logout: ['POST', '/auth/basic/logout'],
  startPasswordReset: ['POST', '/auth/basic/reset-password-start'],
  completePasswordReset: ['POST', '/auth/basic/reset-password-complete'],

  listUsers: ['GET', '/auth/users', 'cursor', 'limit'],
  createUser: ['POST', '/auth/users'],
  getUser: ['GET', '/auth/users/{username}', 'email'],
  updateUser: ['PATCH', '/auth/users/{username}'],
  deleteUser: ['DELETE', '/auth/users/{username}', 'id'],
  inviteUser: ['POST', '/auth/user/invite'],

  createAccount: ['POST', '/auth/accounts'],
  listAccounts: ['GET', '/auth/accounts', 'cursor', 'limit'],
  getAccount: ['GET', '/auth/accounts/{id}', 'uid'],
  updateAccount: ['PATCH', '/auth/accounts/{id}'],
  deleteAccount: ['DELETE', '/auth/accounts/{id}', 'uid'],
  listAccountApiKeys: ['GET', '/auth/accounts/{accountId}/apikeys', 'uid', 'cursor', 'limit'],

  validateApiKey: ['POST', '/auth/validate'],
  listApiKeys: ['GET', '/auth/apikey', 'cursor', 'limit'],
  createApiKey: ['POST', '/auth/apikey', 'uid'],
  updateApiKeyBySecret: ['PUT', '/auth/apikey'],
  updateApiKey: ['PUT', '/auth/apikeyid'],
  getApiKey: ['GET', '/auth/apikey/{apikeyid}'],
  deleteApiKey: ['DELETE', '/auth/apikey/{apikey}'],
  getApiKeyProps: ['GET', '/auth/apikey/{apikeyid}/props'],
  searchKeyringApiKeys: ['GET', '/auth/search/keyring/{keyringname}/apikey', 'id', 'wildcard', 'cursor', 'limit'],

  searchActivity: ['POST', '/auth/search/activity', 'cursor', 'limit'],
  getActivity: ['GET', '/auth/activity/{id}'],
} as const satisfies { readonly [E in ClientEndpoint as E['id']]: RouteOf<E> };
