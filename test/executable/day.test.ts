// A first day with the executable: made, served, used, killed, served again; and its refusals.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { sealWords } from '../support/seal-words.ts';
import { kms, serve, workDirectory } from './kms.ts';

const cwd = workDirectory();
const plain = Buffer.alloc(300_000, 'seventeen letters');

test('a file encrypted before a kill -9 is decrypted after it', async () => {
  writeFileSync(join(cwd, 'plain'), plain);
  const first = await serve(cwd);
  assert.ok(first.apiKey, 'the root API key is shown');
  assert.equal((await kms(cwd, ['keyring', 'create', 'payroll'])).code, 0);
  assert.equal((await kms(cwd, ['encrypt', '--ring', 'payroll', '-o', 'secret', 'plain'])).code, 0);
  assert.ok(!readFileSync(join(cwd, 'secret')).includes('seventeen'));
  await first.end('SIGKILL');

  const offline = await kms(cwd, ['decrypt', '-o', 'offline', 'secret']);
  assert.equal(offline.code, 0, offline.stderr);
  const second = await serve(cwd);
  assert.equal(second.apiKey, undefined, 'the root API key is shown once');
  const again = await kms(cwd, ['decrypt', '-o', 'again', 'secret']);
  assert.equal(again.code, 0, again.stderr);
  for (const name of ['offline', 'again']) assert.ok(readFileSync(join(cwd, name)).equals(plain));

  const answer = await fetch(`${second.url}/ks/keyrings`, { headers: { authorization: `Bearer ${first.apiKey}` } });
  assert.equal(answer.status, 200);
  const busy = await kms(cwd, ['serve', '--listen', '127.0.0.1:0']);
  assert.equal(busy.code, 1);
  assert.match(
    busy.stderr,
    /^kms: kms already serves this directory at http:\/\/\S+ \(process \d+\); use that server, or stop it first\n$/,
  );
  assert.equal(await second.end('SIGTERM'), 0);
  assert.ok(!existsSync(join(cwd, 'kms-data', 'kms.sock')));
});

test('data and key are for their owner alone, and nothing of the data is on disk in clear', () => {
  const data = join(cwd, 'kms-data');
  assert.equal(statSync(data).mode & 0o777, 0o700);
  assert.equal(statSync(`${data}.master.key`).mode & 0o777, 0o600);
  for (const entry of readdirSync(data, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) {
      assert.equal(statSync(path).mode & 0o077, 0, path);
      const bytes = entry.name === 'kms.seal' ? sealWords(path) : readFileSync(path);
      for (const word of ['payroll', 'default', 'admin', 'kms_', 'ring_', 'apik_'])
        assert.ok(!bytes.includes(word), `${word} in ${path}`);
    }
  }
});

test('init on an appliance changes nothing', async () => {
  const before = readFileSync(join(cwd, 'kms-data', 'kms.seal'));
  const again = await kms(cwd, ['init']);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /^kms: .*is initialised already; nothing was changed.*\n$/);
  assert.ok(readFileSync(join(cwd, 'kms-data', 'kms.seal')).equals(before));
});

test('init answers one JSON document', async () => {
  const { code, stdout } = await kms(cwd, ['init', '--data', 'other', '--json']);
  assert.equal(code, 0);
  const made = JSON.parse(stdout);
  assert.match(made.apiKey.key, /^kms_[0-9A-Za-z]{49}$/);
  assert.deepEqual(made.apiKey.flags, { '*': true });
});

test('a wrong, damaged or missing key file is named before anything is touched', async () => {
  const wrong = await kms(cwd, ['status', '--key-file', 'other.master.key']);
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /needs [0-9a-f]{16}, got [0-9a-f]{16}/);
  const damaged = readFileSync(join(cwd, 'other.master.key'), 'utf8').replace(/\./, 'x');
  writeFileSync(join(cwd, 'damaged.key'), damaged);
  const broken = await kms(cwd, ['status', '--key-file', 'damaged.key']);
  assert.equal(broken.code, 1);
  const missing = await kms(cwd, ['status', '--key-file', 'none.key']);
  assert.equal(missing.code, 4);
  assert.match(missing.stderr, /the master key file is missing/);
});

test('no data directory: exit 3', async () => {
  for (const args of [['status'], ['keyring', 'list']]) {
    const { code, stderr } = await kms(cwd, [...args, '--data', 'nowhere']);
    assert.equal(code, 3, stderr);
  }
});

test('a damaged file stops the start, with its name, and nothing is changed', async () => {
  const seal = join(cwd, 'other', 'kms.seal');
  const whole = readFileSync(seal);
  const changed = Buffer.from(whole);
  changed.writeUInt8(changed.readUInt8(400) ^ 1, 400);
  writeFileSync(seal, changed);
  const { code, stderr } = await kms(cwd, ['status', '--data', 'other']);
  assert.equal(code, 1);
  assert.match(stderr, /kms\.seal/);
  assert.ok(readFileSync(seal).equals(changed));
  writeFileSync(seal, whole);
  assert.equal((await kms(cwd, ['status', '--data', 'other'])).code, 0);
});

test('a port in use: exit 1, and no data directory is made for nothing', async () => {
  const holder = createServer();
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
  const address = holder.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const { code, stderr } = await kms(cwd, ['serve', '--data', 'unmade', '--listen', `127.0.0.1:${port}`]);
  holder.close();
  assert.equal(code, 1);
  assert.match(stderr, new RegExp(`127\\.0\\.0\\.1:${port} is in use`));
  assert.ok(!existsSync(join(cwd, 'unmade')));
});

test('plain HTTP beyond this machine is refused', async () => {
  const { code, stderr } = await kms(cwd, ['serve', '--data', 'unmade', '--listen', '0.0.0.0:0']);
  assert.equal(code, 1);
  assert.match(stderr, /plain HTTP/);
  assert.ok(!existsSync(join(cwd, 'unmade')));
});

test('a directory of somebody else is left alone', async () => {
  const { code } = await kms(cwd, ['init', '--data', 'config']);
  assert.equal(code, 1);
  assert.deepEqual(readdirSync(join(cwd, 'config')), ['kms']);
});

test('nothing in the environment changes how the runtime behaves', async () => {
  const { code, stdout, stderr } = await kms(cwd, ['--version'], { NODE_OPTIONS: '--inspect=0 --require=/nowhere.js' });
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
  assert.equal(stderr, '');
});
