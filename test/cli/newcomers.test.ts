// Watching the activity log: each search of the newest records finds new ones once, in order, and in few requests.
import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { newcomers } from '../../src/cli/activity-watch.ts';

/** A growing log, searched as the appliance does. */
function log(count: number) {
  const records: { id: string }[] = [];
  let made = 0;
  const grow = (more: number): string[] => {
    const ids = Array.from({ length: more }, () => `act_${String(++made).padStart(8, '0')}`);
    records.push(...ids.map((id) => ({ id })));
    return ids;
  };
  grow(count);
  let asked = 0;
  return {
    grow,
    records,
    asked: () => asked,
    async search({ limit, cursor }: { limit: number; cursor?: string }) {
      asked++;
      const end = cursor === undefined ? records.length : Number(cursor);
      const begin = Math.max(0, end - limit);
      const data = records.slice(begin, end).toReversed();
      return { data, pagination: begin > 0 ? { nextCursor: String(begin) } : {} };
    },
  };
}

test('each record is found once and in order, however many come between two looks', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 300 }),
      fc.integer({ min: 0, max: 120 }),
      fc.array(fc.oneof(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 95, max: 2500 })), { maxLength: 5 }),
      async (there, count, growths) => {
        const source = log(there);
        const news = await newcomers(source.search, count);
        assert.deepEqual(news.before, source.records.slice(Math.max(0, there - count)));
        for (const growth of growths) {
          const ids = source.grow(growth);
          assert.deepEqual(
            (await news.look()).map(({ id }) => id),
            ids,
          );
        }
        assert.deepEqual(await news.look(), []);
      },
    ),
    { numRuns: 50 },
  );
});

test('a quiet log costs one question a look', async () => {
  const source = log(5000);
  const news = await newcomers(source.search, 0);
  for (let n = 1; n <= 5; n++) {
    await news.look();
    assert.equal(source.asked(), 1 + n);
  }
});

test('where everything that was seen is gone, only what is newer than all of it is news', async () => {
  const source = log(3000);
  const news = await newcomers(source.search, 0);
  // The newest 200 are gone: an older copy was restored.
  source.records.splice(2800);
  assert.deepEqual(await news.look(), []);
  const asked = source.asked();
  const ids = source.grow(3);
  assert.deepEqual(
    (await news.look()).map(({ id }) => id),
    ids,
  );
  assert.ok(asked <= 4, 'not all of the log is read');
});

test('records whose ids are older, since a clock was set back, are news where they stand before what was seen', async () => {
  const source = log(200);
  const news = await newcomers(source.search, 0);
  source.records.push({ id: 'act_00000000' });
  assert.deepEqual(await news.look(), [{ id: 'act_00000000' }]);
  assert.deepEqual(await news.look(), []);
});
