// Activity through the API: the fields of a record, the search by each filter alone and together, and the records of
// searches themselves.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { actionOf } from '../../src/api/endpoint.ts';
import { endpoints } from '../../src/api/endpoints.ts';
import { verifyExport } from '../../src/appliance/verify-export.ts';
import { isOwnAction, ownActions } from '../../src/model/actions.ts';
import { type Appliance, testAppliance } from '../support/appliance.ts';
import { startTime } from '../support/context.ts';

const search = async (a: Appliance, body: object) =>
  (await a.call('POST', '/auth/search/activity?limit=1000', body)).body.data as Record<string, unknown>[];

test('a record has its fields, and is found under its id', async () => {
  const a = await testAppliance();
  const env = { remoteAddress: '203.0.113.7' };
  const { ring, key } = (await a.call('POST', '/ks/keyrings', { name: 'Payroll' }, { env })).body;
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
    address: '203.0.113.7',
    props: {
      custody: 'client',
      object: { type: 'keyring', id: ring.id, name: 'payroll' },
      objects: [{ type: 'key', id: key.id }],
    },
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

/** Callers who act from several addresses; one grants flags, and one revokes them. */
async function audited() {
  const a = await testAppliance();
  const at = async (address: string, method: string, path: string, body?: object) => {
    const answer = await a.call(method, path, body, { env: { remoteAddress: address } });
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  };
  const fields = { username: 'Ada', email: 'ada@example.org', firstName: 'A', lastName: 'L' };
  const { user } = await at('192.0.2.7', 'POST', '/auth/users', { ...fields, flags: { 'Keyring.*.Decrypt': true } });
  await at('192.0.2.9', 'PATCH', '/auth/users/ada', { flags: { 'keyring.list': true } });
  await at('2001:db8::7', 'POST', '/ks/keyrings', { name: 'payroll' });
  const flags = { '*': true };
  const { keyid } = await at('2001:db8::7', 'POST', '/auth/apikey', { accountId: a.accountId, flags });
  const lines = async (body: object) => (await search(a, body)).map(({ action, address }) => `${action} ${address}`);
  return { a, user, keyid, lines };
}

test('who gave rights away, to whom, when and from where is one search', async () => {
  const { a, user, keyid, lines } = await audited();
  const created = 'user.create 192.0.2.7';
  const updated = 'user.update 192.0.2.9';
  const made = 'apikey.create 2001:db8::7';
  assert.deepEqual(await lines({ granted: true }), [made, updated, created]);
  assert.deepEqual(await lines({ revoked: true }), [updated]);
  // A wildcard grants every flag it includes.
  assert.deepEqual(await lines({ granted: 'keyring.payroll.DECRYPT' }), [made, created]);
  assert.deepEqual(await lines({ granted: 'keyring.*.decrypt' }), [made, created]);
  assert.deepEqual(await lines({ granted: 'keyring.payroll.encrypt' }), [made]);
  assert.deepEqual(await lines({ granted: 'keyring.list' }), [made, updated]);
  assert.deepEqual(await lines({ granted: '*' }), [made]);
  assert.deepEqual(await lines({ revoked: 'keyring.payroll.decrypt' }), [updated]);
  assert.deepEqual(await lines({ granted: true, object: user.id }), [updated, created]);
  assert.deepEqual(await lines({ granted: true, object: keyid }), [made]);
  const [record] = await search(a, { granted: '*' });
  assert.deepEqual(record?.props, { object: { type: 'apikey', id: keyid }, granted: ['*'] });
});

test('what an address did, or a network, is one search', async () => {
  const { lines } = await audited();
  assert.deepEqual(await lines({ address: '192.0.2.7' }), ['user.create 192.0.2.7']);
  assert.deepEqual(await lines({ address: '::ffff:192.0.2.7' }), ['user.create 192.0.2.7']);
  assert.deepEqual(await lines({ address: '192.0.2.0/28' }), ['user.update 192.0.2.9', 'user.create 192.0.2.7']);
  assert.equal((await lines({ address: '2001:DB8::/32' })).length, 2);
  assert.deepEqual(await lines({ address: '2001:db8::/32', action: 'keyring.create' }), ['keyring.create 2001:db8::7']);
  assert.deepEqual(await lines({ address: '198.51.100.0/24' }), []);
  assert.equal((await lines({ address: '0.0.0.0/0' })).length, 2);
});

test('what was done to something is found by its id and its name', async () => {
  const { a, user, lines } = await audited();
  const history = ['user.update 192.0.2.9', 'user.create 192.0.2.7'];
  assert.deepEqual(await lines({ object: user.id }), history);
  assert.deepEqual(await lines({ object: 'ADA' }), history);
  assert.deepEqual(await lines({ object: 'payroll' }), ['keyring.create 2001:db8::7']);
  assert.deepEqual(await lines({ object: 'Lovelace' }), []);
  // Reported activity does not count as done to its objects.
  const { key } = await a.keyWith();
  const props = { object: { type: 'user', id: user.id, name: 'ada' }, granted: ['*'], revoked: ['*'] };
  await a.call('POST', '/auth/validate', { key, activity: { action: 'door.open', props } });
  assert.deepEqual(await lines({ object: user.id }), history);
  assert.ok(!(await lines({ granted: true })).some((line) => line.startsWith('door')));
  assert.deepEqual(await lines({ action: 'door.open', props }), ['door.open undefined']);
});

test('all about one thing is what it did, what was done with it and to it, page by page and recorded once', async () => {
  const a = await testAppliance();
  const { id: accountId } = (await a.call('POST', '/auth/accounts', { uid: 'second' })).body;
  const { key, keyid } = (await a.call('POST', '/auth/apikey', { accountId, flags: { '*': true } })).body;
  await a.call('POST', '/ks/keyrings', { name: 'Payroll' }, { key });
  for (let times = 0; times < 3; times++) {
    await a.call('GET', '/ks/keyrings/payroll');
    await a.call('GET', '/ks/keyrings', undefined, { key });
    await a.call('PUT', '/auth/apikey', { op: 'merge', apikeyid: keyid, name: `batch ${times}` });
  }
  await a.call('DELETE', '/ks/keyrings/payroll');
  const all = (await search(a, {})).filter(({ action }) => action !== 'activity.read');
  const ids = (records: readonly Record<string, unknown>[]) => records.map(({ id }) => id);
  const paged = async (about: string, limit: number) => {
    const found: Record<string, unknown>[] = [];
    for (let cursor: string | undefined; ; ) {
      const path = `/auth/search/activity?limit=${limit}${cursor === undefined ? '' : `&cursor=${cursor}`}`;
      const before = (await a.activity()).length;
      const { data, pagination } = (await a.call('POST', path, { about })).body;
      assert.equal((await a.activity()).length, before + 1);
      found.push(...data);
      cursor = pagination.nextCursor;
      if (cursor === undefined) return found;
    }
  };
  const isOfKey = (record: Record<string, unknown>) =>
    record.keyid === keyid || JSON.stringify(record.props).includes(keyid);
  for (const limit of [1, 2, 3, 1000]) {
    assert.deepEqual(ids(await paged(keyid, limit)), ids(all.filter(isOfKey)), String(limit));
    assert.deepEqual(ids(await paged('PAYROLL', limit)), ids(all.filter(({ ringname }) => ringname === 'payroll')));
    const isOfAccount = ({ keyid: by, props }: Record<string, unknown>) =>
      by === keyid || JSON.stringify(props).includes(accountId);
    assert.deepEqual(ids(await paged(accountId, limit)), ids(all.filter(isOfAccount)));
  }
  assert.deepEqual(await paged('nobody', 10), []);
});

test('all about one thing is found by its id and by its name alike', async () => {
  const a = await testAppliance();
  await a.call('POST', '/ks/keyrings', { name: 'payroll' });
  await a.call('DELETE', '/ks/keyrings/payroll');
  a.advance(1000);
  const ringId = (await a.call('POST', '/ks/keyrings', { name: 'Payroll' })).body.ring.id;
  const keyId = (await a.call('POST', '/managed-keys', { name: 'payroll' })).body.key.id;
  const till = await a.keyWith('keyring.list');
  await a.call('PUT', '/auth/apikeyid', { apikeyid: till.keyid, op: 'merge', name: 'till' });
  for (let times = 0; times < 4; times++) {
    await a.call('GET', '/ks/keyrings/payroll');
    await a.call('GET', '/managed-keys/payroll');
    await a.call('GET', '/ks/keyrings', undefined, till);
    await a.call('PUT', '/auth/apikeyid', { apikeyid: till.keyid, op: 'merge', props: { times } });
  }
  const actions = async (about: string) => (await search(a, { about })).map(({ action }) => action);
  const four = (action: string) => Array.from({ length: 4 }, () => action);
  assert.deepEqual(await actions(keyId), [...four('key.read'), 'key.create']);
  assert.deepEqual(await actions(ringId), [...four('keyring.read'), 'keyring.create'], 'without its predecessor');
  const byId = await search(a, { about: till.keyid });
  assert.ok(byId.length >= 10);
  assert.deepEqual(await search(a, { about: 'till' }), byId);
  assert.deepEqual(await actions(`ring_${'0'.repeat(26)}`), []);
  await a.call('DELETE', '/ks/keyrings/payroll');
  assert.deepEqual(await actions(ringId), ['keyring.delete', ...four('keyring.read'), 'keyring.create']);
  a.advance(1000);
  await a.call('POST', '/ks/keyrings', { name: 'payroll' });
  assert.deepEqual((await actions(ringId)).length, 6, 'without its successor');
  for (let times = 0; times < 5; times++) {
    const { keyid } = await a.keyWith();
    await a.call('PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', name: 'till' });
  }
  const many = await a.call('POST', '/auth/search/activity', { about: 'till' });
  assert.equal(many.status, 400);
  assert.match(many.body.errors.about, /more than 5 API keys: give the id of one/);
});

test('rings and managed keys of one name are told apart, page by page', async () => {
  const a = await testAppliance();
  await a.call('POST', '/ks/keyrings', { name: 'Payroll' });
  await a.call('POST', '/asym/keyrings', { name: 'Payroll' });
  await a.call('POST', '/managed-keys', { name: 'payroll' });
  await a.call('POST', '/ks/keyrings', { name: 'other' });
  for (let times = 0; times < 5; times++) await a.call('GET', '/managed-keys/payroll');
  await a.call('GET', '/ks/keyrings/payroll');
  const account = (await a.call('POST', '/auth/accounts', { uid: 'payroll' })).body;
  assert.ok(account.id);
  for (const [aboutType, actions] of [
    ['keyring', ['keyring.read', 'keyring.create']],
    ['asym-keyring', ['asym.create']],
    ['managed-key', [...Array.from({ length: 5 }, () => 'key.read'), 'key.create']],
  ] as const) {
    const found = await search(a, { about: 'Payroll', aboutType });
    assert.deepEqual(
      found.map(({ action }) => action),
      actions,
    );
    const path = '/auth/search/activity?limit=1';
    const { data, pagination } = (await a.call('POST', path, { about: 'payroll', aboutType })).body;
    assert.deepEqual([data.length, data[0].action, pagination.hasMore], [1, actions[0], actions.length > 1]);
  }
});

test('what was deleted, and what was done to users, is one search', async () => {
  const a = await testAppliance();
  await a.call('POST', '/ks/keyrings', { name: 'payroll' });
  await a.call('DELETE', '/ks/keyrings/payroll');
  const { id } = (await a.call('POST', '/auth/accounts', { uid: 'billing' })).body;
  await a.call('DELETE', `/auth/accounts/${id}`);
  await a.call('GET', '/auth/users');
  await a.call('POST', '/auth/validate', { key: a.root.key, activity: { action: 'invoice.delete' } });
  const actions = async (action: string) => (await search(a, { action })).map((record) => record.action);
  assert.deepEqual(await actions('*.delete'), ['account.delete', 'keyring.delete']);
  assert.deepEqual(await actions('account.*'), ['account.delete', 'account.create']);
  assert.deepEqual(await actions('user.*'), ['user.read']);
  for (const none of ['*', '*.*', 'key*', '*.del', '*.delete.x']) assert.deepEqual(await actions(none), [], none);
  assert.deepEqual(await actions('invoice.delete'), ['invoice.delete']);
});

test('some records can be left out, such as those of one’s own reading', async () => {
  const { a, lines } = await audited();
  const all = await lines({});
  await lines({});
  const exclude = { keyid: a.root.keyid, action: 'activity.read' };
  assert.deepEqual(await lines({ exclude }), all);
  assert.equal((await lines({ exclude: { keyid: a.root.keyid } })).length, 0);
  assert.ok((await lines({ exclude: { keyid: 'local', action: 'activity.read' } })).length > all.length);
});

async function exportOf(a: Appliance, key: string, body: object = {}): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: JSON.stringify(body) };
  return a.app.fetch(new Request('http://kms.test/auth/activity/export', init), {});
}

