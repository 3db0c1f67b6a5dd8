// Backups and shipped directories of every released format restore for ever. KMS_WRITE_FIXTURE=1 writes those of this
// version if they are missing: an appliance with the keyring payroll, its key file, a backup and a shipped directory.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { restoreAppliance } from '../../src/backup/restore-command.ts';
import { verifyBackup } from '../../src/backup/verify.ts';
import { desk } from '../cli/kms.ts';
import { serving } from '../cli/serving.ts';

const base = await mkdtemp(join(tmpdir(), 'kms-compat-'));
after(() => rm(base, { recursive: true, force: true }));

const fixtures = join(import.meta.dirname, '..', 'compat', 'backup-1');

if (process.env.KMS_WRITE_FIXTURE && !existsSync(fixtures)) {
  await using d = await desk();
  await d.json('init --data a --json');
  const server = await serving(d, ['--data', 'a', '--ship-to', 'shipped', '--ship-every', '1s']);
  await d.json('keyring create payroll --data a --json');
  assert.equal((await d.kms('backup create all.kms-backup --data a')).code, 0);
  await server.stop();
  await cp(d.path('shipped'), join(fixtures, 'shipped'), { recursive: true });
  await cp(d.path('all.kms-backup'), join(fixtures, 'backup.kms-backup'));
  await cp(d.path('a.master.key'), join(fixtures, 'master-key.txt'));
}

test('the backup verifies, and it and the shipped directory restore', async () => {
  // A key file must be readable by its owner only, a mode that a checkout does not keep.
  const keyFile = join(base, 'master.key');
  await cp(join(fixtures, 'master-key.txt'), keyFile);
  await chmod(keyFile, 0o600);
  const sources = { keyFile, env: () => undefined };
  const verified = await verifyBackup(join(fixtures, 'backup.kms-backup'), { data: base, keys: sources });
  assert.equal(verified.proof?.stores, 2);
  for (const from of ['backup.kms-backup', 'shipped']) {
    const data = join(base, from.replaceAll('.', '-'));
    await restoreAppliance({ from: join(fixtures, from), data, keys: sources });
    const appliance = await openAppliance({ data });
    const ask = async (path: string) => (await appliance.fetchLocal(new Request(`http://kms.local${path}`))).json();
    const { data: rings } = await ask('/ks/keyrings');
    assert.deepEqual(
      rings.map(({ name }: { name: string }) => name),
      ['payroll'],
    );
    const keys = await ask('/auth/apikey');
    assert.ok(keys.data.length > 0);
    for (const { expiresAt, allowedAddresses, createdAt } of keys.data) {
      assert.deepEqual([expiresAt, allowedAddresses], [null, []]);
      assert.match(createdAt, /^20\d\d-/);
    }
    const used = await ask('/ks/keyrings/payroll/keys?usage=true');
    assert.ok(used.data.length > 0);
    for (const { usage, kem, publicKey } of used.data) {
      assert.deepEqual([kem, publicKey], [rings[0].kem, rings[0].publicKey]);
      assert.deepEqual([usage.lastEncryptAt, usage.lastDecryptAt, usage.days], [null, null, []]);
    }
    await appliance.close();
  }
});
