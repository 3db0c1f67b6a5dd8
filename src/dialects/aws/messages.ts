// Operations of AWS KMS that encrypt and decrypt, make data keys and random bytes.
import { fromBase64, toBase64 } from '../../crypto/bytes.ts';
import type { JsonObject } from '../../model/json.ts';
import { blobOf, readBlob } from './blobs.ts';
import { contextBytes } from './encryption-context.ts';
import { failure } from './errors.ts';
import { numberOf, textOf, wordOf } from './fields.ts';
import { keyArn } from './names.ts';
import type { AwsOperation, FoundKey, Work } from './operation.ts';

const algorithms = ['SYMMETRIC_DEFAULT', 'RSAES_OAEP_SHA_1', 'RSAES_OAEP_SHA_256'] as const;
const common = { EncryptionContext: 'map', GrantTokens: 'list 0-10', DryRun: 'flag' };
const context = (given: JsonObject, name = 'EncryptionContext') => {
  const bytes = contextBytes(given[name]);
  return bytes.length === 0 ? {} : { associatedData: toBase64(bytes) };
};

function isRsa({ type }: FoundKey): boolean {
  return type?.startsWith('rsa-') === true;
}

/** The hash of OAEP by the algorithm. Throws `InvalidKeyUsageException` if the key has another. */
function schemeOf(given: JsonObject, key: FoundKey, name = 'EncryptionAlgorithm') {
  const algorithm = wordOf(given, name, algorithms, 'SYMMETRIC_DEFAULT');
  if (key.id !== undefined && isRsa(key) !== algorithm.startsWith('RSAES')) {
    throw failure('InvalidKeyUsageException', `the key does not have the algorithm ${algorithm}`);
  }
  const hash = algorithm === 'RSAES_OAEP_SHA_1' ? 'sha1' : algorithm === 'RSAES_OAEP_SHA_256' ? 'sha2-256' : undefined;
  if (hash !== undefined && Object.keys((given.EncryptionContext as object | undefined) ?? {}).length > 0) {
    throw failure('ValidationException', 'an encryption context goes with a symmetric key');
  }
  return { algorithm, ...(hash !== undefined && { hash }) };
}

/** The first item of an answer. Throws what it failed with. */
function only(answer: JsonObject): JsonObject {
  const [item] = answer.items as readonly JsonObject[];
  if (item && item.error === undefined) return item;
  throw failure('InvalidCiphertextException');
}

async function encrypted(work: Work, key: FoundKey, plaintext: unknown, scheme: object, bound: object) {
  const { algorithm: _, ...hash } = scheme as { algorithm?: string };
  const body = { items: [{ plaintext, ...bound }], ...hash };
  const item = only(await work.call({ id: 'encryptWithKey', params: { key: key.ref }, body }));
  const id = key.id ?? '';
  // RSA's have no header: other software makes them with the public key.
  return isRsa(key) ? bareOf(item.ciphertext) : blobOf(id, item.ciphertext);
}

function bareOf(ciphertext: unknown): string {
  return String(ciphertext).replace(/^vault:v\d+:/, '');
}

async function decrypted(
  given: JsonObject,
  work: Work,
  named: FoundKey | undefined,
  names: { readonly algorithm: string; readonly context: string },
): Promise<{ readonly key: FoundKey; readonly plaintext: string; readonly algorithm: string }> {
  const blob = textOf(given, 'CiphertextBlob');
  if (blob === undefined) throw failure('ValidationException', 'CiphertextBlob is missing');
  const algorithm = wordOf(given, names.algorithm, algorithms, 'SYMMETRIC_DEFAULT');
  if (algorithm !== 'SYMMETRIC_DEFAULT') {
    if (!named) throw failure('ValidationException', 'KeyId is required for an asymmetric key');
    const scheme = schemeOf({ ...given, EncryptionAlgorithm: algorithm }, named);
    return { key: named, plaintext: await opened(work, named, `vault:v1:${blob}`, scheme, {}), algorithm };
  }
  const { ids, ciphertext } = readBlob(blob);
  const found = await work.find(ids);
  if (named?.id !== undefined && named.id !== found?.id) throw failure('IncorrectKeyException');
  if (!found) {
    throw failure(
      'AccessDeniedException',
      'The ciphertext refers to a customer master key that does not exist, does not exist in this region, or you are not allowed to access.',
    );
  }
  const plaintext = await opened(work, found, ciphertext, {}, context(given, names.context));
  return { key: found, plaintext, algorithm };
}

async function opened(work: Work, key: FoundKey, ciphertext: string, scheme: object, bound: object): Promise<string> {
  const { algorithm: _, ...hash } = scheme as { algorithm?: string };
  const body = { items: [{ ciphertext, ...bound }], ...hash };
  return String(only(await work.call({ id: 'decryptWithKey', params: { key: key.ref }, body })).plaintext);
}

/** The first of an operation's keys, which it cannot do without. */
function keyOf({ keys }: Work): FoundKey {
  const [key] = keys;
  if (!key) throw failure('ValidationException', 'KeyId is missing');
  return key;
}

