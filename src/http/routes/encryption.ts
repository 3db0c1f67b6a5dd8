// Routes of encrypt, decrypt, hash and header.
import type { encryptionEndpoints } from '../../api/endpoints/encryption.ts';
import { decrypt } from '../../core/decrypt.ts';
import { encrypt } from '../../core/encrypt.ts';
import { hashInfo, headerInfo } from '../../core/resolve.ts';
import type { RoutesOf } from '../route.ts';

export const encryptionRoutes: RoutesOf<(typeof encryptionEndpoints)[number]['id']> = {
  encrypt: (ctx, { body }) => encrypt(ctx, body),
  decrypt: (ctx, { body }) => decrypt(ctx, body),
  resolveHash: (ctx, { params }) => hashInfo(ctx, params),
  inspectHeader: (ctx, { params }) => headerInfo(ctx, params),
};
