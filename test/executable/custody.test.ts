// Five people hold the master key, and three of them open the appliance: with the executable, on its socket and over
// HTTPS, each on their own. Also copies that are restored with a recovery kit alone.
import assert from 'node:assert/strict';
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Ended, kms, serve, workDirectory } from './kms.ts';

interface Answer {
  readonly status: number | undefined;
  readonly body: { readonly message?: string; readonly progress?: number; readonly sealed?: boolean };
}

/** A request over HTTPS to a server whose certificate is in `tls`. */
function ask(cwd: string, base: string, method: string, path: string, body?: object): Promise<Answer> {
  const { port } = new URL(base);
  const ca = readFileSync(join(cwd, 'tls', 'cert.pem'));
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const sent = request({ host: '127.0.0.1', port, method, path, ca, headers, agent: false }, (answer) => {
      let text = '';
      answer.on('data', (chunk) => {
        text += chunk;
      });
      answer.on('end', () => resolve({ status: answer.statusCode, body: JSON.parse(text) }));
    });
    sent.on('error', reject);
    sent.end(body && JSON.stringify(body));
  });
}

test('three of five people unseal it, wherever they are, as often as it is sealed', async () => {
  const cwd = workDirectory();
  const made = await kms(cwd, ['init', '--custodian', 'shares', '--shares', '5', '--threshold', '3', '--json']);
  const { shares, apiKey } = JSON.parse(made.stdout);
  assert.equal(shares.length, 5);
  assert.deepEqual(readdirSync(cwd), ['kms-data'], 'there is no key file');
  const other = await kms(cwd, [
    'init',
    '--custodian',
    'shares',
    '--shares',
    '3',
    '--threshold',
    '3',
    '--json',
    '--data',
    'other',
  ]);
  const [foreign] = JSON.parse(other.stdout).shares;
  await kms(cwd, ['tls', 'self-signed', '--host', '127.0.0.1', '--out', 'tls']);
  const tls = ['--tls-cert', 'tls/cert.pem', '--tls-key', 'tls/key.pem'];
  const server = await serve(cwd, [...tls, '--log-level', 'debug']);
  const away = ['--server', server.url, '--ca-file', 'tls/cert.pem'];
  const enter = (share: string, args: readonly string[] = []): Promise<Ended> =>
    kms(cwd, ['unseal', '--json', ...args], {}, undefined, `${share}\n`);
  const progress = async (): Promise<unknown> => (await ask(cwd, server.url, 'GET', '/system/seal-status')).body;
  const sealed = (given: number) => ({ sealed: true, kinds: ['shares'], threshold: 3, progress: given });

  for (const [method, path] of [
    ['GET', '/readyz'],
    ['GET', '/metrics'],
    ['GET', '/openapi.json'],
    ['GET', '/ks/keyrings'],
    ['POST', '/ks/encrypt'],
    ['POST', '/auth/basic/login'],
    ['POST', '/system/backup'],
    ['GET', '/console/'],
  ] as const) {
    const { status, body } = await ask(cwd, server.url, method, path, method === 'POST' ? {} : undefined);
    assert.equal(status, 503, path);
    assert.ok(body.message, path);
  }
  assert.deepEqual(await ask(cwd, server.url, 'GET', '/healthz'), { status: 200, body: { status: 'ok' } });
  assert.equal((await kms(cwd, ['status'])).code, 4);
  assert.equal((await kms(cwd, ['status', ...away])).code, 4);
  assert.equal((await kms(cwd, ['keyring', 'list'])).code, 4);

  assert.deepEqual(JSON.parse((await enter(shares[4])).stdout), sealed(1));
  assert.deepEqual(JSON.parse((await enter(shares[4], away)).stdout), sealed(1), 'the same share counts once');
  const mistyped = await enter(
    shares[2].replace(/.$/, (end: string) => (end === '0' ? '1' : '0')),
    away,
  );
  assert.equal(mistyped.code, 1);
  assert.match(
    mistyped.stderr,
    /^kms: share 3 of the set [0-9a-f]{8} is mistyped: .*enter it again; shares entered before still count\n$/,
  );
  const strange = await enter(foreign);
  assert.equal(strange.code, 1);
  assert.match(
    strange.stderr,
    /does not belong to this appliance: needs one of the set [0-9a-f]{8}, got one of [0-9a-f]{8}/,
  );
  assert.deepEqual(await progress(), sealed(1));
  assert.deepEqual((await ask(cwd, server.url, 'POST', '/system/unseal', { share: shares[0] })).body, sealed(2));
  assert.deepEqual(JSON.parse((await kms(cwd, ['unseal', '--reset', '--json'])).stdout), sealed(0));
  assert.match((await kms(cwd, ['status'])).stdout, /^shares {6}0 of 3$/m);

  for (const chosen of [
    [1, 2, 3],
    [4, 0, 2],
  ]) {
    for (const [i, number] of chosen.entries()) {
      const { code, stdout, stderr } = await enter(shares[number], i === 1 ? away : []);
      assert.equal(code, 0, stderr);
      assert.deepEqual(JSON.parse(stdout), i < 2 ? sealed(i + 1) : { sealed: false, kinds: ['shares'] });
    }
    assert.equal((await ask(cwd, server.url, 'GET', '/readyz')).status, 200);
    const used = await kms(cwd, ['keyring', 'list', ...away], { KMS_API_KEY: apiKey.key });
    assert.equal(used.code, 0, used.stderr);
    assert.equal((await kms(cwd, ['seal'])).code, 0);
    assert.deepEqual(await progress(), sealed(0));
  }
  assert.equal(await server.end('SIGTERM'), 0);
  for (const share of [...shares, foreign])
    assert.ok(!server.output().includes(share.slice(24)), 'no share in the log');
});

