// The fields of all operations of AWS KMS, as one table. A rule is the kind of a value, `!` for a compulsory one, and
// the least and most of it: characters of a text, bytes of a blob, the number itself, items of a list or map. A `word`
// has the texts that it may be.
type FieldRules = Readonly<Record<string, string>>;

const keyId = { KeyId: 'text! 1-2048' };
const limit = 'number 1-1000';
const marker = 'text 1-1024';
const page = { Limit: limit, Marker: marker };
const grants = { GrantTokens: 'list 0-10' };
const dry = { DryRun: 'flag' };
const use = { ...keyId, ...grants, ...dry };
const recipient = { Recipient: 'map' };
const context = { EncryptionContext: 'map' };
const encryption = 'word SYMMETRIC_DEFAULT|RSAES_OAEP_SHA_1|RSAES_OAEP_SHA_256|SM2PKE';
const modifiers = { DryRunModifiers: 'list 1-1' };
const keySpecs =
  'RSA_2048|RSA_3072|RSA_4096|ECC_NIST_P256|ECC_NIST_P384|ECC_NIST_P521|ECC_SECG_P256K1|SYMMETRIC_DEFAULT|HMAC_224|' +
  'HMAC_256|HMAC_384|HMAC_512|SM2|ML_DSA_44|ML_DSA_65|ML_DSA_87|ECC_NIST_EDWARDS25519|ML_KEM_512|ML_KEM_768|' +
  'ML_KEM_1024';
const signing =
  'RSASSA_PSS_SHA_256|RSASSA_PSS_SHA_384|RSASSA_PSS_SHA_512|RSASSA_PKCS1_V1_5_SHA_256|RSASSA_PKCS1_V1_5_SHA_384|' +
  'RSASSA_PKCS1_V1_5_SHA_512|ECDSA_SHA_256|ECDSA_SHA_384|ECDSA_SHA_512|SM2DSA|ML_DSA_SHAKE_256|ED25519_SHA_512|' +
  'ED25519_PH_SHA_512';
const sign = {
  ...use,
  Message: 'blob! 1-4096',
  MessageType: 'word RAW|DIGEST|EXTERNAL_MU',
  SigningAlgorithm: `word! ${signing}`,
};
const mac = {
  ...use,
  Message: 'blob! 1-4096',
  MacAlgorithm: 'word! HMAC_SHA_224|HMAC_SHA_256|HMAC_SHA_384|HMAC_SHA_512',
};
const dataKey = { ...use, ...context, NumberOfBytes: 'number 1-1024', KeySpec: 'word AES_256|AES_128' };
const pair = {
  ...use,
  ...context,
  KeyPairSpec:
    'word! RSA_2048|RSA_3072|RSA_4096|ECC_NIST_P256|ECC_NIST_P384|ECC_NIST_P521|ECC_SECG_P256K1|SM2|' +
    'ECC_NIST_EDWARDS25519|ML_KEM_512|ML_KEM_768|ML_KEM_1024',
};
const encapsulation = { ...use, EncapsulationAlgorithm: 'word! ML_KEM' };
const alias = { AliasName: 'text! 1-256', TargetKeyId: 'text! 1-2048' };
const policy = { Policy: 'text! 1-131072', BypassPolicyLockoutSafetyCheck: 'flag' };
const policyName = { PolicyName: 'text 1-128' };
const storeId = { CustomKeyStoreId: 'text! 1-64' };

