// Keyrings on the wire: rings, keys and configurations, and the endpoints of the key service that manage them.
import { z } from 'zod';
import { isJsonObject } from '../model/json.ts';
import { mostRewrapped } from '../model/kems.ts';
import { safeApiKey } from './apikeys.ts';
import { endpoint, missing } from './endpoint.ts';
import { sample } from './example-values.ts';
import { beginningOf, mostAlong, pageOf, pageQuery } from './page.ts';
import { deletedRing, newRingName, restoringRing, ringAge, ringListQuery, whenDeleted } from './ring-life.ts';
import {
  algorithm,
  base64,
  callerId,
  clientCustody,
  count,
  freeForm,
  idOf,
  kem,
  kindOf,
  pastTime,
  pathText,
  requiredText,
  ringNamePattern,
  text,
  thingList,
  timestamp,
  trueParam,
} from './values.ts';

const tag = 'KeyRings';
const unknownRing = missing('no such KeyRing');
const byId = z.object({ id: trueParam.exactOptional().meta({ description: '`true`: ringname is the KeyRing id' }) });

const keyId = idOf('key').meta({ description: 'id of the key', examples: [sample.keyId] });
const props = freeForm.meta({ examples: [{}] });

/** The key's 32 bytes, wrapped to the ring's public key. */
export const encryptedKeyData = z
  .object({
    encrypted: z
      .object({
        key: z
          .object({
            value: base64.meta({
              description: "the key's 32 bytes, wrapped by HPKE: base64 of `enc` and ciphertext",
              examples: [sample.wrappedKey],
            }),
            encoding: z.enum(['base64']).meta({ description: 'how `value` is written' }),
          })
          .meta({ description: 'the wrapped key' }),
      })
      .meta({ description: 'what only the holder of the private key can open' }),
    iv: base64.meta({ description: 'base64 of the HPKE base nonce', examples: [sample.iv] }),
  })
  .meta({ id: 'EncryptedKeyData', description: "a key's 32 bytes, wrapped to the KeyRing's public key" });

export const key = z
  .object({ id: keyId, type: algorithm, kem, props, keyData: encryptedKeyData })
  .meta({ id: 'Key', description: 'a key of a KeyRing, wrapped' });
export type Key = z.output<typeof key>;

/** Public key that a key is wrapped to. */
export const wrappedTo = base64.meta({
  description: "the ring's public key that it is wrapped to, base64 SPKI DER; rings may have had others",
  examples: [sample.publicKey],
});

const readKey = key
  .extend({ publicKey: wrappedTo })
  .meta({ id: 'ReadKey', description: 'a key of a KeyRing, wrapped, and the public key that it is wrapped to' });
export type ReadKey = z.output<typeof readKey>;

const lastUse = (what: string) => ({
  at: pastTime.nullable().meta({
    description: `when it was last asked for ${what}, in milliseconds since 1970-01-01T00:00:00Z; null: not since \`since\``,
    examples: [sample.epochTime],
  }),
  by: callerId
    .nullable()
    .meta({ description: 'the id of who asked: an API key, a User, or `local`', examples: [sample.apikeyId] }),
});
const lastEncrypt = lastUse('to encrypt');
const lastDecrypt = lastUse('to decrypt');

const usage = z
  .object({
    since: pastTime.nullable().meta({
      description:
        'from when on its uses are known, in milliseconds since 1970-01-01T00:00:00Z: when it was made, or when an appliance that counts them first served the store; null: the latter is not noted yet',
      examples: [sample.epochTime],
    }),
    lastEncryptAt: lastEncrypt.at,
    lastEncryptBy: lastEncrypt.by,
    lastDecryptAt: lastDecrypt.at,
    lastDecryptBy: lastDecrypt.by,
    days: z
      .array(
        z.object({
          day: z.string().meta({ description: 'the day in UTC', format: 'date', examples: ['2026-01-02'] }),
          encrypts: count.meta({ description: 'how often it was handed out to encrypt', examples: [12] }),
          decrypts: count.meta({ description: 'how often it was handed out to decrypt', examples: [3] }),
        }),
      )
      .meta({ description: 'the days of the last 100 on which it was used, oldest first', maxItems: 100 }),
  })
  .meta({ id: 'KeyUsage', description: 'what a key was asked for' });

