// Managed keys, which the appliance holds, on the wire: the endpoints of their life. Those that work with them are in
// key-operations.ts. Software that speaks another system's interface has a listener of its own.
import { z } from 'zod';
import { wrappingKeyTypes } from '../model/key-types.ts';
import { endpoint, missing } from './endpoint.ts';
import { sample } from './example-values.ts';
import {
  activateAt,
  alias,
  aliases,
  aws,
  deactivateAt,
  deletionAllowed,
  derived,
  exportable,
  firstState,
  keyState,
  kmip,
  minDecryptVersion,
  minEncryptVersion,
  newAlias,
  origin,
  patch,
  props,
  rotateAfter,
  tags,
  type,
  used,
  uses,
  wantedUses,
  warning,
} from './managed-key-fields.ts';
import { pageOf } from './page.ts';
import { newRingName, restoringRing, ringListQuery, whenDeleted } from './ring-life.ts';
import {
  base64,
  callerId,
  count,
  epochTime,
  managedKeyId,
  pathText,
  requiredText,
  ringNamePattern,
  text,
  timestamp,
  trueParam,
} from './values.ts';

const tag = 'Managed keys';

/** Common declaration of an endpoint that needs the flag for the key named in its path: by name, id or alias. */
export function ofKey<const Action extends `key.${string}`>(action: Action) {
  return {
    tag,
    access: { kind: 'flag', action, ring: { from: 'key', param: 'key' } },
    params: z.object({ key: pathText }),
    errors: missing('no such managed key'),
  } as const;
}

export const managedKeyVersion = z
  .object({
    version: count.meta({ description: 'counted from 1: the N of `vault:vN:`', examples: [1] }),
    state: keyState,
    origin,
    createdAt: timestamp,
    publicKey: z
      .string()
      .exactOptional()
      .meta({ description: 'of an asymmetric key: SPKI, PEM', examples: [sample.managedPublicKey] }),
    deletedAt: timestamp.exactOptional().meta({ description: 'when it was deleted, if it was' }),
  })
  .meta({ id: 'ManagedKeyVersion', description: 'a version of a managed key' });

const managedKey = z
  .object({
    id: managedKeyId.meta({ description: 'id of the managed key', examples: [sample.managedKeyId] }),
    name: z.string().meta({ pattern: ringNamePattern, description: 'the name in lower case', examples: ['unseal'] }),
    displayName: z
      .string()
      .meta({ pattern: ringNamePattern, description: 'the name as it was given', examples: ['Unseal'] }),
    aliases: z.array(z.string()).meta({ description: 'its other names', examples: [[]] }),
    custody: z.enum(['server']).meta({ description: 'who can use it: the appliance, for as long as it is there' }),
    type,
    uses,
    state: keyState,
    latestVersion: count.meta({ description: 'the newest version; 0: there is none yet', examples: [1] }),
    primaryVersion: count
      .nullable()
      .meta({ description: 'the newest active version, which protects what is new; `null`: none', examples: [1] }),
    minDecryptVersion,
    minEncryptVersion,
    derived,
    exportable,
    origin,
    allowPlaintextFormat: z
      .enum(['vault'])
      .exactOptional()
      .meta({ description: 'it opens messages that Vault or OpenBao made with the same key' }),
    rotateAfter,
    deletionAllowed,
    tags,
    props,
    createdAt: timestamp,
    updatedAt: timestamp,
    activateAt,
    deactivateAt,
    ...whenDeleted,
    versions: z
      .array(managedKeyVersion)
      .exactOptional()
      .meta({ description: 'those that are not erased, the newest first, at most 1,000; not in lists' }),
    aws,
    kmip,
  })
  .meta({ id: 'ManagedKey', description: 'a key that the appliance holds and works with' });
export type ManagedKey = z.output<typeof managedKey>;
const keyAnswer = z.object({ key: managedKey });

