// The life of an appliance as typed: init, serve, commands with and without a server, and a data directory that is
// missing or moved.
import assert from 'node:assert/strict';
import { chmod, mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import test from 'node:test';
import { exitCodeOf } from '../../src/cli/exit.ts';
import { KmsError } from '../../src/errors.ts';
import { type Desk, desk } from './kms.ts';
import { serving } from './serving.ts';

interface First {
  readonly tenant: string;
  readonly accountId: string;
  readonly apiKey: { readonly key: string; readonly keyid: string; readonly flags: unknown };
}

interface Status {
  readonly sealed: boolean;
  readonly version: string;
  readonly tenants: readonly {
    readonly name: string;
    readonly hosts: readonly string[];
    readonly counts: { readonly keyrings: number };
  }[];
}

test('init makes a data directory, a master key beside it, and a root API key', async () => {
  await using d = await desk();
  const first = await d.json<First>('init --json');
  assert.deepEqual(Object.keys(first), ['tenant', 'accountId', 'apiKey']);
  assert.equal(first.tenant, 'default');
  assert.match(first.accountId, /^acct_/);
  assert.match(first.apiKey.key, /^kms_[0-9A-Za-z]{49}$/);
  assert.deepEqual(first.apiKey.flags, { '*': true });
  assert.equal((await stat(d.path('kms-data'))).mode & 0o777, 0o700);
  assert.equal((await stat(d.path('kms-data.master.key'))).mode & 0o777, 0o600);
  assert.deepEqual(await readdir(d.dir), ['kms-data', 'kms-data.master.key']);

  const before = await contents(d);
  const again = await d.kms('init');
  assert.deepEqual([again.code, again.stdout], [1, '']);
  assert.match(again.stderr, /^kms: .*initialised already; nothing was changed; .*\n$/);
  assert.deepEqual(await contents(d), before);
});

async function contents(d: Desk): Promise<unknown[]> {
  const names = await readdir(d.dir, { recursive: true, withFileTypes: true });
  const files = names
    .filter((entry) => entry.isFile() && entry.name !== 'kms.lock')
    .map((entry) => `${entry.parentPath}/${entry.name}`);
  return Promise.all(files.sort().map(async (file) => [file, (await readFile(file)).toString('hex')]));
}

test('init in words shows the key once, and where things are', async () => {
  await using d = await desk();
  const { code, stdout, stderr } = await d.kms('init --data there --key-file keys/master');
  assert.equal(code, 0);
  const lines = stdout.split('\n').map((line) => line.split(/ {2,}/));
  assert.deepEqual(
    lines.map(([name]) => name),
    ['data directory', 'master key', 'tenant', 'account', 'API key id', 'root API key', ''],
  );
  assert.deepEqual([lines[0]?.[1], lines[1]?.[1]], [d.path('there'), d.path('keys', 'master')]);
  const secret = lines[5]?.[1] ?? 'none';
  assert.match(secret, /^kms_/);
  assert.ok(!stderr.includes(secret));
  assert.equal((await d.kms('status --data there')).code, 0, 'the place of the key file is remembered');
});

for (const [line, code, stderr] of [
  ['init --custodian telepathy', 2, /^kms: --custodian: expected keyfile, .*, got "telepathy"; .*\n$/],
  ['init --server https://kms.example', 2, /^kms: --server: .*\n$/],
  ['init --data /dev/null/kms', 1, /^kms: .*\n$/],
  ['serve --listen nonsense', 2, /^kms: .*HOST:PORT.*\n$/],
  ['serve --listen 0.0.0.0:0', 1, /^kms: plain HTTP .*--tls-cert.*\n$/],
  ['serve --tls-cert x', 2, /^kms: .*--tls-key.*\n$/],
  ['serve --body-limit much', 2, /^kms: --body-limit: .*\n$/],
  ['serve --body-limit 0', 2, /^kms: --body-limit: expected at least 4096, got 0; see `kms serve --help`\n$/],
  ['serve --body-limit 4095', 2, /^kms: --body-limit: expected at least 4096, got 4095; .*\n$/],
  ['serve --ship-to . --ship-every 25d', 2, /^kms: --ship-every: expected at most 24d, got "25d"; .*\n$/],
  ['upgrade x --trusted-key y --time-limit 25d', 2, /^kms: --time-limit: expected at most 24d, got "25d"; .*\n$/],
  ['status', 3, /^kms: nothing to talk to: .*\n$/],
] as const) {
  test(`refused, and nothing made: ${line}`, async () => {
    await using d = await desk();
    const ran = await d.kms(line);
    assert.deepEqual([ran.code, ran.stdout], [code, '']);
    assert.match(ran.stderr, stderr);
    assert.deepEqual(await readdir(d.dir), []);
  });
}

test('a directory with other things in it is left alone', async () => {
  await using d = await desk();
  await mkdir(d.path('kms-data'));
  await writeFile(d.path('kms-data', 'thesis.txt'), 'mine');
  for (const line of ['init', 'serve --listen 127.0.0.1:0 --log-level silent', 'keyring list']) {
    const { code, stdout, stderr } = await d.kms(line);
    assert.deepEqual([code, stdout], [1, ''], line);
    assert.match(stderr, /^kms: [^\n]+\n$/, line);
    assert.deepEqual(await readdir(d.path('kms-data')), ['thesis.txt'], line);
  }
});

test('without a server a command opens the data directory itself', async () => {
  await using d = await desk();
  await d.json('init --json');
  const status = await d.json<Status>('status --json');
  assert.deepEqual([status.sealed, status.tenants.map(({ name }) => name)], [false, ['default']]);
  assert.match((await d.kms('status')).stdout, /^sealed +no\nversion +\S+\nserver +not running\n/);
  await d.json('keyring create r --json');
  await d.kms('encrypt --ring r -o x', { stdin: 'hi' });
  assert.equal((await d.kms('decrypt x')).stdout, 'hi');
  const [first] = (await d.json<Status>('status --json')).tenants;
  assert.equal(first?.counts.keyrings, 1);
});

test('several commands at once wait for each other', async () => {
  await using d = await desk();
  await d.json('init --json');
  const ran = await Promise.all(['a', 'b', 'c', 'd'].map((name) => d.kms(`keyring create ${name}`)));
  assert.deepEqual(
    ran.map(({ code }) => code),
    [0, 0, 0, 0],
  );
  const { data } = await d.json<{ data: { name: string }[] }>('keyring list --json');
  assert.deepEqual(data.map(({ name }) => name).sort(), ['a', 'b', 'c', 'd']);
});

test('without its master key it is sealed: exit code 4', async () => {
  await using d = await desk();
  await d.json('init --json');
  await rename(d.path('kms-data.master.key'), d.path('away'));
  for (const line of ['keyring list', 'encrypt --ring r x', 'status']) {
    await writeFile(d.path('x'), '');
    await mkdir(d.path('config/kms/rings'), { recursive: true });
    await writeFile(d.path('config/kms/rings/r.key'), Buffer.alloc(32, 1).toString('base64'), { mode: 0o600 });
    const { code, stderr } = await d.kms(line);
    assert.equal(code, 4, line);
    assert.match(stderr, /^kms: the master key file is missing: looked for [^\n]+\n$/, line);
  }
  const { code, stdout } = await d.kms('status --json');
  assert.deepEqual([code, JSON.parse(stdout).sealed], [4, true]);
  assert.equal((await d.kms('status --key-file away')).code, 0);
  assert.equal((await d.kms('status', { env: { KMS_KEY_FILE: d.path('away') } })).code, 0);
});

test('with another master key it is refused before anything is touched', async () => {
  await using d = await desk();
  await d.json('init --json');
  await d.json('init --json --data other');
  const { code, stdout, stderr } = await d.kms('keyring list --key-file other.master.key');
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /^kms: wrong master key file: needs \S+, got \S+; [^\n]+\n$/);
});

