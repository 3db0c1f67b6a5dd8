// Lists and searches through all their pages, against an appliance: each item once, in order, and no page before it is
// needed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient } from '../../src/client/client.ts';
import { items, pages } from '../../src/client/pages.ts';
import { testAppliance } from '../support/appliance.ts';

async function scene() {
  const appliance = await testAppliance();
  const asked: string[] = [];
  const client = createClient({
    baseUrl: 'http://kms.test',
    apiKey: appliance.root.key,
    retries: 0,
    async fetch(request) {
      asked.push(`${request.method} ${new URL(request.url).pathname}`);
      return appliance.app.fetch(request, {});
    },
  });
  const names = Array.from({ length: 7 }, (_, n) => `ring-${n}`);
  for (const name of names) await client.createKeyring({ name });
  asked.length = 0;
  return { client, asked, names };
}

async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const each of source) found.push(each);
  return found;
}

test('every item once, whatever the size of the pages', async () => {
  const { client, names, asked } = await scene();
  for (const [limit, times] of [
    [1, 7],
    [3, 3],
    [7, 1],
    [100, 1],
  ] as const) {
    asked.length = 0;
    const found: string[] = [];
    for await (const { name } of items(client.listKeyrings, { limit })) found.push(name);
    assert.deepEqual(found, names);
    assert.equal(asked.length, times);
  }
});

test('page by page, as they are answered, and on from a cursor', async () => {
  const { client, names } = await scene();
  const found = await all(pages(client.listKeyrings, { limit: 3 }));
  assert.deepEqual(
    found.map(({ data, pagination }) => [data.length, pagination.count, pagination.hasMore]),
    [
      [3, 3, true],
      [3, 3, true],
      [1, 1, false],
    ],
  );
  const cursor = found[0]?.pagination.nextCursor ?? assert.fail('no cursor');
  const rest = await all(items(client.listKeyrings, { limit: 2, cursor }));
  assert.deepEqual(
    rest.map(({ name }) => name),
    names.slice(3),
  );
});

test('a search keeps its filters on every page', async () => {
  const { client } = await scene();
  for (let n = 0; n < 5; n++) {
    await client.encrypt({ ringname: 'ring-1', asset: { data: { kind: n % 2 ? 'odd' : 'even' } } });
  }
  const found = await all(items(client.searchAssets, { data: { kind: 'even' }, limit: 1 }));
  assert.deepEqual(
    found.map(({ data }) => data.kind),
    ['even', 'even', 'even'],
  );
});

test('who stops early asks for no more, and a failure in the middle comes where it happens', async () => {
  const { client, asked } = await scene();
  for await (const { name } of items(client.listKeyrings, { limit: 2 })) if (name === 'ring-2') break;
  assert.equal(asked.length, 2);
  const ending = new AbortController();
  const seen: string[] = [];
  await assert.rejects(
    async () => {
      for await (const { name } of items(client.listKeyrings, { limit: 2 }, { signal: ending.signal })) {
        if (seen.push(name) === 2) ending.abort();
      }
    },
    { name: 'AbortError' },
  );
  assert.deepEqual(seen, ['ring-0', 'ring-1']);
});

test('a list that comes round to where it was ends in an error, wherever the round begins', async () => {
  for (const [lead, round] of [
    [0, 1],
    [1, 1],
    [0, 3],
    [5, 4],
    [40, 7],
  ] as const) {
    for (const hasNewCursors of [true, false]) {
      let asked = 0;
      const method = async (_: { cursor?: string; limit?: number }) => {
        const n = asked < lead ? asked : lead + ((asked - lead) % round);
        asked++;
        const nextCursor = hasNewCursors ? `c${asked}` : `c${n}`;
        const data = hasNewCursors ? [{ id: n }] : [];
        return { data, pagination: { limit: 1, count: 1, hasMore: true, nextCursor } };
      };
      await assert.rejects(all(pages(method, {})), { code: 'unavailable', message: /one from before/ });
      assert.ok(asked <= 3 * (lead + round) + 1, `${lead} ${round}: ${asked}`);
    }
  }
});

test('a long list is none that comes round, though many of its pages are empty', async () => {
  let asked = 0;
  const method = async (_: { cursor?: string; limit?: number }) => {
    const nextCursor = `c${++asked}`;
    const data = asked % 10 === 0 ? [{ id: asked }] : [];
    return { data, pagination: { limit: 1, count: 1, hasMore: true, ...(asked < 1000 && { nextCursor }) } };
  };
  assert.equal((await all(items(method, {}))).length, 100);
});

test('what is no page of a list is an answer that was not expected', async () => {
  for (const page of [{ data: null, pagination: {} }, { data: {}, pagination: {} }, { pagination: {} }]) {
    // An untyped program gets the answer unchecked.
    const method = async () => page as never;
    await assert.rejects(all(items(method, {})), { code: 'unavailable', message: /no page/ });
  }
});
