// Properties of an API key besides its flags: a name, an expiry, allowed addresses, its creator, its last use, and its
// owner.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Sql } from '../../src/store/sql.ts';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { startTime } from '../support/context.ts';

const minute = 60_000;
const local = { env: { local: true }, key: null } as const;

const keyOf = async (a: Appliance, fields: object = {}, key?: string): Promise<AnyJson> => {
  const body = { accountId: a.accountId, flags: { 'asset.search': true }, ...fields };
  const answer = await a.call('POST', '/auth/apikey', body, key === undefined ? {} : { key });
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};
const change = (a: Appliance, keyid: string, fields: object, key?: string) =>
  a.call('PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', ...fields }, key === undefined ? {} : { key });
const read = async (a: Appliance, keyid: string): Promise<AnyJson> =>
  (await a.call('GET', `/auth/apikey/${keyid}`, undefined, local)).body;
const use = async (a: Appliance, key: string, remoteAddress?: string): Promise<number> =>
  (await a.call('POST', '/assets/search', {}, { key, env: remoteAddress === undefined ? {} : { remoteAddress } }))
    .status;
const userOf = async (a: Appliance, username: string, flags: object = {}): Promise<AnyJson> => {
  const person = { username, email: `${username}@example.org`, firstName: 'A', lastName: 'B', flags };
  const { user, password } = (await a.call('POST', '/auth/users', person)).body;
  return { ...user, password };
};

test('all of it stands in every answer that shows the key', async () => {
  const a = await testAppliance();
  const given = { name: 'nightly "batch" ☂', expiresAt: startTime + 1, allowedAddresses: ['192.0.2.0/24'] };
  const ignored = { createdAt: 'x', createdBy: 'me', lastUsedAt: 7, owner: 'user_1' };
  const { key, ...made } = await keyOf(a, { ...given, ...ignored });
  const { updatedAt, ...shown } = made;
  const own = { createdAt: updatedAt, createdBy: a.root.keyid, lastUsedAt: null };
  assert.deepEqual(
    { ...shown },
    { keyid: made.keyid, active: true, references: made.references, flags: made.flags, props: {}, ...given, ...own },
  );
  await a.call('POST', '/ks/keyrings', { name: 'payroll' });
  await change(a, made.keyid, { flags: { 'keyring.payroll.encrypt': true } });
  const changed = { ...made, flags: { ...made.flags, 'keyring.payroll.encrypt': true } };
  for (const path of [`/auth/apikey/${made.keyid}`, `/auth/apikey/${made.keyid}/props`]) {
    assert.deepEqual((await a.call('GET', path)).body, changed);
  }
  for (const path of ['/auth/apikey', `/auth/accounts/${a.accountId}/apikeys`, '/auth/search/keyring/payroll/apikey']) {
    const { data } = (await a.call('GET', path)).body;
    assert.deepEqual(
      data.filter(({ keyid }: AnyJson) => keyid === made.keyid),
      [changed],
      path,
    );
  }
  for (const [path, name, ref] of [
    ['/auth/apikey', 'key', key],
    ['/auth/apikeyid', 'apikeyid', made.keyid],
  ]) {
    const { body } = await a.call('PUT', path, { [name]: ref, op: 'merge', ...ignored, owner: undefined });
    assert.deepEqual(body, { ...changed, op: 'merge', ...(name === 'key' && { key }) });
  }
});

test('name, end and addresses are given where a key is made and changed, under any op, and kept where they are not', async () => {
  const a = await testAppliance();
  const bare = await keyOf(a);
  assert.deepEqual([bare.name, bare.expiresAt, bare.allowedAddresses], ['', null, []]);
  for (const op of ['merge', 'replace', 'delete']) {
    const fields = { name: op, expiresAt: startTime + 5, allowedAddresses: ['10.0.0.0/8'] };
    const all = await change(a, bare.keyid, { op, ...fields });
    const { name, expiresAt, allowedAddresses } = all.body;
    assert.deepEqual({ name, expiresAt, allowedAddresses }, fields);
    assert.equal((await change(a, bare.keyid, { op })).body.name, op);
    const kept = await read(a, bare.keyid);
    assert.deepEqual([kept.name, kept.expiresAt, kept.allowedAddresses], [op, startTime + 5, ['10.0.0.0/8']]);
    const taken = await a.call('PUT', '/auth/apikey', {
      ...{ key: bare.key, op, name: '', expiresAt: null, allowedAddresses: [] },
    });
    assert.deepEqual([taken.body.name, taken.body.expiresAt, taken.body.allowedAddresses], ['', null, []]);
  }
});

