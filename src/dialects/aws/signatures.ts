// Operations of AWS KMS that sign, verify, and make MACs.
import { toBase64 } from '../../crypto/bytes.ts';
import type { JsonObject } from '../../model/json.ts';
import { type KeyType, keyTypeFacts } from '../../model/key-types.ts';
import { failure } from './errors.ts';
import { textOf, wordOf } from './fields.ts';
import { bytesOf } from './messages.ts';
import { keyArn } from './names.ts';
import type { AwsOperation, FoundKey, Work } from './operation.ts';

const sizes: Readonly<Record<string, number>> = { SHA_256: 32, SHA_384: 48, SHA_512: 64 };

function keyOf({ keys }: Work): FoundKey {
  const [key] = keys;
  if (!key) throw failure('ValidationException', 'KeyId is missing');
  return key;
}

/** The algorithms of a key, as AWS KMS names them; empty for keys that it has not. */
function algorithmsOf(type: string, usage: string): readonly string[] {
  if (!Object.hasOwn(keyTypeFacts, type)) return [];
  const { purposes } = keyTypeFacts[type as KeyType];
  return purposes.find(({ aws }) => aws?.usage === usage)?.aws?.algorithms ?? [];
}

/** Our body for a message and a signing algorithm. Throws `InvalidKeyUsageException` for an algorithm of other keys. */
function signed(given: JsonObject, { type, id }: FoundKey): object {
  const algorithm = textOf(given, 'SigningAlgorithm') ?? '';
  const kind = wordOf(given, 'MessageType', ['RAW', 'DIGEST', 'EXTERNAL_MU'] as const, 'RAW');
  if (id !== undefined && !algorithmsOf(type ?? '', 'SIGN_VERIFY').includes(algorithm)) {
    throw failure('InvalidKeyUsageException', `the key does not have the algorithm ${algorithm}`);
  }
  const message = bytesOf(given.Message);
  const input = toBase64(message);
  if (algorithm === 'ML_DSA_SHAKE_256') {
    if (kind === 'DIGEST') throw failure('ValidationException', 'ML-DSA signs messages, or an external mu');
    return { input, ...(kind === 'EXTERNAL_MU' && { prehashed: true }) };
  }
  if (kind === 'EXTERNAL_MU') throw failure('ValidationException', 'EXTERNAL_MU is for ML-DSA alone');
  if (algorithm.startsWith('ED25519')) {
    if (algorithm === 'ED25519_PH_SHA_512') {
      throw failure('UnsupportedOperationException', 'Ed25519ph is not supported: sign the message itself');
    }
    if (kind !== 'RAW') throw failure('ValidationException', 'ED25519_SHA_512 signs messages: MessageType RAW');
    return { input };
  }
  const [, hash = ''] = /(SHA_\d+)$/.exec(algorithm) ?? [];
  if (kind === 'DIGEST' && message.length !== sizes[hash]) {
    throw failure('ValidationException', `Digest is invalid length for algorithm ${algorithm}`);
  }
  return {
    input,
    hash: hash.replace('SHA_', 'sha2-'),
    ...(kind === 'DIGEST' && { prehashed: true }),
    ...(algorithm.startsWith('RSASSA_PSS') && { padding: 'pss', saltLength: 'hash' }),
    ...(algorithm.startsWith('RSASSA_PKCS1') && { padding: 'pkcs1v15' }),
  };
}

const sign: AwsOperation = {
  fields: {
    KeyId: 'text! 1-2048',
    Message: 'blob! 1-4096',
    SigningAlgorithm: 'text!',
    MessageType: 'text',
    GrantTokens: 'list 0-10',
    DryRun: 'flag',
  },
  keys: ['*KeyId'],
  async run(given, work) {
    const key = keyOf(work);
    const body = signed(given, key);
    const { signature } = await work.call({ id: 'signWithKey', params: { key: key.ref }, body });
    return {
      KeyId: keyArn(work.place, key.id ?? ''),
      Signature: bare(signature),
      SigningAlgorithm: given.SigningAlgorithm,
    };
  },
};

