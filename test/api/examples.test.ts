// The requests shown in the description work: each is sent unchanged to an appliance that has the objects it names,
// apart from ids, which are this appliance's.
import assert from 'node:assert/strict';
import { publicEncrypt } from 'node:crypto';
import { test } from 'node:test';
import { sample } from '../../src/api/example-values.ts';
import { describedEndpoints } from '../../src/description/described-endpoints.ts';
import { openApiDocument } from '../../src/description/openapi-document.ts';
import { curlOf } from '../../src/description/page.ts';
import { version } from '../../src/version.ts';
import {
  addPasskey,
  addTotp,
  inviteToken,
  type Person,
  pageOrigin,
  person,
  resetToken,
  rewrappedKey,
  setUpToken,
  startOidc,
} from '../http/samples.ts';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { Authenticator, appCode } from '../support/authenticator.ts';
import { operationsOf } from '../support/description.ts';
import { TokenIssuer, trustIssuer } from '../support/token-issuer.ts';

const ada = { username: 'ada', email: 'ada@example.org', firstName: 'Ada', lastName: 'Lovelace' };
/** Endpoints that make the objects of the other examples. */
const makers: Readonly<Record<string, string>> = {
  createKeyring: 'ring',
  createAsymKeyring: 'asym',
  createManagedKey: 'managed',
  createUser: 'user',
  inviteUser: 'user',
  completeInvite: 'invited',
  completeSetUp: 'none',
  createAccount: 'account',
};

/** Real values by the example values that they replace. */
async function seeded(a: Appliance, id: string): Promise<Readonly<Record<string, string>>> {
  const leftOut = makers[id];
  const post = async (path: string, body: object, key?: string | null): Promise<AnyJson> => {
    const answer = await a.call('POST', path, body, key === undefined ? {} : { key });
    assert.equal(answer.status, 200, `${path}: ${answer.text}`);
    return answer.body;
  };
  const values: Record<string, string> = {};
  if (leftOut === 'none') return { [sampleSetUpToken]: await setUpToken(a) };
  if (leftOut !== 'ring') {
    const { ring } = await post('/ks/keyrings', { name: 'Payroll' });
    const parent = await post('/ks/encrypt', { ringname: 'payroll', asset: {} });
    const { hash, header, asset } = await post('/ks/encrypt', { ringname: 'payroll', asset: {} });
    Object.assign(values, {
      [sample.ringId]: ring.id,
      [sample.keyId]: ring.activeKey,
      [sample.parentId]: parent.asset.id,
      [sample.assetId]: asset.id,
      [sample.hash]: hash,
      [sample.header]: header,
    });
  }
  if (id === 'putConfig') {
    const { ring } = (await a.call('GET', '/ks/keyrings/payroll')).body;
    values[sample.replacedPublicKey] = ring.publicKey;
  }
  if (id === 'rewrapKeys') {
    const { publicKey, keyData } = (await a.call('GET', `/ks/keyrings/payroll/keys/${values[sample.keyId]}`)).body;
    await post('/ks/rotate', { ringname: 'payroll' });
    const { replaces } = rewrappedKey('', keyData);
    Object.assign(values, { [sample.publicKey]: publicKey, [sample.replacedHash]: replaces });
  }
  if (leftOut !== 'asym') values[sample.asymKeyId] = (await post('/asym/keyrings', { name: 'Devices' })).key.id;
  if (leftOut !== 'managed') Object.assign(values, await managedKeyValues(a, id, post));
  if (id === 'deleteTangPair') {
    values[sample.tangThumbprint] = (await post('/tang/pairs', {})).pair.thumbprint;
    await post('/tang/pairs', {});
  }
  if (leftOut !== 'account') values[sample.accountId] = (await post('/auth/accounts', { uid: 'billing' })).id;
  const { key, keyid } = await post('/auth/apikey', { accountId: a.accountId });
  Object.assign(values, { [sample.apikey]: key, [sample.apikeyId]: keyid });
  if (id.includes('Proof') || id.includes('orkload')) Object.assign(values, await proofValues(a, id, keyid));
  if (leftOut === 'invited') return { ...values, [sample.inviteToken]: await inviteToken(a, ada) };
  const invite = await inviteToken(a, leftOut === 'user' ? undefined : ada);
  values[sample.inviteToken] = invite;
  if (id === 'validateInvite' || leftOut === 'user') return values;
  await post('/auth/user/invite-complete', { token: invite, password: sample.password }, null);
  values[sample.userId] = (await a.call('GET', '/auth/users/ada')).body.id;
  const session = await post('/auth/basic/login', { username: 'ada', password: sample.password }, null);
  values[sample.accessToken] = session.accessToken;
  const own = await a.call('GET', '/auth/user/sessions', undefined, { key: session.accessToken });
  values[sample.sessionId] = own.body.sessions[0].id;
  values[sample.resetToken] = await resetToken(a, 'ada');
  const self = { user: session.user, password: sample.password, key: session.accessToken };
  Object.assign(values, await secondFactorValues(a, id, self));
  values[sample.activityId] = (await a.activity())[0]?.id ?? '';
  if (id.endsWith('Oidc')) {
    const { state, binding } = await startOidc(a);
    Object.assign(values, { [sample.oidcState]: state, [sample.oidcBinding]: binding });
  }
  if (/Approval|Request$|Glass$/.test(id)) Object.assign(values, await approvalValues(a, id, self));
  if (id === 'restoreKeyring') await a.call('DELETE', '/ks/keyrings/payroll');
  return values;
}

