// How a data directory is recognised by its contents; and an init never touches files that are not its own.
import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { initAppliance } from '../../src/appliance/init.ts';
import { KmsError } from '../../src/errors.ts';
import { dataDirState } from '../../src/platform/data-dir.ts';
import { exposureOf } from '../../src/platform/ownership.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-data-dir-'));
after(() => rmSync(base, { recursive: true, force: true }));

function directory(name: string, entries: readonly string[] = []): string {
  const dir = join(base, name);
  mkdirSync(dir);
  for (const entry of entries) {
    if (entry.endsWith('/')) mkdirSync(join(dir, entry));
    else writeFileSync(join(dir, entry), 'content');
  }
  return dir;
}

const isCode = (code: string) => (error: unknown) => error instanceof KmsError && error.code === code;

test('states by content', async () => {
  assert.equal(await dataDirState(join(base, 'none')), 'missing');
  const table: [string[], string][] = [
    [[], 'empty'],
    [['lost+found/'], 'empty'],
    [['kms.lock', 'kms.pid', 'kms.sock', 'kms.init.tmp'], 'empty'],
    [['kms.init'], 'unfinished'],
    [['kms.init', 'system/', 'tenants/', 'kms.seal.tmp'], 'unfinished'],
    [['kms.seal'], 'whole'],
    [['kms.init', 'kms.seal'], 'whole'],
    [['system/'], 'foreign'],
    [['notes.txt'], 'foreign'],
  ];
  for (const [i, [entries, state]] of table.entries()) {
    assert.equal(await dataDirState(directory(`state${i}`, entries)), state, entries.join(' '));
  }
});

test('an unfinished init is started over, with the key file that it made', async () => {
  const data = directory('unfinished', ['kms.init', 'system/', 'tenants/', 'kms.seal.tmp']);
  writeFileSync(join(data, 'system', 'log-0000000001.kms'), 'half');
  const other = await initAppliance({ data: join(base, 'other') });
  writeFileSync(`${data}.master.key`, readFileSync(other.keyFile), { mode: 0o600 });
  const made = await initAppliance({ data });
  assert.equal(made.keyFileMade, false);
  assert.ok(!existsSync(join(data, 'kms.init')));
  const appliance = await openAppliance({ data });
  assert.equal((await appliance.status()).tenants.length, 1);
  await appliance.close();
});

test('a directory of somebody else, and data whose seal is gone, are left as they are', async () => {
  for (const entries of [['notes.txt'], ['system/', 'tenants/']]) {
    const data = directory(`foreign-${entries.length}`, entries);
    await assert.rejects(initAppliance({ data }), isCode('refused'));
    await assert.rejects(openAppliance({ data }), isCode('refused'));
    assert.deepEqual(
      readdirSync(data),
      entries.map((entry) => entry.replace('/', '')),
    );
    assert.ok(!existsSync(`${data}.master.key`));
  }
});

test('a file where the data directory should be', async () => {
  const data = join(base, 'file');
  writeFileSync(data, 'content');
  await assert.rejects(initAppliance({ data }), isCode('refused'));
  await assert.rejects(initAppliance({ data: join(data, 'below') }), isCode('refused'));
  assert.equal(readFileSync(data, 'utf8'), 'content');
});

test('a file that is no key file is never overwritten, and nothing is made beside it', async () => {
  const data = join(base, 'guarded');
  const keyFile = join(base, 'guarded.key');
  writeFileSync(keyFile, 'a file of mine\n');
  await assert.rejects(initAppliance({ data, keyFile }), isCode('corrupt'));
  assert.equal(readFileSync(keyFile, 'utf8'), 'a file of mine\n');
  assert.ok(!existsSync(data));
});

test('the key file is found where init put it, and named when it is missing', async () => {
  const data = join(base, 'found');
  const keyFile = join(base, 'vault', 'my.key');
  await initAppliance({ data, keyFile, hosts: ['KMS.example', 'kms.example'] });
  assert.equal(statSync(keyFile).mode & 0o777, 0o600);
  assert.ok(!existsSync(`${data}.master.key`));
  const appliance = await openAppliance({ data });
  assert.deepEqual((await appliance.status()).tenants[0]?.hosts, ['kms.example']);
  await appliance.close();
  rmSync(keyFile);
  await assert.rejects(openAppliance({ data }), (error: unknown) => {
    assert.ok(error instanceof KmsError && error.code === 'sealed');
    assert.ok(error.message.includes(keyFile));
    return true;
  });
});

test('an appliance that is open keeps others out, and lets go when closed', async () => {
  const data = join(base, 'held');
  await initAppliance({ data });
  const first = await openAppliance({ data });
  await assert.rejects(openAppliance({ data }), isCode('in-use'));
  await first.close();
  await first.close();
  await (await openAppliance({ data })).close();
});

test('a key file or a directory that others can reach is refused, with what to do', async () => {
  const data = join(base, 'exposed');
  const { keyFile = '' } = await initAppliance({ data });
  const refusal = async (): Promise<string> => {
    const error = await openAppliance({ data }).then(
      (appliance) => appliance.close(),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof KmsError && error.code === 'refused');
    return `${error.message}; ${error.hint}`;
  };
  chmodSync(keyFile, 0o644);
  assert.match(
    await refusal(),
    /exposed\.master\.key: other users can read it, .*\(mode 0644\); run: chmod 0600 .*rotate the master key/,
  );
  chmodSync(keyFile, 0o600);
  for (const [mode, who] of [
    [0o755, 'everybody'],
    [0o701, 'everybody'],
    [0o702, 'everybody'],
    [0o750, 'its group'],
    [0o720, 'its group'],
  ] as const) {
    chmodSync(data, mode);
    assert.match(await refusal(), new RegExp(`exposed: ${who} .*run: chmod 0700 `), mode.toString(8));
  }
  chmodSync(data, 0o700);
  await (await openAppliance({ data })).close();
});

test('who can reach a file, by its mode, its owner and its group', () => {
  const me = { uid: 1000, groups: [1000, 2000] };
  for (const [mode, uid, gid, expected] of [
    [0o100600, 1000, 1000, 'none'],
    [0o40700, 0, 0, 'none'],
    [0o100640, 1000, 1000, 'group'],
    [0o100640, 1000, 2000, 'group'],
    [0o100640, 0, 2000, 'own-group'],
    [0o42770, 0, 2000, 'own-group'],
    [0o100640, 0, 3000, 'group'],
    [0o100604, 0, 2000, 'others'],
    [0o41777, 0, 2000, 'others'],
  ] as const) {
    assert.equal(exposureOf({ mode, uid, gid }, me), expected, `${mode.toString(8)} ${uid} ${gid}`);
  }
});

test('a place where no directory can be made is refused', { timeout: 20_000 }, async () => {
  await assert.rejects(initAppliance({ data: '/proc/kms/data' }), isCode('refused'));
  writeFileSync(join(base, 'a-file'), '');
  await assert.rejects(initAppliance({ data: join(base, 'a-file', 'data') }), isCode('refused'));
});

test('a missing or an empty data directory: nothing reachable', async () => {
  await assert.rejects(openAppliance({ data: join(base, 'missing') }), isCode('unavailable'));
  await assert.rejects(openAppliance({ data: directory('empty') }), isCode('unavailable'));
});