const verify: AwsOperation = {
  fields: { ...sign.fields, Signature: 'blob! 1-6144' },
  keys: ['*KeyId'],
  async run(given, work) {
    const key = keyOf(work);
    const body = signed(given, key);
    if (!(await fits(work, key, { ...body }, 'signature', given.Signature)))
      throw failure('KMSInvalidSignatureException');
    return {
      KeyId: keyArn(work.place, key.id ?? ''),
      SignatureValid: true,
      SigningAlgorithm: given.SigningAlgorithm,
    };
  },
};

/** A signature does not say which version made it, so the newest ones are tried. */
async function fits(
  work: Work,
  key: FoundKey,
  body: object,
  name: 'signature' | 'mac',
  given: unknown,
): Promise<boolean> {
  const newest = key.versions ?? 1;
  for (let version = newest; version > Math.max(0, newest - mostTried); version--) {
    const asked = { ...body, [name]: `vault:v${version}:${String(given)}` };
    const { valid } = await work.call({ id: 'verifyWithKey', params: { key: key.ref }, body: asked });
    if (valid === true) return true;
  }
  return false;
}

/** Versions that a signature is compared with. */
const mostTried = 5;

function bare(prefixed: unknown): string {
  return String(prefixed).replace(/^vault:v\d+:/, '');
}

function macOf(given: JsonObject, { type, id }: FoundKey): object {
  const algorithm = textOf(given, 'MacAlgorithm') ?? '';
  if (id !== undefined && !algorithmsOf(type ?? '', 'GENERATE_VERIFY_MAC').includes(algorithm)) {
    throw failure('InvalidKeyUsageException', `the key does not have the algorithm ${algorithm}`);
  }
  return { input: String(given.Message) };
}

const generateMac: AwsOperation = {
  fields: {
    KeyId: 'text! 1-2048',
    Message: 'blob! 1-4096',
    MacAlgorithm: 'text!',
    GrantTokens: 'list 0-10',
    DryRun: 'flag',
  },
  keys: ['*KeyId'],
  async run(given, work) {
    const key = keyOf(work);
    const { mac } = await work.call({ id: 'macWithKey', params: { key: key.ref }, body: macOf(given, key) });
    return { KeyId: keyArn(work.place, key.id ?? ''), Mac: bare(mac), MacAlgorithm: given.MacAlgorithm };
  },
};

const verifyMac: AwsOperation = {
  fields: { ...generateMac.fields, Mac: 'blob! 1-6144' },
  keys: ['*KeyId'],
  async run(given, work) {
    const key = keyOf(work);
    if (!(await fits(work, key, macOf(given, key), 'mac', given.Mac))) throw failure('KMSInvalidMacException');
    return { KeyId: keyArn(work.place, key.id ?? ''), MacValid: true, MacAlgorithm: given.MacAlgorithm };
  },
};

const deriveSharedSecret: AwsOperation = {
  fields: {
    KeyId: 'text! 1-2048',
    KeyAgreementAlgorithm: 'text!',
    PublicKey: 'blob! 1-8192',
    Recipient: 'map',
    GrantTokens: 'list 0-10',
    DryRun: 'flag',
  },
  keys: ['*KeyId'],
  async run(given, work) {
    const key = keyOf(work);
    wordOf(given, 'KeyAgreementAlgorithm', ['ECDH'] as const);
    const body = { publicKey: String(given.PublicKey) };
    const { derived } = await work.call({ id: 'deriveWithKey', params: { key: key.ref }, body });
    return {
      KeyId: keyArn(work.place, key.id ?? ''),
      SharedSecret: derived,
      KeyAgreementAlgorithm: 'ECDH',
      KeyOrigin: 'AWS_KMS',
    };
  },
};

export const signatureOperations: Readonly<Record<string, AwsOperation>> = {
  Sign: sign,
  Verify: verify,
  GenerateMac: generateMac,
  VerifyMac: verifyMac,
  DeriveSharedSecret: deriveSharedSecret,
};
