// Requests that the server refuses, for each endpoint: bad ones, ones for missing objects, and some endpoints' special
// cases.

import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import type { Endpoint } from '../../src/api/endpoint.ts';
import { serve } from '../../src/server/serve.ts';
import { addPasskey, addTotp, goodPassword, inviteToken, logIn, makeRing, person, startOidc } from '../http/samples.ts';
import type { Appliance } from '../support/appliance.ts';
import { Authenticator } from '../support/authenticator.ts';
import type { Given } from '../support/description.ts';

export interface Refused {
  readonly url: string;
  readonly body?: unknown;
  readonly raw?: string;
  readonly key?: string | null;
}

const plain = (path: string): string => path.replace(/\{\w+\}/g, 'x');

/** Requests that are answered 400. */
const anyCredential: ReadonlySet<string> = new Set([
  'getWrappingKey',
  'listApprovalRules',
  'getApprovalRule',
  'listApprovalPresets',
  'getApprovalRequest',
  'getApprovalOptions',
  'withdrawRequest',
  'listBrokenGlass',
]);

export function badRequests(endpoint: Endpoint): readonly Refused[] {
  const url = plain(endpoint.path);
  const bad: Refused[] = [];
  if (endpoint.body) bad.push({ url, raw: 'not JSON' }, { url, body: [] });
  if (endpoint.paginated) {
    const body = endpoint.body ? {} : undefined;
    bad.push({ url: `${url}?limit=0`, body }, { url: `${url}?cursor=x`, body });
  }
  if (endpoint.id === 'getConfig') bad.push({ url });
  if (endpoint.id === 'resolveHash') bad.push({ url: '/ks/hash/x' });
  if (endpoint.id === 'getOverview') bad.push({ url: `${url}?range=x` });
  // Most of these need a session; those that may be watched take any credential.
  const takesAny = endpoint.watchable !== undefined || anyCredential.has(endpoint.id);
  if (endpoint.access.kind === 'credential' && !takesAny) bad.push({ url });
  return bad;
}

/** Requests that are answered 404. */
export function missing(endpoint: Endpoint): readonly Refused[] {
  const url = plain(endpoint.path);
  if (endpoint.errors?.[404] === undefined) return [];
  const bodies: Readonly<Record<string, object>> = {
    rotateKeyring: { ringname: 'x' },
    rotateAsymKeyring: { ringname: 'x' },
    rewrapKeys: { ringname: 'x', publicKey: 'x', keys: [] },
    putConfig: { ringname: 'x', config: {} },
    encrypt: { ringname: 'x' },
    configureManagedKey: {},
    encryptWithKey: { items: [] },
    decryptWithKey: { items: [] },
    rewrapWithKey: { items: [] },
    generateDataKey: {},
    generateWrappedDataKey: {},
    signWithKey: { input: '' },
    verifyWithKey: { input: '', signature: 'x' },
    macWithKey: { input: '' },
    wrapWithKey: { plaintext: 'YQ==' },
    unwrapWithKey: { wrapped: 'YQ==' },
    deriveWithKey: {},
    putSecretMetadata: {},
    deleteSecretVersions: {},
    restoreSecretVersions: { versions: [1] },
    destroySecretVersions: { versions: [1] },
    setManagedKeyState: { state: 'suspended' },
    addManagedKeyAlias: { alias: 'y' },
    trimManagedKey: { minAvailableVersion: 1 },
    importManagedKey: { publicKey: 'x', isNewVersion: true },
    exportManagedKey: { plaintext: true },
    createApiKey: { accountId: 'x' },
    addProof: { kind: 'secret' },
    updateProof: { active: false },
    testProof: { token: 'x' },
    updateApiKey: { apikeyid: 'x', op: 'merge' },
    updateApiKeyBySecret: { key: 'x', op: 'merge' },
    updateApprovalRule: {},
    approveRequest: {},
    denyRequest: {},
    breakGlass: { reason: 'x' },
    updateAccount: {},
    updateUser: {},
  };
  if (endpoint.id === 'getConfig') return [{ url: `${url}?ringname=x` }];
  // Malformed input is answered 400; 404 needs something that once existed, which is tested below.
  if (endpoint.id === 'resolveHash' || endpoint.id === 'decrypt') return [];
  // Needs an appliance without a provider, which is tested below.
  if (endpoint.id === 'startOidc' || endpoint.id === 'finishOidc') return [];
  // Only a session gets this answer.
  if (['endSession', 'finishTotp', 'removeSecondFactor'].includes(endpoint.id)) return [];
  return [{ url, body: bodies[endpoint.id] }];
}

