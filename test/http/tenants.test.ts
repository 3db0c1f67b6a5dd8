// Selecting the tenant: by Host, or by name on the machine itself; and the local administrator.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testAppliance } from '../support/appliance.ts';

const two = () =>
  testAppliance({
    tenants: [
      { name: 'one', hosts: ['one.test', 'uno.test'] },
      { name: 'two', hosts: ['two.test'] },
    ],
  });

test('the Host decides, port and case aside; an unknown one is 404', async () => {
  const a = await two();
  const [one, second] = a.tenants;
  const ask = (host: string, key = '') => a.call('GET', '/ks/keyrings', undefined, { host, key });
  for (const host of ['one.test', 'ONE.TEST', 'one.test:8080', 'one.test:', 'one.test.', 'uno.test']) {
    assert.equal((await ask(host, one?.root.key)).status, 200);
    assert.equal((await ask(host, second?.root.key)).status, 401, "another tenant's key");
  }
  assert.equal((await ask('two.test', second?.root.key)).status, 200);
  for (const host of ['three.test', 'one.test.evil', 'sub.one.test', '*']) {
    const answer = await ask(host, one?.root.key);
    assert.equal(answer.status, 404);
    assert.deepEqual(Object.keys(answer.body), ['message']);
  }
});

test('the tenant that lists * answers what no other lists', async () => {
  const a = await testAppliance({
    tenants: [
      { name: 'any', hosts: ['*'] },
      { name: 'own', hosts: ['own.test'] },
    ],
  });
  const [any, own] = a.tenants;
  const ask = (host: string, key = '') => a.call('GET', '/ks/keyrings', undefined, { host, key });
  assert.equal((await ask('whatever', any?.root.key)).status, 200);
  assert.equal((await ask('own.test', any?.root.key)).status, 401);
  assert.equal((await ask('own.test', own?.root.key)).status, 200);
});

test('hashes, headers and ids of another tenant mean nothing here', async () => {
  const a = await two();
  const [one, second] = a.tenants;
  const mine = { host: 'one.test', key: one?.root.key ?? '' };
  const theirs = { host: 'two.test', key: second?.root.key ?? '' };
  for (const each of [mine, theirs]) await a.call('POST', '/ks/keyrings', { name: 'r' }, each);
  const made = (await a.call('POST', '/ks/encrypt', { ringname: 'r', asset: {} }, mine)).body;
  const status = async (method: string, path: string, body?: object) =>
    (await a.call(method, path, body, theirs)).status;
  assert.equal(await status('GET', `/ks/hash/${made.hash}`), 400);
  assert.equal(await status('GET', `/ks/header/${made.header}`), 404);
  assert.equal(await status('POST', '/ks/decrypt', { header: made.header }), 400);
  assert.equal(await status('GET', `/assets/${made.asset.id}`), 404);
  assert.equal(await status('GET', `/ks/keyrings/${made.ringId}?id=true`), 404);
  assert.equal(await status('GET', `/auth/apikey/${one?.root.keyid}`), 404);
});

test('a local request without a credential is the administrator; with one it is that key', async () => {
  const a = await testAppliance();
  const local = { env: { local: true }, key: null, host: 'any.where' };
  assert.equal((await a.call('POST', '/ks/keyrings', { name: 'x' }, local)).status, 200);
  const [record] = await a.activity();
  assert.deepEqual([record?.keyid, record?.action, record?.validAction], ['local', 'keyring.create', true]);
  const { key } = await a.keyWith('keyring.list');
  assert.equal((await a.call('GET', '/ks/keyrings', undefined, { env: { local: true }, key })).status, 200);
  assert.equal((await a.call('GET', '/auth/apikey', undefined, { env: { local: true }, key })).status, 403);
  assert.equal((await a.call('GET', '/ks/keyrings', undefined, { env: { local: true }, key: 'wrong' })).status, 401);
  assert.equal((await a.call('GET', '/ks/keyrings', undefined, { env: { local: false }, key: null })).status, 401);
});

test('a local request names its tenant where there are several', async () => {
  const a = await two();
  const ask = (headers: Record<string, string>) =>
    a.call('GET', '/ks/keyrings', undefined, { env: { local: true }, key: null, headers });
  assert.equal((await ask({ 'kms-tenant': 'two' })).status, 200);
  assert.equal((await ask({ 'kms-tenant': 'TWO' })).status, 200);
  for (const [headers, status] of [
    [{}, 400],
    [{ 'kms-tenant': 'three' }, 404],
  ] as const) {
    const answer = await ask(headers);
    assert.equal(answer.status, status);
    assert.match(answer.body.message, /one, two/);
  }
  const remote = { host: 'one.test', key: a.tenants[0]?.root.key ?? '', headers: { 'kms-tenant': 'two' } };
  assert.equal(
    (await a.call('GET', '/ks/keyrings', undefined, remote)).status,
    200,
    'from elsewhere the header means nothing',
  );
});

test('local endpoints are unknown to everybody else', async () => {
  const seen: unknown[] = [];
  const a = await testAppliance({
    local: {
      sealAppliance: async () => ({ sealed: false, kinds: [] }),
      async updateTenant(input) {
        seen.push(input);
        return {
          id: 'x',
          name: 'x',
          hosts: [],
          url: '',
          awsAccount: '',
          limits: {},
          secondFactorFor: [],
          custody: 'any',
          createdAt: '',
          updatedAt: '',
        };
      },
    },
  });
  const env = { local: true };
  assert.equal((await a.call('POST', '/local/seal', undefined, { env, key: null })).body.sealed, false);
  const path = '/local/tenants/x';
  assert.equal((await a.call('PATCH', `${path}?y=1`, { name: 'z' }, { env, key: null })).status, 200);
  assert.deepEqual(JSON.parse(JSON.stringify(seen)), [{ params: { name: 'x' }, query: {}, body: { name: 'z' } }]);
  assert.equal((await a.call('PATCH', path, undefined, { env, key: null, raw: '[]' })).status, 400);
  assert.equal((await a.call('PUT', '/local/seal', undefined, { env, key: null })).status, 405);
  assert.equal((await a.call('POST', path, undefined, { env, key: null })).status, 405);
  for (const method of ['POST', 'PUT']) assert.equal((await a.call(method, '/local/seal')).status, 404);
});
