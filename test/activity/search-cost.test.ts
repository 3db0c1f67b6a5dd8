// The cost of searching an activity log that has long records, or for very many keys: CPU time of the process between
// two turns of the event loop, in the tail and in segments.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ActivityLog } from '../../src/store/activity/activity-log.ts';
import { Found } from '../../src/store/activity/search.ts';
import type { ActivityFilter, ActivityRecord } from '../../src/store/port.ts';
import { countedWork, longestGo } from '../support/longest-go.ts';
import { activity, checkpoint, emptyOn, testLog } from './appliance-log.ts';

/** Milliseconds of CPU. */
const budget = 200;
const long = 100;

function longRecords(log: ActivityLog): void {
  const list = Array.from({ length: 20_000 }, (_, i) => ({ [`name ${i}`]: 'x'.repeat(10) }));
  for (let i = 0; i < long; i++) {
    log.stage(activity(i, { props: { i, list } }));
    log.commitStaged();
  }
}

async function searchAll(log: ActivityLog, filter: ActivityFilter, what: string): Promise<number[]> {
  const found: number[] = [];
  for (let after: number | undefined, first = true; first || after !== undefined; first = false) {
    const page = { limit: 10_000, ...(after !== undefined && { after }) };
    const cost = await longestGo(async () => {
      const { items, next } = await log.search(filter, page);
      for (const { seq } of items) found.push(seq);
      after = next;
    });
    assert.ok(cost < budget, `${what} took ${cost} ms of CPU in one go`);
  }
  return found;
}

async function searches(log: ActivityLog, where: string): Promise<void> {
  const all = Array.from({ length: long }, (_, at) => long - at);
  assert.deepEqual(await searchAll(log, {}, `all, ${where}`), all);
  assert.deepEqual(await searchAll(log, { props: { i: 0 } }, `one, ${where}`), [1]);
  assert.deepEqual(await searchAll(log, { props: { i: -1 } }, `none, ${where}`), []);
}

test('pages of long records are short, and a search for few of them lets others have their turn', async () => {
  const { log } = testLog();
  longRecords(log);
  await searches(log, 'in the tail');
});

test('so it is in segments', async () => {
  const { log, files } = testLog();
  longRecords(log);
  await checkpoint(log, emptyOn(files));
  assert.ok(log.segments.length > 0);
  await searches(log, 'in segments');
});

test('a search for 100,000 keys asks no index for each of them', async () => {
  const { log, files } = testLog();
  for (let i = 0; i < 30_000; i++) log.stage(activity(i, { keyid: `apik_${i % 5}` }));
  log.commitStaged();
  await checkpoint(log, emptyOn(files));
  const keyids = Array.from({ length: 100_000 }, (_, i) => `apik_none_${i}`);
  assert.deepEqual(await searchAll(log, { keyids }, 'nobody'), []);
  const found = await searchAll(log, { keyids: [...keyids, 'apik_3'] }, 'one of them');
  assert.equal(found.length, 6000);
});

test('few records of a long page are read before whatever else came has its turn', async (t) => {
  const count = 20_000;
  const work = countedWork(t);
  const { add } = Found.prototype;
  t.mock.method(Found.prototype, 'add', function (this: Found, record: ActivityRecord, length: number) {
    return work.count(add.call(this, record, length));
  });
  const { log, files } = testLog();
  for (let i = 0; i < count; i++) {
    log.stage(activity(i));
    log.commitStaged();
  }
  for (const where of ['in the tail', 'in segments']) {
    const most = await work.inOneGo(async () => {
      assert.equal((await log.search({}, { limit: 10_000 })).items.length, 10_000);
    });
    // Records that fit into half a mebibyte at a kibibyte extra each; a segment's block holds fewer.
    assert.ok(most <= 512, `${most} ${where} in one go`);
    await checkpoint(log, emptyOn(files));
  }
  assert.ok(log.segments.length > 0);
});
