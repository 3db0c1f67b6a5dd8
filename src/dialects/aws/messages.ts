// Operations of AWS KMS that encrypt, decrypt, and encrypt again under another key.
import { fromBase64, toBase64 } from '../../crypto/bytes.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import type { TenantKeys } from '../../seal/tenant-keys.ts';
import { blobOf, readBlob } from './blobs.ts';
import { contextBytes } from './encryption-context.ts';
import { failure } from './errors.ts';
import { textOf } from './fields.ts';
import { algorithmsOf, type FoundKey, factsOf, isRsa, keyOf, knownOf, need, useRefusal } from './found-keys.ts';
import type { AwsOperation, Call, Work } from './operation.ts';

/** The bytes that bind a message, in the native field of that name. */
export function boundBy(given: JsonObject, name = 'EncryptionContext', field = 'associatedData'): object {
  const bytes = contextBytes(given[name]);
  return bytes.length === 0 ? {} : { [field]: toBase64(bytes) };
}

type Scheme = { readonly algorithm: string; readonly hash?: 'sha1' | 'sha2-256' };

const oaepHashes: Readonly<Record<string, 'sha1' | 'sha2-256'>> = {
  RSAES_OAEP_SHA_1: 'sha1',
  RSAES_OAEP_SHA_256: 'sha2-256',
};

interface SchemeFields {
  readonly algorithm: string;
  readonly context: string;
}

const ofMessage: SchemeFields = { algorithm: 'EncryptionAlgorithm', context: 'EncryptionContext' };

/** The algorithm, and the hash of OAEP. Throws `InvalidKeyUsageException` if the key has another. */
function schemeOf(given: JsonObject, key: FoundKey | undefined, fields: SchemeFields): Scheme {
  const algorithm = textOf(given, fields.algorithm) ?? 'SYMMETRIC_DEFAULT';
  if (key?.known && !algorithmsOf(key.known.type, 'ENCRYPT_DECRYPT').includes(algorithm)) {
    throw failure('InvalidKeyUsageException', `Algorithm ${algorithm} is incompatible with ${key.arn}.`);
  }
  const hash = oaepHashes[algorithm];
  if (hash === undefined) return { algorithm };
  const context = given[fields.context];
  if (isJsonObject(context) && Object.keys(context).length > 0) {
    throw failure('ValidationException', 'EncryptionContext is not supported for asymmetric keys.');
  }
  return { algorithm, hash };
}

/** Throws `ValidationException` for a message that is too long for the modulus. */
function needShort(key: FoundKey, { algorithm, hash }: Scheme, given: JsonObject): void {
  const bits = factsOf(key)?.bits;
  if (hash === undefined || bits === undefined) return;
  const most = bits / 8 - 2 * (hash === 'sha1' ? 20 : 32) - 2;
  const bytes = fromBase64(textOf(given, 'Plaintext') ?? '')?.length ?? 0;
  if (bytes <= most) return;
  throw failure('ValidationException', `Algorithm ${algorithm} and this key cannot encrypt more than ${most} bytes.`);
}

/** The words of a message that is too long for OAEP. */
const isTooLong = /expected at most \d+ bytes for rsa-/;

/** The item of an answer. Throws what it failed with. @param isOfInput words of an error that the input made. */
function onlyItem(answer: JsonObject, type: string, isOfInput?: RegExp): JsonObject {
  const [item] = answer.items as readonly JsonObject[];
  if (item && item.error === undefined) return item;
  if (isOfInput?.test(String(item?.error))) throw failure('ValidationException', String(item?.error));
  throw failure(type, type === 'InvalidCiphertextException' ? undefined : String(item?.error));
}

/** A ciphertext as its clients keep it. RSA's has no header: other software makes them with the public key. */
export function sealedFor(keys: TenantKeys, key: FoundKey, ciphertext: unknown): string {
  if (isRsa(key)) return String(ciphertext).replace(/^vault:v\d+:/, '');
  return blobOf(keys, knownOf(key).id, ciphertext);
}

const encrypt: AwsOperation = {
  keys: ['*KeyId'],
  about: 'encryptWithKey',
  use: 'encrypt',
  otherwise: 'KMSInvalidStateException',
  plan(given, work) {
    const key = keyOf(work);
    need(useRefusal(key, 'encrypt'));
    const scheme = schemeOf(given, key, ofMessage);
    const { algorithm, hash } = scheme;
    needShort(key, scheme, given);
    return {
      id: 'encryptWithKey',
      params: { key: key.ref },
      body: { items: [{ plaintext: given.Plaintext, ...boundBy(given) }], ...(hash && { hash }) },
      answer: (ours) => ({
        CiphertextBlob: sealedFor(work.tenantKeys, key, onlyItem(ours, 'KMSInvalidStateException').ciphertext),
        KeyId: key.arn,
        EncryptionAlgorithm: algorithm,
      }),
    };
  },
};

/** A message to open: with which key, and in the native form. */
interface Opening {
  readonly key: FoundKey;
  readonly algorithm: string;
  readonly item: object;
  /** The native fields for RSA. */
  readonly hash: object;
}

