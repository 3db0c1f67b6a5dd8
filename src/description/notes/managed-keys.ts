// Notes on the endpoints for keys that the appliance holds: those of managed keys, and key pairs for Tang clients.
import { sample } from '../../api/example-values.ts';
import type { managedKeyEndpoints } from '../../api/managed-keys.ts';
import type { tangEndpoints } from '../../api/tang.ts';
import type { Note } from '../prose.ts';

const noRing = { message: 'there is no such managed key' };
const taken = { field: 'name', message: 'another managed key has this name' };
const clients = {
  message:
    'the keys of this ring are held by its clients (custody client), so the appliance cannot use them: it is served at /ks',
};
const params = { ringname: { description: 'name of the managed key', example: 'unseal' } };
const ringLimit = '10 keyrings';
const keyLimit = '100 keys in a keyring';
const each =
  'There can be at most 1,000 `items`. Each is processed on its own and has its result at the same position: what was made, or `error`. Each has its own activity record, and all records are durable before the answer.';
const bound =
  '`associatedData` (base64) is bound to the message, which opens only with the same data. `context` (base64) is for rings that derive a key for each context; others refuse it.';

export const managedKeyNotes: Readonly<Record<(typeof managedKeyEndpoints)[number]['id'], Note>> = {
  createManagedKey: {
    description: [
      'Creates a ring with custody `server`: the appliance holds its keys, and encrypts, decrypts and signs with them itself. Anyone who has the master key and the database can do so too, unlike with a KeyRing. The custody of a ring never changes. A tenant can be barred from such rings: `kms tenant update NAME --custody client`.',
      'Software that speaks Vault transit reaches the same rings under `/v1/` at the address of `kms serve --vault-listen`.',
    ],
    body: { name: 'Unseal', type: 'aes256-gcm96' },
    problems: {
      400: [taken, { message: 'this tenant keeps to rings whose keys are held by clients (custody client)' }],
    },
    limits: [ringLimit],
  },
  listManagedKeys: {
    description: [
      'Lists the managed keys, without their versions and without deleted ones. With `deleted=true` it lists only those that were deleted and can still be restored.',
    ],
  },
  getManagedKey: {
    description: ['Returns one managed key with its versions, and with their public keys if it signs.'],
    params,
    problems: { 400: [clients], 404: [noRing] },
  },
  deleteManagedKey: {
    description: [
      'The ring is gone at once, and nothing that it encrypted can be decrypted. For 30 days it can be restored by its id; then its keys are erased, and what only they could open is lost. Its config must allow it first (`deletionAllowed`).',
    ],
    params,
    problems: {
      400: [{ message: 'error deleting policy unseal: deletion is not allowed for this key' }, clients],
      404: [noRing],
    },
  },
  restoreManagedKey: {
    description: ['Brings back a managed key that was deleted less than 30 days ago, with all of its versions.'],
    params: { id: { description: 'id of the deleted managed key', example: sample.managedKeyId } },
    problems: { 400: [taken], 404: [{ message: 'there is no deleted managed key of this id to restore' }] },
    limits: [ringLimit],
  },
  rotateManagedKey: {
    description: ['Creates a new version, which encrypts all messages from now on. Earlier versions still decrypt.'],
    params,
    problems: { 400: [clients], 404: [noRing] },
    limits: [keyLimit],
  },
  configureManagedKey: {
    description: [
      'Replaces what the request names and keeps the rest. It erases no key: versions below `minDecryptionVersion` are not used, but are usable again once you lower it.',
    ],
    params,
    body: { minDecryptionVersion: 1, minEncryptionVersion: 0, deletionAllowed: true, rotateAfter: 7776000 },
    problems: {
      400: [{ message: 'cannot set min decryption version of 3, latest key version is 1' }, clients],
      404: [noRing],
    },
  },
  encryptWithKey: {
    description: [
      `Encrypts with the ring's latest version, or with \`keyVersion\`. ${bound}`,
      each,
      'A version encrypts at most 2^32 messages; the next message gets a new version first.',
    ],
    params,
    body: { items: [{ plaintext: 'aGVsbG8=', associatedData: '' }] },
    answer: { items: [{ ciphertext: sample.keyCiphertext, keyVersion: 1 }] },
    problems: { 400: [{ message: 'missing batch input to process' }, clients], 404: [noRing] },
    limits: [keyLimit],
  },
  decryptWithKey: {
    description: [`Decrypts messages of this ring. ${bound}`, each],
    params,
    body: { items: [{ ciphertext: sample.keyCiphertext }] },
    answer: { items: [{ plaintext: 'aGVsbG8=' }] },
    problems: { 400: [{ message: 'missing batch input to process' }, clients], 404: [noRing] },
  },
  rewrapWithKey: {
    description: [
      `Decrypts and encrypts again, with the latest version, without showing the plaintext. ${bound}`,
      each,
    ],
    params,
    body: { items: [{ ciphertext: sample.keyCiphertext }] },
    answer: { items: [{ ciphertext: sample.keyCiphertext, keyVersion: 1 }] },
    problems: { 400: [{ message: 'missing batch input to process' }, clients], 404: [noRing] },
    limits: [keyLimit],
  },
  generateDataKey: {
    description: [
      `Makes a random key of \`bits\` bits, and encrypts it with the ring's latest version, or with \`keyVersion\`. ${bound}`,
    ],
    params,
    body: { bits: 256 },
    answer: { ciphertext: sample.keyCiphertext, keyVersion: 1, plaintext: sample.dataKey },
    problems: { 400: [{ message: 'invalid bit length' }, clients], 404: [noRing] },
    limits: [keyLimit],
  },
  generateWrappedDataKey: {
    description: [
      'The same as `datakey`, without the key itself: for programs that prepare keys for others and must not see them.',
    ],
    params,
    body: { bits: 256 },
    answer: { ciphertext: sample.keyCiphertext, keyVersion: 1 },
    problems: { 400: [{ message: 'invalid bit length' }, clients], 404: [noRing] },
    limits: [keyLimit],
  },
  signWithKey: {
    description: [
      'Signs with the latest version of a ring of type `ed25519` or `ecdsa-p256`, or with `keyVersion`. ECDSA signs the hash of `input`, Ed25519 `input` itself.',
    ],
    params: { ringname: { description: 'name of the managed key', example: 'release' } },
    body: { input: 'aGVsbG8=' },
    answer: { signature: sample.keySignature, keyVersion: 1 },
    problems: { 400: [{ message: 'key type aes256-gcm96 does not support signing' }, clients], 404: [noRing] },
  },
  verifyWithKey: {
    description: ['Says whether a signature by this ring is valid for `input`.'],
    params: { ringname: { description: 'name of the managed key', example: 'release' } },
    body: { input: 'aGVsbG8=', signature: sample.keySignature },
    answer: { valid: true },
    problems: { 400: [{ message: 'invalid signature: no prefix' }, clients], 404: [noRing] },
  },
};

