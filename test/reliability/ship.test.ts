// A fault at every step of shipping, on the appliance's disk or on the second one, over writes, a checkpoint, a new
// master key and new keys of the tenant: what arrived restores, with all that was answered before the last shipping
// that went well, and a second disk that fails costs the appliance nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { restoreInto } from '../../src/appliance/backup/restore.ts';
import { Shipper } from '../../src/appliance/backup/ship.ts';
import { shippedDirectory, shippedSeal } from '../../src/appliance/backup/ship-journal.ts';
import { pointsOf, sourceAt } from '../../src/appliance/backup/ship-source.ts';
import { sealFile } from '../../src/appliance/data-dir.ts';
import { finishRekey, isUnfinished } from '../../src/appliance/rekey.ts';
import { openSeal } from '../../src/seal/seal.ts';
import { testWorld } from '../support/context.ts';
import { reached } from '../support/crash-points.ts';
import { breaking, copyOf, crashSweep, done, type Fault, faultKinds, mend } from '../support/crash-sweep.ts';
import type { Prng } from '../support/prng.ts';
import {
  createSealedAppliance,
  numbersIn,
  openSealedAppliance,
  type SealedAppliance,
  tenantName,
} from '../support/sim-appliance.ts';
import { SimFiles } from '../support/sim-files.ts';
import { sqlWasm } from '../support/wasm.ts';

const secret = new Uint8Array(32).fill(1);
const before = 9;

interface Base {
  readonly files: SimFiles;
  readonly target: SimFiles;
}

function shipperOf(appliance: SealedAppliance, target: SimFiles): Shipper {
  return new Shipper({ ...appliance, epoch: 1, now: () => 2000, window: 1000, target: () => target });
}

async function prepare(generator: Prng): Promise<Base> {
  const files = new SimFiles({ prng: generator });
  const target = new SimFiles({ prng: generator });
  await createSealedAppliance(files, secret, generator);
  const appliance = await openSealedAppliance(files, secret, generator);
  while ((await appliance.write()) < before);
  await shipperOf(appliance, target).ship();
  await appliance.close();
  return { files, target };
}

async function rekey({ seal, tenant }: SealedAppliance): Promise<void> {
  if (!isUnfinished(seal, tenantName)) await seal.change((current) => current.withNextEpoch(tenantName));
  await finishRekey({ seal, dir: tenantName, store: tenant });
}

function attemptOn(side: keyof Base) {
  return async (base: Base, fault: Fault, generator: Prng): Promise<boolean> => {
    const broken = breaking(base[side], fault, generator);
    const [files, target] =
      side === 'files' ? [broken, copyOf(base.target, generator)] : [copyOf(base.files, generator), broken];
    let written = before;
    let arrived = before;

    const work = async (): Promise<void> => {
      const appliance = await openSealedAppliance(files, secret, generator);
      const shipper = shipperOf(appliance, target);
      const own = (step: Promise<unknown>): Promise<boolean> =>
        side === 'files' ? done(files, fault, step) : step.then(() => true);
      const write = async (): Promise<void> => {
        if (!files.crashed && (await own(appliance.write()))) written++;
      };
      const ship = async (): Promise<void> => {
        const brings = written;
        if (!files.crashed && (await done(broken, fault, shipper.ship()))) arrived = brings;
      };
      const steps: readonly (() => Promise<unknown>)[] = [
        () => write().then(ship),
        () => Promise.all([own(appliance.tenant.checkpoint()), ship(), write()]),
        () => own(appliance.seal.change((seal) => seal.withNewMaster())).then(ship),
        () => Promise.all([own(rekey(appliance)), ship(), write()]),
      ];
      for (const step of steps) if (!broken.crashed) await step();
      mend(broken, fault);
      if (!files.crashed) await appliance.settle();
      // The next one does what one that failed did not.
      if (!broken.crashed) await ship();
      if (!broken.crashed) assert.equal(arrived, written);
      await appliance.close();
    };
    await done(broken, fault, work());
    const came = mend(broken, fault);

    const after = files.restart({ prng: generator });
    const there = target.restart({ prng: generator });
    const appliance = await openSealedAppliance(after, secret, generator);
    const numbers = (await numbersIn(appliance.tenant)).length;
    assert.ok(
      numbers === written || (files.crashed && numbers === written + 1),
      `${numbers}, ${written} were answered`,
    );
    // Shipping goes on from what is there.
    await appliance.write();
    if (generator.chance(0.3)) await rekey(appliance);
    if (generator.chance(0.5)) await shipperOf(appliance, there).ship();
    await appliance.close();

    const open = (sealed: Uint8Array) => openSeal(sealed, secret, (length) => generator.bytes(length));
    const found = open(await there.read(sealFile));
    const points = await pointsOf(there, shippedDirectory(found.applianceId, 1), found);
    const bytes = await shippedSeal(there, points);
    const seal = open(bytes);
    const source = await sourceAt(there, bytes, seal, points);
    const place = new SimFiles({ prng: generator });
    const world = testWorld({ now: 3_000_000 }, generator.int(1e6));
    await restoreInto({ root: '/nowhere', files: place, wasm: sqlWasm }, seal, source, world);
    const back = await openSealedAppliance(place, secret, generator);
    const restored = (await numbersIn(back.tenant)).length;
    assert.ok(restored >= arrived && restored <= numbers + 1, `${arrived} had arrived, ${restored} were restored`);
    await back.close();
    return came;
  };
}

/** Where a step or two are what matters, every step; elsewhere another sixth for each seed. */
const sweeps = [
  { side: 'target', kinds: ['crash'], every: 1 },
  { side: 'target', kinds: ['error', 'full'], every: 6 },
  { side: 'files', kinds: faultKinds, every: 6 },
] as const;

test('a fault at every step of shipping', async (context) => {
  let points = 0;
  for (const { side, kinds, every } of sweeps) {
    const attempt = attemptOn(side);
    points += await crashSweep({ file: import.meta.filename, seeds: 1, kinds, every, prepare, attempt });
  }
  reached(context, 'ship', points);
});
