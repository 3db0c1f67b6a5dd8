// Search order for the key file: the path given, the path that `init` used, and the default path.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFile, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Desk, desk } from './kms.ts';

async function opens(d: Desk, line: string): Promise<void> {
  const { code, stderr } = await d.kms(`keyring list ${line}`);
  assert.equal(code, 0, `${line}: ${stderr}`);
}

test('a data directory that moved away finds the key file where init put it', async () => {
  for (const made of ['', ' --key-file keys/own.key']) {
    await using d = await desk();
    await d.json(`init --json${made}`);
    await mkdir(d.path('elsewhere'));
    await rename(d.path('kms-data'), d.path('elsewhere/data'));
    await opens(d, '--data elsewhere/data');
  }
});

test('data and key file that move together are found at the default place', async () => {
  await using d = await desk();
  await d.json('init --json');
  await mkdir(d.path('there'));
  await rename(d.path('kms-data'), d.path('there/data'));
  await rename(d.path('kms-data.master.key'), d.path('there/data.master.key'));
  await opens(d, '--data there/data');
  // Meanwhile another appliance has its key at this one's former path.
  await d.json('init --json');
  await opens(d, '--data there/data');
});

test('without a key file, the places that were looked at are named', async () => {
  await using d = await desk();
  await d.json('init --json');
  await mkdir(d.path('there'));
  await rename(d.path('kms-data'), d.path('there/data'));
  await rename(d.path('kms-data.master.key'), d.path('away.key'));
  const places = `looked for ${d.path('kms-data.master.key')}, then ${d.path('there/data.master.key')};`;
  const { code, stderr } = await d.kms('keyring list --data there/data');
  assert.equal(code, 4);
  assert.ok(stderr.startsWith(`kms: the master key file is missing: ${places}`), stderr);
  await opens(d, '--data there/data --key-file away.key');
});

test('the key file of another appliance is named with what is wrong about it', async () => {
  await using d = await desk();
  await d.json('init --json');
  await d.json('init --json --data other');
  await rm(d.path('kms-data.master.key'));
  await copyFile(d.path('other.master.key'), d.path('kms-data.master.key'));
  const { code, stderr } = await d.kms('keyring list');
  assert.equal(code, 1);
  const named = `${d.path('kms-data.master.key')} holds another one: give the key that belongs to this data`;
  assert.match(stderr, /^kms: wrong master key file: needs [0-9a-f]{16}, got [0-9a-f]{16}; [^\n]+\n$/);
  assert.ok(stderr.includes(named), stderr);
});

test('a backup is restored where the place of its key file means nothing', async () => {
  await using d = await desk();
  await d.json('init --json');
  await d.json('backup create --json one.backup');
  await mkdir(d.path('machine'));
  await rename(d.path('kms-data.master.key'), d.path('machine/data.master.key'));
  await rm(d.path('kms-data'), { recursive: true });
  const { code, stderr } = await d.kms('restore one.backup --data machine/data');
  assert.equal(code, 0, stderr);
  await opens(d, '--data machine/data');
});

test('a named pipe is no key file, and nobody waits for it; what a command writes is one', async () => {
  await using d = await desk();
  await d.json('init --json');
  execFileSync('mkfifo', ['-m', '600', d.path('pipe')]);
  for (const line of ['keyring list --key-file pipe', 'serve --listen 127.0.0.1:0 --key-file pipe']) {
    const { code, stderr } = await d.kms(line);
    assert.notEqual(code, 0, line);
    assert.match(stderr, /pipe: expected a file with a key, found a named pipe/, line);
  }
  await symlink('pipe', d.path('link'));
  assert.match(
    (await d.kms('keyring list --key-file link')).stderr,
    /link: expected a file with a key, found a named pipe/,
  );
  // Passed by a shell's process substitution.
  await rename(d.path('kms-data.master.key'), d.path('kept.key'));
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
  await writeFile(d.path('typed'), `${process.execPath} ${main} keyring list --key-file <(cat kept.key)\n`);
  execFileSync('bash', [d.path('typed')], { cwd: d.dir, stdio: 'ignore', timeout: 60_000 });
});
