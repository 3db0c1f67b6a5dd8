// Assets, read, deleted and searched.
import { z } from 'zod';
import { asset, searchAssetsBody } from '../asset.ts';
import { endpoint } from '../endpoint.ts';
import { errorBody } from '../error.ts';
import { pageOf, pageQuery } from '../page.ts';
import { pathText } from '../values.ts';

const tag = 'Assets';
const unknown = { 404: { description: 'no such Asset', schema: errorBody } };

export const assetEndpoints = [
  endpoint({
    id: 'getAsset',
    method: 'GET',
    path: '/assets/{id}',
    tag,
    summary: 'Read an Asset',
    access: { kind: 'flag', action: 'asset.read' },
    params: z.object({ id: pathText }),
    answer: asset,
    errors: unknown,
  }),
  endpoint({
    id: 'deleteAsset',
    method: 'DELETE',
    path: '/assets/{id}',
    tag,
    summary: 'Delete an Asset; answers what it was',
    access: { kind: 'flag', action: 'asset.delete' },
    params: z.object({ id: pathText }),
    answer: asset,
    errors: unknown,
  }),
  endpoint({
    id: 'searchAssets',
    method: 'POST',
    path: '/assets/search',
    changes: false,
    tag,
    summary: 'Search Assets, newest first',
    access: { kind: 'flag', action: 'asset.search' },
    query: z.object(pageQuery),
    body: searchAssetsBody,
    answer: pageOf(asset),
    paginated: true,
  }),
] as const;
