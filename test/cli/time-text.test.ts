// Times in the past as people type them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPastTime, readTime } from '../../src/cli/grammar/time-text.ts';

const now = '2026-03-01T00:30:00.000Z';

for (const [typed, time] of [
  ['24h', '2026-02-28T00:30:00.000Z'],
  ['7d', '2026-02-22T00:30:00.000Z'],
  ['90m', '2026-02-28T23:00:00.000Z'],
  ['1s', '2026-03-01T00:29:59.000Z'],
  ['3650d', '2016-03-03T00:30:00.000Z'],
  ['today', '2026-03-01T00:00:00.000Z'],
  ['Today', '2026-03-01T00:00:00.000Z'],
  ['todayZ', '2026-03-01T00:00:00.000Z'],
  ['yesterday', '2026-02-28T00:00:00.000Z'],
  // In New York it is still the day before, in Auckland the day began long ago.
  ['today-05:00', '2026-02-28T05:00:00.000Z'],
  ['yesterday-05:00', '2026-02-27T05:00:00.000Z'],
  ['today+13:00', '2026-02-28T11:00:00.000Z'],
  ['today+05:45', '2026-02-28T18:15:00.000Z'],
  ['today-00:30', '2026-03-01T00:30:00.000Z'],
  // Forms that any time may have.
  ['2026-02-27', '2026-02-27T00:00:00.000Z'],
  ['2026-02-27T10:00+02:00', '2026-02-27T08:00:00.000Z'],
  ['1772150400000', '2026-02-27T00:00:00.000Z'],
] as const) {
  test(`${typed} is ${time}`, (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.parse(now) });
    assert.equal(new Date(readPastTime(typed, '--start')).toISOString(), time);
  });
}

for (const typed of [
  ...['', ' ', '0h', '0d', '24', '24 h', '24H', '1w', '3M', '1y', '1h30m', '+1d', '-1d', '3651d', '999999999d', '١d'],
  ...['tomorrow', 'now', 'today 10:00', 'today+2', 'today+24:00', 'today+02:60', 'today UTC', 'yesterday ago'],
  ...['24h ago', 'Monday', '10:00', '2026-02-30', '2026-02', '1772150400'],
]) {
  test(`"${typed}" is no time in the past`, () => {
    assert.throws(() => readPastTime(typed, '--start'), { code: 'usage' });
  });
}

test('where a time may be in the future, an age or a day in words is still refused', () => {
  for (const typed of ['24h', 'today', 'yesterday']) {
    assert.throws(() => readTime(typed, '--expires'), { code: 'usage' }, typed);
  }
});
