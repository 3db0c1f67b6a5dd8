// Users: created, changed and deleted, and who may do so.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { authenticateToken } from '../../src/core/sessions.ts';
import {
  createUser,
  deleteUser,
  generatePassword,
  getUser,
  listUsers,
  type UserRef,
  updateUser,
} from '../../src/core/users.ts';
import { judgePassword } from '../../src/crypto/password-rules.ts';
import { callerWith, refusal, seededRandom, type TestTenant, testTenant } from '../support/context.ts';
import { addedUser, fieldsOf, selfOf, tokenFor } from '../support/people.ts';

const named = (text: string): UserRef => ({ text, is: 'username' });

function create(tenant: TestTenant, fields: ReturnType<typeof fieldsOf>, ...flags: string[]) {
  const input = { fields, password: 'Generated-1', passwordHash: '$stored' };
  return tenant.call(createUser, input, flags.length === 0 ? undefined : callerWith(...flags));
}

test('a user is made as asked, the display name made up where none is given', async () => {
  const tenant = await testTenant();
  const { user, password } = await create(
    tenant,
    fieldsOf('ada', { props: { team: 'engines' }, flags: { 'a.b': false } }),
  );
  assert.match(user.id, /^user_[0-9a-z]{26}$/);
  assert.deepEqual(user, {
    id: user.id,
    username: 'ada',
    firstName: 'Ada',
    lastName: 'Lovelace',
    displayName: 'Ada Lovelace',
    keys: [],
    email: 'ada@example.org',
    flags: { 'a.b': false },
    props: { team: 'engines' },
    state: 'active',
    lastLoginAt: null,
  });
  assert.equal(password, 'Generated-1');
  const other = await create(tenant, fieldsOf('bob', { displayName: 'B.' }));
  assert.equal(other.user.displayName, 'B.');
});

test('no answer holds a trace of the password', async () => {
  const tenant = await testTenant();
  const { user } = await create(tenant, fieldsOf('ada'));
  const page = await tenant.list(listUsers, { page: { limit: 10 } });
  assert.doesNotMatch(
    JSON.stringify([user, page, await tenant.call(getUser, { user: named('ada') })]),
    /stored|assword/,
  );
});

test('names and addresses are found without regard to case, and unique so', async () => {
  const tenant = await testTenant();
  const { user } = await create(tenant, fieldsOf('Åda', { email: 'Ada@Example.org' }));
  for (const text of ['Åda', 'åDA', 'A\u030ada']) {
    assert.equal((await tenant.call(getUser, { user: named(text) })).id, user.id);
  }
  assert.equal((await tenant.call(getUser, { user: { text: 'ADA@EXAMPLE.ORG', is: 'email' } })).id, user.id);
  assert.equal((await tenant.call(getUser, { user: { text: user.id, is: 'id' } })).id, user.id);

  const twice = async (fields: ReturnType<typeof fieldsOf>) =>
    (await refusal('conflict', create(tenant, fields))).fields;
  assert.deepEqual(await twice(fieldsOf('åda', { email: 'new@example.org' })), { username: 'is taken' });
  assert.deepEqual(await twice(fieldsOf('new', { email: 'ada@example.ORG' })), { email: 'is taken' });
  assert.deepEqual(Object.keys((await twice(fieldsOf('ÅDA', { email: 'ADA@example.org' }))) ?? {}), [
    'username',
    'email',
  ]);
  for (const is of ['username', 'email', 'id'] as const) {
    await refusal('not-found', tenant.call(getUser, { user: { text: 'nobody', is } }));
  }
});

test('senseless names and addresses are refused by field', async () => {
  const tenant = await testTenant();
  for (const email of [
    'ada',
    '@',
    'a@',
    '@b',
    'a b@c',
    'a@b@c',
    'a@b,c@d',
    '<a@b>',
    'a@b\n',
    `${'a'.repeat(250)}@b.cd`,
  ]) {
    const error = await refusal('invalid', create(tenant, fieldsOf('ada', { email })));
    assert.deepEqual(Object.keys(error.fields ?? {}), ['email'], email);
  }
  for (const username of ['.', '..', ' ada', 'ada\n', 'a\u0000b', 'x'.repeat(257)]) {
    const error = await refusal('invalid', create(tenant, fieldsOf(username, { email: 'a@b' })));
    assert.deepEqual(Object.keys(error.fields ?? {}), ['username'], username);
  }
  for (const [index, username] of ['a/b', '__proto__', 'ada@example.org', '🗝', 'x'.repeat(256), 'a b'].entries()) {
    await create(tenant, fieldsOf(username, { email: `u${index}@example.org` }));
    assert.equal((await tenant.call(getUser, { user: named(username) })).username, username);
  }
});

