// Key pairs for clients of Tang through everything that moves or reseals them: rekeys, new master keys, backups, to a
// database and back; and a frozen appliance that had several. Everything bound to any of them is recovered.
import assert from 'node:assert/strict';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { OpenAppliance } from '../../src/appliance/appliance.ts';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { restoreAppliance } from '../../src/backup/restore-command.ts';
import { moveToDatabase, moveToDirectory } from '../../src/cluster/move.ts';
import { addressSet } from '../../src/model/addresses.ts';
import type { StoreSource } from '../../src/platform/store-url.ts';
import { Postgres, postgresPrograms } from '../support/postgres.ts';
import { keptTangPairs, recoversAll, type TangFetch, type TangSample, tangSample } from '../support/tang.ts';
import { asking, backupOf, type Place, place } from './tenant-appliance.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-tang-pairs-'));
const programs = postgresPrograms();
const postgres = programs === undefined ? undefined : new Postgres(programs);
after(() => {
  postgres?.end();
  rmSync(base, { recursive: true, force: true });
});

/** A client on this machine. */
function tangOf({ app }: Pick<OpenAppliance, 'app'>): TangFetch {
  return (request) => app.fetch(request, { surface: 'tang', tangClients: addressSet(['::1']), remoteAddress: '::1' });
}

async function whileOpen(
  options: { readonly data: string; readonly keyFile: string; readonly store?: StoreSource },
  work: (appliance: OpenAppliance) => Promise<void>,
): Promise<void> {
  const appliance = await openAppliance(options);
  try {
    await work(appliance);
  } finally {
    await appliance.close();
  }
}

const rekey = async (ask: Place['local']): Promise<void> =>
  assert.equal((await ask('POST', '/local/tenants/default/rekey', {})).status, 200);

/** Key pairs from before and after a rekey. */
const sampleOf = (p: Place): Promise<TangSample> => tangSample(p.local, tangOf(p.appliance), () => rekey(p.local));

test('new keys of tenant and appliance, a backup of all, and a database and back', async () => {
  await using p = await place();
  const sample = await sampleOf(p);
  const recovers = () => recoversAll(tangOf(p.appliance), sample);
  await recovers();
  await rekey(p.local);
  await recovers();
  assert.equal((await p.local('POST', '/local/master/rotate', {})).status, 200);
  await p.reopen();
  await recovers();
  const { keyFile } = p.made;
  const file = join(base, 'all.kms-backup');
  await backupOf(p, file);
  const restored = join(base, 'restored');
  const keys = { keyFile, env: () => undefined };
  await restoreAppliance({ from: file, data: restored, keys });
  await whileOpen({ data: restored, keyFile }, (appliance) => recoversAll(tangOf(appliance), sample));
  if (!postgres) return;
  const store: StoreSource = { url: postgres.newDatabase(), isListed: false, env: () => undefined };
  await moveToDatabase({ data: restored, keys, store });
  await whileOpen({ data: join(base, 'node'), keyFile, store }, async (appliance) => {
    await recoversAll(tangOf(appliance), sample);
    await rekey(asking(appliance));
    await recoversAll(tangOf(appliance), sample);
    const { pairs } = (await asking(appliance)('GET', '/tang/pairs')).body;
    assert.deepEqual(
      pairs.map(({ thumbprint }: AnyPair) => thumbprint),
      sample.pairs.map(({ thumbprint }) => thumbprint).reverse(),
    );
  });
  const back = join(base, 'back');
  await moveToDirectory({ data: join(base, 'node'), keys, store }, back);
  await whileOpen({ data: back, keyFile }, async (appliance) => {
    await recoversAll(tangOf(appliance), sample);
    assert.equal((await asking(appliance)('POST', '/tang/pairs')).status, 200);
  });
});

// `test/compat/tang-1` is a backup of an appliance with several pairs, made before and after a rekey, its master key,
// and the value recovered with each. KMS_WRITE_FIXTURE=1 writes it if it is missing.
const fixture = join(import.meta.dirname, '../compat/tang-1');
if (process.env.KMS_WRITE_FIXTURE && !existsSync(fixture)) {
  mkdirSync(fixture);
  await using p = await place();
  const sample = await sampleOf(p);
  await backupOf(p, join(fixture, 'backup.kms-backup'));
  cpSync(p.made.keyFile, join(fixture, 'master-key.txt'));
  writeFileSync(join(fixture, 'made.json'), `${JSON.stringify(sample, null, 1)}\n`);
}

test('tang-1: what was bound to the pairs of an earlier program is recovered for ever, retired ones too', async () => {
  const sample: TangSample = JSON.parse(readFileSync(join(fixture, 'made.json'), 'utf8'));
  assert.equal(sample.pairs.length, keptTangPairs);
  const keyFile = join(base, 'compat.key');
  cpSync(join(fixture, 'master-key.txt'), keyFile);
  chmodSync(keyFile, 0o600);
  const data = join(base, 'compat');
  await restoreAppliance({ from: join(fixture, 'backup.kms-backup'), data, keys: { keyFile, env: () => undefined } });
  await whileOpen({ data, keyFile }, async (appliance) => {
    await recoversAll(tangOf(appliance), sample);
    const { pairs } = (await asking(appliance)('GET', '/tang/pairs')).body;
    const told = pairs.map(({ thumbprint, advertised }: AnyPair) => [thumbprint, advertised]);
    const expected = sample.pairs.map(({ thumbprint }, at) => [thumbprint, at === keptTangPairs - 1]).reverse();
    assert.deepEqual(told, expected);
    await rekey(asking(appliance));
    await recoversAll(tangOf(appliance), sample);
  });
});

interface AnyPair {
  readonly thumbprint: string;
  readonly advertised: boolean;
}
