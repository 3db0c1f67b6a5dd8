// A request that succeeds, for every endpoint: the basis of the table-driven tests. A new endpoint does not compile
// until it has one.

import { createHash, publicEncrypt } from 'node:crypto';
import type { Access, Endpoint } from '../../src/api/endpoint.ts';
import { type AnyEndpoint, type EndpointId, endpoints } from '../../src/api/endpoints.ts';
import type { AnyJson, Appliance } from '../support/appliance.ts';
import { Authenticator, appCode } from '../support/authenticator.ts';
import { pretendProvider } from '../support/pretend-oidc.ts';
import { TokenIssuer, trustIssuer } from '../support/token-issuer.ts';

export interface Sample {
  /** Path parameters by name; they are percent-encoded when sent. */
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Readonly<Record<string, unknown>>;
  /** The credential, if an API key does not do. */
  readonly key?: string;
  /** The ring that the flag names, in lower case. */
  readonly ring?: string;
}

/** Makes fresh prerequisites, then the request. */
export type MakeSample = (appliance: Appliance) => Promise<Sample>;

let count = 0;
export const freshName = (): string => `ring-${++count}`;

export async function ok(answer: Promise<{ status: number; body: AnyJson }>): Promise<AnyJson> {
  const { status, body } = await answer;
  if (status !== 200) throw new Error(`expected 200, got ${status} ${JSON.stringify(body)}`);
  return body;
}

export const makeRing = async (a: Appliance) => (await ok(a.call('POST', '/ks/keyrings', { name: freshName() }))).ring;
const makeAsym = async (a: Appliance) => ok(a.call('POST', '/asym/keyrings', { name: freshName() }));
export const makeTransit = async (a: Appliance, more: object = {}) =>
  (await ok(a.call('POST', '/managed-keys', { name: freshName(), ...more }))).key;
const transitMessage = async (a: Appliance) => {
  const { name } = await makeTransit(a);
  const { items } = await ok(a.call('POST', `/managed-keys/${name}/encrypt`, { items: [{ plaintext: 'aGk=' }] }));
  return { name, ciphertext: items[0].ciphertext };
};
const makeSecret = async (a: Appliance) => {
  const name = freshName();
  await ok(a.call('POST', `/secrets/app%2F${name}`, { value: { password: 'x' } }));
  return { params: { path: `app/${name}` }, ring: `app.${name}` };
};
const makeAccount = (a: Appliance) => ok(a.call('POST', '/auth/accounts', { uid: freshName() }));
const encrypt = async (a: Appliance, asset?: object) => {
  const ring = await makeRing(a);
  return { ring, ...(await ok(a.call('POST', '/ks/encrypt', { ringname: ring.name, ...(asset && { asset }) }))) };
};

export const goodPassword = 'Correct-horse-7';
const userFields = () => {
  const username = freshName();
  return { username, email: `${username}@example.org`, firstName: 'Ada', lastName: 'Lovelace' };
};
const tokenIn = (url: string): string => new URL(url).searchParams.get('token') ?? '';

export const makeUser = (a: Appliance, flags: Record<string, boolean> = {}) =>
  ok(a.call('POST', '/auth/users', { ...userFields(), flags }));

/** A new user's session. */
export async function logIn(a: Appliance, flags: Record<string, boolean> = {}): Promise<AnyJson> {
  const { user, password } = await makeUser(a, flags);
  return ok(a.call('POST', '/auth/basic/login', { username: user.username, password }, { key: null }));
}

export async function inviteToken(a: Appliance, fields: object = userFields()): Promise<string> {
  return tokenIn((await ok(a.call('POST', '/auth/user/invite', fields))).loginUrl);
}

/** An API key that trusts an issuer, and a token of that. */
export async function trusted(a: Appliance): Promise<{ keyid: string; proof: string; token: string }> {
  const issuer = await TokenIssuer.make(() => a.world.now());
  const { keyid } = await a.keyWith();
  const { id: proof } = await trustIssuer(a, keyid, issuer);
  return { keyid, proof, token: await issuer.token() };
}

