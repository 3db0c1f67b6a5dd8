// Seeded lives of an appliance that ships to a second disk, with crashes of either side at any step: the shipped copy
// restores at each moment, with everything that the last completed shipping brought, and never with half a transaction.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { restoreInto } from '../../src/backup/restore.ts';
import { Shipper } from '../../src/backup/ship.ts';
import { shippedDirectory } from '../../src/backup/ship-journal.ts';
import { pointsOf, sourceAt } from '../../src/backup/ship-source.ts';
import { sealFile } from '../../src/platform/data-dir.ts';
import { testWorld } from '../support/context.ts';
import { reached } from '../support/crash-points.ts';
import { effort } from '../support/effort.ts';
import { type Prng, prng } from '../support/prng.ts';
import {
  createSimAppliance,
  numbersIn,
  openSimAppliance,
  type SimAppliance,
  simSeal,
} from '../support/sim-appliance.ts';
import { SimFiles } from '../support/sim-files.ts';
import { sqlWasm } from '../support/wasm.ts';

interface Report {
  crashes: number;
  ships: number;
  restores: number;
  earlier: number;
}

const window = 1_000_000;

async function life(seed: number, report: Report): Promise<void> {
  const generator = prng(seed);
  const seal = simSeal(generator);
  const directory = shippedDirectory(seal.applianceId, 1);
  let files = new SimFiles({ prng: generator });
  let target = new SimFiles({ prng: generator });
  await createSimAppliance(files, seal, generator);
  /** Completed shippings: their time, and the highest number that arrived. */
  const arrived: { at: number; number: number }[] = [];
  let now = 1000;
  let highest = 0;
  for (let round = 0; round < 2 + generator.int(2); round++) {
    const sourceDies = generator.chance(0.5);
    const crashAt = 1 + generator.int(120);
    files = files.restart({ prng: generator, ...(sourceDies && { crashAt: crashAt + 40 }) });
    target = target.restart({ prng: generator, ...(!sourceDies && { crashAt }) });
    let appliance: SimAppliance;
    try {
      appliance = await openSimAppliance(files, seal, generator);
    } catch (error) {
      if (!files.crashed) throw error;
      continue;
    }
    highest = Math.max(highest, (await numbersIn(appliance.tenant).catch(() => [])).length);
    const shipper = new Shipper({ ...appliance, epoch: 1, now: () => now, window, target: () => target });
    let written = highest;
    while (!files.crashed && !target.crashed) {
      now += 1 + generator.int(10);
      const work = [
        generator.chance(0.8) &&
          appliance.write().then((number) => {
            written = number;
            highest = Math.max(highest, number);
          }),
        generator.chance(0.1) && appliance.tenant.checkpoint(),
        generator.chance(0.4) &&
          (async () => {
            const before = written;
            await shipper.ship();
            arrived.push({ at: now, number: before });
            report.ships++;
          })(),
      ].map((each) =>
        Promise.resolve(each || undefined).catch((error: unknown) => {
          if (!files.crashed && !target.crashed) throw error;
        }),
      );
      await Promise.all(work);
      if (report.ships > 40_000) break;
    }
    report.crashes++;
    await appliance.close().catch(() => {});
    const last = arrived.at(-1);
    // The disk as it is now, and as a power failure would leave it.
    const copies = [target.restart({ prng: generator })];
    target.crashed = false;
    for (const copy of copies) {
      const number = await restored(copy, directory, seal, generator, report);
      if (last) assert.ok(number >= last.number, `${last.number} had arrived, ${number} were restored`);
      assert.ok(number <= highest + 1, 'more than was ever written');
      target = copy;
    }
    const earlier = last && generator.pick(arrived);
    if (earlier) {
      const number = await restored(target, directory, seal, generator, report, earlier.at);
      assert.ok(number >= earlier.number, `at ${earlier.at} there were ${earlier.number}, ${number} were restored`);
      report.earlier++;
    }
  }
}

/** Restores the shipped copy; returns the highest number in it. */
async function restored(
  files: SimFiles,
  directory: string,
  seal: ReturnType<typeof simSeal>,
  generator: Prng,
  report: Report,
  to = Number.POSITIVE_INFINITY,
): Promise<number> {
  if (!(await files.exists(sealFile))) return 0;
  const bytes = await files.read(sealFile);
  const opened = seal.openOther(bytes, 'the shipped seal');
  const points = (await pointsOf(files, directory, opened)).filter(({ at }) => at <= to);
  if (points.length === 0) return 0;
  const source = await sourceAt(files, bytes, opened, points);
  const place = new SimFiles({ prng: generator });
  const runCheckpoint = () => Promise.reject(new Error('no checkpoint'));
  const stores = { root: '/nowhere', files: place, wasm: sqlWasm, runCheckpoint };
  await restoreInto(stores, opened, source, testWorld({ now: 5_000_000 }, generator.int(1000)));
  report.restores++;
  const back = await openSimAppliance(place, opened, generator);
  try {
    return (await numbersIn(back.tenant)).length;
  } finally {
    await back.close();
  }
}

test('what was shipped restores at each moment, and up to each time', async (context) => {
  const only = process.env.KMS_CRASH_SEED;
  const runs = Number(process.env.KMS_SHIP_RUNS ?? effort(12, 60));
  const from = Number(only ?? process.env.KMS_CRASH_FROM ?? 1);
  const report: Report = { crashes: 0, ships: 0, restores: 0, earlier: 0 };
  for (let seed = from; seed < from + (only === undefined ? runs : 1); seed++) {
    try {
      await life(seed, report);
    } catch (error) {
      const message = error instanceof Error ? error.message : error;
      const again = `KMS_CRASH_SEED=${seed} node --test test/backup/ship-crash.test.ts`;
      throw new Error(`${again} runs it again: ${message}`, { cause: error });
    }
  }
  context.diagnostic(JSON.stringify(report));
  reached(context, 'ship lives', report.crashes);
  if (only === undefined && runs >= 50) {
    assert.ok(report.crashes > runs && report.ships > runs && report.restores > runs && report.earlier > runs / 2);
  }
});
