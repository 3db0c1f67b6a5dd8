// Copies of an appliance as typed: made, verified, restored, and the warning about one that was set back.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { type Desk, desk, type RunOptions } from './kms.ts';

async function made(): Promise<Desk> {
  const place = await desk();
  const first = await place.kms('init');
  assert.equal(first.code, 0, first.stderr);
  const ring = await place.kms('keyring create payroll');
  assert.equal(ring.code, 0, ring.stderr);
  return place;
}

/** Names and values with runs of spaces collapsed. */
function lines(text: string): string[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/ {2,}/, ': '));
}

test('create, verify, restore', async () => {
  await using place = await made();
  const created = await place.kms('backup create b.kms-backup');
  assert.equal(created.code, 0);
  assert.equal(created.stdout, '');
  assert.match(created.stderr, /^kms: \S+b\.kms-backup: [0-9.]+ KiB; see that it restores with `kms backup verify`\n$/);
  const again = await place.kms('backup create b.kms-backup');
  assert.equal(again.code, 1);
  assert.match(again.stderr, /exists already and is not overwritten/);

  const verified = await place.kms('backup verify b.kms-backup');
  assert.deepEqual([verified.code, verified.stderr], [0, '']);
  assert.equal(lines(verified.stdout)[0], 'backup: restores');
  const json = await place.json<{ valid: boolean; restores: boolean; stores: number }>(
    'backup verify b.kms-backup --json',
  );
  assert.deepEqual([json.valid, json.restores, json.stores], [true, true, 2]);

  const full = await place.kms('restore b.kms-backup');
  assert.equal(full.code, 1);
  assert.match(full.stderr, /kms-data: is not empty; nothing was changed/);
  const restored = await place.kms('restore b.kms-backup --data new');
  assert.equal(restored.code, 0, restored.stderr);
  assert.match(restored.stdout, /transactions/);
  const rings = await place.json<{ data: { name: string }[] }>('keyring list --data new --json');
  assert.deepEqual(
    rings.data.map(({ name }) => name),
    ['payroll'],
  );
  const status = await place.kms('status --data new');
  assert.match(status.stdout, /epoch +[0-9]{13}, restored at 20/);
  assert.match(status.stdout, /last verified backup +none/);
});

test('one byte changed, missing or added: exit code 1', async () => {
  await using place = await made();
  await place.kms('backup create b');
  const bytes = await readFile(place.path('b'));
  for (const at of [0, 9, 40, 1000, Math.floor(bytes.length / 2), bytes.length - 40, bytes.length - 1]) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 4;
    await writeFile(place.path('x'), changed);
    const ran = await place.kms('backup verify x');
    assert.equal(ran.code, 1, `byte ${at}: ${ran.stdout}`);
    assert.equal(ran.stderr.trimEnd().split('\n').length, 1, ran.stderr);
  }
  for (const other of [bytes.subarray(0, -1), Buffer.concat([bytes, Buffer.from([0])]), bytes.subarray(1)]) {
    await writeFile(place.path('x'), other);
    assert.equal((await place.kms('backup verify x')).code, 1);
    assert.equal((await place.kms('restore x --data new')).code, 1);
  }
});

test('a restore that fails leaves nothing that it made, and all that it did not', async () => {
  await using place = await made();
  await place.kms('backup create b');
  const bytes = await readFile(place.path('b'));
  const restore = async (data: string): Promise<void> => {
    const args = ['restore', 'x', '--data', data, '--key-file', 'kms-data.master.key'];
    const { code, stderr } = await place.kms(args);
    assert.equal(code, 1, stderr);
  };
  await mkdir(place.path('volume', 'lost+found'), { recursive: true, mode: 0o700 });
  await mkdir(place.path('cut-off'), { mode: 0o700 });
  await writeFile(place.path('cut-off', 'kms.restore'), '');
  const before = await readdir(place.dir, { recursive: true });
  let late = 0;
  for (const part of [0.2, 0.35, 0.5, 0.65, 0.8, 0.95]) {
    const changed = Buffer.from(bytes);
    const at = Math.floor(bytes.length * part);
    changed[at] = (changed[at] ?? 0) ^ 4;
    await writeFile(place.path('x'), changed);
    for (const data of ['new', 'above/new', 'volume']) await restore(data);
    assert.deepEqual((await readdir(place.dir, { recursive: true })).sort(), [...before, 'x'].sort());
    await restore('cut-off');
    assert.ok(existsSync(place.path('cut-off', 'kms.restore')));
    if (existsSync(place.path('cut-off', 'system'))) late++;
    for (const name of ['system', 'tenants', 'kms.lock'])
      await rm(place.path('cut-off', name), { recursive: true, force: true });
  }
  assert.ok(late > 0, 'some fail after files were copied');
  for (const data of ['new', 'volume', 'cut-off']) {
    const { code, stderr } = await place.kms(['restore', 'b', '--data', data]);
    assert.equal(code, 0, stderr);
  }
});