export async function workloadToken(a: Appliance): Promise<string> {
  const { keyid, token } = await trusted(a);
  return (await ok(a.call('POST', '/auth/workload/login', { token, role: keyid }, { key: null }))).accessToken;
}

/** Token of the set-up link, which exists only while there is no user. */
export async function setUpToken(a: Appliance): Promise<string> {
  for (const { username } of (await ok(a.call('GET', '/auth/users?limit=10000'))).data) {
    await ok(a.call('DELETE', `/auth/users/${encodeURIComponent(username)}`));
  }
  return tokenIn((await ok(a.call('POST', '/local/set-up-link', {}, { key: null, env: { local: true } }))).url);
}

export async function resetToken(a: Appliance, username?: string): Promise<string> {
  const body = { username: username ?? (await makeUser(a)).user.username };
  const local = { key: null, env: { local: true } };
  return tokenIn((await ok(a.call('POST', '/local/reset-link', body, local))).resetUrl);
}

/** A new user who is logged in, with the password. */
export interface Person {
  readonly user: AnyJson;
  readonly password: string;
  /** An access token. */
  readonly key: string;
}

export async function person(a: Appliance, flags: Record<string, boolean> = {}): Promise<Person> {
  const { user, password } = await makeUser(a, flags);
  const body = { username: user.username, password };
  const { accessToken } = await ok(a.call('POST', '/auth/basic/login', body, { key: null }));
  return { user, password, key: accessToken };
}

const factorPath = '/auth/user/second-factors';

/** Adds an app; returns the second factor, the recovery codes if there are any, and the secret. */
export async function addTotp(a: Appliance, { key, password }: Person, name = 'phone'): Promise<AnyJson> {
  const { id, secret } = await ok(a.call('POST', `${factorPath}/totp`, { currentPassword: password, name }, { key }));
  const code = appCode(secret, a.world.now());
  return { secret, ...(await ok(a.call('POST', `${factorPath}/totp/finish`, { id, code }, { key }))) };
}

/** Origin of the test appliance. */
export const pageOrigin = 'http://kms.test';

/** Adds a passkey; returns the second factor, and the recovery codes if there are any. */
export async function addPasskey(
  a: Appliance,
  { key, password }: Person,
  authenticator: Authenticator,
): Promise<AnyJson> {
  const options = await ok(a.call('POST', `${factorPath}/passkey`, { currentPassword: password }, { key }));
  const credential = authenticator.create(options, { origin: pageOrigin });
  return ok(a.call('POST', `${factorPath}/passkey/finish`, { credential, name: 'laptop' }, { key }));
}

/** Configures a provider, which makes users unless `more` says otherwise, and begins a login. */
export async function startOidc(a: Appliance, more: object = { createUsers: true }) {
  const local = { key: null, env: { local: true } };
  await ok(a.call('PUT', '/local/oidc', { ...pretendProvider, ...more }, local));
  const { url, binding } = await ok(a.call('POST', '/auth/oidc/start', undefined, { key: null }));
  return { state: new URL(url).searchParams.get('state') ?? '', binding, code: freshName() };
}

const ruleFields = (more: object = {}) => ({
  name: freshName(),
  actions: ['keyring.*.delete'],
  objects: [freshName()],
  approvers: { flag: 'approval.give' },
  ...more,
});
const readsRules = { 'approval.read': true };
/** Without other approvers, a User who may approve is made for it. */
export async function makeRule(a: Appliance, more: object = {}): Promise<AnyJson> {
  if (!('approvers' in more)) await makeUser(a, { 'approval.give': true });
  return ok(a.call('POST', '/approvals/rules', ruleFields(more)));
}

/** A rule that has ended, so that its change needs no word. By a real clock it may end before it is made. */
async function endedRule(a: Appliance, lasting = 100): Promise<AnyJson> {
  await makeUser(a, { 'approval.give': true });
  const rule = await a.call('POST', '/approvals/rules', ruleFields({ expires: a.world.now() + lasting }));
  if (rule.body.errors?.expires === 'is past') return endedRule(a, lasting * 2);
  await a.advance(lasting);
  return ok(Promise.resolve(rule));
}

