// Nothing of one tenant is valid in another: everything that one tenant returns is sent to the other's address.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Answer, type Appliance, testAppliance } from '../support/appliance.ts';

const person = { username: 'ada', email: 'ada@x.example', firstName: 'Ada', lastName: 'Lovelace' };

interface Side {
  readonly a: Appliance;
  call(method: string, path: string, body?: object, key?: string | null): Promise<Answer>;
}

async function twoTenants(): Promise<[Side, Side]> {
  const a = await testAppliance({
    tenants: [
      { name: 'one', hosts: ['one.test'] },
      { name: 'two', hosts: ['two.test'] },
    ],
  });
  const side = (index: number, host: string): Side => ({
    a,
    call: (method, path, body, key = a.tenants[index]?.root.key ?? '') => a.call(method, path, body, { host, key }),
  });
  const sides: [Side, Side] = [side(0, 'one.test'), side(1, 'two.test')];
  for (const { call } of sides) {
    for (const name of ['r', 's']) await call('POST', '/ks/keyrings', { name });
    await call('POST', '/ks/encrypt', { ringname: 'r', asset: { data: { of: 'all' } } });
    for (const uid of ['a', 'b']) await call('POST', '/auth/accounts', { uid });
    for (const name of ['bob', 'eve']) {
      await call('POST', '/auth/users', { ...person, username: name, email: `${name}@x.example` });
    }
    const { accountId } = (await call('GET', '/auth/apikey')).body.data[0].references;
    await call('POST', '/auth/apikey', { accountId, flags: { 'keyring.r.read': true } });
    await call('POST', '/auth/apikey', { accountId, flags: { 'keyring.r.read': true } });
  }
  return sides;
}

test('credentials: keys and tokens of one are 401 at the other, whatever the endpoint', async () => {
  const [one, two] = await twoTenants();
  const { password } = (await one.call('POST', '/auth/users', person)).body;
  const { accessToken } = (await one.call('POST', '/auth/basic/login', { username: 'ada', password }, null)).body;
  const key = one.a.root.key;
  for (const credential of [key, accessToken]) {
    for (const [method, path, body] of [
      ['GET', '/ks/keyrings'],
      ['POST', '/ks/encrypt', { ringname: 'r' }],
      ['GET', '/auth/users/ada'],
      ['GET', '/auth/basic/refresh'],
      ['POST', '/auth/basic/logout', {}],
      ['POST', '/auth/search/activity', {}],
      ['POST', '/auth/validate', { key }],
    ] as const) {
      const answer = await two.call(method, path, body, credential);
      assert.deepEqual([answer.status, Object.keys(answer.body)], [401, ['message']], `${method} ${path}`);
    }
  }
  assert.equal((await one.call('GET', '/auth/users/ada', undefined, accessToken)).status, 200, 'none of it ended');
  assert.deepEqual((await two.call('POST', '/auth/validate', { key })).body, { valid: false });
  assert.equal((await two.call('PUT', '/auth/apikey', { op: 'merge', key, active: false })).status, 404);
  await two.call('DELETE', `/auth/apikey/${key}`);
  assert.equal((await one.call('GET', '/ks/keyrings')).status, 200, 'nor can the other delete it');
  const login = await two.call('POST', '/auth/basic/login', { username: 'ada', password }, null);
  assert.equal(login.status, 400);
});

test('one-time tokens of one are invalid at the other, and stay good at their own', async () => {
  const [one, two] = await twoTenants();
  const { loginUrl } = (await one.call('POST', '/auth/user/invite', person)).body;
  const token = new URL(loginUrl).searchParams.get('token') ?? '';
  const password = 'Corr3ct horse';
  for (const [status, side] of [
    [401, two],
    [200, one],
  ] as const) {
    const validated = await side.call('GET', `/auth/user/invite-validate?token=${token}`, undefined, null);
    assert.equal(validated.status, status);
    if (status === 401) assert.deepEqual(validated.body, { state: 'invalid' });
    const completed = await side.call('POST', '/auth/user/invite-complete', { token, password }, null);
    assert.equal(completed.status, status);
  }
  const made = await one.a.call(
    'POST',
    '/local/reset-link',
    { username: 'ada' },
    { env: { local: true }, key: null, headers: { 'kms-tenant': 'one' } },
  );
  const reset = { token: new URL(made.body.resetUrl).searchParams.get('token'), password: 'N3w horse!' };
  assert.deepEqual((await two.call('POST', '/auth/basic/reset-password-complete', reset, null)).status, 400);
  assert.deepEqual((await one.call('POST', '/auth/basic/reset-password-complete', reset, null)).status, 200);
});

