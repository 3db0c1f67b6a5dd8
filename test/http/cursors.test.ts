// Cursors: they lead through a whole list, and are valid only for the list, the filters and the tenant that they came
// from.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Appliance, testAppliance } from '../support/appliance.ts';

async function withRings(names: readonly string[]): Promise<Appliance> {
  const a = await testAppliance();
  for (const name of names) await a.call('POST', '/ks/keyrings', { name });
  return a;
}

async function walk(
  a: Appliance,
  method: string,
  path: string,
  body?: object,
): Promise<{ items: unknown[]; pages: number }> {
  const items: unknown[] = [];
  let pages = 0;
  let cursor = '';
  for (;;) {
    const answer = await a.call(method, `${path}${cursor}`, body);
    assert.equal(answer.status, 200, answer.text);
    const { data, pagination } = answer.body;
    pages++;
    items.push(...data);
    assert.equal(pagination.count, data.length);
    assert.equal(pagination.hasMore, 'nextCursor' in pagination);
    if (!pagination.hasMore) return { items, pages };
    assert.match(pagination.nextCursor, /^[A-Za-z0-9_-]+$/);
    cursor = `&cursor=${pagination.nextCursor}`;
  }
}

const nameOf = (item: unknown): unknown => Reflect.get(Object(item), 'name');

test('a list is walked to its end, oldest first', async () => {
  const names = ['c', 'a', 'b', 'e', 'd'];
  const a = await withRings(names);
  for (const [limit, expected] of [
    [1, 5],
    [2, 3],
    [5, 1],
    [6, 1],
  ]) {
    const { items, pages } = await walk(a, 'GET', `/ks/keyrings?limit=${limit}`);
    assert.deepEqual(items.map(nameOf), names);
    assert.equal(pages, expected);
  }
});

test('what is added or deleted on the way repeats and hides nothing', async () => {
  const a = await withRings(['a', 'b', 'c', 'd']);
  const first = await a.call('GET', '/ks/keyrings?limit=2');
  await a.call('DELETE', '/ks/keyrings/b');
  await a.call('POST', '/ks/keyrings', { name: 'z' });
  const second = await a.call('GET', `/ks/keyrings?limit=10&cursor=${first.body.pagination.nextCursor}`);
  assert.deepEqual(second.body.data.map(nameOf), ['c', 'd', 'z']);
});

test('a search is walked with the same body, newest first', async () => {
  const a = await withRings(['r']);
  for (const n of [1, 2, 3, 4])
    await a.call('POST', '/ks/encrypt', { ringname: 'r', asset: { data: { n, even: n % 2 === 0 } } });
  const { items } = await walk(a, 'POST', '/assets/search?limit=1', { data: { even: true } });
  assert.deepEqual(
    items.map((item) => Reflect.get(Object(item), 'data').n),
    [4, 2],
  );
  const activity = await walk(a, 'POST', '/auth/search/activity?limit=1', { action: 'keyring.encrypt' });
  assert.equal(activity.items.length, 4);
});

test('an altered cursor is 400, each character of it', async () => {
  const a = await withRings(['a', 'b']);
  const { nextCursor } = (await a.call('GET', '/ks/keyrings?limit=1')).body.pagination;
  const altered = [...nextCursor].map((char: string, i: number) => {
    const other = char === 'A' ? 'B' : 'A';
    return nextCursor.slice(0, i) + other + nextCursor.slice(i + 1);
  });
  const others = [
    '',
    'x',
    nextCursor.slice(1),
    nextCursor.slice(0, -1),
    `${nextCursor}A`,
    `${nextCursor}=`,
    `${nextCursor}==`,
  ];
  for (const cursor of [...altered, ...others]) {
    const answer = await a.call('GET', `/ks/keyrings?limit=1&cursor=${encodeURIComponent(cursor)}`);
    assert.equal(answer.status, 400, cursor);
    assert.match(answer.body.message, /cursor/);
    assert.ok(answer.body.errors.cursor);
  }
  assert.equal((await a.call('GET', `/ks/keyrings?limit=1&cursor=${nextCursor}`)).status, 200);
});

test('a cursor serves no other filters, endpoint, path or tenant', async () => {
  const two = await testAppliance({
    tenants: [
      { name: 'one', hosts: ['one.test'] },
      { name: 'two', hosts: ['two.test'] },
    ],
  });
  const keys = two.tenants.map(({ root }) => root.key);
  for (const [index, host] of ['one.test', 'two.test'].entries()) {
    for (const name of ['a', 'b']) await two.call('POST', '/ks/keyrings', { name }, { host, key: keys[index] ?? null });
  }
  const list = (host: string, key = '', query = '') =>
    two.call('GET', `/ks/keyrings?limit=1${query}`, undefined, { host, key });
  const { nextCursor } = (await list('one.test', keys[0])).body.pagination;
  assert.equal((await list('one.test', keys[0], `&cursor=${nextCursor}`)).status, 200);
  assert.equal((await list('two.test', keys[1], `&cursor=${nextCursor}`)).status, 400);

  const a = await withRings(['a', 'b']);
  for (const uid of ['x', 'y']) await a.call('POST', '/auth/accounts', { uid });
  for (const name of ['a', 'b', 'a', 'b']) await a.call('POST', '/ks/rotate', { ringname: name });
  const keyCursor = (await a.call('GET', '/ks/keyrings/a/keys?limit=1')).body.pagination.nextCursor;
  assert.equal((await a.call('GET', `/ks/keyrings/a/keys?limit=1&cursor=${keyCursor}`)).status, 200);
  for (const path of ['/ks/keyrings/b/keys', '/ks/keyrings', '/auth/accounts', '/auth/apikey']) {
    assert.equal((await a.call('GET', `${path}?limit=1&cursor=${keyCursor}`)).status, 400, path);
  }
  const search = (body: object, cursor = '') => a.call('POST', `/auth/search/activity?limit=1${cursor}`, body);
  const searched = (await search({ start: 0 })).body.pagination.nextCursor;
  assert.equal((await search({ start: 0 }, `&cursor=${searched}`)).status, 200);
  for (const body of [{}, { start: 1 }, { start: 0, end: 9e15 }, { start: 0, valid: true }]) {
    assert.equal((await search(body, `&cursor=${searched}`)).status, 400);
  }
});

test('a cursor tells nothing of the place and is new each time', async () => {
  const a = await withRings(['a', 'b']);
  const ask = async () => (await a.call('GET', '/ks/keyrings?limit=1')).body.pagination.nextCursor;
  const cursors = [await ask(), await ask(), await ask()];
  assert.equal(new Set(cursors).size, 3);
  assert.equal(new Set(cursors.map((cursor) => cursor.slice(8))).size, 3);
});