const earlierWrapping = z
  .object({ kem, publicKey: wrappedTo, keyData: encryptedKeyData, replacedAt: timestamp })
  .meta({ id: 'EarlierWrapping', description: 'how a key was wrapped before it was rewrapped' });

export const keyListItem = z
  .object({
    id: keyId,
    type: algorithm,
    kem,
    publicKey: wrappedTo,
    props,
    createdAt: timestamp,
    usage: usage.exactOptional().meta({ description: 'only where it was asked for' }),
    keyData: encryptedKeyData.exactOptional().meta({ description: 'only with `wrapped=true`' }),
    earlier: z.array(earlierWrapping).exactOptional().meta({
      description:
        'only with `wrapped=true`, of a key that was rewrapped: how it was wrapped before, the oldest first, which the appliance itself made',
    }),
  })
  .meta({ id: 'KeyListItem', description: 'a key of a KeyRing, without its bytes' });
export type KeyListItem = z.output<typeof keyListItem>;

const ringProps = freeForm.meta({ description: 'kept with the KeyRing', examples: [{ team: 'finance' }] });
const keyProps = freeForm.meta({ description: 'the `props` of each new key of it', examples: [{}] });
const ringname = requiredText.meta({
  pattern: ringNamePattern,
  description: 'name of the KeyRing, in any case',
  examples: ['payroll'],
});

export const keyring = z
  .object({
    id: idOf('ring').meta({ description: 'id of the KeyRing', examples: [sample.ringId] }),
    name: z.string().meta({ pattern: ringNamePattern, description: 'the name in lower case', examples: ['payroll'] }),
    displayName: z
      .string()
      .meta({ pattern: ringNamePattern, description: 'the name as it was given', examples: ['Payroll'] }),
    activeKey: idOf('key').meta({ description: 'id of the newest key, which encrypts', examples: [sample.keyId] }),
    activeAlgorithm: algorithm,
    custody: clientCustody,
    createdAt: timestamp,
    updatedAt: timestamp,
    props: ringProps,
    kem,
    publicKey: base64.meta({
      description: 'of the `kem`, base64 SPKI DER; new keys of the ring are wrapped to it',
      examples: [sample.publicKey],
    }),
    offlineDecrypt: z
      .literal(true)
      .exactOptional()
      .meta({
        description: 'only where it is so: its private key alone opens files, as its configuration says',
        examples: [true],
      }),
  })
  .meta({ id: 'KeyRing', description: 'a named set of keys, of which the newest encrypts and all decrypt' });
export type KeyRing = z.output<typeof keyring>;

const listedKeyring = keyring.extend(whenDeleted).meta({ id: 'ListedKeyRing', description: 'a KeyRing in a list' });
export type ListedKeyRing = z.output<typeof listedKeyring>;

const publicKeyForms = 'base64 SPKI DER, PEM, base64 of the bytes, or for `mlkem768-x25519` a JWK';

const createKeyringBody = z.object({
  name: newRingName('Payroll'),
  algo: algorithm.exactOptional(),
  kem: kem.exactOptional().meta({ description: "default: that of the publicKey, or else the server's" }),
  publicKey: text.exactOptional().meta({
    description: `public key: ${publicKeyForms}. Absent: the appliance makes a pair`,
    examples: [sample.publicKey],
  }),
  props: ringProps.exactOptional(),
  keyProps: keyProps.exactOptional(),
});

const createKeyringAnswer = z.object({
  ring: keyring,
  key,
  privateKey: base64.exactOptional().meta({
    description: 'of the `kem`, base64 PKCS#8 DER; only when no publicKey was given, once, never stored',
    examples: [sample.privateKey],
  }),
});

const ringAnswer = z.object({ ring: keyring });

const along = {
  config: trueParam.exactOptional().meta({ description: '`true`: with its configuration' }),
  keys: trueParam.exactOptional().meta({ description: '`true`: with its keys, and what each was asked for' }),
  apikeys: trueParam.exactOptional().meta({ description: '`true`: with the API keys that may use it' }),
};

export const rotateBody = z.object({ ringname, algo: algorithm.exactOptional() });
const rotateAnswer = z.object({ key });

