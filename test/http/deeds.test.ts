// Details in the record of each operation: its object, the changed fields, the flags granted and revoked, and the
// caller's address. Also what no record contains.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { detailsProps, mostNamed } from '../../src/model/activity-details.ts';
import type { ActivityRecord } from '../../src/store/port.ts';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { goodPassword, inviteToken, makeUser, resetToken, setUpToken } from './samples.ts';

const office = { remoteAddress: '203.0.113.7' };

async function send(a: Appliance, method: string, path: string, body?: object, status = 200): Promise<AnyJson> {
  const answer = await a.call(method, path, body, { env: office });
  assert.equal(answer.status, status, `${method} ${path}: ${answer.text}`);
  return answer.body;
}

/** The newest record. */
async function last(a: Appliance): Promise<ActivityRecord> {
  const [record] = await a.activity();
  return record ?? assert.fail('there is no record');
}

/** The newest record's details. */
async function deed(a: Appliance, action: string): Promise<unknown> {
  const record = await last(a);
  assert.deepEqual([record.action, record.address], [action, office.remoteAddress]);
  return record.props;
}

test('keyrings: made, configured, rotated, deleted and restored', async () => {
  const a = await testAppliance();
  const { ring, key } = await send(a, 'POST', '/ks/keyrings', { name: 'Payroll' });
  const object = { type: 'keyring', id: ring.id, name: 'payroll' };
  const created = { object, objects: [{ type: 'key', id: key.id }], custody: 'client' };
  assert.deepEqual(await deed(a, 'keyring.create'), created);

  const config = { props: { team: 'pay' }, key: { props: {} }, algos: { aes256: { maxEncryptCount: 7 } } };
  await send(a, 'PUT', '/ks/config', { ringname: 'payroll', config });
  assert.deepEqual(await deed(a, 'keyring.config'), { object, changed: ['props', 'algos.aes256.maxEncryptCount'] });
  await send(a, 'PUT', '/ks/config', { ringname: 'payroll', config });
  assert.deepEqual(await deed(a, 'keyring.config'), { object });

  const rotated = await send(a, 'POST', '/ks/rotate', { ringname: 'payroll' });
  const objects = [{ type: 'key', id: rotated.key.id }];
  assert.deepEqual(await deed(a, 'keyring.rotate'), { object, changed: ['activeKey'], objects });

  await send(a, 'DELETE', '/ks/keyrings/payroll');
  assert.deepEqual(await deed(a, 'keyring.delete'), { object });
  await send(a, 'POST', `/ks/keyrings/${ring.id}/restore`, {});
  assert.deepEqual(await deed(a, 'keyring.restore'), { object });
});

test('asym keyrings: made and rotated', async () => {
  const a = await testAppliance();
  const { ring, key } = await send(a, 'POST', '/asym/keyrings', { name: 'Mail' });
  const object = { type: 'asym-keyring', id: ring.id, name: 'mail' };
  const created = { object, objects: [{ type: 'key', id: key.id }], custody: 'client' };
  assert.deepEqual(await deed(a, 'asym.create'), created);
  const rotated = await send(a, 'POST', '/asym/rotate', { ringname: 'mail' });
  const objects = [{ type: 'key', id: rotated.key.id }];
  assert.deepEqual(await deed(a, 'asym.rotate'), { object, changed: ['activeKey'], objects });
});

