// Assets, read, deleted and searched.
import { z } from 'zod';
import { asset, searchAssetsBody, signingKeysAnswer } from '../asset.ts';
import { endpoint } from '../endpoint.ts';
import { errorBody } from '../error.ts';
import { pageOf, pageQuery } from '../page.ts';
import { pathText } from '../values.ts';

const tag = 'Assets';
const unknown = { 404: { description: 'no such Asset', schema: errorBody } };

export const assetEndpoints = [
  // Before the path with an id in this place, which would take it too.
  endpoint('listSigningKeys', {
    tag,
    summary: 'List the public keys that verify the signatures of Assets',
    access: { kind: 'flag', action: 'asset.read', recorded: 'asset.signing-keys' },
    answer: signingKeysAnswer,
  }),
  endpoint('getAsset', {
    tag,
    summary: 'Read an Asset',
    access: { kind: 'flag', action: 'asset.read' },
    params: z.object({ id: pathText }),
    answer: asset,
    errors: unknown,
  }),
  endpoint('deleteAsset', {
    tag,
    summary: 'Delete an Asset; answers what it was',
    access: { kind: 'flag', action: 'asset.delete' },
    params: z.object({ id: pathText }),
    answer: asset,
    errors: unknown,
  }),
  endpoint('searchAssets', {
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
