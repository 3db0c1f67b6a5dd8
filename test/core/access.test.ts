// Accounts, API keys and credentials: who may make, change and delete them, and the answers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAccount, deleteAccount, getAccount, listAccounts, updateAccount } from '../../src/core/accounts.ts';
import {
  createApiKey,
  deleteApiKey,
  getApiKey,
  listAccountApiKeys,
  listApiKeys,
  longestMerged,
  searchApiKeysByRing,
  updateApiKeyById,
  updateApiKeyBySecret,
  validateApiKey,
} from '../../src/core/api-keys.ts';
import type { Caller } from '../../src/core/context.ts';
import { authenticate, Bearer } from '../../src/core/credential.ts';
import { createKeyring, deleteKeyring } from '../../src/core/keyrings.ts';
import { bootstrap } from '../../src/core/set-up.ts';
import { hashSecret, isWellFormedApiKey, newApiKeySecret } from '../../src/crypto/secrets.ts';
import { maxFlags, parseFlags } from '../../src/model/flags.ts';
import { callerWith, refusal, seededRandom, startTime, type TestTenant, testTenant } from '../support/context.ts';

const page = { limit: 100 };
/** Default fields of an API key that the administrator made at the start with only flags and props. */
const plain = {
  name: '',
  expiresAt: null,
  allowedAddresses: [],
  createdAt: '2026-01-02T03:04:05.678Z',
  createdBy: 'local',
  lastUsedAt: null,
};
/** The same after a change. */
const changed = { ...plain, updatedAt: plain.createdAt };
const strange = newApiKeySecret(seededRandom(99));

async function withAccount(options: Parameters<typeof testTenant>[0] = {}) {
  const tenant = await testTenant(options);
  const account = await tenant.call(createAccount, { uid: 'team' });
  const make = (flags: Record<string, boolean>, props = {}, caller?: Caller) =>
    tenant.call(createApiKey, { account: { id: account.id }, flags, props }, caller);
  return { tenant, account, make };
}

async function credentialOf(tenant: TestTenant, secret: string): Promise<Caller> {
  const credential = await tenant.run(({ tx, world }) => authenticate(tx, new Bearer(secret), {}, world.now()));
  assert.ok(credential?.usable);
  return credential.caller;
}

test('accounts: create, get, list, update, delete', async () => {
  const { tenant, account } = await withAccount();
  assert.deepEqual(account, {
    id: account.id,
    uid: 'team',
    notes: '',
    props: {},
    createdAt: '2026-01-02T03:04:05.678Z',
    updatedAt: '2026-01-02T03:04:05.678Z',
  });
  const other = await tenant.call(createAccount, { uid: 'Team', notes: 'n', props: { a: { b: 1 } } });
  assert.deepEqual((await tenant.list(listAccounts, { page })).items, [account, other]);
  assert.deepEqual(await tenant.call(getAccount, { account: { uid: 'team' } }), account);
  assert.deepEqual(await tenant.call(getAccount, { account: { id: other.id } }), other);
  for (const ref of [{ id: 'team' }, { uid: account.id }, { uid: 'TEAM' }, { id: '' }]) {
    await refusal('not-found', tenant.call(getAccount, { account: ref }));
  }
  tenant.advance(1000);
  const updated = await tenant.call(updateAccount, { account: { uid: 'Team' }, uid: 'new', props: { c: 1 } });
  assert.deepEqual(updated, { ...other, uid: 'new', props: { c: 1 }, updatedAt: '2026-01-02T03:04:06.678Z' });
  assert.deepEqual(await tenant.call(updateAccount, { account: { id: other.id }, uid: 'new' }), updated);
  const taken = await refusal('conflict', tenant.call(updateAccount, { account: { id: other.id }, uid: 'team' }));
  assert.ok(taken.fields?.uid);
  assert.ok((await refusal('conflict', tenant.call(createAccount, { uid: 'new' }))).fields?.uid);
  assert.deepEqual(await tenant.call(deleteAccount, { account: { uid: 'new' } }), updated);
  await refusal('not-found', tenant.call(deleteAccount, { account: { id: other.id } }));
  await refusal('not-found', tenant.call(updateAccount, { account: { id: other.id } }));
});

