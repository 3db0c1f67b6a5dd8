// The limits of a tenant over HTTP: exactly as many of each kind as allowed, even under concurrent requests.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Limits } from '../../src/core/context.ts';
import type { Sql } from '../../src/store/sql.ts';
import { type Answer, type Appliance, testAppliance } from '../support/appliance.ts';
import { longestGo } from '../support/longest-go.ts';

const clients = 20;

interface Kind {
  /** The number that exists from the start, which counts. */
  readonly there: number;
  readonly noun: string;
  setUp?(a: Appliance): Promise<unknown>;
  make(a: Appliance, n: number): Promise<Answer>;
  /** The final number. */
  count(a: Appliance): Promise<number>;
  /** Removes one, which makes room for another. */
  free?(a: Appliance): Promise<Answer>;
}

const person = (n: number) => ({ username: `u${n}`, email: `u${n}@x.example`, firstName: 'A', lastName: 'B' });
const counted = async (a: Appliance, path: string): Promise<number> => (await a.call('GET', path)).body.data.length;
const first = async (a: Appliance, path: string) => (await a.call('GET', path)).body.data[0];

const kinds: Readonly<Record<keyof Limits, Kind>> = {
  keyrings: {
    there: 0,
    noun: 'keyrings',
    make: (a, n) => a.call('POST', n % 2 ? '/ks/keyrings' : '/asym/keyrings', { name: `r${n}` }),
    count: async (a) => (await a.tenants[0]?.handle.store.transaction(({ rings }) => rings.count())) ?? 0,
  },
  keysPerRing: {
    there: 1,
    noun: 'keys in a keyring',
    setUp: (a) => a.call('POST', '/ks/keyrings', { name: 'r' }),
    make: (a) => a.call('POST', '/ks/rotate', { ringname: 'r' }),
    count: (a) => counted(a, '/ks/keyrings/r/keys'),
  },
  users: {
    there: 0,
    noun: 'users',
    make: (a, n) => a.call('POST', n % 2 ? '/auth/users' : '/auth/user/invite', person(n)),
    count: (a) => counted(a, '/auth/users'),
    free: async (a) => a.call('DELETE', `/auth/users/${(await first(a, '/auth/users')).username}`),
  },
  accounts: {
    there: 1,
    noun: 'accounts',
    make: (a, n) => a.call('POST', '/auth/accounts', { uid: `a${n}` }),
    count: (a) => counted(a, '/auth/accounts'),
    free: async (a) => {
      const { data } = (await a.call('GET', '/auth/accounts')).body;
      return a.call('DELETE', `/auth/accounts/${data.at(-1).id}`);
    },
  },
  apikeys: {
    there: 1,
    noun: 'API keys',
    make: (a) => a.call('POST', '/auth/apikey', { accountId: a.accountId }),
    count: (a) => counted(a, '/auth/apikey'),
  },
  assets: {
    there: 0,
    noun: 'assets',
    setUp: (a) => a.call('POST', '/ks/keyrings', { name: 'r' }),
    make: (a) => a.call('POST', '/ks/encrypt', { ringname: 'r', asset: {} }),
    count: async (a) => (await a.call('POST', '/assets/search', {})).body.data.length,
    free: async (a) => a.call('DELETE', `/assets/${(await a.call('POST', '/assets/search', {})).body.data[0].id}`),
  },
  assetVersions: {
    there: 1,
    noun: 'versions of assets',
    setUp: async (a) => {
      await a.call('POST', '/ks/keyrings', { name: 'r' });
      await a.call('POST', '/ks/encrypt', { ringname: 'r', asset: {} });
    },
    // Every other request updates the oldest asset, which the limit of assets does not restrict.
    make: async (a, n) => {
      const asset = (await a.call('POST', '/assets/search', {})).body.data.at(-1);
      return a.call('POST', '/ks/encrypt', { ringname: 'r', asset: n % 2 ? { assetId: asset.id } : {} });
    },
    count: async (a) => (await a.tenants[0]?.handle.store.transaction(({ assets }) => assets.countVersions())) ?? 0,
    free: async (a) => a.call('DELETE', `/assets/${(await a.call('POST', '/assets/search', {})).body.data[0].id}`),
  },
};

for (const [name, { there, noun, setUp, make, count, free }] of Object.entries(kinds)) {
  for (const room of [1, 3]) {
    test(`${name}: of ${clients} clients racing for ${room}, ${room} get it`, async () => {
      const most = there + room;
      const a = await testAppliance({ tenants: [{ name: 'default', hosts: ['*'], limits: { [name]: most } }] });
      await setUp?.(a);
      const answers = await Promise.all(Array.from({ length: clients }, (_, n) => make(a, n)));
      assert.equal(answers.filter(({ status }) => status === 200).length, room);
      for (const { status, body } of answers) {
        if (status === 200) continue;
        assert.deepEqual([status, body], [403, { message: `the limit of ${most} ${noun} is reached` }]);
      }
      assert.equal(await count(a), most);
      // Refused by the quota, not for a missing flag: still recorded as granted.
      const refused = (await a.activity()).filter(({ status }) => status === 403);
      assert.equal(refused.length, clients - room);
      assert.ok(refused.every(({ validAction }) => validAction));

      if (!free) return;
      assert.equal((await free(a)).status, 200);
      const again = await Promise.all(Array.from({ length: clients }, (_, n) => make(a, clients + n)));
      assert.equal(again.filter(({ status }) => status === 200).length, 1, 'the place that became free');
    });
  }
}

