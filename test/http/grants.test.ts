// No caller may affect a key or user with more rights, not even indirectly: one table of every operation on API keys
// and users, from which the cases are made. Also, the last holder of `*` stays.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Answer, type Appliance, testAppliance } from '../support/appliance.ts';

type Kind = 'weaker' | 'equal' | 'stronger' | 'self';

/** Flags of the target, an API key or a user; other keys and users have none. */
const theirs = { 'asset.delete': true, 'own.thing': true, 'user.read': false };
const theirNames = ['asset.delete', 'own.thing'];

interface Touched {
  /** The target: a key or a user with the flags above. */
  readonly keyid?: string;
  readonly secret?: string;
  readonly username?: string;
  /** Path of the request. */
  readonly path?: string;
}

interface Operation {
  /** Flags that the caller needs besides the target's. */
  readonly needs: readonly string[];
  /** Prepares the target with `flags`, and other keys and users. */
  make(a: Appliance, flags: object): Promise<Touched>;
  request(touched: Touched): readonly [method: string, path: string, body?: unknown];
  /** How the target itself can call; absent if it can't. */
  readonly self?: 'apikey' | 'user';
}

let made = 0;
const person = (flags: object) => {
  const username = `u${++made}`;
  return { username, email: `${username}@x.example`, firstName: 'A', lastName: 'B', flags };
};

async function accountOf(a: Appliance): Promise<string> {
  return (await a.call('POST', '/auth/accounts', { uid: `acct${++made}` })).body.id;
}

async function keyOf(a: Appliance, accountId: string, flags: object, key?: string): Promise<Touched> {
  const { body } = await a.call('POST', '/auth/apikey', { accountId, flags }, key === undefined ? {} : { key });
  return { keyid: body.keyid, secret: body.key, path: accountId };
}

async function tokenOf(a: Appliance, username: string, password: string): Promise<string> {
  return (await a.call('POST', '/auth/basic/login', { username, password }, { key: null })).body.accessToken;
}

const aKey = async (a: Appliance, flags: object): Promise<Touched> => keyOf(a, await accountOf(a), flags);
const aUser = async (a: Appliance, flags: object): Promise<Touched> => {
  const fields = person(flags);
  const { password } = (await a.call('POST', '/auth/users', fields)).body;
  return { username: fields.username, secret: await tokenOf(a, fields.username, password) };
};

/** An account with several keys, one of which has those flags. */
async function anAccount(a: Appliance, flags: object): Promise<Touched> {
  const path = await accountOf(a);
  await keyOf(a, path, {});
  const touched = await keyOf(a, path, flags);
  await keyOf(a, path, {});
  return touched;
}

/** A user without flags who owns a key that another user gave those flags. */
async function anOwner(a: Appliance, flags: object): Promise<Touched> {
  const fields = person({ 'apikey.create': true });
  const { password } = (await a.call('POST', '/auth/users', fields)).body;
  const token = await tokenOf(a, fields.username, password);
  const accountId = await accountOf(a);
  await keyOf(a, accountId, {}, token);
  const touched = await keyOf(a, accountId, {}, token);
  await a.call('PUT', '/auth/apikeyid', { apikeyid: touched.keyid, op: 'replace', flags });
  await a.call('PATCH', `/auth/users/${fields.username}`, { flags: {} });
  return { ...touched, username: fields.username };
}

const update = (change: object): Operation => ({
  needs: ['apikey.update'],
  make: aKey,
  request: ({ keyid }) => ['PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', ...change }],
  self: 'apikey',
});
const updateBySecret = (change: object): Operation => ({
  ...update({}),
  request: ({ secret }) => ['PUT', '/auth/apikey', { key: secret, op: 'merge', ...change }],
});
const patch = (change: object): Operation => ({
  needs: ['user.update'],
  make: aUser,
  request: ({ username }) => ['PATCH', `/auth/users/${username}`, change],
  self: 'user',
});

