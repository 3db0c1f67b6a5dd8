// A fault at every step of a restore, from a backup and from a shipped directory: either the new directory has no seal
// yet, and the next restore starts over, or it is whole, with everything in the copy.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BackupKeeper } from '../../src/backup/keeper.ts';
import { openBackup, sourceOf } from '../../src/backup/read.ts';
import { restoreInto } from '../../src/backup/restore.ts';
import type { RestoreSource } from '../../src/backup/restore-source.ts';
import { Shipper } from '../../src/backup/ship.ts';
import { shippedDirectory } from '../../src/backup/ship-journal.ts';
import { pointsOf, sourceAt } from '../../src/backup/ship-source.ts';
import { sealFile } from '../../src/platform/data-dir.ts';
import { currentEpoch } from '../../src/platform/epoch.ts';
import type { Seal } from '../../src/seal/seal.ts';
import { testWorld } from '../support/context.ts';
import { reached } from '../support/crash-points.ts';
import { breaking, crashSweep, done, type Fault, mend } from '../support/crash-sweep.ts';
import type { Prng } from '../support/prng.ts';
import { createSealedAppliance, numbersIn, openSealedAppliance } from '../support/sim-appliance.ts';
import { SimFiles } from '../support/sim-files.ts';
import { sqlWasm } from '../support/wasm.ts';

const secret = new Uint8Array(32).fill(1);
const written = 14;

interface Base {
  readonly seal: Seal;
  readonly sources: readonly RestoreSource[];
}

async function prepare(generator: Prng): Promise<Base> {
  const files = new SimFiles({ prng: generator });
  await createSealedAppliance(files, secret, generator);
  const appliance = await openSealedAppliance(files, secret, generator);
  for (let n = 0; n < 10; n++) await appliance.write();
  await appliance.tenant.checkpoint();
  while ((await appliance.write()) < written);
  const seal = appliance.seal.current;

  const shipped = new SimFiles({ prng: generator });
  const shipping = { ...appliance, epoch: 1, now: () => 2000, window: 1000, target: () => shipped };
  await new Shipper(shipping).ship();
  const world = testWorld({ now: 2000 }, 1);
  await files.replace('made.kms-backup', new BackupKeeper({ ...appliance, root: '.', world }).stream());
  await appliance.close();
  const directory = shippedDirectory(seal.applianceId, 1);
  const sealed = await shipped.read(sealFile);
  return {
    seal,
    sources: [
      await sourceOf(files, await openBackup(files, 'made.kms-backup'), seal),
      await sourceAt(shipped, sealed, seal, await pointsOf(shipped, directory, seal)),
    ],
  };
}

function attemptFrom(which: number) {
  return async ({ seal, sources }: Base, fault: Fault, generator: Prng): Promise<boolean> => {
    const source = sources[which];
    assert.ok(source);
    const files = breaking(new SimFiles({ prng: generator }), fault, generator);
    const world = testWorld({ now: 3_000_000 }, generator.int(1e6));
    const restore = (into: SimFiles) =>
      restoreInto({ root: '/nowhere', files: into, wasm: sqlWasm }, seal, source, world);
    const finished = await done(files, fault, restore(files));
    const came = mend(files, fault);

    const after = files.restart({ prng: generator });
    const sealed = await after.exists(sealFile);
    assert.ok(sealed || !finished, 'it was answered and is not there');
    if (!sealed) await restore(after);
    const appliance = await openSealedAppliance(after, secret, generator);
    assert.equal((await numbersIn(appliance.tenant)).length, written);
    const { items } = await appliance.tenant.activity.search({ action: 'system.restore' }, { limit: 10 });
    assert.equal(items.length, 1);
    assert.ok((await appliance.system.transaction(({ settings }) => currentEpoch(settings))).number > 1);
    await appliance.write();
    await appliance.close();
    return came;
  };
}

test('a fault at every step of a restore', async (context) => {
  let points = 0;
  for (const which of [0, 1]) {
    points += await crashSweep({ file: import.meta.filename, seeds: 1, prepare, attempt: attemptFrom(which) });
  }
  reached(context, 'restore', points);
});