/** A rule, a request that falls under it, and a code of one who can approve it. */
async function approvalValues(a: Appliance, id: string, one: Person): Promise<Readonly<Record<string, string>>> {
  const isChanged = ['updateApprovalRule', 'deleteApprovalRule'].includes(id);
  // The example of a rule wants two with this flag.
  for (let n = 0; n < 2 && id.endsWith('ApprovalRule'); n++) await person(a, { 'approval.give': true });
  const { secret } = isChanged ? { secret: '' } : await addTotp(a, one);
  const who = [one.user.id];
  const { body: rule } = await a.call('POST', '/approvals/rules', {
    name: 'payroll stays',
    actions: ['keyring.payroll.delete'],
    approvers: isChanged ? { flag: 'approval.give' } : { users: who },
    breakers: isChanged ? [] : who,
    ...(isChanged && { expires: a.world.now() + 1 }),
  });
  a.advance(isChanged ? 1 : 30_000);
  if (isChanged) return { [sample.ruleId]: rule.id };
  const { approval } = (await a.call('DELETE', '/ks/keyrings/payroll')).body;
  const known = { [sample.ruleId]: rule.id, [sample.approvalId]: approval.id };
  const code = appCode(secret, a.world.now());
  if (id !== 'acknowledgeBrokenGlass') return { ...known, [sample.totpCode]: code };
  const body = { code, reason: 'it leaks' };
  await a.call('POST', `/approvals/requests/${approval.id}/break-glass`, body, { key: one.key });
  const { broken } = (await a.call('GET', '/approvals/broken-glass')).body;
  return { ...known, [sample.glassId]: broken[0].id };
}

/** A proof of the API key, and a token that it trusts or that a login with that gave. */
async function proofValues(a: Appliance, id: string, keyid: string): Promise<Readonly<Record<string, string>>> {
  if (id === 'addProof') return {};
  const issuer = await TokenIssuer.make(() => a.world.now());
  const { id: proof } = await trustIssuer(a, keyid, issuer);
  const token = await issuer.token();
  const known = { [sample.proofId]: proof, [sample.signedToken]: token };
  if (!id.endsWith('WorkloadSession')) return known;
  const { body } = await a.call('POST', '/auth/workload/login', { token, role: keyid }, { key: null });
  return { ...known, [sample.workloadToken]: body.accessToken };
}

/** Keys that the appliance holds: one that encrypts, and others for each of the other uses. */
async function managedKeyValues(
  a: Appliance,
  id: string,
  post: (path: string, body: object) => Promise<AnyJson>,
): Promise<Readonly<Record<string, string>>> {
  const { key } = await post('/managed-keys', { name: 'Unseal', deletionAllowed: id.endsWith('ManagedKey') });
  await post('/managed-keys', { name: 'Release', type: 'ed25519' });
  await post('/managed-keys', { name: 'Tokens', type: 'hmac-sha256' });
  await post('/managed-keys', { name: 'Portable', exportable: true });
  await post('/managed-keys', { name: 'Wrapper', uses: ['encrypt', 'decrypt', 'wrap', 'unwrap', 'derive'] });
  const used = id === 'deleteManagedKey' ? 'portable' : 'unseal';
  const { items } = await post(`/managed-keys/${used}/encrypt`, { items: [{ plaintext: 'aGVsbG8=' }] });
  const { signature } = await post('/managed-keys/release/sign', { input: 'aGVsbG8=' });
  const { wrapped } = await post('/managed-keys/wrapper/wrap', { plaintext: sample.dataKey });
  if (id === 'restoreManagedKey') await a.call('DELETE', '/managed-keys/unseal', { used: true });
  if (id === 'removeManagedKeyAlias') await post('/managed-keys/unseal/aliases', { alias: 'app/db' });
  if (id.includes('Secret') && id !== 'writeSecret') await post('/secrets/mariadb%2F1', { value: {} });
  if (id === 'eraseKeyMaterial') await post('/managed-keys', { name: 'brought', origin: 'imported' });
  if (id === 'trimManagedKey') {
    await post('/managed-keys/unseal/rotate', {});
    await a.call('PUT', '/managed-keys/unseal/config', { minDecryptVersion: 2, minEncryptVersion: 2 });
  }
  return {
    [sample.managedKeyId]: key.id,
    [sample.keyCiphertext]: items[0].ciphertext,
    [sample.keySignature]: signature,
    [sample.wrappedDataKey]: wrapped,
    ...(id === 'importManagedKey' && { [sample.wrappedManagedKey]: await wrappedForImport(a) }),
  };
}

