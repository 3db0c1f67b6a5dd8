// Operations of AWS KMS that sign, verify, make MACs and agree on secrets.
import { fromBase64 } from '../../crypto/bytes.ts';
import type { JsonObject } from '../../model/json.ts';
import { failure } from './errors.ts';
import { textOf } from './fields.ts';
import { algorithmsOf, type FoundKey, keyOf, need, useRefusal } from './found-keys.ts';
import { refuseRecipient } from './messages.ts';
import type { AwsOperation } from './operation.ts';

const digestSizes: Readonly<Record<string, number>> = { SHA_256: 32, SHA_384: 48, SHA_512: 64 };

function needAlgorithm({ known, arn }: FoundKey, usage: string, algorithm: string): void {
  if (!known || algorithmsOf(known.type, usage).includes(algorithm)) return;
  throw failure('InvalidKeyUsageException', `Algorithm ${algorithm} is incompatible with ${arn}.`);
}

/** The native body for a message and a signing algorithm. */
function signed(given: JsonObject, key: FoundKey): object {
  const algorithm = textOf(given, 'SigningAlgorithm') ?? '';
  if (algorithm === 'ED25519_PH_SHA_512') {
    throw failure(
      'UnsupportedOperationException',
      'ED25519_PH_SHA_512 is not supported here: sign the message itself.',
    );
  }
  needAlgorithm(key, 'SIGN_VERIFY', algorithm);
  const kind = textOf(given, 'MessageType') ?? 'RAW';
  const input = given.Message;
  if (algorithm === 'ML_DSA_SHAKE_256') return { input, ...mlDsaMessage(given, kind) };
  if (kind === 'EXTERNAL_MU') throw unfit(kind, algorithm);
  if (algorithm.startsWith('ED25519')) {
    if (kind !== 'RAW') throw unfit(kind, algorithm);
    return { input };
  }
  const [hash = ''] = /SHA_\d+$/.exec(algorithm) ?? [];
  needLength(given, kind === 'DIGEST' ? digestSizes[hash] : undefined, algorithm);
  return {
    input,
    hash: hash.replace('SHA_', 'sha2-'),
    ...(kind === 'DIGEST' && { prehashed: true }),
    ...(algorithm.startsWith('RSASSA_PSS') && { padding: 'pss', saltLength: 'hash' }),
    ...(algorithm.startsWith('RSASSA_PKCS1') && { padding: 'pkcs1v15' }),
  };
}

function mlDsaMessage(given: JsonObject, kind: string): object {
  if (kind === 'DIGEST') throw unfit(kind, 'ML_DSA_SHAKE_256');
  if (kind === 'RAW') return {};
  needLength(given, 64, 'ML_DSA_SHAKE_256');
  return { prehashed: true };
}

function unfit(kind: string, algorithm: string): Error {
  return failure('ValidationException', `MessageType ${kind} is not supported with ${algorithm}.`);
}

function needLength(given: JsonObject, length: number | undefined, algorithm: string): void {
  if (length === undefined || fromBase64(textOf(given, 'Message') ?? '')?.length === length) return;
  throw failure('ValidationException', `Digest is invalid length for algorithm ${algorithm}.`);
}

/** A signature or MAC without its version, which these clients are not told. */
function bare(prefixed: unknown): string {
  return String(prefixed).replace(/^vault:v\d+:/, '');
}

const making = { keys: ['*KeyId'], otherwise: 'KMSInvalidStateException' } as const;

const sign: AwsOperation = {
  ...making,
  about: 'signWithKey',
  use: 'sign',
  plan(given, work) {
    const key = keyOf(work);
    need(useRefusal(key, 'sign'));
    return {
      id: 'signWithKey',
      params: { key: key.ref },
      body: signed(given, key),
      answer: ({ signature }) => ({
        KeyId: key.arn,
        Signature: bare(signature),
        SigningAlgorithm: given.SigningAlgorithm,
      }),
    };
  },
};

/** A signature that does not fit is an exception here. */
function needValid({ valid }: JsonObject, type: string): true {
  if (valid !== true) throw failure(type);
  return true;
}

const verify: AwsOperation = {
  ...making,
  about: 'verifyWithKey',
  use: 'verify',
  plan(given, work) {
    const key = keyOf(work);
    need(useRefusal(key, 'verify'));
    return {
      id: 'verifyWithKey',
      params: { key: key.ref },
      body: { ...signed(given, key), signature: given.Signature, anyVersion: true },
      answer: (ours) => ({
        KeyId: key.arn,
        SignatureValid: needValid(ours, 'KMSInvalidSignatureException'),
        SigningAlgorithm: given.SigningAlgorithm,
      }),
    };
  },
};

const generateMac: AwsOperation = {
  ...making,
  about: 'macWithKey',
  use: 'mac',
  plan(given, work) {
    const key = keyOf(work);
    need(useRefusal(key, 'mac'));
    needAlgorithm(key, 'GENERATE_VERIFY_MAC', String(given.MacAlgorithm));
    return {
      id: 'macWithKey',
      params: { key: key.ref },
      body: { input: given.Message },
      answer: ({ mac }) => ({ KeyId: key.arn, Mac: bare(mac), MacAlgorithm: given.MacAlgorithm }),
    };
  },
};

const verifyMac: AwsOperation = {
  ...making,
  about: 'verifyWithKey',
  use: 'verify',
  plan(given, work) {
    const key = keyOf(work);
    if (key.known && !key.known.type.startsWith('hmac-')) {
      throw failure('InvalidKeyUsageException', `${key.arn} makes no MACs.`);
    }
    need(useRefusal(key, 'verify'));
    needAlgorithm(key, 'GENERATE_VERIFY_MAC', String(given.MacAlgorithm));
    return {
      id: 'verifyWithKey',
      params: { key: key.ref },
      body: { input: given.Message, mac: given.Mac, anyVersion: true },
      answer: (ours) => ({
        KeyId: key.arn,
        MacValid: needValid(ours, 'KMSInvalidMacException'),
        MacAlgorithm: given.MacAlgorithm,
      }),
    };
  },
};

const deriveSharedSecret: AwsOperation = {
  keys: ['*KeyId'],
  about: 'deriveWithKey',
  use: 'derive',
  typeOf: (message) => (message?.startsWith('no version of the key') ? 'KMSInvalidStateException' : undefined),
  plan(given, work) {
    refuseRecipient(given);
    const key = keyOf(work);
    need(useRefusal(key, 'derive'));
    needAlgorithm(key, 'KEY_AGREEMENT', String(given.KeyAgreementAlgorithm));
    return {
      id: 'deriveWithKey',
      params: { key: key.ref },
      body: { publicKey: given.PublicKey },
      answer: ({ derived }) => ({
        KeyId: key.arn,
        SharedSecret: derived,
        KeyAgreementAlgorithm: 'ECDH',
        KeyOrigin: key.known?.origin === 'imported' ? 'EXTERNAL' : 'AWS_KMS',
      }),
    };
  },
};

export const signatureOperations = {
  Sign: sign,
  Verify: verify,
  GenerateMac: generateMac,
  VerifyMac: verifyMac,
  DeriveSharedSecret: deriveSharedSecret,
} as const;
