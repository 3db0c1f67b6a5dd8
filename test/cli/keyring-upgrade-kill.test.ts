// `kms keyring upgrade` killed with SIGKILL before each change to a file, and after each request: no private key is
// lost, encrypted files open at any moment, and the same command finishes it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdir, readFile, readlink, symlink, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { pathToFileURL } from 'node:url';
import { publicKeyOf, readPrivateKeys } from '../../src/client/ring-keys.ts';
import { effort } from '../support/effort.ts';
import { type ServedDesk, servedDesk } from './served.ts';

const root = join(import.meta.dirname, '../..');
const cutOff = pathToFileURL(join(import.meta.dirname, 'cut-off.ts')).href;

interface Ended {
  readonly signal: string | null;
  readonly code: number | null;
}

/** Runs a process of its own, over the network. It kills itself before its `at`-th change to a file. */
async function spawned(d: ServedDesk, args: readonly string[], at?: number): Promise<Ended> {
  const { args: over, env } = d.network();
  const preload = at === undefined ? [] : ['--import', cutOff];
  const child = spawn(process.execPath, [...preload, join(root, 'src/main.ts'), ...args, ...over], {
    cwd: d.dir,
    env: {
      PATH: process.env.PATH,
      HOME: d.dir,
      XDG_CONFIG_HOME: d.path('config'),
      KMS_CUT_OFF_AT: String(at),
      ...env,
    },
    stdio: 'ignore',
  });
  children.add(child);
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (...ended) => resolve(ended));
  });
  children.delete(child);
  return { code, signal };
}

const children = new Set<ReturnType<typeof spawn>>();

interface Ring {
  readonly ring: { readonly kem: string; readonly publicKey: string };
}

/** A ring with files encrypted in both ways. */
async function prepared(d: ServedDesk, name: string): Promise<string> {
  await d.json(`keyring create ${name} --kem x25519 --json`);
  await encrypted(d, name, 'before');
  return readFile(d.path('config', 'kms', 'rings', `${name}.key`), 'utf8');
}

async function encrypted(d: ServedDesk, name: string, when: string): Promise<void> {
  for (const how of ['', ' --recipient']) {
    const line = `encrypt --ring ${name}${how} -o ${name}.${when}${how.trim()}`;
    const { code, stderr } = await d.kms(line, { stdin: when });
    assert.equal(code, 0, stderr);
  }
}

async function opens(d: ServedDesk, name: string, ...whens: readonly string[]): Promise<void> {
  for (const when of whens) {
    for (const how of ['', '--recipient']) {
      const { stdout, stderr } = await d.kms(`decrypt ${name}.${when}${how}`);
      assert.equal(stdout, when, stderr);
    }
  }
}

/** Checks the state after the kill, and again after repeating the command. */
async function isWholeAndFinished(d: ServedDesk, name: string, before: string, where: string): Promise<void> {
  const path = d.path('config', 'kms', 'rings', `${name}.key`);
  const left = await readFile(path, 'utf8');
  assert.ok(left.startsWith(before), where);
  const keys = readPrivateKeys(left, path);
  const { ring } = await d.json<Ring>(`keyring show ${name} --json`);
  assert.ok(
    keys.some((key) => publicKeyOf(key) === ring.publicKey),
    `${where}: the private key of the ring's pair is kept`,
  );
  await opens(d, name, 'before');
  const plain = await d.kms(`encrypt --ring ${name} -o ${name}.between`, { stdin: 'between' });
  assert.equal(plain.code, 0, plain.stderr);

  const again = await d.kms(`keyring upgrade ${name}`);
  assert.equal(again.code, 0, `${where}: ${again.stderr}`);
  const whole = readPrivateKeys(await readFile(path, 'utf8'), path);
  assert.deepEqual(
    whole.map(({ kem }) => kem),
    ['x25519', 'mlkem768-x25519'],
    where,
  );
  const { ring: upgraded } = await d.json<Ring>(`keyring show ${name} --json`);
  assert.deepEqual([upgraded.kem, upgraded.publicKey], ['mlkem768-x25519', publicKeyOf(whole[1] ?? assert.fail())]);
  await encrypted(d, name, 'after');
  await opens(d, name, 'before', 'after');
  assert.equal((await d.kms(`decrypt ${name}.between`)).stdout, 'between', where);
  // The killed command left no files behind.
  const files = (await readdir(d.path('config', 'kms', 'rings'))).filter((file) => file.includes(name));
  assert.deepEqual(files.sort(), [`${name}.key`, `${name}.pub`], where);
}