const seqsOf = (text: string): number[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).seq);

test('whoever may read activity takes heads and exports, each recorded once, the export with its own record', async () => {
  const a = await testAppliance();
  const { key, keyid } = await a.keyWith('activity.read');
  const head = (await a.call('GET', '/auth/activity/head', undefined, { key })).body;
  assert.deepEqual([head.format, head.seq], ['kms-activity-head-1', 1]);
  assert.equal(head.mlDsaPublicKey, undefined);
  await a.call('GET', '/ks/keyrings');
  const response = await exportOf(a, key);
  assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/jsonl']);
  const text = await response.text();
  assert.deepEqual(seqsOf(text), [1, 2, 3, 4]);
  const verdict = await verifyExport([Buffer.from(text)] as unknown as AsyncIterable<Uint8Array>, { since: head });
  assert.deepEqual([verdict.broken, verdict.count], [undefined, 4]);
  assert.deepEqual(seqsOf(await (await exportOf(a, key, { since: head })).text()), [2, 3, 4, 5]);
  const own = (await a.activity()).filter((record) => record.keyid === keyid);
  assert.deepEqual(
    own.map(({ action, status }) => [action, status]),
    Array(3).fill(['activity.read', 200]),
  );

  const none = await a.keyWith('keyring.list');
  assert.equal((await exportOf(a, none.key)).status, 403);
  assert.equal((await a.call('GET', '/auth/activity/head', undefined, { key: none.key })).status, 403);
  const odd = await a.call('GET', '/auth/activity/head?postQuantum=yes', undefined, { key });
  assert.deepEqual([odd.status, Object.keys(odd.body.errors)], [400, ['postQuantum']]);
  const other = { ...head, tenant: 'tenant_other' };
  for (const since of [other, {}, { ...head, seq: 4 }, { ...head, hash: 'A'.repeat(43) }, 'head']) {
    assert.equal((await exportOf(a, key, { since })).status, 400, JSON.stringify(since));
  }
});

