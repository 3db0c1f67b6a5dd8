// A fault at every step of writing the witness, between writes and checkpoints of both stores: whatever a power failure
// loses, a start never takes the data for an older copy, and the witness still detects one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemDir } from '../../src/platform/data-dir.ts';
import { readStores } from '../../src/storage/read-stores.ts';
import { RollbackGuard } from '../../src/storage/rollback-guard.ts';
import { storesIn } from '../../src/storage/stores.ts';
import { reached } from '../support/crash-points.ts';
import { breaking, copyOf, crashSweep, done, type Fault, faultKinds, mend } from '../support/crash-sweep.ts';
import type { Prng } from '../support/prng.ts';
import {
  createSealedAppliance,
  numbersIn,
  openSealedAppliance,
  openSealKeeper,
  type SealedAppliance,
} from '../support/sim-appliance.ts';
import { SimFiles } from '../support/sim-files.ts';
import { sqlWasm } from '../support/wasm.ts';

const secret = new Uint8Array(32).fill(1);

/** Reads and compares as a start does; throws if that would refuse. */
async function start(files: SimFiles, generator: Prng) {
  const seal = await openSealKeeper(files, secret, generator);
  const read = await readStores(storesIn({ root: '/nowhere', files, wasm: sqlWasm }), seal);
  await read.discard();
  return read;
}

type Known = Pick<Awaited<ReturnType<typeof start>>, 'marks' | 'rollbackNotes' | 'accepted'>;

function witnessOf({ files, seal, system, tenants }: SealedAppliance, known: Known, generator: Prng): RollbackGuard {
  const random = (length: number): Uint8Array => generator.bytes(length);
  return new RollbackGuard({ files, keys: seal.keysFor(systemDir), system, tenants, now: () => 2000, random }, known);
}

/** With or without an earlier rollbackNotes: the first one takes more steps. */
async function prepare(generator: Prng, noted: boolean): Promise<SimFiles> {
  const files = new SimFiles({ prng: generator });
  await createSealedAppliance(files, secret, generator);
  if (!noted) return files;
  const appliance = await openSealedAppliance(files, secret, generator);
  await appliance.write();
  await witnessOf(appliance, await start(files, generator), generator).note();
  await appliance.close();
  return files;
}

async function attempt(base: SimFiles, fault: Fault, generator: Prng): Promise<boolean> {
  const known = await start(copyOf(base, generator), generator);
  const files = breaking(base, fault, generator);
  let written = 0;
  const work = async (): Promise<void> => {
    const appliance = await openSealedAppliance(files, secret, generator);
    written = (await numbersIn(appliance.tenant)).length;
    const witness = witnessOf(appliance, known, generator);
    const write = async (): Promise<void> => {
      if (await done(files, fault, appliance.write())) written++;
    };
    const step = (run: Promise<unknown>): Promise<boolean> => done(files, fault, run);
    await Promise.all([write(), step(witness.note())]);
    await Promise.all([step(witness.note()), write(), step(appliance.tenant.checkpoint())]);
    await write();
    await Promise.all([step(appliance.system.checkpoint()), step(witness.note())]);
    if (!files.crashed) {
      mend(files, fault);
      await appliance.settle();
      await Promise.all([write(), step(witness.note())]);
    }
    await appliance.tenant.close();
    await step(witness.note());
    await appliance.close();
  };
  await done(files, fault, work());
  const came = mend(files, fault);

  // Twice: the first start's witness must not mislead the second.
  let after = files.restart({ prng: generator });
  for (const more of [0, 1]) {
    const found = await start(after, generator);
    const appliance = await openSealedAppliance(after, secret, generator);
    const numbers = await numbersIn(appliance.tenant);
    assert.ok(numbers.length >= written + more, 'what was answered is there');
    await appliance.write();
    await witnessOf(appliance, found, generator).note();
    await appliance.close();
    after = after.restart({ prng: generator });
  }
  return came;
}

test('a fault at every step of what is noted of the stores', async (context) => {
  let points = 0;
  for (const noted of [false, true]) {
    const kinds = noted ? (['crash'] as const) : faultKinds;
    const sweep = { file: import.meta.filename, seeds: 1, kinds, attempt };
    points += await crashSweep({ ...sweep, prepare: (generator) => prepare(generator, noted) });
  }
  reached(context, 'witness', points);
});
