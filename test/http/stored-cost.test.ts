// The cost of requests with much stored data: a tenant with 100,000 of each thing, objects of a mebibyte, and assets
// with long lines of ancestors. However much there is, no request blocks the event loop. Costs are CPU time of the
// event loop's thread, so other load on the machine does not count.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Endpoint } from '../../src/api/endpoint.ts';
import { endpoints } from '../../src/api/endpoints.ts';
import { purgeExpired } from '../../src/core/keyrings.ts';
import { restorableFor } from '../../src/core/rings.ts';
import type { Row, Sql, SqlValue } from '../../src/store/sql.ts';
import { type Answer, type Appliance, testAppliance } from '../support/appliance.ts';
import { countedWork, leastGo, longestGo } from '../support/longest-go.ts';
import { type Sample, sampled } from './samples.ts';

/** Milliseconds of CPU between two turns of the event loop. */
const budget = 200;
const many = 100_000;

/** An appliance, and a function that runs statements on its first tenant's store. */
async function appliance(): Promise<{ a: Appliance; fill: (...statements: string[]) => Promise<void> }> {
  let sql: Sql | undefined;
  const a = await testAppliance({
    onSql: (given) => {
      sql = given;
    },
  });
  const fill = async (...statements: string[]): Promise<void> => {
    const store = a.tenants[0]?.handle.store;
    await store?.transaction(() => {
      for (const text of statements) sql?.run(text);
    });
  };
  return { a, fill };
}

/** An INSERT of `count` rows, whose values may use the number `i` of the row. */
const rows = (into: string, count: number, values: string): string =>
  `INSERT INTO ${into} WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count}) SELECT ${values} FROM n`;

const id = (prefix: string, number = 'i'): string => `'${prefix}' || printf('%026d', ${number})`;
const one = (prefix: string, number: number): string => `${prefix}${String(number).padStart(26, '0')}`;

const keyColumns = `api_keys (id, secret_hash, name, addresses, active, account_id, user_id, flags, props, created_at,
  updated_at)`;
const userColumns = `users (id, username, username_key, email, email_key, first_name, last_name, display_name, flags, props,
  created_at, updated_at)`;
const ringColumns = `rings (id, service, name, display_name, algorithm, active_key, kem, public_key, props, key_props,
  max_encrypt_count, created_at, updated_at, deleted_at)`;
const ringKeyColumns = 'ring_keys (id, ring_id, algorithm, kem, pair, wrapped, iv, props, encrypt_count, created_at)';
const transitColumns = `managed_keys (id, name, display_name, type, uses, state, derived, exportable, origin, vault_format,
  latest_version, min_decrypt, min_encrypt, deletion_allowed, tags, props, created_at, updated_at)`;
const assetColumns = 'assets (id, ring_id, version, data, parents, apikey_id, account_id, created_at)';
const publicKey = 'MCowBQYDK2VuAyEA3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=';

const account = one('acct_', 1);
const user = one('user_', 1);
const ring = one('ring_', 1);

/** Rings 1 and 2 are `used` and `crowded`; user 1 owns all keys, which are all in account 1 and name `used`. */
function muchOfEverything(props: string, count: number, prefix = ''): string[] {
  const name = `'${prefix}' || i`;
  return [
    rows(
      transitColumns,
      count,
      `${id(`ring_t${prefix}`)}, ${name}, ${name}, 'aes256-gcm', 'encrypt decrypt', 'active', 0, 0, 'generated', 0, 1, 1, 0, 0, '{}', ${props}, i, i`,
    ),
    rows(
      'accounts (id, uid, notes, props, created_at, updated_at)',
      count,
      `${id(`acct_${prefix}`)}, ${name}, '', ${props}, i, i`,
    ),
    rows(
      userColumns,
      count,
      `${id(`user_${prefix}`)}, ${name}, ${name}, ${name}, ${name}, '', '', '', '{}', ${props}, i, i`,
    ),
    rows(
      keyColumns,
      count,
      `${id(`apik_${prefix}`)}, ${name}, '', '[]', 1, '${account}', '${user}', '{"keyring.used.read":true}', ${props}, i, i`,
    ),
    rows(
      ringColumns,
      count,
      `${id(`ring_${prefix}`)}, 'ks', ${name}, '', 'aes256', '', 'x25519', '${publicKey}', ${props}, '{}', 1, i, i, NULL`,
    ),
    rows(
      ringKeyColumns,
      count,
      `${id(`key_${prefix}`)}, '${ring}', 'aes256', 'x25519', 0, 'AAAA', 'AAAA', ${props}, 0, i`,
    ),
    rows(assetColumns, count, `${id(`asset_${prefix}`)}, '${ring}', 1, ${props}, '[]', 'apik_x', '${account}', i`),
  ];
}

