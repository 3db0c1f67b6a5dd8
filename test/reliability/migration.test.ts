// A fault at every step of a newer program's first start, which makes a backup and then migrates both stores: each has
// its old schema or completely its new one, and if one was changed there is a backup from before.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backupFiles, checkDigests, openBackup } from '../../src/backup/read.ts';
import { backupBeforeMigration } from '../../src/backup/write.ts';
import type { SealKeeper } from '../../src/custody/seal-keeper.ts';
import { systemDir, tenantDir } from '../../src/platform/data-dir.ts';
import { storesIn } from '../../src/storage/stores.ts';
import { checkStore } from '../../src/store/check.ts';
import type { Files } from '../../src/store/files.ts';
import { type Migration, systemMigrations, tenantMigrations } from '../../src/store/tables/migrations.ts';
import { reached } from '../support/crash-points.ts';
import { breaking, crashSweep, done, type Fault, mend } from '../support/crash-sweep.ts';
import type { Prng } from '../support/prng.ts';
import {
  createSealedAppliance,
  numbersIn,
  openSealedAppliance,
  openSealKeeper,
  type SealedAppliance,
  tenantName,
} from '../support/sim-appliance.ts';
import { SimFiles } from '../support/sim-files.ts';
import { sqlWasm } from '../support/wasm.ts';

const secret = new Uint8Array(32).fill(1);
const written = 5;

/** Migrations of the next program: a table, a column that is filled in, an index. */
const newer: readonly Migration[] = [
  {
    name: 'next',
    statements: [
      'CREATE TABLE later (seq INTEGER PRIMARY KEY, value TEXT NOT NULL)',
      "INSERT INTO later (value) VALUES ('made'), ('by'), ('migration')",
      'CREATE INDEX later_by_value ON later (value)',
    ],
  },
];
const next = { system: [...systemMigrations, ...newer], tenant: [...tenantMigrations, ...newer] };

async function prepare(generator: Prng): Promise<SimFiles> {
  const files = new SimFiles({ prng: generator });
  await createSealedAppliance(files, secret, generator);
  const appliance = await openSealedAppliance(files, secret, generator);
  while ((await appliance.write()) < written);
  await appliance.close();
  return files;
}

function placeOf(files: SimFiles) {
  return storesIn({ root: '.', files, wasm: sqlWasm }).place;
}

function startNewer(files: SimFiles, generator: Prng): Promise<SealedAppliance> {
  return openSealedAppliance(files, secret, generator, (seal) => ({
    ...next,
    beforeMigration: backupBeforeMigration(
      { files, place: placeOf(files), root: '.', seal, now: () => 3000 },
      undefined,
    ),
  }));
}

/** The schema version of each store; the store must verify. */
async function schemas(files: Files, seal: SealKeeper): Promise<number[]> {
  const found: number[] = [];
  for (const [dir, name, migrations] of [
    [systemDir, systemDir, next.system],
    [tenantDir(tenantName), tenantName, next.tenant],
  ] as const) {
    const keys = seal.keysFor(name);
    const { schema, tables } = await checkStore({ files, dir, keys, wasm: sqlWasm, migrations });
    assert.equal(tables.later, schema === migrations.length ? 3 : undefined, `${dir}: half migrated`);
    found.push(schema);
  }
  return found;
}

async function attempt(base: SimFiles, fault: Fault, generator: Prng): Promise<boolean> {
  const files = breaking(base, fault, generator);
  const work = async (): Promise<void> => {
    const appliance = await startNewer(files, generator);
    await appliance.close();
  };
  const started = await done(files, fault, work());
  const came = mend(files, fault);

  const after = files.restart({ prng: generator });
  const older = [systemMigrations.length, tenantMigrations.length];
  const newest = older.map((version) => version + 1);
  const seal = await openSealKeeper(after, secret, generator);
  const before = await schemas(after, seal);
  if (started) assert.deepEqual(before, newest, 'it was answered and is not there');
  assert.ok(before.every((version, at) => version === older[at] || version === newest[at]));
  if (before.join() !== older.join()) {
    const [name] = (await after.list('.')).filter((each) => each.endsWith('.kms-backup'));
    assert.ok(name, 'a store was changed, and there is no backup of before');
    const backup = await openBackup(after, name);
    await checkDigests(after, backup);
    assert.deepEqual(await schemas(backupFiles(after, backup), seal), older);
  }
  const again = await startNewer(after, generator);
  assert.equal((await numbersIn(again.tenant)).length, written);
  await again.write();
  await again.close();
  assert.deepEqual(await schemas(after, seal), newest);
  return came;
}

test('a fault at every step of a migration', async (context) => {
  reached(context, 'migration', await crashSweep({ file: import.meta.filename, seeds: 1, prepare, attempt }));
});