test('as many exports at once as may be, and one more when one has ended or was given up', async () => {
  const a = await testAppliance();
  const keys = await Promise.all(Array.from({ length: 5 }, async () => (await a.keyWith('activity.read')).key));
  const [first = '', ...others] = keys;
  // More than is sent before a client reads.
  const props = { text: 'x'.repeat(60_000) };
  for (let i = 0; i < 8; i++) await a.call('POST', '/auth/validate', { key: first, activity: { props } });
  const open: Response[] = [];
  const start = async (key: string): Promise<number> => {
    const response = await exportOf(a, key);
    if (response.status === 200) open.push(response);
    return response.status;
  };
  assert.deepEqual([await start(first), await start(first), await start(first)], [200, 200, 429]);
  const [given] = open.splice(0, 1);
  await given?.body?.cancel();
  assert.equal(await start(first), 200);
  for (const key of others.slice(0, 3)) assert.deepEqual([await start(key), await start(key)], [200, 200]);
  const [, , , last = ''] = others;
  const refused = await exportOf(a, last);
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '30']);
  for (const each of open) await each.text();
  assert.equal(await start(last), 200);
  for (const each of open) if (!each.bodyUsed) await each.text();
});

test('filters that make no sense are refused, each at its field', async () => {
  const a = await testAppliance();
  for (const [body, field] of [
    [{ address: 'office' }, 'address'],
    [{ address: '10.0.0.0/33' }, 'address'],
    [{ address: '' }, 'address'],
    [{ granted: false }, 'granted'],
    [{ granted: ['*'] }, 'granted'],
    [{ revoked: '' }, 'revoked'],
    [{ object: 7 }, 'object'],
    [{ about: '' }, 'about'],
    [{ about: 'payroll', ring: 'payroll' }, 'about'],
    [{ aboutType: 'keyring' }, 'about'],
    [{ about: 'payroll', aboutType: 'user' }, 'aboutType'],
    [{ exclude: {} }, 'exclude'],
    [{ exclude: { keyid: 7 } }, 'exclude.keyid'],
  ] as const) {
    const answer = await a.call('POST', '/auth/search/activity', body);
    assert.deepEqual([answer.status, Object.keys(answer.body.errors ?? {})], [400, [field]], JSON.stringify(body));
  }
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

/** The answer of `POST /auth/validate` to a report with a valid key, and the resulting records. */
async function reportOf(activity: object) {
  const a = await testAppliance();
  const { key, keyid } = await a.keyWith('keyring.list');
  const reporter = await a.keyWith('apikey.validate');
  const answer = await a.call('POST', '/auth/validate', { key, activity }, { key: reporter.key });
  return { answer, reporter, keyid, records: await search(a, { keyid }) };
}

test('a reported record is the validated key’s, and says who sent it; the service’s own say nothing of the kind', async () => {
  const { answer, reporter, keyid, records } = await reportOf({
    action: 'door.open',
    apikeyId: 'apik_of_somebody_else',
    createdAt: 0,
    ringname: 'Payroll',
    validAction: false,
    reporter: 'local',
    status: 500,
    keyid: 'local',
    id: 'act_1',
    seq: 1,
  });
  assert.equal(answer.status, 200);
  const [{ id, ...record } = {}] = records;
  assert.match(String(id), /^act_[0-9a-z]{26}$/);
  assert.deepEqual(record, {
    keyid,
    createdAt: 0,
    action: 'door.open',
    ringname: 'payroll',
    validAction: false,
    status: 200,
    props: {},
    reporter: reporter.keyid,
  });
  const a = await testAppliance();
  await a.call('POST', '/auth/validate', { key: a.root.key, activity: {} });
  const found = await search(a, {});
  assert.deepEqual(
    found.map(({ action, reporter }) => [action, reporter]),
    [
      ['apikey.validate', undefined],
      ['validated', a.root.keyid],
    ],
  );
  assert.equal(Object.hasOwn(found[0] ?? {}, 'reporter'), false);
  assert.deepEqual((await a.call('GET', `/auth/activity/${found[1]?.id}`)).body, found[1]);
});

test('nobody reports an action of the service’s own, however it is spelt', async () => {
  const spellings: readonly ((name: string) => string)[] = [
    (name) => name,
    (name) => name.toUpperCase(),
    (name) => ` ${name}\t`,
    (name) => `${name.slice(0, 2)}\u200b${name.slice(2)}\u00ad`,
    (name) => name.replace('e', '\uff45'),
  ];
  const names = [...ownActions, '*', 'user.*', 'keyring.*.*', 'keyring.payroll.encrypt', 'asym.*.read'];
  for (const name of names) for (const spell of spellings) assert.ok(isOwnAction(spell(name)), spell(name));
  for (const name of [
    '',
    'door.open',
    'user',
    'user.create.done',
    'own.user.create',
    'keyring',
    'invoice.print',
    'read',
  ]) {
    assert.equal(isOwnAction(name), false, name);
  }
  for (const action of ['user.delete', 'Session.Create', 'keyring.encrypt', 'none', 'system.seal', 'user.password ']) {
    const { answer, records } = await reportOf({ action });
    assert.equal(answer.status, 400, action);
    assert.ok(answer.body.errors['activity.action']);
    assert.deepEqual(records, []);
  }
});

test('every action that the service records is one of its own', () => {
  for (const { access } of endpoints) if (access.kind !== 'public') assert.ok(ownActions.has(actionOf(access)));
  const root = new URL('../../src/', import.meta.url);
  const found: string[] = [];
  for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    if (!/^(?:core|http|server|appliance)\/.*\.ts$/.test(name)) continue;
    const text = readFileSync(new URL(name, root), 'utf8');
    for (const [, action = ''] of text.matchAll(/\baction(?::| =) '([a-z-]+(?:\.[a-z-]+)?)'/g)) found.push(action);
  }
  assert.ok(found.length >= 6, `${found}`);
  assert.deepEqual(
    found.filter((action) => !ownActions.has(action)),
    [],
  );
});

test('what a report may claim has bounds', async () => {
  const lastTime = 253_402_300_799_999;
  const good = [
    { createdAt: 0 },
    { createdAt: lastTime },
    { action: '\u{1F511}'.repeat(256) },
    { ringname: '' },
    { ringname: 'a'.repeat(128) },
    { props: { a: 'x'.repeat(64 * 1024 - 8) } },
  ];
  for (const activity of good) {
    const { answer, records } = await reportOf(activity);
    assert.deepEqual([answer.status, records.length], [200, 1], JSON.stringify(activity).slice(0, 80));
  }
  const bad: readonly (readonly [string, object])[] = [
    ['createdAt', { createdAt: -1 }],
    ['createdAt', { createdAt: lastTime + 1 }],
    ['createdAt', { createdAt: 1.5 }],
    ['action', { action: 'x'.repeat(257) }],
    ['ringname', { ringname: 'a'.repeat(129) }],
    ['ringname', { ringname: '../payroll' }],
    ['props', { props: { a: 'x'.repeat(64 * 1024 - 7) } }],
  ];
  for (const [field, activity] of bad) {
    const { answer, records } = await reportOf(activity);
    assert.equal(answer.status, 400, field);
    assert.deepEqual(Object.keys(answer.body.errors), [`activity.${field}`]);
    assert.deepEqual(records, []);
  }
});

test('without reads there is what was done and denied, page by page', async () => {
  const a = await testAppliance();
  const weak = (await a.keyWith('asset.search')).key;
  for (let i = 0; i < 3; i++) {
    await a.call('POST', '/ks/keyrings', { name: `ring-${i}` });
    for (let n = 0; n < 5; n++) await a.call('GET', '/ks/keyrings');
    await a.call('GET', '/auth/users', undefined, { key: weak });
  }
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const path = `/auth/search/activity?limit=2${cursor === undefined ? '' : `&cursor=${cursor}`}`;
    const { body } = await a.call('POST', path, { reads: false });
    assert.ok(body.data.length <= 2);
    for (const { action, validAction } of body.data) found.push(`${action} ${validAction}`);
    cursor = body.pagination.nextCursor;
    if (cursor !== undefined) assert.equal(body.data.length, 2, 'pages are full');
  } while (cursor !== undefined);
  const pair = ['user.read false', 'keyring.create true'];
  assert.deepEqual(found.slice(0, 6), [...pair, ...pair, ...pair]);
  assert.ok(found.every((each) => !/(list|search|read) true$/.test(each)));
  const all = (await a.call('POST', '/auth/search/activity', {})).body.data;
  assert.ok(all.some(({ action }: { action: string }) => action === 'keyring.list'));
});
