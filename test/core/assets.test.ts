// Searching assets: every filter alone and together against a plain implementation of the rule, and stable pages.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Asset } from '../../src/api/assets.ts';
import type { Body } from '../../src/api/endpoints.ts';
import { deleteAsset, getAsset, searchAssets } from '../../src/core/assets.ts';
import { encrypt } from '../../src/core/encryption.ts';
import { createKeyring } from '../../src/core/keyrings.ts';
import { containing } from '../../src/model/json.ts';
import { callerWith, readPage, refusal, startTime, testTenant } from '../support/context.ts';

interface Made {
  readonly answer: Asset;
  readonly apikeyId: string;
  readonly accountId: string;
  readonly keyringId: string;
  readonly time: number;
}

async function filled() {
  const tenant = await testTenant();
  const made: Made[] = [];
  const rings = ['a', 'b'];
  for (const name of rings) await tenant.call(createKeyring, { name });
  for (let i = 0; i < 60; i++) {
    tenant.advance(10);
    const accountId = `acct_${i % 2}`;
    const caller = { ...callerWith('*'), id: `apik_${i % 3}`, accountId };
    const parents = [...new Set(made.length < 3 ? [] : [made[i % 3], made[(i * 7) % 3]])].flatMap(
      (one) => one?.answer.id ?? [],
    );
    const input = { data: { n: i % 4, deep: { even: i % 2 === 0, list: [i % 2] } }, parents };
    const { asset, ringId } = await tenant.call(encrypt, { ringname: rings[i % 2] ?? '', asset: input }, caller);
    assert.ok(asset);
    made.push({ answer: asset, apikeyId: caller.id, accountId, keyringId: ringId, time: startTime + 10 * (i + 1) });
  }
  return { tenant, made };
}

function expected(made: readonly Made[], filter: Body<'searchAssets'>): Asset[] {
  const holds = ({ answer, apikeyId, accountId, keyringId, time }: Made) =>
    (filter.apikeyId === undefined || filter.apikeyId === apikeyId) &&
    (filter.accountId === undefined || filter.accountId === accountId) &&
    (filter.keyringId === undefined || filter.keyringId === keyringId) &&
    (filter.start === undefined || time >= filter.start) &&
    (filter.end === undefined || time <= filter.end) &&
    (filter.parents ?? []).every((parent) => answer.parents.includes(parent)) &&
    (filter.data === undefined || containing(filter.data)(answer.data));
  return made
    .filter(holds)
    .map(({ answer }) => answer)
    .reverse();
}

test('every filter alone and together finds what holds it, newest first, page by page', async () => {
  const { tenant, made } = await filled();
  const one = <T>(...values: T[]) => fc.option(fc.constantFrom(...values), { nil: undefined });
  const time = fc.option(fc.integer({ min: startTime, max: startTime + 650 }), { nil: undefined });
  const ids = made.slice(0, 4).map(({ answer }) => answer.id);
  const filters = fc.record({
    apikeyId: one('apik_0', 'apik_1', 'apik_x'),
    accountId: one('acct_0', 'acct_1'),
    keyringId: one(...new Set(made.map(({ keyringId }) => keyringId)), 'ring_x'),
    parents: fc.option(fc.subarray(ids), { nil: undefined }),
    start: time,
    end: time,
    data: one<object>(
      {},
      { n: 1 },
      { deep: { even: true } },
      { deep: { list: [1] } },
      { deep: { list: [] } },
      { n: 2, deep: { even: true } },
    ),
  });
  await fc.assert(
    fc.asyncProperty(filters, fc.integer({ min: 1, max: 70 }), async (given, limit) => {
      const filter: Body<'searchAssets'> = Object.fromEntries(
        Object.entries(given).filter(([, value]) => value !== undefined),
      );
      const found: Asset[] = [];
      let after: number | undefined;
      do {
        const page = after === undefined ? { limit } : { limit, after };
        const { items, next } = readPage(await searchAssets(tenant, filter, page));
        assert.ok(items.length <= limit && (next === undefined || items.length === limit));
        found.push(...items);
        after = next;
      } while (after !== undefined);
      assert.deepEqual(found, expected(made, filter));
    }),
    { numRuns: 150, seed: 21 },
  );
});

test('a search in data reads on until its page is full', async () => {
  const tenant = await testTenant();
  await tenant.call(createKeyring, { name: 'a' });
  const needles: string[] = [];
  for (let i = 0; i < 1300; i++) {
    const needle = i === 3 || i === 700;
    const { asset } = await tenant.run((ctx) => {
      const id = ctx.world.newId('asset');
      const data = needle ? { needle: true } : {};
      ctx.tx.assets.insert({
        id,
        ringId: 'r',
        data,
        parents: [],
        apikeyId: 'k',
        accountId: undefined,
        createdAt: i,
      });
      return { asset: id };
    });
    if (needle) needles.unshift(asset);
  }
  const search = async (page: { limit: number; after?: number }) =>
    readPage(await searchAssets(tenant, { data: { needle: true } }, page));
  assert.deepEqual(
    (await search({ limit: 2 })).items.map((asset) => asset.id),
    needles,
  );
  const first = await search({ limit: 1 });
  assert.deepEqual(
    first.items.map((asset) => asset.id),
    needles.slice(0, 1),
  );
  assert.deepEqual(
    (await search({ limit: 1, after: first.next ?? 0 })).items.map((asset) => asset.id),
    needles.slice(1),
  );
});

test('searches see current versions, and children keep naming a deleted parent', async () => {
  const { tenant, made } = await filled();
  const first = made[0]?.answer.id ?? '';
  const last = made.at(-1)?.answer.id ?? '';
  const page = { limit: 100 };
  await tenant.call(encrypt, { ringname: 'b', asset: { assetId: last, data: { fresh: true }, parents: [first] } });
  const ids = async (filter: Body<'searchAssets'>) =>
    readPage(await searchAssets(tenant, filter, page)).items.map((asset) => asset.id);
  assert.deepEqual(await ids({ data: { fresh: true } }), [last]);
  assert.equal((await ids({ data: { n: 3 } })).includes(last), false);
  const children = await ids({ parents: [first] });
  assert.equal(children[0], last);
  await tenant.call(deleteAsset, { id: first });
  await refusal('not-found', tenant.call(getAsset, { id: first }));
  await refusal('not-found', tenant.call(deleteAsset, { id: first }));
  assert.deepEqual(await ids({ parents: [first] }), children);
  await tenant.call(deleteAsset, { id: last });
  assert.deepEqual(await ids({ parents: [first] }), children.slice(1));
});

test('an asset is answered as it was made', async () => {
  const { tenant, made } = await filled();
  for (const { answer } of made.slice(0, 3)) assert.deepEqual(await tenant.call(getAsset, { id: answer.id }), answer);
  await refusal('not-found', tenant.call(getAsset, { id: 'asset_x' }));
});
