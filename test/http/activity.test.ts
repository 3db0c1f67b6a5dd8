// Activity through the API: the fields of a record, the search by each filter alone and together, and what a search shows of
// itself.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Appliance, testAppliance } from '../support/appliance.ts';
import { startTime } from '../support/context.ts';

const search = async (a: Appliance, body: object) =>
  (await a.call('POST', '/auth/search/activity?limit=1000', body)).body.data as Record<string, unknown>[];

test('a record has its fields, and is found under its id', async () => {
  const a = await testAppliance();
  await a.call('POST', '/ks/keyrings', { name: 'Payroll' });
  const [record] = await search(a, { action: 'keyring.create' });
  assert.ok(record);
  const { id, ...rest } = record;
  assert.match(String(id), /^act_[0-9a-hjkmnp-tv-z]{26}$/);
  assert.deepEqual(rest, {
    keyid: a.root.keyid,
    createdAt: startTime,
    action: 'keyring.create',
    ringname: 'payroll',
    validAction: true,
    status: 200,
    props: {},
  });
  assert.deepEqual((await a.call('GET', `/auth/activity/${id}`)).body, record);
  const unknown = await a.call('GET', '/auth/activity/act_00000000000000000000000000');
  assert.equal(unknown.status, 404);
  const [last] = await a.activity();
  assert.deepEqual([last?.action, last?.status, last?.validAction], ['activity.read', 404, true]);
});

test('each filter alone and together', async () => {
  const a = await testAppliance();
  const second = (await a.call('POST', '/auth/accounts', { uid: 'second' })).body;
  const made = (await a.call('POST', '/auth/apikey', { accountId: second.id, flags: { 'keyring.list': true } })).body;
  const { key, keyid } = made;
  await a.call('POST', '/ks/keyrings', { name: 'Ring.A' });
  await a.call('GET', '/ks/keyrings', undefined, { key });
  a.advance(1000);
  await a.call('GET', '/ks/keyrings/ring.a', undefined, { key });
  await a.call('GET', '/ks/keyrings/RING.A');
  await a.call('POST', '/auth/validate', {
    key,
    activity: { action: 'door.open', props: { door: { no: 7, side: 'n' } } },
  });

  const actions = async (body: object) => (await search(a, body)).map(({ action, status }) => `${action} ${status}`);
  assert.deepEqual(await actions({ keyid }), ['door.open 200', 'keyring.read 403', 'keyring.list 200']);
  assert.deepEqual(await actions({ accountUid: 'second' }), await actions({ keyid }));
  assert.deepEqual(await actions({ accountId: second.id }), await actions({ keyid }));
  assert.deepEqual(await actions({ accountId: second.id, keyid: a.root.keyid }), []);
  assert.deepEqual(await actions({ accountUid: 'nobody' }), []);
  assert.deepEqual(await actions({ keyid, valid: false }), ['keyring.read 403']);
  assert.deepEqual(await actions({ ring: 'ring.A' }), ['keyring.read 200', 'keyring.read 403', 'keyring.create 200']);
  assert.deepEqual(await actions({ ring: 'ring.a', keyid }), ['keyring.read 403']);
  assert.deepEqual(await actions({ keyid, start: startTime + 1000 }), ['door.open 200', 'keyring.read 403']);
  assert.deepEqual(await actions({ keyid, start: startTime, end: startTime }), ['keyring.list 200']);
  assert.deepEqual(await actions({ props: { door: { no: 7 } } }), ['door.open 200']);
  assert.deepEqual(await actions({ props: { door: { no: 8 } } }), []);
  assert.deepEqual(await actions({ action: 'door.open', keyid, valid: true, props: {} }), ['door.open 200']);
});

test('a search is recorded before it answers, and does not show itself', async () => {
  const a = await testAppliance();
  const before = (await a.activity()).length;
  const found = await search(a, {});
  assert.equal(found.length, before);
  const after = await a.activity();
  assert.equal(after.length, before + 1);
  assert.equal(after[0]?.action, 'activity.read');
});

test('a search tells which record is its own, granted or denied; nothing else does', async () => {
  const a = await testAppliance();
  const { id: accountId } = (await a.call('POST', '/auth/accounts', { uid: 'none' })).body;
  const none = (await a.call('POST', '/auth/apikey', { accountId, flags: {} })).body.key;
  for (const [key, expected] of [
    [a.root.key, 200],
    [String(none), 403],
  ] as const) {
    const { status, headers } = await a.call('POST', '/auth/search/activity', {}, { key });
    assert.equal(status, expected);
    assert.equal(headers.get('kms-activity'), (await a.activity())[0]?.id);
  }
  assert.equal((await a.call('GET', '/ks/keyrings')).headers.get('kms-activity'), null);
  assert.equal(
    (await a.call('POST', '/auth/search/activity', {}, { key: 'kms_unknown' })).headers.get('kms-activity'),
    null,
  );
});

test('every request with a known credential leaves exactly one record', async () => {
  const a = await testAppliance();
  const requests: readonly [string, string, unknown, number][] = [
    ['GET', '/ks/keyrings', undefined, 200],
    ['GET', '/ks/keyrings?limit=0', undefined, 400],
    ['POST', '/ks/keyrings', { name: '!' }, 400],
    ['POST', '/ks/encrypt', { ringname: 'none' }, 404],
    ['PATCH', '/ks/encrypt', undefined, 405],
    ['GET', '/auth/activity/x', undefined, 404],
    ['POST', '/auth/search/activity', { start: 'x' }, 400],
  ];
  for (const [method, path, body, expected] of requests) {
    const before = (await a.activity()).length;
    assert.equal((await a.call(method, path, body)).status, expected, path);
    const after = await a.activity();
    assert.equal(after.length, before + 1, path);
    assert.equal(after[0]?.status, expected);
  }
});