interface Special {
  readonly name: string;
  readonly id: string;
  readonly status: number;
  readonly make: (a: Appliance) => Promise<Refused>;
}

/** A hash and header that were encrypted with a ring that has since been deleted. */
async function gone(a: Appliance): Promise<{ hash: string; header: string }> {
  const { name } = await makeRing(a);
  const { body } = await a.call('POST', '/ks/encrypt', { ringname: name });
  await a.call('DELETE', `/ks/keyrings/${name}`);
  return body;
}

/** Starts exports whose bodies are not read, of a log longer than is sent before a client reads. */
async function unreadExports(a: Appliance, count: number): Promise<void> {
  const props = { text: 'x'.repeat(2000) };
  for (let i = 0; i < 100; i++) await a.call('POST', '/auth/validate', { key: a.root.key, activity: { props } });
  const headers = { authorization: `Bearer ${a.root.key}`, 'content-type': 'application/json' };
  const request = new Request('http://kms.test/auth/activity/export', { method: 'POST', headers, body: '{}' });
  for (let i = 0; i < count; i++) await a.app.fetch(request.clone(), {});
}

const noLogin = { code: 'x', state: 'x', binding: 'x' };

/** Fails logins until the address has to wait. */
async function failedLogins(a: Appliance): Promise<void> {
  await startOidc(a);
  for (let n = 0; n < 50; n++) await a.call('POST', '/auth/oidc/finish', noLogin, { key: null });
}

