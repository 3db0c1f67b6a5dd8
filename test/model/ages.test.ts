// Ages such as `30d`: parsing and formatting.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ageText, parseAge } from '../../src/model/ages.ts';

test('an age is a whole number and a unit', () => {
  const table: [text: string, milliseconds: number | undefined][] = [
    ['1s', 1000],
    ['90s', 90_000],
    ['15m', 900_000],
    ['1h', 3_600_000],
    ['7d', 604_800_000],
    ['999999999d', 999_999_999 * 86_400_000],
    ...[
      '',
      '0s',
      '000d',
      '1',
      's',
      '1.5h',
      '-1d',
      '+1d',
      '1 d',
      ' 1d',
      '1d ',
      '1D',
      '1w',
      '1ms',
      '1y',
      '1000000000s',
      '1dd',
      '١d',
    ].map((text): [string, undefined] => [text, undefined]),
  ];
  for (const [text, milliseconds] of table) assert.equal(parseAge(text), milliseconds, text);
});

test('an age is written in the largest unit that says it exactly', () => {
  for (const [seconds, text] of [
    [1, '1s'],
    [61, '61s'],
    [3600, '1h'],
    [5400, '90m'],
    [86_400, '1d'],
    [90_000, '25h'],
    [7_776_000, '90d'],
  ] as const) {
    assert.equal(ageText(seconds * 1000), text);
  }
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 999_999_999 }), (seconds) => {
      assert.equal(parseAge(ageText(seconds * 1000)), seconds * 1000);
    }),
  );
});