test('a new API key answers its secret once, and only a hash of it is kept', async () => {
  const { tenant, account } = await withAccount();
  const flags = { 'Keyring.Pay.read': true, 'user.read': false };
  const made = await tenant.call(createApiKey, { account: { uid: 'team' }, flags, props: { p: 1 } });
  assert.deepEqual(
    { ...made, key: '', keyid: '' },
    {
      key: '',
      keyid: '',
      active: true,
      references: { accountId: account.id },
      flags,
      props: { p: 1 },
      ...plain,
      updatedAt: '2026-01-02T03:04:05.678Z',
    },
  );
  assert.ok(isWellFormedApiKey(made.key));
  const { key: _, ...safe } = made;
  assert.deepEqual(await tenant.call(getApiKey, { keyid: made.keyid }), safe);
  assert.deepEqual((await tenant.list(listApiKeys, { page })).items, [safe]);
  assert.deepEqual((await tenant.list(listAccountApiKeys, { account: { uid: 'team' }, page })).items, [safe]);
  const bare = await tenant.call(createApiKey, { account: { id: account.id } });
  assert.deepEqual([bare.flags, bare.props], [{}, {}]);
  await refusal('not-found', tenant.call(createApiKey, { account: { id: 'team' } }));
  await refusal('not-found', tenant.list(listAccountApiKeys, { account: { id: 'team' }, page }));
  await refusal('not-found', tenant.call(getApiKey, { keyid: made.key }));
  await refusal('invalid', tenant.call(createApiKey, { account: { uid: 'team' }, flags: { a: 1 } }));
});

test('a bearer is known, disabled or unknown', async () => {
  const { tenant, account, make } = await withAccount();
  const { key, keyid } = await make({ 'user.read': true });
  const known = await tenant.run(({ tx, world }) => authenticate(tx, new Bearer(key), {}, world.now()));
  assert.equal(known?.usable, true);
  assert.deepEqual([known?.caller.kind, known?.caller.id, known?.caller.accountId], ['apikey', keyid, account.id]);
  assert.equal(known?.caller.flags.allows('user.read'), true);
  assert.equal(known?.caller.flags.allows('user.create'), false);
  await tenant.call(updateApiKeyById, { apikeyid: keyid, op: 'merge', active: false });
  const disabled = await tenant.run(({ tx, world }) => authenticate(tx, new Bearer(key), {}, world.now()));
  assert.deepEqual([disabled?.usable, disabled?.caller.id], [false, keyid]);
  for (const text of ['', 'x', `${key} `, key.slice(0, -1), key.toLowerCase(), hashSecret(key), keyid, strange]) {
    assert.equal(await tenant.run(({ tx, world }) => authenticate(tx, new Bearer(text), {}, world.now())), undefined);
  }
  await tenant.call(deleteApiKey, { key });
  assert.equal(await tenant.run(({ tx, world }) => authenticate(tx, new Bearer(key), {}, world.now())), undefined);
});

test('a key made by a user belongs to that user', async () => {
  const { tenant, make } = await withAccount();
  const user: Caller = { kind: 'user', id: 'user_1', userId: 'user_1', flags: parseFlags({ '*': true }) };
  const { key, keyid } = await make({}, {}, user);
  const caller = await credentialOf(tenant, key);
  assert.equal(caller.userId, 'user_1');
  const made = await make({}, {}, { ...caller, flags: parseFlags({ '*': true }) });
  assert.equal((await tenant.run(({ tx }) => tx.apiKeys.byId(keyid)))?.userId, 'user_1');
  assert.equal((await tenant.run(({ tx }) => tx.apiKeys.byId(made.keyid)))?.userId, undefined);
});

test('merge sets, replace puts in place, delete takes away', async () => {
  const { tenant, account, make } = await withAccount();
  const flags = { 'User.Read': true, 'user.create': false, own: true };
  const props = { a: { b: 1, c: [1] }, d: 2 };
  const cases: [object, object, object][] = [
    [{ op: 'merge' }, flags, props],
    [{ op: 'replace' }, flags, props],
    [{ op: 'delete' }, flags, props],
    [{ op: 'merge', flags: {} }, flags, props],
    [
      { op: 'merge', flags: { 'USER.READ': false, new: true } },
      { 'user.create': false, own: true, 'USER.READ': false, new: true },
      props,
    ],
    [{ op: 'merge', props: { a: { b: 2, e: 3 }, d: { f: 1 } } }, flags, { a: { b: 2, c: [1], e: 3 }, d: { f: 1 } }],
    [{ op: 'merge', props: { a: 1 } }, flags, { a: 1, d: 2 }],
    [{ op: 'merge', props: { a: { c: [] } } }, flags, { a: { b: 1, c: [] }, d: 2 }],
    [{ op: 'replace', flags: {} }, {}, props],
    [{ op: 'replace', flags: { x: true }, props: {} }, { x: true }, {}],
    [{ op: 'delete', flags: { 'user.read': false, nobody: true } }, { 'user.create': false, own: true }, props],
    [{ op: 'delete', props: { a: null } }, flags, { d: 2 }],
  ];
  for (const [change, expectedFlags, expectedProps] of cases) {
    const { key, keyid } = await make(flags, props);
    const input = change as { op: 'merge' };
    const answer = await tenant.call(updateApiKeyBySecret, { key, ...input });
    assert.deepEqual(answer, {
      key,
      keyid,
      op: input.op,
      active: true,
      references: { accountId: account.id },
      flags: expectedFlags,
      props: expectedProps,
      ...changed,
    });
    const read = await tenant.call(getApiKey, { keyid });
    assert.deepEqual([read.flags, read.props], [expectedFlags, expectedProps]);
  }
});