test('serve initialises, shows the key once, answers over network and socket, and ends when asked', async () => {
  await using d = await desk();
  const server = await serving(d, ['--json']);
  assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
  const status = await d.kms('status');
  assert.match(status.stdout, /^server +running$/m);
  await d.json('keyring create r --json');
  const inUse = await d.kms('serve --listen 127.0.0.1:0 --log-level silent');
  assert.deepEqual([inUse.code, inUse.stdout], [1, '']);
  assert.equal(
    inUse.stderr,
    `kms: kms already serves this directory at ${server.url} (process ${process.pid}); use that server, or stop it first\n`,
  );

  const ran = await server.stop();
  assert.equal(ran.code, 0);
  const first: First = JSON.parse(ran.stdout);
  assert.ok(!ran.stderr.includes(first.apiKey.key));
  assert.equal(ran.stdout.split(first.apiKey.key).length, 2);
  const gone = await d.kms(['keyring', 'list', '--server', server.url], { env: { KMS_API_KEY: first.apiKey.key } });
  assert.equal(gone.code, 3);

  const second = await serving(d);
  await writeFile(d.path('key'), `${first.apiKey.key}\n`, { mode: 0o600 });
  const args = ['--server', second.url, '--api-key-file', 'key'];
  const listed = await d.json<{ data: { name: string }[] }>(['keyring', 'list', '--json', ...args]);
  assert.deepEqual(
    listed.data.map(({ name }) => name),
    ['r'],
  );
  const shown = (await d.kms(['status', ...args])).stdout;
  for (const line of [
    `server +${second.url}`,
    'sealed +no',
    'status +ready',
    'last verified backup +none',
    'disk +\\d+ % free',
  ]) {
    assert.match(shown, new RegExp(`^${line}$`, 'm'));
  }
  assert.equal((await d.json(['status', '--json', '--server', second.url])).sealed, false);
  await chmod(d.path('key'), 0o644);
  assert.equal((await d.kms(['keyring', 'list', ...args])).code, 1, 'others can read the key');
  const again = await second.stop();
  assert.deepEqual([again.code, again.stdout], [0, '']);
  assert.equal((await d.kms('keyring show r')).code, 0, 'in process again');
});

