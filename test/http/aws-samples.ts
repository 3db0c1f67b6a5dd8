// A request for every operation of AWS KMS, with the keys that it needs, and what comes of it.
import assert from 'node:assert/strict';
import { constants, createPublicKey, generateKeyPairSync, publicEncrypt } from 'node:crypto';
import type { OperationName } from '../../src/dialects/aws/field-table.ts';
import type { AnyJson, Appliance } from '../support/appliance.ts';
import { type AccessKey, base64, done } from '../support/aws-client.ts';

/** Keys of an appliance by their part in the requests. */
export interface Desk {
  readonly a: Appliance;
  readonly key: AccessKey;
  readonly keys: Readonly<Record<'sym' | 'rsa' | 'sign' | 'mac' | 'agree' | 'external', AnyJson>>;
}

export async function deskOf(a: Appliance, key: AccessKey): Promise<Desk> {
  const make = async (input: AnyJson) => (await done(a, key, 'CreateKey', input)).KeyMetadata;
  const keys = {
    sym: await make({}),
    rsa: await make({ KeySpec: 'RSA_2048', KeyUsage: 'ENCRYPT_DECRYPT' }),
    sign: await make({ KeySpec: 'ECC_NIST_P256', KeyUsage: 'SIGN_VERIFY' }),
    mac: await make({ KeySpec: 'HMAC_256', KeyUsage: 'GENERATE_VERIFY_MAC' }),
    agree: await make({ KeySpec: 'ECC_NIST_P384', KeyUsage: 'KEY_AGREEMENT' }),
    external: await make({ Origin: 'EXTERNAL' }),
  };
  return { a, key, keys };
}

interface Sample {
  readonly input: (desk: Desk) => AnyJson | Promise<AnyJson>;
  /** The names in the answer, sorted; none for an empty one. Or the type of the refusal. */
  readonly answer: readonly string[] | string;
}

const message = base64('hello');
const ofSym = ({ keys }: Desk): AnyJson => ({ KeyId: keys.sym.KeyId });
const signing = ({ keys }: Desk): AnyJson => ({
  KeyId: keys.sign.Arn,
  Message: message,
  SigningAlgorithm: 'ECDSA_SHA_256',
});
const macOf = ({ keys }: Desk): AnyJson => ({ KeyId: keys.mac.KeyId, Message: message, MacAlgorithm: 'HMAC_SHA_256' });

/** Material of 32 bytes for the external key, wrapped as the parameters say. */
export async function wrapped(
  { a, key, keys }: Pick<Desk, 'a' | 'key'> & { readonly keys: Pick<Desk['keys'], 'external'> },
  algorithm = 'RSAES_OAEP_SHA_256',
  spec = 'RSA_2048',
  material = Buffer.alloc(32, 7),
): Promise<AnyJson> {
  const KeyId = keys.external.KeyId;
  const input = { KeyId, WrappingAlgorithm: algorithm, WrappingKeySpec: spec };
  const { ImportToken, PublicKey } = await done(a, key, 'GetParametersForImport', input);
  const publicKey = createPublicKey({ key: Buffer.from(PublicKey, 'base64'), format: 'der', type: 'spki' });
  const padding = constants.RSA_PKCS1_OAEP_PADDING;
  const oaepHash = algorithm.endsWith('_SHA_1') ? 'sha1' : 'sha256';
  const EncryptedKeyMaterial = base64(publicEncrypt({ key: publicKey, padding, oaepHash }, material));
  return { KeyId, ImportToken, EncryptedKeyMaterial, ExpirationModel: 'KEY_MATERIAL_DOES_NOT_EXPIRE' };
}

const agreed = generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey.export({ format: 'der', type: 'spki' });
const refusedBy = (answer: string, input: Sample['input']): Sample => ({ input, answer });
const unsupported = 'UnsupportedOperationException';
const store = () => ({ CustomKeyStoreId: 'cks-1' });

