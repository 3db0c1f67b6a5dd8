// Routes of Assets.
import type { assetEndpoints } from '../../api/endpoints/assets.ts';
import { deleteAsset, getAsset, searchAssets } from '../../core/assets.ts';
import type { RoutesOf } from '../route.ts';

export const assetRoutes: RoutesOf<(typeof assetEndpoints)[number]['id']> = {
  getAsset: (ctx, { params }) => getAsset(ctx, params),
  deleteAsset: (ctx, { params }) => deleteAsset(ctx, params),
  searchAssets: (ctx, { body, page }) => searchAssets(ctx, { filter: body, page }),
};