test('encrypt and decrypt say from where, and no more; so do reads', async () => {
  const a = await testAppliance();
  await send(a, 'POST', '/ks/keyrings', { name: 'payroll' });
  const config = { algos: { aes256: { maxEncryptCount: 1 } } };
  await send(a, 'PUT', '/ks/config', { ringname: 'payroll', config });
  // The second rotates the ring first.
  for (let i = 0; i < 2; i++) await send(a, 'POST', '/ks/encrypt', { ringname: 'payroll' });
  const { header, asset } = await send(a, 'POST', '/ks/encrypt', { ringname: 'payroll', asset: { data: { a: 1 } } });
  assert.deepEqual(await deed(a, 'keyring.encrypt'), {});
  await send(a, 'POST', '/ks/decrypt', { header });
  assert.deepEqual(await deed(a, 'keyring.decrypt'), {});
  for (const [path, action] of [
    ['/ks/keyrings', 'keyring.list'],
    ['/ks/keyrings/payroll/keys', 'keyring.read'],
    ['/auth/users', 'user.read'],
    ['/auth/accounts', 'account.read'],
    ['/auth/apikey', 'apikey.read'],
    [`/assets/${asset.id}`, 'asset.read'],
    ['/assets/signing-keys', 'asset.signing-keys'],
  ] as const) {
    await send(a, 'GET', path);
    assert.deepEqual(await deed(a, action), {}, path);
  }
  await send(a, 'DELETE', `/assets/${asset.id}`);
  assert.deepEqual(await deed(a, 'asset.delete'), { object: { type: 'asset', id: asset.id } });
});

test('users: made, changed, deleted with their keys', async () => {
  const a = await testAppliance();
  const fields = { username: 'Ada', email: 'ada@example.org', firstName: 'Ada', lastName: 'Lovelace' };
  const flags = { 'Keyring.List': true, 'apikey.create': true, 'user.read': false };
  const { user, password } = await send(a, 'POST', '/auth/users', { ...fields, flags });
  const object = { type: 'user', id: user.id, name: 'Ada' };
  assert.deepEqual(await deed(a, 'user.create'), { object, granted: ['keyring.list', 'apikey.create'] });

  await send(a, 'PATCH', '/auth/users/ada', {
    firstName: 'Augusta',
    lastName: 'Lovelace',
    flags: { 'apikey.create': true, 'user.read': true },
  });
  assert.deepEqual(await deed(a, 'user.update'), {
    object,
    changed: ['firstName', 'flags'],
    granted: ['user.read'],
    revoked: ['keyring.list'],
  });

  const login = await a.call('POST', '/auth/basic/login', { username: 'ada', password }, { key: null, env: office });
  const made = await a.call(
    'POST',
    '/auth/apikey',
    { accountId: a.accountId, flags: { 'user.read': true } },
    { key: login.body.accessToken },
  );
  // Flags that only the key has, and its owner no longer.
  const more = { apikeyid: made.body.keyid, op: 'merge', flags: { 'Keyring.*.Encrypt': true, other: false } };
  await send(a, 'PUT', '/auth/apikeyid', more);
  await send(a, 'DELETE', '/auth/users/ada');
  assert.deepEqual(await deed(a, 'user.delete'), {
    object,
    objects: [{ type: 'apikey', id: made.body.keyid }],
    revoked: ['apikey.create', 'user.read', 'keyring.*.encrypt'],
  });
});

test('accounts: made, changed, deleted with their keys, of which a hundred are named', async () => {
  const a = await testAppliance();
  const { id } = await send(a, 'POST', '/auth/accounts', { uid: 'billing', notes: 'n' });
  assert.deepEqual(await deed(a, 'account.create'), { object: { type: 'account', id, name: 'billing' } });
  await send(a, 'PATCH', `/auth/accounts/${id}`, { uid: 'payments', notes: 'n', props: { a: 1 } });
  const object = { type: 'account', id, name: 'payments' };
  assert.deepEqual(await deed(a, 'account.update'), { object, changed: ['uid', 'props'] });

  const keys: { readonly type: string; readonly id: string }[] = [];
  for (let i = 0; i < mostNamed + 3; i++) {
    const { keyid } = await send(a, 'POST', '/auth/apikey', { accountId: id });
    keys.push({ type: 'apikey', id: keyid });
  }
  const give = (i: number, flags: object, active = true) =>
    send(a, 'PUT', '/auth/apikeyid', { apikeyid: keys[i]?.id, op: 'merge', flags, active });
  await give(0, { 'user.read': true });
  await give(mostNamed + 1, { 'User.Read': true, 'keyring.list': true });
  await give(mostNamed + 2, { 'asset.read': true }, false);
  await send(a, 'DELETE', `/auth/accounts/${id}`);
  const objects = keys.slice(0, mostNamed);
  const revoked = ['user.read', 'keyring.list'];
  assert.deepEqual(await deed(a, 'account.delete'), { object, objects, objectCount: mostNamed + 3, revoked });
});