const createBody = z.object({
  name: newRingName('Unseal'),
  type: type.exactOptional(),
  uses: wantedUses.exactOptional(),
  aliases: aliases.exactOptional(),
  derived: derived.exactOptional(),
  exportable: exportable.exactOptional(),
  origin: origin
    .exactOptional()
    .meta({ description: '`imported`: the key has no version until one is imported; `generated` if absent' }),
  rotateAfter: rotateAfter.exactOptional(),
  deletionAllowed: deletionAllowed.exactOptional(),
  tags: tags.exactOptional(),
  props: props.exactOptional(),
  activateAt: activateAt.exactOptional(),
  deactivateAt: deactivateAt.exactOptional(),
  state: firstState.exactOptional(),
  keepExisting: z
    .boolean()
    .exactOptional()
    .meta({
      description: '`true`: where a key of that name, type, `derived` and named `uses` is there, nothing is done',
      examples: [false],
    }),
});

const configBody = z.object({
  minDecryptVersion: minDecryptVersion.exactOptional(),
  minEncryptVersion: minEncryptVersion.exactOptional(),
  deletionAllowed: deletionAllowed.exactOptional(),
  exportable: exportable.exactOptional(),
  rotateAfter: rotateAfter.exactOptional(),
  tags: tags.exactOptional(),
  props: props.exactOptional(),
  changes: z
    .object({ tags: patch.exactOptional(), props: patch.exactOptional() })
    .exactOptional()
    .meta({ description: 'some tags or properties to set, the rest kept; `null` removes one' }),
  activateAt: activateAt.exactOptional(),
  deactivateAt: deactivateAt.exactOptional(),
});

const dependent = z
  .object({
    caller: callerId.meta({ description: 'who used the key', examples: [sample.apikeyId] }),
    dialect: z.string().meta({ description: '`native`, or the dialect that the caller spoke', examples: ['vault'] }),
    version: count.meta({ description: 'the version that was used', examples: [1] }),
    operation: z.string().meta({ description: 'what for', examples: ['decrypt'] }),
    count: count.meta({ description: 'how often in all', examples: [12] }),
    lastUsedAt: timestamp.meta({ description: 'when last; RFC 3339, UTC, milliseconds' }),
  })
  .meta({ id: 'ManagedKeyDependent', description: 'one way in which a caller uses a managed key' });
export type Dependent = z.output<typeof dependent>;
const dependents = z.array(dependent).meta({ description: 'the most recent first, at most 2,000' });

const wrapping = z.enum(['oaep', 'oaep-kwp']);
const exported = {
  version: count.meta({ description: 'the version that was exported', examples: [1] }),
  wrapped: base64.exactOptional().meta({
    description: 'the key wrapped to the public key',
    examples: [sample.wrappedManagedKey],
  }),
  wrapping: wrapping.exactOptional().meta({
    description:
      'how: `oaep`, encrypted with RSA-OAEP; `oaep-kwp`, an AES-256 key encrypted so, and then the key wrapped under that with AES-KWP',
  }),
  plaintext: base64.exactOptional().meta({ description: 'the key itself, base64', examples: [sample.dataKey] }),
};

const keyId = managedKeyId.meta({
  description: 'the id, under which it can be restored',
  examples: [sample.managedKeyId],
});

