// Work with managed keys, on the wire: each operation takes one message, or `items`, each for itself.
import { z } from 'zod';
import { isJsonObject } from '../model/json.ts';
import { mostItems, pairTypes, signingHashes } from '../model/key-types.ts';
import { endpoint } from './endpoint.ts';
import { sample } from './example-values.ts';
import { warning } from './managed-key-fields.ts';
import { ofKey } from './managed-keys.ts';
import { base64, count, kindOf, requiredText, text, thingList, wordPattern } from './values.ts';

const tag = 'Key operations';

/** One item of a request; all texts but ciphertexts, signatures and MACs are base64. */
export interface KeyItem {
  readonly plaintext?: string | undefined;
  readonly ciphertext?: string | undefined;
  readonly associatedData?: string | undefined;
  /** For a message that is encrypted again under another key: what it is bound to there. */
  readonly toAssociatedData?: string | undefined;
  readonly context?: string | undefined;
  readonly input?: string | undefined;
  readonly signature?: string | undefined;
  readonly mac?: string | undefined;
  readonly keyVersion?: number | undefined;
}

const itemTexts = [
  'plaintext',
  'ciphertext',
  'associatedData',
  'toAssociatedData',
  'context',
  'input',
  'signature',
  'mac',
] as const;

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
  context: { ...base64Text, description: 'of a key whose messages have derived keys, what this one is derived by' },
};
const made = {
  keyVersion: { type: 'integer', minimum: 0, description: 'the version to use; 0 or absent: the primary' },
};

function itemList(own: Readonly<Record<string, object>>) {
  return thingList<KeyItem>(mostItems, itemProblem).meta({
    type: 'array',
    minItems: 1,
    maxItems: mostItems,
    items: { type: 'object', properties: own },
    description: 'what is to be done, each for itself: one that fails does not keep the others from it',
  });
}

/** The prefix and tag of a message, or a MAC, or a key's wrapping, in base64, and the words around it. */
const messageGrowth = 1024;
/** The longest signatures have some 4,600 bytes. */
const signatureGrowth = 8192;

const plaintextField = { plaintext: { ...base64Text, description: 'what to encrypt' } };
const anyVersion = z
  .boolean()
  .exactOptional()
  .meta({
    description: '`true`: what was made is base64 without its version, and the newest 5 versions are tried',
    examples: [false],
  });
const toField = {
  toAssociatedData: { ...base64Text, description: 'with `toKey`: what the message is bound to under that key' },
};
const ciphertextField = { ciphertext: { type: 'string', description: '`vault:vN:` and base64' } };
const inputField = { input: { ...base64Text, description: 'the message' } };

const ciphertext = z.string().meta({
  pattern: wordPattern,
  description: '`vault:vN:` and base64 of nonce, ciphertext and tag, or of what RSA-OAEP made',
  examples: [sample.keyCiphertext],
});
const signature = z.string().meta({
  pattern: wordPattern,
  description: '`vault:vN:` and base64 of the signature',
  examples: [sample.keySignature],
});
const mac = z
  .string()
  .meta({ pattern: wordPattern, description: '`vault:vN:` and base64 of the MAC', examples: [sample.keyMac] });
const keyVersion = count.meta({ description: 'the version that was used', examples: [1] });
const valid = z.boolean().meta({ description: 'whether it fits', examples: [true] });
const error = z
  .string()
  .meta({ description: 'why there is nothing else', examples: ['cipher: message authentication failed'] });
const result = z
  .object({
    ciphertext: ciphertext.exactOptional(),
    keyVersion: keyVersion.exactOptional(),
    plaintext: z
      .string()
      .exactOptional()
      .meta({ description: 'base64', contentEncoding: 'base64', examples: ['aGVsbG8='] }),
    signature: signature.exactOptional(),
    mac: mac.exactOptional(),
    valid: valid.exactOptional(),
    warning,
    error: error.exactOptional(),
  })
  .meta({ id: 'ManagedKeyResult', description: 'what came of one thing that was to be done' });
export type KeyResult = z.output<typeof result>;
const results = z.array(result).meta({ description: 'in the order of the request' });

