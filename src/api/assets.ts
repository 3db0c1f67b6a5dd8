// Assets: stored records with free-form data and parents; headers carry them signed.

import { z } from 'zod';
import { endpoint, missing } from './endpoint.ts';
import { sample } from './example-values.ts';
import { pageOf, pageQuery } from './page.ts';
import { base64, count, epochTime, freeForm, idOf, pathText, requiredText, textList, timestamp } from './values.ts';

const assetId = idOf('asset').meta({ description: 'id of the Asset', examples: [sample.assetId] });
const data = freeForm.meta({ examples: [{ file: 'salaries.xlsx' }] });

export const asset = z
  .object({
    id: assetId,
    createdAt: timestamp,
    data,
    parents: z.array(idOf('asset')).meta({
      description: 'ids of the Assets that it comes from',
      examples: [[sample.parentId]],
    }),
  })
  .meta({ id: 'Asset', description: 'a stored record about what was encrypted' });
export type Asset = z.output<typeof asset>;

/** Verdict of decrypt on the asset in a header. */
export const signedAsset = z
  .object({
    valid: z.boolean().meta({ description: 'the signature holds, and the Asset is there', examples: [true] }),
    id: assetId,
    message: z
      .string()
      .meta({ description: 'the verdict in words', examples: ['the signature of version 1 verifies'] }),
    data: freeForm.meta({
      description: 'the data of the version that the header signed',
      examples: [{ file: 'salaries.xlsx' }],
    }),
  })
  .meta({ id: 'SignedAsset', description: 'the Asset that a header carries, and whether it verifies' });

/** A public key that verifies the assets signed in headers. */
const signingKey = z
  .object({
    epoch: count.meta({ description: "which of the tenant's keys; a hash names it", examples: [1] }),
    publicKey: base64.meta({
      description: 'Ed25519 (RFC 8032), base64 of SPKI DER (RFC 8410)',
      examples: ['MCowBQYDK2VwAyEApuTcM+D4b7Dw695vGN7bi9ENGqVZhluaphRKr1mLhrY='],
    }),
    createdAt: timestamp.nullable().meta({
      description: 'since when it signs; null where the activity log does not tell',
      examples: [sample.time],
    }),
  })
  .meta({ id: 'SigningKey', description: 'a public key that verifies the signatures of Assets' });
export type SigningKey = z.output<typeof signingKey>;

const signingKeysAnswer = z.object({
  keys: z.array(signingKey).meta({ description: 'those of all epochs, the oldest first' }),
});

/** An asset must match all given filters. */
const searchAssetsBody = z.object({
  apikeyId: requiredText.exactOptional().meta({
    description: 'made by this API key or User',
    examples: [sample.apikeyId],
  }),
  accountId: requiredText.exactOptional().meta({
    description: "made by this Account's API keys",
    examples: [sample.accountId],
  }),
  keyringId: requiredText.exactOptional().meta({
    description: 'made with the KeyRing of this id',
    examples: [sample.ringId],
  }),
  parents: textList()
    .exactOptional()
    .meta({
      description: 'that have all of these parents',
      examples: [[sample.parentId]],
    }),
  start: epochTime.exactOptional().meta({
    description: 'not older than this time, in milliseconds since 1970-01-01T00:00:00Z',
    examples: [1767225600000],
  }),
  end: epochTime.exactOptional().meta({
    description: 'not younger than this time, in milliseconds since 1970-01-01T00:00:00Z',
    examples: [1769904000000],
  }),
  data: freeForm.exactOptional().meta({
    description: 'whose `data` contain this object: every property that it names, at any depth, with the same value',
    examples: [{ file: 'salaries.xlsx' }],
  }),
});

const tag = 'Assets';
const unknown = missing('no such Asset');

export const assetEndpoints = [
  // Before the path with an id here, which would match it too.
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