const operations: Readonly<Record<string, Operation>> = {
  'a key, nothing changed': update({}),
  'a key disabled': update({ active: false }),
  'a key given props': update({ props: { a: 1 } }),
  'a key given fewer flags': update({ op: 'replace', flags: {} }),
  'a key taken a flag': update({ op: 'delete', flags: { 'OWN.thing': true } }),
  'a key told a flag is off': update({ flags: { 'asset.delete': false } }),
  'a key moved': {
    ...update({}),
    async make(a, flags) {
      return { ...(await aKey(a, flags)), path: await accountOf(a) };
    },
    request: ({ keyid, path }) => [
      'PUT',
      '/auth/apikeyid',
      { apikeyid: keyid, op: 'merge', references: { accountId: path } },
    ],
  },
  'a key handed to a user': {
    ...update({}),
    async make(a, flags) {
      const { body } = await a.call('POST', '/auth/users', person({}));
      return { ...(await aKey(a, flags)), path: body.user.id };
    },
    request: ({ keyid, path }) => ['PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', owner: path }],
  },
  'a key handed to a user with flags': {
    needs: ['apikey.update'],
    async make(a, flags) {
      const { body } = await a.call('POST', '/auth/users', person(flags));
      return { ...(await aKey(a, {})), path: body.user.id };
    },
    request: ({ keyid, path }) => ['PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', owner: path }],
  },
  'a key taken from a user with flags': {
    needs: ['apikey.update'],
    async make(a, flags) {
      const [from, to] = await Promise.all([flags, {}].map((each) => a.call('POST', '/auth/users', person(each))));
      const key = await aKey(a, {});
      await a.call('PUT', '/auth/apikeyid', { apikeyid: key.keyid, op: 'merge', owner: from?.body.user.id });
      return { ...key, path: to?.body.user.id };
    },
    request: ({ keyid, path }) => ['PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', owner: path }],
  },
  'a key given a name, an end and addresses': update({ name: 'n', expiresAt: 1, allowedAddresses: ['192.0.2.1'] }),
  'a key disabled by its secret': updateBySecret({ active: false }),
  'a key given fewer flags by its secret': updateBySecret({ op: 'replace', flags: {} }),
  'a key deleted': {
    needs: ['apikey.delete'],
    make: aKey,
    request: ({ secret }) => ['DELETE', `/auth/apikey/${secret}`],
    self: 'apikey',
  },
  'an account deleted, a key along': {
    needs: ['account.delete'],
    make: anAccount,
    request: ({ path }) => ['DELETE', `/auth/accounts/${path}`],
    self: 'apikey',
  },
  'an account deleted, a disabled key along': {
    needs: ['account.delete'],
    async make(a, flags) {
      const touched = await anAccount(a, flags);
      await a.call('PUT', '/auth/apikeyid', { apikeyid: touched.keyid, op: 'merge', active: false });
      return touched;
    },
    request: ({ path }) => ['DELETE', `/auth/accounts/${path}`],
  },
  'a user deleted': {
    needs: ['user.delete'],
    make: aUser,
    request: ({ username }) => ['DELETE', `/auth/users/${username}`],
    self: 'user',
  },
  'a user deleted, a key along': {
    needs: ['user.delete'],
    make: anOwner,
    request: ({ username }) => ['DELETE', `/auth/users/${username}`],
    self: 'apikey',
  },
  'a user of another name': patch({ firstName: 'New' }),
  'a user of another address': patch({ email: 'new@x.example' }),
  'a user given props': patch({ props: { a: 1 } }),
  'a user given fewer flags': patch({ flags: {} }),
  'a user invited again': {
    needs: ['user.invite'],
    async make(a, flags) {
      const fields = person(flags);
      await a.call('POST', '/auth/user/invite', fields);
      return { username: fields.username };
    },
    request: ({ username }) => [
      'POST',
      '/auth/user/invite',
      { username, email: 'again@x.example', firstName: 'C', lastName: 'D' },
    ],
  },
};

/** Everything that an operation could change, except secrets of invites. */
async function stateOf(a: Appliance): Promise<string> {
  const paths = ['/auth/users', '/auth/accounts', '/auth/apikey', '/ks/keyrings'];
  const answers = await Promise.all(paths.map((path) => a.call('GET', `${path}?limit=10000`)));
  return JSON.stringify(answers.map(withoutUse));
}

/** The items of a list without their last use, which is no change. */
function withoutUse({ body }: Answer): object[] {
  return body.data.map(({ lastUsedAt: _, ...item }: { readonly lastUsedAt?: number }) => item);
}

async function callerOf(a: Appliance, kind: Kind, { needs }: Operation, touched: Touched): Promise<string> {
  if (kind === 'self') return touched.secret ?? '';
  if (kind === 'stronger') return (await a.keyWith('*')).key;
  return (await a.keyWith(...needs, ...(kind === 'equal' ? theirNames : theirNames.slice(1)))).key;
}

