// Users over HTTP: rules beyond the tables that cover all endpoints.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Answer, type Appliance, testAppliance } from '../support/appliance.ts';
import { startTime } from '../support/context.ts';
import { logIn, makeUser } from './samples.ts';

const ada = { username: 'ada', email: 'ada@example.org', firstName: 'Ada', lastName: 'Lovelace' };
const unlocked = { key: null };

async function statusOf(call: Promise<{ status: number }>): Promise<number> {
  return (await call).status;
}

test('a generated password logs in, and is told once', async () => {
  const a = await testAppliance();
  const made = await a.call('POST', '/auth/users', ada);
  assert.equal(made.status, 200);
  const { user, password } = made.body;
  assert.deepEqual(Object.keys(made.body).sort(), ['password', 'user']);
  assert.equal(user.displayName, 'Ada Lovelace');
  assert.deepEqual([user.keys, user.flags, user.props], [[], {}, {}]);
  const login = await a.call('POST', '/auth/basic/login', { username: 'ADA', password }, unlocked);
  assert.equal(login.status, 200);
  const read = await a.call('GET', '/auth/users/ada');
  assert.deepEqual(read.body, { ...user, lastLoginAt: startTime });
  assert.deepEqual(login.body.user, read.body);
  assert.ok(!read.text.includes(password) && !JSON.stringify(await a.activity()).includes(password));
});

test('taken names and addresses are 400 with the field, whatever their case', async () => {
  const a = await testAppliance();
  await a.call('POST', '/auth/users', ada);
  const byName = await a.call('POST', '/auth/users', { ...ada, username: 'ADA', email: 'x@example.org' });
  assert.deepEqual([byName.status, Object.keys(byName.body.errors)], [400, ['username']]);
  assert.equal(typeof byName.body.message, 'string');
  const byAddress = await a.call('POST', '/auth/users', { ...ada, username: 'x', email: 'ADA@example.ORG' });
  assert.deepEqual([byAddress.status, Object.keys(byAddress.body.errors)], [400, ['email']]);
  const bob = await makeUser(a);
  const patched = await a.call('PATCH', `/auth/users/${bob.user.username}`, { email: 'ADA@EXAMPLE.ORG' });
  assert.deepEqual([patched.status, Object.keys(patched.body.errors)], [400, ['email']]);
});

test('nobody is called by an address of another, nor has an address that another is called by', async () => {
  const a = await testAppliance();
  const of = (username: string, email: string) => ({ username, email, firstName: 'A', lastName: 'B' });
  const eve = await logIn(a);
  assert.equal((await a.call('POST', '/auth/users', of('ada', 'ada@example.org'))).status, 200);
  assert.equal((await a.call('POST', '/auth/users', of('bob@example.org', 'bob@example.com'))).status, 200);
  assert.equal((await a.call('POST', '/auth/users', of('cy@example.org', 'CY@example.org'))).status, 200, 'its own');
  const refused = async (answer: Promise<Answer>, field: string) => {
    const { status, body } = await answer;
    assert.deepEqual([status, body.errors], [400, { [field]: 'is taken' }]);
  };
  for (const path of ['/auth/users', '/auth/user/invite']) {
    await refused(a.call('POST', path, of('Ada@Example.org', 'x@example.org')), 'username');
    await refused(a.call('POST', path, of('x', 'Bob@example.org')), 'email');
  }
  const change = { email: 'BOB@example.org' };
  const self = `/auth/users/${eve.user.username}`;
  await refused(a.call('PATCH', self, change, { key: eve.accessToken }), 'email');
  await refused(a.call('PATCH', self, change), 'email');
  const own = { email: 'Cy@example.org', firstName: 'Cy' };
  assert.equal((await a.call('PATCH', '/auth/users/cy@example.org', own)).status, 200);
});

