// Secrets on the wire: managed keys of the type `secret` whose versions are JSON objects that somebody wrote, found by
// a path. They are for software that keeps its keys here and works with them itself, such as databases.
import { z } from 'zod';
import { mostSecretVersions } from '../model/key-types.ts';
import { endpoint, missing } from './endpoint.ts';
import { sample } from './example-values.ts';
import { keyState, tags, warning } from './managed-key-fields.ts';
import { managedKeyVersion } from './managed-keys.ts';
import { count, freeForm, managedKeyId, pathText, ringNamePattern, thingList, timestamp } from './values.ts';

const tag = 'Secrets';

/** Common declaration of an endpoint that needs the flag for the secret at the path, which may be a new one. */
function atPath<const Action extends `key.${string}`>(action: Action) {
  return {
    tag,
    access: { kind: 'flag', action, ring: { from: 'secret', param: 'path' } },
    params: z.object({ path: pathText }),
  } as const;
}

/** The same where the secret must be there. */
function ofSecret<const Action extends `key.${string}`>(action: Action) {
  return { ...atPath(action), errors: missing('no such secret') } as const;
}

const path = z.string().meta({ description: 'where it is found; case counts', examples: ['mariadb/1'] });
const name = z
  .string()
  .meta({ pattern: ringNamePattern, description: 'the name of the managed key, for flags', examples: ['mariadb.1'] });
const id = managedKeyId.meta({ description: 'id of the managed key', examples: [sample.managedKeyId] });
const value = freeForm.meta({ description: 'a JSON object, at most 64 KiB', examples: [{ data: '0123456789abcdef' }] });
const number = z.int().min(0);
const maxVersions = z
  .int()
  .min(0)
  .max(mostSecretVersions)
  .meta({ description: 'versions that are kept; 0: 1,000', examples: [0] });
const casRequired = z
  .boolean()
  .meta({ description: 'whether each write must name the version that it follows', examples: [false] });

/** A version, by the secret's path and name. */
const version = z
  .object({
    path,
    name,
    version: count.meta({ description: 'counted from 1', examples: [1] }),
    state: keyState,
    createdAt: timestamp,
    deletedAt: timestamp.exactOptional().meta({ description: 'when it was deleted, if it was' }),
    tags,
  })
  .meta({ id: 'SecretVersion', description: 'a version of a secret' });
export type SecretVersion = z.output<typeof version>;

const metadata = z
  .object({
    id,
    path,
    name,
    state: keyState,
    latestVersion: count.meta({ description: 'the newest version; 0: there is none yet', examples: [1] }),
    maxVersions,
    casRequired,
    tags,
    createdAt: timestamp,
    updatedAt: timestamp,
    versions: z.array(managedKeyVersion).meta({ description: 'those that are kept, the newest first' }),
  })
  .meta({ id: 'Secret', description: 'a secret and its versions, without their values' });
export type SecretMetadata = z.output<typeof metadata>;

const isVersion = (item: unknown): boolean => typeof item === 'number' && Number.isSafeInteger(item) && item >= 1;
const versions = thingList<number>(mostSecretVersions, (item) =>
  isVersion(item) ? undefined : 'expected an integer of at least 1',
).meta({
  type: 'array',
  maxItems: mostSecretVersions,
  items: { type: 'integer', minimum: 1 },
  description: 'the versions; those that are not there are passed over',
  examples: [[1]],
});
const changedVersions = z.object({
  versions: z.array(count).meta({ description: 'the versions that it changed', examples: [[1]] }),
});

export const secretEndpoints = [
  endpoint('listSecrets', {
    tag,
    summary: 'List the secrets and folders in a folder of paths',
    access: { kind: 'flag', action: 'key.list' },
    query: z.object({
      folder: z
        .string()
        .exactOptional()
        .meta({ description: 'the folder; the topmost if absent', examples: ['mariadb'] }),
    }),
    answer: z.object({
      names: z.array(z.string()).meta({
        description: 'names in the folder, those of folders with `/` at the end; at most 10,000',
        examples: [['1', '2', 'old/']],
      }),
    }),
  }),
  endpoint('readSecret', {
    summary: 'Read the value of a secret',
    ...ofSecret('key.export'),
    query: z.object({
      version: z
        .string()
        .regex(/^[0-9]{1,15}$/, 'expected a version')
        .exactOptional()
        .meta({ description: '0 or absent: the latest', examples: ['0'] }),
    }),
    answer: z.object({
      secret: version,
      value: value.exactOptional().meta({ description: 'absent if the version was deleted or destroyed' }),
      warning,
    }),
  }),
  endpoint('writeSecret', {
    summary: 'Write the value of a secret: a new one, or the next version of one',
    ...atPath('key.import'),
    body: z.object({
      value,
      follows: number.exactOptional().meta({
        description: 'the version that must be the latest; 0: there must be none; absent: whatever is there',
        examples: [0],
      }),
    }),
    answer: z.object({ secret: version }),
  }),
  endpoint('deleteSecret', {
    summary: 'Delete a secret with all of its versions; for 30 days it can be restored',
    ...ofSecret('key.delete'),
    answer: z.object({
      name,
      id,
      restorableUntil: timestamp.meta({ description: 'until when; RFC 3339, UTC, milliseconds' }),
    }),
  }),
  endpoint('getSecretMetadata', {
    summary: 'Read what is known of a secret, without its value',
    ...ofSecret('key.read'),
    answer: z.object({ secret: metadata }),
  }),
  endpoint('putSecretMetadata', {
    summary: "Change a secret's settings and tags: what is named is replaced, the rest is kept",
    ...ofSecret('key.config'),
    body: z.object({
      maxVersions: maxVersions.exactOptional(),
      casRequired: casRequired.exactOptional(),
      tags: tags.exactOptional(),
    }),
    answer: z.object({ secret: metadata }),
  }),
  endpoint('deleteSecretVersions', {
    summary: 'Delete versions of a secret, which can be restored',
    ...ofSecret('key.delete'),
    body: z.object({ versions: versions.exactOptional().meta({ description: 'absent: the latest' }) }),
    answer: changedVersions,
  }),
  endpoint('restoreSecretVersions', {
    summary: 'Bring back deleted versions of a secret',
    ...ofSecret('key.delete'),
    access: { kind: 'flag', action: 'key.delete', recorded: 'key.restore', ring: { from: 'secret', param: 'path' } },
    body: z.object({ versions }),
    answer: changedVersions,
  }),
  endpoint('destroySecretVersions', {
    summary: 'Destroy versions of a secret for good',
    ...ofSecret('key.delete'),
    body: z.object({ versions }),
    answer: changedVersions,
  }),
] as const;
