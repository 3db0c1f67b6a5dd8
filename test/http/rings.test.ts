// Information about a keyring and its keys besides encrypting: when keys were made, at what age they rotate, and which
// deleted rings can still be restored.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { startTime } from '../support/context.ts';
import { sampled } from './samples.ts';

const day = 86_400_000;
const iso = (time: number): string => new Date(time).toISOString();

const configure = (a: Appliance, config: object) => a.call('PUT', '/ks/config', { ringname: 'payroll', config });

test('keys say since when they are', async () => {
  const a = await testAppliance();
  const { ring, key } = (await a.call('POST', '/ks/keyrings', { name: 'payroll', keyProps: { k: 1 } })).body;
  const wrappedTo = { kem: 'x25519', publicKey: ring.publicKey };
  a.advance(day);
  const rotated = (await a.call('POST', '/ks/rotate', { ringname: 'payroll' })).body;
  const { data } = (await a.call('GET', '/ks/keyrings/payroll/keys')).body;
  assert.deepEqual(data, [
    { id: key.id, type: 'aes256', ...wrappedTo, props: { k: 1 }, createdAt: iso(startTime) },
    { id: rotated.key.id, type: 'aes256', ...wrappedTo, props: { k: 1 }, createdAt: iso(startTime + day) },
  ]);
  const one = (await a.call('GET', `/ks/keyrings/payroll/keys/${key.id}`)).body;
  assert.deepEqual(Object.keys(one).sort(), ['id', 'kem', 'keyData', 'props', 'publicKey', 'type']);
});

test('what an encrypt without the private key and its decrypt gave out is recorded, and who may not ask gets nothing', async () => {
  const a = await testAppliance();
  await a.call('POST', '/ks/keyrings', { name: 'payroll' });
  const { body } = await a.call('POST', '/ks/encrypt', { ringname: 'payroll', recipient: true });
  const opened = await a.call('POST', '/ks/decrypt', { header: body.header });
  assert.equal(opened.body.share, body.share);
  await a.call('POST', '/ks/encrypt', { ringname: 'payroll' });
  const records = (await a.activity()).slice(0, 3);
  assert.deepEqual(
    records.map(({ action, props }) => [action, props]),
    [
      ['keyring.encrypt', {}],
      ['keyring.decrypt', { recipient: true }],
      ['keyring.encrypt', { recipient: true }],
    ],
  );
  assert.ok(!JSON.stringify(records).includes(body.share));
  const { key } = (await a.call('POST', '/auth/apikey', { accountId: a.accountId, flags: {} })).body;
  const stranger = await a.call('POST', '/ks/decrypt', { header: body.header }, { key });
  assert.deepEqual([stranger.status, 'share' in stranger.body], [403, false]);
  for (const recipient of ['true', 1, null, {}]) {
    const refused = await a.call('POST', '/ks/encrypt', { ringname: 'payroll', recipient });
    assert.deepEqual([refused.status, Object.keys(refused.body.errors)], [400, ['recipient']]);
  }
  for (const knownKeys of ['key_1', [1], [''], Array(101).fill('key_1'), {}]) {
    const refused = await a.call('POST', '/ks/encrypt', { ringname: 'payroll', knownKeys });
    assert.equal(refused.status, 400);
  }
});

test('the age at which a key gives way is configured as the rest is', async () => {
  const a = await testAppliance();
  await a.call('POST', '/ks/keyrings', { name: 'payroll' });
  const read = async () => (await a.call('GET', '/ks/config?ringname=payroll')).body.config;
  const before = await read();
  assert.equal(before.rotateAfter, null);
  const set = await configure(a, { rotateAfter: 3600 });
  assert.deepEqual(set.body.config, { ...before, rotateAfter: 3600 });
  assert.equal((await a.activity())[0]?.props.changed?.toString(), 'rotateAfter');
  assert.deepEqual((await configure(a, { props: { a: 1 } })).body.config, {
    ...before,
    props: { a: 1 },
    rotateAfter: 3600,
  });
  assert.deepEqual(await read(), { ...before, props: { a: 1 }, rotateAfter: 3600 });
  for (const [value, problem] of [
    [3599, 'must be at least 3600'],
    [0, 'must be at least 3600'],
    [-1, 'must be at least 3600'],
    [3600.5, 'must be an integer'],
    ['90d', 'expected a number, got a string'],
    [true, 'expected a number, got a boolean'],
    [{}, 'expected a number, got an object'],
  ] as const) {
    const answer = await configure(a, { rotateAfter: value, props: {} });
    assert.deepEqual([answer.status, answer.body.errors], [400, { 'config.rotateAfter': problem }]);
  }
  assert.deepEqual((await read()).props, { a: 1 });
  const never = await configure(a, { rotateAfter: null });
  assert.equal(never.body.config.rotateAfter, null);
  assert.equal((await configure(a, { rotateAfter: Number.MAX_SAFE_INTEGER })).status, 200);
  a.advance(1000 * 365 * day);
  const first = (await a.call('POST', '/ks/encrypt', { ringname: 'payroll' })).body.key.id;
  // Two requests at once rotate once.
  await configure(a, { rotateAfter: 3600 });
  const both = await Promise.all([1, 2].map(() => a.call('POST', '/ks/encrypt', { ringname: 'payroll' })));
  const [one, two] = both.map(({ body }) => body.key.id);
  assert.ok(one === two && one !== first);
});