test('killed before each change to a file', async () => {
  await using d = await servedDesk();
  let at = 0;
  for (; ; at += effort(3, 1)) {
    assert.ok(at < 60, 'it never came to its end');
    const name = `ring-${at}`;
    const before = await prepared(d, name);
    const { signal, code } = await spawned(d, ['keyring', 'upgrade', name], at);
    if (signal === null) {
      assert.equal(code, 0);
      break;
    }
    assert.equal(signal, 'SIGKILL');
    await isWholeAndFinished(d, name, before, `before change ${at}`);
  }
  assert.ok(at > 8, `${at} changes`);
});

// The test above covers changes to files between two requests.
test('killed after each request is done, before it is answered', async () => {
  await using d = await servedDesk();
  const { app } = d.appliance;
  const served = app.fetch.bind(app);
  let left = -1;
  app.fetch = async (request, env) => {
    const answer = await served(request, env);
    if (children.size === 0 || left-- !== 0) return answer;
    for (const child of children) child.kill('SIGKILL');
    return new Promise(() => {});
  };
  for (let nth = 0; ; nth += effort(3, 1)) {
    assert.ok(nth < 30, 'it never came to its end');
    const name = `ring-${nth}`;
    const before = await prepared(d, name);
    left = nth;
    const { signal, code } = await spawned(d, ['keyring', 'upgrade', name]);
    if (signal === null) {
      assert.equal(code, 0);
      assert.ok(nth >= 5, `${nth} requests`);
      break;
    }
    left = -1;
    await isWholeAndFinished(d, name, before, `after request ${nth}`);
  }
});

test('what another command writes to is left to it, unless that has ended', async () => {
  await using d = await servedDesk();
  const before = await prepared(d, 'payroll');
  const path = d.path('config', 'kms', 'rings', 'payroll.key');
  const gone = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
  await new Promise((resolve) => gone.once('exit', resolve));
  const run = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
  const began = (await readFile('/proc/self/stat', 'utf8')).replace(/^.*\) /s, '').split(' ')[19];
  for (const holder of [
    `${hostname()} ${process.pid} ${run}.${began} 0123456789ab`,
    `${hostname()} ${process.pid} - 0123456789ab`,
    `elsewhere ${gone.pid} ${run}.${began} 0123456789ab`,
    `${hostname()} ${gone.pid}`,
    '/etc/hostname',
  ]) {
    await symlink(holder, `${path}.new`);
    const { code, stderr } = await d.kms('keyring upgrade payroll');
    assert.deepEqual([code, /payroll\.key is being written to: there is a file .*\.new; wait/.test(stderr)], [1, true]);
    assert.deepEqual([await readlink(`${path}.new`), await readFile(path, 'utf8')], [holder, before]);
    await unlink(`${path}.new`);
  }
  // Its process id has been reused: since this boot, or after a later one.
  for (const beginning of [`${run}.${Number(began) - 1}`, `${run.replace(/./g, '0')}.${began}`]) {
    await symlink(`${hostname()} ${process.pid} ${beginning} 0123456789ab`, `${path}.new`);
    assert.equal((await d.kms('keyring upgrade payroll --prepare')).code, 0, beginning);
    assert.ok(!(await readdir(dirname(path))).includes('payroll.key.new'));
  }
  await symlink(`${hostname()} ${gone.pid} - 0123456789ab`, `${path}.new`);
  const ran = await Promise.all([1, 2, 3].map(() => d.kms('keyring upgrade payroll')));
  for (const { code, stderr } of ran) assert.ok(code === 0 || /is being written to/.test(stderr), stderr);
  await isWholeAndFinished(d, 'payroll', before, 'after a process that has ended');
});
