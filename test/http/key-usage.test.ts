// Usage of keys: when, by whom and how often they were requested, as the list of a ring's keys reports it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Appliance, type ApplianceOptions, testAppliance } from '../support/appliance.ts';
import { startTime } from '../support/context.ts';

const hour = 60 * 60 * 1000;
const day = 24 * hour;
/** The start of the day after the one on which the test's clock starts. */
const midnight = Date.UTC(2026, 0, 3);

async function withRing(options: ApplianceOptions = {}) {
  const a = await testAppliance(options);
  const { ring, key } = (await a.call('POST', '/ks/keyrings', { name: 'Payroll' })).body;
  return { a, ring, keyId: key.id };
}

async function usages(a: Appliance, query = '') {
  const { status, body } = await a.call('GET', `/ks/keyrings/payroll/keys?usage=true${query}`);
  assert.equal(status, 200, JSON.stringify(body));
  return body.data.map(({ usage }: { usage: object }) => usage);
}

async function encrypt(a: Appliance, body: object = {}, key?: string) {
  const answer = await a.call('POST', '/ks/encrypt', { ringname: 'payroll', ...body }, key ? { key } : {});
  assert.equal(answer.status, 200);
  return answer.body;
}

const unused = {
  since: startTime,
  lastEncryptAt: null,
  lastEncryptBy: null,
  lastDecryptAt: null,
  lastDecryptBy: null,
  days: [],
};

test('each key tells when and by whom it was last used, and how often on which day', async () => {
  const { a } = await withRing();
  assert.deepEqual(await usages(a), [unused]);
  const one = await a.keyWith('keyring.payroll.encrypt');
  const two = await a.keyWith('keyring.payroll.decrypt');
  const { header } = await encrypt(a);
  a.advance(1000);
  await encrypt(a, {}, one.key);
  await a.call('POST', '/ks/rotate', { ringname: 'payroll' });
  a.advance(hour);
  for (let i = 0; i < 3; i++) await a.call('POST', '/ks/decrypt', { header }, { key: two.key });
  const [older, newer] = await usages(a);
  assert.deepEqual(older, {
    since: startTime,
    lastEncryptAt: startTime + 1000,
    lastEncryptBy: one.keyid,
    lastDecryptAt: startTime + 1000 + hour,
    lastDecryptBy: two.keyid,
    days: [{ day: '2026-01-02', encrypts: 2, decrypts: 3 }],
  });
  assert.deepEqual(newer, { ...unused, since: startTime + 1000 });
});

test('days begin at midnight, UTC, and a day without a use is left out', async () => {
  const { a } = await withRing();
  const { header } = await encrypt(a);
  a.advance(midnight - 1 - startTime);
  await a.call('POST', '/ks/decrypt', { header });
  a.advance(1);
  await a.call('POST', '/ks/decrypt', { header });
  a.advance(2 * day - 1);
  await a.call('POST', '/ks/decrypt', { header });
  a.advance(1);
  await encrypt(a);
  const [usage] = await usages(a);
  assert.deepEqual(usage.days, [
    { day: '2026-01-02', encrypts: 1, decrypts: 1 },
    { day: '2026-01-03', encrypts: 0, decrypts: 1 },
    { day: '2026-01-04', encrypts: 0, decrypts: 1 },
    { day: '2026-01-05', encrypts: 1, decrypts: 0 },
  ]);
});

test('a hundred days are told, and the last use whenever it was', async () => {
  const { a } = await withRing();
  const { header } = await encrypt(a);
  await a.call('POST', '/ks/decrypt', { header });
  a.advance(99 * day);
  assert.equal((await usages(a))[0].days.length, 1);
  a.advance(day);
  assert.deepEqual((await usages(a))[0].days, []);
  // The same slot as a hundred days before.
  await encrypt(a);
  assert.deepEqual((await usages(a))[0].days, [{ day: '2026-04-12', encrypts: 1, decrypts: 0 }]);
  a.advance(1000 * day);
  const [usage] = await usages(a);
  assert.deepEqual([usage.lastEncryptAt, usage.lastDecryptAt, usage.days], [startTime + 100 * day, startTime, []]);
});

