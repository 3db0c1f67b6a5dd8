// The appliance answers the same requests (test/interop/record.ts) as OpenBao did, with the same status and the same
// errors, except for the differences listed here with their reasons.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { testAppliance } from '../support/appliance.ts';
import { askAll, steps, type Told } from './requests.ts';

const recorded: { readonly told: readonly Told[] } = JSON.parse(
  readFileSync(new URL('openbao.json', import.meta.url), 'utf8'),
);

/** Reasons for differences, by the request's number. */
const empty = 'OpenBao tells the ring: the appliance answers nothing, which Ceph wants and all others take';
const differences: Readonly<Record<number, string>> = {
  2: empty,
  3: empty,
  19: 'null is absent, in every field alike',
  22: 'OpenBao ignores the context of a ring that does not derive its keys: it would look bound, and is not',
  23: 'the reason is that of another JSON parser',
  24: 'the reason is that of another JSON parser',
  50: empty,
  54: empty,
  59: empty,
  70: empty,
  75: empty,
  82: empty,
  87: 'a mount may have any name',
  92: 'OpenBao in development mode: its root token is a lease; others get what we answer',
  97: empty,
  102: 'what is expected is told in words of our own',
  103: 'what is expected is told in words of our own',
};

test('OpenBao and the appliance answer the same', async () => {
  const a = await testAppliance();
  const told = await askAll('http://kms.test/v1/', a.root.key, async (request) =>
    a.app.fetch(request, { surface: 'vault' }),
  );
  assert.equal(recorded.told.length, steps.length);
  const wrong: unknown[] = [];
  for (const [n, step] of steps.entries()) {
    const theirs = recorded.told[n] ?? assert.fail();
    const ours = told[n] ?? assert.fail();
    const same =
      JSON.stringify([ours.status, ours.errors, ours.value]) ===
      JSON.stringify([theirs.status, theirs.errors, theirs.value]);
    if (same === (differences[n] === undefined)) continue;
    wrong.push([
      n,
      step.ask,
      JSON.stringify(step.body ?? step.raw),
      [ours.status, ours.errors, ours.value],
      [theirs.status, theirs.errors, theirs.value],
    ]);
  }
  assert.deepEqual(wrong, []);
});
