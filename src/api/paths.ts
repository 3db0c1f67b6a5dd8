// Paths: method and path of each endpoint, by the id that names it in the declarations, the client and the API
// description. The table has no schemas, so that a program that bundles the client carries no validator.

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Method, path with `{name}` for parameters, and the names of the query parameters. */
export type Path = readonly [method: Method, path: string, ...query: readonly string[]];

/** Endpoints with a method on the typed client: each returns one JSON object. */
export const clientPaths = {
  createKeyring: ['POST', '/ks/keyrings'],
  listKeyrings: ['GET', '/ks/keyrings', 'deleted', 'cursor', 'limit'],
  getKeyring: ['GET', '/ks/keyrings/{ringname}', 'id', 'config', 'keys', 'apikeys'],
  deleteKeyring: ['DELETE', '/ks/keyrings/{name}'],
  restoreKeyring: ['POST', '/ks/keyrings/{id}/restore'],
  listKeys: ['GET', '/ks/keyrings/{ringname}/keys', 'id', 'usage', 'wrapped', 'cursor', 'limit'],
  getKey: ['GET', '/ks/keyrings/{ringname}/keys/{keyId}', 'id'],
  rotateKeyring: ['POST', '/ks/rotate'],
  rewrapKeys: ['POST', '/ks/rewrap'],
  getConfig: ['GET', '/ks/config', 'ringname'],
  putConfig: ['PUT', '/ks/config'],

  encrypt: ['POST', '/ks/encrypt'],
  decrypt: ['POST', '/ks/decrypt'],
  resolveHash: ['GET', '/ks/hash/{hash}'],
  inspectHeader: ['GET', '/ks/header/{header}'],

  listSigningKeys: ['GET', '/assets/signing-keys'],
  getAsset: ['GET', '/assets/{id}'],
  deleteAsset: ['DELETE', '/assets/{id}'],
  searchAssets: ['POST', '/assets/search', 'cursor', 'limit'],

  createAsymKeyring: ['POST', '/asym/keyrings'],
  getAsymKey: ['GET', '/asym/keyrings/{ringname}/keys/{keyId}', 'id'],
  rotateAsymKeyring: ['POST', '/asym/rotate'],

  createManagedKey: ['POST', '/managed-keys'],
  listManagedKeys: ['GET', '/managed-keys', 'deleted', 'pending', 'secrets', 'kmip', 'cursor', 'limit'],
  getWrappingKey: ['GET', '/managed-keys/wrapping-key', 'type', 'key'],
  generateRandom: ['POST', '/managed-keys/random'],
  hashMessage: ['POST', '/managed-keys/hash'],
  listSecrets: ['GET', '/secrets', 'folder'],
  readSecret: ['GET', '/secrets/{path}', 'version'],
  writeSecret: ['POST', '/secrets/{path}'],
  deleteSecret: ['DELETE', '/secrets/{path}'],
  getSecretMetadata: ['GET', '/secrets/{path}/metadata'],
  putSecretMetadata: ['PUT', '/secrets/{path}/metadata'],
  deleteSecretVersions: ['POST', '/secrets/{path}/delete'],
  restoreSecretVersions: ['POST', '/secrets/{path}/undelete'],
  destroySecretVersions: ['POST', '/secrets/{path}/destroy'],

  getManagedKey: ['GET', '/managed-keys/{key}', 'dependents'],
  deleteManagedKey: ['DELETE', '/managed-keys/{key}'],
  restoreManagedKey: ['POST', '/managed-keys/{id}/restore', 'suspended'],
  rotateManagedKey: ['POST', '/managed-keys/{key}/rotate'],
  configureManagedKey: ['PUT', '/managed-keys/{key}/config'],
  setManagedKeyState: ['POST', '/managed-keys/{key}/state'],
  addManagedKeyAlias: ['POST', '/managed-keys/{key}/aliases'],
  removeManagedKeyAlias: ['DELETE', '/managed-keys/{key}/aliases/{alias}'],
  trimManagedKey: ['POST', '/managed-keys/{key}/trim'],
  listManagedKeyDependents: ['GET', '/managed-keys/{key}/dependents', 'since'],
  importManagedKey: ['POST', '/managed-keys/{key}/import'],
  eraseKeyMaterial: ['DELETE', '/managed-keys/{key}/material'],
  exportManagedKey: ['POST', '/managed-keys/{key}/export'],
  encryptWithKey: ['POST', '/managed-keys/{key}/encrypt'],
  decryptWithKey: ['POST', '/managed-keys/{key}/decrypt'],
  rewrapWithKey: ['POST', '/managed-keys/{key}/rewrap'],
  generateDataKey: ['POST', '/managed-keys/{key}/datakey'],
  generateWrappedDataKey: ['POST', '/managed-keys/{key}/datakey-wrapped'],
  signWithKey: ['POST', '/managed-keys/{key}/sign'],
  verifyWithKey: ['POST', '/managed-keys/{key}/verify'],
  macWithKey: ['POST', '/managed-keys/{key}/mac'],
  wrapWithKey: ['POST', '/managed-keys/{key}/wrap'],
  unwrapWithKey: ['POST', '/managed-keys/{key}/unwrap'],
  deriveWithKey: ['POST', '/managed-keys/{key}/derive'],

  listTangPairs: ['GET', '/tang/pairs'],
  rotateTangPair: ['POST', '/tang/pairs'],
  deleteTangPair: ['DELETE', '/tang/pairs/{thumbprint}'],

  validateInvite: ['GET', '/auth/user/invite-validate', 'token'],
  completeInvite: ['POST', '/auth/user/invite-complete'],
  completeSetUp: ['POST', '/auth/user/set-up-complete'],
  login: ['POST', '/auth/basic/login', 'email'],
  passkeyLoginOptions: ['POST', '/auth/passkey/options'],
  loginWithPasskey: ['POST', '/auth/passkey/login'],
  refreshSession: ['GET', '/auth/basic/refresh'],
  logout: ['POST', '/auth/basic/logout'],
  changePassword: ['POST', '/auth/user/password'],
  listSessions: ['GET', '/auth/user/sessions', 'secondFactors'],
  endSession: ['DELETE', '/auth/user/sessions/{id}'],
  endOtherSessions: ['DELETE', '/auth/user/sessions'],
  listSecondFactors: ['GET', '/auth/user/second-factors'],
  beginTotp: ['POST', '/auth/user/second-factors/totp'],
  finishTotp: ['POST', '/auth/user/second-factors/totp/finish'],
  beginPasskey: ['POST', '/auth/user/second-factors/passkey'],
  finishPasskey: ['POST', '/auth/user/second-factors/passkey/finish'],
  removeSecondFactor: ['POST', '/auth/user/second-factors/remove'],
  renewRecoveryCodes: ['POST', '/auth/user/recovery-codes'],
  describeOidc: ['GET', '/auth/oidc'],
  startOidc: ['POST', '/auth/oidc/start'],
  finishOidc: ['POST', '/auth/oidc/finish'],
  workloadLogin: ['POST', '/auth/workload/login'],
  getWorkloadSession: ['GET', '/auth/workload/session'],
  renewWorkloadSession: ['POST', '/auth/workload/renew'],
  endWorkloadSession: ['POST', '/auth/workload/logout'],
  startPasswordReset: ['POST', '/auth/basic/reset-password-start'],
  completePasswordReset: ['POST', '/auth/basic/reset-password-complete'],

  listUsers: ['GET', '/auth/users', 'cursor', 'limit'],
  createUser: ['POST', '/auth/users'],
  getUser: ['GET', '/auth/users/{username}', 'email', 'apikeys'],
  updateUser: ['PATCH', '/auth/users/{username}'],
  deleteUser: ['DELETE', '/auth/users/{username}', 'id'],
  inviteUser: ['POST', '/auth/user/invite'],

  createAccount: ['POST', '/auth/accounts'],
  listAccounts: ['GET', '/auth/accounts', 'cursor', 'limit'],
  getAccount: ['GET', '/auth/accounts/{id}', 'uid', 'apikeys'],
  updateAccount: ['PATCH', '/auth/accounts/{id}'],
  deleteAccount: ['DELETE', '/auth/accounts/{id}', 'uid'],
  listAccountApiKeys: ['GET', '/auth/accounts/{accountId}/apikeys', 'uid', 'cursor', 'limit'],

  validateApiKey: ['POST', '/auth/validate'],
  listApiKeys: ['GET', '/auth/apikey', 'cursor', 'limit'],
  createApiKey: ['POST', '/auth/apikey', 'uid'],
  updateApiKeyBySecret: ['PUT', '/auth/apikey'],
  updateApiKey: ['PUT', '/auth/apikeyid'],
  getApiKey: ['GET', '/auth/apikey/{apikeyid}', 'proofs'],
  deleteApiKey: ['DELETE', '/auth/apikey/{apikey}'],
  deleteApiKeyById: ['DELETE', '/auth/apikeyid/{keyid}'],
  getApiKeyProps: ['GET', '/auth/apikey/{apikeyid}/props'],
  listProofs: ['GET', '/auth/apikeys/{keyid}/proofs'],
  addProof: ['POST', '/auth/apikeys/{keyid}/proofs'],
  testProof: ['POST', '/auth/apikeys/{keyid}/proof-test'],
  updateProof: ['PATCH', '/auth/apikeys/{keyid}/proofs/{proof}'],
  removeProof: ['DELETE', '/auth/apikeys/{keyid}/proofs/{proof}'],
  searchKeyringApiKeys: ['GET', '/auth/search/keyring/{keyringname}/apikey', 'id', 'wildcard', 'cursor', 'limit'],

  searchActivity: ['POST', '/auth/search/activity', 'cursor', 'limit'],
  getActivityHead: ['GET', '/auth/activity/head', 'postQuantum'],
  getActivity: ['GET', '/auth/activity/{id}'],

  getOverview: ['GET', '/system/overview', 'range', 'flags'],
  getNames: ['GET', '/system/names'],
  getBackups: ['GET', '/system/backups'],
  startBackup: ['POST', '/system/backups'],
} as const satisfies Readonly<Record<string, Path>>;

