// `kms doctor` as typed: without a server, with one, and with one that is sealed.
import assert from 'node:assert/strict';
import { chmod, copyFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { desk } from './kms.ts';
import { serving } from './serving.ts';

interface Report {
  readonly ok: boolean;
  readonly stores: number;
  readonly activities: number;
  readonly crypto?: object;
  readonly findings: readonly { readonly severity: string; readonly name: string; readonly advice: string }[];
}

test('a sound appliance: exit code 0, in words and as JSON', async () => {
  await using d = await desk();
  await d.json('init --json');
  const { code, stdout, stderr } = await d.kms('doctor');
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(stdout, /^advice single-custodian: .*\n {2}add another one/m);
  assert.match(stdout, /^examined: 2 stores, 0 activities; errors: 0, warnings: 0, advice: \d+\n$/m);
  const report = await d.json<Report>('doctor --json');
  assert.deepEqual([report.ok, report.stores, report.activities, report.crypto], [true, 2, 0, undefined]);
});

test('on a terminal no line is wider than it, and advice stays behind its indent', async () => {
  await using d = await desk();
  await d.json('init --json');
  const tty = { stdout: true, columns: 60 };
  const { stdout } = await d.kms('doctor', { tty, env: { NO_COLOR: '1' } });
  const lines = stdout.trimEnd().split('\n');
  const isPath = (line: string): boolean => /^ *\S{50,}$/.test(line);
  for (const line of lines) assert.ok(line.length <= 60 || isPath(line), line);
  const whole = (await d.kms('doctor')).stdout;
  assert.equal(stdout.replace(/\s+/g, ' '), whole.replace(/\s+/g, ' '));
  const remedy = stdout.slice(stdout.indexOf('\n  ') + 1).split(/\n(?! {2})/)[0] ?? '';
  assert.ok(
    remedy.split('\n').every((line) => line.startsWith('  ')),
    remedy,
  );
  const coloured = (await d.kms('doctor', { tty })).stdout;
  assert.equal(stripVTControlCharacters(coloured), stdout, 'colours break no line elsewhere');
});

test('keyrings that are not hybrid yet are advice for each tenant, with a server and without, until they are', async () => {
  await using d = await desk();
  await d.json('init --json');
  await d.json('tenant create blue --host blue.example --json');
  const told = async (): Promise<string[]> => {
    const { code, stdout } = await d.kms('doctor');
    assert.equal(code, 0, stdout);
    return stdout.match(/^advice ring-x25519: .*$/gm) ?? [];
  };
  await d.json('keyring create hybrid --tenant default --json');
  assert.deepEqual(await told(), []);
  for (let n = 0; n < 7; n++) await d.json(`keyring create Ring-${n} --kem x25519 --tenant default --json`);
  await d.json('keyring create gone --kem x25519 --tenant blue --json');
  await d.json('keyring create vault --kem x25519 --tenant blue --json');
  await d.json('asym create wrapped --tenant blue --json');
  await d.kms('keyring delete gone --tenant blue --yes');
  const saying = (tenant: string, rings: string): string =>
    `advice ring-x25519: tenant ${tenant}: keyrings of x25519, whose keys a quantum computer could unwrap one day: ${rings}`;
  const all = [saying('default', '7 (Ring-0, Ring-1, Ring-2, Ring-3, Ring-4, …)'), saying('blue', '1 (vault)')];
  assert.deepEqual((await told()).sort(), all.toSorted());
  assert.match((await d.kms('doctor')).stdout, /^ {2}`kms keyring upgrade NAME` makes one hybrid/m);
  const server = await serving(d);
  try {
    assert.deepEqual((await told()).sort(), all.toSorted());
    for (const [tenant, ring] of [
      ['blue', 'vault'],
      ['default', 'Ring-0'],
      ['default', 'Ring-1'],
    ]) {
      assert.equal((await d.kms(`keyring upgrade ${ring} --tenant ${tenant}`)).code, 0);
    }
    assert.deepEqual(await told(), [saying('default', '5 (Ring-2, Ring-3, Ring-4, Ring-5, Ring-6)')]);
  } finally {
    await server.stop();
  }
});

test('what is wrong is named with what to do: exit code 1', async () => {
  await using d = await desk();
  await d.json('init --json');
  await chmod(d.path('kms-data'), 0o755);
  await writeFile(d.path('kms-data', 'notes.txt'), '', { mode: 0o600 });
  const { code, stdout } = await d.kms('doctor');
  assert.equal(code, 1);
  assert.match(stdout, /^error data-exposed: \S+kms-data: everybody .*\(mode 0755\)\n {2}run: chmod 0700 /m);
  assert.match(stdout, /^warning unknown-file: \S+notes\.txt: /m);
  assert.match(stdout, /errors: 1, warnings: 1, /);
  const asJson = await d.kms('doctor --json');
  assert.equal(asJson.code, 1);
  const report: Report = JSON.parse(asJson.stdout);
  assert.equal(report.ok, false);
  assert.equal(report.findings[0]?.name, 'data-exposed');
});

test('a running server examines its own stores while it serves', async () => {
  await using d = await desk();
  const server = await serving(d);
  await d.json('keyring create r --json');
  const sound = await d.json<Report>('doctor --json');
  assert.deepEqual([sound.ok, sound.stores], [true, 2]);
  assert.ok(sound.activities >= 1);
  assert.deepEqual(sound.crypto, { by: 'node', openssl: process.versions.openssl });

  const [tenant = ''] = await readdir(d.path('kms-data', 'tenants'));
  const log = d.path('kms-data', 'tenants', tenant, 'log-0000000001.kms');
  const bytes = await readFile(log);
  bytes.writeUInt8(bytes.readUInt8(200) ^ 1, 200);
  await writeFile(log, bytes);
  const { code, stdout } = await d.kms('doctor');
  assert.equal(code, 1);
  assert.match(stdout, /^error damaged: tenants\/[0-9a-f]+: \S+log-0000000001\.kms at offset \d+: /m);
  assert.equal((await d.kms('keyring show r')).code, 0, 'it serves on');
  await server.stop();
});

test('a server is found out whose certificate the next start would refuse, though it serves on with the one before', async () => {
  await using d = await desk();
  assert.equal((await d.kms('tls self-signed --host localhost')).code, 0);
  const server = await serving(d, ['--tls-cert', 'cert.pem', '--tls-key', 'key.pem']);
  try {
    assert.equal((await d.kms('doctor')).code, 0);
    assert.equal((await d.kms('tls self-signed --host localhost --out other')).code, 0);
    await copyFile(d.path('other', 'key.pem'), d.path('key.pem'));
    const { code, stdout } = await d.kms('doctor');
    assert.equal(code, 1);
    assert.match(stdout, /^error certificate-refused: \S*key\.pem: .* belong together\n {2}give a PEM /m);
  } finally {
    await server.stop();
  }
  const pair = ['--tls-cert', 'cert.pem', '--tls-key', 'key.pem'];
  const found = await d.kms(['doctor', ...pair]);
  assert.deepEqual([found.code, found.stdout.match(/^error \S+/gm)], [1, ['error certificate-refused:']]);
  assert.match((await d.kms(['serve', '--listen', '127.0.0.1:0', ...pair])).stderr, / belong together; give a PEM /);
});

test('a sealed server says so', async () => {
  await using d = await desk();
  const passphrase = { KMS_PASSPHRASE: 'correct horse battery staple 42' };
  assert.equal((await d.kms('init --custodian passphrase --json', { env: passphrase })).code, 0);
  const server = await serving(d);
  const { code, stdout } = await d.kms('doctor');
  assert.equal(code, 1);
  assert.match(stdout, /^warning sealed: .*stores were not examined: .*sealed/m);
  await server.stop();
  assert.match((await d.kms('doctor')).stdout, /^warning sealed: /m);
  assert.equal((await d.kms('doctor', { env: passphrase })).code, 0);
});

test('the machine of the appliance, and an appliance, are needed', async () => {
  await using d = await desk();
  assert.equal((await d.kms('doctor')).code, 3);
  assert.equal((await d.kms('doctor --server https://kms.example')).code, 2);
});

test('status and doctor say what does the primitives', async () => {
  await using d = await desk();
  for (const [args, line] of [
    [[], `node:crypto (OpenSSL ${process.versions.openssl})`],
    [['--crypto', 'noble'], 'noble'],
  ] as const) {
    const server = await serving(d, args);
    const status = (await d.kms('status')).stdout;
    assert.equal(/^crypto +(.*)$/m.exec(status)?.[1], line);
    const doctor = (await d.kms('doctor')).stdout;
    assert.match(doctor, /^examined: 2 stores, \d+ activities; crypto: .*; errors: 0, warnings: 0, advice: \d+\n$/m);
    assert.equal(/; crypto: (.*); errors/.exec(doctor)?.[1], line);
    await server.stop();
  }
  assert.doesNotMatch((await d.kms('status')).stdout, /^crypto/m, 'nobody serves');
  const { code, stderr } = await d.kms('serve --crypto openssl');
  assert.deepEqual(
    [code, stderr],
    [2, 'kms: --crypto: expected node or noble, got "openssl"; see `kms serve --help`\n'],
  );
});
