// A data directory made by another user, with links in it: each of its files and folders × commands that open it. The
// command refuses, and the link's target stays as it was. Likewise where the socket in it is another appliance's.
import assert from 'node:assert/strict';
import { chown, cp, link, lstat, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import test from 'node:test';
import { type Desk, desk } from './kms.ts';
import { serving } from './serving.ts';

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
  for (const line of [...lines, ...asking]) {
    if (line.includes('--data')) continue;
    const unnamed = await d.kms(line, { signal: AbortSignal.timeout(20_000) });
    assert.notEqual(unnamed.code, 0, line);
    assert.match(unnamed.stderr, /kms-data is a symbolic link, and it was not named/, line);
  }
});

/** Commands that a running server would do. */
const asking = [
  ...['account create planted', 'account list', 'keyring create planted', 'tenant create planted --host p.example'],
  ...['seal', 'unseal', 'backup create out.kms-backup', 'drill', 'master list', 'activity search', 'metrics'],
  ...['tenant list', 'user list', 'asset search', 'status', 'standby promote --data kms-data', 'recovery-kit'],
];

/** Runs every command on `kms-data`; none may reach the live appliance. */
async function refusedByAll(d: Desk, expected: RegExp): Promise<void> {
  const recorded = async (): Promise<number> => {
    const { data } = await d.json<{ data: unknown[] }>('activity search --limit 1000 --json --data live');
    return data.length;
  };
  const before = await recorded();
  for (const line of [...asking, ...asking.map((each) => `${each.replace(' --data kms-data', '')} --data kms-data`)]) {
    const { code, stderr, stdout } = await d.kms(line, { signal: AbortSignal.timeout(20_000) });
    assert.deepEqual([code === 0, stdout], [false, ''], `${line}: ${stderr}`);
    assert.match(stderr, expected, line);
  }
  // The first look itself.
  assert.equal(await recorded(), before + 1);
  const { sealed } = await d.json<{ sealed: boolean }>('status --json --data live');
  assert.equal(sealed, false);
}

test('the socket of a live appliance, linked into a directory, is asked by no command', async () => {
  await using d = await desk();
  await d.json('init --json --data live');
  const server = await serving(d, ['--data', 'live']);
  await made(d);
  try {
    await symlink(d.path('live', 'kms.sock'), d.path('kms-data', 'kms.sock'));
    await refusedByAll(d, /kms-data\/kms\.sock: is a symbolic link/);
    await rm(d.path('kms-data', 'kms.sock'));
    await link(d.path('live', 'kms.sock'), d.path('kms-data', 'kms.sock'));
    const { code, stderr } = await d.kms('account create planted');
    assert.equal(code, 1);
    assert.match(stderr, /kms-data\/kms\.sock: this socket has another name elsewhere/);
    await rm(d.path('kms-data'), { recursive: true });
    await mkdir(d.path('kms-data'));
    await symlink(d.path('live', 'kms.sock'), d.path('kms-data', 'kms.sock'));
    await refusedByAll(d, /kms-data\/kms\.sock: is a symbolic link/);
  } finally {
    await server.stop();
  }
});

test('a socket of neither the owner nor the caller is asked by no command', {
  skip: process.geteuid?.() !== 0,
}, async () => {
  await using d = await desk();
  await made(d);
  await d.json('init --json --data live');
  const asked: string[] = [];
  const server = createServer(({ url = '' }, response) => {
    asked.push(url);
    response.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(d.path('kms-data', 'kms.sock'), resolve));
  await chown(d.path('kms-data', 'kms.sock'), 65_531, 65_531);
  try {
    await refusedByAll(d, /kms\.sock: this socket belongs to another user than the data directory/);
    assert.deepEqual(asked, []);
  } finally {
    server.close();
  }
});
