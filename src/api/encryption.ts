// Encryption on the wire: requests and answers of encrypt and decrypt, and look-ups of a hash or header.
import { z } from 'zod';
import { asset, signedAsset } from './assets.ts';
import { endpoint, missing } from './endpoint.ts';
import { sample } from './example-values.ts';
import { encryptedKeyData, key } from './keyrings.ts';
import {
  base64,
  base64urlPattern,
  eitherOf,
  freeForm,
  idOf,
  pathText,
  requiredText,
  ringNamePattern,
  textList,
} from './values.ts';

const ringId = idOf('ring').meta({ description: 'id of the KeyRing', examples: [sample.ringId] });
const hash = {
  description: 'stands for the KeyRing and its key, to this tenant alone; URL-safe, at most 128 characters',
  pattern: base64urlPattern,
  maxLength: 128,
  examples: [sample.hash],
};
const header = {
  description: 'what to put in front of the ciphertext; URL-safe, at most 1,024 characters',
  pattern: base64urlPattern,
  maxLength: 1024,
  examples: [sample.header],
};

const knownKeys = textList(100)
  .exactOptional()
  .meta({
    description: 'ids of keys that the caller has already: an answer with one of them leaves its `keyData` out',
    examples: [[sample.keyId]],
  });

const handedKey = key
  .extend({
    keyData: encryptedKeyData.exactOptional().meta({
      description: 'the key, wrapped; absent where `knownKeys` has its id, and where an encrypt has `recipient`',
    }),
  })
  .meta({ id: 'HandedKey', description: 'a key of a KeyRing, wrapped unless the caller has it already' });

const encryptBody = z.object({
  ringname: requiredText.meta({
    pattern: ringNamePattern,
    description: 'the KeyRing to encrypt with',
    examples: ['payroll'],
  }),
  asset: z
    .object({
      parents: textList()
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
  knownKeys,
  recipient: z
    .boolean()
    .exactOptional()
    .meta({
      description:
        "`true`: for callers that encrypt without the KeyRing's private key; the answer has `share` and `publicKey`, and no `keyData`",
      examples: [true],
    }),
});

const share = base64.exactOptional().meta({
  description:
    "only with `recipient`: base64 of 32 bytes, the appliance's part of the key of what is encrypted; the same in each answer for this header, and stored nowhere",
  examples: [sample.share],
});

const encryptAnswer = z.object({
  key: handedKey,
  ringId,
  hash: z.string().meta(hash),
  header: z.string().meta(header),
  share,
  publicKey: base64.exactOptional().meta({
    description: "only with `recipient`: the KeyRing's public key, base64 SPKI DER",
    examples: [sample.publicKey],
  }),
  asset: asset.exactOptional(),
});

/** At least one of the two; if both are given, they must agree. */
const decryptBody = z
  .object({
    hash: requiredText.exactOptional().meta({ ...hash, description: 'the hash of an encrypt' }),
    header: requiredText.exactOptional().meta({ ...header, description: 'the header of an encrypt' }),
    knownKeys,
  })
  .meta(eitherOf('hash', 'header'));

const decryptAnswer = z.object({
  ringId,
  ringname: z.string().meta({
    pattern: ringNamePattern,
    description: 'the name of the KeyRing, in lower case',
    examples: ['payroll'],
  }),
  key: handedKey,
  share,
  asset: signedAsset.exactOptional(),
});

const hashAnswer = z.object({
  ringId,
  keyId: idOf('key').meta({ description: 'id of the key', examples: [sample.keyId] }),
});

const headerAnswer = z.object({
  valid: z.boolean().meta({ description: 'nothing of the header was altered', examples: [true] }),
  version: z
    .int()
    .min(1)
    .meta({ description: "the version of the header's format", examples: [1] }),
  hasSignedAsset: z.boolean().meta({ description: 'the header carries an Asset', examples: [true] }),
  hash: z.string().meta({ ...hash, description: 'the hash in the header' }),
});

const tag = 'Encryption';
const gone = missing('its KeyRing or key is gone');

export const encryptionEndpoints = [
  endpoint('encrypt', {
    tag,
    summary: 'Get a key, a hash and a header for an encryption',
    access: { kind: 'flag', action: 'keyring.encrypt', ring: { from: 'body', field: 'ringname' } },
    body: encryptBody,
    answer: encryptAnswer,
    errors: missing('no such KeyRing or Asset'),
  }),
  endpoint('decrypt', {
    changes: false,
    tag,
    summary: 'Resolve a hash or header to its key, and verify the Asset',
    access: { kind: 'flag', action: 'keyring.decrypt', ring: { from: 'sealed-body' } },
    body: decryptBody,
    answer: decryptAnswer,
    errors: {
      ...gone,
      422: { description: 'the Asset does not verify; `asset.valid` is false', schema: decryptAnswer },
    },
  }),
  endpoint('resolveHash', {
    tag,
    summary: 'Resolve a hash to its KeyRing and key',
    access: { kind: 'flag', action: 'keyring.read', ring: { from: 'hash', param: 'hash' } },
    params: z.object({ hash: pathText }),
    answer: hashAnswer,
    errors: gone,
  }),
  endpoint('inspectHeader', {
    tag,
    summary: 'Read a header',
    access: { kind: 'flag', action: 'keyring.read', ring: { from: 'header', param: 'header' } },
    params: z.object({ header: pathText }),
    answer: headerAnswer,
    errors: missing('not a header, or its KeyRing is gone'),
  }),
] as const;