test('API keys: made, changed by id and by secret, deleted', async () => {
  const a = await testAppliance();
  const flags = { 'keyring.*.decrypt': true };
  const { key, keyid } = await send(a, 'POST', '/auth/apikey', { accountId: a.accountId, flags });
  const object = { type: 'apikey', id: keyid };
  assert.deepEqual(await deed(a, 'apikey.create'), { object, granted: ['keyring.*.decrypt'] });

  const more = { 'keyring.payroll.rotate': true, 'KEYRING.*.DECRYPT': true };
  await send(a, 'PUT', '/auth/apikeyid', { op: 'merge', apikeyid: keyid, flags: more, active: false });
  assert.deepEqual(await deed(a, 'apikey.update'), {
    object,
    changed: ['active', 'flags'],
    revoked: ['keyring.*.decrypt'],
  });
  const all = ['keyring.payroll.rotate', 'keyring.*.decrypt'];
  await send(a, 'PUT', '/auth/apikeyid', { op: 'merge', apikeyid: keyid, active: true });
  assert.deepEqual(await deed(a, 'apikey.update'), { object, changed: ['active'], granted: all });
  await send(a, 'PUT', '/auth/apikeyid', { op: 'merge', apikeyid: keyid, active: true });
  assert.deepEqual(await deed(a, 'apikey.update'), { object });
  await send(a, 'PUT', '/auth/apikey', { op: 'merge', key, active: false });
  assert.deepEqual(await deed(a, 'apikey.update'), { object, changed: ['active'], revoked: all });
  await send(a, 'PUT', '/auth/apikey', { op: 'delete', key, flags: { 'keyring.*.decrypt': true }, props: {} });
  assert.deepEqual(await deed(a, 'apikey.update'), { object, changed: ['flags'], revoked: ['keyring.*.decrypt'] });
  const other = await send(a, 'POST', '/auth/accounts', { uid: 'other' });
  await send(a, 'PUT', '/auth/apikeyid', { op: 'merge', apikeyid: keyid, references: { accountId: other.id } });
  assert.deepEqual(await deed(a, 'apikey.update'), { object, changed: ['references'] });

  await send(a, 'DELETE', `/auth/apikey/${key}`);
  assert.deepEqual(await deed(a, 'apikey.delete'), { object, revoked: ['keyring.payroll.rotate'] });
});

test('API keys with a name, an end, addresses and another owner', async () => {
  const a = await testAppliance();
  const named = { accountId: a.accountId, name: 'nightly batch', expiresAt: 1, allowedAddresses: ['192.0.2.1'] };
  const { key, keyid } = await send(a, 'POST', '/auth/apikey', named);
  const object = { type: 'apikey', id: keyid, name: 'nightly batch' };
  assert.deepEqual(await deed(a, 'apikey.create'), { object });
  const { user } = await makeUser(a);
  const update = (change: object) => send(a, 'PUT', '/auth/apikeyid', { op: 'merge', apikeyid: keyid, ...change });
  await update({ expiresAt: null, allowedAddresses: [], owner: user.id });
  const owner = { type: 'user', id: user.id, name: user.username };
  const changed = ['expiresAt', 'allowedAddresses', 'owner'];
  assert.deepEqual(await deed(a, 'apikey.update'), { object, changed, objects: [owner] });
  const found = await a.call('POST', '/auth/search/activity', { object: user.id, action: 'apikey.update' });
  assert.equal(found.body.data?.length, 1, found.text);
  const { user: next } = await makeUser(a);
  await update({ owner: next.id });
  const nextOwner = { type: 'user', id: next.id, name: next.username };
  assert.deepEqual(await deed(a, 'apikey.update'), { object, changed: ['owner'], objects: [nextOwner, owner] });
  await update({ owner: user.id });
  await update({ expiresAt: null, allowedAddresses: [], owner: user.id, name: named.name });
  assert.deepEqual(await deed(a, 'apikey.update'), { object });
  await send(a, 'DELETE', `/auth/users/${user.username}`);
  const deleted = { type: 'user', id: user.id, name: user.username };
  assert.deepEqual(await deed(a, 'user.delete'), { object: deleted, objects: [object] });
  await update({ name: 'evening batch' });
  const renamed = { ...object, name: 'evening batch' };
  assert.deepEqual(await deed(a, 'apikey.update'), { object: renamed, changed: ['name'] });
  await send(a, 'DELETE', `/auth/apikey/${key}`);
  assert.deepEqual(await deed(a, 'apikey.delete'), { object: renamed });
});