test('keys of objects are kept, whatever they are called', async () => {
  const tenant = await testTenant();
  const props = JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}');
  const flags = JSON.parse('{"__proto__": true}');
  const { user } = await create(tenant, fieldsOf('ada', { props, flags }));
  assert.equal(JSON.stringify(user.props), '{"__proto__":{"x":1},"constructor":2}');
  assert.equal(JSON.stringify(user.flags), '{"__proto__":true}');
});

test('nobody grants what they lack', async () => {
  const tenant = await testTenant();
  const fields = fieldsOf('ada', { flags: { 'keyring.a.read': true } });
  const error = await refusal('forbidden', create(tenant, fields, 'user.create', 'keyring.b.read'));
  assert.match(error.message, /keyring\.a\.read/);
  await refusal('not-found', tenant.call(getUser, { user: named('ada') }));
  await create(tenant, fields, 'user.create', 'keyring.*.read');
  await refusal(
    'forbidden',
    tenant.call(
      updateUser,
      { user: named('ada'), changes: { flags: { '*': true } } },
      callerWith('user.update', 'keyring.*.read'),
    ),
  );
});

test('nobody touches what is stronger', async () => {
  const tenant = await testTenant();
  await addedUser(tenant, 'root', { '*': true });
  const weaker = callerWith('user.*', 'keyring.*');
  for (const attempt of [
    tenant.call(updateUser, { user: named('root'), changes: { email: 'eve@example.org' } }, weaker),
    tenant.call(deleteUser, { user: named('root') }, weaker),
  ]) {
    assert.match((await refusal('forbidden', attempt)).message, /\*/);
  }
  assert.equal((await tenant.call(getUser, { user: named('root') })).email, 'root@example.org');
  await addedUser(tenant, 'ada', { 'keyring.*.read': true, 'apikey.create': false });
  await tenant.call(updateUser, { user: named('ada'), changes: { firstName: 'A' } }, weaker);
});

test('a change replaces what it names, whole, and keeps the rest', async () => {
  const tenant = await testTenant();
  await create(tenant, fieldsOf('ada', { props: { a: 1, b: 2 }, flags: { x: true } }));
  const changed = await tenant.call(updateUser, {
    user: named('ADA'),
    changes: { lastName: 'King', props: { c: 3 }, flags: { y: true }, email: 'Countess@example.org' },
  });
  assert.deepEqual(changed, {
    ...(await tenant.call(getUser, { user: named('ada') })),
    username: 'ada',
    firstName: 'Ada',
    lastName: 'King',
    displayName: 'Ada Lovelace',
    email: 'Countess@example.org',
    props: { c: 3 },
    flags: { y: true },
  });
  assert.deepEqual(await tenant.call(updateUser, { user: named('ada'), changes: {} }), changed);
});

test('an address is changed to a free one, or to another case of the same', async () => {
  const tenant = await testTenant();
  await addedUser(tenant, 'ada');
  await addedUser(tenant, 'bob');
  const to = (email: string) => tenant.call(updateUser, { user: named('ada'), changes: { email } });
  assert.deepEqual((await refusal('conflict', to('BOB@example.org'))).fields, { email: 'is taken' });
  await refusal('invalid', to('nonsense'));
  assert.equal((await to('ADA@example.org')).email, 'ADA@example.org');
  await to('new@example.org');
  await refusal('not-found', tenant.call(getUser, { user: { text: 'ada@example.org', is: 'email' } }));
});