test('keys of objects are merged as the ordinary keys that they are', async () => {
  const { tenant, make } = await withAccount();
  const { keyid } = await make({}, {});
  const props = JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}');
  await tenant.call(updateApiKeyById, { apikeyid: keyid, op: 'merge', props });
  const answer = await tenant.call(updateApiKeyById, {
    apikeyid: keyid,
    op: 'merge',
    props: JSON.parse('{"__proto__":{"b":1}}'),
  });
  assert.equal(
    JSON.stringify(answer.props),
    '{"__proto__":{"polluted":true,"b":1},"constructor":{"prototype":{"polluted":true}}}',
  );
  assert.equal('polluted' in {}, false);
  const gone = await tenant.call(updateApiKeyById, {
    apikeyid: keyid,
    op: 'delete',
    props: JSON.parse('{"__proto__":1}'),
  });
  assert.deepEqual(Object.keys(gone.props), ['constructor']);
});

test('what many merges add up to has bounds', async () => {
  const { tenant, make } = await withAccount();
  const { keyid } = await make({}, { kept: 1 });
  const merge = (change: object) => tenant.call(updateApiKeyById, { apikeyid: keyid, op: 'merge', ...change });
  const half = 'x'.repeat(longestMerged / 2);
  await merge({ props: { a: half } });
  assert.ok((await refusal('invalid', merge({ props: { b: half } }))).fields?.props);
  assert.deepEqual(Object.keys((await tenant.call(getApiKey, { keyid })).props), ['kept', 'a']);
  await merge({ props: { a: '' } });
  await merge({ props: { b: half } });

  const names = (from: number, to: number) =>
    Object.fromEntries(Array.from({ length: to - from }, (_, i) => [`own.${from + i}`, true]));
  await merge({ flags: names(0, maxFlags) });
  await merge({ flags: names(0, 2) });
  assert.ok((await refusal('invalid', merge({ flags: names(maxFlags, maxFlags + 1) }))).fields?.flags);
  assert.equal(Object.keys((await tenant.call(getApiKey, { keyid })).flags).length, maxFlags);
});

test('active and account are set under any op', async () => {
  const { tenant, make } = await withAccount();
  const other = await tenant.call(createAccount, { uid: 'other' });
  for (const op of ['delete', 'merge', 'replace'] as const) {
    const { keyid } = await make({ own: true });
    const references = { accountId: other.id };
    const answer = await tenant.call(updateApiKeyById, { apikeyid: keyid, op, active: false, references });
    assert.deepEqual(answer, { keyid, op, active: false, references, flags: { own: true }, props: {}, ...changed });
    await refusal(
      'not-found',
      tenant.call(updateApiKeyById, { apikeyid: keyid, op, references: { accountId: 'other' } }),
    );
    assert.equal(
      (await tenant.call(updateApiKeyById, { apikeyid: keyid, op, references: {} })).references.accountId,
      other.id,
    );
  }
});

test('unknown keys are unknown, by any means', async () => {
  const { tenant } = await withAccount();
  for (const key of ['', 'x', strange, strange.slice(1)]) {
    await refusal('not-found', tenant.call(updateApiKeyBySecret, { key, op: 'merge' }));
    await refusal('not-found', tenant.call(deleteApiKey, { key }));
    const error = await refusal('not-found', tenant.call(getApiKey, { keyid: key }));
    if (key) assert.equal(error.message.includes(key), false);
  }
  await refusal('not-found', tenant.call(updateApiKeyById, { apikeyid: 'apik_x', op: 'merge' }));
});