test('what is no name, no end and no addresses is refused, by field, and changes nothing', async () => {
  const a = await testAppliance();
  const { keyid } = await keyOf(a, { name: 'kept' });
  const tooMany = Array.from({ length: 101 }, (_, i) => `10.0.0.${i}`);
  const table: [field: string, value: unknown, problem?: RegExp][] = [
    ['name', 'x'.repeat(129), /at most 128 characters/],
    ['name', '☂'.repeat(129), /at most 128 characters/],
    ['name', 'x'.repeat(100_000), /at most 128 characters/],
    ['name', null, /expected a string, got null/],
    ['name', 7, /expected a string/],
    ['name', 'a\0b', /NUL/],
    ['name', '\ud800', /Unicode/],
    ...[
      'a\nb',
      '\t',
      '\u001b[2J',
      '\u007f',
      '\u0085',
      'nightly\u202Ehctab',
      '\u2066a\u2069',
      'a\u200bb',
      '\ufeffa',
    ].map((text): [string, unknown, RegExp] => ['name', text, /expected no control characters/]),
    ['expiresAt', '2027-01-01', /expected a number, got a string/],
    ['expiresAt', -1, /at least 0/],
    ['expiresAt', 1.5, /integer/],
    ['expiresAt', 253_402_300_800_000, /at most 253402300799999/],
    ['expiresAt', true],
    ['allowedAddresses', '192.0.2.1', /expected an array/],
    ['allowedAddresses', null, /expected an array, got null/],
    ['allowedAddresses', { 0: '192.0.2.1' }, /expected an array/],
    ['allowedAddresses', tooMany, /at most 100 entries/],
    ['allowedAddresses.0', [7], /expected a string/],
    ['allowedAddresses.1', ['192.0.2.1', ''], /must not be empty/],
    ...[
      'localhost',
      '192.0.2',
      '192.0.2.1/33',
      '::/129',
      '1.2.3.4-5',
      '192.0.2.1,192.0.2.2',
      '*',
      '[::1]',
      '::1%lo',
    ].map((text): [string, unknown, RegExp] => [
      'allowedAddresses.1',
      ['::1', text],
      /IPv4 or IPv6 address, or a block/,
    ]),
  ];
  for (const [field, value, problem = /./] of table) {
    const name = field.split('.')[0] ?? '';
    const make = { accountId: a.accountId, [name]: value };
    for (const answer of [await a.call('POST', '/auth/apikey', make), await change(a, keyid, { [name]: value })]) {
      assert.equal(answer.status, 400, `${field} ${JSON.stringify(value)}: ${answer.text}`);
      assert.match(answer.body.errors[field] ?? '', problem, answer.text);
    }
  }
  assert.equal((await read(a, keyid)).name, 'kept');
  for (const name of ['x'.repeat(128), '☂'.repeat(128), '😀'.repeat(128), ' ', 'Schlüssel 鍵 مفتاح', '__proto__']) {
    assert.equal((await change(a, keyid, { name })).body.name, name);
  }
});

test('addresses are kept once each, in one form', async () => {
  const a = await testAppliance();
  const given = [
    '192.0.2.77/24',
    '::FFFF:192.0.2.1',
    '2001:DB8:0:0::/32',
    '192.0.2.0/24',
    '192.0.2.1/32',
    '::ffff:10.0.0.0/104',
  ];
  const { allowedAddresses, keyid } = await keyOf(a, { allowedAddresses: given });
  const kept = ['192.0.2.0/24', '192.0.2.1', '2001:db8::/32', '10.0.0.0/8'];
  assert.deepEqual(allowedAddresses, kept);
  assert.deepEqual((await change(a, keyid, { allowedAddresses: [...given].reverse() })).body.allowedAddresses, [
    ...['10.0.0.0/8', '192.0.2.1', '192.0.2.0/24', '2001:db8::/32'],
  ]);
  const most = Array.from({ length: 100 }, (_, i) => `10.0.0.${i}`);
  assert.deepEqual((await change(a, keyid, { allowedAddresses: most })).body.allowedAddresses, most);
});