/** Whether a rehearsal is asked for that looks at no ciphertext. */
function isWithoutMessage(given: JsonObject): boolean {
  const modifiers: readonly unknown[] = Array.isArray(given.DryRunModifiers) ? given.DryRunModifiers : [];
  if (modifiers.some((each) => each !== 'IGNORE_CIPHERTEXT')) {
    throw failure('ValidationException', 'DryRunModifiers: Member must satisfy enum value set: [IGNORE_CIPHERTEXT]');
  }
  return given.DryRun === true && modifiers.length > 0;
}

async function openingOf(
  given: JsonObject,
  work: Work,
  named: FoundKey | undefined,
  fields: SchemeFields,
): Promise<Opening> {
  const bound = boundBy(given, fields.context);
  const blob = textOf(given, 'CiphertextBlob');
  const scheme = schemeOf(given, undefined, fields);
  const hash = scheme.hash ? { hash: scheme.hash } : {};
  const { algorithm } = scheme;
  if (isWithoutMessage(given)) {
    if (!named) throw failure('ValidationException', 'KeyId is required to ignore the ciphertext.');
    return { key: named, algorithm, item: { ciphertext: 'vault:v1:AAAA' }, hash };
  }
  if (blob === undefined) throw failure('ValidationException', 'CiphertextBlob must not be null');
  if (named) {
    need(useRefusal(named, 'decrypt'));
    schemeOf(given, named, fields);
  }
  if (scheme.hash !== undefined) {
    if (!named) throw failure('ValidationException', 'KeyId is required for asymmetric decryption.');
    return { key: named, algorithm, item: { ciphertext: blob }, hash: { ...hash, anyVersion: true } };
  }
  const { ids, ciphertext } = readBlob(work.tenantKeys, blob);
  const key = await work.find(ids);
  if (named?.known && named.known.id !== key?.known?.id) {
    throw failure('IncorrectKeyException', 'The key ID in the request does not identify the key of the ciphertext.');
  }
  // A named key that is not there is answered as everywhere.
  if (named && !named.known) return { key: named, algorithm, item: { ciphertext }, hash };
  if (!key) return { key: lost(ids), algorithm, item: { ciphertext }, hash };
  return { key, algorithm, item: { ciphertext, ...bound }, hash };
}

/** The key of a ciphertext that is gone: told to those who could use it, as all that is not there. */
function lost([ref = '']: readonly string[]): FoundKey {
  const refusal = failure('AccessDeniedException', 'The ciphertext refers to a key that does not exist.');
  return { ref, arn: '', known: undefined, refusal };
}

const decrypt: AwsOperation = {
  keys: ['?*KeyId'],
  about: 'decryptWithKey',
  use: 'decrypt',
  otherwise: 'InvalidCiphertextException',
  async plan(given, work) {
    refuseRecipient(given);
    const { key, algorithm, item, hash } = await openingOf(given, work, work.keys[0], ofMessage);
    return {
      id: 'decryptWithKey',
      params: { key: key.ref },
      body: { items: [item], ...hash },
      key,
      answer: (ours) => {
        if (isWithoutMessage(given)) return {};
        const { plaintext } = onlyItem(ours, 'InvalidCiphertextException');
        return { Plaintext: plaintext, KeyId: key.arn, EncryptionAlgorithm: algorithm };
      },
    };
  },
};

const ofSource: SchemeFields = { algorithm: 'SourceEncryptionAlgorithm', context: 'SourceEncryptionContext' };
const ofTarget: SchemeFields = { algorithm: 'DestinationEncryptionAlgorithm', context: 'DestinationEncryptionContext' };

const reEncrypt: AwsOperation = {
  keys: ['*DestinationKeyId', '?*SourceKeyId'],
  about: 'encryptWithKey',
  second: { about: 'decryptWithKey', action: 'key.decrypt' },
  use: 'encrypt',
  otherwise: 'InvalidCiphertextException',
  async plan(given, work): Promise<Call> {
    const target = keyOf(work);
    need(useRefusal(target, 'encrypt'));
    const scheme = schemeOf(given, target, ofTarget);
    const to = boundBy(given, 'DestinationEncryptionContext', 'toAssociatedData');
    const { key, algorithm, item, hash } = await openingOf(given, work, work.keys[1], ofSource);
    const toHash = scheme.hash ? { toHash: scheme.hash } : {};
    return {
      id: 'decryptWithKey',
      params: { key: key.ref },
      body: { items: [{ ...item, ...to }], ...hash, ...toHash, toKey: target.ref },
      key,
      answer: (ours) => {
        if (isWithoutMessage(given)) return {};
        const { ciphertext } = onlyItem(ours, 'InvalidCiphertextException', isTooLong);
        return {
          CiphertextBlob: sealedFor(work.tenantKeys, target, ciphertext),
          SourceKeyId: key.arn,
          KeyId: target.arn,
          SourceEncryptionAlgorithm: algorithm,
          DestinationEncryptionAlgorithm: scheme.algorithm,
        };
      },
    };
  },
};

/** An answer for an enclave would have to be encrypted to it. */
export function refuseRecipient(given: JsonObject): void {
  if (given.Recipient === undefined || given.Recipient === null) return;
  throw failure('UnsupportedOperationException', 'Recipient is not supported: there are no Nitro enclaves here.');
}

export const messageOperations = { Encrypt: encrypt, Decrypt: decrypt, ReEncrypt: reEncrypt } as const;
