// Assets as records: get, delete, search. They are made and changed by an encrypt alone.
import { KmsError } from '../errors.ts';
import type { Page, PageRequest } from '../store/sql.ts';
import type { Asset } from '../store/tables/assets.ts';
import type { Context } from './context.ts';
import type { JsonObject } from './json.ts';
import { mapPage } from './pages.ts';
import { timestamp } from './time.ts';

export interface AssetAnswer {
  readonly id: string;
  readonly createdAt: string;
  readonly data: JsonObject;
  readonly parents: readonly string[];
}

/** All given filters must hold. */
export interface AssetSearch {
  readonly apikeyId?: string;
  readonly accountId?: string;
  readonly keyringId?: string;
  /** Has all of these. */
  readonly parents?: readonly string[];
  /** Epoch milliseconds, both inclusive. */
  readonly start?: number;
  readonly end?: number;
  /** Contains this object: deep, arrays and scalars compare whole. */
  readonly data?: JsonObject;
}

export async function getAsset(ctx: Context, input: { readonly id: string }): Promise<AssetAnswer> {
  return assetAnswer(await findAsset(ctx, input.id));
}

/** Answers the deleted asset. Headers that signed it no longer verify. */
export async function deleteAsset(ctx: Context, input: { readonly id: string }): Promise<AssetAnswer> {
  const asset = await findAsset(ctx, input.id);
  await ctx.tx.assets.erase(asset.id);
  return assetAnswer(asset);
}

/** Current versions, the newest asset first. */
export async function searchAssets(
  { tx }: Context,
  input: { readonly page: PageRequest; readonly filter: AssetSearch },
): Promise<Page<AssetAnswer>> {
  const { keyringId, ...filter } = input.filter;
  const found = await tx.assets.search(keyringId === undefined ? filter : { ...filter, ringId: keyringId }, input.page);
  return mapPage(found, assetAnswer);
}

export function assetAnswer({ id, createdAt, data, parents }: Omit<Asset, 'seq'>): AssetAnswer {
  return { id, createdAt: timestamp(createdAt), data, parents };
}

async function findAsset({ tx }: Context, id: string): Promise<Asset> {
  const asset = await tx.assets.byId(id);
  if (!asset) throw new KmsError('not-found', 'there is no such asset');
  return asset;
}