test('past its end a key is as if inactive', async () => {
  const a = await testAppliance();
  const { key, keyid } = await keyOf(a, { expiresAt: startTime + 1000, flags: { 'keyring.payroll.read': true } });
  await a.call('POST', '/ks/keyrings', { name: 'payroll' });
  const ask = () => a.call('GET', '/ks/keyrings/payroll', undefined, { key });
  const valid = async () => (await a.call('POST', '/auth/validate', { key, activity: {} })).body.valid;
  a.advance(999);
  assert.deepEqual([(await ask()).status, await valid()], [200, true]);
  assert.equal((await a.call('DELETE', '/ks/keyrings/payroll')).status, 400, 'an active key uses it');
  a.advance(1);
  const refused = await ask();
  assert.equal(refused.status, 401);
  assert.equal(refused.headers.get('www-authenticate'), 'Bearer');
  const [record] = await a.activity();
  assert.deepEqual(
    [record?.keyid, record?.action, record?.ringname, record?.validAction, record?.status],
    [keyid, 'keyring.read', 'payroll', false, 401],
  );
  assert.equal(await valid(), false);
  // The record still names the key, as not valid.
  const [, reported] = await a.activity();
  assert.deepEqual([reported?.keyid, reported?.action, reported?.validAction], [keyid, 'validated', false]);
  assert.equal((await read(a, keyid)).active, true, 'nobody made it inactive');
  // With a later expiry it is accepted again.
  await change(a, keyid, { expiresAt: startTime + 1001 });
  assert.deepEqual([(await ask()).status, await valid()], [200, true]);
  await change(a, keyid, { expiresAt: startTime });
  assert.deepEqual([(await ask()).status, await valid()], [401, false]);
  assert.equal((await a.call('DELETE', '/ks/keyrings/payroll')).status, 200, 'an expired key does not use it');
  await change(a, keyid, { expiresAt: null, active: false });
  assert.deepEqual([(await ask()).status, await valid()], [401, false]);
});

test('a key for some addresses is refused from all others, and that is recorded', async () => {
  const a = await testAppliance();
  const { key, keyid } = await keyOf(a, { allowedAddresses: ['192.0.2.0/24', '2001:db8::/32'] });
  for (const address of ['192.0.2.1', '192.0.2.255', '::ffff:192.0.2.7', '2001:DB8:1::1', '2001:db8::1%eth0']) {
    assert.equal(await use(a, key, address), 200, address);
  }
  for (const address of ['192.0.3.1', '127.0.0.1', '::1', '2001:db9::1', '::192.0.2.1', 'unknown', '', undefined]) {
    assert.equal(await use(a, key, address), 401, String(address));
    const [record] = await a.activity();
    assert.deepEqual(
      [record?.keyid, record?.action, record?.validAction, record?.status],
      [keyid, 'asset.search', false, 401],
    );
  }
  // All refused credentials get the same answer, so that it does not reveal which secret is valid.
  const elsewhere = await a.call('POST', '/assets/search', {}, { key, env: { remoteAddress: '192.0.3.1' } });
  const { key: disabled, keyid: other } = await keyOf(a);
  await change(a, other, { active: false });
  const refused = await a.call('POST', '/assets/search', {}, { key: disabled });
  assert.deepEqual([elsewhere.status, elsewhere.text], [refused.status, refused.text]);
  // Refused before the body is read, or the path's other methods matter.
  const wrong = await a.call('PUT', '/assets/search', {}, { key, env: { remoteAddress: '192.0.3.1' } });
  assert.equal(wrong.status, 405);
  assert.equal((await a.activity())[0]?.validAction, false);
  // The local socket has no address to check.
  const socket = await a.call('POST', '/assets/search', {}, { key, env: { local: true } });
  assert.equal(socket.status, 200);
  assert.equal((await a.activity())[0]?.keyid, keyid);
  // Validation judges the key alone; the caller's address is that of the caller.
  const { body } = await a.call('POST', '/auth/validate', { key }, { env: { remoteAddress: '198.51.100.1' } });
  assert.equal(body.valid, true);
  await change(a, keyid, { allowedAddresses: [] });
  assert.equal(await use(a, key, '198.51.100.1'), 200);
  assert.equal(await use(a, key), 200);
});

test('who made it', async () => {
  const a = await testAppliance();
  assert.equal((await read(a, a.root.keyid)).createdBy, 'local');
  assert.equal((await keyOf(a)).createdBy, a.root.keyid);
  const ada = await userOf(a, 'ada', { '*': true });
  const { accessToken } = (
    await a.call('POST', '/auth/basic/login', { username: 'ada', password: ada.password }, { key: null })
  ).body;
  const { keyid, key, createdBy } = await keyOf(a, { flags: { '*': true } }, accessToken);
  assert.equal(createdBy, ada.id);
  assert.equal((await keyOf(a, {}, key)).createdBy, keyid);
  const asLocal = await a.call('POST', '/auth/apikey', { accountId: a.accountId }, local);
  assert.equal(asLocal.body.createdBy, 'local');
});

