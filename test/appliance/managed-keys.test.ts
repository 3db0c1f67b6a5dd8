// Keys of managed keys through everything that moves or reseals them: rekeys, new master keys, backups, to a database
// and back, nodes of a shared store; and a frozen appliance of the first program that had them. Everything made with
// them opens.
import assert from 'node:assert/strict';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { restoreAppliance } from '../../src/backup/restore-command.ts';
import { moveToDatabase, moveToDirectory } from '../../src/cluster/move.ts';
import { decryptWithKey, encryptWithKey } from '../../src/core/key-operations.ts';
import { resealManagedKeys } from '../../src/core/key-versions.ts';
import { createManagedKey, rotateManagedKey } from '../../src/core/managed-keys.ts';
import { systemWorld } from '../../src/platform/environment.ts';
import type { StoreSource } from '../../src/platform/store-url.ts';
import { tenantTables } from '../../src/store/tables/databases.ts';
import { tenantMigrations } from '../../src/store/tables/migrations.ts';
import { testTenant } from '../support/context.ts';
import { Postgres, postgresPrograms } from '../support/postgres.ts';
import { openShared, sharedOptions, simShared } from '../support/shared-store.ts';
import { SimEngine } from '../support/sim-engine.ts';
import { opensAll, type TransitSample, transitSample } from '../support/transit-sample.ts';
import { asking, backupOf, type Place, place } from './tenant-appliance.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-transit-keys-'));
const programs = postgresPrograms();
const postgres = programs === undefined ? undefined : new Postgres(programs);
after(() => {
  postgres?.end();
  rmSync(base, { recursive: true, force: true });
});

type Ask = Place['local'];

/** Opens an appliance, runs `work`, and closes it again. `at` sets its clock. */
async function whileOpen(
  options: { readonly data: string; readonly keyFile?: string; readonly store?: StoreSource; readonly at?: number },
  work: (ask: Ask) => Promise<void>,
): Promise<void> {
  const { at, ...rest } = options;
  const appliance = await openAppliance({
    ...rest,
    ...(at !== undefined && { world: { ...systemWorld(), now: () => at } }),
  });
  try {
    await work(asking(appliance));
  } finally {
    await appliance.close();
  }
}

test('new keys of tenant and appliance, a backup of all, and a database and back', async () => {
  await using p = await place();
  const sample = await transitSample(p.local);
  for (let round = 0; round < 2; round++) {
    assert.equal((await p.local('POST', '/local/tenants/default/rekey', {})).status, 200);
    await opensAll(p.local, sample);
    assert.equal((await p.local('POST', '/local/master/rotate', {})).status, 200);
    await opensAll(p.local, sample);
    await p.reopen();
    await opensAll(p.local, sample);
  }
  const { keyFile } = p.made;
  const file = join(base, 'all.kms-backup');
  await backupOf(p, file);
  const restored = join(base, 'restored');
  const sources = { keyFile, env: () => undefined };
  await restoreAppliance({ from: file, data: restored, keys: sources });
  await whileOpen({ data: restored }, (ask) => opensAll(ask, sample));
  if (!postgres) return;
  const store: StoreSource = { url: postgres.newDatabase(), isListed: false, env: () => undefined };
  const from = { data: restored, keys: sources };
  await moveToDatabase({ ...from, store });
  await whileOpen({ data: join(base, 'node'), keyFile, store }, async (ask) => {
    await opensAll(ask, sample);
    assert.equal((await ask('POST', '/local/tenants/default/rekey', {})).status, 200);
    await opensAll(ask, sample);
  });
  const back = join(base, 'back');
  await moveToDirectory({ data: join(base, 'node'), keys: sources, store }, back);
  await whileOpen({ data: back, keyFile }, (ask) => opensAll(ask, sample));
});

test('on nodes of a shared store: made on one, used on another, sealed again under a new key by either', async () => {
  const { database, generator } = await simShared();
  const tables = { migrations: tenantMigrations, tables: tenantTables };
  const open = () => openShared({ ...sharedOptions(new SimEngine(database), generator), ...tables });
  const [one, other] = [await open(), await open()];
  const a = await testTenant({ store: one, seed: 1 });
  const b = await testTenant({ store: other, seed: 1 });
  await a.call(createManagedKey, { name: 'unseal' });
  const items = [{ plaintext: 'aGVsbG8=' }];
  const first = await b.call(encryptWithKey, { key: 'unseal', items });
  await b.call(rotateManagedKey, { key: 'unseal' });
  const second = await a.call(encryptWithKey, { key: 'unseal', items });
  const made = [...first.items, ...second.items];
  assert.deepEqual(
    made.map(({ keyVersion }) => keyVersion),
    [1, 2],
  );
  const opened = [...items, ...items];
  for (const { call } of [a, b])
    assert.deepEqual((await call(decryptWithKey, { key: 'unseal', items: made })).items, opened);
  // The two nodes with the tenant's next key, and then with that alone.
  const both = await testTenant({ store: one, epochs: [1, 2] });
  const { keys } = await both.run(async ({ tenant }) => tenant);
  await resealManagedKeys(one, keys, both.world.random);
  for (const store of [one, other]) {
    const next = await testTenant({ store, epochs: [2] });
    assert.deepEqual((await next.call(decryptWithKey, { key: 'unseal', items: made })).items, opened);
    await assert.rejects(
      (await testTenant({ store, epochs: [1] })).call(decryptWithKey, { key: 'unseal', items: made }),
    );
  }
  for (const store of [one, other]) await store.close();
});

// `test/compat/transit-1` is a backup of an appliance with all kinds of managed keys, its master key, and the results.
// KMS_WRITE_FIXTURE=1 writes it if it is missing.
const fixture = join(import.meta.dirname, '../compat/transit-1');
if (process.env.KMS_WRITE_FIXTURE && !existsSync(fixture)) {
  mkdirSync(fixture);
  await using p = await place();
  const sample = await transitSample(p.local);
  assert.equal((await p.local('POST', '/local/tenants/default/rekey', {})).status, 200);
  await backupOf(p, join(fixture, 'backup.kms-backup'));
  cpSync(p.made.keyFile, join(fixture, 'master-key.txt'));
  writeFileSync(join(fixture, 'made.json'), `${JSON.stringify({ at: Date.now(), ...sample }, null, 1)}\n`);
}

test('transit-1: what the first program with managed keys made opens for ever', async () => {
  const sample: TransitSample & { at: number } = JSON.parse(readFileSync(join(fixture, 'made.json'), 'utf8'));
  const keyFile = join(base, 'compat.key');
  cpSync(join(fixture, 'master-key.txt'), keyFile);
  chmodSync(keyFile, 0o600);
  const data = join(base, 'compat');
  await restoreAppliance({ from: join(fixture, 'backup.kms-backup'), data, keys: { keyFile, env: () => undefined } });
  // While the deleted ring can still be restored.
  await whileOpen({ data, at: sample.at + 3_600_000 }, (ask) => opensAll(ask, sample));
  await whileOpen({ data, at: sample.at + 31 * 86_400_000 }, async (ask) => {
    assert.equal((await ask('POST', `/managed-keys/${sample.deletedId}/restore`, {})).status, 404);
    for (const { ring, body } of sample.held.filter(({ body }) => body.items)) {
      assert.equal((await ask('POST', `/managed-keys/${ring}/decrypt`, body)).status, 200);
    }
  });
});
