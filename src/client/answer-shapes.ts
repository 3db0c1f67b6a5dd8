// Shapes of the answers to the client's methods, from the endpoints' declarations; made by build/answer-shapes.ts. A
// field is a name and a kind of answers.ts, or a nested object; `?` may be absent, `[]` is a list, `|null` may be null.
import type { ClientEndpointId } from '../api/paths.ts';

/** Objects used in several answers, or nested in one. */
export const things: Readonly<Record<string, string>> = {
  KeyRing: `
    id:ring_ name:ring displayName:ring activeKey:key_ activeAlgorithm:word custody:word createdAt:time
    updatedAt:time props:object kem:word publicKey:base64 offlineDecrypt?:boolean`,
  EncryptedKeyDataEncryptedKey: 'value:base64 encoding:word',
  EncryptedKeyDataEncrypted: 'key:EncryptedKeyDataEncryptedKey',
  EncryptedKeyData: 'encrypted:EncryptedKeyDataEncrypted iv:base64',
  Key: 'id:key_ type:word kem:word props:object keyData:EncryptedKeyData',
  ListedKeyRing: `
    id:ring_ name:ring displayName:ring activeKey:key_ activeAlgorithm:word custody:word createdAt:time
    updatedAt:time props:object kem:word publicKey:base64 offlineDecrypt?:boolean deletedAt?:time
    restorableUntil?:time`,
  PageInfo: 'limit:count count:count hasMore:boolean nextCursor?:base64url',
  KeyRingConfigKey: 'props:object',
  KeyRingConfigAlgosAes256: 'maxEncryptCount:count',
  KeyRingConfigAlgos: 'aes256:KeyRingConfigAlgosAes256',
  KeyRingConfig:
    'props:object key:KeyRingConfigKey algos:KeyRingConfigAlgos rotateAfter:count|null offlineDecrypt:boolean',
  KeyUsageDays: 'day:day encrypts:count decrypts:count',
  KeyUsage: `
    since:count|null lastEncryptAt:count|null lastEncryptBy:caller|null lastDecryptAt:count|null
    lastDecryptBy:caller|null days:KeyUsageDays[]`,
  EarlierWrapping: 'kem:word publicKey:base64 keyData:EncryptedKeyData replacedAt:time',
  KeyListItem: `
    id:key_ type:word kem:word publicKey:base64 props:object createdAt:time usage?:KeyUsage
    keyData?:EncryptedKeyData earlier?:EarlierWrapping[]`,
  GetKeyringKeys: 'data:KeyListItem[] hasMore:boolean',
  SafeApiKeyReferences: 'accountId:acct_',
  SafeApiKey: `
    keyid:apik_ name:text active:boolean expiresAt:count|null allowedAddresses:text[]
    references:SafeApiKeyReferences flags:object props:object createdAt:time createdBy:caller|null
    lastUsedAt:count|null updatedAt:time`,
  GetKeyringApikeys: 'data:SafeApiKey[] hasMore:boolean',
  HandedKey: 'id:key_ type:word kem:word props:object keyData?:EncryptedKeyData',
  Asset: 'id:asset_ createdAt:time data:object parents:asset_[]',
  SignedAsset: 'valid:boolean id:asset_ message:text data:object',
  SigningKey: 'epoch:count publicKey:base64 createdAt:time|null',
  AsymKeyRing: `
    id:ring_ name:ring displayName:ring activeKey:key_ activeAlgorithm:word custody:word kem:word
    publicKey:base64 createdAt:time updatedAt:time`,
  AsymKeyKeyData: 'key:base64',
  AsymKey: 'id:key_ type:word kem:word props:object keyData:AsymKeyKeyData',
  ManagedKeyVersion: 'version:count state:word origin:word createdAt:time publicKey?:text deletedAt?:time',
  ManagedKeyAws: 'account:text keyId:text',
  ManagedKeyKmipLastGet: 'caller:caller at:time',
  ManagedKeyKmip: 'type:word names:text[] owner?:text lastGet?:ManagedKeyKmipLastGet',
  ManagedKey: `
    id:managedKey name:ring displayName:ring aliases:text[] custody:word type:word uses:word[] state:word
    latestVersion:count primaryVersion:count|null minDecryptVersion:count minEncryptVersion:count
    derived:boolean exportable:boolean origin:word allowPlaintextFormat?:word rotateAfter:count|null
    deletionAllowed:boolean tags:object props:object createdAt:time updatedAt:time activateAt:count|null
    deactivateAt:count|null deletedAt?:time restorableUntil?:time versions?:ManagedKeyVersion[]
    aws?:ManagedKeyAws kmip?:ManagedKeyKmip`,
  SecretVersion: 'path:text name:ring version:count state:word createdAt:time deletedAt?:time tags:object',
  Secret: `
    id:managedKey path:text name:ring state:word latestVersion:count maxVersions:count casRequired:boolean
    tags:object createdAt:time updatedAt:time versions:ManagedKeyVersion[]`,
  ManagedKeyDependent: 'caller:caller dialect:text version:count operation:text count:count lastUsedAt:time',
  ExportedKeyVersion: 'version:count wrapped?:base64 wrapping?:word plaintext?:base64',
  ManagedKeyResult: `
    ciphertext?:token keyVersion?:count plaintext?:text signature?:token mac?:token valid?:boolean warning?:text
    error?:text`,
  TangPair: `
    thumbprint:base64url exchange:base64url advertised:boolean createdAt:time rotatedAt?:time recoveries:count
    recoveredAt?:time`,
  User: `
    id:user_ username:line firstName:text lastName:text displayName:text keys:apik_[] email:line flags:object
    props:object state:word lastLoginAt:count|null`,
  PasskeyLoginOptionsAllowCredentials: 'id:text type:word transports:text[]',
  OwnSession: 'id:sess_ createdAt:time lastUsedAt:count address:text|null current:boolean',
  SecondFactor: 'id:fact_ kind:word name:text createdAt:time lastUsedAt:count|null',
  OwnSecondFactors: 'secondFactors:SecondFactor[] recoveryCodes:count needed:boolean',
  BeginPasskeyRp: 'id:text name:text',
  BeginPasskeyUser: 'id:text name:text displayName:text',
  BeginPasskeyPubKeyCredParams: 'type:word alg:integer',
  BeginPasskeyAuthenticatorSelection: 'residentKey:word userVerification:word',
  WorkloadLoginCertificate: 'name:text commonName:text serialNumber:text subjectKeyId:text authorityKeyId:text',
  Account: 'id:acct_ uid:text notes:text props:object createdAt:time updatedAt:time',
  Proof: `
    id:text kind:word name:text active:boolean createdAt:time createdBy:caller|null lastUsedAt:count|null
    accessKeyId?:text awsAccount?:text fingerprint?:text san?:text authority?:text issued?:boolean
    notAfter?:time issuer?:text subject?:text jwksUrl?:text ca?:text audience?:text[] claims?:object
    jwks?:object once?:boolean longest?:count`,
  TestProofProofsSteps: 'check:text ok:boolean reason?:text',
  TestProofProofs: 'proof:text accepted:boolean steps:TestProofProofsSteps[]',
  Activity: `
    id:act_ keyid:caller createdAt:count props:object action:text ringname:text validAction:boolean status:count
    address?:text reporter?:caller`,
  CreateApprovalRuleApproversUsers: 'id:caller name:text',
  CreateApprovalRuleApprovers: 'users?:CreateApprovalRuleApproversUsers[] flag?:text',
  ApprovalRule: `
    id:rule_ name:text actions:text[] objects:text[] approvers:CreateApprovalRuleApprovers count:count
    selfApproval:boolean mode:word window:wordOrCount breakers:CreateApprovalRuleApproversUsers[]
    expires:integer|null props:object able:count createdAt:count createdBy:caller updatedAt:count`,
  ListApprovalPresetsPresets: 'name:word title:text actions:text[]',
  ApprovalRequestObject: 'type:text id:text name?:text',
  ApprovalRequestRules: 'id:rule_ name:text count:count given:count window:wordOrCount',
  ApprovalRequestWords: `
    by:CreateApprovalRuleApproversUsers verdict:word at:count factor:word signed:boolean reason?:text
    counts:boolean problem?:text`,
  ApprovalRequestShownFurther: 'action:text object:ApprovalRequestObject|null',
  ApprovalRequestShown: 'parameters:object body:object|null further:ApprovalRequestShownFurther[]',
  ApprovalRequestEffectsVouched: 'id:caller name:text reached:boolean',
  ApprovalRequestEffectsDependents: 'by:CreateApprovalRuleApproversUsers operation:text uses:count lastUsedAt:count',
  ApprovalRequestEffects: `
    changed:text[] granted:text[] revoked:text[] grantedCount?:count revokedCount?:count
    objects:ApprovalRequestObject[] objectCount?:count before?:object after?:object
    vouched?:ApprovalRequestEffectsVouched[] vouchedCount?:count dependents?:ApprovalRequestEffectsDependents[]`,
  ApprovalRequestMay: 'approve:boolean deny:boolean withdraw:boolean breakGlass:boolean problem?:text',
  ApprovalRequest: `
    id:appr_ state:word requester:CreateApprovalRuleApproversUsers action:text actions:text[] operation:text
    dialect?:text address?:text object:ApprovalRequestObject|null reason?:text createdAt:count expiresAt:count
    needed:count given:count rules:ApprovalRequestRules[] words:ApprovalRequestWords[] uses:count broken:boolean
    statement:text digest:base64url shown:ApprovalRequestShown effects:ApprovalRequestEffects
    may:ApprovalRequestMay`,
  PasskeyRequestOptions: `
    challenge:base64url timeout:count rpId:text allowCredentials:PasskeyLoginOptionsAllowCredentials[]
    userVerification:word`,
  BrokenGlassAcknowledged: 'at:count by:CreateApprovalRuleApproversUsers',
  BrokenGlass: `
    id:glass_ at:count by:CreateApprovalRuleApproversUsers reason:text action:text
    object:ApprovalRequestObject|null request?:appr_ acknowledged:BrokenGlassAcknowledged|null`,
  GetOverviewReadinessLabel: 'text:text colour?:word',
  GetOverviewReadinessLastVerifiedBackup: 'at:time ageSeconds:integer',
  GetOverviewReadinessShipping: 'ageSeconds:integer|null ok:boolean',
  GetOverviewReadinessActivity: 'faulty:count segments:text[]',
  GetOverviewReadiness: `
    ready:boolean message?:text appliance?:appliance label?:GetOverviewReadinessLabel
    lastVerifiedBackup?:GetOverviewReadinessLastVerifiedBackup|null shipping?:GetOverviewReadinessShipping
    activity?:GetOverviewReadinessActivity`,
  GetOverviewUseCut: 'name:word since:count',
  GetOverviewUse: `
    from:count bucket:count encrypts:count[] decrypts:count[] denials:count[] cut:GetOverviewUseCut[]
    deniedLastHour:count deniedBefore:count countedBefore:count`,
  RingNearRotation: `
    name:text displayName:text kem:word offlineDecrypt:boolean encrypts:count maxEncryptCount:count
    activeSince:count rotateAfter:count|null`,
  GetOverviewKeyrings: 'rings:RingNearRotation[] more:boolean',
  EndingApiKey: 'keyid:apik_ name:text expiresAt:integer',
  EndingProof: 'keyid:apik_ name:text proof:proof_ endsAt:integer',
  BackupsConfigured: 'directory:text schedule:text keep:integer nextAt:time|null',
  BackupsLastVerified: 'at:time file:text bytes:integer',
  BackupsLastFailure: 'at:time message:text',
  Backups: `
    configured:BackupsConfigured|null running:boolean lastVerified:BackupsLastVerified|null
    lastFailure:BackupsLastFailure|null`,
  GetOverviewLog: `
    logBytes:count snapshotBytes:count lastCheckpointAt:count|null activityRecords:count activityBytes:count
    diskFreeBytes?:count writesRefused:boolean failures:count`,
  KeyRingName: 'id:ring_ name:text displayName:text kem:word offlineDecrypt:boolean',
  ManagedKeyName: 'name:text displayName:text type:text',
  ApiKeyName: 'keyid:apik_ name:text active:boolean',
  UserName: 'id:user_ username:text displayName:text',
  AccountName: 'id:acct_ uid:text notes:text',
};

