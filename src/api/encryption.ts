// Encrypt, decrypt, hash and header: what a client-side encryption asks and is told.
import { z } from 'zod';
import { asset, signedAsset } from './asset.ts';
import { sample } from './example-values.ts';
import { key } from './key.ts';
import { freeForm, id, requiredText } from './values.ts';

const ringId = id.meta({ description: 'id of the KeyRing', examples: [sample.ringId] });
const hash = {
  description: 'stands for the KeyRing and its key, to this tenant alone; URL-safe, at most 128 characters',
  examples: [sample.hash],
};
const header = {
  description: 'what to put in front of the ciphertext; URL-safe, at most 1,024 characters',
  examples: [sample.header],
};

export const encryptBody = z.object({
  ringname: requiredText.meta({ description: 'the KeyRing to encrypt with', examples: ['payroll'] }),
  asset: z
    .object({
      parents: z
        .array(requiredText)
        .exactOptional()
        .meta({ description: 'ids of Assets that it comes from', examples: [[sample.parentId]] }),
      assetId: requiredText.exactOptional().meta({
        description: 'the Asset to give a new version; absent: a new Asset',
        examples: [sample.assetId],
      }),
      data: freeForm.exactOptional().meta({
        description: 'what to say about what is encrypted',
        examples: [{ file: 'salaries.xlsx' }],
      }),
    })
    .exactOptional()
    .meta({ description: 'an Asset for the header to carry; absent: none' }),
});

export const encryptAnswer = z.object({
  key,
  ringId,
  hash: z.string().meta(hash),
  header: z.string().meta(header),
  asset: asset.exactOptional(),
});

/** At least one of the two; when both, they must agree. */
export const decryptBody = z.object({
  hash: requiredText.exactOptional().meta({ description: 'the hash of an encrypt', examples: [sample.hash] }),
  header: requiredText.exactOptional().meta({ description: 'the header of an encrypt', examples: [sample.header] }),
});

export const decryptAnswer = z.object({
  ringId,
  ringname: z.string().meta({ description: 'the name of the KeyRing, in lower case', examples: ['payroll'] }),
  key,
  asset: signedAsset.exactOptional(),
});

export const hashAnswer = z.object({
  ringId,
  keyId: id.meta({ description: 'id of the key', examples: [sample.keyId] }),
});

export const headerAnswer = z.object({
  valid: z.boolean().meta({ description: 'nothing of the header was altered', examples: [true] }),
  version: z.int().meta({ description: "the version of the header's format", examples: [1] }),
  hasSignedAsset: z.boolean().meta({ description: 'the header carries an Asset', examples: [true] }),
  hash: z.string().meta({ description: 'the hash in the header', examples: [sample.hash] }),
});
