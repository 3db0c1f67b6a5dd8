// Times as texts: as a Date writes them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { timestamp } from '../../src/model/timestamp.ts';

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
