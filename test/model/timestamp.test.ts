// Times as texts: formatted as a Date does, and parsed only in the forms of RFC 3339, in UTC, whatever the machine's
// time zone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseTimestamp, timestamp } from '../../src/model/timestamp.ts';
import { codeOf, sources } from '../architecture/imports.ts';

test('a time is written as a Date writes it, in any year and between two milliseconds too', () => {
  const day = 86_400_000;
  const edges = [0, -1, 1, day - 1, day, -day, 999, 59_999, 3_599_999, 253_402_300_799_999, 253_402_300_800_000];
  for (const at of [...edges, -62_167_219_200_001, 8.64e15, -8.64e15, 1_790_000_000_000.9, -0.5]) {
    assert.equal(timestamp(at), new Date(at).toISOString(), String(at));
  }
  fc.assert(
    fc.property(fc.integer({ min: -8.64e15, max: 8.64e15 }), (at) => {
      assert.equal(timestamp(at), new Date(at).toISOString());
    }),
  );
});

test('what is no time is refused', () => {
  for (const at of [Number.NaN, Number.POSITIVE_INFINITY, 8.65e15]) assert.throws(() => timestamp(at), RangeError);
});

/** Texts with their meaning, in the platform's only form that is always UTC. */
const read: readonly (readonly [text: string, meant: string])[] = [
  ['2026-11-27', '2026-11-27T00:00:00.000Z'],
  ['2026-11-27T20:07', '2026-11-27T20:07:00.000Z'],
  ['2026-11-27T20:07:08', '2026-11-27T20:07:08.000Z'],
  ['2026-11-27 20:07:08', '2026-11-27T20:07:08.000Z'],
  ['2026-11-27t20:07:08z', '2026-11-27T20:07:08.000Z'],
  ['2026-11-27T20:07:08.9Z', '2026-11-27T20:07:08.900Z'],
  ['2026-11-27T20:07:08.123456789Z', '2026-11-27T20:07:08.123Z'],
  ['2026-11-27T20:07:08-05:00', '2026-11-28T01:07:08.000Z'],
  ['2026-11-27T20:07:08+05:45', '2026-11-27T14:22:08.000Z'],
  ['2026-11-27T20:07-00:00', '2026-11-27T20:07:00.000Z'],
  ['2024-02-29', '2024-02-29T00:00:00.000Z'],
  ['0099-03-01', '0099-03-01T00:00:00.000Z'],
  ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z'],
  ['2017-01-01T00:59:60+01:00', '2017-01-01T00:00:00.000Z'],
];

const refused = [
  ...['', ' ', '0', '5', '1795808647', '1795808647000', '20261127', '20261127T200700Z', '2026', '2026-11', '2026-1-2'],
  ...['2026-02-30', '2026-02-29', '2026-13-01', '2026-00-01', '2026-01-00', '+2026-01-01', '-002026-01-01'],
  ...['10 PM', 'now', 'Fri Nov 27 2026', '2026-12-31 (note)', '2026-12-31 10 PM', '27.11.2026', '11/27/2026'],
  ...['2026-11-27T', '2026-11-27Z', '2026-11-27T20', '2026-11-27T20Z', '2026-11-27T24:00:00Z', '2026-11-27T20:60Z'],
  ...['2026-11-27T20:07:61Z', '2026-11-27T20:07:60Z', '2026-11-27T20:07:08.Z', '2026-11-27T20:07:08,5Z'],
  ...['2026-11-27T20:07:08 UTC', '2026-11-27T20:07:08-0500', '2026-11-27T20:07:08-05', '2026-11-27T20:07:08+24:00'],
  ...[' 2026-11-27', '2026-11-27 ', '2026-11-27\n', '2026-11-27T20:07:08Z junk', '２０２６-11-27', '2026‑11‑27'],
];

test('a time means the same on a machine of any zone, and nothing but RFC 3339 and its shorter forms is one', () => {
  const before = process.env.TZ;
  try {
    for (const zone of ['UTC', 'America/New_York', 'Asia/Kolkata', 'Pacific/Apia']) {
      process.env.TZ = zone;
      for (const [text, meant] of read) {
        assert.equal(timestamp(parseTimestamp(text) ?? Number.NaN), meant, `${text} in ${zone}`);
      }
      for (const text of refused) assert.equal(parseTimestamp(text), undefined, `${text} in ${zone}`);
    }
  } finally {
    if (before === undefined) delete process.env.TZ;
    else process.env.TZ = before;
  }
  fc.assert(
    fc.property(fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 }), (at) => {
      assert.equal(parseTimestamp(timestamp(at)), at);
    }),
  );
});

test('no other file asks the platform to read a time, which takes much more and in the zone of the machine', () => {
  const readers = sources().filter((file) => /\bDate\.parse\b|\bnew Date\((?:text|`|')/.test(codeOf(file)));
  // The console parses times that a person typed, in that person's zone.
  assert.deepEqual(readers, ['src/console/parts/search-fields.ts', 'src/model/timestamp.ts']);
});
