// Managed keys, whose keys the appliance holds, on the wire: the endpoints that manage and use them. Software that
// speaks Vault's transit engine has a listener of its own, with that engine's paths and answers.
import { z } from 'zod';
import { isJsonObject } from '../model/json.ts';
import { mostTransitItems, transitHashes, transitTypes } from '../model/transit.ts';
import { endpoint, missing } from './endpoint.ts';
import { sample } from './example-values.ts';
import { pageOf } from './page.ts';
import { deletedRing, newRingName, restoringRing, ringAge, ringListQuery, whenDeleted } from './ring-life.ts';
import {
  base64,
  count,
  idOf,
  kindOf,
  pathText,
  requiredText,
  ringNamePattern,
  text,
  thingList,
  timestamp,
  wordPattern,
} from './values.ts';

const tag = 'Managed keys';

/** Common declaration of an endpoint that needs the flag for the ring named in its path. */
function ofRing<const Action extends `key.${string}`>(action: Action) {
  return {
    tag,
    access: { kind: 'flag', action, ring: { from: 'path', param: 'ringname', byId: false } },
    params: z.object({ ringname: pathText }),
    errors: missing('no such managed key'),
  } as const;
}

const type = z.enum(transitTypes).meta({ description: 'what its keys are; the first two encrypt, the others sign' });
const derived = z
  .boolean()
  .meta({ description: 'each message has a key of its own, derived by its `context`', examples: [false] });
const minDecryptionVersion = z
  .int()
  .min(0)
  .meta({ description: 'messages of older versions are not read', examples: [1] });
const minEncryptionVersion = z
  .int()
  .min(0)
  .meta({ description: 'the oldest version that may make messages; 0: any that decrypts', examples: [0] });
const deletionAllowed = z.boolean().meta({ description: 'whether the ring may be deleted', examples: [false] });
const rotateAfter = ringAge('how old a version gets, in whole seconds: the next message past that age gets a new one');

const version = z
  .object({
    version: count.meta({ description: 'counted from 1: the N of `vault:vN:`', examples: [1] }),
    createdAt: timestamp,
    publicKey: z
      .string()
      .exactOptional()
      .meta({
        description: 'where the ring signs: base64 of the 32 bytes of Ed25519, or PEM of P-256',
        examples: [sample.managedPublicKey],
      }),
  })
  .meta({ id: 'ManagedKeyVersion', description: 'a version of a managed key' });

const managedKey = z
  .object({
    id: idOf('ring').meta({ description: 'id of the managed key', examples: [sample.managedKeyId] }),
    name: z.string().meta({ pattern: ringNamePattern, description: 'the name in lower case', examples: ['unseal'] }),
    displayName: z
      .string()
      .meta({ pattern: ringNamePattern, description: 'the name as it was given', examples: ['Unseal'] }),
    custody: z
      .enum(['server'])
      .meta({ description: 'who can use its keys: the appliance, for as long as there are any' }),
    type,
    derived,
    latestVersion: count.meta({ description: 'the version that makes new messages', examples: [1] }),
    minDecryptionVersion,
    minEncryptionVersion,
    deletionAllowed,
    rotateAfter,
    createdAt: timestamp,
    updatedAt: timestamp,
    ...whenDeleted,
    versions: z
      .array(version)
      .exactOptional()
      .meta({ description: 'those that are still read, the newest first, at most 1,000; not in lists' }),
  })
  .meta({ id: 'ManagedKey', description: 'a ring whose keys the appliance holds' });
export type ManagedKey = z.output<typeof managedKey>;
const ringAnswer = z.object({ ring: managedKey });

const createBody = z.object({
  name: newRingName('Unseal'),
  type: type.exactOptional(),
  derived: derived.exactOptional(),
  rotateAfter: rotateAfter.exactOptional(),
  keepExisting: z
    .boolean()
    .exactOptional()
    .meta({
      description: '`true`: where a ring of that name, type and `derived` is there, nothing is done',
      examples: [false],
    }),
});

