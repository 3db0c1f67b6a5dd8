// Activity as the console asks for it: bounded, without repetition, by filters that are in the page's address.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from '../../src/client/client.ts';
import {
  type ActivityRecord,
  activityFields,
  emptyTail,
  newestActivity,
  type Tail,
  tailStart,
  withoutOwn,
  withPage,
} from '../../src/console/activity/records.ts';

function record(number: number): ActivityRecord {
  const id = `act_${String(number).padStart(8, '0')}`;
  const rest = { keyid: 'apik_a', props: {}, action: 'keyring.encrypt', ringname: 'r', validAction: true, status: 200 };
  return { id, createdAt: number, ...rest };
}

/** A log of `total` records whose searches are noted. */
function log(total: number) {
  const asked: object[] = [];
  const searchActivity: Client['searchActivity'] = async (input = {}) => {
    asked.push(input);
    const limit = Number(input.limit);
    const from = total - Number(input.cursor ?? 0);
    const data = Array.from({ length: Math.min(limit, from) }, (_, index) => record(from - index));
    const next = total - from + data.length;
    const hasMore = next < total;
    const pagination = { limit, count: data.length, hasMore, ...(hasMore && { nextCursor: String(next) }) };
    return { data, pagination };
  };
  return { asked, searchActivity };
}

test('everything is fetched where it is little, in as few pages as there can be', async () => {
  const { asked, searchActivity } = log(12_345);
  const { records, isCut } = await newestActivity(searchActivity, { ring: 'r', start: 5 }, { most: 30_000 });
  assert.deepEqual(
    [records.length, records[0]?.createdAt, records.at(-1)?.createdAt, isCut],
    [12_345, 12_345, 1, false],
  );
  assert.deepEqual(asked, [
    { ring: 'r', start: 5, limit: 10_000 },
    { ring: 'r', start: 5, limit: 10_000, cursor: '10000' },
  ]);
});

test('the newest alone are fetched where it is much', async () => {
  const { asked, searchActivity } = log(100_000);
  const { records, isCut } = await newestActivity(searchActivity, {}, { most: 15_000 });
  assert.deepEqual([records.length, records.at(-1)?.createdAt, isCut, asked.length], [15_000, 85_001, true, 2]);
  const exact = await newestActivity(log(500).searchActivity, {}, { most: 500 });
  assert.deepEqual([exact.records.length, exact.isCut], [500, false]);
});

test('a live view holds each record once and no more than its bound', () => {
  const page = (from: number, to: number) => Array.from({ length: from - to + 1 }, (_, index) => record(from - index));
  const most = 50;
  let tail: Tail = emptyTail;
  assert.equal(tailStart(tail, 1_000), 1_000);
  tail = withPage(tail, page(30, 21), { hasMore: false, most });
  tail = withPage(tail, page(35, 21), { hasMore: false, most });
  assert.deepEqual([tail.records.length, tail.added, tail.isGapped], [15, 5, false]);
  tail = withPage(tail, page(35, 21), { hasMore: false, most });
  assert.deepEqual([tail.records.length, tail.added], [15, 0]);
  tail = withPage(tail, page(90, 30), { hasMore: true, most });
  assert.deepEqual([tail.records.length, tail.records[0]?.createdAt, tail.isGapped], [50, 90, false]);
  tail = withPage(tail, page(300, 200), { hasMore: true, most });
  assert.deepEqual([tail.records.length, tail.isGapped], [50, true]);
  assert.equal(new Set(tail.records.map(({ id }) => id)).size, 50);
  assert.equal(tailStart({ ...emptyTail, records: [record(60_000), record(70_000)] }, 1_000), 65_000);
  assert.equal(tailStart({ ...emptyTail, records: [record(2_000)] }, 1_000), 1_000);
  assert.equal(tailStart(emptyTail, undefined), undefined);
  // Written in 2016, by its id, with the time of a program whose clock was wrong.
  const ahead = { ...record(9e12), id: 'act_01arz3ndektsv4rrffq69g5fav' };
  assert.equal(tailStart({ ...emptyTail, records: [ahead] }, undefined), 1_469_922_850_259 - 5_000);
});

test('filters go into the address and come back', () => {
  const { empty, filters } = activityFields;
  const fields = { ...empty, ring: 'Löhne & more', valid: 'false', start: '2026-01-02T03:04', props: '{"a":1}' };
  const query = activityFields.toQuery(fields);
  assert.deepEqual(Object.keys(query).sort(), ['props', 'ring', 'start', 'valid']);
  assert.deepEqual(activityFields.fromQuery(new URLSearchParams(query)), fields);
  const start = Date.UTC(2026, 0, 2, 3, 4);
  assert.deepEqual(filters(fields), { filters: { ring: 'Löhne & more', valid: false, start, props: { a: 1 } } });
  assert.deepEqual(filters({ ...empty, end: '2026-01-02T03:04' }), { filters: { end: start + 59_999 } });
  assert.deepEqual(filters(empty), { filters: {} });
});

test('one’s own reading of the log is left out, unless it is asked for', () => {
  const own = { keyid: 'user_1', action: 'activity.read' };
  assert.deepEqual(withoutOwn({ ring: 'r' }, 'user_1', false), { ring: 'r', exclude: own });
  for (const [filters, id, shows] of [
    [{ ring: 'r' }, 'user_1', true],
    [{ ring: 'r' }, undefined, false],
    [{ action: 'activity.read' }, 'user_1', false],
  ] as const) {
    assert.deepEqual(withoutOwn(filters, id, shows), filters);
  }
});

test('flags are asked for by name, or any', () => {
  const { empty, filters } = activityFields;
  assert.deepEqual(filters({ ...empty, granted: 'Any', revoked: 'user.read', address: ' 10.0.0.0/8 ' }), {
    filters: { granted: true, revoked: 'user.read', address: '10.0.0.0/8' },
  });
});

test('filters that make no sense are told at their fields', () => {
  const { empty, filters } = activityFields;
  const wrong = { ...empty, start: 'yesterday', end: '2026-13-01T00:00', props: '[1]' };
  const result = filters(wrong);
  assert.ok('problems' in result);
  assert.deepEqual(Object.keys(result.problems).sort(), ['end', 'props', 'start']);
  const reversed = filters({ ...empty, start: '2026-01-02T00:00', end: '2026-01-01T00:00' });
  assert.deepEqual('problems' in reversed && reversed.problems, { end: 'This is before the start.' });
});