for (const [name, operation] of Object.entries(operations)) {
  for (const kind of ['weaker', 'equal', 'stronger', 'self'] as const) {
    if (kind === 'self' && !operation.self) continue;
    const expected = kind === 'weaker' ? 403 : 200;
    test(`${name}, by who is ${kind === 'self' ? 'it' : kind}: ${expected}`, async () => {
      const a = await testAppliance();
      const needed = kind === 'self' ? Object.fromEntries(operation.needs.map((flag) => [flag, true])) : {};
      const touched = await operation.make(a, { ...theirs, ...needed });
      const key = await callerOf(a, kind, operation, touched);
      const before = await stateOf(a);
      const [method, path, body] = operation.request(touched);
      const answer = await a.call(method, path, body, { key });
      assert.equal(answer.status, expected, answer.text);
      if (expected === 200) return;
      assert.equal(answer.body.message, 'the target has the permission flag asset.delete, which the caller lacks');
      assert.equal(await stateOf(a), before);
      if (touched.secret && operation.self && !name.includes('disabled key along')) {
        const still = await a.call('POST', '/ks/keyrings', { name: 'x' }, { key: touched.secret });
        assert.equal(still.status, 403, 'its credential is still one');
      }
    });
  }
}

/** Operations that affect no key and no user, whatever their rights on the object. */
const untouching: Readonly<Record<string, { needs: string; request: (account: string, ring: string) => Request }>> = {
  'an account of other names': {
    needs: 'account.update',
    request: (account) => ['PATCH', `/auth/accounts/${account}`, { uid: 'other', notes: 'n', props: { a: 1 } }],
  },
  'a ring given props': {
    needs: 'keyring.payroll.config',
    request: () => ['PUT', '/ks/config', { ringname: 'payroll', config: { props: { a: 1 } } }],
  },
  'a ring rotated': {
    needs: 'keyring.payroll.rotate',
    request: () => ['POST', '/ks/rotate', { ringname: 'payroll' }],
  },
  'a ring deleted that a disabled key names': {
    needs: 'keyring.payroll.delete',
    request: () => ['DELETE', '/ks/keyrings/payroll'],
  },
  'a ring restored that a disabled key names': {
    needs: 'keyring.gone.delete',
    request: (_, ring) => ['POST', `/ks/keyrings/${ring}/restore`, {}],
  },
  'a ring made that a disabled key names': {
    needs: 'keyring.create',
    request: () => ['POST', '/ks/keyrings', { name: 'gone' }],
  },
};

type Request = readonly [method: string, path: string, body?: unknown];

for (const [name, { needs, request }] of Object.entries(untouching)) {
  test(`${name}: keys and users stay as they are, so the weaker may`, async () => {
    const a = await testAppliance();
    const flags = { ...theirs, 'keyring.payroll.read': true, 'keyring.gone.read': true };
    const account = await accountOf(a);
    const { keyid } = await keyOf(a, account, flags);
    await a.call('PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', active: false });
    await aUser(a, flags);
    const { ring } = (await a.call('POST', '/ks/keyrings', { name: 'gone' })).body;
    await a.call('DELETE', '/ks/keyrings/gone');
    await a.call('POST', '/ks/keyrings', { name: 'payroll' });
    const { key } = await a.keyWith(needs);
    const state = async () => {
      const answers = await Promise.all(['/auth/users', '/auth/apikey'].map((path) => a.call('GET', path)));
      return answers.map(withoutUse);
    };
    const before = await state();
    const [method, path, body] = request(account, ring.id);
    const answer = await a.call(method, path, body, { key });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(await state(), before);
  });
}

test('a user is deleted by whoever could not touch a key of theirs that is disabled already: nothing is done to it', async () => {
  const a = await testAppliance();
  const touched = await anOwner(a, theirs);
  await a.call('PUT', '/auth/apikeyid', { apikeyid: touched.keyid, op: 'merge', active: false });
  const { key } = await a.keyWith('user.delete');
  const before = (await a.call('GET', `/auth/apikey/${touched.keyid}`)).body;
  assert.equal((await a.call('DELETE', `/auth/users/${touched.username}`, undefined, { key })).status, 200);
  assert.deepEqual((await a.call('GET', `/auth/apikey/${touched.keyid}`)).body, before);
});

/**
 * A tenant whose only holder of `*` is the one made here; the root key is removed by the administrator at the machine.
 */
interface Holder {
  /** Makes the holder; returns the caller's key and the requests that would remove the last holder. */
  make(a: Appliance): Promise<{ key: string; requests: readonly (readonly [string, string, unknown?])[] }>;
}

