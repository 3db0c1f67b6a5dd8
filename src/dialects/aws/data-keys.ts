// Operations of AWS KMS that make data keys, pairs of them, and random bytes.
import type { JsonObject } from '../../model/json.ts';
import { keyTypeFacts, pairTypes } from '../../model/key-types.ts';
import { failure } from './errors.ts';
import { numberOf, textOf } from './fields.ts';
import { algorithmsOf, keyOf, need, useRefusal } from './found-keys.ts';
import { boundBy, refuseRecipient, sealedFor } from './messages.ts';
import type { AwsOperation, Work } from './operation.ts';

/** The key that encrypts a data key: a symmetric one. */
function wrappingKeyOf(work: Work) {
  const key = keyOf(work);
  need(useRefusal(key, 'encrypt'));
  const { known, arn } = key;
  // Clients that name the key to decrypt say this algorithm, too.
  if (known && !algorithmsOf(known.type, 'ENCRYPT_DECRYPT').includes('SYMMETRIC_DEFAULT')) {
    throw failure('InvalidKeyUsageException', `${arn} is no key of the spec SYMMETRIC_DEFAULT, as data keys need.`);
  }
  return key;
}

const shared = { keys: ['*KeyId'], use: 'encrypt', otherwise: 'KMSInvalidStateException' } as const;

function dataKey(id: 'generateDataKey' | 'generateWrappedDataKey'): AwsOperation {
  return {
    ...shared,
    about: id,
    plan(given, work) {
      refuseRecipient(given);
      const bytes = bytesWanted(given);
      const key = wrappingKeyOf(work);
      return {
        id,
        params: { key: key.ref },
        body: { bytes, ...boundBy(given) },
        answer: ({ ciphertext, plaintext }) => ({
          CiphertextBlob: sealedFor(work.tenantKeys, key, ciphertext),
          ...(plaintext !== undefined && { Plaintext: plaintext }),
          KeyId: key.arn,
        }),
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
  return number ?? (spec === 'AES_128' ? 16 : 32);
}

function dataKeyPair(id: 'generateDataKey' | 'generateWrappedDataKey'): AwsOperation {
  return {
    ...shared,
    about: id,
    plan(given, work) {
      refuseRecipient(given);
      const spec = textOf(given, 'KeyPairSpec') ?? '';
      const pair = pairTypes.find((type) => keyTypeFacts[type].awsSpec === spec);
      if (!pair) throw failure('UnsupportedOperationException', `KeyPairSpec ${spec} is not supported here.`);
      const key = wrappingKeyOf(work);
      return {
        id,
        params: { key: key.ref },
        body: { pair, ...boundBy(given) },
        answer: ({ ciphertext, plaintext, publicKey }) => ({
          PrivateKeyCiphertextBlob: sealedFor(work.tenantKeys, key, ciphertext),
          ...(plaintext !== undefined && { PrivateKeyPlaintext: plaintext }),
          PublicKey: derOfPem(publicKey),
          KeyId: key.arn,
          KeyPairSpec: spec,
        }),
      };
    },
  };
}

/** Base64 of the DER in a text of PEM. */
export function derOfPem(pem: unknown): string {
  return String(pem).replace(/-----[A-Z ]+-----|\s/g, '');
}

const random: AwsOperation = {
  about: 'generateRandom',
  plan(given) {
    refuseRecipient(given);
    if (given.CustomKeyStoreId !== undefined) {
      throw failure('CustomKeyStoreNotFoundException', 'There are no custom key stores here.');
    }
    return {
      id: 'generateRandom',
      body: { bytes: numberOf(given, 'NumberOfBytes') },
      answer: ({ random: bytes }) => ({ Plaintext: bytes }),
    };
  },
};

export const dataKeyOperations = {
  GenerateDataKey: dataKey('generateDataKey'),
  GenerateDataKeyWithoutPlaintext: dataKey('generateWrappedDataKey'),
  GenerateDataKeyPair: dataKeyPair('generateDataKey'),
  GenerateDataKeyPairWithoutPlaintext: dataKeyPair('generateWrappedDataKey'),
  GenerateRandom: random,
} as const;