test('nobody grants what they lack', async () => {
  const { tenant, make } = await withAccount();
  const caller = callerWith('apikey.create', 'apikey.update', 'keyring.payroll.*', 'user.read');
  for (const flag of [
    '*',
    'keyring.*',
    'keyring.*.*',
    'keyring.*.read',
    'keyring.other.read',
    'user.*',
    'user.create',
    'APIKEY.DELETE',
    'own',
  ]) {
    const error = await refusal('forbidden', make({ [flag]: true }, {}, caller));
    assert.ok(error.message.includes(flag.toLowerCase()));
    await make({ [flag]: false }, {}, caller);
    const weak = await make({}, {}, caller);
    for (const op of ['merge', 'replace'] as const) {
      await refusal(
        'forbidden',
        tenant.call(updateApiKeyById, { apikeyid: weak.keyid, op, flags: { [flag]: true } }, caller),
      );
    }
    assert.deepEqual((await tenant.call(getApiKey, { keyid: weak.keyid })).flags, {});
  }
  await make({ 'keyring.Payroll.rotate': true, 'user.read': true }, {}, caller);
});

test('nobody touches what is stronger, oneself aside', async () => {
  const { tenant, make } = await withAccount();
  const other = await tenant.call(createAccount, { uid: 'other' });
  const strong = await make({ 'user.delete': true });
  const caller = callerWith('apikey.update', 'apikey.delete', 'account.delete', 'user.read');
  const before = await tenant.call(getApiKey, { keyid: strong.keyid });
  const changes = [
    {},
    { active: false },
    { references: { accountId: other.id } },
    { flags: { 'user.delete': false } },
    { props: { a: 1 } },
  ];
  for (const change of changes) {
    const update = { op: 'merge', ...change } as const;
    await refusal('forbidden', tenant.call(updateApiKeyById, { apikeyid: strong.keyid, ...update }, caller));
    await refusal('forbidden', tenant.call(updateApiKeyBySecret, { key: strong.key, ...update }, caller));
  }
  await refusal('forbidden', tenant.call(deleteApiKey, { key: strong.key }, caller));
  await refusal('forbidden', tenant.call(deleteAccount, { account: { uid: 'team' } }, caller));
  assert.deepEqual(await tenant.call(getApiKey, { keyid: strong.keyid }), before);
  const self = await credentialOf(tenant, strong.key);
  await refusal(
    'forbidden',
    tenant.call(updateApiKeyById, { apikeyid: strong.keyid, op: 'merge', flags: { 'user.read': true } }, self),
  );
  await tenant.call(updateApiKeyById, { apikeyid: strong.keyid, op: 'merge', flags: { 'user.delete': false } }, self);
  await tenant.call(updateApiKeyById, { apikeyid: strong.keyid, op: 'merge', active: false }, caller);
  await tenant.call(deleteAccount, { account: { uid: 'team' } }, caller);
  await refusal('not-found', tenant.call(getApiKey, { keyid: strong.keyid }));
});

test('the keys that use a ring, and those that a wildcard lets in', async () => {
  const { tenant, make } = await withAccount();
  const { ring } = await tenant.call(createKeyring, { name: 'Pay.Roll' });
  const named = [
    await make({ 'keyring.pay.roll.read': true, 'keyring.pay.roll.rotate': true }),
    await make({ 'KEYRING.PAY.ROLL.*': true }),
  ];
  const wild = [await make({ '*': true }), await make({ 'keyring.*': true }), await make({ 'keyring.*.read': true })];
  await make({ 'keyring.pay.roll.read': false, 'keyring.pay.read': true, 'asym.pay.roll.read': true, 'user.*': true });
  const search = async (input: { name: string } | { id: string }, wildcard = false, limit = 100) =>
    (await tenant.list(searchApiKeysByRing, { ring: input, wildcard, page: { limit } })).items.map((key) => key.keyid);
  const ids = (keys: { keyid: string }[]) => keys.map((key) => key.keyid);
  assert.deepEqual(await search({ name: 'PAY.ROLL' }), ids(named));
  assert.deepEqual(await search({ id: ring.id }), ids(named));
  assert.deepEqual(await search({ name: 'pay.roll' }, true), ids([...named, ...wild]));
  assert.deepEqual(await search({ name: 'pay.roll' }, true, 3), ids([...named, ...wild]).slice(0, 3));
  const first = await tenant.list(searchApiKeysByRing, {
    ring: { name: 'pay.roll' },
    wildcard: false,
    page: { limit: 1 },
  });
  const rest = await tenant.list(searchApiKeysByRing, {
    ring: { name: 'pay.roll' },
    wildcard: false,
    page: { limit: 1, after: first.next ?? 0 },
  });
  assert.deepEqual(ids(rest.items), [named[1]?.keyid]);
  const once = named[0]?.keyid ?? '';
  await tenant.call(updateApiKeyById, { apikeyid: once, op: 'delete', flags: { 'keyring.pay.roll.read': true } });
  assert.deepEqual(await search({ name: 'pay.roll' }), ids(named));
  await tenant.call(updateApiKeyById, { apikeyid: once, op: 'replace', flags: {} });
  assert.deepEqual(await search({ name: 'pay.roll' }), ids(named).slice(1));
  await refusal('not-found', search({ name: 'nobody' }));
  await refusal('not-found', search({ id: 'ring_x' }));
});