test('deleted rings are listed for as long as they can be restored', async () => {
  const a = await testAppliance();
  const names = async (query: string) => {
    const { status, body } = await a.call('GET', `/ks/keyrings${query}`);
    assert.equal(status, 200);
    return body.data.map(({ name }: AnyJson) => name);
  };
  for (const name of ['One', 'Two', 'Three']) await a.call('POST', '/ks/keyrings', { name });
  await a.call('POST', '/asym/keyrings', { name: 'asym' });
  const { ring } = (await a.call('GET', '/ks/keyrings/two')).body;
  assert.deepEqual(await names('?deleted=true'), []);
  a.advance(1000);
  await a.call('DELETE', '/ks/keyrings/two');
  a.advance(day);
  await a.call('DELETE', '/ks/keyrings/one');
  for (const query of ['', '?deleted=false']) assert.deepEqual(await names(query), ['three']);
  assert.deepEqual(await names('?deleted=true'), ['one', 'two'], 'the oldest first, as all lists');
  const { data } = (await a.call('GET', '/ks/keyrings?deleted=true')).body;
  const deletedAt = startTime + 1000;
  assert.deepEqual(data[1], { ...ring, deletedAt: iso(deletedAt), restorableUntil: iso(deletedAt + 30 * day) });
  const there = (await a.call('GET', '/ks/keyrings')).body.data[0];
  assert.ok(!('deletedAt' in there) && !('restorableUntil' in there));
  // It stays listed after another ring takes its name.
  await a.call('POST', '/ks/keyrings', { name: 'two' });
  assert.deepEqual(await names('?deleted=true'), ['one', 'two']);
  assert.equal((await a.call('POST', `/ks/keyrings/${ring.id}/restore`, {})).status, 400);

  // The two lists have separate cursors.
  const page = (await a.call('GET', '/ks/keyrings?deleted=true&limit=1')).body;
  assert.deepEqual([page.data.length, page.pagination.hasMore], [1, true]);
  const cursor = encodeURIComponent(page.pagination.nextCursor);
  assert.deepEqual(await names(`?deleted=true&limit=1&cursor=${cursor}`), ['two']);
  assert.equal((await a.call('GET', `/ks/keyrings?limit=1&cursor=${cursor}`)).status, 400);

  // A restored ring leaves the list; so does one past its time, which can no longer be restored.
  await a.call('DELETE', '/ks/keyrings/two');
  assert.equal((await a.call('POST', `/ks/keyrings/${ring.id}/restore`, {})).status, 200);
  assert.deepEqual(await names('?deleted=true'), ['one', 'two']);
  a.advance(30 * day - 1);
  assert.deepEqual(await names('?deleted=true'), ['one', 'two']);
  a.advance(1);
  assert.deepEqual(await names('?deleted=true'), []);
});

test('the deleted ones take the flag of the list', async () => {
  const a = await testAppliance();
  const lister = await a.keyWith('keyring.list');
  const other = await a.keyWith('keyring.*.*');
  const ask = (key: string) => a.call('GET', '/ks/keyrings?deleted=true', undefined, { key });
  assert.equal((await ask(lister.key)).status, 200);
  assert.equal((await ask(other.key)).status, 403);
});

/** All other query parameters are text, numbers or cursors. */
const switches = [
  ...['id', 'uid', 'email', 'deleted', 'wildcard', 'usage', 'postQuantum', 'wrapped', 'secrets', 'flags'],
  ...['config', 'keys', 'apikeys', 'dependents', 'proofs', 'secondFactors', 'suspended', 'pending', 'kmip'],
  ...['mine', 'inbox'],
];
const others = [
  ...['cursor', 'folder', 'key', 'limit', 'range', 'requester', 'ringname', 'since', 'state', 'token', 'type'],
  ...['verdict', 'version'],
];

test('a switch in a query is true or false, at every endpoint', async () => {
  const a = await testAppliance();
  let tried = 0;
  for (const { endpoint, make } of sampled) {
    for (const name of Object.keys(endpoint.query?.shape ?? {})) {
      if (others.includes(name)) continue;
      assert.ok(switches.includes(name), `${endpoint.id}: is ${name} a switch?`);
      const { params = {}, query = {}, body } = await make(a);
      const path = endpoint.path.replace(/\{(\w+)\}/g, (_, each) => encodeURIComponent(params[each] ?? ''));
      for (const value of ['', 'maybe', 'TRUE', 'True', '1', '0', 'yes', 'null', 'true ']) {
        const search = new URLSearchParams({ ...query, [name]: value });
        const answer = await a.call(endpoint.method, `${path}?${search}`, endpoint.body ? body : undefined);
        assert.equal(answer.status, 400, `${endpoint.id} ${name}=${value}: ${answer.text}`);
        assert.deepEqual(answer.body.errors, { [name]: "must be 'true' or 'false'" });
        tried++;
      }
    }
  }
  assert.ok(tried >= 90, `${tried}`);
});

test('what a hybrid ring costs on the wire: 1,461 bytes an answer, and 9 where the key is known', async () => {
  const a = await testAppliance();
  await a.call('POST', '/ks/keyrings', { name: 'plain' });
  await a.call('POST', '/ks/keyrings', { name: 'hybrid', kem: 'mlkem768-x25519' });
  const lengths = async (ringname: string) => {
    const first = (await a.call('POST', '/ks/encrypt', { ringname })).body;
    const { hash, key } = first;
    const knownKeys = [key.id];
    const decrypted = (await a.call('POST', '/ks/decrypt', { hash })).body;
    const known = (await a.call('POST', '/ks/encrypt', { ringname, knownKeys })).body;
    return [first, { ...decrypted, ringname: '' }, known].map((body) => JSON.stringify(body).length);
  };
  const [plain, hybrid] = [await lengths('plain'), await lengths('hybrid')];
  assert.deepEqual(
    hybrid.map((length, at) => length - (plain[at] ?? 0)),
    [1461, 1461, 9],
  );
});