export const samples: Readonly<Record<OperationName, Sample>> = {
  CreateKey: { input: () => ({ Description: 'd', Tags: [{ TagKey: 'a', TagValue: 'b' }] }), answer: ['KeyMetadata'] },
  DescribeKey: { input: ofSym, answer: ['KeyMetadata'] },
  ListKeys: { input: () => ({ Limit: 3 }), answer: ['Keys', 'NextMarker', 'Truncated'] },
  EnableKey: { input: ofSym, answer: [] },
  DisableKey: { input: ofSym, answer: [] },
  ScheduleKeyDeletion: {
    input: (desk) => ({ ...ofSym(desk), PendingWindowInDays: 7 }),
    answer: ['DeletionDate', 'KeyId', 'KeyState', 'PendingWindowInDays'],
  },
  CancelKeyDeletion: {
    input: async (desk) => {
      await done(desk.a, desk.key, 'ScheduleKeyDeletion', ofSym(desk));
      return ofSym(desk);
    },
    answer: ['KeyId'],
  },
  UpdateKeyDescription: { input: (desk) => ({ ...ofSym(desk), Description: '' }), answer: [] },
  CreateAlias: { input: ({ keys }) => ({ AliasName: 'alias/app/db', TargetKeyId: keys.sym.Arn }), answer: [] },
  UpdateAlias: {
    input: async ({ a, key, keys }) => {
      await done(a, key, 'CreateAlias', { AliasName: 'alias/moved', TargetKeyId: keys.sym.KeyId });
      return { AliasName: 'alias/moved', TargetKeyId: (await done(a, key, 'CreateKey')).KeyMetadata.KeyId };
    },
    answer: [],
  },
  DeleteAlias: {
    input: async ({ a, key, keys }) => {
      await done(a, key, 'CreateAlias', { AliasName: 'alias/gone', TargetKeyId: keys.sym.KeyId });
      return { AliasName: 'alias/gone' };
    },
    answer: [],
  },
  ListAliases: { input: () => ({}), answer: ['Aliases', 'Truncated'] },
  Encrypt: {
    input: (desk) => ({ ...ofSym(desk), Plaintext: message, EncryptionContext: { a: 'b' } }),
    answer: ['CiphertextBlob', 'EncryptionAlgorithm', 'KeyId'],
  },
  Decrypt: {
    input: async (desk) => {
      const made = await done(desk.a, desk.key, 'Encrypt', { ...ofSym(desk), Plaintext: message });
      return { CiphertextBlob: made.CiphertextBlob, ...ofSym(desk) };
    },
    answer: ['EncryptionAlgorithm', 'KeyId', 'Plaintext'],
  },
  ReEncrypt: {
    input: async (desk) => {
      const { CiphertextBlob } = await done(desk.a, desk.key, 'Encrypt', { ...ofSym(desk), Plaintext: message });
      const DestinationKeyId = (await done(desk.a, desk.key, 'CreateKey')).KeyMetadata.KeyId;
      return { CiphertextBlob, DestinationKeyId, DestinationEncryptionContext: { a: 'b' } };
    },
    answer: ['CiphertextBlob', 'DestinationEncryptionAlgorithm', 'KeyId', 'SourceEncryptionAlgorithm', 'SourceKeyId'],
  },
  GenerateDataKey: {
    input: (desk) => ({ ...ofSym(desk), KeySpec: 'AES_256' }),
    answer: ['CiphertextBlob', 'KeyId', 'Plaintext'],
  },
  GenerateDataKeyWithoutPlaintext: {
    input: (desk) => ({ ...ofSym(desk), NumberOfBytes: 1000 }),
    answer: ['CiphertextBlob', 'KeyId'],
  },
  GenerateDataKeyPair: {
    input: (desk) => ({ ...ofSym(desk), KeyPairSpec: 'ECC_NIST_P256' }),
    answer: ['KeyId', 'KeyPairSpec', 'PrivateKeyCiphertextBlob', 'PrivateKeyPlaintext', 'PublicKey'],
  },
  GenerateDataKeyPairWithoutPlaintext: {
    input: (desk) => ({ ...ofSym(desk), KeyPairSpec: 'ECC_NIST_EDWARDS25519' }),
    answer: ['KeyId', 'KeyPairSpec', 'PrivateKeyCiphertextBlob', 'PublicKey'],
  },
  GenerateRandom: { input: () => ({ NumberOfBytes: 32 }), answer: ['Plaintext'] },
  Sign: { input: signing, answer: ['KeyId', 'Signature', 'SigningAlgorithm'] },
  Verify: {
    input: async (desk) => {
      const { Signature } = await done(desk.a, desk.key, 'Sign', signing(desk));
      return { ...signing(desk), Signature };
    },
    answer: ['KeyId', 'SignatureValid', 'SigningAlgorithm'],
  },
  GetPublicKey: {
    input: ({ keys }) => ({ KeyId: keys.sign.KeyId }),
    answer: ['CustomerMasterKeySpec', 'KeyId', 'KeySpec', 'KeyUsage', 'PublicKey', 'SigningAlgorithms'],
  },
  GenerateMac: { input: macOf, answer: ['KeyId', 'Mac', 'MacAlgorithm'] },
  VerifyMac: {
    input: async (desk) => ({ ...macOf(desk), Mac: (await done(desk.a, desk.key, 'GenerateMac', macOf(desk))).Mac }),
    answer: ['KeyId', 'MacAlgorithm', 'MacValid'],
  },
  DeriveSharedSecret: {
    input: ({ keys }) => ({ KeyId: keys.agree.KeyId, KeyAgreementAlgorithm: 'ECDH', PublicKey: base64(agreed) }),
    answer: ['KeyAgreementAlgorithm', 'KeyId', 'KeyOrigin', 'SharedSecret'],
  },
  TagResource: { input: (desk) => ({ ...ofSym(desk), Tags: [{ TagKey: 'a', TagValue: 'b' }] }), answer: [] },
  UntagResource: { input: (desk) => ({ ...ofSym(desk), TagKeys: ['a'] }), answer: [] },
  ListResourceTags: { input: ofSym, answer: ['Tags', 'Truncated'] },
  EnableKeyRotation: { input: (desk) => ({ ...ofSym(desk), RotationPeriodInDays: 90 }), answer: [] },
  DisableKeyRotation: { input: ofSym, answer: [] },
  GetKeyRotationStatus: {
    input: async (desk) => {
      await done(desk.a, desk.key, 'EnableKeyRotation', ofSym(desk));
      return ofSym(desk);
    },
    answer: ['KeyId', 'KeyRotationEnabled', 'NextRotationDate', 'RotationPeriodInDays'],
  },
  RotateKeyOnDemand: { input: ofSym, answer: ['KeyId'] },
  ListKeyRotations: { input: ofSym, answer: ['Rotations', 'Truncated'] },
  GetParametersForImport: {
    input: ({ keys }) => ({
      KeyId: keys.external.KeyId,
      WrappingAlgorithm: 'RSA_AES_KEY_WRAP_SHA_256',
      WrappingKeySpec: 'RSA_3072',
    }),
    answer: ['ImportToken', 'KeyId', 'ParametersValidTo', 'PublicKey'],
  },
  ImportKeyMaterial: { input: (desk) => wrapped(desk), answer: ['KeyId', 'KeyMaterialId'] },
  DeleteImportedKeyMaterial: {
    input: async (desk) => {
      await done(desk.a, desk.key, 'ImportKeyMaterial', await wrapped(desk));
      return { KeyId: desk.keys.external.KeyId };
    },
    answer: ['KeyId', 'KeyMaterialId'],
  },
  GetKeyPolicy: { input: ofSym, answer: ['Policy', 'PolicyName'] },
  PutKeyPolicy: {
    input: async (desk) => {
      const { Policy } = await done(desk.a, desk.key, 'GetKeyPolicy', ofSym(desk));
      return { ...ofSym(desk), Policy };
    },
    answer: [],
  },
  ListKeyPolicies: { input: ofSym, answer: ['PolicyNames', 'Truncated'] },
  ListGrants: { input: ofSym, answer: ['Grants', 'Truncated'] },
  ListRetirableGrants: { input: () => ({}), answer: ['Grants', 'Truncated'] },
  GetKeyLastUsage: {
    input: async (desk) => {
      await done(desk.a, desk.key, 'GenerateDataKey', { ...ofSym(desk), KeySpec: 'AES_256' });
      return ofSym(desk);
    },
    answer: ['KeyCreationDate', 'KeyId', 'KeyLastUsage', 'TrackingStartDate'],
  },
  DescribeCustomKeyStores: { input: () => ({}), answer: ['CustomKeyStores', 'Truncated'] },
  CreateGrant: refusedBy(unsupported, (desk) => ({ ...ofSym(desk), Operations: ['Decrypt'] })),
  RevokeGrant: refusedBy('NotFoundException', (desk) => ({ ...ofSym(desk), GrantId: 'g' })),
  RetireGrant: refusedBy('NotFoundException', (desk) => ({ ...ofSym(desk), GrantId: 'g' })),
  ReplicateKey: refusedBy(unsupported, (desk) => ({ ...ofSym(desk), ReplicaRegion: 'eu-west-1' })),
  UpdatePrimaryRegion: refusedBy(unsupported, (desk) => ({ ...ofSym(desk), PrimaryRegion: 'eu-west-1' })),
  CreateCustomKeyStore: refusedBy(unsupported, () => ({ CustomKeyStoreName: 'x' })),
  ConnectCustomKeyStore: refusedBy('CustomKeyStoreNotFoundException', store),
  DisconnectCustomKeyStore: refusedBy('CustomKeyStoreNotFoundException', store),
  UpdateCustomKeyStore: refusedBy('CustomKeyStoreNotFoundException', store),
  DeleteCustomKeyStore: refusedBy('CustomKeyStoreNotFoundException', store),
  Encapsulate: refusedBy(unsupported, (desk) => ({ ...ofSym(desk), EncapsulationAlgorithm: 'ML_KEM' })),
  Decapsulate: refusedBy(unsupported, (desk) => ({
    ...ofSym(desk),
    EncapsulationAlgorithm: 'ML_KEM',
    SharedSecretCiphertextBlob: message,
  })),
};

/** The names of an answer without its status. */
export function namesOf({ status, ...answer }: AnyJson): string[] {
  assert.equal(status, 200, JSON.stringify(answer));
  return Object.keys(answer).sort();
}