test('without the master key the digests alone are compared, and that is said; with another one nothing is', async () => {
  await using place = await made();
  await place.kms('backup create b');
  await rename(place.path('kms-data.master.key'), place.path('away'));
  const without = await place.kms('backup verify b');
  assert.equal(without.code, 0);
  assert.match(without.stdout, /digests fit/);
  assert.match(without.stderr, /without the master key only digests were compared/);
  const restore = await place.kms('restore b --data new');
  assert.equal(restore.code, 4);
  await place.kms('init --data other');
  for (const line of ['backup verify b', 'restore b --data new']) {
    const wrong = await place.kms(`${line} --key-file other.master.key`);
    assert.equal(wrong.code, 1, line);
    assert.match(wrong.stderr, /needs [0-9a-f]{16}, got [0-9a-f]{16}/);
  }
  assert.equal((await place.kms('restore b --data new --key-file away')).code, 0);
});

test('beside the key file of another appliance the one that opened it is named, and that one stays', async () => {
  await using place = await made();
  await place.kms('backup create b');
  await place.kms('init --data other');
  await rm(place.path('other'), { recursive: true });
  const before = await readFile(place.path('other.master.key'));
  const restored = await place.kms('restore b --data other');
  assert.equal(restored.code, 0, restored.stderr);
  assert.match(restored.stdout, /^master key +\S+\/kms-data\.master\.key$/m);
  const said = /other\.master\.key is another key and was left there: serve this with --key-file (\S+)\n/;
  const [, keyFile = ''] = said.exec(restored.stderr) ?? [];
  assert.equal(keyFile, place.path('kms-data.master.key'));
  assert.deepEqual(await readFile(place.path('other.master.key')), before);
  const listed = await place.kms(['keyring', 'list', '--data', 'other', '--key-file', keyFile]);
  assert.match(listed.stdout, /payroll/);
});

test('any custodian of the seal restores it; what does not fit is named before anything is made', async () => {
  await using place = await made();
  const passphrase = 'correct horse battery staple';
  const command = place.path('give');
  const secret = 'a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90';
  await writeFile(place.path('right'), `${passphrase}\n`, { mode: 0o600 });
  await writeFile(place.path('wrong'), 'incorrect horse battery staple\n', { mode: 0o600 });
  await writeFile(command, `#!/bin/sh\necho ${secret}\n`, { mode: 0o700 });
  await place.json('master add-custodian passphrase --passphrase-file right --json');
  const { shares } = await place.json<{ shares: string[] }>(
    'master add-custodian shares --shares 3 --threshold 2 --json',
  );
  await place.json(['master', 'add-custodian', 'exec', '--exec', command, '--json']);
  assert.equal((await place.kms('recovery-kit -o kit.txt')).code, 0);
  assert.equal((await place.kms('backup create b')).code, 0);
  await rename(place.path('kms-data.master.key'), place.path('away'));
  await rm(command);
  await place.kms('init --data other --recovery-kit other-kit.txt');

  const ways: readonly [args: string, options: RunOptions, code: number, stderr: RegExp][] = [
    ['--passphrase-file right', {}, 0, /what was done since is gone/],
    ['--passphrase-file wrong', {}, 1, /^kms: wrong passphrase\b/],
    ['', { env: { KMS_PASSPHRASE: passphrase } }, 0, /what was done since is gone/],
    ['', { stdin: `${shares[2]}\n${shares[0]}\n` }, 0, /what was done since is gone/],
    ['', { stdin: `${shares[2]}\n` }, 4, /1 of 2 shares were given; give all of them at once\n$/],
    ['', { env: { KMS_MASTER_KEY: secret } }, 0, /what was done since is gone/],
    ['', { env: { KMS_MASTER_KEY: secret.replace('a', 'b') } }, 1, /in KMS_MASTER_KEY: needs [0-9a-f]{16} or .*, got /],
    ['--key-file kit.txt', {}, 0, /what was done since is gone/],
    ['--key-file other-kit.txt', {}, 1, /needs [0-9a-f]{16} or .*, got [0-9a-f]{16}/],
    ['', {}, 4, /^kms: the seal in \S+b: the master key file is missing: .*; give a key file or a recovery kit with /],
  ];
  for (const [args, options, code, stderr] of ways) {
    const ran = await place.kms(`restore b --data new ${args}`.trim().split(' '), options);
    assert.equal(ran.code, code, `${args}: ${ran.stderr}`);
    assert.match(ran.stderr, stderr);
    assert.equal(existsSync(place.path('new')), code === 0, args);
    await rm(place.path('new'), { recursive: true, force: true });
  }
});