test('of twenty making one name, or taking the last place, exactly one wins', async () => {
  const a = await testAppliance({ tenants: [{ name: 'small', hosts: ['*'], limits: { users: 2 } }] });
  const race = async (fieldsOf: (index: number) => object) => {
    const calls = Array.from({ length: 20 }, (_, index) => a.call('POST', '/auth/users', fieldsOf(index)));
    return (await Promise.all(calls)).map(({ status }) => status).sort();
  };
  assert.deepEqual(await race((index) => ({ ...ada, email: `a${index}@example.org` })), [200, ...Array(19).fill(400)]);
  const places = await race((index) => ({ ...ada, username: `u${index}`, email: `u${index}@example.org` }));
  assert.deepEqual(places, [200, ...Array(19).fill(403)]);
});

test('a user is read by name, by address where said, and deleted by id where said', async () => {
  const a = await testAppliance();
  const { user } = (await a.call('POST', '/auth/users', ada)).body;
  assert.equal((await a.call('GET', '/auth/users/Ada')).body.id, user.id);
  assert.equal((await a.call('GET', '/auth/users/Ada%40example.org?email=true')).body.id, user.id);
  for (const path of ['ada?email=true', 'ada%40example.org', user.id, 'nobody']) {
    const { status, body } = await a.call('GET', `/auth/users/${path}`);
    assert.deepEqual([status, Object.keys(body)], [404, ['message']], path);
  }
  assert.equal(await statusOf(a.call('DELETE', '/auth/users/ada?id=true')), 404);
  const gone = await a.call('DELETE', `/auth/users/${user.id}?id=true`);
  assert.deepEqual([gone.status, Object.keys(gone.body)], [200, ['message']]);
  assert.equal(await statusOf(a.call('PATCH', '/auth/users/ada', {})), 404);
  assert.equal(await statusOf(a.call('DELETE', '/auth/users/ada')), 404);
});

test('a user reads and changes itself without flags, and nobody else', async () => {
  const a = await testAppliance();
  const { user, accessToken: key } = await logIn(a);
  const other = await makeUser(a);
  const me = `/auth/users/${user.username.toUpperCase()}`;
  assert.equal((await a.call('GET', me, undefined, { key })).body.id, user.id);
  assert.equal(await statusOf(a.call('GET', `/auth/users/${user.email}?email=true`, undefined, { key })), 200);
  assert.equal((await a.call('PATCH', me, { firstName: 'A', props: { b: 1 } }, { key })).body.firstName, 'A');
  const [last] = await a.activity();
  assert.deepEqual([last?.keyid, last?.action, last?.validAction], [user.id, 'user.update', true]);

  for (const name of [other.user.username, 'nobody']) {
    for (const [method, body] of [
      ['GET', undefined],
      ['PATCH', {}],
    ] as const) {
      const denied = await a.call(method, `/auth/users/${name}`, body, { key });
      assert.equal(denied.status, 403);
      assert.match(denied.body.message, method === 'GET' ? /user\.read/ : /user\.update/);
    }
  }
  for (const flags of [{}, { '*': true }]) {
    const denied = await a.call('PATCH', me, { flags }, { key });
    assert.deepEqual([denied.status, /user\.update/.test(denied.body.message)], [403, true]);
  }
  assert.equal(await statusOf(a.call('DELETE', me, undefined, { key })), 403);
});

test('an API key made with an access token belongs to its user, is not its user, and ends with it', async () => {
  const a = await testAppliance();
  const { user, accessToken } = await logIn(a, { 'apikey.*': true, 'keyring.list': true });
  const flags = { 'keyring.list': true };
  const made = await a.call('POST', '/auth/apikey', { accountId: a.accountId, flags }, { key: accessToken });
  assert.equal(made.status, 200);
  const { key, keyid } = made.body;
  assert.deepEqual((await a.call('GET', `/auth/users/${user.username}`)).body.keys, [keyid]);
  assert.equal(await statusOf(a.call('GET', '/ks/keyrings', undefined, { key })), 200);
  assert.equal(
    await statusOf(a.call('PATCH', `/auth/users/${user.username}`, { email: 'x@example.org' }, { key })),
    403,
  );
  assert.equal(await statusOf(a.call('DELETE', `/auth/users/${user.username}`)), 200);
  assert.equal(await statusOf(a.call('GET', '/ks/keyrings', undefined, { key })), 401);
  assert.equal(await statusOf(a.call('GET', '/ks/keyrings', undefined, { key: accessToken })), 401);
  const [byToken, byKey] = await a.activity();
  assert.deepEqual([byToken?.keyid, byKey?.keyid], [user.id, keyid]);
  assert.equal((await a.call('GET', `/auth/apikey/${keyid}`)).body.active, false);
});

