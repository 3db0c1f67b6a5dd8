// Notes on the endpoints for keys that the appliance holds: the life of managed keys, and key pairs for Tang clients.
// What is done with managed keys is in key-operations.ts.
import { sample } from '../../api/example-values.ts';
import type { managedKeyEndpoints } from '../../api/managed-keys.ts';
import type { tangEndpoints } from '../../api/tang.ts';
import type { Note } from '../prose.ts';

export const noKey = { message: 'there is no such managed key' };
export const clients = {
  message:
    'the keys of this keyring are held by its clients (custody client), so the appliance cannot use them: it is served at /ks',
};
export const keyLimit = '100 keys in a keyring';

/** The path parameter of an example about the key of that name. */
export function named(example: string): NonNullable<Note['params']> {
  return { key: { description: 'name, id or alias of the managed key', example } };
}

const params = named('unseal');
const taken = { field: 'name', message: 'another managed key has this name' };
const ringLimit = '10 keyrings';
const inUse = {
  message: '2 callers used the key in the last 24 hours: say `used: true` if it is to be suspended all the same',
};

export const managedKeyNotes: Readonly<Record<(typeof managedKeyEndpoints)[number]['id'], Note>> = {
  createManagedKey: {
    description: [
      'Makes a managed key and its first version. The appliance holds the key and works with it. Anyone who has the master key and the database can do so too, unlike with a KeyRing. A tenant can be barred from such keys: `kms tenant update NAME --custody client`.',
      '`type`, `uses` and `derived` never change. Without `type` the key is `aes256-gcm`; without `uses` it has those that are usual for its type: `encrypt` and `decrypt` for ciphers, `sign` and `verify` for key pairs, `mac` and `verify` for HMAC, `export` for a `secret`. An RSA key either encrypts or signs.',
      'With `activateAt` in the future the key is `pre-active` until then. With `origin` `imported` it has no version, and does nothing, until one is imported. `deactivateAt` must be to come. A `secret` has no `rotateAfter`.',
    ],
    body: {
      name: 'Unseal',
      type: 'aes256-gcm',
      uses: ['encrypt', 'decrypt'],
      aliases: ['app/db'],
      rotateAfter: 7776000,
      tags: { team: 'payments' },
    },
    problems: {
      400: [
        taken,
        { field: 'uses', message: 'a key of the type ed25519 cannot encrypt' },
        { field: 'alias', message: 'another managed key has this alias' },
      ],
      403: [{ message: 'this tenant keeps to keys held by clients (custody client)' }],
    },
    limits: [ringLimit],
  },
  listManagedKeys: {
    description: [
      'Lists the managed keys, without their versions and without deleted ones. With `deleted=true` it lists only those that were deleted and can still be restored. With `secrets=false` it leaves out those of the type `secret`, which may be many. With `kmip=true` it lists objects of KMIP alone, each with its type and names there, the API key that made it, and who got its value last.',
    ],
  },
  getWrappingKey: {
    description: [
      'Returns an RSA key of the tenant to which keys are wrapped for import: of 4096 bits, or of the `type` asked for. It is replaced daily, and what was wrapped to it can be imported for one more day. Wrap with RSA-OAEP and SHA-256. What is too long for that, such as a private key, is wrapped with AES-KWP (RFC 5649) under a new AES-256 key, and that key with RSA-OAEP; send the wrapped AES key, then the rest.',
    ],
  },
  getManagedKey: {
    description: [
      'Returns one managed key with its versions, and with their public keys if it has any. With `dependents=true`, it also says who used it, as `GET /managed-keys/{key}/dependents` does; both are recorded as one `key.read`.',
    ],
    params,
    problems: { 400: [clients], 404: [noKey] },
  },
  deleteManagedKey: {
    description: [
      'From now on the key does nothing, and its name is free. For 7 to 30 days it can be restored by its id; then it is destroyed, and what only it could open is lost. Its config must allow it first (`deletionAllowed`).',
      'If the key was used in the last 24 hours, the request needs `used` `true`. `GET /managed-keys/{key}/dependents` says by whom.',
    ],
    params,
    problems: {
      400: [
        { message: 'error deleting policy unseal: deletion is not allowed for this key' },
        { message: '1 caller used the key in the last 24 hours: say `used: true` if it is to be deleted all the same' },
      ],
      404: [noKey],
    },
  },
  restoreManagedKey: {
    description: [
      'Brings back a managed key that was deleted and is not destroyed yet, with all of its versions. It returns to the state that it was in.',
    ],
    params: { id: { description: 'id of the deleted managed key', example: sample.managedKeyId } },
    problems: { 400: [taken], 404: [{ message: 'there is no deleted managed key of this id to restore' }] },
    limits: [ringLimit],
  },
  rotateManagedKey: {
    description: [
      'Creates a new version, which protects all that is new from now on. Earlier versions still decrypt and verify. The version of a `secret` has random bytes, so one whose value somebody wrote is refused. So is an object that a client of KMIP made: Re-key makes a new one instead.',
    ],
    params,
    problems: { 400: [{ message: 'the key is suspended, so it gets no new version' }, clients], 404: [noKey] },
    limits: [keyLimit],
  },
  configureManagedKey: {
    description: [
      'Replaces what the request names and keeps the rest. It destroys no version: those below `minDecryptVersion` are not used, but are usable again once you lower it. `exportable` can be taken away, and never given back; nobody can read a `secret` without it any more.',
      'A `deactivateAt` that is over deactivates the key at once, for good. `activateAt` is for a key that was never active.',
    ],
    params,
    body: {
      minDecryptVersion: 1,
      minEncryptVersion: 0,
      deletionAllowed: true,
      exportable: false,
      rotateAfter: 7776000,
      tags: { team: 'payments' },
      deactivateAt: null,
    },
    problems: {
      400: [
        { message: 'cannot set min decryption version of 3, latest key version is 1' },
        { field: 'exportable', message: 'expected false: a key that may not leave the appliance stays so' },
      ],
      404: [noKey],
    },
  },
  setManagedKeyState: {
    description: [
      'Changes the state of the key or, with `version`, of one version of it. A suspended key does nothing until it is `active` again. A deactivated key protects nothing new, but still decrypts, unwraps and verifies. So does a compromised one; the answers then carry a `warning`. Neither becomes active again.',
      'If what is to be suspended was used in the last 24 hours, the request needs `used` `true`. `GET /managed-keys/{key}/dependents` says by whom.',
    ],
    params,
    body: { state: 'suspended', used: true },
    problems: {
      400: [inUse, { message: 'the key is compromised, so it cannot be suspended: only an active key can' }],
      404: [noKey, { message: 'the key has no version 7' }],
    },
  },
  addManagedKeyAlias: {
    description: [
      'The key can be named by its aliases wherever it can be named, but flags name it by its name. An alias that another key has moves to this one, unless `isNew` is true; for that, the caller needs the flag for both keys.',
    ],
    params,
    problems: { 400: [{ field: 'alias', message: 'a managed key has this name' }], 404: [noKey] },
  },
  removeManagedKeyAlias: {
    description: ['Takes an alias away. A `/` in it is sent as `%2F`.'],
    params: { ...params, alias: { description: 'the alias', example: 'app/db' } },
    problems: { 404: [noKey, { message: 'the key has no such alias' }] },
  },
  trimManagedKey: {
    description: [
      'Destroys the versions before `minAvailableVersion` for good. Neither `minDecryptVersion` nor `minEncryptVersion` may be older, and the latter must be set.',
    ],
    params,
    body: { minAvailableVersion: 2 },
    problems: {
      400: [
        {
          message: 'minimum available version cannot be set when minimum encryption version is not set',
        },
      ],
      404: [noKey],
    },
  },
  listManagedKeyDependents: {
    description: [
      'Says which callers used which version of the key, through which dialect, for what, how often and when last. Ask it before you suspend or delete a key. The counts are kept with the key; the activity log is not searched. A use that comes to nothing, such as decrypting something altered, is not counted.',
      'Up to 2,000 such uses are kept for each key. When there are more, those of deleted callers go first, then those that are longest ago.',
    ],
    params,
    problems: { 404: [noKey] },
  },
  importManagedKey: {
    description: [
      'Imports a key as a new managed key (for which `key.create` is needed too), as the first version of one that was made with `origin` `imported`, or as the next version of one that is there. `isNewVersion` says which of these it must be.',
      'Give one of `wrapped`, `publicKey` and `plaintext`. `wrapped` is the key wrapped to the key of `GET /managed-keys/wrapping-key`. A version of which only the `publicKey` is known encrypts, wraps and verifies. `plaintext` is taken on the local socket alone.',
    ],
    params: named('brought'),
    body: { wrapped: sample.wrappedManagedKey, type: 'aes256-gcm' },
    problems: {
      400: [
        { message: 'expected one of wrapped, plaintext and publicKey' },
        { message: 'there is a managed key of this name: import a new version of it' },
        {
          field: 'wrapped',
          message: 'expected something wrapped to the wrapping key of this day or the day before',
        },
      ],
      403: [{ message: 'a key is imported in clear on the local socket alone: wrap it to the wrapping key' }],
      404: [noKey],
    },
    limits: [ringLimit, keyLimit],
  },
  eraseKeyMaterial: {
    description: [
      'For an imported key with one version: leaves no byte of it. The key stays, with its names and its config, and does nothing until the same key is imported again, which then opens what it made before. Another key is refused.',
    ],
    params: named('brought'),
    problems: {
      400: [{ message: 'the key was not imported: its bytes are nowhere else' }, clients],
      404: [noKey],
    },
  },
  exportManagedKey: {
    description: [
      'Returns a version of an `exportable` key, or with `allVersions` all that decrypt: wrapped to your RSA key `publicKey` or to the managed key `toKey`, or, with `plaintext` `true`, in clear. The activity log says which. `toKey` takes the flag to read that key too.',
      '`allVersions` answers up to 4 MiB of keys, which only long secrets exceed: export their versions one by one.',
      'What is `wrapped` is an AES-256 key encrypted with RSA-OAEP, then the key wrapped under it with AES-KWP.',
    ],
    params: named('portable'),
    body: { publicKey: sample.wrappingPublicKey },
    answer: { name: 'portable', type: 'aes256-gcm', format: 'raw', version: 1, wrapped: sample.wrappedManagedKey },
    problems: {
      400: [
        { message: 'private key material is not exportable' },
        { message: 'expected a publicKey or a toKey to wrap to, or plaintext: true' },
      ],
      404: [noKey],
    },
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