test('hashes and headers of one cannot be decoded by the other', async () => {
  const [one, two] = await twoTenants();
  const made = (await one.call('POST', '/ks/encrypt', { ringname: 'r', asset: { data: { a: 1 } } })).body;
  assert.equal((await two.call('GET', `/ks/hash/${made.hash}`)).status, 400);
  assert.equal((await two.call('GET', `/ks/header/${made.header}`)).status, 404);
  for (const body of [{ hash: made.hash }, { header: made.header }, { hash: made.hash, header: made.header }]) {
    assert.equal((await two.call('POST', '/ks/decrypt', body)).status, 400);
    assert.equal((await one.call('POST', '/ks/decrypt', body)).status, 200);
  }
});

test('ids of one are unknown to the other, in every place that takes one', async () => {
  const [one, two] = await twoTenants();
  const first = async (path: string) => (await one.call('GET', path)).body.data.at(-1);
  const ring = await first('/ks/keyrings');
  const account = await first('/auth/accounts');
  const apikey = await first('/auth/apikey');
  const user = await first('/auth/users');
  const asset = (await one.call('POST', '/assets/search', {})).body.data[0];
  const activity = (await one.call('POST', '/auth/search/activity', {})).body.data[0];
  const asym = (await one.call('POST', '/asym/keyrings', { name: 'x' })).body;
  for (const [status, method, path, body] of [
    [404, 'GET', `/ks/keyrings/${ring.id}?id=true`],
    [404, 'GET', `/ks/keyrings/${ring.id}/keys?id=true`],
    [404, 'GET', `/ks/keyrings/r/keys/${ring.activeKey}`],
    [404, 'GET', `/asym/keyrings/${asym.ring.id}/keys/${asym.key.id}?id=true`],
    [404, 'POST', `/ks/keyrings/${ring.id}/restore`, {}],
    [404, 'GET', `/assets/${asset.id}`],
    [404, 'DELETE', `/assets/${asset.id}`],
    [404, 'POST', '/ks/encrypt', { ringname: 'r', asset: { assetId: asset.id } }],
    [400, 'POST', '/ks/encrypt', { ringname: 'r', asset: { parents: [asset.id] } }],
    [404, 'GET', `/auth/accounts/${account.id}`],
    [404, 'PATCH', `/auth/accounts/${account.id}`, { notes: 'x' }],
    [404, 'DELETE', `/auth/accounts/${account.id}`],
    [404, 'GET', `/auth/accounts/${account.id}/apikeys`],
    [404, 'POST', '/auth/apikey', { accountId: account.id }],
    [404, 'GET', `/auth/apikey/${apikey.keyid}`],
    [404, 'GET', `/auth/apikey/${apikey.keyid}/props`],
    [404, 'PUT', '/auth/apikeyid', { op: 'merge', apikeyid: apikey.keyid, active: false }],
    [404, 'DELETE', `/auth/users/${user.id}?id=true`],
    [404, 'GET', `/auth/activity/${activity.id}`],
    [404, 'GET', `/auth/search/keyring/${ring.id}/apikey?id=true`],
  ] as const) {
    const answer = await two.call(method, path, body);
    assert.equal(answer.status, status, `${method} ${path}: ${answer.text}`);
  }
  for (const filter of [{ keyid: apikey.keyid }, { accountId: account.id }]) {
    assert.deepEqual((await two.call('POST', '/auth/search/activity', filter)).body.data, []);
  }
  for (const filter of [{ apikeyId: apikey.keyid }, { keyringId: ring.id }, { parents: [asset.id] }]) {
    assert.deepEqual((await two.call('POST', '/assets/search', filter)).body.data, []);
  }
});

test('cursors of one are 400 at the other', async () => {
  const [one, two] = await twoTenants();
  for (const [method, path, body] of [
    ['GET', '/ks/keyrings'],
    ['GET', '/auth/accounts'],
    ['GET', '/auth/apikey'],
    ['GET', '/auth/users'],
    ['GET', '/auth/search/keyring/r/apikey'],
    ['POST', '/auth/search/activity', {}],
  ] as const) {
    const page = (await one.call(method, `${path}?limit=1`, body)).body;
    const next = `${path}?limit=1&cursor=${page.pagination.nextCursor}`;
    assert.equal((await one.call(method, next, body)).status, 200, next);
    const answer = await two.call(method, next, body);
    assert.deepEqual([answer.status, 'cursor' in answer.body.errors], [400, true], next);
  }
});

test('what one does is in its own activity log alone', async () => {
  const [one, two] = await twoTenants();
  const ids = async ({ call }: Side): Promise<string[]> =>
    (await call('POST', '/auth/search/activity', {})).body.data.map(({ id }: { id: string }) => id);
  const before = await ids(two);
  await two.call('GET', '/ks/keyrings', undefined, one.a.root.key);
  await one.call('POST', '/ks/rotate', { ringname: 'r' });
  assert.deepEqual((await ids(two)).slice(1), before);
  const mine = new Set(await ids(one));
  assert.ok(!(await ids(two)).some((id) => mine.has(id)));
});