/** Endpoints that return something else, or stand outside the tenants. */
const otherPaths = {
  getHealth: ['GET', '/healthz'],
  getReadiness: ['GET', '/readyz'],
  getOpenApi: ['GET', '/openapi.json'],
  getDocs: ['GET', '/docs'],
  sealStatus: ['GET', '/system/seal-status'],
  unseal: ['POST', '/system/unseal'],
  seal: ['POST', '/system/seal'],
  createBackup: ['POST', '/system/backup'],
  getMetrics: ['GET', '/metrics'],
  exportActivity: ['POST', '/auth/activity/export'],
} as const satisfies Readonly<Record<string, Path>>;

/** Endpoints for the administrator at the machine alone. */
export const localPaths = {
  applianceStatus: ['GET', '/local/status'],
  sealAppliance: ['POST', '/local/seal'],
  examineAppliance: ['GET', '/local/doctor'],
  streamBackup: ['POST', '/local/backup'],
  drillBackup: ['POST', '/local/drill'],
  readCopies: ['GET', '/local/copies'],
  promoteStandby: ['POST', '/local/standby/promote'],

  createTenant: ['POST', '/local/tenants'],
  listTenants: ['GET', '/local/tenants', 'deleted'],
  getTenant: ['GET', '/local/tenants/{name}'],
  updateTenant: ['PATCH', '/local/tenants/{name}'],
  limitTenant: ['PUT', '/local/tenants/{name}/limits'],
  deleteTenant: ['DELETE', '/local/tenants/{name}'],
  restoreTenant: ['POST', '/local/tenants/{id}/restore'],
  rekeyTenant: ['POST', '/local/tenants/{name}/rekey'],

  getMaster: ['GET', '/local/master'],
  rotateMaster: ['POST', '/local/master/rotate'],
  addCustodian: ['POST', '/local/master/custodians'],
  removeCustodian: ['DELETE', '/local/master/custodians/{id}'],

  verifyActivity: ['POST', '/local/activity/verify'],

  getOidc: ['GET', '/local/oidc'],
  setOidc: ['PUT', '/local/oidc'],
  removeOidc: ['DELETE', '/local/oidc'],
  unlinkOidc: ['POST', '/local/oidc/unlink'],

  makeSetUpLink: ['POST', '/local/set-up-link'],
  makeResetLink: ['POST', '/local/reset-link'],
  resetSecondFactor: ['POST', '/local/reset-second-factor'],
} as const satisfies Readonly<Record<string, Path>>;

/** Marked pure, so that bundles with only the client leave the other tables out; bundlers would keep a spread. */
export const paths = /* @__PURE__ */ Object.assign({}, clientPaths, otherPaths, localPaths);

export type ClientEndpointId = keyof typeof clientPaths;
export type DeclaredId = keyof typeof paths;
