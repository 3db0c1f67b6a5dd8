// Notes on the endpoints for secrets.
import type { secretEndpoints } from '../../api/secrets.ts';
import type { Note } from '../prose.ts';
import { keyLimit } from './managed-keys.ts';

const noSecret = { message: 'there is no such secret' };
const params = {
  path: { description: 'path of the secret; a `/` in it is sent as `%2F`', example: 'mariadb/1' },
} as const;
const suspended = { message: 'the secret is suspended, so it cannot be read' };
const notAllowed = { message: 'deletion is not allowed for this key' };

export const secretNotes: Readonly<Record<(typeof secretEndpoints)[number]['id'], Note>> = {
  listSecrets: {
    description: [
      'Lists what is in a folder of paths. Only secrets that were written with a path are in one. Those that were made as managed keys are in the list of managed keys.',
    ],
    problems: { 400: [{ message: 'more than 10000 names: list a folder' }] },
  },
  readSecret: {
    description: [
      'Returns the value of one version. Each read is recorded, and counts as a use of the managed key. A version that was deleted or destroyed has no value.',
      'A secret is a managed key of the type `secret`. One that was made as such is found by its name or an alias. If its bytes are no JSON object, they are in `data` (hexadecimal), `key` and `value` (base64), where databases look for them.',
    ],
    params,
    problems: {
      400: [suspended, { message: 'private key material is not exportable' }],
      404: [noSecret, { message: 'the secret has no such version' }],
    },
  },
  writeSecret: {
    description: [
      'Writes a JSON object of at most 64 KiB as the next version. If there is no secret at the path, a managed key of the type `secret` is made. Its name, for flags, is the path in lower case with `.` for `/` and `-` for all else that a name cannot have. Where other paths would lead to the same name, `-` and 8 hexadecimal digits of the SHA-256 of the path follow: after upper case letters, dots and replaced characters, and if the name is taken.',
      'The newest 1,000 versions are kept, or as many as `maxVersions` says. Older ones are destroyed.',
    ],
    params,
    body: { value: { data: '0123456789abcdef0123456789abcdef' }, follows: 0 },
    problems: {
      400: [
        { message: 'check-and-set parameter did not match the current version' },
        { message: 'check-and-set parameter required for this call' },
        { field: 'value', message: 'expected at most 65536 bytes of JSON, got 70000' },
      ],
      403: [{ message: 'this tenant keeps to keys held by clients (custody client)' }],
    },
    limits: ['10 keyrings', keyLimit],
  },
  deleteSecret: {
    description: [
      'Deletes the managed key, with all versions. Its path and name are free at once. For 30 days it can be restored like any managed key, by its id.',
    ],
    params,
    problems: {
      400: [{ message: 'error deleting policy mariadb.1: deletion is not allowed for this key' }],
      404: [noSecret],
    },
  },
  getSecretMetadata: {
    description: ['Returns the settings of a secret and its versions, without values.'],
    params,
    problems: { 404: [noSecret] },
  },
  putSecretMetadata: {
    description: [
      'Replaces what the request names and keeps the rest. A lower `maxVersions` destroys older versions at the next write.',
    ],
    params,
    body: { maxVersions: 10, casRequired: true, tags: { team: 'payments' } },
    problems: { 400: [{ field: 'tags', message: 'expected at most 50 tags' }], 404: [noSecret] },
  },
  deleteSecretVersions: {
    description: ['The values of these versions are no longer given out, until the versions are restored.'],
    params,
    body: { versions: [1] },
    problems: { 400: [notAllowed], 404: [noSecret] },
  },
  restoreSecretVersions: {
    description: ['Brings back versions that were deleted, and not destroyed.'],
    params,
    body: { versions: [1] },
    problems: { 404: [noSecret] },
  },
  destroySecretVersions: {
    description: ['Leaves no byte of the values of these versions.'],
    params,
    body: { versions: [1] },
    problems: { 400: [notAllowed], 404: [noSecret] },
  },
};