test('a port in use is found before anything is made', async () => {
  await using d = await desk();
  const server = await serving(d);
  const { host } = new URL(server.url);
  const { code, stdout, stderr } = await d.kms(`serve --data other --listen ${host} --log-level silent`);
  assert.deepEqual(
    [code, stdout, stderr],
    [
      1,
      '',
      `kms: ${host} is in use by another program; stop that one, or choose another address with --listen (port 0 picks a free one)\n`,
    ],
  );
  assert.ok(!(await readdir(d.dir)).includes('other'));
  await server.stop();
});

test('the tenant of a local command is named with --tenant', async () => {
  await using d = await desk();
  await d.json('init --json');
  assert.equal((await d.kms('keyring list --tenant default')).code, 0);
  const { code, stderr } = await d.kms('keyring list --tenant nobody');
  assert.deepEqual([code, stderr], [1, 'kms: no tenant has that name; there are: default; check the name or id\n']);
});

test('serve says where it listens, and beside it what clients use', async () => {
  await using d = await desk();
  const said = async (...args: string[]): Promise<string> => {
    const server = await serving(d, args);
    const { stderr } = await server.stop();
    return /^kms: listening on .*$/m.exec(stderr)?.[0].replace(/:[0-9]+/, ':PORT') ?? stderr;
  };
  assert.equal(await said(), 'kms: listening on http://127.0.0.1:PORT');
  assert.equal(
    await said('--url', 'https://kms.example/'),
    'kms: listening on http://127.0.0.1:PORT (clients use https://kms.example)',
  );
});

test('a server that answers 503 was reached: exit code 1, also where a command says more of it', async () => {
  await using d = await desk();
  const server = await serving(d);
  try {
    await rename(d.path('kms-data'), d.path('moved'));
    // The write that finds the directory gone fails, which is not a 503.
    assert.equal((await d.kms('keyring create r --data moved')).code, 1);
    for (const line of ['keyring create r', 'backup create b.kms-backup', 'tenant rekey default', 'status', 'doctor']) {
      const { code, stderr } = await d.kms([...line.split(' '), '--data', 'moved']);
      if (line !== 'doctor') assert.match(stderr, /the data directory was removed, moved or replaced/, line);
      assert.equal(code, 1, line);
    }
  } finally {
    await rename(d.path('moved'), d.path('kms-data'));
    await server.stop();
  }
  assert.equal((await d.kms('keyring list --data moved')).code, 3, 'nothing is there');
  const cause = new KmsError('unavailable', 'no room', { body: { message: 'no room' } });
  assert.equal(exitCodeOf(new KmsError('unavailable', 'not made: no room', { cause })), 1);
});
