// Routes of the asym service.
import type { asymEndpoints } from '../../api/endpoints/asym.ts';
import { createAsymKeyring, getAsymKey, rotateAsymKeyring } from '../../core/asym.ts';
import type { RoutesOf } from '../route.ts';
import { ringRef } from './refs.ts';

export const asymRoutes: RoutesOf<(typeof asymEndpoints)[number]['id']> = {
  createAsymKeyring: (ctx, { body }) => createAsymKeyring(ctx, body),
  getAsymKey: (ctx, { params, query }) =>
    getAsymKey(ctx, { ring: ringRef(params.ringname, query.id), keyId: params.keyId }),
  rotateAsymKeyring: (ctx, { body }) => rotateAsymKeyring(ctx, body),
};