/** A key wrapped to the appliance's wrapping key. */
async function wrappedForImport(a: Appliance): Promise<string> {
  const { publicKey: key } = (await a.call('GET', '/managed-keys/wrapping-key')).body;
  return publicEncrypt({ key, oaepHash: 'sha256' }, Buffer.alloc(32, 7)).toString('base64');
}

/** Prepares the second factor that the example needs: an app, confirmed or not, or a passkey. */
async function secondFactorValues(a: Appliance, id: string, ada: Person): Promise<Readonly<Record<string, string>>> {
  const post = async (path: string, body?: object) => (await a.call('POST', path, body, { key: ada.key })).body;
  const proof = { currentPassword: ada.password };
  if (id === 'finishTotp') {
    const { id: factorId, secret } = await post('/auth/user/second-factors/totp', proof);
    return { [sample.factorId]: factorId, [sample.totpCode]: appCode(secret, a.world.now()) };
  }
  const authenticator = new Authenticator();
  if (id === 'finishPasskey') {
    const { response } = authenticator.create(await post('/auth/user/second-factors/passkey', proof), atPage);
    return {
      [sample.credentialId]: authenticator.credentialId,
      [sample.newClientData]: response.clientDataJSON,
      [sample.attestationObject]: response.attestationObject,
    };
  }
  if (id === 'loginWithPasskey') {
    await addPasskey(a, ada, authenticator);
    const { response } = authenticator.get(await post('/auth/passkey/options'), atPage);
    return {
      [sample.credentialId]: authenticator.credentialId,
      [sample.usedClientData]: response.clientDataJSON,
      [sample.authenticatorData]: response.authenticatorData,
      [sample.passkeySignature]: response.signature,
    };
  }
  if (id !== 'removeSecondFactor' && id !== 'renewRecoveryCodes') return {};
  return { [sample.factorId]: (await addTotp(a, ada)).secondFactor.id };
}

const atPage = { origin: pageOrigin };
const sampleSetUpToken = 'kmssu_1767323045678_q0K2yV7n3mB8tXw5Zr1LsDfGhJcQpEaUiOvNkMxTbYg';
const sessionOnly = [
  'getApprovalOptions',
  'approveRequest',
  'denyRequest',
  'breakGlass',
  'listSecondFactors',
  'beginTotp',
  'finishTotp',
  'beginPasskey',
  'finishPasskey',
  'removeSecondFactor',
  'renewRecoveryCodes',
  'refreshSession',
  'logout',
  'changePassword',
  'listSessions',
  'endSession',
  'endOtherSessions',
];
const operations = operationsOf(openApiDocument(version)).filter(({ operation }) => {
  // The test app serves no description; these paths are tested on a server.
  return !['getOpenApi', 'getDocs'].includes(operation.operationId);
});

for (const { method, path, operation } of operations) {
  const { operationId: id, parameters = [], requestBody, security } = operation;
  test(`the example of ${id} works`, async () => {
    const unsealed = { sealed: false, kinds: ['passphrase'] };
    const sealing = {
      status: () => unsealed,
      refusal: () => undefined,
      unseal: async () => unsealed,
      seal: async () => {},
    };
    const a = await testAppliance({ sealing });
    const values = await seeded(a, id);
    const real = (text: string): string =>
      Object.entries(values).reduce((filled, [example, value]) => filled.replaceAll(example, value), text);
    const target = parameters
      .filter((each) => each.in === 'path')
      .reduce(
        (filled, { name, example }) => filled.replace(`{${name}}`, encodeURIComponent(real(String(example)))),
        path,
      );
    // Sends only required parameters and tokens: others change each other's meaning, or, like a cursor, need an earlier
    // page.
    const query = parameters.filter((each) => each.in === 'query' && (each.required || each.name === 'token'));
    const search = new URLSearchParams(query.map(({ name, example }) => [name, real(String(example))])).toString();
    const example = Object.values(requestBody?.content ?? {})[0]?.example;
    const ownKey = id.endsWith('WorkloadSession') ? (values[sample.workloadToken] ?? '') : a.root.key;
    const key = security.length === 0 ? null : sessionOnly.includes(id) ? (values[sample.accessToken] ?? '') : ownKey;
    const response = await a.app.fetch(
      new Request(`http://kms.test${target}?${search}`, {
        method,
        headers: { 'content-type': 'application/json', ...(key !== null && { authorization: `Bearer ${key}` }) },
        ...(example !== undefined && { body: real(JSON.stringify(example)) }),
      }),
      {},
    );
    assert.equal(response.status, 200, `${id}: ${await response.text()}`);
  });
}

test('the requests to copy name the address and the credential, and quote the body for a shell', () => {
  for (const place of operationsOf(openApiDocument(version))) {
    const { operation } = place;
    const text = curlOf(place);
    assert.match(text, /^curl -s/);
    assert.ok(text.includes('"$KMS_URL/'), text);
    assert.equal(text.includes('Bearer $KMS_API_KEY'), operation.security.length > 0, text);
    assert.equal(text.includes('-d '), operation.requestBody !== undefined, text);
    assert.doesNotMatch(text, /\{\w+\}/);
  }
  assert.equal(operations.length + 2, describedEndpoints.length);
});