test('nobody grants what they lack, nor touches what is stronger', async () => {
  const a = await testAppliance();
  const { key } = await a.keyWith('user.*', 'keyring.list');
  const make = (flags: object) => a.call('POST', '/auth/users', { ...ada, flags }, { key });
  const denied = await make({ 'keyring.create': true });
  assert.deepEqual([denied.status, /keyring\.create/.test(denied.body.message)], [403, true]);
  assert.equal(await statusOf(a.call('GET', '/auth/users/ada')), 404);
  assert.equal(await statusOf(make({ 'keyring.list': true, 'keyring.create': false })), 200);
  const strong = await makeUser(a, { '*': true });
  const path = `/auth/users/${strong.user.username}`;
  assert.equal(await statusOf(a.call('PATCH', path, { email: 'eve@example.org' }, { key })), 403);
  assert.equal(await statusOf(a.call('DELETE', path, undefined, { key })), 403);
  assert.deepEqual((await a.call('GET', path)).body, strong.user);
});

test('users and tokens of one tenant are unknown in another', async () => {
  const a: Appliance = await testAppliance({
    tenants: [
      { name: 'one', hosts: ['one.test'] },
      { name: 'two', hosts: ['two.test'] },
    ],
  });
  const [, two] = a.tenants;
  const one = { host: 'one.test' };
  const { password } = (await a.call('POST', '/auth/users', ada, one)).body;
  const login = (host: string) =>
    a.call('POST', '/auth/basic/login', { username: 'ada', password }, { host, key: null });
  assert.equal((await login('two.test')).status, 400);
  const { accessToken } = (await login('one.test')).body;
  assert.equal(await statusOf(a.call('GET', '/auth/users/ada', undefined, { ...one, key: accessToken })), 200);
  assert.equal(
    await statusOf(a.call('GET', '/auth/users/ada', undefined, { host: 'two.test', key: accessToken })),
    401,
  );
  assert.ok(two);
  const elsewhere = { host: 'two.test', key: two.root.key };
  assert.equal(await statusOf(a.call('GET', '/auth/users/ada', undefined, elsewhere)), 404);
  assert.equal(await statusOf(a.call('POST', '/auth/users', ada, elsewhere)), 200);
});

test('an address and a name with one are unique in whatever form their domain is written', async () => {
  const a = await testAppliance();
  const person = { firstName: 'A', lastName: 'L' };
  const forms = ['ada@bücher.example', 'ada@xn--bcher-kva.example', 'ADA@BÜCHER.example', 'ada@bücher.example.'];
  for (const [n, first] of forms.entries()) {
    const { status, body } = await a.call('POST', '/auth/users', { ...person, username: `u${n}`, email: first });
    assert.equal(status, 200);
    for (const form of forms) {
      const taken = await a.call('POST', '/auth/users', { ...person, username: 'other', email: form });
      assert.deepEqual([taken.status, Object.keys(taken.body.errors)], [400, ['email']], `${first} ${form}`);
      const named = await a.call('POST', '/auth/users', { ...person, username: form, email: 'other@example.org' });
      assert.deepEqual([named.status, Object.keys(named.body.errors)], [400, ['username']], `${first} ${form}`);
      const found = await a.call('GET', `/auth/users/${encodeURIComponent(form)}?email=true`);
      assert.equal(found.body.username, `u${n}`, form);
      const login = { username: form, password: body.password };
      assert.equal(await statusOf(a.call('POST', '/auth/basic/login', login, { key: null })), 200, form);
    }
    assert.equal((await a.call('GET', `/auth/users/u${n}`)).body.email, first, 'kept as it was given');
    assert.equal(await statusOf(a.call('DELETE', `/auth/users/u${n}`)), 200);
  }
});