test('an appliance that was set back is noticed, one that was restored is not', async () => {
  await using place = await made();
  await place.kms('backup create b');
  await cp(place.path('kms-data'), place.path('old'), { recursive: true });
  for (const name of ['two', 'three']) await place.kms(`keyring create ${name}`);
  const quiet = await place.kms('keyring list');
  assert.equal(quiet.stderr, '');
  await rm(place.path('kms-data'), { recursive: true });
  await cp(place.path('old'), place.path('kms-data'), { recursive: true });
  for (let i = 0; i < 2; i++) {
    const warned = await place.kms('keyring list');
    assert.equal(warned.code, 0);
    assert.match(
      warned.stderr,
      /^kms: WARNING: the appliance [0-9a-f]{32} was set back: it is at transaction [0-9]+ of epoch 1, and was at [0-9]+/,
    );
  }
  // A trial restore starts a later epoch: the output says which memory to delete afterwards.
  assert.equal((await place.kms('restore b --data trial')).code, 0);
  await place.kms('keyring list --data trial');
  const [, remembered = ''] = /remove (\S+)\n$/.exec((await place.kms('keyring list')).stderr) ?? [];
  await rm(remembered);
  assert.equal((await place.kms('keyring list')).stderr, '');
  await rm(place.path('kms-data'), { recursive: true });
  assert.equal((await place.kms('restore b')).code, 0);
  const told = await place.kms('keyring list');
  assert.match(
    told.stderr,
    /^kms: the appliance [0-9a-f]{32} was restored from a copy, or went on from older files on purpose, since it was last used from here\n$/,
  );
  assert.equal((await place.kms('keyring list')).stderr, '');
});

test('drill', async () => {
  await using place = await made();
  const drill = await place.kms('drill');
  assert.deepEqual([drill.code, drill.stderr], [0, '']);
  assert.equal(lines(drill.stdout)[0], 'backup: restores');
});

test('what only looks gives up when it is asked to, with the code of the signal, and leaves nothing', async () => {
  await using place = await made();
  await place.kms('backup create b.kms-backup');
  const before = await readdir(place.dir, { recursive: true });
  for (const line of ['doctor', 'drill', 'backup verify b.kms-backup']) {
    const { code, stdout, stderr } = await place.kms(line, { signal: AbortSignal.abort('SIGTERM') });
    assert.deepEqual([code, stdout, stderr], [143, '', 'kms: interrupted\n'], line);
    assert.deepEqual((await readdir(place.dir, { recursive: true })).sort(), before.sort(), line);
  }
});

test('wrong usage', async () => {
  await using place = await made();
  await place.kms('backup create b');
  for (const [line, message] of [
    ['restore b --data new --to 2026-01-01', /--to goes with a shipped directory/],
    ['restore b --data new --to soon', /--to: expected milliseconds/],
    ['backup create', /missing required argument/],
    ['serve --ship-every 5s', /--ship-every goes with --ship-to/],
    ['serve --backup-keep 5', /--backup-keep goes with --backup-to/],
    ['serve --backup-to x --backup-schedule never', /expected a cron expression/],
    ['serve --backup-to x --backup-keep 0', /--backup-keep: expected at least 1/],
    ['serve --ship-to x --ship-every 5', /--ship-every: expected a duration/],
  ] as const) {
    const ran = await place.kms(line === 'serve --backup-to x --backup-schedule never' ? line.split(' ') : line);
    assert.equal(ran.code, 2, `${line}: ${ran.stderr}`);
    assert.match(ran.stderr, message, line);
  }
  // Not even root can make directories there.
  const noPlace = await place.kms('serve --backup-to /proc/backups');
  assert.equal(noPlace.code, 1);
  assert.match(noPlace.stderr, /--backup-to \/proc\/backups: there is no such file or directory; check the path/);
  const none = await place.kms('backup verify nothing');
  assert.equal(none.code, 1);
  const notShipped = await place.kms('restore kms-data --data new');
  assert.equal(notShipped.code, 1);
  assert.match(notShipped.stderr, /is not a directory that an appliance shipped to/);
});
