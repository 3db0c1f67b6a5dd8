// Notes on the endpoints for encrypt and decrypt, hashes and headers, and Assets.

import type { assetEndpoints } from '../../api/assets.ts';
import type { encryptionEndpoints } from '../../api/encryption.ts';
import { sample } from '../../api/example-values.ts';
import type { Note } from '../prose.ts';

const notAHash = { message: 'the hash is not one of this service, or was altered' };
const notAHeader = { message: 'this is not a header of this service' };
const noAsset = { problems: { 404: [{ message: 'there is no such asset' }] } };
const asset = { id: { description: 'id of the Asset', example: sample.assetId } };
const wrapped = {
  id: sample.keyId,
  type: 'aes256',
  kem: 'x25519',
  props: {},
  keyData: { encrypted: { key: { value: sample.wrappedKey, encoding: 'base64' } }, iv: sample.iv },
};

export const encryptionNotes: Readonly<Record<(typeof encryptionEndpoints)[number]['id'], Note>> = {
  encrypt: {
    description: [
      "Returns the ring's active key, wrapped, with a hash and a header that are new each time. Unwrap the key with the ring's private key, encrypt, and put the header in front of the ciphertext.",
      'With `asset`, the header carries a signed Asset: a new one, or with `assetId` a new version of one of this ring.',
      'A program that has kept unwrapped keys can name them in `knownKeys`: if the answer would contain one of them, `keyData` is left out.',
      'With `recipient`, you can encrypt without the private key: the answer has a `share`, which only this service can derive, and the `publicKey` of the ring. The key of the file is made from the share and a secret that is sealed to the public key, as `docs/file-format.md` of the source describes. The answer has no `keyData`.',
      'If the key has served as many encrypts as the configuration allows, the ring is rotated first.',
    ],
    body: { ringname: 'payroll', asset: { parents: [sample.parentId], data: { file: 'salaries.xlsx' } } },
    problems: {
      400: [
        { field: 'asset.parents', message: 'expected ids of assets that there are' },
        { field: 'asset.parents', message: 'an asset cannot be its own ancestor' },
      ],
      404: [{ message: 'there is no such keyring' }, { message: 'the keyring has no such asset' }],
    },
    limits: ['100 keys in a keyring', '1000 assets', '5000 versions of assets'],
  },
  decrypt: {
    description: [
      'Takes a hash, a header, or both, and returns the wrapped key that they stand for. For a header with an Asset, `asset` says whether it verifies.',
      'For a header that came with `recipient`, the answer has the same `share` again, and the activity record says so.',
      '`knownKeys` works as in encrypt.',
      'If the Asset does not verify, the status is 422 and the answer is the same except for `asset.valid`: the key is there, and the program decides whether to use it.',
    ],
    body: { header: sample.header },
    problems: {
      400: [
        { message: 'expected a hash or a header' },
        { message: 'the hash is not the one in the header' },
        { message: 'the header was altered' },
        notAHeader,
        notAHash,
      ],
      404: [{ message: 'there is no such keyring' }, { message: 'the key is gone' }],
    },
    errorExamples: {
      422: {
        ringId: sample.ringId,
        ringname: 'payroll',
        key: wrapped,
        asset: { valid: false, id: sample.assetId, message: 'the asset was deleted', data: {} },
      },
    },
  },
  resolveHash: {
    description: ['Returns the ids that a hash stands for. Nothing is decrypted, and no key is returned.'],
    problems: { 400: [notAHash], 404: [{ message: 'there is no such keyring' }, { message: 'the key is gone' }] },
  },
  inspectHeader: {
    description: ['Returns what a header holds. `valid` is false if it was altered.'],
    problems: { 404: [notAHeader, { message: 'there is no such keyring' }] },
  },
};

export const assetNotes: Readonly<Record<(typeof assetEndpoints)[number]['id'], Note>> = {
  listSigningKeys: {
    description: [
      'Returns the public keys for verifying the Asset in a header without this service: one for each epoch that hashes name. `docs/formats.md` of the source describes what is signed, and `docs/verify-asset` has programs that verify it.',
      'The keys of earlier epochs stay, because their headers remain valid for ever.',
    ],
  },
  getAsset: { description: ['Returns the current version of an Asset.'], params: asset, ...noAsset },
  deleteAsset: {
    description: ['Deletes an Asset for good, and returns it once more. Headers that carry it no longer verify.'],
    params: asset,
    ...noAsset,
  },
  searchAssets: {
    description: ['Finds Assets that match all given filters, newest first. `{}` finds all.'],
    body: { keyringId: sample.ringId, data: { file: 'salaries.xlsx' } },
    problems: { 400: [{ field: 'start', message: 'expected a number, got a string' }] },
  },
};