/** A request that waits, and somebody who can approve it, or break the glass, with a code of their app. */
async function waiting(a: Appliance) {
  const approver = await person(a);
  const { secret } = await addTotp(a, approver);
  const { name } = await makeRing(a);
  const { id: user } = approver.user;
  await makeRule(a, { objects: [name], approvers: { users: [user] }, breakers: [user] });
  const { approval } = (await a.call('DELETE', `/ks/keyrings/${name}`)).body;
  // The app's present code was used up when it was added.
  return { id: String(approval.id), approver, code: appCode(secret, a.world.now() + 30_000) };
}

/** A wrapping as long as that of a 32-byte key by X25519, to replace the current one. */
export const rewrappedKey = (id: string, keyData: AnyJson, wrapped = Buffer.alloc(80, ++count)) => ({
  id,
  wrapped: wrapped.toString('base64'),
  iv: keyData.iv,
  replaces: createHash('sha256').update(keyData.encrypted.key.value, 'base64').digest('base64'),
});

export const samples: Readonly<Record<EndpointId, MakeSample>> = {
  createKeyring: async () => ({ body: { name: freshName(), algo: 'aes256', props: { a: 1 }, keyProps: {} } }),
  listKeyrings: async () => ({ query: { limit: '5' } }),
  getKeyring: async (a) => {
    const { name } = await makeRing(a);
    return { params: { ringname: name }, ring: name };
  },
  deleteKeyring: async (a) => {
    const { name } = await makeRing(a);
    return { params: { name }, ring: name };
  },
  restoreKeyring: async (a) => {
    const { id, name } = await makeRing(a);
    await ok(a.call('DELETE', `/ks/keyrings/${name}`));
    return { params: { id }, ring: name };
  },
  listKeys: async (a) => {
    const { id, name } = await makeRing(a);
    return { params: { ringname: id }, query: { id: 'true' }, ring: name };
  },
  getKey: async (a) => {
    const { name, activeKey } = await makeRing(a);
    return { params: { ringname: name, keyId: activeKey }, ring: name };
  },
  rotateKeyring: async (a) => {
    const { name } = await makeRing(a);
    return { body: { ringname: name, algo: 'aes256' }, ring: name };
  },
  rewrapKeys: async (a) => {
    const { name, publicKey, activeKey: id } = await makeRing(a);
    const { keyData } = (await a.call('GET', `/ks/keyrings/${name}/keys/${id}`)).body;
    await ok(a.call('POST', '/ks/rotate', { ringname: name }));
    return { body: { ringname: name, publicKey, keys: [rewrappedKey(id, keyData)] }, ring: name };
  },
  getConfig: async (a) => {
    const { name } = await makeRing(a);
    return { query: { ringname: name }, ring: name };
  },
  putConfig: async (a) => {
    const { name } = await makeRing(a);
    const config = { props: { b: 2 }, key: { props: {} }, algos: { aes256: { maxEncryptCount: 5 } } };
    return { body: { ringname: name, config }, ring: name };
  },
  encrypt: async (a) => {
    const { name } = await makeRing(a);
    return { body: { ringname: name, asset: { parents: [], data: { file: 1 } } }, ring: name };
  },
  decrypt: async (a) => {
    const { ring, hash, header } = await encrypt(a, { data: {} });
    return { body: { hash, header }, ring: ring.name };
  },
  resolveHash: async (a) => {
    const { ring, hash } = await encrypt(a);
    return { params: { hash }, ring: ring.name };
  },
  inspectHeader: async (a) => {
    const { ring, header } = await encrypt(a);
    return { params: { header }, ring: ring.name };
  },
  listSigningKeys: async () => ({}),
  getAsset: async (a) => ({ params: { id: (await encrypt(a, {})).asset.id } }),
  deleteAsset: async (a) => ({ params: { id: (await encrypt(a, {})).asset.id } }),
  searchAssets: async (a) => {
    const { ring } = await encrypt(a, { data: { x: 1 } });
    return {
      body: {
        apikeyId: a.root.keyid,
        accountId: a.accountId,
        keyringId: ring.id,
        parents: [],
        start: 0,
        end: a.world.now(),
        data: { x: 1 },
      },
    };
  },
  createAsymKeyring: async () => ({ body: { name: freshName(), algo: 'aes256', props: {}, keyProps: {} } }),
  getAsymKey: async (a) => {
    const { ring, key } = await makeAsym(a);
    return { params: { ringname: ring.name, keyId: key.id }, ring: ring.name };
  },
  rotateAsymKeyring: async (a) => {
    const { ring } = await makeAsym(a);
    return { body: { ringname: ring.name, algo: 'aes256' }, ring: ring.name };
  },
  createManagedKey: async () => ({
    body: {
      name: freshName(),
      type: 'ed25519',
      uses: ['sign', 'verify'],
      aliases: [`alias/${freshName()}`],
      derived: false,
      exportable: true,
      deletionAllowed: true,
      rotateAfter: 3600,
      tags: { team: 'a' },
      props: { ticket: 1 },
      activateAt: 1,
      deactivateAt: null,
      origin: 'generated',
      keepExisting: true,
    },
  }),
  listManagedKeys: async (a) => {
    await makeTransit(a);
    return { query: { limit: '5' } };
  },
  getManagedKey: async (a) => {
    const { name } = await makeTransit(a, { type: 'ecdsa-p256' });
    return { params: { key: name }, ring: name };
  },
  deleteManagedKey: async (a) => {
    const { name } = await makeTransit(a);
    await ok(a.call('PUT', `/managed-keys/${name}/config`, { deletionAllowed: true }));
    return { params: { key: name }, body: { days: 7, used: true }, ring: name };
  },
  restoreManagedKey: async (a) => {
    const { id, name } = await makeTransit(a);
    await ok(a.call('PUT', `/managed-keys/${name}/config`, { deletionAllowed: true }));
    await ok(a.call('DELETE', `/managed-keys/${name}`, {}));
    return { params: { id }, ring: name };
  },
  rotateManagedKey: async (a) => {
    const { name } = await makeTransit(a);
    return { params: { key: name }, ring: name };
  },
  configureManagedKey: async (a) => {
    const { name } = await makeTransit(a);
    const body = { minDecryptVersion: 1, minEncryptVersion: 1, deletionAllowed: true, rotateAfter: 3600 };
    return { params: { key: name }, body, ring: name };
  },
  encryptWithKey: async (a) => {
    const { name } = await makeTransit(a);
    const items = [{ plaintext: 'aGk=', associatedData: 'YQ==', context: '', keyVersion: 1 }];
    return { params: { key: name }, body: { items }, ring: name };
  },
  decryptWithKey: async (a) => {
    const { name, ciphertext } = await transitMessage(a);
    return { params: { key: name }, body: { items: [{ ciphertext }] }, ring: name };
  },
  rewrapWithKey: async (a) => {
    const { name, ciphertext } = await transitMessage(a);
    return { params: { key: name }, body: { items: [{ ciphertext }] }, ring: name };
  },
  generateDataKey: async (a) => {
    const { name } = await makeTransit(a, { type: 'chacha20-poly1305', derived: true });
    const body = { bits: 256, associatedData: 'YQ==', context: 'Yg==' };
    return { params: { key: name }, body, ring: name };
  },
  generateWrappedDataKey: async (a) => {
    const { name } = await makeTransit(a, { type: 'aes256-gcm' });
    return { params: { key: name }, body: { bits: 512, associatedData: 'YQ==' }, ring: name };
  },
  signWithKey: async (a) => {
    const { name } = await makeTransit(a, { type: 'ecdsa-p256' });
    const body = { input: 'aGk=', hash: 'sha2-512', prehashed: false, keyVersion: 1 };
    return { params: { key: name }, body, ring: name };
  },
  verifyWithKey: async (a) => {
    const { name } = await makeTransit(a, { type: 'ed25519' });
    const { signature } = await ok(a.call('POST', `/managed-keys/${name}/sign`, { input: 'aGk=' }));
    return { params: { key: name }, body: { input: 'aGk=', signature }, ring: name };
  },
  getWrappingKey: async () => ({}),
  setManagedKeyState: async (a) => {
    const { name } = await makeTransit(a);
    return { params: { key: name }, body: { state: 'suspended', version: 1, used: true }, ring: name };
  },
  addManagedKeyAlias: async (a) => {
    const { name } = await makeTransit(a);
    return { params: { key: name }, body: { alias: `alias/${freshName()}` }, ring: name };
  },
  removeManagedKeyAlias: async (a) => {
    const alias = freshName();
    const { name } = await makeTransit(a, { aliases: [alias] });
    return { params: { key: name, alias }, ring: name };
  },
  trimManagedKey: async (a) => {
    const { name } = await makeTransit(a);
    await ok(a.call('POST', `/managed-keys/${name}/rotate`));
    await ok(a.call('PUT', `/managed-keys/${name}/config`, { minDecryptVersion: 2, minEncryptVersion: 2 }));
    return { params: { key: name }, body: { minAvailableVersion: 2 }, ring: name };
  },
  listManagedKeyDependents: async (a) => {
    const { name } = await transitMessage(a);
    return { params: { key: name }, query: { since: '0' }, ring: name };
  },
  importManagedKey: async (a) => {
    const name = freshName();
    const { publicKey } = await ok(a.call('GET', '/managed-keys/wrapping-key'));
    const wrapped = publicEncrypt({ key: publicKey, oaepHash: 'sha256' }, new Uint8Array(32).fill(7)).toString(
      'base64',
    );
    const body = { wrapped, type: 'aes256-gcm', uses: ['encrypt', 'decrypt'], hash: 'sha2-256', format: 'raw' };
    return { params: { key: name }, body: { ...body, exportable: false, isNewVersion: false }, ring: name };
  },
  eraseKeyMaterial: async (a) => {
    const name = freshName();
    await ok(a.call('POST', '/managed-keys', { name, origin: 'imported' }));
    return { params: { key: name }, ring: name };
  },
  exportManagedKey: async (a) => {
    const { name } = await makeTransit(a, { exportable: true });
    return {
      params: { key: name },
      body: { version: 1, plaintext: true, format: 'raw', allVersions: false },
      ring: name,
    };
  },
  generateRandom: async () => ({ body: { bytes: 16 } }),
  hashMessage: async () => ({ body: { input: 'aGk=', hash: 'sha3-256' } }),
  listSecrets: async (a) => {
    await makeSecret(a);
    return { query: { folder: 'app' } };
  },
  readSecret: async (a) => ({ ...(await makeSecret(a)), query: { version: '1' } }),
  writeSecret: async () => {
    const name = freshName();
    return { params: { path: `app/${name}` }, body: { value: { password: 'x' }, follows: 0 }, ring: `app.${name}` };
  },
  deleteSecret: makeSecret,
  getSecretMetadata: makeSecret,
  putSecretMetadata: async (a) => ({
    ...(await makeSecret(a)),
    body: { maxVersions: 10, casRequired: false, tags: { team: 'payments' } },
  }),
  deleteSecretVersions: async (a) => ({ ...(await makeSecret(a)), body: { versions: [1] } }),
  restoreSecretVersions: async (a) => ({ ...(await makeSecret(a)), body: { versions: [1] } }),
  destroySecretVersions: async (a) => ({ ...(await makeSecret(a)), body: { versions: [1] } }),
  macWithKey: async (a) => {
    const { name } = await makeTransit(a, { type: 'hmac-sha256' });
    return { params: { key: name }, body: { input: 'aGk=', keyVersion: 1, hash: 'sha2-256' }, ring: name };
  },
  wrapWithKey: async (a) => {
    const { name } = await makeTransit(a, { uses: ['wrap', 'unwrap'] });
    return { params: { key: name }, body: { plaintext: 'AAAAAAAAAAAAAAAAAAAAAA==', keyVersion: 1 }, ring: name };
  },
  unwrapWithKey: async (a) => {
    const { name } = await makeTransit(a, { uses: ['wrap', 'unwrap'] });
    const { wrapped } = await ok(
      a.call('POST', `/managed-keys/${name}/wrap`, { plaintext: 'AAAAAAAAAAAAAAAAAAAAAA==' }),
    );
    return { params: { key: name }, body: { wrapped, keyVersion: 1 }, ring: name };
  },
  deriveWithKey: async (a) => {
    const { name } = await makeTransit(a, { uses: ['derive'] });
    return { params: { key: name }, body: { context: 'aGk=', salt: 'AA==', length: 16, hash: 'sha2-256' }, ring: name };
  },
  listTangPairs: async (a) => {
    await ok(a.call('POST', '/tang/pairs'));
    return {};
  },
  rotateTangPair: async () => ({}),
  deleteTangPair: async (a) => {
    const { pair } = await ok(a.call('POST', '/tang/pairs'));
    await ok(a.call('POST', '/tang/pairs'));
    return { params: { thumbprint: pair.thumbprint } };
  },
  createAccount: async () => ({ body: { uid: freshName(), notes: 'n', props: {} } }),
  listAccounts: async () => ({}),
  getAccount: async (a) => ({ params: { id: (await makeAccount(a)).uid }, query: { uid: 'true' } }),
  updateAccount: async (a) => ({
    params: { id: (await makeAccount(a)).id },
    body: { uid: freshName(), notes: '', props: {} },
  }),
  deleteAccount: async (a) => ({ params: { id: (await makeAccount(a)).id } }),
  listAccountApiKeys: async (a) => ({ params: { accountId: a.accountId }, query: { limit: '3' } }),
  validateApiKey: async (a) => ({
    body: {
      key: (await a.keyWith()).key,
      activity: { action: 'own.thing', props: { n: 1 }, ringname: 'r', validAction: true, createdAt: 5 },
    },
  }),
  listApiKeys: async () => ({}),
  createApiKey: async (a) => ({ body: { accountId: a.accountId, flags: { mine: false }, props: {} } }),
  updateApiKeyBySecret: async (a) => ({
    body: {
      key: (await a.keyWith()).key,
      op: 'merge',
      active: false,
      references: { accountId: a.accountId },
      flags: {},
      props: { n: 1 },
    },
  }),
  updateApiKey: async (a) => ({ body: { apikeyid: (await a.keyWith()).keyid, op: 'replace', props: {} } }),
  listProofs: async (a) => ({ params: { keyid: a.root.keyid } }),
  addProof: async (a) => {
    const issuer = await TokenIssuer.make(() => a.world.now());
    const body = { kind: 'jwt', issuer: issuer.issuer, audience: 'kms', subject: 'build', jwks: issuer.jwks };
    return { params: { keyid: (await a.keyWith()).keyid }, body };
  },
  updateProof: async (a) => {
    const { keyid, proof } = await trusted(a);
    return { params: { keyid, proof }, body: { active: false } };
  },
  removeProof: async (a) => {
    const { keyid, proof } = await trusted(a);
    return { params: { keyid, proof } };
  },
  testProof: async (a) => {
    const { keyid, token } = await trusted(a);
    return { params: { keyid }, body: { token } };
  },
  workloadLogin: async (a) => {
    const { keyid, token } = await trusted(a);
    return { body: { token, role: keyid } };
  },
  getWorkloadSession: async (a) => ({ key: await workloadToken(a) }),
  renewWorkloadSession: async (a) => ({ body: { seconds: 60 }, key: await workloadToken(a) }),
  endWorkloadSession: async (a) => ({ key: await workloadToken(a) }),
  getApiKey: async (a) => ({ params: { apikeyid: a.root.keyid } }),
  deleteApiKey: async (a) => ({ params: { apikey: (await a.keyWith()).key } }),
  deleteApiKeyById: async (a) => ({ params: { keyid: (await a.keyWith()).keyid } }),
  getApiKeyProps: async (a) => ({ params: { apikeyid: a.root.keyid } }),
  searchKeyringApiKeys: async (a) => ({
    params: { keyringname: (await makeRing(a)).name },
    query: { wildcard: 'true' },
  }),
  searchActivity: async (a) => ({
    body: {
      accountUid: 'admin',
      accountId: a.accountId,
      action: 'keyring.create',
      ring: 'r',
      start: 0,
      end: a.world.now(),
      keyid: a.root.keyid,
      valid: true,
      props: {},
    },
  }),
  createApprovalRule: async (a) => {
    await makeUser(a, { 'approval.give': true });
    return { body: ruleFields() };
  },
  listApprovalRules: async () => ({}),
  getApprovalRule: async (a) => ({
    params: { id: (await makeRule(a)).id },
    key: (await logIn(a, readsRules)).accessToken,
  }),
  updateApprovalRule: async (a) => ({ params: { id: (await endedRule(a)).id }, body: { count: 2 } }),
  deleteApprovalRule: async (a) => ({ params: { id: (await endedRule(a)).id } }),
  listApprovalPresets: async () => ({}),
  listApprovalRequests: async () => ({ query: { state: 'pending', mine: 'true', inbox: 'false' } }),
  getApprovalRequest: async (a) => {
    const { id, approver } = await waiting(a);
    return { params: { id }, key: approver.key };
  },
  getApprovalOptions: async (a) => {
    const { id, approver } = await waiting(a);
    return { params: { id }, key: approver.key };
  },
  approveRequest: async (a) => {
    const { id, approver, code } = await waiting(a);
    return { params: { id }, body: { code, reason: 'as agreed' }, key: approver.key };
  },
  denyRequest: async (a) => {
    const { id, approver, code } = await waiting(a);
    return { params: { id }, body: { code, reason: 'not today' }, key: approver.key };
  },
  withdrawRequest: async (a) => {
    const { id } = await waiting(a);
    return { params: { id }, key: (await logIn(a, { 'approval.rule': true })).accessToken };
  },
  breakGlass: async (a) => {
    const { id, approver, code } = await waiting(a);
    return { params: { id }, body: { code, reason: 'it leaks' }, key: approver.key };
  },
  listBrokenGlass: async () => ({}),
  acknowledgeBrokenGlass: async (a) => {
    const { id, approver, code } = await waiting(a);
    await ok(
      a.call('POST', `/approvals/requests/${id}/break-glass`, { code, reason: 'it leaks' }, { key: approver.key }),
    );
    const { broken } = await ok(a.call('GET', '/approvals/broken-glass'));
    return { params: { id: broken[0].id } };
  },
  getActivityHead: async () => ({}),
  exportActivity: async (a) => ({ body: { since: await ok(a.call('GET', '/auth/activity/head')) } }),
  getActivity: async (a) => {
    await a.call('GET', '/auth/apikey');
    return { params: { id: (await a.activity())[0]?.id ?? '' } };
  },
  listUsers: async () => ({ query: { limit: '2' } }),
  createUser: async () => ({ body: { ...userFields(), displayName: 'x', flags: { mine: false }, props: {} } }),
  getUser: async (a) => ({ params: { username: (await makeUser(a)).user.email }, query: { email: 'true' } }),
  updateUser: async (a) => ({
    params: { username: (await makeUser(a)).user.username },
    body: { email: `${freshName()}@example.org`, firstName: 'A', lastName: 'B', flags: {}, props: { n: 1 } },
  }),
  deleteUser: async (a) => ({ params: { username: (await makeUser(a)).user.id }, query: { id: 'true' } }),
  inviteUser: async () => ({ body: { ...userFields(), flags: { mine: false }, props: {} } }),
  validateInvite: async (a) => ({ query: { token: await inviteToken(a) } }),
  completeInvite: async (a) => ({ body: { token: await inviteToken(a), password: goodPassword } }),
  completeSetUp: async (a) => ({ body: { token: await setUpToken(a), ...userFields(), password: goodPassword } }),
  login: async (a) => {
    const { user, password } = await makeUser(a);
    return { body: { username: user.username, password } };
  },
  refreshSession: async (a) => ({ key: (await logIn(a)).accessToken }),
  logout: async (a) => ({ key: (await logIn(a)).accessToken }),
  changePassword: async (a) => {
    const { password, key } = await person(a);
    return { body: { currentPassword: password, newPassword: goodPassword }, key };
  },
  listSessions: async (a) => ({ key: (await logIn(a)).accessToken }),
  endSession: async (a) => {
    const { accessToken: key } = await logIn(a);
    const { sessions } = await ok(a.call('GET', '/auth/user/sessions', undefined, { key }));
    return { params: { id: sessions[0].id }, key };
  },
  endOtherSessions: async (a) => ({ key: (await logIn(a)).accessToken }),
  passkeyLoginOptions: async () => ({}),
  loginWithPasskey: async (a) => {
    const authenticator = new Authenticator();
    await addPasskey(a, await person(a), authenticator);
    const options = await ok(a.call('POST', '/auth/passkey/options', undefined, { key: null }));
    return { body: { credential: authenticator.get(options, { origin: pageOrigin }) } };
  },
  listSecondFactors: async (a) => {
    const ada = await person(a);
    await addTotp(a, ada);
    return { key: ada.key };
  },
  beginTotp: async (a) => {
    const { password, key } = await person(a);
    return { body: { currentPassword: password, name: 'phone' }, key };
  },
  finishTotp: async (a) => {
    const { password, key } = await person(a);
    const { id, secret } = await ok(a.call('POST', `${factorPath}/totp`, { currentPassword: password }, { key }));
    return { body: { id, code: appCode(secret, a.world.now()) }, key };
  },
  beginPasskey: async (a) => {
    const { password, key } = await person(a);
    return { body: { currentPassword: password }, key };
  },
  finishPasskey: async (a) => {
    const { password, key } = await person(a);
    const options = await ok(a.call('POST', `${factorPath}/passkey`, { currentPassword: password }, { key }));
    const credential = new Authenticator().create(options, { origin: pageOrigin });
    return { body: { credential, name: 'laptop' }, key };
  },
  removeSecondFactor: async (a) => {
    const ada = await person(a);
    const { secondFactor } = await addTotp(a, ada);
    return { body: { id: secondFactor.id, currentPassword: ada.password }, key: ada.key };
  },
  renewRecoveryCodes: async (a) => {
    const ada = await person(a);
    await addTotp(a, ada);
    return { body: { currentPassword: ada.password }, key: ada.key };
  },
  describeOidc: async () => ({}),
  startOidc: async (a) => {
    await startOidc(a);
    return {};
  },
  finishOidc: async (a) => ({ body: await startOidc(a) }),
  startPasswordReset: async (a) => ({ body: { email: (await makeUser(a)).user.email } }),
  completePasswordReset: async (a) => ({ body: { token: await resetToken(a), password: goodPassword } }),
  createBackup: async () => ({}),
  getOverview: async () => ({ query: { range: 'hour', flags: 'true' } }),
  getNames: async () => ({}),
  getBackups: async () => ({}),
  startBackup: async () => ({}),
  getMetrics: async () => ({}),
};

/** Path and query of a sample. */
export function urlOf(endpoint: Endpoint, { params = {}, query = {} }: Sample): string {
  const path = endpoint.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params[name] ?? ''));
  const search = new URLSearchParams(query).toString();
  return search === '' ? path : `${path}?${search}`;
}

/** Every endpoint with its sample, typed as declarations are. */
export const sampled: readonly {
  readonly endpoint: Endpoint & { id: AnyEndpoint['id'] };
  readonly make: MakeSample;
}[] = endpoints.map((endpoint) => ({ endpoint, make: samples[endpoint.id] }));

/** Flags of which each alone admits a request: the exact one first, then each wildcard. */
export function grantingFlags(access: Access, ring = ''): string[] {
  if (access.kind !== 'flag') return [];
  const [resource = '', operation = ''] = access.action.split('.');
  if (!access.ring) return [access.action, `${resource}.*`, '*'];
  const name = `${resource}.${ring}`;
  const exact = `${name}.${operation}`;
  const any = [`${resource}.*.${operation}`, `${name}.*`, `${resource}.*.*`, `${resource}.*`, '*'];
  return [exact, exact.toUpperCase(), ...any];
}