/** Names ring 1 `used`, and lets all API keys of the account name it. */
const usedByAll = [
  `UPDATE rings SET name = 'used' WHERE id = '${ring}'`,
  `INSERT INTO api_key_rings (apikey_id, ring_name, apikey_seq) SELECT id, 'used', seq FROM api_keys WHERE account_id = '${account}'`,
];

const lists = [
  ['GET', '/ks/keyrings'],
  ['GET', `/ks/keyrings/${ring}/keys?id=true`],
  ['GET', '/auth/users'],
  ['GET', '/auth/accounts'],
  ['GET', '/auth/apikey'],
  ['GET', `/auth/accounts/${account}/apikeys`],
  ['GET', `/auth/search/keyring/${ring}/apikey?id=true&wildcard=true`],
  ['POST', '/assets/search'],
] as const;

const listed: Readonly<Record<string, readonly [method: string, path: string] | 'its own test'>> = {
  listKeyrings: lists[0],
  listKeys: lists[1],
  // All its rows are short.
  listManagedKeys: ['GET', '/managed-keys'],
  listUsers: lists[2],
  listAccounts: lists[3],
  listApiKeys: lists[4],
  listAccountApiKeys: lists[5],
  searchKeyringApiKeys: lists[6],
  searchAssets: lists[7],
  // Tested in test/activity/search-cost.test.ts, since records are not rows.
  searchActivity: 'its own test',
};

async function within(what: string, work: () => Promise<unknown>): Promise<void> {
  const cost = await longestGo(work);
  assert.ok(cost < budget, `${what} took ${cost} ms of CPU in one go`);
}

async function answers(status: number, call: Promise<Answer>): Promise<Answer> {
  const answer = await call;
  assert.equal(answer.status, status, answer.text.slice(0, 1000));
  return answer;
}

test('no request of any kind costs more where there is much of everything', async () => {
  const { a, fill } = await appliance();
  await fill(
    // Deleted rings come before those that are listed.
    rows(
      ringColumns,
      many,
      `${id('ring_x')}, 'ks', 'x' || i, '', 'aes256', '', 'x25519', '${publicKey}', '{}', '{}', 1, i, i, ${a.world.now()}`,
    ),
    ...muchOfEverything(`'{}'`, many),
    ...usedByAll,
    // Children of one asset, in order of creation, each with two parents.
    `INSERT INTO asset_parents (asset_seq, asset_id, parent_id) SELECT seq, id, '${one('asset_', 1)}' FROM assets WHERE seq > 1`,
    `UPDATE counts SET n = ${many}`,
  );
  for (const { endpoint, make } of sampled) {
    // Users exist already, so the link for the first one admits no one.
    const noLink = {
      body: { token: 'x', username: 'a', email: 'a@b.c', firstName: 'a', lastName: 'b', password: 'x' },
    };
    const sample: Sample = endpoint.id === 'completeSetUp' ? noLink : await make(a);
    const { params = {}, query = {}, body, key } = sample;
    const path = endpoint.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params[name] ?? ''));
    const options = key === undefined ? {} : { key };
    await within(`${endpoint.method} ${endpoint.path}`, () =>
      a.call(
        endpoint.method,
        `${path}?${new URLSearchParams(query)}`,
        endpoint.body ? (body ?? {}) : undefined,
        options,
      ),
    );
  }

  for (const [method, path] of lists) {
    const page = `${path}${path.includes('?') ? '&' : '?'}limit=10000`;
    let next = '';
    await within(`${method} ${page}`, async () => {
      const { pagination } = (await answers(200, a.call(method, page, method === 'POST' ? {} : undefined))).body;
      // The first user owns 100,000 keys, whose ids make up most of the page.
      if (path === '/auth/users') assert.ok(pagination.count > 4000 && pagination.count < 5000, pagination.count);
      else assert.equal(pagination.count, 10_000);
      next = pagination.nextCursor;
    });
    await within(`${method} ${page}&cursor`, () =>
      answers(200, a.call(method, `${page}&cursor=${next}`, method === 'POST' ? {} : undefined)),
    );
  }

  const none = { keyringId: ring, apikeyId: 'apik_none' };
  const parent = one('asset_', 1);
  for (const filter of [
    { data: { no: 'such' } },
    { data: { deep: { no: 1 } } },
    none,
    { accountId: account, keyringId: 'ring_none', apikeyId: 'apik_x' },
    { parents: [parent, one('asset_', 2)] },
    { parents: [parent], data: { no: 'such' } },
    { start: 3, end: 3 },
    { end: 0 },
  ]) {
    await within(`asset search ${JSON.stringify(filter)}`, () =>
      answers(200, a.call('POST', '/assets/search', filter)),
    );
  }
  await within('activity of an account by both its names', () =>
    answers(200, a.call('POST', '/auth/search/activity', { accountId: account, accountUid: '1' })),
  );

  // For a caller with * the check of each key's flags is skipped.
  const weak = await a.keyWith('user.*', 'account.*', 'keyring.*');
  await within('a user with many keys', () => answers(200, a.call('GET', '/auth/users/1', undefined, weak)));
  await within('deletion of a ring that is used', () =>
    answers(400, a.call('DELETE', '/ks/keyrings/used', undefined, weak)),
  );
  await within('deletion of a user with many keys', () =>
    answers(200, a.call('DELETE', '/auth/users/1', undefined, weak)),
  );
  assert.equal((await a.call('GET', `/auth/apikey/${one('apik_', many)}`)).body.active, false);
  await within('deletion of a ring that many inactive keys name', () =>
    answers(200, a.call('DELETE', '/ks/keyrings/used', undefined, weak)),
  );
  await within('deletion of an account with many keys', () =>
    answers(200, a.call('DELETE', `/auth/accounts/${account}`, undefined, weak)),
  );
  for (const number of [1, 1000, 1001, many]) await answers(404, a.call('GET', `/auth/apikey/${one('apik_', number)}`));
  await within('deletion of an asset with many children', () => answers(200, a.call('DELETE', `/assets/${parent}`)));
  a.advance(restorableFor);
  const store = a.tenants[0]?.handle.store ?? assert.fail();
  await within('the end of many deleted rings', () => purgeExpired(store, a.world.now()));
});

