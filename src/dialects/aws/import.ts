// Import of key material in AWS KMS: a wrapping key with a token that says what it is good for, the material, and its
// removal. The same material comes back; other material is refused, since what was encrypted would not open.

import { otherMaterial } from '../../core/key-transfer.ts';
import { concatBytes, equalBytes, fromBase64, fromUtf8, toBase64, utf8 } from '../../crypto/bytes.ts';
import { hmacSha256 } from '../../crypto/fast-hash.ts';
import { isJsonObject, type JsonObject, jsonOf } from '../../model/json.ts';
import { keyTypeFacts, type WrappingKeyType, wrappingKeyTypes } from '../../model/key-types.ts';
import type { TenantKeys } from '../../seal/tenant-keys.ts';
import { derOfPem } from './data-keys.ts';
import { failure } from './errors.ts';
import { textOf } from './fields.ts';
import { type FoundKey, factsOf, keyOf, knownOf } from './found-keys.ts';
import { materialIdOf } from './key-metadata.ts';
import type { AwsOperation, Work } from './operation.ts';

const tokenLife = 24 * 60 * 60 * 1000;
const macLength = 32;
const tokenLabel = utf8('kms/aws-import-token/1\0');

/** Content of an import token. */
interface Token {
  readonly keyId: string;
  readonly algorithm: string;
  readonly type: WrappingKeyType;
  readonly until: number;
  readonly epoch: number;
}

type TokenKeys = Pick<TenantKeys, 'key' | 'epoch' | 'epochs'>;

function tokenMac(keys: TokenKeys, epoch: number, said: Uint8Array): Uint8Array {
  return hmacSha256(keys.key('proof', epoch))(concatBytes(tokenLabel, said));
}

function tokenOf(keys: TokenKeys, token: Omit<Token, 'epoch'>): string {
  const { epoch } = keys;
  const said = utf8(JSON.stringify({ ...token, epoch }));
  return toBase64(concatBytes(tokenMac(keys, epoch, said), said));
}

/** Throws `InvalidImportTokenException`, `ExpiredImportTokenException`. */
function readToken(keys: TokenKeys, text: string, keyId: string | undefined, now: number): Token {
  const bytes = fromBase64(text) ?? new Uint8Array();
  const said = bytes.slice(macLength);
  const value = jsonOf(fromUtf8(said) ?? '');
  // Epochs whose keys are gone make no tokens that still hold.
  const epoch = isJsonObject(value) ? Number(value.epoch) : Number.NaN;
  if (!isJsonObject(value) || epoch !== keys.epoch) throw failure('InvalidImportTokenException');
  if (!equalBytes(tokenMac(keys, epoch, said), bytes.slice(0, macLength))) throw failure('InvalidImportTokenException');
  // Cast: only this file writes what has the MAC.
  const token = value as unknown as Token;
  if (keyId !== undefined && token.keyId !== keyId) throw failure('InvalidImportTokenException');
  if (token.until <= now) throw failure('ExpiredImportTokenException');
  return token;
}

function importable(work: Work): FoundKey {
  const key = keyOf(work);
  if (key.known && key.known.origin !== 'imported') {
    const message = `${key.arn} origin is AWS_KMS which is not valid for this operation.`;
    throw failure('UnsupportedOperationException', message);
  }
  return key;
}

const isWrapAlgorithm = (algorithm: string): boolean => algorithm.startsWith('RSA_AES_KEY_WRAP');

