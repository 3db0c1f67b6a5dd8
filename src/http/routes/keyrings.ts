// Routes of KeyRings, their keys and configuration.
import type { keyringEndpoints } from '../../api/endpoints/keyrings.ts';
import { getConfig, putConfig } from '../../core/keyring-config.ts';
import { deleteKeyring, restoreKeyring } from '../../core/keyring-deletion.ts';
import { getKey, listKeys, rotateKeyring } from '../../core/keyring-keys.ts';
import { createKeyring, getKeyring, listKeyrings } from '../../core/keyrings.ts';
import type { RoutesOf } from '../route.ts';
import { ringRef } from './refs.ts';

export const keyringRoutes: RoutesOf<(typeof keyringEndpoints)[number]['id']> = {
  createKeyring: (ctx, { body }) => createKeyring(ctx, body),
  listKeyrings: (ctx, { page }) => listKeyrings(ctx, { page }),
  getKeyring: (ctx, { params, query }) => getKeyring(ctx, { ring: ringRef(params.ringname, query.id) }),
  deleteKeyring: (ctx, { params }) => deleteKeyring(ctx, params),
  restoreKeyring: (ctx, { params }) => restoreKeyring(ctx, params),
  listKeys: (ctx, { params, query, page }) => listKeys(ctx, { ring: ringRef(params.ringname, query.id), page }),
  getKey: (ctx, { params, query }) => getKey(ctx, { ring: ringRef(params.ringname, query.id), keyId: params.keyId }),
  rotateKeyring: (ctx, { body }) => rotateKeyring(ctx, body),
  getConfig: (ctx, { query }) => getConfig(ctx, query),
  putConfig: (ctx, { body }) => putConfig(ctx, body),
};