export const fieldTable = {
  CancelKeyDeletion: keyId,
  ConnectCustomKeyStore: storeId,
  CreateAlias: alias,
  CreateCustomKeyStore: { CustomKeyStoreName: 'text! 1-256' },
  CreateGrant: { ...use, Operations: 'list!', Constraints: 'map', Name: 'text 1-256' },
  CreateKey: {
    ...{ Policy: 'text 1-131072', BypassPolicyLockoutSafetyCheck: 'flag' },
    Description: 'text 0-8192',
    KeyUsage: 'word SIGN_VERIFY|ENCRYPT_DECRYPT|GENERATE_VERIFY_MAC|KEY_AGREEMENT|ENCAPSULATE_DECAPSULATE',
    CustomerMasterKeySpec: `word ${keySpecs}`,
    KeySpec: `word ${keySpecs}`,
    Origin: 'word AWS_KMS|EXTERNAL|AWS_CLOUDHSM|EXTERNAL_KEY_STORE',
    CustomKeyStoreId: 'text 1-64',
    Tags: 'list 0-50',
    MultiRegion: 'flag',
    XksKeyId: 'text 1-128',
  },
  Decapsulate: { ...encapsulation, SharedSecretCiphertextBlob: 'blob! 1-6144' },
  Decrypt: {
    ...{ ...grants, ...dry, ...recipient, ...context, ...modifiers },
    CiphertextBlob: 'blob 1-6144',
    KeyId: 'text 1-2048',
    EncryptionAlgorithm: encryption,
  },
  DeleteAlias: { AliasName: 'text! 1-256' },
  DeleteCustomKeyStore: storeId,
  DeleteImportedKeyMaterial: { ...keyId, KeyMaterialId: 'text 64-64' },
  DeriveSharedSecret: {
    ...{ ...use, ...recipient },
    KeyAgreementAlgorithm: 'word! ECDH',
    PublicKey: 'blob! 1-8192',
  },
  DescribeCustomKeyStores: { ...page, CustomKeyStoreId: 'text 1-64', CustomKeyStoreName: 'text 1-256' },
  DescribeKey: { ...keyId, ...grants },
  DisableKey: keyId,
  DisableKeyRotation: keyId,
  DisconnectCustomKeyStore: storeId,
  EnableKey: keyId,
  EnableKeyRotation: { ...keyId, RotationPeriodInDays: 'number 90-2560' },
  Encapsulate: encapsulation,
  Encrypt: { ...use, ...context, Plaintext: 'blob! 1-4096', EncryptionAlgorithm: encryption },
  GenerateDataKey: { ...dataKey, ...recipient },
  GenerateDataKeyPair: { ...pair, ...recipient },
  GenerateDataKeyPairWithoutPlaintext: pair,
  GenerateDataKeyWithoutPlaintext: dataKey,
  GenerateMac: mac,
  GenerateRandom: { ...recipient, NumberOfBytes: 'number! 1-1024', CustomKeyStoreId: 'text 1-64' },
  GetKeyLastUsage: keyId,
  GetKeyPolicy: { ...keyId, ...policyName },
  GetKeyRotationStatus: keyId,
  GetParametersForImport: {
    ...keyId,
    WrappingAlgorithm:
      'word! RSAES_PKCS1_V1_5|RSAES_OAEP_SHA_1|RSAES_OAEP_SHA_256|RSA_AES_KEY_WRAP_SHA_1|RSA_AES_KEY_WRAP_SHA_256|SM2PKE',
    WrappingKeySpec: 'word! RSA_2048|RSA_3072|RSA_4096|SM2',
  },
  GetPublicKey: { ...keyId, ...grants },
  ImportKeyMaterial: {
    ...keyId,
    ImportToken: 'blob! 1-6144',
    EncryptedKeyMaterial: 'blob! 1-6144',
    ValidTo: 'time',
    ExpirationModel: 'word KEY_MATERIAL_EXPIRES|KEY_MATERIAL_DOES_NOT_EXPIRE',
    ImportType: 'word NEW_KEY_MATERIAL|EXISTING_KEY_MATERIAL',
    KeyMaterialDescription: 'text 0-256',
    KeyMaterialId: 'text 64-64',
  },
  ListAliases: { ...page, KeyId: 'text 1-2048' },
  ListGrants: { ...keyId, ...page, GrantId: 'text 1-128', GranteePrincipal: 'text 1-256' },
  ListKeyPolicies: { ...keyId, ...page },
  ListKeyRotations: {
    ...{ ...keyId, ...page },
    IncludeKeyMaterial: 'word ALL_KEY_MATERIAL|ROTATIONS_ONLY',
  },
  ListKeys: { ...page, ResourceOwners: 'list' },
  ListResourceTags: { ...keyId, ...page },
  ListRetirableGrants: { ...page, RetiringPrincipal: 'text 1-256' },
  PutKeyPolicy: { ...keyId, ...policy, ...policyName },
  ReEncrypt: {
    ...{ ...grants, ...dry, ...modifiers },
    CiphertextBlob: 'blob 1-6144',
    SourceEncryptionContext: 'map',
    SourceKeyId: 'text 1-2048',
    DestinationKeyId: 'text! 1-2048',
    DestinationEncryptionContext: 'map',
    SourceEncryptionAlgorithm: encryption,
    DestinationEncryptionAlgorithm: encryption,
  },
  ReplicateKey: { ...keyId, ReplicaRegion: 'text! 1-32' },
  RetireGrant: { ...dry, GrantToken: 'text 1-8192', KeyId: 'text 1-2048', GrantId: 'text 1-128' },
  RevokeGrant: { ...keyId, ...dry, GrantId: 'text! 1-128' },
  RotateKeyOnDemand: keyId,
  ScheduleKeyDeletion: { ...keyId, PendingWindowInDays: 'number 7-30' },
  Sign: sign,
  TagResource: { ...keyId, Tags: 'list! 0-50' },
  UntagResource: { ...keyId, TagKeys: 'list! 0-50' },
  UpdateAlias: alias,
  UpdateCustomKeyStore: storeId,
  UpdateKeyDescription: { ...keyId, Description: 'text! 0-8192' },
  UpdatePrimaryRegion: { ...keyId, PrimaryRegion: 'text! 1-32' },
  Verify: { ...sign, Signature: 'blob! 1-6144' },
  VerifyMac: { ...mac, Mac: 'blob! 1-6144' },
} as const satisfies Readonly<Record<string, FieldRules>>;

export type OperationName = keyof typeof fieldTable;

export function fieldsOf(name: OperationName): FieldRules {
  return fieldTable[name];
}
