// Positions of targets, as kept in the system store: where a target begins, what a crash may cost, and what happens
// when logs are put back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KmsError } from '../../src/errors.ts';
import { Places, returnPlaces } from '../../src/storage/streamed-positions.ts';
import { prng } from '../support/prng.ts';
import { createSimAppliance, openSimAppliance, type SimAppliance, simSeal } from '../support/sim-appliance.ts';
import { SimFiles } from '../support/sim-files.ts';

const tenant = 'tenant_1';
const target = 'syslog+tls://log.example:6514';

async function opened(): Promise<SimAppliance> {
  const generator = prng(1);
  const seal = simSeal(generator);
  const files = new SimFiles({ prng: generator });
  await createSimAppliance(files, seal, generator);
  const appliance = await openSimAppliance(files, seal, generator);
  for (let n = 0; n < 5; n++) await appliance.write();
  return appliance;
}

const stored = async ({ system }: SimAppliance) => await system.transaction(({ settings }) => settings.ofTargets());

test('a new target begins at the end or at the start, and that is kept at once', async () => {
  const appliance = await opened();
  assert.equal((await Places.open(appliance, target, 'end')).of(tenant), 5);
  assert.deepEqual(await stored(appliance), [
    { name: `activity-to ${target}`, value: '{"version":1,"places":{"tenant_1":5}}' },
  ]);
  await appliance.write();
  assert.equal((await Places.open(appliance, target, 'start')).of(tenant), 5, 'it is known by now');
  assert.equal((await Places.open(appliance, '/other', 'start')).of(tenant), 0);
  await appliance.close();
});

test('what is not saved is not there after the next start; a tenant that is not known begins at its start', async () => {
  const appliance = await opened();
  const places = await Places.open(appliance, target, 'start');
  places.set(tenant, 2);
  assert.ok(places.isChanged);
  assert.equal((await Places.open(appliance, target, 'end')).of(tenant), 0);
  await places.save();
  assert.ok(!places.isChanged);
  const again = await Places.open(appliance, target, 'end');
  assert.deepEqual([again.of(tenant), again.of('tenant_2')], [2, 0]);
  await appliance.close();
});

test('what fails to be saved is saved the next time', async () => {
  const appliance = await opened();
  const places = await Places.open(appliance, target, 'start');
  places.set(tenant, 3);
  await appliance.system.close();
  await assert.rejects(places.save());
  assert.ok(places.isChanged);
  await appliance.tenant.close();
});

test('tenants that are erased are forgotten with the next note', async () => {
  const appliance = await opened();
  const value = '{"version":1,"places":{"tenant_1":2,"tenant_gone":7}}';
  await appliance.system.transaction(({ settings }) => settings.set(`activity-to ${target}`, value));
  const places = await Places.open(appliance, target, 'end');
  places.set(tenant, 3);
  await places.save();
  assert.equal((await stored(appliance))[0]?.value, '{"version":1,"places":{"tenant_1":3}}');
  await appliance.close();
});

test('logs that were put back take the places back to their ends, at every target', async () => {
  const appliance = await opened();
  for (const [name, seq] of [
    ['/one', 5],
    ['/two', 3],
  ] as const) {
    const places = await Places.open(appliance, name, 'start');
    places.set(tenant, seq);
    await places.save();
  }
  const of = async (name: string, id = tenant) => (await Places.open(appliance, name, 'end')).of(id);
  await returnPlaces(appliance.system, new Map([[tenant, 4]]));
  assert.deepEqual([await of('/one'), await of('/two')], [4, 3]);
  await returnPlaces(appliance.system, new Map(), [tenant]);
  assert.deepEqual([await of('/one'), await of('/two')], [0, 0]);
  await appliance.close();
});

test('a note of a newer program is refused, not guessed at', async () => {
  const appliance = await opened();
  for (const value of ['{"version":2,"places":{}}', '{"version":1}', '[]']) {
    await appliance.system.transaction(({ settings }) => settings.set(`activity-to ${target}`, value));
    await assert.rejects(
      Places.open(appliance, target, 'end'),
      (error: unknown) => error instanceof KmsError && error.code === 'refused',
    );
  }
  await appliance.close();
});
