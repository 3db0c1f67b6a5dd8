// By what assets can be searched.
import type { InputOf } from '../../client/client.ts';
import { type Fields, searchFields } from '../search-fields.ts';

export type AssetFilters = Omit<InputOf<'searchAssets'>, 'cursor' | 'limit'>;
type Name = keyof AssetFilters;
export type AssetFields = Fields<Name>;

export const assetFields = searchFields<Name, AssetFilters>({
  data: 'object',
  parents: 'list',
  start: 'start',
  end: 'end',
  keyringId: 'text',
  accountId: 'text',
  apikeyId: 'text',
});