export const special: readonly Special[] = [
  {
    name: 'as many exports as may be',
    id: 'exportActivity',
    status: 429,
    make: async (a) => {
      await unreadExports(a, 2);
      return { url: '/auth/activity/export', body: {} };
    },
  },
  ...(['approve', 'deny', 'break-glass'] as const).map((verb) => ({
    name: 'too many failures',
    id: verb === 'break-glass' ? 'breakGlass' : `${verb}Request`,
    status: 429,
    async make(a: Appliance) {
      const { accessToken: key } = await logIn(a, { 'approval.read': true, 'approval.give': true });
      const { body: rule } = await a.call('POST', '/approvals/rules', {
        name: verb,
        actions: ['keyring.create'],
        approvers: { flag: 'approval.give' },
      });
      const { approval } = (await a.call('POST', '/ks/keyrings', { name: String(rule.name) })).body;
      const url = `/approvals/requests/${approval.id}/${verb}`;
      const body = { code: '000000', reason: 'x' };
      for (let n = 0; n < 6; n++) await a.call('POST', url, body, { key });
      return { url, body, key };
    },
  })),
  {
    name: 'no provider',
    id: 'startOidc',
    status: 404,
    make: async () => ({ url: '/auth/oidc/start', key: null }),
  },
  {
    name: 'no provider',
    id: 'finishOidc',
    status: 404,
    make: async () => ({ url: '/auth/oidc/finish', key: null, body: noLogin }),
  },
  {
    name: 'somebody who has no user',
    id: 'finishOidc',
    status: 403,
    make: async (a) => ({ url: '/auth/oidc/finish', key: null, body: await startOidc(a, {}) }),
  },
  {
    name: 'too many failures',
    id: 'startOidc',
    status: 429,
    async make(a) {
      await failedLogins(a);
      return { url: '/auth/oidc/start', key: null };
    },
  },
  {
    name: 'too many failures',
    id: 'finishOidc',
    status: 429,
    async make(a) {
      await failedLogins(a);
      return { url: '/auth/oidc/finish', key: null, body: noLogin };
    },
  },
  {
    name: 'an Asset that does not verify',
    id: 'decrypt',
    status: 422,
    async make(a) {
      const { name } = await makeRing(a);
      const { header, asset } = (await a.call('POST', '/ks/encrypt', { ringname: name, asset: {} })).body;
      await a.call('DELETE', `/assets/${asset.id}`);
      return { url: '/ks/decrypt', body: { header } };
    },
  },
  {
    name: 'a ring that is gone',
    id: 'decrypt',
    status: 404,
    make: async (a) => ({ url: '/ks/decrypt', body: { hash: (await gone(a)).hash } }),
  },
  {
    name: 'a ring that is gone',
    id: 'resolveHash',
    status: 404,
    make: async (a) => ({ url: `/ks/hash/${(await gone(a)).hash}` }),
  },
  {
    name: 'a ring that is gone',
    id: 'inspectHeader',
    status: 404,
    make: async (a) => ({ url: `/ks/header/${(await gone(a)).header}` }),
  },
  {
    name: 'a taken name',
    id: 'createKeyring',
    status: 400,
    make: async (a) => ({ url: '/ks/keyrings', body: { name: (await makeRing(a)).name } }),
  },
  {
    name: 'a taken user name',
    id: 'createUser',
    status: 400,
    async make(a) {
      const body = { username: 'ada', email: 'ada@example.org', firstName: 'Ada', lastName: 'Lovelace' };
      await a.call('POST', '/auth/users', body);
      return { url: '/auth/users', body };
    },
  },
  {
    name: 'an invite that is none',
    id: 'validateInvite',
    status: 401,
    make: async () => ({ url: '/auth/user/invite-validate?token=x', key: null }),
  },
  {
    name: 'an invite that is none',
    id: 'completeInvite',
    status: 401,
    make: async () => ({ url: '/auth/user/invite-complete', key: null, body: { token: 'x', password: 'x' } }),
  },
  {
    name: 'a link that is none',
    id: 'completeSetUp',
    status: 401,
    make: async () => ({
      url: '/auth/user/set-up-complete',
      key: null,
      body: { token: 'x', password: 'x', username: 'ada', email: 'a@example.org', firstName: 'A', lastName: 'L' },
    }),
  },
  {
    name: 'a password that breaks the rules',
    id: 'completeInvite',
    status: 400,
    make: async (a) => ({
      url: '/auth/user/invite-complete',
      key: null,
      body: { token: await inviteToken(a), password: 'weak' },
    }),
  },
  {
    name: 'too many failures',
    id: 'login',
    status: 429,
    async make(a) {
      const body = { username: 'x', password: 'y' };
      for (let n = 0; n < 6; n++) await a.call('POST', '/auth/basic/login', body, { key: null });
      return { url: '/auth/basic/login', key: null, body };
    },
  },
  {
    name: 'a session that is not there',
    id: 'endSession',
    status: 404,
    make: async (a) => ({ url: '/auth/user/sessions/x', key: (await logIn(a)).accessToken }),
  },
  {
    name: 'an app that is not there',
    id: 'finishTotp',
    status: 404,
    async make(a) {
      const { key } = await person(a);
      return { url: '/auth/user/second-factors/totp/finish', key, body: { id: 'x', code: '123456' } };
    },
  },
  {
    name: 'a second factor that is not there',
    id: 'removeSecondFactor',
    status: 404,
    async make(a) {
      const { key, password } = await person(a);
      return { url: '/auth/user/second-factors/remove', key, body: { id: 'x', currentPassword: password } };
    },
  },
  {
    name: 'a second factor that is missing',
    id: 'login',
    status: 400,
    async make(a) {
      const ada = await person(a);
      await addTotp(a, ada);
      await addPasskey(a, ada, new Authenticator());
      const body = { username: ada.user.username, password: ada.password };
      return { url: '/auth/basic/login', key: null, body };
    },
  },
  {
    name: 'too many failures',
    id: 'loginWithPasskey',
    status: 429,
    async make(a) {
      const { rpId, challenge } = (await a.call('POST', '/auth/passkey/options', undefined, { key: null })).body;
      const body = { credential: new Authenticator().get({ rpId, challenge }) };
      for (let n = 0; n < 6; n++) await a.call('POST', '/auth/passkey/login', body, { key: null });
      return { url: '/auth/passkey/login', key: null, body };
    },
  },
  {
    name: 'too many failures',
    id: 'workloadLogin',
    status: 429,
    async make(a) {
      const body = (n: number) => ({ token: `x${n}`, role: 'x' });
      for (let n = 0; n < 51; n++) await a.call('POST', '/auth/workload/login', body(n), { key: null });
      return { url: '/auth/workload/login', key: null, body: body(0) };
    },
  },
  ...(
    [
      ['beginTotp', '/auth/user/second-factors/totp'],
      ['beginPasskey', '/auth/user/second-factors/passkey'],
      ['removeSecondFactor', '/auth/user/second-factors/remove'],
      ['renewRecoveryCodes', '/auth/user/recovery-codes'],
    ] as const
  ).map(([id, url]) => ({
    name: 'too many failures',
    id,
    status: 429,
    async make(a: Appliance) {
      const { key } = await person(a);
      const body = { id: 'x', code: '000000' };
      for (let n = 0; n < 6; n++) await a.call('POST', url, body, { key });
      return { url, key, body };
    },
  })),
  {
    name: 'a password that breaks the rules',
    id: 'changePassword',
    status: 400,
    make: async (a) => ({
      url: '/auth/user/password',
      key: (await logIn(a)).accessToken,
      body: { currentPassword: 'x', newPassword: 'weak' },
    }),
  },
  {
    name: 'too many failures',
    id: 'changePassword',
    status: 429,
    async make(a) {
      const body = { currentPassword: 'x', newPassword: goodPassword };
      const { accessToken: key } = await logIn(a);
      for (let n = 0; n < 6; n++) await a.call('POST', '/auth/user/password', body, { key });
      return { url: '/auth/user/password', key, body };
    },
  },
  {
    name: 'too many failures',
    id: 'unseal',
    status: 429,
    make: async () => ({ url: '/system/unseal', key: null, body: { share: 'x' } }),
  },
  {
    name: 'what is for the local socket',
    id: 'unseal',
    status: 403,
    make: async () => ({ url: '/system/unseal', key: null, body: { retry: true } }),
  },
  {
    name: 'an appliance that does not open',
    id: 'unseal',
    status: 503,
    make: async () => ({ url: '/system/unseal', key: null, body: { key: 'x' } }),
  },
  {
    name: 'several steps at once',
    id: 'unseal',
    status: 400,
    make: async () => ({ url: '/system/unseal', key: null, body: { retry: true, reset: true } }),
  },
];

// A server on a port, since malformed requests never reach the app.
const dir = await mkdtemp(join(tmpdir(), 'kms-agreement-'));
const serving = await serve({ data: join(dir, 'data'), listen: '127.0.0.1:0', logLevel: 'silent' });
after(async () => {
  await serving.close();
  await rm(dir, { recursive: true, force: true });
});

/** A request with two hosts, which is answered before it reaches the app. */
export async function malformedRequest(method: string, path: string): Promise<Given> {
  const socket = connect(Number(new URL(serving.url).port), '127.0.0.1');
  socket.end(`${method} ${path} HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n`);
  let text = '';
  for await (const chunk of socket) text += chunk;
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [line = '', ...fields] = head.split('\r\n');
  const headers = new Headers(
    fields.map((each): [string, string] => [each.split(': ')[0] ?? '', each.split(': ')[1] ?? '']),
  );
  return { status: Number(line.split(' ')[1]), headers, body: JSON.parse(rest.join('')) };
}
