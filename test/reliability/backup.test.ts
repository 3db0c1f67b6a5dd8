// A fault at every step of a backup that is made while a tenant writes and a checkpoint runs: there is no backup or a
// whole one, which restores to a state not older than its request, and the appliance itself has lost nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BackupKeeper } from '../../src/backup/keeper.ts';
import { proveStores } from '../../src/backup/prove.ts';
import { backupFiles, checkDigests, openBackup, readSummary, sealOf } from '../../src/backup/read.ts';
import { toHex } from '../../src/crypto/bytes.ts';
import { sealName, tenantDir } from '../../src/platform/data-dir.ts';
import { testWorld } from '../support/context.ts';
import { reached } from '../support/crash-points.ts';
import { breaking, crashSweep, done, type Fault, mend } from '../support/crash-sweep.ts';
import type { Prng } from '../support/prng.ts';
import { createSealedAppliance, numbersIn, openSealedAppliance, tenantName } from '../support/sim-appliance.ts';
import { SimFiles } from '../support/sim-files.ts';
import { sqlWasm } from '../support/wasm.ts';

const secret = new Uint8Array(32).fill(1);
const name = 'made.kms-backup';

async function prepare(generator: Prng): Promise<SimFiles> {
  const files = new SimFiles({ prng: generator });
  await createSealedAppliance(files, secret, generator);
  const appliance = await openSealedAppliance(files, secret, generator);
  for (let n = 0; n < 10; n++) await appliance.write();
  await appliance.tenant.checkpoint();
  for (let n = 0; n < 3; n++) await appliance.write();
  await appliance.close();
  return files;
}

async function attempt(base: SimFiles, fault: Fault, generator: Prng): Promise<boolean> {
  const files = breaking(base, fault, generator);
  let written = 13;
  /** The last number acknowledged before the request of a successful backup. */
  let kept: number | undefined;

  const work = async (): Promise<void> => {
    const appliance = await openSealedAppliance(files, secret, generator);
    const keeper = new BackupKeeper({ ...appliance, root: '.', world: testWorld({ now: 2000 }, generator.int(1e6)) });
    const write = async (): Promise<void> => {
      if (!files.crashed && (await done(files, fault, appliance.write()))) written++;
    };
    await write();
    for (let tries = 0; tries < 2 && kept === undefined && !files.crashed; tries++) {
      if (tries > 0) {
        mend(files, fault);
        await appliance.settle();
      }
      const before = written;
      const [made] = await Promise.all([
        done(files, fault, files.replace(name, keeper.stream())),
        write().then(write),
        done(files, fault, appliance.tenant.checkpoint()),
      ]);
      if (made) kept = before;
    }
    if (!files.crashed) assert.notEqual(kept, undefined, 'the second try makes it');
    await appliance.close();
  };
  await done(files, fault, work());
  const came = mend(files, fault);

  const after = files.restart({ prng: generator });
  const appliance = await openSealedAppliance(after, secret, generator);
  const numbers = (await numbersIn(appliance.tenant)).length;
  assert.ok(numbers === written || (files.crashed && numbers === written + 1), `${numbers}, ${written} were answered`);
  if (kept !== undefined || (await after.exists(name))) {
    const backup = await openBackup(after, name);
    await checkDigests(after, backup);
    const seal = appliance.seal.current.openOther(await sealOf(after, backup), name);
    const summary = readSummary(backup, seal);
    const keysOf = (dir: string) => seal.keysFor(sealName(dir));
    const within = backupFiles(after, backup);
    const proof = await proveStores({ files: within, wasm: sqlWasm, keysOf }, backup.manifest.stores, summary);
    assert.equal(toHex(backup.header.subarray(12, 28)), seal.applianceId);
    const { tables, activity } = summary[tenantDir(tenantName)] ?? {};
    assert.equal(tables?.accounts, activity?.seq, 'rows and records of one commit');
    assert.ok(proof.activities >= (kept ?? 13) && proof.activities <= numbers, `${proof.activities} in the backup`);
  }
  await appliance.close();
  return came;
}

test('a fault at every step of a backup', async (context) => {
  reached(context, 'backup', await crashSweep({ file: import.meta.filename, seeds: 1, prepare, attempt }));
});