const wantedVersion = z
  .int()
  .min(0)
  .exactOptional()
  .meta({ description: 'the version to use; 0 or absent: the primary', examples: [0] });
const input = text.exactOptional().meta({
  description: 'the message, base64; nothing if absent',
  contentEncoding: 'base64',
  examples: ['aGVsbG8='],
});
const oaepHash = z
  .enum(['sha2-256', 'sha1', 'sha2-384', 'sha2-512'])
  .exactOptional()
  .meta({ description: 'of RSA-OAEP; `sha2-256` if absent' });
const dataKeyBody = z.object({
  bits: z
    .int()
    .exactOptional()
    .meta({ description: '128, 256 or 512; 256 if absent', examples: [256] }),
  bytes: z
    .int()
    .min(1)
    .max(1024)
    .exactOptional()
    .meta({ description: 'in place of `bits`: how many bytes', examples: [32] }),
  pair: z
    .enum(pairTypes)
    .exactOptional()
    .meta({ description: 'in place of `bits`: a key pair of this type, whose private key is PKCS #8 DER' }),
  keyVersion: wantedVersion,
  associatedData: text.exactOptional().meta({ ...shared.associatedData, examples: [''] }),
  context: text.exactOptional().meta({ ...shared.context, examples: [''] }),
});

const pairsPublicKey = z
  .string()
  .exactOptional()
  .meta({ description: 'of a key pair: SPKI, PEM', examples: [sample.managedPublicKey] });

const scheme = {
  hash: z.enum(signingHashes).exactOptional().meta({ description: 'of what is signed; by the type if absent' }),
  prehashed: z
    .boolean()
    .exactOptional()
    .meta({
      description:
        '`true`: each `input` is the hash already, and as long as one; without effect on Ed25519, which signs messages',
      examples: [false],
    }),
  padding: z.enum(['pss', 'pkcs1v15']).exactOptional().meta({ description: 'of RSA alone; `pss` if absent' }),
  saltLength: z
    .union([z.enum(['hash', 'longest', 'any']), z.int().min(0)])
    .exactOptional()
    .meta({
      description: 'of PSS alone: bytes, `hash` (as long as the hash, the default), `longest`, or `any` to verify',
      examples: ['hash'],
    }),
  encoding: z.enum(['der', 'raw']).exactOptional().meta({
    description: 'of ECDSA alone: DER, or both numbers one after the other (JWS, as IEEE P1363); `der` if absent',
  }),
};

const bytes = (what: string) =>
  requiredText.meta({ description: `${what}, base64`, contentEncoding: 'base64', examples: [sample.dataKey] });

