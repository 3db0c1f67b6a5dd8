// A fault at every step of shipping, on the appliance's disk or on the second one, during writes, a checkpoint, a new
// master key and a rekey of the tenant, and during retention that drops segments while they are shipped and backed up:
// the shipped copy restores, with everything acknowledged before the last successful shipping, and so does each earlier
// state; a failing second disk does not harm the appliance.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { finishRekey, isUnfinished } from '../../src/appliance/rekey.ts';
import { BackupKeeper } from '../../src/backup/keeper.ts';
import { proveStores } from '../../src/backup/prove.ts';
import { backupFiles, checkDigests, openBackup, readSummary, sealOf } from '../../src/backup/read.ts';
import { restoreInto } from '../../src/backup/restore.ts';
import { Shipper } from '../../src/backup/ship.ts';
import { type Point, shippedDirectory, shippedSeal } from '../../src/backup/ship-journal.ts';
import { pointsOf, sourceAt } from '../../src/backup/ship-source.ts';
import { sealFile, sealName, tenantDir } from '../../src/platform/data-dir.ts';
import { openSeal, type Seal } from '../../src/seal/seal.ts';
import { testWorld } from '../support/context.ts';
import { reached } from '../support/crash-points.ts';
import { breaking, copyOf, crashSweep, done, type Fault, faultKinds, mend } from '../support/crash-sweep.ts';
import type { Prng } from '../support/prng.ts';
import {
  createSealedAppliance,
  numbersIn,
  openSealedAppliance,
  type SealedAppliance,
  segmentRecords,
  tenantName,
} from '../support/sim-appliance.ts';
import { SimFiles } from '../support/sim-files.ts';
import { sqlWasm } from '../support/wasm.ts';

const secret = new Uint8Array(32).fill(1);
interface Base {
  readonly files: SimFiles;
  readonly target: SimFiles;
}

function shipperOf(appliance: SealedAppliance, target: SimFiles): Shipper {
  return new Shipper({ ...appliance, epoch: 1, now: () => 2000, window: 1000, target: () => target });
}

/** Actions that the fault interrupts. */
interface Hands {
  readonly appliance: SealedAppliance;
  write(): Promise<void>;
  ship(): Promise<void>;
  /** Makes a backup, which must restore immediately. */
  backUp(): Promise<void>;
  /** Lets retention drop what it may of the records up to `upTo`. */
  drop(upTo: number): Promise<void>;
  /** Whether the step succeeded; failures caused by the fault on the appliance's own disk are tolerated. */
  own(step: Promise<unknown>): Promise<boolean>;
}

interface Plan {
  /** Whether the tenant is rekeyed, after which no earlier state can be read. */
  readonly rekeys: boolean;
  /** Numbers that were written, and shipped, before. */
  readonly before: number;
  readonly steps: readonly ((hands: Hands) => Promise<unknown>)[];
}

const overKeys: Plan = {
  rekeys: true,
  before: 9,
  steps: [
    ({ write, ship }) => write().then(ship),
    ({ appliance, own, ship, write }) => Promise.all([own(appliance.tenant.checkpoint()), ship(), write()]),
    ({ appliance, own, ship }) => own(appliance.seal.change((seal) => seal.withNewMaster())).then(ship),
    ({ appliance, own, ship, write }) => Promise.all([own(rekey(appliance)), ship(), write()]),
  ],
};

/** Starts with three segments of 8. */
const overRetention: Plan = {
  rekeys: false,
  before: 26,
  steps: [
    ({ drop, ship, write }) => Promise.all([drop(10), ship(), write()]),
    ({ drop, ship, write }) => write().then(() => Promise.all([ship(), drop(18)])),
    ({ backUp, drop, ship }) => Promise.all([backUp(), drop(24), ship()]),
  ],
};

async function prepare(generator: Prng, { before }: Plan): Promise<Base> {
  const files = new SimFiles({ prng: generator });
  const target = new SimFiles({ prng: generator });
  await createSealedAppliance(files, secret, generator);
  const appliance = await openSealedAppliance(files, secret, generator);
  while ((await appliance.write()) < before);
  if (before > 2 * segmentRecords) await appliance.tenant.checkpoint();
  await shipperOf(appliance, target).ship();
  await appliance.close();
  return { files, target };
}

async function rekey({ seal, tenant }: SealedAppliance): Promise<void> {
  if (!isUnfinished(seal, tenantName)) await seal.change((current) => current.withNextEpoch(tenantName));
  await finishRekey({ seal, dir: tenantName, store: tenant, resealKeys: async () => {} });
}

