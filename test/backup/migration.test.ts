// Data of an older program are backed up before they are migrated; data of a newer one are refused with a line that
// says so.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import type { ApplianceOptions } from '../../src/appliance/config.ts';
import { initAppliance } from '../../src/appliance/init.ts';
import { restoreAppliance } from '../../src/backup/restore-command.ts';
import { verifyBackup } from '../../src/backup/verify.ts';
import { systemDir } from '../../src/platform/data-dir.ts';
import { nodeFiles } from '../../src/platform/node-files.ts';
import { type Migration, systemMigrations } from '../../src/store/tables/migrations.ts';

const base = await mkdtemp(join(tmpdir(), 'kms-migration-'));
after(() => rm(base, { recursive: true, force: true }));

/** A migration of the system store in the next program. */
const later: Migration = { name: 'later', statements: ['CREATE TABLE later (x)'] };

/** Starts the appliance as the next program would, with one more migration of the system store. */
async function startNext(options: ApplianceOptions): ReturnType<typeof openAppliance> {
  // Cast: the tested program's list of migrations, in this process.
  const steps = systemMigrations as Migration[];
  steps.push(later);
  return openAppliance(options).finally(() => steps.pop());
}

async function made(name: string): Promise<string> {
  const data = join(base, name);
  await initAppliance({ data });
  return data;
}

const backupsIn = async (data: string): Promise<string[]> =>
  (await readdir(data)).filter((name) => name.startsWith('before-migration-'));

test('the first start of a newer program makes a backup first, and no later start does', async () => {
  const data = await made('older');
  assert.deepEqual(await backupsIn(data), []);
  for (let start = 0; start < 2; start++) {
    const appliance = await startNext({ data });
    await appliance.close();
    assert.equal((await backupsIn(data)).length, 1);
  }
  const [name = ''] = await backupsIn(data);
  const keys = { keys: { env: () => undefined } };
  const verified = await verifyBackup(join(data, name), { data, ...keys });
  assert.equal(verified.proof?.stores, 2);
  const keyFile = `${data}.master.key`;
  const into = join(base, 'back');
  const restored = await restoreAppliance({
    from: join(data, name),
    data: into,
    keys: { keyFile, env: () => undefined },
  });
  assert.equal(restored.madeAt, verified.manifest.createdAt);
  const appliance = await openAppliance({ data: into });
  assert.equal((await appliance.status()).tenants.length, 1);
  await appliance.close();
});

test('without room for the backup nothing is changed', async () => {
  const data = await made('full');
  const before = await readdir(join(data, systemDir));
  // Puts a directory where the file's draft would go.
  const clock = Date.UTC(2026, 0, 2, 3, 4, 5);
  const world = {
    now: () => clock,
    elapsed: () => 0,
    random: (length: number) => new Uint8Array(length),
    newId: () => 'x',
  };
  await nodeFiles(data).makeDir('before-migration-20260102T030405Z.kms-backup.tmp');
  await assert.rejects(
    startNext({ data, world }),
    /the backup before the migration could not be made; nothing was changed/,
  );
  assert.deepEqual(await readdir(join(data, systemDir)), before);
});

test('a newer schema, snapshot, log and seal are refused', async () => {
  const newer = await made('newer');
  await (await startNext({ data: newer })).close();
  const known = systemMigrations.length;
  const wrong = new RegExp(`schema version ${known + 1}, this program knows versions up to ${known}$`);
  await assert.rejects(openAppliance({ data: newer }), { message: wrong });
  for (const [kind, place] of [
    ['snapshot', 9],
    ['log', 9],
  ] as const) {
    const data = join(base, kind);
    await initAppliance({ data });
    const file = (await readdir(join(data, systemDir))).find((name) => name.startsWith(kind)) ?? '';
    const bytes = await readFile(join(data, systemDir, file));
    bytes[place] = 2;
    await writeFile(join(data, systemDir, file), bytes);
    await assert.rejects(openAppliance({ data }), /format version 2, this program reads 1: .*written by a newer one/);
  }
  const data = join(base, 'seal');
  await initAppliance({ data });
  const seal = await readFile(join(data, 'kms.seal'), 'utf8');
  await writeFile(join(data, 'kms.seal'), seal.replace('"version": 1', '"version": 9'));
  await assert.rejects(openAppliance({ data }), /expected seal version 1, found 9/);
});