/** An appliance that counts the statements which note uses. */
async function counting(): Promise<{ a: Appliance; writes: () => number }> {
  let count = 0;
  const onSql = (sql: Sql) => {
    const { run } = sql;
    sql.run = (text, ...params) => {
      if (/api_key_uses/.test(text) && text.startsWith('INSERT')) count++;
      return run(text, ...params);
    };
  };
  return { a: await testAppliance({ onSql }), writes: () => count };
}

test('when a key was last used is known to a minute, and written once in one', async () => {
  const { a, writes } = await counting();
  const { key, keyid } = await keyOf(a);
  const idle = await keyOf(a);
  const lastUsed = async () => (await read(a, keyid)).lastUsedAt;
  assert.equal(await lastUsed(), null);
  const before = writes();
  for (let i = 0; i < 300; i++) assert.equal(await use(a, key), 200);
  assert.equal(writes() - before, 1);
  assert.equal(await lastUsed(), startTime);
  a.advance(minute - 1);
  await use(a, key);
  assert.equal(await lastUsed(), startTime);
  a.advance(1);
  await use(a, key);
  assert.equal(await lastUsed(), startTime + minute);
  a.advance(100 * minute + 7);
  for (let i = 0; i < 10; i++) await use(a, key);
  assert.equal(await lastUsed(), startTime + 101 * minute + 7);
  assert.equal(writes() - before, 3);
  // A clock that is set back is followed.
  a.advance(-50 * minute);
  await use(a, key);
  assert.equal(await lastUsed(), startTime + 51 * minute + 7);
  assert.equal((await read(a, idle.keyid)).lastUsedAt, null);
  const { updatedAt, createdAt } = await read(a, keyid);
  assert.equal(updatedAt, createdAt, 'a use is no change of the key');
});

test('what is refused is no use; what is granted is, and so is a validation that says yes', async () => {
  const a = await testAppliance();
  const { key, keyid } = await keyOf(a, { allowedAddresses: ['192.0.2.1'], expiresAt: startTime + minute });
  const lastUsed = async () => (await read(a, keyid)).lastUsedAt;
  await use(a, key, '198.51.100.1');
  await a.call('GET', '/auth/users', undefined, { key, env: { remoteAddress: '192.0.2.1' } });
  await a.call('PUT', '/assets/search', {}, { key, env: { remoteAddress: '192.0.2.1' } });
  await a.call('POST', '/auth/basic/login', { username: 'x', password: 'x' }, { key });
  assert.equal(await lastUsed(), null);
  // An admitted request counts as a use even if it is invalid.
  const senseless = { start: 'x' };
  const answer = await a.call('POST', '/assets/search', senseless, { key, env: { remoteAddress: '192.0.2.1' } });
  assert.equal(answer.status, 400);
  assert.equal(await lastUsed(), startTime);
  a.advance(minute);
  await use(a, key, '192.0.2.1');
  await a.call('POST', '/auth/validate', { key });
  assert.equal(await lastUsed(), startTime, 'expired');
  const other = await keyOf(a);
  await a.call('POST', '/auth/validate', { key: other.key });
  assert.equal((await read(a, other.keyid)).lastUsedAt, startTime + minute);
});

test('a key that is deleted by itself, or with its account, leaves nothing behind', async () => {
  const a = await testAppliance();
  const own = await keyOf(a, { flags: { 'apikey.delete': true } });
  assert.equal((await a.call('DELETE', `/auth/apikey/${own.key}`, undefined, { key: own.key })).status, 200);
  const account = (await a.call('POST', '/auth/accounts', { uid: 'team' })).body;
  const theirs = await keyOf(a, { accountId: account.id, flags: { 'account.delete': true } });
  const gone = await a.call('DELETE', `/auth/accounts/${account.id}`, undefined, { key: theirs.key });
  assert.equal(gone.status, 200);
  assert.equal(await use(a, theirs.key), 401);
});