/** A key rewrapped by an owner who has its bytes. It replaces the wrapping with the hash `replaces`. */
export interface RewrappedKey {
  readonly id: string;
  readonly wrapped: string;
  readonly iv: string;
  readonly replaces: string;
}

const base64Text = { type: 'string', contentEncoding: 'base64' };
const rewrappedFields = {
  id: { type: 'string', description: 'id of the key; not of the active one' },
  wrapped: {
    ...base64Text,
    description: "the key's 32 bytes, wrapped by HPKE to `publicKey`: base64 of `enc` and ciphertext",
  },
  iv: { ...base64Text, description: 'base64 of the HPKE base nonce' },
  replaces: {
    ...base64Text,
    description: 'base64 of the SHA-256 of the bytes that it is wrapped in now; nothing is done if they are others',
  },
};

function rewrappedProblem(item: unknown): string | undefined {
  if (!isJsonObject(item)) return `expected an object, got ${kindOf(item)}`;
  for (const name of Object.keys(rewrappedFields)) {
    const value = item[name];
    if (typeof value !== 'string') return `${name}: expected a string, got ${kindOf(value)}`;
  }
  return undefined;
}

const rewrapBody = z.object({
  ringname,
  publicKey: requiredText.meta({
    description: "the ring's present public key, to which they are wrapped: another is refused",
    examples: [sample.publicKey],
  }),
  keys: thingList<RewrappedKey>(mostRewrapped, rewrappedProblem).meta({
    type: 'array',
    minItems: 1,
    maxItems: mostRewrapped,
    description: 'all of them, or none where one is refused',
    items: { type: 'object', required: Object.keys(rewrappedFields), properties: rewrappedFields },
  }),
});
const rewrapAnswer = z.object({
  rewrapped: count.meta({ description: 'how many of them were; the others were wrapped so already', examples: [1] }),
});

const maxEncryptCount = z
  .int()
  .min(1)
  .meta({
    description: 'how many encrypts a key serves; the next one rotates the ring first',
    examples: [1000000],
  });

const rotateAfter = ringAge(
  'how old a key gets, in whole seconds: the next encrypt past that age rotates the ring first',
);

const offlineDecrypt = z.boolean().meta({
  description:
    'whether clients also seal the share of `recipient` to the KeyRing: then anybody with the private key opens the file without asking here, and without a record',
  examples: [false],
});

export const keyringConfig = z
  .object({
    props: ringProps,
    key: z.object({ props: keyProps }).meta({ description: 'what new keys get' }),
    algos: z
      .object({ aes256: z.object({ maxEncryptCount }).meta({ description: 'settings of `aes256`' }) })
      .meta({ description: 'settings by algorithm' }),
    rotateAfter,
    offlineDecrypt,
  })
  .meta({ id: 'KeyRingConfig', description: 'the configuration of a KeyRing' });
export type KeyRingConfig = z.output<typeof keyringConfig>;

/** A configuration in a request: the fields it names are replaced, the others are kept. */
const configChange = z.object({
  props: ringProps.exactOptional(),
  key: z.object({ props: keyProps.exactOptional() }).exactOptional().meta({ description: 'what new keys get' }),
  algos: z
    .object({
      aes256: z
        .object({ maxEncryptCount: maxEncryptCount.exactOptional() })
        .exactOptional()
        .meta({ description: 'settings of `aes256`' }),
    })
    .exactOptional()
    .meta({ description: 'settings by algorithm' }),
  rotateAfter: rotateAfter.exactOptional(),
  offlineDecrypt: offlineDecrypt.exactOptional(),
  publicKey: text.exactOptional().meta({
    description: `a new public key, ${publicKeyForms}: later keys of the ring are wrapped to it, earlier ones stay as they are`,
    examples: [sample.publicKey],
  }),
  replaces: text.exactOptional().meta({
    description:
      'with `publicKey`: the one that the ring had when you read it. Nothing is done where it has another by now',
    examples: [sample.replacedPublicKey],
  }),
});

const putConfigBody = z.object({
  ringname,
  config: configChange.meta({ description: 'what to change: what it names is replaced, the rest is kept' }),
});
const configAnswer = z.object({ config: keyringConfig });