test('few rows of a page are read, and few written, before whatever else came has its turn', async (t) => {
  const count = 3000;
  const work = countedWork(t);
  let sql: Sql | undefined;
  const a = await testAppliance({
    onSql: (given) => {
      sql = { ...given };
      const { get, all, some } = sql;
      given.get = <R extends Row>(text: string, ...params: SqlValue[]) => work.count(get<R>(text, ...params));
      given.all = <R extends Row>(text: string, ...params: SqlValue[]) => all<R>(text, ...params).map(work.count);
      given.some = <R extends Row>(enough: (row: R) => boolean, text: string, ...params: SqlValue[]) =>
        some<R>(enough, text, ...params).map(work.count);
    },
  });
  const store = a.tenants[0]?.handle.store ?? assert.fail();
  await store.transaction(() => {
    for (const text of [...muchOfEverything(`'{}'`, count), ...usedByAll]) sql?.run(text);
  });
  const { transaction } = store;
  let inTransaction = 0;
  store.transaction = (fn) =>
    transaction((tx) => {
      const begin = work.done;
      const result = fn(tx);
      inTransaction = Math.max(inTransaction, work.done - begin);
      return result;
    });
  const { stringify } = JSON;
  t.mock.method(JSON, 'stringify', (...given: Parameters<typeof stringify>) => work.count(stringify(...given)));
  const all: readonly Endpoint[] = endpoints;
  assert.deepEqual(Object.keys(listed).toSorted(), all.flatMap((e) => (e.paginated ? [e.id] : [])).toSorted());
  for (const list of Object.values(listed)) {
    if (list === 'its own test') continue;
    const [method, path] = list;
    const begin = work.done;
    const url = `${path}${path.includes('?') ? '&' : '?'}limit=10000`;
    const most = await work.inOneGo(async () => {
      const { body } = await answers(200, a.call(method, url, method === 'POST' ? {} : undefined));
      assert.ok(body.data.length >= count, url);
    });
    assert.ok(work.done - begin >= 2 * count, `${url}: only ${work.done - begin} rows were counted`);
    // No more rows than one part of a page, or a 64 KiB piece of an answer, holds.
    assert.ok(most <= 700, `${url}: ${most} rows in one go`);
  }
  // Other requests of the tenant wait for transactions.
  assert.ok(inTransaction > 0 && inTransaction <= 520, `${inTransaction} rows in one transaction`);
});

test('a page of long things is short, and the next ones have the rest', async () => {
  const long = 48;
  const { a, fill } = await appliance();
  await fill(...muchOfEverything(`'{"big":"' || hex(zeroblob(500000)) || '"}'`, long));
  await fill(...usedByAll);
  for (const [method, path] of lists) {
    const page = `${path}${path.includes('?') ? '&' : '?'}limit=10000`;
    const seen = new Set<string>();
    let pages = 0;
    for (let next: string | undefined = ''; next !== undefined; pages++) {
      const url: string = `${page}${next && `&cursor=${next}`}`;
      await within(`${method} ${page}`, async () => {
        const { text, body } = await answers(200, a.call(method, url, method === 'POST' ? {} : undefined));
        const { data, pagination } = body;
        assert.ok(text.length < 6_000_000);
        assert.deepEqual(
          [pagination.limit, pagination.count, pagination.hasMore],
          [10_000, data.length, 'nextCursor' in pagination],
        );
        for (const item of data) seen.add(item.id ?? item.keyid);
        next = pagination.nextCursor;
      });
    }
    assert.ok(seen.size >= long && pages >= long / 6, `${path}: ${seen.size} in ${pages} pages`);
  }
  const weak = await a.keyWith('user.*', 'account.*', 'keyring.*');
  await within('asset search for other data', () =>
    answers(200, a.call('POST', '/assets/search', { data: { big: 'x' } })),
  );
  await within('asset search for a text that nearly fits everywhere', () =>
    answers(200, a.call('POST', '/assets/search', { data: { big: `${'0'.repeat(500_000)}1` } })),
  );
  await within('deletion of a user', () => answers(200, a.call('DELETE', '/auth/users/1', undefined, weak)));
  await within('deletion of an account', () =>
    answers(200, a.call('DELETE', `/auth/accounts/${account}`, undefined, weak)),
  );
});