export const answerShapes: Readonly<Record<ClientEndpointId, string>> = {
  createKeyring: 'ring:KeyRing key:Key privateKey?:base64',
  listKeyrings: 'data:ListedKeyRing[] pagination:PageInfo',
  getKeyring: 'ring:KeyRing config?:KeyRingConfig keys?:GetKeyringKeys apikeys?:GetKeyringApikeys',
  deleteKeyring: 'name:ring id:ring_',
  restoreKeyring: 'ring:KeyRing',
  listKeys: 'data:KeyListItem[] pagination:PageInfo',
  getKey: 'id:key_ type:word kem:word props:object keyData:EncryptedKeyData publicKey:base64',
  rotateKeyring: 'key:Key',
  rewrapKeys: 'rewrapped:count',
  getConfig: 'config:KeyRingConfig',
  putConfig: 'config:KeyRingConfig',
  encrypt: 'key:HandedKey ringId:ring_ hash:base64url header:base64url share?:base64 publicKey?:base64 asset?:Asset',
  decrypt: 'ringId:ring_ ringname:ring key:HandedKey share?:base64 asset?:SignedAsset',
  resolveHash: 'ringId:ring_ keyId:key_',
  inspectHeader: 'valid:boolean version:count hasSignedAsset:boolean hash:base64url',
  listSigningKeys: 'keys:SigningKey[]',
  getAsset: 'id:asset_ createdAt:time data:object parents:asset_[]',
  deleteAsset: 'id:asset_ createdAt:time data:object parents:asset_[]',
  searchAssets: 'data:Asset[] pagination:PageInfo',
  createAsymKeyring: 'ring:AsymKeyRing key:AsymKey privateKey:base64',
  getAsymKey: 'id:key_ type:word kem:word props:object keyData:AsymKeyKeyData publicKey:base64',
  rotateAsymKeyring: 'key:AsymKey',
  createManagedKey: 'key:ManagedKey',
  listManagedKeys: 'data:ManagedKey[] pagination:PageInfo',
  getWrappingKey: 'id:text algorithm:word publicKey:text expiresAt:integer',
  generateRandom: 'random:base64',
  hashMessage: 'hash:base64',
  listSecrets: 'names:text[]',
  readSecret: 'secret:SecretVersion value?:object warning?:text',
  writeSecret: 'secret:SecretVersion',
  deleteSecret: 'name:ring id:managedKey restorableUntil:time',
  getSecretMetadata: 'secret:Secret',
  putSecretMetadata: 'secret:Secret',
  deleteSecretVersions: 'versions:count[]',
  restoreSecretVersions: 'versions:count[]',
  destroySecretVersions: 'versions:count[]',
  getManagedKey: 'key:ManagedKey dependents?:ManagedKeyDependent[]',
  deleteManagedKey: 'name:ring id:managedKey restorableUntil:time',
  restoreManagedKey: 'key:ManagedKey',
  rotateManagedKey: 'key:ManagedKey',
  configureManagedKey: 'key:ManagedKey',
  setManagedKeyState: 'key:ManagedKey',
  addManagedKeyAlias: 'key:ManagedKey',
  removeManagedKeyAlias: 'key:ManagedKey',
  trimManagedKey: 'key:ManagedKey',
  listManagedKeyDependents: 'dependents:ManagedKeyDependent[]',
  importManagedKey: 'key:ManagedKey',
  eraseKeyMaterial: 'key:ManagedKey',
  exportManagedKey: `
    warning?:text name:ring type:word format:word version:count wrapped?:base64 wrapping?:word plaintext?:base64
    versions?:ExportedKeyVersion[]`,
  encryptWithKey: 'items:ManagedKeyResult[]',
  decryptWithKey: 'items:ManagedKeyResult[]',
  rewrapWithKey: 'items:ManagedKeyResult[]',
  generateDataKey: 'ciphertext:token keyVersion:count plaintext:base64 publicKey?:text',
  generateWrappedDataKey: 'ciphertext:token keyVersion:count publicKey?:text',
  signWithKey: 'signature?:token keyVersion?:count items?:ManagedKeyResult[]',
  verifyWithKey: 'valid?:boolean warning?:text items?:ManagedKeyResult[]',
  macWithKey: 'mac?:token keyVersion?:count items?:ManagedKeyResult[]',
  wrapWithKey: 'wrapped:base64 keyVersion:count',
  unwrapWithKey: 'plaintext:base64 keyVersion:count warning?:text',
  deriveWithKey: 'derived:base64 keyVersion:count',
  listTangPairs: 'pairs:TangPair[]',
  rotateTangPair: 'pair:TangPair',
  deleteTangPair: 'pair:TangPair',
  validateInvite: 'state:word user:User',
  completeInvite: 'user:User accesstoken:accessToken',
  completeSetUp: 'user:User accesstoken:accessToken',
  login: 'user:User accessToken:accessToken',
  passkeyLoginOptions: `
    challenge:base64url timeout:count rpId:text allowCredentials:PasskeyLoginOptionsAllowCredentials[]
    userVerification:word`,
  loginWithPasskey: 'user:User accessToken:accessToken',
  refreshSession: 'user:User accessToken:accessToken',
  logout: '',
  changePassword: '',
  listSessions: 'sessions:OwnSession[] secondFactors?:OwnSecondFactors',
  endSession: '',
  endOtherSessions: '',
  listSecondFactors: 'secondFactors:SecondFactor[] recoveryCodes:count needed:boolean',
  beginTotp: 'id:fact_ secret:base32 uri:uri',
  finishTotp: 'secondFactor:SecondFactor recoveryCodes?:text[]',
  beginPasskey: `
    rp:BeginPasskeyRp user:BeginPasskeyUser challenge:base64url pubKeyCredParams:BeginPasskeyPubKeyCredParams[]
    timeout:count excludeCredentials:PasskeyLoginOptionsAllowCredentials[]
    authenticatorSelection:BeginPasskeyAuthenticatorSelection attestation:word`,
  finishPasskey: 'secondFactor:SecondFactor recoveryCodes?:text[]',
  removeSecondFactor: '',
  renewRecoveryCodes: 'recoveryCodes:text[]',
  describeOidc: 'enabled:boolean name:text|null',
  startOidc: 'url:uri binding:text',
  finishOidc: 'user:User accessToken:accessToken',
  workloadLogin: `
    accessToken:accessToken id:sess_ keyid:apik_ proof:text subject:text createdAt:count expiresAt:integer
    expiresIn:count renewableUntil:integer certificate?:WorkloadLoginCertificate`,
  getWorkloadSession: `
    id:sess_ keyid:apik_ proof:text subject:text createdAt:count expiresAt:integer expiresIn:count
    renewableUntil:integer certificate?:WorkloadLoginCertificate`,
  renewWorkloadSession: `
    id:sess_ keyid:apik_ proof:text subject:text createdAt:count expiresAt:integer expiresIn:count
    renewableUntil:integer certificate?:WorkloadLoginCertificate`,
  endWorkloadSession: '',
  startPasswordReset: 'message:text',
  completePasswordReset: '',
  listUsers: 'data:User[] pagination:PageInfo',
  createUser: 'user:User password:text',
  getUser: `
    id:user_ username:line firstName:text lastName:text displayName:text keys:apik_[] email:line flags:object
    props:object state:word lastLoginAt:count|null apikeys?:GetKeyringApikeys`,
  updateUser: `
    id:user_ username:line firstName:text lastName:text displayName:text keys:apik_[] email:line flags:object
    props:object state:word lastLoginAt:count|null`,
  deleteUser: 'message:text',
  inviteUser: 'loginUrl:uri',
  createAccount: 'id:acct_ uid:text notes:text props:object createdAt:time updatedAt:time',
  listAccounts: 'data:Account[] pagination:PageInfo',
  getAccount: 'id:acct_ uid:text notes:text props:object createdAt:time updatedAt:time apikeys?:GetKeyringApikeys',
  updateAccount: 'id:acct_ uid:text notes:text props:object createdAt:time updatedAt:time',
  deleteAccount: 'id:acct_ uid:text notes:text props:object createdAt:time updatedAt:time',
  listAccountApiKeys: 'data:SafeApiKey[] pagination:PageInfo',
  validateApiKey: 'valid:boolean',
  listApiKeys: 'data:SafeApiKey[] pagination:PageInfo',
  createApiKey: `
    keyid:apik_ name:text active:boolean expiresAt:count|null allowedAddresses:text[]
    references:SafeApiKeyReferences flags:object props:object createdAt:time createdBy:caller|null
    lastUsedAt:count|null updatedAt:time key:text`,
  updateApiKeyBySecret: `
    keyid:apik_ name:text active:boolean expiresAt:count|null allowedAddresses:text[]
    references:SafeApiKeyReferences flags:object props:object createdAt:time createdBy:caller|null
    lastUsedAt:count|null updatedAt:time op:word key:token`,
  updateApiKey: `
    keyid:apik_ name:text active:boolean expiresAt:count|null allowedAddresses:text[]
    references:SafeApiKeyReferences flags:object props:object createdAt:time createdBy:caller|null
    lastUsedAt:count|null updatedAt:time op:word`,
  getApiKey: `
    keyid:apik_ name:text active:boolean expiresAt:count|null allowedAddresses:text[]
    references:SafeApiKeyReferences flags:object props:object createdAt:time createdBy:caller|null
    lastUsedAt:count|null updatedAt:time proofs?:Proof[]`,
  deleteApiKey: '',
  deleteApiKeyById: '',
  getApiKeyProps: `
    keyid:apik_ name:text active:boolean expiresAt:count|null allowedAddresses:text[]
    references:SafeApiKeyReferences flags:object props:object createdAt:time createdBy:caller|null
    lastUsedAt:count|null updatedAt:time`,
  listProofs: 'proofs:Proof[]',
  addProof: `
    id:text kind:word name:text active:boolean createdAt:time createdBy:caller|null lastUsedAt:count|null
    accessKeyId?:text awsAccount?:text fingerprint?:text san?:text authority?:text issued?:boolean
    notAfter?:time issuer?:text subject?:text jwksUrl?:text ca?:text audience?:text[] claims?:object
    jwks?:object once?:boolean longest?:count key?:text secretAccessKey?:text certificate?:text privateKey?:text
    caCertificate?:text otherTenant?:boolean renewed?:boolean`,
  testProof: 'proofs:TestProofProofs[]',
  updateProof: `
    id:text kind:word name:text active:boolean createdAt:time createdBy:caller|null lastUsedAt:count|null
    accessKeyId?:text awsAccount?:text fingerprint?:text san?:text authority?:text issued?:boolean
    notAfter?:time issuer?:text subject?:text jwksUrl?:text ca?:text audience?:text[] claims?:object
    jwks?:object once?:boolean longest?:count`,
  removeProof: '',
  searchKeyringApiKeys: 'data:SafeApiKey[] pagination:PageInfo',
  searchActivity: 'data:Activity[] pagination:PageInfo',
  getActivityHead: `
    format:word tenant:tenant_ seq:count hash:base64url from?:count signedAt:time publicKey:base64
    signature:base64 mlDsaPublicKey?:base64 mlDsaSignature?:base64`,
  getActivity: `
    id:act_ keyid:caller createdAt:count props:object action:text ringname:text validAction:boolean status:count
    address?:text reporter?:caller`,
  createApprovalRule: `
    id:rule_ name:text actions:text[] objects:text[] approvers:CreateApprovalRuleApprovers count:count
    selfApproval:boolean mode:word window:wordOrCount breakers:CreateApprovalRuleApproversUsers[]
    expires:integer|null props:object able:count createdAt:count createdBy:caller updatedAt:count`,
  listApprovalRules: 'rules:ApprovalRule[]',
  getApprovalRule: `
    id:rule_ name:text actions:text[] objects:text[] approvers:CreateApprovalRuleApprovers count:count
    selfApproval:boolean mode:word window:wordOrCount breakers:CreateApprovalRuleApproversUsers[]
    expires:integer|null props:object able:count createdAt:count createdBy:caller updatedAt:count`,
  updateApprovalRule: `
    id:rule_ name:text actions:text[] objects:text[] approvers:CreateApprovalRuleApprovers count:count
    selfApproval:boolean mode:word window:wordOrCount breakers:CreateApprovalRuleApproversUsers[]
    expires:integer|null props:object able:count createdAt:count createdBy:caller updatedAt:count`,
  deleteApprovalRule: '',
  listApprovalPresets: 'presets:ListApprovalPresetsPresets[]',
  listApprovalRequests: 'requests:ApprovalRequest[] nextCursor?:base64url',
  getApprovalRequest: `
    id:appr_ state:word requester:CreateApprovalRuleApproversUsers action:text actions:text[] operation:text
    dialect?:text address?:text object:ApprovalRequestObject|null reason?:text createdAt:count expiresAt:count
    needed:count given:count rules:ApprovalRequestRules[] words:ApprovalRequestWords[] uses:count broken:boolean
    statement:text digest:base64url shown:ApprovalRequestShown effects:ApprovalRequestEffects
    may:ApprovalRequestMay`,
  getApprovalOptions: 'fresh:boolean secondFactor:word[] passkeyOptions?:PasskeyRequestOptions',
  approveRequest: `
    id:appr_ state:word requester:CreateApprovalRuleApproversUsers action:text actions:text[] operation:text
    dialect?:text address?:text object:ApprovalRequestObject|null reason?:text createdAt:count expiresAt:count
    needed:count given:count rules:ApprovalRequestRules[] words:ApprovalRequestWords[] uses:count broken:boolean
    statement:text digest:base64url shown:ApprovalRequestShown effects:ApprovalRequestEffects
    may:ApprovalRequestMay`,
  denyRequest: `
    id:appr_ state:word requester:CreateApprovalRuleApproversUsers action:text actions:text[] operation:text
    dialect?:text address?:text object:ApprovalRequestObject|null reason?:text createdAt:count expiresAt:count
    needed:count given:count rules:ApprovalRequestRules[] words:ApprovalRequestWords[] uses:count broken:boolean
    statement:text digest:base64url shown:ApprovalRequestShown effects:ApprovalRequestEffects
    may:ApprovalRequestMay`,
  withdrawRequest: `
    id:appr_ state:word requester:CreateApprovalRuleApproversUsers action:text actions:text[] operation:text
    dialect?:text address?:text object:ApprovalRequestObject|null reason?:text createdAt:count expiresAt:count
    needed:count given:count rules:ApprovalRequestRules[] words:ApprovalRequestWords[] uses:count broken:boolean
    statement:text digest:base64url shown:ApprovalRequestShown effects:ApprovalRequestEffects
    may:ApprovalRequestMay`,
  breakGlass: `
    id:appr_ state:word requester:CreateApprovalRuleApproversUsers action:text actions:text[] operation:text
    dialect?:text address?:text object:ApprovalRequestObject|null reason?:text createdAt:count expiresAt:count
    needed:count given:count rules:ApprovalRequestRules[] words:ApprovalRequestWords[] uses:count broken:boolean
    statement:text digest:base64url shown:ApprovalRequestShown effects:ApprovalRequestEffects
    may:ApprovalRequestMay`,
  listBrokenGlass: 'broken:BrokenGlass[]',
  acknowledgeBrokenGlass: `
    id:glass_ at:count by:CreateApprovalRuleApproversUsers reason:text action:text
    object:ApprovalRequestObject|null request?:appr_ acknowledged:BrokenGlassAcknowledged|null`,
  getOverview: `
    tenant:text readiness:GetOverviewReadiness flags?:object caller?:caller use?:GetOverviewUse
    keyrings?:GetOverviewKeyrings apikeys?:EndingApiKey[] proofs?:EndingProof[] users?:count
    secondFactor?:boolean backups?:Backups log?:GetOverviewLog`,
  getNames: `
    keyrings?:KeyRingName[] managedKeys?:ManagedKeyName[] apikeys?:ApiKeyName[] users?:UserName[]
    accounts?:AccountName[]`,
  getBackups: `
    configured:BackupsConfigured|null running:boolean lastVerified:BackupsLastVerified|null
    lastFailure:BackupsLastFailure|null`,
  startBackup: `
    configured:BackupsConfigured|null running:boolean lastVerified:BackupsLastVerified|null
    lastFailure:BackupsLastFailure|null`,
};
