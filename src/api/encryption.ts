// Encrypt, decrypt, hash and header: what a client-side encryption asks and is told.
import { z } from 'zod';
import { asset, signedAsset } from './asset.ts';
import { key } from './key.ts';
import { freeForm, id, requiredText } from './values.ts';

export const encryptBody = z.object({
  ringname: requiredText,
  asset: z
    .object({
      parents: z.array(requiredText).exactOptional(),
      assetId: requiredText.exactOptional(),
      data: freeForm.exactOptional(),
    })
    .exactOptional(),
});

export const encryptAnswer = z.object({
  key,
  ringId: id,
  hash: z.string(),
  header: z.string(),
  asset: asset.exactOptional(),
});

/** At least one of the two; when both, they must agree. */
export const decryptBody = z.object({ hash: requiredText.exactOptional(), header: requiredText.exactOptional() });

export const decryptAnswer = z.object({
  ringId: id,
  ringname: z.string(),
  key,
  asset: signedAsset.exactOptional(),
});

export const hashAnswer = z.object({ ringId: id, keyId: id });

export const headerAnswer = z.object({
  valid: z.boolean(),
  version: z.int(),
  hasSignedAsset: z.boolean(),
  hash: z.string(),
});