test('many long pages at once, of many values too, give others their turns', async () => {
  const values = JSON.stringify(Object.fromEntries(Array.from({ length: 19_000 }, (_, n) => [`k${n}`, n])));
  const { a, fill } = await appliance();
  await fill(...muchOfEverything(`'${values}'`, 20), ...usedByAll);
  const store = a.tenants[0]?.handle.store ?? assert.fail();
  const props = JSON.parse(values);
  for (let n = 0; n < 20; n++) {
    const record = { keyid: 'apik_x', action: 'x', ringname: '', validAction: true, status: 200, props };
    await store.transaction((tx) => tx.record({ id: one('act_', n), createdAt: n, ...record }));
  }
  /** Reads the body as it comes, like a socket. */
  const read = async (method: string, path: string): Promise<void> => {
    const headers = { Authorization: `Bearer ${a.root.key}`, 'Content-Type': 'application/json' };
    const body = method === 'POST' ? '{}' : null;
    const response = await a.app.fetch(new Request(`http://kms.test${path}`, { method, headers, body }), {});
    assert.equal(response.status, 200);
    let length = 0;
    for await (const piece of response.body ?? []) length += piece.length;
    assert.ok(length > 4_000_000 && length < 6_000_000, `${path}: ${length}`);
  };
  for (const [method, path] of [...lists, ['POST', '/auth/search/activity'] as const]) {
    const cost = await leastGo(budget / 2, () => Promise.all(Array.from({ length: 4 }, () => read(method, path))));
    assert.ok(cost < budget / 2, `${method} ${path}: ${cost} ms of CPU in one go`);
  }
});

test('an asset of many long versions is deleted, its line is walked no further than is quick', async () => {
  const { a, fill } = await appliance();
  await a.call('POST', '/ks/keyrings', { name: 'lines' });
  const encrypt = (asset: object) => a.call('POST', '/ks/encrypt', { ringname: 'lines', asset });
  const first = (await encrypt({})).body.asset.id;
  const { ringId } = (await encrypt({})).body;
  // A line of 1,000 generations, in each of which 60 assets have as many parents.
  const generation = 60;
  const count = 1000 * generation;
  await fill(
    rows(assetColumns, count, `${id('asset_')}, '${ringId}', 1, '{}', '[]', 'apik_x', NULL, i`),
    `INSERT INTO asset_parents (asset_seq, asset_id, parent_id) SELECT c.seq, c.id, p.id FROM assets c, assets p
      WHERE p.seq > 2 AND c.seq > 2 AND p.seq >= c.seq - ${generation} AND p.seq < c.seq AND c.seq < 8000`,
    `INSERT INTO asset_parents (asset_seq, asset_id, parent_id) SELECT c.seq, c.id, 'asset_' || printf('%026d', c.seq - 3)
      FROM assets c WHERE c.seq > 8000`,
    rows(
      'asset_versions (asset_id, version, data, parents)',
      100,
      `'${one('asset_', count)}', i, '{"big":"' || hex(zeroblob(500000)) || '"}', '[]'`,
    ),
  );
  const last = one('asset_', count - 1);
  await within('a new asset with long lines of ancestors', () => answers(200, encrypt({ parents: [last] })));
  await within('parents for an asset that has no descendants', () =>
    answers(200, encrypt({ assetId: first, parents: [last] })),
  );
  await within('an asset becoming its own ancestor', () =>
    answers(400, encrypt({ assetId: one('asset_', count - 10), parents: [last] })),
  );
  const middle = one('asset_', 30_000);
  await within('parents for an asset with a long line to both sides', async () => {
    const { body } = await answers(400, encrypt({ assetId: middle, parents: [one('asset_', 29_000)] }));
    assert.match(body.message, /too many/);
  });
  await within('an asset with few ancestors and many descendants', () =>
    answers(200, encrypt({ assetId: one('asset_', 8000), parents: [one('asset_', 3)] })),
  );
  await within('an asset of many versions', () => answers(200, a.call('DELETE', `/assets/${one('asset_', count)}`)));
});