test('invites and resets, under the id of whose they are', async () => {
  const a = await testAppliance();
  const fields = { username: 'ada', email: 'ada@example.org', firstName: 'Ada', lastName: 'Lovelace' };
  await send(a, 'POST', '/auth/user/invite', { ...fields, flags: { 'user.read': true } });
  const { object } = (await deed(a, 'user.invite')) as AnyJson;
  assert.deepEqual([object.type, object.name], ['user', 'ada']);
  const token = await inviteToken(a, { ...fields, lastName: 'King', flags: { 'keyring.list': true } });
  const again = await last(a);
  assert.deepEqual(again.props, {
    object,
    changed: ['lastName', 'displayName', 'flags'],
    granted: ['keyring.list'],
    revoked: ['user.read'],
  });

  const open = { key: null, env: office };
  await a.call('POST', '/auth/user/invite-complete', { token, password: goodPassword }, open);
  assert.deepEqual(await deed(a, 'user.invited'), { object, changed: ['password'] });
  assert.equal((await last(a)).keyid, object.id);

  const before = (await a.activity()).length;
  for (const wrong of [token, 'kmsin_wrong']) {
    await a.call('POST', '/auth/user/invite-complete', { token: wrong, password: goodPassword }, open);
  }
  assert.equal((await a.activity()).length, before, 'a link that is nobody’s is not recorded');
  assert.ok(!JSON.stringify(await a.activity()).includes(token));
});

test('a reset is recorded under the id of the user, the link under local', async () => {
  const a = await testAppliance();
  const { user } = await makeUser(a);
  const token = await resetToken(a, user.username);
  const object = { type: 'user', id: user.id, name: user.username };
  const link = await last(a);
  assert.deepEqual(
    [link.action, link.keyid, link.props],
    ['user.update', 'local', { operation: 'reset-link', object }],
  );
  const body = { token, password: goodPassword };
  await a.call('POST', '/auth/basic/reset-password-complete', body, { key: null, env: office });
  assert.deepEqual(await deed(a, 'user.reset'), { object, changed: ['password'] });
  assert.equal((await last(a)).keyid, user.id);
});

test('setting up makes the first user, who has everything from then on', async () => {
  const a = await testAppliance();
  const fields = { username: 'ada', email: 'ada@example.org', firstName: 'Ada', lastName: 'Lovelace' };
  const body = { ...fields, token: await setUpToken(a), password: goodPassword };
  const weak = await a.call('POST', '/auth/user/set-up-complete', { ...body, password: 'x' }, { key: null });
  assert.deepEqual([weak.status, weak.body.message], [400, 'the password does not meet the rules']);
  const { user } = (await a.call('POST', '/auth/user/set-up-complete', body, { key: null, env: office })).body;
  const object = { type: 'user', id: user.id, name: 'ada' };
  assert.deepEqual(await deed(a, 'user.create'), { object, granted: ['*'] });
  assert.equal((await last(a)).keyid, user.id);
});