function attemptOn(side: keyof Base, { rekeys, before, steps }: Plan) {
  return async (base: Base, fault: Fault, generator: Prng): Promise<boolean> => {
    const broken = breaking(base[side], fault, generator);
    const [files, target] =
      side === 'files' ? [broken, copyOf(base.target, generator)] : [copyOf(base.files, generator), broken];
    let written = before;
    let arrived = before;
    /** The last dropped record: certainly dropped, possibly dropped, and shipped as dropped. */
    const dropped = { surely: 0, atMost: 0, arrived: 0 };

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
        const { surely } = dropped;
        if (files.crashed || !(await done(broken, fault, shipper.ship()))) return;
        arrived = brings;
        dropped.arrived = surely;
      };
      const drop = async (upTo: number): Promise<void> => {
        const may = appliance.tenant.droppable?.(Number.POSITIVE_INFINITY, upTo);
        if (!may || files.crashed) return;
        dropped.atMost = may.seq;
        if (await own(appliance.tenant.dropActivity?.(may.seq) ?? Promise.resolve())) dropped.surely = may.seq;
      };
      const backUp = async (): Promise<void> => {
        const shelf = new SimFiles({ prng: generator });
        const world = testWorld({ now: 2000 }, generator.int(1e6));
        const keeper = new BackupKeeper({ ...appliance, root: '.', world });
        const atLeast = written;
        if (files.crashed || !(await own(shelf.replace('backup', keeper.stream())))) return;
        const { accounts, lacks } = await inBackup(shelf, appliance.seal.current);
        // Only a segment that could not be read at that moment is left out.
        assert.ok(lacks.length <= (side === 'files' && fault.kind === 'error' ? 1 : 0), lacks.join());
        assert.ok(accounts >= atLeast && accounts <= written + 1, `${accounts} in the backup`);
      };
      const hands: Hands = { appliance, write, ship, backUp, drop, own };
      for (const step of steps) if (!broken.crashed) await step(hands);
      mend(broken, fault);
      if (!files.crashed) await appliance.settle();
      // The next shipping makes up for a failed one.
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
    const gone = appliance.tenant.status().activityDropped?.seq ?? 0;
    assert.ok(gone >= dropped.surely && gone <= dropped.atMost, `${gone} were dropped, ${dropped.surely} surely`);
    // Shipping continues from the copy.
    await appliance.write();
    if (rekeys && generator.chance(0.3)) await rekey(appliance);
    if (generator.chance(0.5)) await shipperOf(appliance, there).ship();
    await appliance.close();

    const open = (sealed: Uint8Array) => openSeal(sealed, secret, (length) => generator.bytes(length));
    const found = open(await there.read(sealFile));
    const points = await pointsOf(there, shippedDirectory(found.applianceId, 1), found);
    const bytes = await shippedSeal(there, points);
    const restored = async (upTo: readonly Point[]): Promise<{ count: number; without: number }> => {
      const seal = open(bytes);
      const source = await sourceAt(there, bytes, seal, upTo);
      const place = new SimFiles({ prng: generator });
      const world = testWorld({ now: 3_000_000 }, generator.int(1e6));
      await restoreInto({ root: '/nowhere', files: place, wasm: sqlWasm }, seal, source, world);
      const back = await openSealedAppliance(place, secret, generator);
      const count = (await numbersIn(back.tenant)).length;
      const without = back.tenant.status().activityDropped?.seq ?? 0;
      await back.close();
      return { count, without };
    };
    const { count, without } = await restored(points);
    assert.ok(count >= arrived && count <= numbers + 1, `${arrived} had arrived, ${count} were restored`);
    assert.ok(
      without >= dropped.arrived && without <= gone,
      `${without} are missing in what was shipped, ${dropped.arrived} to ${gone} were dropped`,
    );
    // Earlier shipped states are within the window, whatever was dropped since.
    const first = points.findIndex((_, at) => at > 0 && generator.chance(0.5));
    if (first > 0 && !rekeys) {
      const earlier = await restored(points.slice(0, first));
      assert.ok(earlier.count <= count && earlier.without <= without, `${earlier.count}, without ${earlier.without}`);
    }
    return came;
  };
}

/** Restores a backup on trial; returns what it has, and what it lacks. */
async function inBackup(shelf: SimFiles, opened: Seal): Promise<{ accounts: number; lacks: readonly string[] }> {
  const backup = await openBackup(shelf, 'backup');
  await checkDigests(shelf, backup);
  const seal = opened.openOther(await sealOf(shelf, backup), 'backup');
  const summary = readSummary(backup, seal);
  const within = {
    files: backupFiles(shelf, backup),
    wasm: sqlWasm,
    keysOf: (dir: string) => seal.keysFor(sealName(dir)),
  };
  const { lacks } = await proveStores(within, backup.manifest.stores, summary);
  return { accounts: summary[tenantDir(tenantName)]?.tables.accounts ?? 0, lacks };
}

/** Every step if only one or two matter; otherwise another sixth for each seed. */
const sweeps = [
  { side: 'target', kinds: ['crash'], every: 1 },
  { side: 'target', kinds: ['error', 'full'], every: 6 },
  { side: 'files', kinds: faultKinds, every: 6 },
] as const;

for (const [suite, plan] of [
  ['ship', overKeys],
  ['ship and drop', overRetention],
] as const) {
  test(`a fault at every step of shipping: ${suite}`, async (context) => {
    let points = 0;
    for (const { side, kinds, every } of sweeps) {
      const attempt = attemptOn(side, plan);
      const prepared = (generator: Prng) => prepare(generator, plan);
      points += await crashSweep({ file: import.meta.filename, seeds: 1, kinds, every, prepare: prepared, attempt });
    }
    reached(context, suite, points);
  });
}