test('a backup, a recovery kit and the executable are enough', async () => {
  const cwd = workDirectory();
  await kms(cwd, ['init', '--recovery-kit', 'kit.txt']);
  await kms(cwd, ['keyring', 'create', 'payroll']);
  assert.equal((await kms(cwd, ['backup', 'create', 'all.kms-backup'])).code, 0);
  const elsewhere = workDirectory();
  for (const name of ['kit.txt', 'all.kms-backup']) copyFileSync(join(cwd, name), join(elsewhere, name));
  const kit = ['--data', 'back', '--key-file', 'kit.txt'];
  rmSync(join(cwd, 'kms-data.master.key'));
  const restored = await kms(elsewhere, ['restore', 'all.kms-backup', ...kit]);
  assert.equal(restored.code, 0, restored.stderr);
  assert.deepEqual(readdirSync(elsewhere).sort(), ['all.kms-backup', 'back', 'kit.txt'], 'no copy of the kit is made');
  const server = await serve(elsewhere, kit);
  assert.match((await kms(elsewhere, ['keyring', 'list', '--data', 'back'])).stdout, /^payroll /m);
  assert.equal(await server.end('SIGTERM'), 0);
  assert.equal((await kms(elsewhere, ['status', '--data', 'back'])).code, 4, 'nothing but the kit opens it');
});

test('files of the first release open; what is newer is refused with a line that says so, and stays as it is', async () => {
  const cwd = workDirectory();
  const kept = new URL('../compat/backup-1/', import.meta.url);
  writeFileSync(join(cwd, 'key'), readFileSync(new URL('master-key.txt', kept)), { mode: 0o600 });
  const { pathname: backup } = new URL('backup.kms-backup', kept);
  const { pathname: shipped } = new URL('shipped', kept);
  for (const from of [backup, shipped]) {
    const data = from === backup ? 'one' : 'two';
    const { code, stderr } = await kms(cwd, ['restore', from, '--data', data, '--key-file', 'key']);
    assert.equal(code, 0, stderr);
    assert.match((await kms(cwd, ['keyring', 'list', '--data', data])).stdout, /^payroll /m);
  }
  const log = join(cwd, 'one', 'system', 'log-0000000001.kms');
  const seal = join(cwd, 'two', 'kms.seal');
  const newer: readonly (readonly [file: string, change: (bytes: Buffer) => Buffer, args: readonly string[]])[] = [
    [log, (bytes) => bytes.fill(2, 9, 10), ['status', '--data', 'one']],
    [seal, (bytes) => Buffer.from(`${bytes}`.replace('"version": 1', '"version": 9')), ['status', '--data', 'two']],
    [join(cwd, 'copy'), (bytes) => bytes.fill(2, 9, 10), ['restore', 'copy', '--data', 'three', '--key-file', 'key']],
  ];
  copyFileSync(backup, join(cwd, 'copy'));
  for (const [file, change, args] of newer) {
    const bytes = change(readFileSync(file));
    writeFileSync(file, bytes);
    const { code, stderr } = await kms(cwd, args);
    assert.equal(code, 1, stderr);
    assert.match(stderr, /^kms: [^\n]*newer[^\n]*\n$/);
    assert.ok(readFileSync(file).equals(bytes));
  }
  assert.ok(!readdirSync(cwd).includes('three'));
});