test('a key is handed to another user by whoever may touch it', async () => {
  const a = await testAppliance();
  const [ada, bob] = [await userOf(a, 'ada'), await userOf(a, 'bob')];
  const keysOf = async (name: string) => (await a.call('GET', `/auth/users/${name}`)).body.keys;
  const { keyid, key } = await keyOf(a);
  for (const op of ['merge', 'replace', 'delete']) {
    const handed = await change(a, keyid, { op, owner: ada.id });
    assert.equal(handed.status, 200, handed.text);
    assert.equal('owner' in handed.body, false);
  }
  assert.deepEqual([await keysOf('ada'), await keysOf('bob')], [[keyid], []]);
  assert.equal((await change(a, keyid, { owner: bob.id })).status, 200);
  assert.deepEqual([await keysOf('ada'), await keysOf('bob')], [[], [keyid]]);
  assert.equal((await read(a, keyid)).createdBy, a.root.keyid, 'whose it is says not who made it');
  for (const owner of ['user_unknown', 'ada', keyid]) {
    const unknown = await change(a, keyid, { owner, name: 'changed' });
    assert.deepEqual([unknown.status, unknown.body], [404, { message: 'there is no such user' }]);
  }
  for (const owner of ['', null, 7]) {
    const wrong = await change(a, keyid, { owner });
    assert.equal(wrong.status, 400, wrong.text);
    assert.ok(wrong.body.errors.owner);
  }
  assert.equal((await read(a, keyid)).name, '');
  // The key's own secret can't reassign it: that endpoint has no such field.
  await a.call('PUT', '/auth/apikey', { key, op: 'merge', owner: ada.id });
  assert.deepEqual([await keysOf('ada'), await keysOf('bob')], [[], [keyid]]);
  // It ends with its current owner, not with the former one.
  await a.call('DELETE', '/auth/users/ada');
  assert.equal(await use(a, key), 200);
  await a.call('DELETE', '/auth/users/bob');
  assert.equal(await use(a, key), 401);
});

test('users say when they logged in last, and whether they can', async () => {
  const a = await testAppliance();
  const stateOf = async (name: string) => {
    const { state, lastLoginAt } = (await a.call('GET', `/auth/users/${name}`)).body;
    return [state, lastLoginAt];
  };
  const { password } = await userOf(a, 'ada');
  assert.deepEqual(await stateOf('ada'), ['active', null]);
  const person = { username: 'bob', email: 'bob@example.org', firstName: 'A', lastName: 'B' };
  const { loginUrl } = (await a.call('POST', '/auth/user/invite', person)).body;
  assert.deepEqual(await stateOf('bob'), ['invited', null]);
  a.advance(5);
  const token = new URL(loginUrl).searchParams.get('token');
  const completed = await a.call(
    'POST',
    '/auth/user/invite-complete',
    { token, password: 'Good-pass-1' },
    { key: null },
  );
  assert.deepEqual([completed.body.user.state, completed.body.user.lastLoginAt], ['active', startTime + 5]);
  assert.deepEqual(await stateOf('bob'), ['active', startTime + 5]);
  a.advance(5);
  const logIn = (tried: string) =>
    a.call('POST', '/auth/basic/login', { username: 'ada', password: tried }, { key: null });
  assert.equal((await logIn('wrong')).status, 400);
  assert.deepEqual(await stateOf('ada'), ['active', null]);
  const { accessToken, user } = (await logIn(password)).body;
  assert.equal(user.lastLoginAt, startTime + 10);
  a.advance(5);
  // A refresh does not count as a login.
  assert.equal((await a.call('GET', '/auth/basic/refresh', undefined, { key: accessToken })).status, 200);
  assert.deepEqual(await stateOf('ada'), ['active', startTime + 10]);
  const { data } = (await a.call('GET', '/auth/users')).body;
  assert.deepEqual(
    data.map(({ state, lastLoginAt }: AnyJson) => [state, lastLoginAt]),
    [
      ['active', startTime + 10],
      ['active', startTime + 5],
    ],
  );
});

test('a key is deleted by its id under the rules of deleting it by its secret', async () => {
  const a = await testAppliance();
  const { keyid, key } = await keyOf(a, { name: 'nightly' });
  const weak = (await a.keyWith('apikey.delete')).key;
  const none = (await a.keyWith('apikey.update')).key;
  const remove = (id: string, by?: string) =>
    a.call('DELETE', `/auth/apikeyid/${id}`, undefined, by === undefined ? {} : { key: by });
  assert.equal((await remove(keyid, none)).status, 403, 'without the flag');
  assert.equal((await remove(keyid, weak)).status, 403, 'a key with flags that the caller lacks');
  assert.equal((await remove(key)).status, 404, 'a secret is no id');
  const last = await remove(a.root.keyid);
  assert.equal(last.status, 400, 'the last one with the flag *');
  assert.equal(await use(a, key), 200);
  const done = await remove(keyid);
  assert.deepEqual([done.status, done.body], [200, {}]);
  assert.equal(await use(a, key), 401);
  assert.equal((await remove(keyid)).status, 404);
  const [record] = (await a.activity()).filter(({ action, status }) => action === 'apikey.delete' && status === 200);
  assert.deepEqual(record?.props.object, { type: 'apikey', id: keyid, name: 'nightly' });
});