const getParametersForImport: AwsOperation = {
  keys: ['KeyId'],
  about: 'importManagedKey',
  otherwise: 'KMSInvalidStateException',
  plan(given, work) {
    const key = importable(work);
    const algorithm = textOf(given, 'WrappingAlgorithm') ?? '';
    const spec = textOf(given, 'WrappingKeySpec') ?? '';
    const type = wrappingKeyTypes.find((each) => keyTypeFacts[each].awsSpec === spec);
    if (!type || !/^(?:RSAES_OAEP|RSA_AES_KEY_WRAP)_SHA_(?:1|256)$/.test(algorithm)) {
      throw failure('UnsupportedOperationException', `${algorithm} with ${spec} is not supported here.`);
    }
    if (factsOf(key)?.isAsymmetric && !isWrapAlgorithm(algorithm)) {
      throw failure('ValidationException', `${algorithm} does not take private keys: use RSA_AES_KEY_WRAP_SHA_256.`);
    }
    const until = work.now() + tokenLife;
    return {
      id: 'getWrappingKey',
      query: { type, key: key.ref },
      answer: ({ publicKey }) => ({
        KeyId: key.arn,
        ImportToken: tokenOf(work.tenantKeys, { keyId: knownOf(key).id, algorithm, type, until }),
        PublicKey: derOfPem(publicKey),
        ParametersValidTo: until / 1000,
      }),
    };
  },
};

const importKeyMaterial: AwsOperation = {
  keys: ['KeyId'],
  about: 'importManagedKey',
  otherwise: 'InvalidCiphertextException',
  typeOf: (message) => (message === otherMaterial ? 'IncorrectKeyMaterialException' : undefined),
  plan(given, work) {
    const key = importable(work);
    if (key.known?.state === 'suspended') throw failure('KMSInvalidStateException', `${key.arn} is disabled.`);
    refuseModels(given, key);
    const token = readToken(work.tenantKeys, textOf(given, 'ImportToken') ?? '', key.known?.id, work.now());
    const wrapped = textOf(given, 'EncryptedKeyMaterial') ?? '';
    const length = fromBase64(wrapped)?.length ?? 0;
    const modulus = (keyTypeFacts[token.type].bits ?? 0) / 8;
    if (isWrapAlgorithm(token.algorithm) ? length <= modulus : length !== modulus) {
      throw failure('InvalidCiphertextException');
    }
    return {
      id: 'importManagedKey',
      params: { key: key.ref },
      body: {
        wrapped,
        hash: token.algorithm.endsWith('_SHA_1') ? 'sha1' : 'sha2-256',
        format: factsOf(key)?.isAsymmetric ? 'der' : 'raw',
      },
      answer: () => ({ KeyId: key.arn, KeyMaterialId: materialIdOf(knownOf(key).id, 1) }),
    };
  },
};

function refuseModels(given: JsonObject, { known, arn }: FoundKey): void {
  const model = textOf(given, 'ExpirationModel') ?? 'KEY_MATERIAL_EXPIRES';
  if (model === 'KEY_MATERIAL_EXPIRES') {
    if (given.ValidTo === undefined) {
      throw failure('ValidationException', 'A validTo date must be set if the ExpirationModel is KEY_MATERIAL_EXPIRES');
    }
    throw failure(
      'UnsupportedOperationException',
      'Key material does not expire by itself here: import it with KEY_MATERIAL_DOES_NOT_EXPIRE, and delete it in time.',
    );
  }
  if (given.ValidTo !== undefined) {
    throw failure('ValidationException', 'ValidTo goes with the ExpirationModel KEY_MATERIAL_EXPIRES.');
  }
  if (textOf(given, 'ImportType') === 'NEW_KEY_MATERIAL' || (known && !known.isPendingImport)) {
    throw failure(
      'UnsupportedOperationException',
      `${arn} has one key material, which is deleted before it comes again.`,
    );
  }
}

const deleteImportedKeyMaterial: AwsOperation = {
  keys: ['KeyId'],
  about: 'eraseKeyMaterial',
  otherwise: 'KMSInvalidStateException',
  plan(_given, work) {
    const key = importable(work);
    return {
      id: 'eraseKeyMaterial',
      params: { key: key.ref },
      answer: () => ({ KeyId: key.arn, KeyMaterialId: materialIdOf(knownOf(key).id, 1) }),
    };
  },
};

export const importOperations = {
  GetParametersForImport: getParametersForImport,
  ImportKeyMaterial: importKeyMaterial,
  DeleteImportedKeyMaterial: deleteImportedKeyMaterial,
} as const;