test('a decrypt that hands out the key under a 422 counts; what hands out none does not', async () => {
  const { a, keyId } = await withRing();
  const { header, hash, asset } = await encrypt(a, { asset: { data: { x: 1 } } });
  a.advance(1000);
  for (const [method, path, body, status] of [
    ['POST', '/ks/encrypt', { ringname: 'payroll', asset: { assetId: 'asset_none' } }, 404],
    ['POST', '/ks/decrypt', { hash: 'x' }, 400],
    ['POST', '/ks/decrypt', { hash, header: 'x' }, 400],
    ['GET', `/ks/hash/${hash}`, undefined, 200],
    ['GET', `/ks/header/${header}`, undefined, 200],
    ['GET', `/ks/keyrings/payroll/keys/${keyId}`, undefined, 200],
  ] as const) {
    assert.equal((await a.call(method, path, body)).status, status, path);
  }
  const { key } = await a.keyWith('keyring.other.*');
  assert.equal((await a.call('POST', '/ks/decrypt', { header }, { key })).status, 403);
  const days = [{ day: '2026-01-02', encrypts: 1, decrypts: 0 }];
  assert.deepEqual(await usages(a), [{ ...unused, lastEncryptAt: startTime, lastEncryptBy: a.root.keyid, days }]);

  assert.equal((await a.call('DELETE', `/assets/${asset.id}`)).status, 200);
  const refused = await a.call('POST', '/ks/decrypt', { header });
  assert.deepEqual([refused.status, refused.body.key.id], [422, keyId]);
  const [usage] = await usages(a);
  assert.deepEqual([usage.lastDecryptAt, usage.days[0].decrypts], [startTime + 1000, 1]);
});

test('a ring that was deleted and restored tells what it told before', async () => {
  const { a, ring } = await withRing();
  const { header } = await encrypt(a);
  assert.equal((await a.call('DELETE', '/ks/keyrings/payroll')).status, 200);
  assert.equal((await a.call('POST', '/ks/decrypt', { header })).status, 404);
  assert.equal((await a.call('GET', '/ks/keyrings/payroll/keys?usage=true')).status, 404);
  assert.equal((await a.call('POST', `/ks/keyrings/${ring.id}/restore`)).status, 200);
  const days = [{ day: '2026-01-02', encrypts: 1, decrypts: 0 }];
  assert.deepEqual(await usages(a), [{ ...unused, lastEncryptAt: startTime, lastEncryptBy: a.root.keyid, days }]);
});

test('nobody learns it who may not read the ring, and another tenant counts for itself', async () => {
  const { a } = await withRing({
    tenants: [
      { name: 'one', hosts: ['kms.test'] },
      { name: 'two', hosts: ['two.test'] },
    ],
  });
  const other = { host: 'two.test', key: a.tenants[1]?.root.key ?? '' };
  await a.call('POST', '/ks/keyrings', { name: 'payroll' }, other);
  const { header } = await encrypt(a);
  assert.notEqual((await a.call('POST', '/ks/decrypt', { header }, other)).status, 200);
  const theirs = await a.call('GET', '/ks/keyrings/payroll/keys?usage=true', undefined, other);
  assert.deepEqual(theirs.body.data[0].usage, unused);
  const { key } = await a.keyWith('keyring.payroll.encrypt', 'keyring.list');
  assert.equal((await a.call('GET', '/ks/keyrings/payroll/keys?usage=true', undefined, { key })).status, 403);
});

test('it is told only where it is asked for, by true or false alone, and a page of it has 200 keys', async () => {
  const { a } = await withRing();
  for (const query of ['', '?usage=false']) {
    const { body } = await a.call('GET', `/ks/keyrings/payroll/keys${query}`);
    assert.deepEqual(Object.keys(body.data[0]).sort(), ['createdAt', 'id', 'kem', 'props', 'publicKey', 'type']);
  }
  for (const wrong of ['', '1', 'yes', 'TRUE']) {
    assert.equal((await a.call('GET', `/ks/keyrings/payroll/keys?usage=${wrong}`)).status, 400, wrong);
  }
  for (let i = 0; i < 200; i++) await a.call('POST', '/ks/rotate', { ringname: 'payroll' });
  const first = await a.call('GET', '/ks/keyrings/payroll/keys?usage=true&limit=1000');
  assert.deepEqual([first.body.data.length, first.body.pagination.hasMore], [200, true]);
  const cursor = encodeURIComponent(first.body.pagination.nextCursor);
  assert.equal((await usages(a, `&limit=1000&cursor=${cursor}`)).length, 1);
});