const holders: Readonly<Record<string, Holder>> = {
  'the only API key': {
    async make(a) {
      const { keyid, secret = '', path } = await keyOf(a, await accountOf(a), { '*': true, other: true });
      const change = (more: object) => ['PUT', '/auth/apikeyid', { apikeyid: keyid, ...more }] as const;
      return {
        key: secret,
        requests: [
          ['DELETE', `/auth/apikey/${secret}`],
          ['DELETE', `/auth/accounts/${path}`],
          change({ op: 'merge', active: false }),
          change({ op: 'delete', active: false }),
          change({ op: 'merge', flags: { '*': false } }),
          change({ op: 'delete', flags: { '*': true } }),
          change({ op: 'delete', flags: { '*': false } }),
          change({ op: 'replace', flags: { 'keyring.*': true } }),
          change({ op: 'replace', flags: {}, active: false }),
          // Past or future: the key would expire.
          change({ op: 'merge', expiresAt: 0 }),
          change({ op: 'merge', expiresAt: a.world.now() - 1 }),
          change({ op: 'delete', expiresAt: a.world.now() + 1 }),
          change({ op: 'replace', expiresAt: 253_402_300_799_999 }),
          // It could be used only from these addresses, where there may be no one.
          change({ op: 'merge', allowedAddresses: ['203.0.113.1'] }),
          change({ op: 'replace', allowedAddresses: ['0.0.0.0/0', '::/0'] }),
          ['PUT', '/auth/apikey', { key: secret, op: 'merge', allowedAddresses: ['203.0.113.1'] }],
          ['PUT', '/auth/apikey', { key: secret, op: 'merge', expiresAt: 1 }],
          ['PUT', '/auth/apikey', { key: secret, op: 'merge', flags: { '*': false } }],
          ['PUT', '/auth/apikey', { key: secret, op: 'merge', active: false }],
          ['PUT', '/auth/apikey', { key: secret, op: 'replace', flags: {} }],
        ],
      };
    },
  },
  'the only user': {
    async make(a) {
      const { username, secret = '' } = await aUser(a, { '*': true });
      return {
        key: secret,
        requests: [
          ['DELETE', `/auth/users/${username}`],
          ['PATCH', `/auth/users/${username}`, { flags: {} }],
          ['PATCH', `/auth/users/${username}`, { flags: { '*': false } }],
          ['PATCH', `/auth/users/${username}`, { flags: { 'user.*': true }, firstName: 'New' }],
        ],
      };
    },
  },
  'a user and the keys that they own': {
    async make(a) {
      const { username, secret = '' } = await aUser(a, { '*': true });
      const accountId = await accountOf(a);
      await keyOf(a, accountId, { '*': true }, secret);
      await keyOf(a, accountId, { '*': true }, secret);
      return { key: secret, requests: [['DELETE', `/auth/users/${username}`]] };
    },
  },
  'all keys of one account': {
    async make(a) {
      const accountId = await accountOf(a);
      const { secret = '' } = await keyOf(a, accountId, { '*': true });
      await keyOf(a, accountId, { '*': true });
      return { key: secret, requests: [['DELETE', `/auth/accounts/${accountId}`]] };
    },
  },
};

/** Keys and users that have the flag and still don't count as holders. */
async function seemingHolders(a: Appliance): Promise<void> {
  await a.call('POST', '/auth/user/invite', person({ '*': true }));
  const { keyid } = await a.keyWith('*');
  await a.call('PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', active: false });
  await a.keyWith('keyring.*', 'user.*', 'system.*');
  for (const expiresAt of [0, a.world.now(), a.world.now() + 1, 253_402_300_799_999]) {
    await a.call('POST', '/auth/apikey', { accountId: a.accountId, flags: { '*': true }, expiresAt });
  }
  for (const allowedAddresses of [['203.0.113.1'], ['0.0.0.0/0', '::/0']]) {
    await a.call('POST', '/auth/apikey', { accountId: a.accountId, flags: { '*': true }, allowedAddresses });
  }
  await a.call('POST', '/auth/apikey', { accountId: a.accountId, flags: { '*': false } });
  await a.call('POST', '/auth/users', person({ '*': false }));
}

const local = { env: { local: true }, key: null } as const;

