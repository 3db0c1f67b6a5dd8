// How an asset is shown to people.
import type { Asset } from '../../../api/asset.ts';
import type { Pair } from '../../output.ts';
import type { Column } from '../../table.ts';

export function assetPairs(asset: Asset): readonly Pair[] {
  return [
    ['id', asset.id],
    ['created', asset.createdAt],
    ['parents', asset.parents.join(' ')],
    ['data', JSON.stringify(asset.data)],
  ];
}

export const assetColumns: readonly Column<Asset>[] = [
  { title: 'id', value: (asset) => asset.id, whole: true },
  { title: 'created', value: (asset) => asset.createdAt, whole: true, spare: true },
  { title: 'parents', value: (asset) => asset.parents.join(' ') },
  { title: 'data', value: (asset) => JSON.stringify(asset.data) },
];