test('the search tells whether a ring exists to those alone who may read it', async () => {
  const { tenant, make } = await withAccount();
  const { ring } = await tenant.call(createKeyring, { name: 'payroll' });
  const { keyid } = await make({ 'keyring.payroll.read': true });
  const search = (ref: { name: string } | { id: string }, caller: Caller) =>
    tenant.list(searchApiKeysByRing, { ring: ref, wildcard: false, page }, caller);
  const blind = callerWith('apikey.read');
  assert.deepEqual(
    (await search({ name: 'payroll' }, blind)).items.map((key) => key.keyid),
    [keyid],
  );
  assert.deepEqual(await search({ name: 'nobody' }, blind), { items: [] });
  const one = await refusal('forbidden', search({ id: ring.id }, blind));
  const two = await refusal('forbidden', search({ id: 'ring_x' }, blind));
  assert.equal(one.message, two.message);
  const reader = callerWith('apikey.read', 'keyring.payroll.read');
  assert.equal((await search({ id: ring.id }, reader)).items.length, 1);
  await tenant.call(updateApiKeyById, { apikeyid: keyid, op: 'replace', flags: {} });
  await tenant.call(deleteKeyring, { name: 'payroll' });
  await refusal('not-found', search({ name: 'payroll' }, reader));
  await refusal('not-found', search({ id: ring.id }, reader));
});

test('validate tells whether a key is good, and records what it did', async () => {
  const { tenant, make } = await withAccount();
  const { key, keyid } = await make({});
  assert.deepEqual(await tenant.call(validateApiKey, { key }), { valid: true });
  for (const wrong of ['', 'x', strange]) {
    assert.deepEqual(await tenant.call(validateApiKey, { key: wrong, activity: { action: 'a' } }), { valid: false });
  }
  assert.equal(tenant.store.status().activityCount, 0);
  const activity = {
    action: 'door.open',
    apikeyId: 'x',
    createdAt: 5,
    props: { a: 1 },
    ringname: 'Pay',
    validAction: false,
  };
  assert.deepEqual(await tenant.call(validateApiKey, { key, activity }), { valid: true });
  await tenant.call(updateApiKeyById, { apikeyid: keyid, op: 'merge', active: false });
  assert.deepEqual(await tenant.call(validateApiKey, { key, activity: {} }), { valid: false });
  const { items } = await tenant.store.activity.search({ keyids: [keyid] }, page);
  const [second, first] = items.map(({ id: _, seq: __, ...record }) => record);
  const record = {
    keyid,
    action: 'door.open',
    ringname: 'pay',
    validAction: false,
    status: 200,
    props: { a: 1 },
    createdAt: 5,
    reporter: 'local',
  };
  assert.deepEqual(first, record);
  assert.deepEqual(second, {
    ...record,
    action: 'validated',
    ringname: '',
    props: {},
    createdAt: startTime,
  });
});

test('limits hold for accounts and API keys', async () => {
  const { tenant, make } = await withAccount({ limits: { accounts: 2, apikeys: 1 } });
  await tenant.call(createAccount, { uid: 'two' });
  await refusal('quota', tenant.call(createAccount, { uid: 'three' }));
  await refusal('conflict', tenant.call(createAccount, { uid: 'two' }));
  const { key } = await make({});
  await refusal('quota', make({}));
  await tenant.call(deleteApiKey, { key });
  await make({});
});

test('a tenant starts with an admin account and a root key', async () => {
  const tenant = await testTenant();
  const { account, apiKey } = await tenant.run(bootstrap);
  assert.equal(account.uid, 'admin');
  assert.deepEqual(apiKey.flags, { '*': true });
  assert.equal(apiKey.references.accountId, account.id);
  assert.ok((await credentialOf(tenant, apiKey.key)).flags.allows('system.backup'));
  assert.deepEqual(await tenant.call(getAccount, { account: { uid: 'admin' } }), account);
});
