// A data directory made by another user, with links in it: each of its files and folders × commands that open it. The
// command refuses, and the link's target stays as it was.
import assert from 'node:assert/strict';
import { cp, lstat, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { type Desk, desk } from './kms.ts';

const lines = [
  'status',
  'doctor',
  'keyring list',
  'apikey list',
  'tenant list',
  'master list',
  'backup create out.kms-backup',
  'serve --listen 127.0.0.1:0 --log-level silent',
  'upgrade --resume --data kms-data',
  'init',
];

/** Contents of every file below `dir`. */
async function contents(dir: string): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) found.set(path, (await readFile(path)).toString('base64'));
    else found.set(path, entry.isSymbolicLink() ? 'link' : 'folder');
  }
  return found;
}

async function made(d: Desk): Promise<string> {
  await d.json('init --json');
  const [tenant = ''] = await readdir(d.path('kms-data', 'tenants'));
  return tenant;
}

test('a link in the place of anything in a data directory is followed by no command', async () => {
  await using d = await desk();
  const tenant = await made(d);
  const names = [
    ...['kms.seal', 'kms.witness', 'kms.lock', 'kms.reserve', 'kms.pid', 'kms.upgrade', 'kms.before-upgrade'],
    ...['kms.node', 'kms.standby', 'kms.init', 'kms.restore', 'kms.stay-sealed'],
    ...['system', 'tenants', `tenants/${tenant}`],
    ...['system/log-0000000001.kms', `tenants/${tenant}/log-0000000001.kms`],
    `tenants/${tenant}/snapshot-0000000000.kms`,
  ];
  await cp(d.path('kms-data'), d.path('whole'), { recursive: true });
  for (const name of names) {
    await rm(d.path('kms-data'), { recursive: true });
    await cp(d.path('whole'), d.path('kms-data'), { recursive: true });
    await rm(d.path('victim'), { recursive: true, force: true });
    await mkdir(d.path('victim'));
    const path = d.path('kms-data', name);
    const target = d.path('victim', 'target');
    const isThere = await lstat(path).catch(() => undefined);
    if (isThere) await rename(path, target);
    else if (name === 'kms.before-upgrade') {
      await mkdir(target);
      await writeFile(join(target, 'notes'), 'of somebody');
    } else await writeFile(target, 'of somebody');
    await symlink(target, path);
    const before = await contents(d.path('victim'));
    for (const line of lines) {
      const { code, stderr } = await d.kms(line, { signal: AbortSignal.timeout(20_000) });
      assert.notEqual(code, 0, `${name}, ${line}`);
      assert.match(stderr, /symbolic link/, `${name}, ${line}`);
      assert.deepEqual(await contents(d.path('victim')), before, `${name}, ${line}`);
      assert.ok((await lstat(path)).isSymbolicLink(), `${name}, ${line}`);
    }
  }
});

test('a link that leads nowhere makes nothing where it leads', async () => {
  await using d = await desk();
  await made(d);
  for (const name of ['kms.lock', 'kms.pid', 'kms.reserve', 'kms.witness']) {
    await rm(d.path('kms-data', name), { force: true });
    await symlink(d.path('nowhere'), d.path('kms-data', name));
    for (const line of ['status', 'keyring list', 'serve --listen 127.0.0.1:0 --log-level silent']) {
      const { code, stderr } = await d.kms(line, { signal: AbortSignal.timeout(20_000) });
      assert.notEqual(code, 0, `${name}, ${line}`);
      assert.match(stderr, /symbolic link/, `${name}, ${line}`);
      assert.equal(await lstat(d.path('nowhere')).catch(() => undefined), undefined, `${name}, ${line}`);
    }
    await rm(d.path('kms-data', name));
  }
  assert.equal((await d.kms('keyring list')).code, 0);
});

test('the data directory itself may be reached by a link', async () => {
  await using d = await desk();
  await made(d);
  await rename(d.path('kms-data'), d.path('elsewhere'));
  await rename(d.path('kms-data.master.key'), d.path('elsewhere.master.key'));
  await symlink(d.path('elsewhere'), d.path('kms-data'));
  const { code, stderr } = await d.kms(`keyring list --data kms-data --key-file elsewhere.master.key`);
  assert.equal(code, 0, stderr);
});
