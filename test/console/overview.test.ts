// The overview's parts: buckets of time, the chart's geometry, and figures read from health and metrics.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { concernsOf } from '../../src/console/overview/attention.ts';
import { axisMarks, chartShape } from '../../src/console/overview/chart-shape.ts';
import { numbersOf } from '../../src/console/overview/counts.ts';
import { readinessOf } from '../../src/console/overview/health.ts';
import { bytesText, spanText } from '../../src/console/text.ts';
import { countIn, timeAxis, timeRanges } from '../../src/model/time-ranges.ts';

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
      const counts = countIn(
        axis,
        [...inside, first - 1, axis.end, Number.MAX_SAFE_INTEGER, 0].map((time) => [time, 1] as const),
      );
      assert.equal(
        counts.reduce((sum, count) => sum + count, 0),
        inside.length,
      );
      assert.deepEqual([counts[0], counts[1]], [2, 1]);
    }),
  );
});

test('what the appliance counted is shown by name, and what it did not count whole', () => {
  const since = now - 60_000;
  const { axis, series, cut } = numbersOf({
    from: now - 120_000,
    bucket: 60_000,
    encrypts: [1, 10_000],
    decrypts: [0, 3],
    denials: [0, 3],
    cut: [{ name: 'encrypts', since }],
    deniedLastHour: 3,
    deniedBefore: 0,
    countedBefore: 0,
  });
  assert.deepEqual(cut, [{ name: 'Encrypts', since }]);
  assert.deepEqual([axis.starts, axis.end], [[now - 120_000, now - 60_000], now]);
  assert.deepEqual(
    series.map(({ name, counts }) => [name, counts.at(-1)]),
    [
      ['Encrypts', 10_000],
      ['Decrypts', 3],
      ['Denials', 3],
    ],
  );
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

const hour = 3_600_000;
const nothing = {
  state: undefined,
  backups: undefined,
  keys: undefined,
  proofs: undefined,
  rings: undefined,
  denials: undefined,
};
const told = (known: Partial<Parameters<typeof concernsOf>[0]>): string[] =>
  concernsOf({ ...nothing, ...known }, now).map(({ name, text }) => (name === undefined ? text : `${name} ${text}`));

test('what is not known is no concern, and neither is what is well', () => {
  assert.deepEqual(told({}), []);
  const configured = { directory: '/b', schedule: '0 3 * * *', keep: 7, nextAt: null };
  const lastVerified = { at: new Date(now - 47 * hour).toISOString(), file: '/b/x', bytes: 1 };
  const backups = { configured, running: false, lastVerified, lastFailure: null };
  const state = readinessOf(200, { status: 'ready', lastVerifiedBackup: null });
  assert.deepEqual(
    told({
      state,
      backups,
      keys: [],
      rings: [],
      denials: { deniedLastHour: 0, deniedBefore: 0, countedBefore: 23 * hour },
    }),
    [],
  );
});

test('backups: none, old, failed; while one is made it is waited for', () => {
  const none = { configured: null, running: false, lastVerified: null, lastFailure: null };
  const [concern] = concernsOf({ ...nothing, backups: none }, now);
  assert.deepEqual(concern, {
    tone: 'bad',
    text: 'There is no verified backup.',
    mend: { title: 'Make one', anchor: 'backups' },
  });
  assert.deepEqual(told({ backups: { ...none, running: true } }), []);
  const lastFailure = { at: new Date(now).toISOString(), message: 'the disk is full' };
  assert.deepEqual(told({ backups: { ...none, lastFailure } }), ['The last backup failed: the disk is full.']);
  const lastVerified = { at: new Date(now - 49 * hour).toISOString(), file: '/b/x', bytes: 1 };
  assert.deepEqual(told({ backups: { ...none, lastVerified } }), ['The last verified backup is 2 days old.']);
});

test('an appliance that does not serve, and files that do not verify', () => {
  const body = { message: 'no room', activity: { faulty: 1, segments: ['a is missing'] } };
  assert.deepEqual(told({ state: readinessOf(503, body) }), [
    'The service is not serving: no room.',
    'One file of the activity log does not verify.',
  ]);
  const two = readinessOf(200, { activity: { faulty: 2000, segments: [] } });
  assert.deepEqual(told({ state: two }), ['2,000 files of the activity log do not verify.']);
});

test('keys that end soon or ended lately, the first few, whatever they are called', () => {
  const key = (keyid: string, expiresAt: number, name = '') => ({ keyid, name, expiresAt });
  const keys = [
    key('apik_later', now + 15 * 24 * hour),
    key('apik_soon', now + 13 * 24 * hour, '<b>x</b>'),
    key('apik_over', now - 2 * hour),
    key('apik_long-over', now - 4 * 24 * hour),
  ];
  assert.deepEqual(told({ keys }), ['API key apik_over expired 2 hours ago.', 'API key <b>x</b> expires in 13 days.']);
  const many = Array.from({ length: 1205 }, (_, index) => key(`apik_${index}`, now + hour + index));
  assert.deepEqual(told({ keys: many }).slice(4), [
    'API key apik_4 expires in 1 hour.',
    '1,200 more API keys expire soon.',
  ]);
});

test('client certificates that end soon or ended lately, by the name of their API key', () => {
  const proof = (keyid: string, endsAt: number, name = '') => ({ keyid, name, endsAt, proof: `proof_${keyid}` });
  const proofs = [
    proof('apik_later', now + 15 * 24 * hour),
    proof('apik_soon', now + 13 * 24 * hour, 'till'),
    proof('apik_over', now - 2 * hour),
    proof('apik_long-over', now - 4 * 24 * hour),
  ];
  assert.deepEqual(told({ proofs }), [
    'API key apik_over has a client certificate that ended 2 hours ago.',
    'API key till has a client certificate that ends in 13 days.',
  ]);
  const [concern] = concernsOf({ ...nothing, proofs }, now);
  assert.deepEqual(concern?.mend, { title: 'Its proofs', page: 'apikey', params: { id: 'apik_over' } });
});

test('keyrings whose key is older than it may be', () => {
  const ring = (name: string, days: number, rotateAfter?: number) => ({
    ring: name,
    most: 10,
    served: 0,
    since: now - days * 24 * hour,
    rotateAfter,
  });
  const rings = [ring('payroll', 93, 90 * 86_400), ring('young', 89, 90 * 86_400), ring('any', 9000)];
  assert.deepEqual(told({ rings }), [
    'Keyring payroll has a key that should have been replaced 3 days ago; the next encrypt replaces it.',
  ]);
  const [concern] = concernsOf({ ...nothing, rings }, now);
  assert.deepEqual(concern?.mend, { title: 'Rotate it', page: 'keyring', params: { name: 'payroll' } });
});

test('denials that rise, and not those that are as many as ever', () => {
  const denials = (deniedLastHour: number, deniedBefore: number, hours = 24) => ({
    deniedLastHour,
    deniedBefore,
    countedBefore: (hours - 1) * hour,
  });
  const text = (count: number, usual: string) =>
    `${count} requests were denied in the last hour; before that, ${usual} an hour.`;
  assert.deepEqual(told({ denials: denials(9, 0) }), [], 'few');
  assert.deepEqual(told({ denials: denials(10, 0) }), [text(10, 'less than one')]);
  assert.deepEqual(told({ denials: denials(30, 230) }), [], 'three times as many are none');
  assert.deepEqual(told({ denials: denials(31, 230) }), [text(31, 'about 10')]);
  const link = concernsOf({ ...nothing, denials: denials(10, 0) }, now)[0]?.mend;
  assert.deepEqual(link, {
    title: 'See which',
    page: 'activity',
    query: { valid: 'false', start: '2026-01-02T09:17' },
  });
});
