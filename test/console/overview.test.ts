// What the overview is made of: buckets of time, the chart's geometry, and what it reads of health and metrics.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { axisMarks, chartShape } from '../../src/console/overview/chart-shape.ts';
import { countIn, mostOfEach, overviewNumbers, timeAxis, timeRanges } from '../../src/console/overview/counts.ts';
import { parseMetrics, readinessOf, sumOf } from '../../src/console/overview/health.ts';
import { bytesText, spanText } from '../../src/console/text.ts';

const now = Date.UTC(2026, 0, 2, 10, 17, 30);

test('a day is 24 hours that begin at the full hour and end with this one', () => {
  const axis = timeAxis(timeRanges.day, now);
  assert.equal(axis.starts.length, 24);
  assert.deepEqual([axis.starts.at(-1), axis.end], [Date.UTC(2026, 0, 2, 10), Date.UTC(2026, 0, 2, 11)]);
  assert.equal(timeAxis(timeRanges.week, now).starts.length, 28);
  assert.equal(timeAxis(timeRanges.hour, now).starts.length, 30);
});

test('every time of the range is in one bucket, no other is', () => {
  fc.assert(
    fc.property(fc.constantFrom(...Object.values(timeRanges)), (range) => {
      const axis = timeAxis(range, now);
      const [first = 0] = axis.starts;
      assert.ok(first <= now && now < axis.end && first > now - range.length - range.bucket);
      const inside = [first, first + range.bucket - 1, first + range.bucket, axis.end - 1, now];
      const counts = countIn(axis, [...inside, first - 1, axis.end, Number.MAX_SAFE_INTEGER, 0]);
      assert.equal(
        counts.reduce((sum, count) => sum + count, 0),
        inside.length,
      );
      assert.deepEqual([counts[0], counts[1]], [2, 1]);
    }),
  );
});

test('of more than can be counted the newest are, and it is told', async () => {
  const asked: Record<string, unknown>[] = [];
  const record = { id: 'act_1', keyid: 'k', props: {}, action: 'a', ringname: '', validAction: true, status: 200 };
  const { axis, series, cut } = await overviewNumbers(
    async (input = {}) => {
      asked.push(input);
      const isMany = input.action === 'keyring.encrypt';
      const data = Array.from({ length: isMany ? (input.limit ?? 0) : 3 }, () => ({ ...record, createdAt: now }));
      const rest = isMany ? { hasMore: true, nextCursor: 'x' } : { hasMore: false };
      return { data, pagination: { limit: 1, count: data.length, ...rest } };
    },
    timeRanges.hour,
    now,
  );
  assert.deepEqual(cut, [{ name: 'Encrypts', since: now }]);
  assert.deepEqual(
    series.map(({ name, counts }) => [name, counts.at(-1)]),
    [
      ['Encrypts', mostOfEach],
      ['Decrypts', 3],
      ['Denials', 3],
    ],
  );
  for (const { start, end } of asked) assert.deepEqual([start, end], [axis.starts[0], axis.end - 1]);
});

test('bars stack inside the chart, and what is there is seen', () => {
  const size = { width: 600, height: 200 };
  const series = [
    { name: 'encrypts', counts: [10, 0, 1, 4000] },
    { name: 'decrypts', counts: [5, 0, 0, 1] },
  ];
  const { bars, marks, step } = chartShape(series, size);
  assert.equal(step, 150);
  assert.deepEqual(
    bars.map(({ series, bucket }) => [series, bucket]),
    [
      [0, 0],
      [1, 0],
      [0, 2],
      [0, 3],
      [1, 3],
    ],
  );
  for (const { x, y, width, height } of bars) {
    assert.ok(height >= 2 && y >= 0 && x >= 0 && x + width <= size.width && y + height <= size.height + 4);
  }
  assert.deepEqual(
    marks.map(({ value }) => value),
    [0, 2000, 4000, 6000],
  );
  assert.deepEqual([marks[0]?.y, marks.at(-1)?.y], [200, 0]);
  assert.deepEqual(chartShape([], size).bars, []);
  assert.deepEqual(
    chartShape([{ name: 'none', counts: [0, 0] }], size).marks.map(({ value }) => value),
    [0, 1],
  );
});