export const managedKeyEndpoints = [
  endpoint('createManagedKey', {
    tag,
    summary: 'Make a key that the appliance holds',
    access: { kind: 'flag', action: 'key.create', about: { from: 'body', field: 'name' } },
    body: createBody,
    answer: keyAnswer,
  }),
  endpoint('listManagedKeys', {
    tag,
    summary: 'List managed keys, oldest first',
    access: { kind: 'flag', action: 'key.list' },
    query: ringListQuery.extend({
      pending: trueParam.exactOptional().meta({
        description: '`true`: those that are there, and the deleted ones that can still be restored',
      }),
      secrets: trueParam.exactOptional().meta({ description: '`false`: without those of the type `secret`' }),
      kmip: trueParam.exactOptional().meta({
        description: '`true`: only objects of KMIP, each with the field `kmip`',
      }),
    }),
    answer: pageOf(managedKey),
    paginated: true,
  }),
  endpoint('getWrappingKey', {
    tag,
    summary: 'Read the public key to which keys are wrapped for import',
    access: { kind: 'credential', action: 'key.wrapping-key' },
    query: z.object({
      type: z.enum(wrappingKeyTypes).exactOptional().meta({ description: '`rsa-4096` if absent' }),
      key: requiredText.exactOptional().meta({
        description: 'the key to import, by name, id or alias: it must be there, and its flag `import` is needed',
        examples: ['brought'],
      }),
    }),
    answer: z.object({
      id: z.string().meta({ description: 'names the wrapping key', examples: ['2026-01-02'] }),
      algorithm: z.enum(wrappingKeyTypes).meta({ description: 'what the wrapping key is', examples: ['rsa-4096'] }),
      publicKey: z.string().meta({ description: 'SPKI, PEM', examples: [sample.wrappingPublicKey] }),
      expiresAt: epochTime.meta({ description: 'until when something wrapped to it can be imported, epoch ms' }),
    }),
  }),
  endpoint('getManagedKey', {
    summary: 'Read a managed key and its versions',
    ...ofKey('key.read'),
    query: z.object({ dependents: trueParam.exactOptional().meta({ description: '`true`: with who used it' }) }),
    answer: keyAnswer.extend({ dependents: dependents.exactOptional() }),
  }),
  endpoint('deleteManagedKey', {
    summary: 'Delete a managed key; for 7 to 30 days it can be restored',
    ...ofKey('key.delete'),
    body: z.object({
      days: z
        .int()
        .min(7)
        .max(30)
        .exactOptional()
        .meta({
          description: 'days in which it can be restored, 7 to 30; 30 if absent',
          examples: [30],
        }),
      used,
    }),
    answer: z.object({
      name: z
        .string()
        .meta({ pattern: ringNamePattern, description: 'the name, which is free again', examples: ['unseal'] }),
      id: keyId,
      restorableUntil: timestamp.meta({ description: 'until when; RFC 3339, UTC, milliseconds' }),
    }),
  }),
  endpoint('restoreManagedKey', {
    tag,
    summary: 'Bring back a deleted managed key',
    ...restoringRing('key'),
    query: z.object({
      suspended: trueParam.exactOptional().meta({ description: '`true`: suspended, if it was active' }),
    }),
    answer: keyAnswer,
  }),
  endpoint('rotateManagedKey', {
    summary: 'Give a managed key a new version',
    ...ofKey('key.rotate'),
    answer: keyAnswer,
  }),
  endpoint('configureManagedKey', {
    summary:
      "Change a managed key's config: what is named is replaced, the rest is kept; dates take the flag of states",
    ...ofKey('key.config'),
    body: configBody,
    answer: keyAnswer,
  }),
  endpoint('setManagedKeyState', {
    summary: 'Activate, suspend or deactivate a managed key or one version, or mark it as compromised',
    ...ofKey('key.state'),
    body: z.object({
      state: z.enum(['active', 'suspended', 'deactivated', 'compromised']).meta({ description: 'the new state' }),
      version: z
        .int()
        .min(1)
        .exactOptional()
        .meta({
          description: 'the version whose state changes; the key itself if absent',
          examples: [1],
        }),
      used,
    }),
    answer: keyAnswer,
  }),
  endpoint('addManagedKeyAlias', {
    summary: 'Give a managed key an alias, or move one to it',
    ...ofKey('key.config'),
    body: z.object({ alias, isNew: newAlias.optional() }),
    answer: keyAnswer,
  }),
  endpoint('removeManagedKeyAlias', {
    summary: 'Take an alias away from a managed key',
    ...ofKey('key.config'),
    params: z.object({ key: pathText, alias: pathText }),
    answer: keyAnswer,
  }),
  endpoint('trimManagedKey', {
    summary: 'Destroy versions of a managed key that nothing may use any more',
    ...ofKey('key.delete'),
    body: z.object({
      minAvailableVersion: z
        .int()
        .min(1)
        .meta({
          description: 'older versions are destroyed; neither `minDecryptVersion` nor `minEncryptVersion` may be older',
          examples: [3],
        }),
    }),
    answer: keyAnswer,
  }),
  endpoint('listManagedKeyDependents', {
    summary: 'List who used a managed key, which version, through which dialect, for what, how often and when last',
    ...ofKey('key.read'),
    query: z.object({
      since: z
        .string()
        .regex(/^[0-9]{1,15}$/, 'expected a time in epoch milliseconds')
        .exactOptional()
        .meta({ description: 'only uses since then, in epoch milliseconds', examples: ['1767225600000'] }),
    }),
    answer: z.object({ dependents }),
  }),
  endpoint('importManagedKey', {
    summary: 'Import a key, wrapped to the wrapping key: as a new managed key, or as the next version of one',
    ...ofKey('key.import'),
    body: z.object({
      wrapped: text.exactOptional().meta({
        description:
          'base64: the key encrypted with RSA-OAEP and `hash`, or a new AES-256 key encrypted so and, after it, the key wrapped under that with AES-KWP (RFC 5649)',
        contentEncoding: 'base64',
        examples: [sample.wrappedManagedKey],
      }),
      plaintext: text.exactOptional().meta({
        description: 'the key itself, base64; on the local socket alone',
        contentEncoding: 'base64',
        examples: [''],
      }),
      format: z.enum(['raw', 'der', 'pem']).exactOptional().meta({
        description:
          'what the bytes are: the key itself (`raw`: symmetric keys, scalars, seeds), PKCS #8, PKCS #1 or SEC 1 DER, or PEM; found out if absent',
      }),
      hash: z
        .enum(['sha2-256', 'sha1', 'sha2-384', 'sha2-512'])
        .exactOptional()
        .meta({ description: 'of OAEP; `sha2-256` if absent' }),
      publicKey: text.exactOptional().meta({
        description: 'in place of a private key, of asymmetric types: SPKI, PEM or base64 of DER',
        examples: [''],
      }),
      type: type.exactOptional().meta({ description: 'of a new managed key; `aes256-gcm` if absent' }),
      uses: wantedUses.exactOptional(),
      derived: derived.exactOptional(),
      exportable: exportable.exactOptional(),
      allowPlaintextFormat: z
        .enum(['vault'])
        .exactOptional()
        .meta({ description: 'it shall open messages that Vault or OpenBao made with the same key; this stays so' }),
      rotateAfter: rotateAfter.exactOptional(),
      isNewVersion: z
        .boolean()
        .exactOptional()
        .meta({
          description: '`true`: the next version of a key that is there; `false`: a new key',
          examples: [false],
        }),
    }),
    answer: keyAnswer,
  }),
  endpoint('eraseKeyMaterial', {
    summary: 'Erase the bytes of an imported key, until the same key is imported again',
    ...ofKey('key.import'),
    access: {
      kind: 'flag',
      action: 'key.import',
      recorded: 'key.erase-material',
      ring: { from: 'key', param: 'key' },
    },
    answer: keyAnswer,
  }),
  endpoint('exportManagedKey', {
    summary: 'Export a managed key, wrapped to a public key or in clear',
    ...ofKey('key.export'),
    changes: true,
    body: z.object({
      version: z
        .int()
        .min(0)
        .exactOptional()
        .meta({ description: '0 or absent: the latest', examples: [0] }),
      allVersions: z
        .boolean()
        .exactOptional()
        .meta({
          description: '`true`: all that decrypt and whose keys are here, the newest 1,000, and at most 4 MiB',
          examples: [false],
        }),
      publicKey: text.exactOptional().meta({
        description: 'RSA of 2048, 3072 or 4096 bits to wrap to: SPKI, PEM or base64 of DER',
        examples: [sample.wrappingPublicKey],
      }),
      toKey: requiredText.exactOptional().meta({
        description: 'in place of `publicKey`: an RSA managed key that the caller may read, by name, id or alias',
        examples: ['partner'],
      }),
      hash: z
        .enum(['sha2-256', 'sha1', 'sha2-384', 'sha2-512'])
        .exactOptional()
        .meta({ description: 'of OAEP; `sha2-256` if absent' }),
      wrapping: wrapping.exactOptional().meta({
        description: '`oaep` alone where the key fits, and `oaep-kwp` elsewhere, if absent',
      }),
      plaintext: z
        .boolean()
        .exactOptional()
        .meta({ description: '`true`: in clear, if there is nothing to wrap to', examples: [false] }),
      format: z.enum(['raw', 'der']).exactOptional().meta({
        description: 'of the key: `raw`, or `der` (PKCS #8), as which asymmetric keys are exported if absent',
      }),
    }),
    answer: z.object({
      warning,
      name: z.string().meta({ pattern: ringNamePattern, description: 'the name of the key', examples: ['unseal'] }),
      type,
      format: z.enum(['raw', 'der']).meta({ description: 'what the bytes are' }),
      ...exported,
      versions: z
        .array(z.object(exported).meta({ id: 'ExportedKeyVersion', description: 'an exported version' }))
        .exactOptional()
        .meta({ description: 'with `allVersions`: each of them, the newest first' }),
    }),
  }),
] as const;