/** One item of a request; all texts but ciphertexts are base64. */
export interface KeyItem {
  readonly plaintext?: string | undefined;
  readonly ciphertext?: string | undefined;
  readonly associatedData?: string | undefined;
  readonly context?: string | undefined;
  readonly keyVersion?: number | undefined;
}

const itemTexts = ['plaintext', 'ciphertext', 'associatedData', 'context'] as const;

function itemProblem(item: unknown): string | undefined {
  if (!isJsonObject(item)) return `expected an object, got ${kindOf(item)}`;
  for (const name of itemTexts) {
    const value = item[name];
    if (value !== undefined && typeof value !== 'string') return `${name}: expected a string, got ${kindOf(value)}`;
  }
  const { keyVersion } = item;
  if (keyVersion === undefined || (Number.isSafeInteger(keyVersion) && Number(keyVersion) >= 0)) return undefined;
  return 'keyVersion: expected an integer of at least 0';
}

const base64Text = { type: 'string', contentEncoding: 'base64' };
const shared = {
  associatedData: { ...base64Text, description: 'what the message is bound to; it must be the same to decrypt' },
  context: { ...base64Text, description: 'of a ring that derives its keys, what this one is derived by' },
};
const made = {
  keyVersion: { type: 'integer', minimum: 0, description: 'the version to encrypt with; 0 or absent: the latest' },
};

function itemList(own: Readonly<Record<string, object>>) {
  return thingList<KeyItem>(mostTransitItems, itemProblem).meta({
    type: 'array',
    minItems: 1,
    maxItems: mostTransitItems,
    items: { type: 'object', properties: { ...own, ...shared } },
    description: 'what is to be done, each for itself: one that fails does not keep the others from it',
  });
}

const plaintextField = { plaintext: { ...base64Text, description: 'what to encrypt' } };
const ciphertextField = { ciphertext: { type: 'string', description: '`vault:vN:` and base64' } };

const ciphertext = z.string().meta({
  pattern: wordPattern,
  description: '`vault:vN:` and base64 of nonce, ciphertext and tag',
  examples: [sample.keyCiphertext],
});
const keyVersion = count.meta({ description: 'the version that it was made with', examples: [1] });
const error = z
  .string()
  .meta({ description: 'why there is nothing else', examples: ['cipher: message authentication failed'] });
const madeItem = z
  .object({
    ciphertext: ciphertext.exactOptional(),
    keyVersion: keyVersion.exactOptional(),
    plaintext: z
      .string()
      .exactOptional()
      .meta({ description: 'base64', contentEncoding: 'base64', examples: ['aGVsbG8='] }),
    error: error.exactOptional(),
  })
  .meta({ id: 'ManagedKeyResult', description: 'what came of one thing that was to be done' });
export type KeyResult = z.output<typeof madeItem>;
const madeAnswer = z.object({ items: z.array(madeItem).meta({ description: 'in the order of the request' }) });

const wantedVersion = z
  .int()
  .min(0)
  .exactOptional()
  .meta({ description: 'the version to use; 0 or absent: the latest', examples: [0] });
const dataKeyBody = z.object({
  bits: z
    .int()
    .exactOptional()
    .meta({ description: '128, 256 or 512; 256 if absent', examples: [256] }),
  keyVersion: wantedVersion,
  associatedData: text.exactOptional().meta({ ...shared.associatedData, examples: [''] }),
  context: text.exactOptional().meta({ ...shared.context, examples: [''] }),
});

const signed = {
  input: text.exactOptional().meta({
    description: 'what is signed, base64; nothing if absent',
    contentEncoding: 'base64',
    examples: ['aGVsbG8='],
  }),
  hash: z.enum(transitHashes).exactOptional().meta({ description: 'of what ECDSA signs; `sha2-256` if absent' }),
  prehashed: z
    .boolean()
    .exactOptional()
    .meta({ description: '`true`: `input` is the hash already, and as long as one (ECDSA)', examples: [false] }),
};