export const keyOperationEndpoints = [
  endpoint('encryptWithKey', {
    summary: 'Have messages encrypted',
    ...ofKey('key.encrypt'),
    tag,
    growth: messageGrowth,
    body: z.object({ items: itemList({ ...plaintextField, ...shared, ...made }), hash: oaepHash }),
    answer: z.object({ items: results }),
  }),
  endpoint('decryptWithKey', {
    summary: 'Have messages decrypted',
    ...ofKey('key.decrypt'),
    tag,
    body: z.object({
      items: itemList({ ...ciphertextField, ...shared, ...toField }),
      hash: oaepHash,
      toKey: requiredText.exactOptional().meta({
        description:
          'a key that encrypts each message again, in place of showing it, by name, id or alias; its flag `encrypt` is needed too',
        examples: ['payments'],
      }),
      toHash: oaepHash,
      anyVersion,
    }),
    answer: z.object({ items: results }),
  }),
  endpoint('rewrapWithKey', {
    summary: 'Have messages brought under a newer version',
    ...ofKey('key.rewrap'),
    tag,
    access: {
      kind: 'flag',
      action: 'key.rewrap',
      ring: { from: 'key', param: 'key' },
      orBoth: ['key.encrypt', 'key.decrypt'],
    },
    body: z.object({ items: itemList({ ...ciphertextField, ...shared, ...made }), hash: oaepHash }),
    answer: z.object({ items: results }),
  }),
  endpoint('generateDataKey', {
    summary: 'Get a new data key, encrypted and in clear',
    ...ofKey('key.datakey'),
    tag,
    body: dataKeyBody,
    answer: z.object({
      ciphertext,
      keyVersion,
      plaintext: base64.meta({ description: 'the data key, base64', examples: [sample.dataKey] }),
      publicKey: pairsPublicKey,
    }),
  }),
  endpoint('generateWrappedDataKey', {
    summary: 'Get a new data key, encrypted alone',
    ...ofKey('key.datakey-wrapped'),
    tag,
    body: dataKeyBody,
    answer: z.object({ ciphertext, keyVersion, publicKey: pairsPublicKey }),
  }),
  endpoint('signWithKey', {
    summary: 'Have messages signed',
    ...ofKey('key.sign'),
    tag,
    growth: signatureGrowth,
    body: z.object({
      input,
      items: itemList({ ...inputField, ...made }).exactOptional(),
      keyVersion: wantedVersion,
      ...scheme,
    }),
    answer: z.object({
      signature: signature.exactOptional(),
      keyVersion: keyVersion.exactOptional(),
      items: results.exactOptional(),
    }),
  }),
  endpoint('verifyWithKey', {
    summary: 'Have signatures or MACs verified',
    ...ofKey('key.verify'),
    tag,
    body: z.object({
      input,
      signature: text.exactOptional().meta({ description: '`vault:vN:` and base64', examples: [sample.keySignature] }),
      mac: text.exactOptional().meta({ description: '`vault:vN:` and base64', examples: [''] }),
      items: itemList({
        ...inputField,
        signature: { type: 'string', description: '`vault:vN:` and base64' },
        mac: { type: 'string', description: '`vault:vN:` and base64' },
      }).exactOptional(),
      anyVersion,
      ...scheme,
    }),
    answer: z.object({ valid: valid.exactOptional(), warning, items: results.exactOptional() }),
  }),
  endpoint('macWithKey', {
    summary: 'Get MACs of messages',
    ...ofKey('key.mac'),
    tag,
    growth: messageGrowth,
    body: z.object({
      input,
      items: itemList({ ...inputField, ...made }).exactOptional(),
      keyVersion: wantedVersion,
      hash: scheme.hash,
    }),
    answer: z.object({
      mac: mac.exactOptional(),
      keyVersion: keyVersion.exactOptional(),
      items: results.exactOptional(),
    }),
  }),
  endpoint('wrapWithKey', {
    summary: 'Have a key wrapped, with AES-KWP or RSA-OAEP',
    ...ofKey('key.wrap'),
    tag,
    growth: messageGrowth,
    body: z.object({ plaintext: bytes('the key to wrap'), keyVersion: wantedVersion, hash: oaepHash }),
    answer: z.object({ wrapped: base64.meta({ description: 'base64', examples: [sample.dataKey] }), keyVersion }),
  }),
  endpoint('unwrapWithKey', {
    summary: 'Have a wrapped key unwrapped',
    ...ofKey('key.unwrap'),
    tag,
    body: z.object({ wrapped: bytes('the wrapped key'), keyVersion: wantedVersion, hash: oaepHash }),
    answer: z.object({
      plaintext: base64.meta({ description: 'base64', examples: [sample.dataKey] }),
      keyVersion,
      warning,
    }),
  }),
  endpoint('deriveWithKey', {
    summary: 'Derive bytes: with HKDF from a symmetric key, or the secret shared with a public key (ECDH)',
    ...ofKey('key.derive'),
    tag,
    body: z.object({
      context: text.exactOptional().meta({ ...shared.context, description: 'info of HKDF, base64', examples: [''] }),
      salt: text.exactOptional().meta({ ...base64Text, description: 'salt of HKDF, base64', examples: [''] }),
      length: z
        .int()
        .min(1)
        .max(16_320)
        .exactOptional()
        .meta({ description: 'bytes that HKDF derives; 32 if absent', examples: [32] }),
      hash: scheme.hash,
      publicKey: text.exactOptional().meta({
        description: 'of the other side, for ECDH: SPKI, PEM or base64 of DER',
        examples: [''],
      }),
      keyVersion: wantedVersion,
    }),
    answer: z.object({ derived: base64.meta({ description: 'base64', examples: [sample.dataKey] }), keyVersion }),
  }),
] as const;
