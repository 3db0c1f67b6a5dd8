// Contents of a shipped directory: only files that the window needs, all of them authenticated.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Shipper } from '../../src/backup/ship.ts';
import { shippedDirectory } from '../../src/backup/ship-journal.ts';
import { pointsOf } from '../../src/backup/ship-source.ts';
import { prng } from '../support/prng.ts';
import { createSimAppliance, openSimAppliance, simSeal } from '../support/sim-appliance.ts';
import { SimFiles } from '../support/sim-files.ts';

const store = 'tenants/00112233445566aa';

async function shipping(window: number) {
  const generator = prng(1);
  const seal = simSeal(generator);
  const files = new SimFiles({ prng: generator });
  const target = new SimFiles({ prng: generator });
  await createSimAppliance(files, seal, generator);
  const appliance = await openSimAppliance(files, seal, generator);
  const clock = { now: 1000 };
  const shipper = new Shipper({ ...appliance, epoch: 1, now: () => clock.now, window, target: () => target });
  const directory = shippedDirectory(seal.applianceId, 1);
  const points = () => pointsOf(target, directory, seal);
  return { appliance, shipper, target, clock, points, files };
}

async function busy(
  { appliance, shipper, clock }: Awaited<ReturnType<typeof shipping>>,
  rounds: number,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < 10; i++) await appliance.write();
    await shipper.ship();
    await appliance.tenant.checkpoint();
    clock.now += 1000;
    await shipper.ship();
  }
}

test('beyond the window only what the newest state needs stays', async () => {
  const place = await shipping(1);
  await busy(place, 12);
  const names = await place.target.list(store);
  const kinds = (kind: string) => names.filter((name) => name.startsWith(kind)).length;
  assert.ok(kinds('snapshot') <= 2 && kinds('log') <= 3, names.join());
  assert.equal(kinds('activity'), 15, 'segments of the activity log are part of the state');
  assert.ok((await place.points()).length <= 3);
  await place.appliance.close();
});

test('within the window every state stays', async () => {
  const place = await shipping(1e9);
  await busy(place, 12);
  const names = await place.target.list(store);
  assert.equal(names.filter((name) => name.startsWith('snapshot')).length, 13);
  assert.equal((await place.points()).length, 24);
  await place.appliance.close();
});

test('where nothing happened nothing is shipped, and nothing is read', async () => {
  const place = await shipping(1e9);
  assert.equal(await place.shipper.ship(), true);
  const { steps } = place.target;
  const { steps: read } = place.files;
  for (let i = 0; i < 10; i++) assert.equal(await place.shipper.ship(), false);
  assert.deepEqual([place.target.steps, place.files.steps], [steps, read]);
  await place.appliance.close();
});

test('a line of the journal that was changed, dropped or moved is found; a torn end is not', async () => {
  const place = await shipping(1e9);
  await busy(place, 3);
  const journal = Buffer.from(await place.target.read('points.kms')).toString();
  const lines = journal.trimEnd().split('\n');
  assert.equal(lines.length, 6);
  const read = async (text: string): Promise<number> => {
    await place.target.replace('points.kms', new Uint8Array(Buffer.from(text)));
    return (await place.points()).length;
  };
  assert.equal(await read(journal), 6);
  assert.equal(await read(journal.slice(0, -1)), 5, 'a line without its end');
  assert.equal(await read(journal.slice(0, -30)), 5);
  const [first = '', second = '', third = '', ...rest] = lines;
  const forged = [
    [first, third, ...rest],
    [second, third, ...rest],
    [second, first, third, ...rest],
    [first, second.replace('"offset":', '"offset":1'), third, ...rest],
    [first, first, second, third, ...rest],
  ];
  for (const text of forged)
    await assert.rejects(read(`${text.join('\n')}\n`), /points\.kms: line [12] does not verify/);
  await place.appliance.close();
});
