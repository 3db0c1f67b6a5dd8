// The session of the console's pages: an HttpOnly cookie, and a header with its key that pages of other origins can't
// send. Every way in which an attacker could use the cookie is tried.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { originOf } from '../../src/http/console-cookie.ts';
import type { ApiRequest } from '../../src/http/request.ts';
import { consoleHeader } from '../../src/model/names.ts';
import { type Answer, type AnyJson, type Appliance, type CallOptions, testAppliance } from '../support/appliance.ts';
import { addTotp, goodPassword, logIn, makeUser, person, sampled, urlOf } from './samples.ts';

const minute = 60_000;
const newKey = (byte = 7): string => Buffer.alloc(32, byte).toString('base64url');
const key = newKey();
/** Headers that a browser sends for the console's own page. */
const own = { [consoleHeader]: key, 'sec-fetch-site': 'same-origin' };

/** A browser's cookie jar. */
interface Window {
  readonly user: AnyJson;
  readonly password: string;
  readonly answer: Answer;
  /** `name=value` */
  readonly cookie: string;
  readonly attributes: readonly string[];
  ask(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>;
}

async function openWindow(a: Appliance, more: CallOptions = {}, flags = { '*': true }): Promise<Window> {
  const { user, password } = await makeUser(a, flags);
  const body = { username: user.username, password };
  const answer = await a.call('POST', '/auth/basic/login', body, {
    key: null,
    ...more,
    headers: { ...own, ...more.headers },
  });
  assert.equal(answer.status, 200, answer.text);
  const [cookie = '', ...attributes] = (answer.headers.get('set-cookie') ?? '').split('; ');
  return {
    user,
    password,
    answer,
    cookie,
    attributes,
    ask: (method, path, sent, headers = {}) =>
      a.call(method, path, sent, { key: null, headers: { ...own, cookie, ...headers } }),
  };
}

test('a login in the console puts the token into a cookie that no script reads, and nowhere else', async () => {
  const a = await testAppliance();
  const { answer, cookie, attributes, user, ask } = await openWindow(a);
  assert.deepEqual(attributes, ['Path=/', 'HttpOnly', 'SameSite=Strict']);
  assert.match(cookie, /^kms-[\w-]{16}=k1\.[\w-]+$/);
  assert.equal(answer.body.accessToken, '');
  assert.equal(answer.body.user.id, user.id);
  assert.equal(answer.headers.get('cache-control'), 'no-store');
  assert.ok(!answer.text.includes('kmsat_') && !cookie.includes('kmsat_'));
  assert.equal((await ask('GET', '/ks/keyrings')).status, 200);
  const { body } = await ask('GET', '/auth/user/sessions');
  assert.deepEqual(
    body.sessions.map(({ current }: AnyJson) => current),
    [true],
  );
  assert.equal((await a.activity())[0]?.keyid, user.id);
  for (const line of a.log) assert.ok(!line.includes(cookie.slice(24)) && !line.includes(key), line);
});

test('over HTTPS the cookie is for this host alone, and known as such later', async () => {
  const a = await testAppliance();
  const opened = await openWindow(a, { headers: { origin: 'https://kms.test', host: 'kms.test' } });
  assert.match(opened.cookie, /^__Host-kms-/);
  assert.deepEqual(opened.attributes, ['Path=/', 'HttpOnly', 'SameSite=Strict', 'Secure']);
  // A GET from the page itself carries no Origin.
  assert.equal((await opened.ask('GET', '/ks/keyrings')).status, 200);
  const out = await opened.ask('POST', '/auth/basic/logout');
  assert.equal(
    out.headers.get('set-cookie'),
    `${opened.cookie.split('=')[0]}=; Path=/; HttpOnly; SameSite=Strict; Secure; Max-Age=0`,
  );
});

const without = (header: string) => ({ [header]: undefined });
type Changed = Readonly<Record<string, string | undefined>>;

/** Requests that an attacker without both halves can make a browser send, or send themselves. */
const attacks: readonly (readonly [name: string, headers: Changed, request?: readonly [string, string, unknown?]])[] = [
  [
    'a link from elsewhere',
    { ...without(consoleHeader), 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' },
  ],
  ['an address that was typed', { ...without(consoleHeader), 'sec-fetch-site': 'none' }],
  ['the cookie alone', { ...without(consoleHeader), ...without('sec-fetch-site') }],
  ['the cookie alone, in a request of its own origin', without(consoleHeader)],
  ['the header alone', without('cookie')],
  ['a page of another site that knew the header', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' }],
  [
    'a page of a subdomain or another port that knew it',
    { 'sec-fetch-site': 'same-site', origin: 'http://kms.test:81' },
  ],
  ['the same in a browser that says less', { ...without('sec-fetch-site'), origin: 'http://kms.test:81' }],
  ['a page without an origin', { ...without('sec-fetch-site'), origin: 'null' }],
  ['a frame without an origin', { 'sec-fetch-site': 'cross-site', origin: 'null' }],
  ['the key of another browser', { [consoleHeader]: newKey(8) }],
  ['a header that is no key', { [consoleHeader]: '1' }],
  ['an empty header', { [consoleHeader]: '' }],
  [
    'a form of another site',
    {
      ...without(consoleHeader),
      'sec-fetch-site': 'cross-site',
      origin: 'https://evil.test',
      'content-type': 'application/x-www-form-urlencoded',
    },
    ['POST', '/auth/basic/logout'],
  ],
  [
    'a form whose text is JSON',
    {
      ...without(consoleHeader),
      'sec-fetch-site': 'cross-site',
      origin: 'https://evil.test',
      'content-type': 'text/plain',
    },
    ['POST', '/ks/keyrings', { name: 'forged' }],
  ],
  [
    'a beacon',
    { ...without(consoleHeader), 'sec-fetch-site': 'cross-site', 'content-type': 'text/plain;charset=UTF-8' },
    ['POST', '/ks/rotate', {}],
  ],
  [
    'an image whose address has effects',
    { ...without(consoleHeader), 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' },
    ['GET', '/auth/basic/refresh'],
  ],
  ['a download of a backup', { ...without(consoleHeader), 'sec-fetch-site': 'same-site' }, ['POST', '/system/backup']],
  [
    'a socket that is upgraded',
    { ...without(consoleHeader), upgrade: 'websocket', connection: 'Upgrade', origin: 'http://kms.test:81' },
  ],
  ['a credential that is none beside both', { authorization: 'Basic YTpi' }],
  ['an unknown token beside both', { authorization: `Bearer kmsat_${'0'.repeat(43)}` }],
];

for (const [name, headers, [method, path, body] = ['GET', '/ks/keyrings']] of attacks) {
  test(`${name} opens nothing`, async () => {
    const a = await testAppliance();
    const { cookie, ask, user } = await openWindow(a);
    const before = (await a.activity()).length;
    const sent = Object.entries({ ...own, cookie, ...headers }).filter(
      (each): each is [string, string] => each[1] !== undefined,
    );
    const answer = await a.call(method, path, body, { key: null, headers: Object.fromEntries(sent) });
    assert.equal(answer.status, 401, answer.text);
    assert.equal(answer.headers.get('access-control-allow-origin'), null);
    assert.equal(answer.headers.get('set-cookie'), null, 'the session of whoever was attacked stays');
    assert.deepEqual(
      (await a.activity()).slice(0, -before).filter(({ keyid }) => keyid === user.id),
      [],
    );
    assert.equal((await ask('GET', '/ks/keyrings')).status, 200, 'it is still open');
  });
}

test('no other origin is told that it may send the header', async () => {
  const a = await testAppliance();
  const { cookie } = await openWindow(a);
  const headers = {
    cookie,
    origin: 'http://kms.test:81',
    'access-control-request-headers': consoleHeader,
    'access-control-request-method': 'GET',
  };
  const { status, headers: told } = await a.call('OPTIONS', '/ks/keyrings', undefined, { key: null, headers });
  assert.equal(status, 405);
  assert.deepEqual(
    [...told.keys()].filter((name) => name.startsWith('access-control')),
    [],
  );
});

test('what another port of the host gets to see of a cookie is no credential, sealed or as a token', async () => {
  const a = await testAppliance();
  const { cookie } = await openWindow(a);
  const value = cookie.slice(cookie.indexOf('=') + 1);
  for (const stolen of [value, value.slice(3), `kmsat_${value.slice(3, 46)}`]) {
    assert.equal((await a.call('GET', '/ks/keyrings', undefined, { key: stolen })).status, 401);
  }
  // With a session key of the thief's own it opens nothing, under any cookie name.
  const thief = newKey(9);
  const { cookie: theirs } = await openWindow(a, { headers: { [consoleHeader]: thief } });
  const renamed = `${theirs.split('=')[0]}=${value}`;
  const headers = { ...own, [consoleHeader]: thief, cookie: renamed };
  assert.equal((await a.call('GET', '/ks/keyrings', undefined, { key: null, headers })).status, 401);
});

test('a cookie that another port or a subdomain sets logs nobody in as somebody else', async () => {
  const a = await testAppliance();
  const victim = await openWindow(a);
  const attacker = await openWindow(a, { headers: { [consoleHeader]: newKey(9) } });
  const name = victim.cookie.split('=')[0];
  const forged = `${name}=${attacker.cookie.split('=')[1]}`;
  const who = async (cookie: string) =>
    (await victim.ask('GET', '/auth/basic/refresh', undefined, { cookie })).body.user?.id;
  assert.equal(await who(forged), undefined);
  assert.equal(await who(`${forged}; ${victim.cookie}`), victim.user.id, 'and keeps nobody out');
  assert.equal(await who(`${victim.cookie}; ${forged}`), victim.user.id);
  assert.equal(await who(`a=b;${name}; =;;${victim.cookie};c="d"`), victim.user.id, 'among what is malformed');
  assert.equal(await who(Array.from({ length: 20 }, () => forged).join('; ')), undefined);
});

test('a login that came from elsewhere gives no cookie', async () => {
  const a = await testAppliance();
  const { user, password } = await makeUser(a);
  const body = { username: user.username, password };
  for (const headers of [
    { [consoleHeader]: key, 'sec-fetch-site': 'same-site' },
    { [consoleHeader]: key, origin: 'http://kms.test:81' },
    { [consoleHeader]: 'short', 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'same-origin' },
    {},
  ]) {
    const answer = await a.call('POST', '/auth/basic/login', body, { key: null, headers });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('set-cookie'), null);
  }
  // An HTML form can't send JSON as its content type.
  const form = { raw: JSON.stringify(body), headers: { ...own, 'Content-Type': 'text/plain' } };
  const sent = await a.call('POST', '/auth/basic/login', undefined, { key: null, ...form });
  assert.deepEqual([sent.status, sent.headers.get('set-cookie')], [400, null]);
});

test('beside a bearer a cookie counts for nothing', async () => {
  const a = await testAppliance();
  const { cookie, ask } = await openWindow(a);
  const weak = await a.keyWith('user.read');
  const asked = await ask('GET', '/ks/keyrings', undefined, { authorization: `Bearer ${weak.key}` });
  assert.equal(asked.status, 403);
  assert.equal((await a.activity())[0]?.keyid, weak.keyid);
  const { accessToken } = await logIn(a);
  const refreshed = await a.call('GET', '/auth/basic/refresh', undefined, {
    key: accessToken,
    headers: { ...own, cookie },
  });
  assert.match(refreshed.body.accessToken, /^kmsat_/);
  assert.equal(refreshed.headers.get('set-cookie'), null);
  assert.equal((await a.call('GET', '/auth/user/sessions', undefined, { key: accessToken })).status, 401);
});

test('a session that goes on keeps its cookie, and ends when its login is too old', async () => {
  const a = await testAppliance();
  const { ask, user } = await openWindow(a);
  const [{ id }] = (await ask('GET', '/auth/user/sessions')).body.sessions;
  // Concurrent requests of several windows, and a reload meanwhile, lose nothing.
  for (const answer of await Promise.all([1, 2, 3].map(() => ask('GET', '/auth/basic/refresh')))) {
    assert.deepEqual([answer.status, answer.body.accessToken, answer.body.user.id], [200, '', user.id]);
    assert.equal(answer.headers.get('set-cookie'), null);
  }
  for (let passed = 0; passed < 12 * 60; passed += 45) {
    const { status, body } = await ask('GET', '/auth/user/sessions');
    assert.deepEqual([status, body.sessions.map((each: AnyJson) => each.id)], [200, [id]]);
    assert.equal((await ask('GET', '/auth/basic/refresh')).status, 200);
    a.advance(45 * minute);
  }
  const late = await ask('GET', '/auth/basic/refresh');
  assert.equal(late.status, 401);
  assert.match(late.headers.get('set-cookie') ?? '', /^kms-[\w-]{16}=; .*Max-Age=0$/);
});

test('a page that keeps its session is recorded once an hour and place, a client each time', async () => {
  const a = await testAppliance();
  const { ask, user } = await openWindow(a);
  const refresh = () => ask('GET', '/auth/basic/refresh');
  const actions = async () =>
    (await a.activity())
      .filter(({ keyid, action }) => keyid === user.id && action !== 'session.create')
      .map(({ action }) => action);
  for (let passed = 0; passed < 60; passed += 20) {
    assert.equal((await refresh()).status, 200);
    a.advance(20 * minute);
  }
  assert.deepEqual(await actions(), ['session.watch']);
  await refresh();
  assert.deepEqual(await actions(), ['session.watch', 'session.watch']);
  const { accessToken: key } = await logIn(a);
  const refreshed = await a.call('GET', '/auth/basic/refresh', undefined, { key });
  assert.equal(refreshed.status, 200);
  assert.equal((await a.activity())[0]?.action, 'session.refresh');
  await a.call('PATCH', `/auth/users/${user.username}`, { state: 'disabled' });
  await a.call('DELETE', `/auth/users/${user.username}`);
  assert.equal((await refresh()).status, 401);
  assert.equal((await actions())[0], 'session.refresh', 'a refusal is recorded as such');
});

test('what no path takes is recorded in the name of who asked', async () => {
  const a = await testAppliance();
  const { ask, user } = await openWindow(a);
  assert.equal((await ask('DELETE', '/ks/keyrings')).status, 405);
  const [last] = await a.activity();
  assert.deepEqual([last?.keyid, last?.action, last?.status], [user.id, 'none', 405]);
});

test('without being extended it ends after an hour', async () => {
  const a = await testAppliance();
  const { ask } = await openWindow(a);
  a.advance(60 * minute - 1);
  assert.equal((await ask('GET', '/ks/keyrings')).status, 200);
  a.advance(1);
  assert.equal((await ask('GET', '/ks/keyrings')).status, 401);
});

test('logging out ends the session and takes the cookie away; so does every other end', async () => {
  const a = await testAppliance();
  const gone = /^kms-[\w-]{16}=; Path=\/; HttpOnly; SameSite=Strict; Max-Age=0$/;
  const one = await openWindow(a);
  const out = await one.ask('POST', '/auth/basic/logout');
  assert.deepEqual([out.status, out.body], [200, {}]);
  assert.match(out.headers.get('set-cookie') ?? '', gone);
  assert.equal((await one.ask('GET', '/ks/keyrings')).status, 401);

  const two = await openWindow(a);
  const body = { username: two.user.username, password: two.password };
  const { accessToken } = (await a.call('POST', '/auth/basic/login', body, { key: null })).body;
  assert.equal((await a.call('DELETE', '/auth/user/sessions', undefined, { key: accessToken })).status, 200);
  const over = await two.ask('GET', '/ks/keyrings');
  assert.equal(over.status, 401);
  assert.match(over.headers.get('set-cookie') ?? '', gone);

  const three = await openWindow(a);
  await a.call('DELETE', `/auth/users/${three.user.username}`);
  assert.match((await three.ask('GET', '/ks/keyrings')).headers.get('set-cookie') ?? '', gone);
});

test('a changed password ends the cookies of other browsers, not its own', async () => {
  const a = await testAppliance();
  const here = await openWindow(a);
  const body = { username: here.user.username, password: here.password };
  const there = await a.call('POST', '/auth/basic/login', body, {
    key: null,
    headers: { ...own, [consoleHeader]: newKey(8) },
  });
  const cookie = (there.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  const other = { ...own, [consoleHeader]: newKey(8), cookie };
  const status = async () => (await a.call('GET', '/ks/keyrings', undefined, { key: null, headers: other })).status;
  assert.equal(await status(), 200);
  const change = { currentPassword: here.password, newPassword: goodPassword };
  assert.equal((await here.ask('POST', '/auth/user/password', change)).status, 200);
  assert.deepEqual([await status(), (await here.ask('GET', '/ks/keyrings')).status], [401, 200]);
});

test('every way in gives the cookie, and never the token', async () => {
  const waysIn = sampled.filter(({ endpoint: { id, access, answer } }) => {
    const text = JSON.stringify(z.toJSONSchema(answer, { unrepresentable: 'any' }));
    // Programs log in with proofs, from no page.
    return access.kind === 'public' && id !== 'workloadLogin' && /"accesstoken"/i.test(text);
  });
  assert.equal(waysIn.length, 5, waysIn.map(({ endpoint }) => endpoint.id).join());
  for (const { endpoint, make } of waysIn) {
    const a = await testAppliance();
    const sample = await make(a);
    const came = await a.call(endpoint.method, urlOf(endpoint, sample), sample.body, { key: null, headers: own });
    assert.equal(came.status, 200, came.text);
    assert.ok(!came.text.includes('kmsat_'), endpoint.id);
    assert.equal(came.body.accessToken ?? came.body.accesstoken, '');
    const cookie = (came.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    const asked = await a.call('GET', '/auth/user/sessions', undefined, { key: null, headers: { ...own, cookie } });
    assert.equal(asked.status, 200, endpoint.id);
  }
});

test('a password without its second factor gives no cookie', async () => {
  const a = await testAppliance();
  const ada = await person(a);
  await addTotp(a, ada);
  const body = { username: ada.user.username, password: ada.password };
  const first = await a.call('POST', '/auth/basic/login', body, { key: null, headers: own });
  assert.deepEqual([first.status, first.headers.get('set-cookie')], [400, null]);
});

test('a tenant takes no cookie of another', async () => {
  const tenants = [
    { name: 'one', hosts: ['*'] },
    { name: 'two', hosts: ['two.test'] },
  ];
  const a = await testAppliance({ tenants });
  const { cookie } = await openWindow(a);
  const status = async (host: string) =>
    (await a.call('GET', '/ks/keyrings', undefined, { key: null, host, headers: { ...own, cookie } })).status;
  assert.deepEqual([await status('one.test'), await status('two.test')], [200, 401]);
});

test('the origin of a page is what its browser sends, or says by the host of the request', () => {
  const originAt = (headers: Readonly<Record<string, string>>): string =>
    // Cast: nothing else of a request tells its origin.
    originOf({ headers: { host: 'keys.example:8443', ...headers } } as unknown as ApiRequest, 'https://kms.test');
  const ofPage = { 'sec-fetch-site': 'same-origin' };
  assert.equal(originAt({ origin: 'http://keys.example:8443' }), 'http://keys.example:8443');
  assert.equal(originAt(ofPage), 'https://keys.example:8443', 'a GET has no origin');
  assert.equal(originAt({}), 'https://kms.test');
  assert.equal(originAt({ 'sec-fetch-site': 'cross-site' }), 'https://kms.test');
  assert.equal(originAt({ ...ofPage, host: 'a b' }), 'https://kms.test');
  for (const origin of ['https://evil.test', 'null', '', 'ftp://keys.example:8443']) {
    assert.equal(originAt({ ...ofPage, origin }), 'https://kms.test', origin);
  }
});