export const keyringEndpoints = [
  endpoint('createKeyring', {
    tag,
    summary: 'Make a KeyRing with its first key',
    access: { kind: 'flag', action: 'keyring.create', about: { from: 'body', field: 'name' } },
    body: createKeyringBody,
    answer: createKeyringAnswer,
  }),
  endpoint('listKeyrings', {
    tag,
    summary: 'List KeyRings, oldest first',
    access: { kind: 'flag', action: 'keyring.list' },
    query: ringListQuery,
    answer: pageOf(listedKeyring),
    paginated: true,
  }),
  endpoint('getKeyring', {
    tag,
    summary: 'Read a KeyRing',
    access: { kind: 'flag', action: 'keyring.read', ring: { from: 'path', param: 'ringname', byId: true } },
    params: z.object({ ringname: pathText }),
    query: byId.extend(along),
    answer: ringAnswer.extend({
      config: keyringConfig.exactOptional().meta({ description: 'with `config=true`' }),
      keys: beginningOf(keyListItem)
        .exactOptional()
        .meta({ description: `with \`keys=true\`: its keys, at most ${mostAlong}` }),
      apikeys: beginningOf(safeApiKey)
        .exactOptional()
        .meta({ description: `with \`apikeys=true\` and the flag \`apikey.read\`: at most ${mostAlong}` }),
    }),
    errors: unknownRing,
  }),
  endpoint('deleteKeyring', {
    tag,
    summary: 'Delete a KeyRing; it stays restorable for 30 days',
    access: { kind: 'flag', action: 'keyring.delete', ring: { from: 'path', param: 'name', byId: false } },
    params: z.object({ name: pathText }),
    answer: deletedRing('payroll', sample.ringId),
    errors: unknownRing,
  }),
  endpoint('restoreKeyring', {
    tag,
    summary: 'Bring back a deleted KeyRing',
    ...restoringRing('keyring'),
    answer: ringAnswer,
  }),
  endpoint('listKeys', {
    tag,
    summary: "List a KeyRing's keys, oldest first",
    access: { kind: 'flag', action: 'keyring.read', ring: { from: 'path', param: 'ringname', byId: true } },
    params: z.object({ ringname: pathText }),
    query: byId.extend({
      usage: trueParam.exactOptional().meta({ description: '`true`: with what each key was asked for' }),
      wrapped: trueParam.exactOptional().meta({ description: '`true`: with how each key is wrapped, and was before' }),
      ...pageQuery,
    }),
    answer: pageOf(keyListItem),
    paginated: true,
    errors: unknownRing,
  }),
  endpoint('getKey', {
    tag,
    summary: 'Read a key of a KeyRing',
    access: { kind: 'flag', action: 'keyring.read', ring: { from: 'path', param: 'ringname', byId: true } },
    params: z.object({ ringname: pathText, keyId: pathText }),
    query: byId,
    answer: readKey,
    errors: missing('no such KeyRing or key'),
  }),
  endpoint('rotateKeyring', {
    tag,
    summary: 'Give a KeyRing a new active key',
    access: { kind: 'flag', action: 'keyring.rotate', ring: { from: 'body', field: 'ringname' } },
    body: rotateBody,
    answer: rotateAnswer,
    errors: unknownRing,
  }),
  endpoint('rewrapKeys', {
    tag,
    summary: 'Rewrap earlier keys of a KeyRing to its present public key',
    access: {
      kind: 'flag',
      action: 'keyring.config',
      recorded: 'keyring.rewrap',
      ring: { from: 'body', field: 'ringname' },
    },
    body: rewrapBody,
    answer: rewrapAnswer,
    errors: missing('no such KeyRing or key'),
  }),
  endpoint('getConfig', {
    tag,
    summary: "Read a KeyRing's configuration",
    access: { kind: 'flag', action: 'keyring.read', ring: { from: 'query', param: 'ringname' } },
    query: z.object({
      ringname: requiredText.meta({
        pattern: ringNamePattern,
        description: 'name of the KeyRing',
        examples: ['payroll'],
      }),
    }),
    answer: configAnswer,
    errors: unknownRing,
  }),
  endpoint('putConfig', {
    tag,
    summary: "Change a KeyRing's configuration: what is named is replaced, the rest is kept",
    access: { kind: 'flag', action: 'keyring.config', ring: { from: 'body', field: 'ringname' } },
    body: putConfigBody,
    answer: configAnswer,
    errors: unknownRing,
  }),
] as const;
