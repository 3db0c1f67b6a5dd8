// Routes of secrets.
import type { secretEndpoints } from '../../api/secrets.ts';
import { deleteSecretVersions, destroySecretVersions, restoreSecretVersions } from '../../core/secret-versions.ts';
import {
  deleteSecret,
  getSecretMetadata,
  listSecrets,
  putSecretMetadata,
  readSecret,
  writeSecret,
} from '../../core/secrets.ts';
import type { RoutesOf } from '../route.ts';

export const secretRoutes: RoutesOf<(typeof secretEndpoints)[number]['id']> = {
  listSecrets: (ctx, { query }) => listSecrets(ctx, query),
  readSecret: (ctx, { params, query }) => readSecret(ctx, { ...params, version: Number(query.version ?? 0) }),
  writeSecret: (ctx, { params, body }) => writeSecret(ctx, { ...body, ...params }),
  deleteSecret: (ctx, { params }) => deleteSecret(ctx, params),
  getSecretMetadata: (ctx, { params }) => getSecretMetadata(ctx, params),
  putSecretMetadata: (ctx, { params, body }) => putSecretMetadata(ctx, { ...body, ...params }),
  deleteSecretVersions: (ctx, { params, body }) => deleteSecretVersions(ctx, { ...body, ...params }),
  restoreSecretVersions: (ctx, { params, body }) => restoreSecretVersions(ctx, { ...body, ...params }),
  destroySecretVersions: (ctx, { params, body }) => destroySecretVersions(ctx, { ...body, ...params }),
};
