// The suites that crash the simulated disk promise ten thousand crash points in total; each suite checks its own
// number.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { promised } from '../support/crash-points.ts';

test('ten thousand crash points in each run of the gate', (context) => {
  const sum = Object.values(promised).reduce((all, points) => all + points, 0);
  context.diagnostic(`at least ${sum} crash points: ${JSON.stringify(promised)}`);
  assert.ok(sum >= 10_000, `${sum}`);
});