for (const [name, { make }] of Object.entries(holders)) {
  test(`${name} that holds * stays, itself not excepted; another holder sets it free, and the machine's administrator may`, async () => {
    const a = await testAppliance();
    await seemingHolders(a);
    const { key, requests } = await make(a);
    const gone = await a.call('DELETE', `/auth/apikey/${a.root.key}`, undefined, { key });
    assert.equal(gone.status, 200, gone.text);
    const state = async () => {
      const paths = ['/auth/users', '/auth/accounts', '/auth/apikey'];
      const answers = await Promise.all(paths.map((path) => a.call('GET', path, undefined, { key })));
      return answers.map(withoutUse);
    };
    const before = await state();
    for (const [method, path, body] of requests) {
      const answer = await a.call(method, path, body, { key });
      assert.equal(answer.status, 400, `${method} ${path} ${JSON.stringify(body)}: ${answer.text}`);
      assert.match(answer.body.message, /would hold \* any more: give it to another first/);
      assert.deepEqual(await state(), before);
    }
    // Renaming the holder, or deleting a key without the flag, is harmless.
    const other = (await a.call('POST', '/auth/apikey', { accountId: a.accountId }, { key })).body;
    assert.equal((await a.call('DELETE', `/auth/apikey/${other.key}`, undefined, { key })).status, 200);

    const [[method, path, body] = ['', '']] = requests;
    assert.equal((await a.call(method, path, body, local)).status, 200, 'by the administrator at the machine');
    const orphan = (await a.call('POST', '/auth/accounts', { uid: 'orphan' }, local)).body;
    const weak = await a.call('POST', '/auth/apikey', { accountId: orphan.id }, local);
    // Now there is no holder, so a deletion can't remove the last one.
    const { key: deleter } = (
      await a.call('POST', '/auth/apikey', { accountId: a.accountId, flags: { 'apikey.delete': true } }, local)
    ).body;
    assert.equal((await a.call('DELETE', `/auth/apikey/${weak.body.key}`, undefined, { key: deleter })).status, 200);
  });
}

test('with another holder each of them can go', async () => {
  for (const { make } of Object.values(holders)) {
    const count = (await make(await testAppliance())).requests.length;
    for (let i = 0; i < count; i++) {
      const a = await testAppliance();
      const { key, requests } = await make(a);
      const [method, path, body] = requests[i] ?? ['', ''];
      const answer = await a.call(method, path, body, { key });
      assert.equal(answer.status, 200, answer.text);
    }
  }
});

test('of two holders that take each other away at once, one is left', async () => {
  const a = await testAppliance();
  const other = await a.keyWith('*');
  const answers = await Promise.all([
    a.call('DELETE', `/auth/apikey/${other.key}`),
    a.call('DELETE', `/auth/apikey/${a.root.key}`, undefined, { key: other.key }),
    a.call('PUT', '/auth/apikeyid', { apikeyid: other.keyid, op: 'merge', active: false }, { key: other.key }),
    a.call('PUT', '/auth/apikeyid', { apikeyid: a.root.keyid, op: 'merge', flags: { '*': false } }),
  ]);
  assert.ok(answers.filter(({ status }) => status === 200).length >= 1);
  const { items } = (await a.tenants[0]?.handle.store.transaction(({ apiKeys }) =>
    apiKeys.list({ limit: 10 }, (key) => key),
  )) ?? {
    items: [],
  };
  assert.ok(items.some(({ active, flagsText }) => active && flagsText === '{"*":true}'));
});

test('a user who can log in is a holder, so that the root key can be put away', async () => {
  const a = await testAppliance();
  assert.equal((await a.call('DELETE', `/auth/apikey/${a.root.key}`)).status, 400);
  await aUser(a, { '*': true });
  assert.equal((await a.call('DELETE', `/auth/apikey/${a.root.key}`)).status, 200);
});

test('where * was held within limits alone, one such holder is enough, and the last stays', async () => {
  const a = await testAppliance();
  const limited = { accountId: a.accountId, flags: { '*': true }, allowedAddresses: ['203.0.113.1'] };
  const inside = { env: { remoteAddress: '203.0.113.1' } };
  const [first, second] = [
    await a.call('POST', '/auth/apikey', limited),
    await a.call('POST', '/auth/apikey', limited),
  ];
  assert.equal((await a.call('DELETE', `/auth/apikey/${a.root.key}`, undefined, local)).status, 200);
  const asFirst = { key: first.body.key, ...inside };
  assert.equal((await a.call('DELETE', `/auth/apikey/${second.body.key}`, undefined, asFirst)).status, 200);
  assert.equal((await a.call('DELETE', `/auth/apikey/${first.body.key}`, undefined, asFirst)).status, 400);
  const unlimited = { apikeyid: first.body.keyid, op: 'merge', allowedAddresses: [] };
  assert.equal((await a.call('PUT', '/auth/apikeyid', unlimited, asFirst)).status, 200);
});