test('a limit of 0 lets nothing in, none lets everything in, and one tenant’s does not bind another', async () => {
  const a = await testAppliance({
    tenants: [
      { name: 'none', hosts: ['none.test'], limits: { users: 0 } },
      { name: 'free', hosts: ['free.test'] },
    ],
  });
  const make = async (host: string, key: string | undefined, n: number) =>
    (await a.call('POST', '/auth/users', person(n), { host, key: key ?? '' })).status;
  assert.equal(await make('none.test', a.root.key, 1), 403);
  for (const n of [1, 2, 3]) assert.equal(await make('free.test', a.tenants[1]?.root.key, n), 200);
});

test('an encrypt whose key is used up needs room for the next one', async () => {
  const a = await testAppliance({ tenants: [{ name: 'default', hosts: ['*'], limits: { keysPerRing: 2 } }] });
  await a.call('POST', '/ks/keyrings', { name: 'r' });
  await a.call('PUT', '/ks/config', { ringname: 'r', config: { algos: { aes256: { maxEncryptCount: 5 } } } });
  const answers = await Promise.all(
    Array.from({ length: clients }, () => a.call('POST', '/ks/encrypt', { ringname: 'r' })),
  );
  assert.equal(answers.filter(({ status }) => status === 200).length, 10);
  assert.equal(answers.filter(({ status }) => status === 403).length, 10);
  assert.equal(await counted(a, '/ks/keyrings/r/keys'), 2);
});

test('restoring a keyring needs room too', async () => {
  const a = await testAppliance({ tenants: [{ name: 'default', hosts: ['*'], limits: { keyrings: 1 } }] });
  const { ring } = (await a.call('POST', '/ks/keyrings', { name: 'a' })).body;
  assert.equal((await a.call('DELETE', '/ks/keyrings/a')).status, 200);
  assert.equal((await a.call('POST', '/ks/keyrings', { name: 'b' })).status, 200, 'a deleted one takes no place');
  assert.equal((await a.call('POST', `/ks/keyrings/${ring.id}/restore`, {})).status, 403);
});

test('a user owns 10,000 API keys at most, made or handed over, and answers with them stay short', async () => {
  let sql: Sql | undefined;
  const a = await testAppliance({
    onSql: (given) => {
      sql = given;
    },
  });
  const users = [];
  for (const n of [1, 2]) {
    const fields = { ...person(n), flags: { '*': true } };
    users.push((await a.call('POST', '/auth/users', fields)).body);
  }
  const [{ user, password }, other] = users;
  const { accessToken } = (await a.call('POST', '/auth/basic/login', { username: 'u1', password }, { key: null })).body;
  // All but one, for each of forty users.
  await a.tenants[0]?.handle.store.transaction(() => {
    const numbers = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)';
    sql?.run(
      `INSERT INTO users (id, username, username_key, email, email_key, first_name, last_name, display_name, flags, props,
        created_at, updated_at) ${numbers} SELECT 'user_' || i, i, i, i, i, '', '', '', '{}', '{}', i, i FROM n`,
      40,
    );
    sql?.run(
      `INSERT INTO api_keys (id, secret_hash, name, addresses, active, account_id, user_id, flags, props, created_at,
        updated_at)
        ${numbers} SELECT 'apik_' || printf('%026d', i), i, '', '[]', 1, ?, ?, '{}', '{}', i, i FROM n`,
      9_999,
      a.accountId,
      user.id,
    );
    sql?.run(
      `INSERT INTO api_keys (id, secret_hash, name, addresses, active, account_id, user_id, flags, props, created_at,
        updated_at)
        SELECT k.id || u.username, k.id || u.username, '', '[]', 1, k.account_id, u.id, '{}', '{}', 1, 1 FROM api_keys k, users u
        WHERE k.user_id = ? AND u.username_key < 'a'`,
      user.id,
    );
  });
  const make = (key: string) => a.call('POST', '/auth/apikey', { accountId: a.accountId }, { key });
  const last = await make(accessToken);
  assert.equal(last.status, 200);
  const refused = { message: 'a user owns at most 10000 API keys' };
  const oneMore = await make(accessToken);
  assert.deepEqual([oneMore.status, oneMore.body], [403, refused]);
  assert.equal((await make(a.root.key)).status, 200, 'one that is nobody’s');
  const { keyid } = (await make(a.root.key)).body;
  const hand = (owner: string, apikeyid = keyid) => a.call('PUT', '/auth/apikeyid', { op: 'merge', apikeyid, owner });
  const handed = await hand(user.id);
  assert.deepEqual([handed.status, handed.body], [403, refused]);
  assert.equal((await hand(user.id, last.body.keyid)).status, 200, 'one that the user owns already');
  assert.equal((await hand(other.user.id)).status, 200);

  const shown = await a.call('GET', `/auth/users/${user.username}`);
  assert.equal(shown.body.keys.length, 10_000);
  assert.ok(shown.text.length < 400_000, String(shown.text.length));
  const seen = new Map<string, number>();
  let pages = 0;
  for (let next: string | undefined = ''; next !== undefined; pages++) {
    const path: string = `/auth/users?limit=10000${next && `&cursor=${next}`}`;
    let page: Answer | undefined;
    const cost = await longestGo(async () => {
      page = await a.call('GET', path);
    });
    assert.ok(cost < 200, `${cost} ms`);
    assert.equal(page?.status, 200);
    assert.ok(page && page.text.length < 5_000_000, String(page?.text.length));
    for (const each of page.body.data) seen.set(each.id, each.keys.length);
    next = page.body.pagination.nextCursor;
  }
  assert.deepEqual([seen.size, seen.get(user.id), seen.get('user_40')], [42, 10_000, 9_999]);
  assert.ok(pages >= 3, String(pages));
});
