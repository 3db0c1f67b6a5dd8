// The asset of an encrypt: a new one, or a new version of one that the ring has.
import { canonicalJson } from '../crypto/canonical-json.ts';
import { invalidField, KmsError } from '../errors.ts';
import type { Asset, AssetContent } from '../store/tables/assets.ts';
import type { Context } from './context.ts';
import type { JsonObject } from './json.ts';
import { needRoom } from './quotas.ts';

export interface AssetInput {
  /** The asset to update; absent = a new one. */
  readonly assetId?: string;
  readonly parents?: readonly string[];
  readonly data?: JsonObject;
}

export type WrittenAsset = Omit<Asset, 'seq'>;

/** The asset as it is afterwards. What the input does not name is kept, or empty in a new one. */
export async function writeAsset(ctx: Context, ringId: string, input: AssetInput): Promise<WrittenAsset> {
  const data = input.data && storable(input.data);
  return input.assetId === undefined
    ? createAsset(ctx, ringId, input.parents ?? [], data ?? {})
    : updateAsset(ctx, ringId, input.assetId, input.parents, data);
}

async function createAsset(
  ctx: Context,
  ringId: string,
  parents: readonly string[],
  data: JsonObject,
): Promise<WrittenAsset> {
  const { tx, caller, world } = ctx;
  await needRoom(ctx, 'assets', () => tx.assets.count());
  const known = await knownParents(ctx, parents);
  const asset = {
    id: world.newId('asset'),
    ringId,
    data,
    parents: known,
    apikeyId: caller.id,
    accountId: caller.accountId,
    createdAt: world.now(),
  };
  await tx.assets.insert(asset);
  return { ...asset, version: 1 };
}

async function updateAsset(
  ctx: Context,
  ringId: string,
  id: string,
  parents: readonly string[] | undefined,
  data: JsonObject | undefined,
): Promise<WrittenAsset> {
  const current = await ctx.tx.assets.byId(id);
  if (current?.ringId !== ringId) throw new KmsError('not-found', 'the keyring has no such asset');
  const content: AssetContent = {
    data: data ?? current.data,
    parents: parents ? await knownParents(ctx, parents, id) : current.parents,
  };
  await ctx.tx.assets.addVersion(current, content);
  return { ...current, ...content, version: current.version + 1 };
}

/** The parents, none twice. Throws `invalid` for one that there is not, or that has the asset itself in its line. */
async function knownParents({ tx }: Context, parents: readonly string[], assetId?: string): Promise<readonly string[]> {
  const distinct = [...new Set(parents)];
  for (const parent of distinct) {
    if (!(await tx.assets.exists(parent))) throw invalidField('asset.parents', 'expected ids of assets that there are');
  }
  if (assetId !== undefined && (await tx.assets.descendFrom(distinct, assetId))) {
    throw invalidField('asset.parents', 'an asset cannot be its own ancestor');
  }
  return distinct;
}

/** The data as it will be read again, so that what is signed is what is stored. */
function storable(data: JsonObject): JsonObject {
  try {
    canonicalJson(data);
  } catch (cause) {
    if (cause instanceof KmsError) throw invalidField('asset.data', cause.message);
    throw cause;
  }
  return data;
}
