// Assets: get, delete, search, and the new asset or version that an encrypt makes; nothing else makes one. A search
// runs outside the request's transaction, in many short reads, since it may have to go through a lot.
import type { Asset } from '../api/assets.ts';
import type { Body } from '../api/endpoints.ts';
import { invalidField, KmsError } from '../errors.ts';
import { type JsonObject, longestPage } from '../model/json.ts';
import { timestamp } from '../model/timestamp.ts';
import type { PageRequest, Slices } from '../store/sql.ts';
import { type AssetContent, assetSearch, type Asset as Row } from '../store/tables/assets.ts';
import { type Context, needQuota } from './context.ts';
import { looksAt, type Reader, WrittenItems, type WrittenPage } from './pages.ts';

export function getAsset(ctx: Context, input: { readonly id: string }): Asset {
  return assetAnswer(findAsset(ctx, input.id));
}

/** Returns the deleted asset. Headers that signed it no longer verify. */
export function* deleteAsset(ctx: Context, input: { readonly id: string }): Slices<Asset> {
  const asset = findAsset(ctx, input.id);
  yield* ctx.tx.assets.erase(asset.id);
  ctx.note({ object: { type: 'asset', id: asset.id } });
  return assetAnswer(asset);
}

/** Current versions, newest asset first. */
export async function searchAssets(
  { store }: Reader,
  search: Body<'searchAssets'>,
  page: PageRequest,
): Promise<WrittenPage<Asset>> {
  const { keyringId, ...others } = search;
  const wanted = assetSearch(keyringId === undefined ? others : { ...others, ringId: keyringId });
  const looks = looksAt(store);
  const items = new WrittenItems<Asset>();
  let last = 0;
  let before = page.after;
  // Each read goes further than the last: most searches are answered by the first.
  for (let most = page.limit + 1; ; most *= 4) {
    const place = before;
    const look = await looks.look(({ assets }) => assets.look(wanted, place, most));
    for (const asset of look.found) {
      if (items.count === page.limit || items.length >= longestPage) {
        await looks.durable();
        return { items, next: last };
      }
      items.add(assetAnswer(asset));
      last = asset.seq;
    }
    before = look.before;
    if (before !== undefined) continue;
    await looks.durable();
    return { items };
  }
}

export function assetAnswer({ id, createdAt, data, parents }: Omit<Row, 'seq'>): Asset {
  return { id, createdAt: timestamp(createdAt), data, parents: [...parents] };
}

function findAsset({ tx }: Context, id: string): Row {
  const asset = tx.assets.byId(id);
  if (!asset) throw new KmsError('not-found', 'there is no such asset');
  return asset;
}

type WrittenAsset = Omit<Row, 'seq'>;

/** The asset after the change. Fields that the input does not name are kept, or empty in a new asset. */
export function writeAsset(ctx: Context, ringId: string, input: NonNullable<Body<'encrypt'>['asset']>): WrittenAsset {
  const { data } = input;
  return input.assetId === undefined
    ? createAsset(ctx, ringId, input.parents ?? [], data ?? {})
    : updateAsset(ctx, ringId, input.assetId, input.parents, data);
}

function createAsset(ctx: Context, ringId: string, parents: readonly string[], data: JsonObject): WrittenAsset {
  const { tx, caller, world } = ctx;
  needQuota(ctx, 'assets', () => tx.assets.count());
  needQuota(ctx, 'assetVersions', () => tx.assets.countVersions());
  const known = knownParents(ctx, parents);
  const asset = {
    id: world.newId('asset'),
    ringId,
    data,
    parents: known,
    apikeyId: caller.id,
    accountId: caller.accountId,
    createdAt: world.now(),
  };
  tx.assets.insert(asset);
  return { ...asset, version: 1 };
}

function updateAsset(
  ctx: Context,
  ringId: string,
  id: string,
  parents: readonly string[] | undefined,
  data: JsonObject | undefined,
): WrittenAsset {
  const current = ctx.tx.assets.byId(id);
  if (current?.ringId !== ringId) throw new KmsError('not-found', 'the keyring has no such asset');
  needQuota(ctx, 'assetVersions', () => ctx.tx.assets.countVersions());
  const content: AssetContent = {
    data: data ?? current.data,
    parents: parents ? knownParents(ctx, parents, current) : current.parents,
  };
  ctx.tx.assets.addVersion(current, content);
  return { ...current, ...content, version: current.version + 1 };
}

/**
 * The parents without duplicates. Throws `invalid` for one that does not exist, or that descends from the asset itself.
 */
function knownParents({ tx }: Context, parents: readonly string[], current?: Row): readonly string[] {
  const distinct = [...new Set(parents)];
  for (const parent of distinct) {
    if (!tx.assets.exists(parent)) throw invalidField('asset.parents', 'expected ids of existing assets');
  }
  const known = new Set(current?.parents);
  const added = distinct.filter((parent) => !known.has(parent));
  if (!current || added.length === 0) return distinct;
  const circle = tx.assets.descendFrom(added, current.id);
  if (circle) throw invalidField('asset.parents', 'an asset cannot be its own ancestor');
  if (circle === undefined) {
    throw invalidField(
      'asset.parents',
      'the asset has too many descendants, and these parents too many ancestors, to rule out that it is its own ancestor',
    );
  }
  return distinct;
}