test('a user changes itself without a flag, its flags with user.update alone', async () => {
  const tenant = await testTenant();
  const ada = await addedUser(tenant, 'ada', { 'keyring.a.read': true });
  const changed = await tenant.call(
    updateUser,
    { user: named('ada'), changes: { firstName: 'Augusta' } },
    await selfOf(tenant, ada),
  );
  assert.equal(changed.firstName, 'Augusta');
  for (const flags of [{}, { 'keyring.a.read': true }, { '*': true }]) {
    const error = await refusal(
      'forbidden',
      tenant.call(updateUser, { user: named('ada'), changes: { flags } }, await selfOf(tenant, ada)),
    );
    assert.match(error.message, /user\.update/);
  }
  const bob = await addedUser(tenant, 'bob', { 'user.update': true, 'keyring.a.read': true });
  const self = await selfOf(tenant, bob);
  await refusal('forbidden', tenant.call(updateUser, { user: named('bob'), changes: { flags: { '*': true } } }, self));
  const fewer = { user: named('bob'), changes: { flags: { 'user.update': true } } };
  assert.deepEqual((await tenant.call(updateUser, fewer, self)).flags, { 'user.update': true });
});

test('a deleted user is gone, its sessions end and its names are free', async () => {
  const tenant = await testTenant();
  const ada = await addedUser(tenant, 'ada');
  const token = await tokenFor(tenant, ada.id);
  const { message } = await tenant.call(deleteUser, { user: { text: ada.id, is: 'id' } });
  assert.match(message, /ada/);
  await refusal('not-found', tenant.call(deleteUser, { user: named('ada') }));
  const verdict = await tenant.store.transaction((tables) => authenticateToken(tables, token, tenant.world.now()));
  assert.deepEqual(verdict, { kind: 'ended', userId: ada.id });
  assert.notEqual((await addedUser(tenant, 'ada')).id, ada.id);
});

test('deleting a user disables the API keys that it owns', async () => {
  const tenant = await testTenant();
  const ada = await addedUser(tenant, 'ada');
  await tenant.run(({ tx }) => {
    const at = { createdAt: 1, updatedAt: 1 };
    tx.accounts.insert({ id: 'acct_1', uid: 'a', notes: '', props: {}, ...at });
    for (const [id, userId] of [
      ['apik_1', ada.id],
      ['apik_2', ada.id],
      ['apik_3', undefined],
    ] as const) {
      const key = {
        id,
        secretHash: id,
        name: '',
        active: true,
        expiresAt: undefined,
        addresses: [],
        createdBy: undefined,
        accountId: 'acct_1',
        userId,
        flagsText: '{}',
        props: {},
        rings: [],
      };
      tx.apiKeys.insert({ ...key, ...at });
    }
  });
  assert.deepEqual((await tenant.call(getUser, { user: named('ada') })).keys, ['apik_1', 'apik_2']);
  await tenant.call(deleteUser, { user: named('ada') });
  const active = await tenant.store.transaction(({ apiKeys }) =>
    ['apik_1', 'apik_2', 'apik_3'].map((id) => apiKeys.byId(id)?.active),
  );
  assert.deepEqual(active, [false, false, true]);
});

test('pages are stable while users come and go', async () => {
  const tenant = await testTenant();
  for (const name of ['a', 'b', 'c', 'd', 'e']) await addedUser(tenant, name);
  const first = await tenant.list(listUsers, { page: { limit: 2 } });
  await tenant.call(deleteUser, { user: named('b') });
  await addedUser(tenant, 'f');
  const next = first.next === undefined ? {} : { after: first.next };
  const rest = await tenant.list(listUsers, { page: { limit: 10, ...next } });
  assert.deepEqual(
    [...first.items, ...rest.items].map(({ username }) => username),
    ['a', 'b', 'c', 'd', 'e', 'f'],
  );
  assert.equal(rest.next, undefined);
});

test('the limit of users holds, and twenty racing for the last place are one', async () => {
  const tenant = await testTenant({ limits: { users: 3 } });
  await addedUser(tenant, 'a');
  await addedUser(tenant, 'b');
  const racing = Array.from({ length: 20 }, (_, index) => addedUser(tenant, `racer${index}`));
  const outcomes = await Promise.allSettled(racing);
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
  await refusal('quota', addedUser(tenant, 'z'));
});

test('of many making one name exactly one wins', async () => {
  const tenant = await testTenant();
  const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => addedUser(tenant, 'ada')));
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
});

test('generated passwords meet the rules and differ', () => {
  const random = seededRandom(7);
  const made = Array.from({ length: 500 }, () => generatePassword(random));
  for (const password of made) assert.ok(judgePassword(password).isValid && password.length === 20, password);
  assert.equal(new Set(made).size, made.length);
});
