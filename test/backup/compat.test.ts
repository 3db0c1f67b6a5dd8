// Backups and shipped directories of every released format restore for ever.
import assert from 'node:assert/strict';
import { chmod, cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openAppliance } from '../../src/appliance/appliance.ts';
import { restoreAppliance } from '../../src/backup/restore-command.ts';
import { verifyBackup } from '../../src/backup/verify.ts';

const base = await mkdtemp(join(tmpdir(), 'kms-compat-'));
after(() => rm(base, { recursive: true, force: true }));

for (const version of ['backup-1']) {
  const fixtures = join(import.meta.dirname, '..', 'compat', version);

  test(`${version}: the backup verifies, and it and the shipped directory restore`, async () => {
    // A key file must be readable by its owner only, a mode that a checkout does not keep.
    const keyFile = join(base, `${version}.key`);
    await cp(join(fixtures, 'master-key.txt'), keyFile);
    await chmod(keyFile, 0o600);
    const sources = { keyFile, env: () => undefined };
    const verified = await verifyBackup(join(fixtures, 'backup.kms-backup'), { data: base, keys: sources });
    assert.equal(verified.proof?.stores, 2);
    for (const from of ['backup.kms-backup', 'shipped']) {
      const data = join(base, `${version}-${from}`);
      await restoreAppliance({ from: join(fixtures, from), data, keys: sources });
      const started = Date.now();
      const appliance = await openAppliance({ data });
      const answer = await appliance.fetchLocal(new Request('http://kms.local/ks/keyrings'));
      const { data: rings } = await answer.json();
      assert.deepEqual(
        rings.map(({ name }: { name: string }) => name),
        ['payroll'],
      );
      // Keys from older programs get the defaults of newer properties.
      const keys = await (await appliance.fetchLocal(new Request('http://kms.local/auth/apikey'))).json();
      assert.ok(keys.data.length > 0);
      for (const { name, expiresAt, allowedAddresses, createdBy, lastUsedAt, createdAt } of keys.data) {
        assert.deepEqual([name, expiresAt, allowedAddresses, createdBy, lastUsedAt], ['', null, [], null, null]);
        assert.match(createdAt, /^20\d\d-/);
      }
      // Unused only since this program started: earlier use was not counted.
      const used = await (
        await appliance.fetchLocal(new Request('http://kms.local/ks/keyrings/payroll/keys?usage=true'))
      ).json();
      assert.ok(used.data.length > 0);
      for (const { usage, kem, publicKey } of used.data) {
        // Rings had exactly one pair then, of X25519.
        assert.deepEqual([kem, publicKey], ['x25519', rings[0].publicKey]);
        assert.ok(usage.since === null || usage.since >= started, usage.since);
        assert.deepEqual([usage.lastEncryptAt, usage.lastDecryptAt, usage.days], [null, null, []]);
      }
      await appliance.close();
    }
  });
}
