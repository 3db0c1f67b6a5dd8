// Things that come along with another, if they are asked for: the same as from their own list, as far as the caller's
// flags go, and in one record.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mostAlong } from '../../src/api/page.ts';
import { testAppliance } from '../support/appliance.ts';

const a = await testAppliance();
await a.call('POST', '/ks/keyrings', { name: 'Payroll' });
await a.call('POST', '/managed-keys', { name: 'held', type: 'aes256-gcm' });
const account = (await a.call('POST', '/auth/accounts', { uid: 'wages' })).body;
const ada = (
  await a.call('POST', '/auth/users', {
    username: 'ada',
    email: 'ada@example.org',
    firstName: 'Ada',
    lastName: 'Lovelace',
  })
).body.user;

async function newKey(flags: object): Promise<{ key: string; keyid: string }> {
  return (await a.call('POST', '/auth/apikey', { accountId: account.id, flags })).body;
}
const encrypting = await newKey({ 'keyring.payroll.encrypt': true });
const any = await newKey({ 'keyring.*.encrypt': true });
await a.call('PUT', '/auth/apikeyid', { op: 'merge', apikeyid: any.keyid, owner: ada.id });
const reading = { 'keyring.payroll.read': true, 'key.held.read': true, 'account.read': true, 'user.read': true };
const reader = await newKey(reading);
const auditor = await newKey({ ...reading, 'apikey.read': true });
await a.call('POST', '/ks/encrypt', { ringname: 'payroll' }, { key: encrypting.key });
await a.call('POST', '/managed-keys/held/encrypt', { items: [{ plaintext: 'aGk=' }] });

const look = async (path: string, { key }: { readonly key: string } = auditor) =>
  (await a.call('GET', path, undefined, { key })).body;
const items = async (path: string) => {
  const { data, pagination } = await look(path);
  return { data, hasMore: pagination.hasMore };
};

// The last use of a key is in the answers, and is noted once a minute.
for (const caller of [reader, auditor]) await look('/auth/users/ada', caller);

test('a keyring brings its configuration, its keys and the API keys that may use it', async () => {
  const whole = await look('/ks/keyrings/payroll?config=true&keys=true&apikeys=true');
  const plain = await look('/ks/keyrings/PAYROLL');
  assert.deepEqual(Object.keys(plain), ['ring']);
  assert.deepEqual(whole, {
    ...plain,
    ...(await look('/ks/config?ringname=payroll')),
    keys: await items('/ks/keyrings/payroll/keys?usage=true'),
    apikeys: await items('/auth/search/keyring/payroll/apikey?wildcard=true'),
  });
  assert.equal(whole.keys.data[0].usage.lastEncryptBy, encrypting.keyid);
  assert.deepEqual(whole.apikeys.data.map(({ keyid }: { keyid: string }) => keyid).slice(1), [
    encrypting.keyid,
    any.keyid,
    reader.keyid,
    auditor.keyid,
  ]);
  assert.deepEqual(await look(`/ks/keyrings/${plain.ring.id}?id=true&apikeys=true&config=true&keys=true`), whole);
});

test('a managed key brings those who used it', async () => {
  const whole = await look('/managed-keys/held?dependents=true');
  assert.deepEqual(whole, { ...(await look('/managed-keys/held')), ...(await look('/managed-keys/held/dependents')) });
  assert.equal(whole.dependents.length, 1);
});

test('an account and a user bring their API keys', async () => {
  const ofAccount = await items(`/auth/accounts/${account.id}/apikeys`);
  const plain = await look(`/auth/accounts/${account.id}`);
  assert.deepEqual(await look(`/auth/accounts/${account.id}?apikeys=true`), { ...plain, apikeys: ofAccount });
  assert.deepEqual(await look('/auth/accounts/wages?uid=true&apikeys=true'), { ...plain, apikeys: ofAccount });
  const { apikeys, ...user } = await look('/auth/users/ada?apikeys=true');
  assert.deepEqual(user, await look('/auth/users/ada'));
  assert.deepEqual(apikeys, { data: [await look(`/auth/apikey/${any.keyid}`)], hasMore: false });
});

test('a caller who may not see API keys gets the rest without them', async () => {
  const { apikeys, ...ring } = await look('/ks/keyrings/payroll?config=true&keys=true&apikeys=true', reader);
  assert.equal(apikeys, undefined);
  assert.deepEqual(Object.keys(ring), ['ring', 'config', 'keys']);
  assert.equal((await look(`/auth/accounts/${account.id}?apikeys=true`, reader)).apikeys, undefined);
  assert.equal((await look('/auth/users/ada?apikeys=true', reader)).apikeys, undefined);
});

test('each is one record, and what is not there is not found', async () => {
  const before = (await a.activity()).length;
  await look('/ks/keyrings/payroll?config=true&keys=true&apikeys=true');
  await look('/managed-keys/held?dependents=true');
  await look('/auth/accounts/wages?uid=true&apikeys=true');
  await look('/auth/users/ada?apikeys=true');
  for (const path of ['/ks/keyrings/nosuch?keys=true', '/auth/accounts/x?apikeys=true', '/auth/users/x?apikeys=true']) {
    assert.equal((await a.call('GET', path)).status, 404, path);
  }
  const log = await a.activity();
  assert.deepEqual(
    log
      .slice(0, log.length - before)
      .map(({ action, status }) => `${action} ${status}`)
      .reverse(),
    [
      'keyring.read 200',
      'key.read 200',
      'account.read 200',
      'user.read 200',
      'keyring.read 404',
      'account.read 404',
      'user.read 404',
    ],
  );
});

test('a long list is cut, and says so', async () => {
  const { body } = await a.call('POST', '/auth/accounts', { uid: 'many' });
  for (let n = 0; n < mostAlong + 1; n++) {
    const { keyid } = (await a.call('POST', '/auth/apikey', { accountId: body.id })).body;
    await a.call('PUT', '/auth/apikeyid', { op: 'merge', apikeyid: keyid, owner: ada.id });
  }
  const whole = await look('/auth/accounts/many?uid=true&apikeys=true');
  assert.equal(whole.apikeys.data.length, mostAlong);
  assert.equal(whole.apikeys.hasMore, true);
  const user = await look('/auth/users/ada?apikeys=true');
  assert.equal(user.apikeys.data.length, mostAlong);
  assert.equal(user.apikeys.hasMore, true);
});
