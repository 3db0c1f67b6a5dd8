// The appliance answers the same requests (test/interop/record.ts) as OpenBao did, with the same status, errors and
// values, except where a step says why not; and with all the fields that OpenBao has.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { testAppliance } from '../support/appliance.ts';
import { askAll, steps, type Told } from './requests.ts';

const recorded: { readonly told: readonly Told[] } = JSON.parse(
  readFileSync(new URL('openbao.json', import.meta.url), 'utf8'),
);

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
    const { data = [] } = ours;
    const isWhole = (theirs.data ?? []).every((name) => data.includes(name));
    const same =
      isWhole &&
      JSON.stringify([ours.status, ours.errors, ours.value]) ===
        JSON.stringify([theirs.status, theirs.errors, theirs.value]);
    if (same === (step.differs === undefined)) continue;
    wrong.push([
      n,
      step.ask,
      JSON.stringify(step.body ?? step.raw),
      JSON.stringify([ours.status, ours.errors, ours.value]),
      JSON.stringify([theirs.status, theirs.errors, theirs.value]),
      (theirs.data ?? []).filter((name) => !data.includes(name)),
    ]);
  }
  assert.deepEqual(wrong, []);
  // OpenBao answers faults of its clients so, which repeat the request then.
  assert.ok(told.every(({ status }) => status < 500));
});