const custody = { message: 'this tenant keeps to keys that are held by clients (custody client)' };

export const tangNotes: Readonly<Record<(typeof tangEndpoints)[number]['id'], Note>> = {
  listTangPairs: {
    description: [
      'Lists the key pairs that the appliance holds for clients of Tang, such as clevis. They reach the appliance at the address of `kms serve --tang-listen`, where no credential is needed. Secret keys are never returned.',
      '`recoveries` and `recoveredAt` tell whether an earlier pair is still used. Each recovery is in the activity log, as `tang.recover` with the address that it came from.',
    ],
  },
  rotateTangPair: {
    description: [
      'Creates a new key pair and advertises it for new bindings. The earlier pairs are no longer advertised, but still recover what was bound to them until they are deleted. At most 100 pairs are kept.',
      'You need not create the first pair: that happens when a client first asks for one.',
    ],
    problems: { 400: [{ message: 'there are 100 Tang key pairs already: delete those that nothing uses' }, custody] },
  },
  deleteTangPair: {
    description: [
      'Deletes a key pair for good. What was bound only to it can never be recovered through the appliance again. The advertised pair cannot be deleted: rotate first. Takes the thumbprint of either key, as SHA-256 or SHA-1.',
    ],
    params: { thumbprint: { description: 'thumbprint of one of the two keys', example: sample.tangThumbprint } },
    problems: {
      400: [{ message: 'this Tang key pair is advertised: rotate first' }],
      404: [{ message: 'there is no such Tang key pair' }],
    },
  },
};