export const managedKeyEndpoints = [
  endpoint('createManagedKey', {
    tag,
    summary: 'Make a ring whose keys the appliance holds',
    access: { kind: 'flag', action: 'key.create', about: { from: 'body', field: 'name' } },
    body: createBody,
    answer: ringAnswer,
  }),
  endpoint('listManagedKeys', {
    tag,
    summary: 'List managed keys, oldest first',
    access: { kind: 'flag', action: 'key.list' },
    query: ringListQuery,
    answer: pageOf(managedKey),
    paginated: true,
  }),
  endpoint('getManagedKey', {
    summary: 'Read a managed key and its versions',
    ...ofRing('key.read'),
    answer: ringAnswer,
  }),
  endpoint('deleteManagedKey', {
    summary: 'Delete a managed key; it stays restorable for 30 days',
    ...ofRing('key.delete'),
    answer: deletedRing('unseal', sample.managedKeyId),
  }),
  endpoint('restoreManagedKey', {
    tag,
    summary: 'Bring back a deleted managed key',
    ...restoringRing('key'),
    answer: ringAnswer,
  }),
  endpoint('rotateManagedKey', {
    summary: 'Give a managed key a new version',
    ...ofRing('key.rotate'),
    answer: ringAnswer,
  }),
  endpoint('configureManagedKey', {
    summary: "Change a managed key's config: what is named is replaced, the rest is kept",
    ...ofRing('key.config'),
    body: z.object({
      minDecryptionVersion: minDecryptionVersion.exactOptional(),
      minEncryptionVersion: minEncryptionVersion.exactOptional(),
      deletionAllowed: deletionAllowed.exactOptional(),
      rotateAfter: rotateAfter.exactOptional(),
    }),
    answer: ringAnswer,
  }),
  endpoint('encryptWithKey', {
    summary: 'Have messages encrypted',
    ...ofRing('key.encrypt'),
    body: z.object({ items: itemList({ ...plaintextField, ...made }) }),
    answer: madeAnswer,
  }),
  endpoint('decryptWithKey', {
    summary: 'Have messages decrypted',
    ...ofRing('key.decrypt'),
    body: z.object({ items: itemList(ciphertextField) }),
    answer: madeAnswer,
  }),
  endpoint('rewrapWithKey', {
    summary: 'Have messages brought under a newer version',
    ...ofRing('key.rewrap'),
    body: z.object({ items: itemList({ ...ciphertextField, ...made }) }),
    answer: madeAnswer,
  }),
  endpoint('generateDataKey', {
    summary: 'Get a new data key, encrypted and in clear',
    ...ofRing('key.datakey'),
    body: dataKeyBody,
    answer: z.object({
      ciphertext,
      keyVersion,
      plaintext: base64.meta({ description: 'the data key, base64', examples: [sample.dataKey] }),
    }),
  }),
  endpoint('generateWrappedDataKey', {
    summary: 'Get a new data key, encrypted alone',
    ...ofRing('key.datakey-wrapped'),
    body: dataKeyBody,
    answer: z.object({ ciphertext, keyVersion }),
  }),
  endpoint('signWithKey', {
    summary: 'Have a message signed',
    ...ofRing('key.sign'),
    body: z.object({ ...signed, keyVersion: wantedVersion }),
    answer: z.object({
      signature: z.string().meta({
        pattern: wordPattern,
        description: '`vault:vN:` and base64; of ECDSA in DER',
        examples: [sample.keySignature],
      }),
      keyVersion,
    }),
  }),
  endpoint('verifyWithKey', {
    summary: 'Have a signature verified',
    ...ofRing('key.verify'),
    body: z.object({
      ...signed,
      signature: requiredText.meta({ description: '`vault:vN:` and base64', examples: [sample.keySignature] }),
    }),
    answer: z.object({ valid: z.boolean().meta({ description: 'whether the signature fits', examples: [true] }) }),
  }),
] as const;