const encrypt: AwsOperation = {
  fields: { KeyId: 'text! 1-2048', Plaintext: 'blob! 1-4096', EncryptionAlgorithm: 'text', ...common },
  keys: ['*KeyId'],
  async run(given, work) {
    const key = keyOf(work);
    const scheme = schemeOf(given, key);
    const blob = await encrypted(work, key, given.Plaintext, scheme, context(given));
    return {
      CiphertextBlob: blob,
      KeyId: keyArn(work.place, key.id ?? ''),
      EncryptionAlgorithm: scheme.algorithm,
    };
  },
};

const decrypt: AwsOperation = {
  fields: {
    CiphertextBlob: 'blob 1-6144',
    KeyId: 'text 1-2048',
    EncryptionAlgorithm: 'text',
    Recipient: 'map',
    DryRunModifiers: 'list',
    ...common,
  },
  keys: ['?*KeyId'],
  decrypts: true,
  async run(given, work) {
    refuseRecipient(given);
    const names = { algorithm: 'EncryptionAlgorithm', context: 'EncryptionContext' };
    const { key, plaintext, algorithm } = await decrypted(given, work, work.keys[0], names);
    return { Plaintext: plaintext, KeyId: keyArn(work.place, key.id ?? ''), EncryptionAlgorithm: algorithm };
  },
};

const reEncrypt: AwsOperation = {
  fields: {
    CiphertextBlob: 'blob 1-6144',
    DestinationKeyId: 'text! 1-2048',
    SourceKeyId: 'text 1-2048',
    SourceEncryptionContext: 'map',
    DestinationEncryptionContext: 'map',
    SourceEncryptionAlgorithm: 'text',
    DestinationEncryptionAlgorithm: 'text',
    GrantTokens: 'list 0-10',
    DryRun: 'flag',
  },
  keys: ['*DestinationKeyId', '?*SourceKeyId'],
  decrypts: true,
  async run(given, work) {
    const target = keyOf(work);
    const names = { algorithm: 'SourceEncryptionAlgorithm', context: 'SourceEncryptionContext' };
    const scheme = schemeOf(given, target, 'DestinationEncryptionAlgorithm');
    const bound = context(given, 'DestinationEncryptionContext');
    const { key, plaintext, algorithm } = await decrypted(given, work, work.keys[1], names);
    return {
      CiphertextBlob: await encrypted(work, target, plaintext, scheme, bound),
      SourceKeyId: keyArn(work.place, key.id ?? ''),
      KeyId: keyArn(work.place, target.id ?? ''),
      SourceEncryptionAlgorithm: algorithm,
      DestinationEncryptionAlgorithm: scheme.algorithm,
    };
  },
};

function dataKey(isWrapped: boolean): AwsOperation {
  return {
    fields: {
      KeyId: 'text! 1-2048',
      NumberOfBytes: 'number 1-1024',
      KeySpec: 'text',
      Recipient: 'map',
      ...common,
    },
    keys: ['*KeyId'],
    async run(given, work) {
      refuseRecipient(given);
      const key = keyOf(work);
      if (isRsa(key)) throw failure('InvalidKeyUsageException', 'data keys need a symmetric key');
      const bytes = bytesWanted(given);
      const KeyId = keyArn(work.place, key.id ?? '');
      const bound = context(given);
      if (![16, 32, 64].includes(bytes)) {
        const random = await work.call({ id: 'generateRandom', body: { bytes } });
        const made = await encrypted(work, key, random.random, {}, bound);
        return { CiphertextBlob: made, ...(!isWrapped && { Plaintext: random.random }), KeyId };
      }
      const id = isWrapped ? 'generateWrappedDataKey' : 'generateDataKey';
      const answer = await work.call({ id, params: { key: key.ref }, body: { bits: bytes * 8, ...bound } });
      return {
        CiphertextBlob: blobOf(key.id ?? '', answer.ciphertext),
        ...(!isWrapped && { Plaintext: answer.plaintext }),
        KeyId,
      };
    },
  };
}

function bytesWanted(given: JsonObject): number {
  const spec = textOf(given, 'KeySpec');
  const number = numberOf(given, 'NumberOfBytes');
  if ((spec === undefined) === (number === undefined)) {
    throw failure('ValidationException', 'Please specify either number of bytes or key spec.');
  }
  return number ?? (wordOf(given, 'KeySpec', ['AES_256', 'AES_128'] as const) === 'AES_256' ? 32 : 16);
}

/** An answer for an enclave would have to be encrypted to it. */
function refuseRecipient(given: JsonObject): void {
  if (given.Recipient === undefined || given.Recipient === null) return;
  throw failure('UnsupportedOperationException', 'Recipient is not supported: there are no Nitro enclaves here');
}

const random: AwsOperation = {
  fields: { NumberOfBytes: 'number! 1-1024', CustomKeyStoreId: 'text', Recipient: 'map' },
  async run(given, work) {
    refuseRecipient(given);
    const { random } = await work.call({ id: 'generateRandom', body: { bytes: numberOf(given, 'NumberOfBytes') } });
    return { Plaintext: random };
  },
};

export const messageOperations: Readonly<Record<string, AwsOperation>> = {
  Encrypt: encrypt,
  Decrypt: decrypt,
  ReEncrypt: reEncrypt,
  GenerateDataKey: dataKey(false),
  GenerateDataKeyWithoutPlaintext: dataKey(true),
  GenerateRandom: random,
};

/** Bytes of a base64 text. */
export function bytesOf(base64: unknown): Uint8Array {
  return fromBase64(String(base64)) ?? new Uint8Array();
}