test('marks are round, few and high enough', () => {
  assert.deepEqual(axisMarks(3), [0, 1, 2, 3]);
  assert.deepEqual(axisMarks(17), [0, 5, 10, 15, 20]);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1e9 }), (highest) => {
      const marks = axisMarks(highest);
      assert.ok(
        (marks.at(-1) ?? 0) >= highest && marks.length >= 2 && marks.length <= 6 && marks.every(Number.isInteger),
      );
    }),
  );
});

test('metrics are read, what is none is passed over', () => {
  const text = `# HELP kms_log_bytes Bytes of the log.
# TYPE kms_log_bytes gauge
kms_log_bytes{tenant="a"} 1024
kms_log_bytes{tenant="b \\"quoted\\", with {brackets} and \\\\ and \\n"} 1.5e3
kms_sealed 0
kms_seconds_bucket{le="+Inf"} 7 1700000000000
kms_endless +Inf

<html>
kms_broken{ nonsense
kms_not_a_number NaN
`;
  const samples = parseMetrics(text);
  assert.deepEqual(
    samples.map(({ name }) => name),
    ['kms_log_bytes', 'kms_log_bytes', 'kms_sealed', 'kms_seconds_bucket', 'kms_endless'],
  );
  assert.equal(samples[1]?.labels.tenant, 'b "quoted", with {brackets} and \\ and \n');
  assert.deepEqual([sumOf(samples, 'kms_log_bytes'), sumOf(samples, 'kms_log_bytes', { tenant: 'a' })], [2524, 1024]);
  assert.deepEqual([sumOf(samples, 'kms_sealed'), sumOf(samples, 'kms_nothing')], [0, undefined]);
  assert.equal(sumOf(samples, 'kms_endless'), Number.POSITIVE_INFINITY);
});

test('health is read as far as it tells', () => {
  const ready = { status: 'ready', lastVerifiedBackup: { at: '2026-01-01T00:00:00.000Z', ageSeconds: 90 } };
  const quiet = { isReady: true, isSealed: false, reason: undefined, shipping: undefined, faults: undefined };
  assert.deepEqual(readinessOf(200, ready), { ...quiet, backup: ready.lastVerifiedBackup });
  assert.deepEqual(readinessOf(200, { lastVerifiedBackup: null }), { ...quiet, backup: 'none' });
  assert.deepEqual(readinessOf(200, 'ok'), { ...quiet, backup: undefined });
  const sealed = readinessOf(503, { message: 'the appliance is sealed', sealed: true });
  assert.deepEqual([sealed.isReady, sealed.isSealed, sealed.reason], [false, true, 'the appliance is sealed']);
  assert.equal(readinessOf(502, undefined).reason, 'it answers with status 502');
  const shipped = readinessOf(200, { shipping: { ageSeconds: null, ok: false } });
  assert.deepEqual(shipped.shipping, { isWorking: false, ageSeconds: undefined });
  const [segment] = ['tenants/2f6c1b0a9d8e7f34/activity-000000000001.kms is missing'];
  const faulty = readinessOf(200, { activity: { faulty: 3, segments: [segment, 5] } });
  assert.deepEqual(faulty.faults, { count: 3, first: [segment] });
  for (const activity of [undefined, null, 5, {}, { faulty: 0, segments: [] }, { faulty: 'x' }]) {
    assert.equal(readinessOf(200, { activity }).faults, undefined);
  }
});

test('sizes and spans read well', () => {
  assert.deepEqual([0, 1, 1023, 1024, 1_572_864, 5e12].map(bytesText), [
    '0 bytes',
    '1 byte',
    '1023 bytes',
    '1.0 KiB',
    '1.5 MiB',
    '4.5 TiB',
  ]);
  assert.deepEqual([0, 1, 59, 60, 7_300, 90_000].map(spanText), [
    '0 seconds',
    '1 second',
    '59 seconds',
    '1 minute',
    '2 hours',
    '1 day',
  ]);
});