test('logins are recorded, granted and denied; names that nobody has, and waits, are not', async () => {
  const a = await testAppliance();
  const { user, password } = await makeUser(a);
  await inviteToken(a, { username: 'bob', email: 'bob@example.org', firstName: 'B', lastName: 'B' });
  const bob = (await a.call('GET', '/auth/users/bob')).body;
  const logIn = async (username: string, word: string, env: object = office) => {
    const before = (await a.activity()).length;
    const { status, headers } = await a.call(
      'POST',
      '/auth/basic/login',
      { username, password: word },
      { key: null, env },
    );
    assert.equal(headers.get('kms-state'), null);
    const now = await a.activity();
    const [{ action, keyid, validAction, status: recorded, address, props } = assert.fail()] = now;
    return now.length === before ? [status] : [status, action, keyid, validAction, recorded, address, props];
  };
  assert.deepEqual(await logIn(user.username, password), [
    200,
    'session.create',
    user.id,
    true,
    200,
    '203.0.113.7',
    {},
  ]);
  const denied = (id: string) => [400, 'session.create', id, false, 400, '203.0.113.7', {}];
  assert.deepEqual(await logIn(user.username, 'wrong'), denied(user.id));
  assert.deepEqual(await logIn('bob', 'anything'), denied(bob.id));
  assert.deepEqual(await logIn('no-such-name', 'wrong'), [400]);
  const line = a.log.findLast((each) => each.includes('/auth/basic/login'));
  assert.deepEqual(JSON.parse(line ?? '{}').byNobody, true);
  assert.ok(!a.log.join().includes('no-such-name'), 'the name is in no log');
  for (let i = 0; i < 4; i++) await logIn(user.username, 'wrong');
  assert.deepEqual(await logIn(user.username, password), [429]);
  assert.equal((await logIn(user.username, password, { remoteAddress: '198.51.100.1' }))[0], 200);
});

test('sessions: refreshed and ended', async () => {
  const a = await testAppliance();
  const { user, password } = await makeUser(a);
  const login = async () =>
    (await a.call('POST', '/auth/basic/login', { username: user.username, password }, { key: null })).body.accessToken;
  const options = async () => ({ key: await login(), env: office });
  await a.call('GET', '/auth/basic/refresh', undefined, await options());
  assert.deepEqual(await deed(a, 'session.refresh'), {});
  await a.call('POST', '/auth/basic/logout', undefined, await options());
  assert.deepEqual(await deed(a, 'session.end'), {});
});

test('what is refused has done nothing, and its record says nothing but from where', async () => {
  const a = await testAppliance();
  const { key } = await a.keyWith('apikey.create', 'user.delete');
  const { user } = await makeUser(a, { 'keyring.list': true });
  for (const [method, path, body, status] of [
    ['POST', '/auth/apikey', { accountId: a.accountId, flags: { '*': true } }, 403],
    ['DELETE', `/auth/users/${user.username}`, undefined, 403],
    ['POST', '/ks/keyrings', { name: 'payroll' }, 403],
    ['PATCH', '/ks/keyrings', undefined, 405],
  ] as const) {
    const answer = await a.call(method, path, body, { key, env: office });
    assert.equal(answer.status, status, path);
    const { props, address } = await last(a);
    assert.deepEqual([props, address], [{}, '203.0.113.7'], path);
  }
  // The last keys with `*` would be deleted with their account, which is refused.
  await send(a, 'DELETE', `/auth/accounts/${a.accountId}`, undefined, 400);
  assert.deepEqual(await deed(a, 'account.delete'), {});
});

test('a request from the machine itself has no address, nor has what others report', async () => {
  const a = await testAppliance();
  await a.call('GET', '/ks/keyrings', undefined, { key: null, env: { local: true } });
  assert.ok(!Object.hasOwn((await a.call('GET', `/auth/activity/${(await last(a)).id}`)).body, 'address'));
  const { key } = await a.keyWith();
  await send(a, 'POST', '/auth/validate', { key, activity: { action: 'door.open' } });
  const [, reported] = await a.activity();
  assert.deepEqual([reported?.action, reported?.address], ['door.open', undefined]);
});

test('the names of things are bounded', () => {
  const name = 'n'.repeat(10_000);
  const { object } = detailsProps({ object: { type: 'account', id: 'acct_1', name } }) as AnyJson;
  assert.equal(object.name.length, 256);
  assert.deepEqual(detailsProps({}), {});
  const split = detailsProps({
    object: { type: 'account', id: 'a', name: `${'n'.repeat(254)}😀 and more` },
  }) as AnyJson;
  assert.ok(split.object.name.isWellFormed());
});
