// Commands × ways in which a data directory of another's making is found: none runs a command from its seal or its
// journal, none opens one that belongs to another user, and none opens one named in other software's files.
import assert from 'node:assert/strict';
import { chown, cp, lstat, mkdir, readdir, readFile, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { parseRecipient } from '../../src/client/age-keys.ts';
import { sourcesFor } from '../../src/custody/key-sources.ts';
import { parseHeader } from '../../src/seal/header.ts';
import { stanza, talk } from '../support/age-client.ts';
import { type Desk, desk, type RunOptions } from './kms.ts';
import { serving } from './serving.ts';

const isRoot = process.geteuid?.() === 0;

/** Commands of every kind that would open the directory here. */
const lines = [
  'status',
  'doctor',
  'unseal',
  'keyring list',
  'keyring create payroll',
  'keyring show payroll --json',
  'asym create pairs',
  'user list',
  'account list',
  'apikey list',
  'activity search',
  'activity verify',
  'asset search',
  'tenant list',
  'tenant rekey default',
  'key list',
  'tang list',
  'master list',
  'master rotate',
  'master add-custodian shares --shares 2 --threshold 2',
  'recovery-kit',
  'backup create out.kms-backup',
  'encrypt --ring payroll input',
  'age recipient payroll',
  'age identity payroll',
  'tofu-key --ring payroll',
  'kubernetes-plugin --ring payroll --listen unix:///SOCKET',
  'serve --listen 127.0.0.1:0 --log-level silent',
  'standby promote',
  'upgrade --resume',
  'move --undo',
] as const;

/** An appliance whose seal has a command that records that it ran, and an upgrade journal with such commands. */
async function planted(d: Desk): Promise<void> {
  const secret = 'ab'.repeat(32);
  const script = `#!/bin/sh\necho ran >> '${d.path('ran')}'\necho ${secret}\n`;
  await writeFile(d.path('give'), script, { mode: 0o755 });
  const made = await d.kms(['init', '--custodian', 'exec', '--exec', d.path('give'), '--data', 'kms-data']);
  assert.equal(made.code, 0, made.stderr);
  const run = `echo ran >> '${d.path('ran')}'`;
  const digest = { version: '0.1.0', sha256: '0'.repeat(64) };
  const journal = {
    format: 1,
    step: 'stopping',
    token: 'ab'.repeat(32),
    executable: d.path('give'),
    from: digest,
    to: digest,
    service: { kind: 'commands', stop: run, start: run },
    probes: [],
    startedAt: '2026-01-02T00:00:00.000Z',
  };
  await writeFile(d.path('journal'), `${JSON.stringify(journal)}\n`, { mode: 0o600 });
  await writeFile(d.path('input'), 'attack at dawn');
  await rm(d.path('ran'));
}

async function hasRun(d: Desk): Promise<boolean> {
  return lstat(d.path('ran')).then(
    () => true,
    () => false,
  );
}

/** Commands that run until a signal ends them, with success. */
const runsOn = /^(serve|kubernetes-plugin) /;

/** Runs the line, and ends a command that would not end by itself. */
async function tried(d: Desk, line: string, options: RunOptions = {}) {
  const signal = AbortSignal.timeout(runsOn.test(line) ? 2000 : 60_000);
  const journal = d.path('kms-data', 'kms.upgrade');
  // Only for this command: while the journal is there, no other command works in the directory.
  if (line.startsWith('upgrade')) await cp(d.path('journal'), journal);
  const stdin = line.startsWith('tofu-key') ? 'null' : '';
  try {
    return await d.kms(line.replace('/SOCKET', d.path('plugin.sock')), { signal, stdin, ...options });
  } finally {
    await rm(journal, { force: true });
  }
}

async function seenIn(dir: string): Promise<readonly string[]> {
  return (await readdir(dir, { recursive: true })).filter((name) => !/kms\.(lock|pid|sock)/.test(name)).sort();
}

test('a directory that is merely there: nothing that it says is run, whatever the command', async () => {
  await using d = await desk();
  await planted(d);
  const before = await seenIn(d.path('kms-data'));
  for (const line of lines) {
    const { code, stderr } = await tried(d, line);
    assert.ok(!(await hasRun(d)), `${line}: ${stderr}`);
    if (!runsOn.test(line)) assert.notEqual(code, 0, `${line}: ${stderr}`);
    assert.deepEqual(await seenIn(d.path('kms-data')), before, line);
  }
  const said = await tried(d, 'keyring list');
  assert.match(
    said.stderr,
    /the command \S+give was not run: the data directory that names it was not given explicitly/,
  );
  // It runs for a named directory, and the check above notices.
  assert.equal((await tried(d, 'keyring list --data kms-data')).code, 0);
  assert.ok(await hasRun(d));
});

test('while a default profile is set, a directory that is merely there is not opened at all', async () => {
  await using d = await desk();
  await planted(d);
  const added = await d.kms('profile add far --server http://127.0.0.1:9', { stdin: 'kms_abc' });
  assert.equal(added.code, 0, added.stderr);
  assert.equal((await d.kms('profile use far')).code, 0);
  const before = await seenIn(d.path('kms-data'));
  for (const line of lines) {
    const { code, stderr } = await tried(d, line);
    if (!runsOn.test(line)) assert.notEqual(code, 0, `${line}: ${stderr}`);
    assert.match(stderr, /was not named|127\.0\.0\.1:9|--from|works on the machine/, `${line}: ${stderr}`);
    assert.ok(!(await hasRun(d)), line);
    assert.deepEqual(await seenIn(d.path('kms-data')), before, line);
  }
  const { stderr } = await tried(d, 'master list');
  assert.match(stderr, /commands go to the profile far by default, and it was not named; .* --data \S+kms-data$/m);
});

test('a directory of another user, or a link to one, is not opened unless it is named', { skip: !isRoot }, async () => {
  await using d = await desk();
  await planted(d);
  await chown(d.path('kms-data'), 65_532, 65_532);
  for (const way of ['itself', 'a link'] as const) {
    if (way === 'a link') {
      await rename(d.path('kms-data'), d.path('theirs'));
      await symlink('theirs', d.path('kms-data'));
    }
    for (const line of lines) {
      const { code, stderr } = await tried(d, line);
      if (!runsOn.test(line)) assert.notEqual(code, 0, line);
      const why = way === 'a link' ? 'is a symbolic link' : 'belongs to another user';
      assert.ok(stderr.includes(`kms-data ${why}, and it was not named`), `${way}, ${line}: ${stderr}`);
      assert.ok(!(await hasRun(d)), line);
    }
  }
});

test('a recipient or an identity that names a directory opens none that the user did not name', async () => {
  await using d = await desk();
  await planted(d);
  const named = { env: { KMS_DATA: d.path('kms-data'), XDG_CONFIG_HOME: d.path('config') } };
  assert.equal((await d.kms('keyring create payroll', named)).code, 0);
  const recipient = (await d.kms('age recipient payroll', named)).stdout.trim();
  const { identity } = await d.json<{ identity: string }>('age identity payroll --json', named);
  assert.deepEqual(parseRecipient(recipient).place, { kind: 'data', name: d.path('kms-data') });
  await rm(d.path('ran'));
  const speak = async (machine: string, first: string, options: RunOptions) => {
    const { stdin, onStdout, said } = talk(first);
    const { code } = await d.kms(['__age-plugin', `--age-plugin=${machine}`], { ...options, stdin, onStdout });
    return { code, said };
  };
  const wrap = stanza('wrap-file-key', [], new Uint8Array(16));
  for (const env of [{}, { KMS_DATA: d.path('elsewhere') }]) {
    for (const first of [stanza('add-recipient', [recipient]), stanza('add-identity', [identity])]) {
      const { said } = await speak('recipient-v1', `${first}${wrap}`, { env });
      assert.match(
        String(said[0]?.body),
        /no server runs on \S+kms-data, and a directory that a recipient or an identity names is not opened/,
      );
      assert.ok(!(await hasRun(d)));
    }
  }
  // It runs if the user named the directory, and through the server that runs there.
  const { said } = await speak('recipient-v1', `${stanza('add-recipient', [recipient])}${wrap}`, named);
  assert.equal(said[0]?.type, 'recipient-stanza');
  assert.ok(await hasRun(d));
  const server = await serving(d, ['--data', 'kms-data']);
  await rm(d.path('ran'));
  const asked = await speak('recipient-v1', `${stanza('add-recipient', [recipient])}${wrap}`, {});
  assert.equal(asked.said[0]?.type, 'recipient-stanza');
  assert.ok(!(await hasRun(d)));
  await server.stop();
});

test('a key file that the seal alone names is not taken from the data directory, nor from another user', async () => {
  await using d = await desk();
  await d.json('init --json --key-file elsewhere.key');
  assert.equal((await d.kms('keyring list')).code, 0, 'where init put it');
  // An attacker who writes the seal also writes a key file.
  await d.json('init --json --data planted --key-file planted-key');
  await rename(d.path('planted-key'), d.path('planted', 'key'));
  const seal = await readFile(d.path('planted', 'kms.seal'), 'utf8');
  await mkdir(d.path('inner'));
  await cp(d.path('planted', 'key'), d.path('inner', 'key'));
  const { header } = parseHeader(Buffer.from(seal), 'kms.seal');
  const sources = (file: string) =>
    sourcesFor(
      { data: d.path('planted'), seal: Buffer.from(seal) },
      header.slots.map((slot) => ({ ...slot, params: { file } })),
      { env: () => undefined },
    );
  const find = async (file: string) =>
    sources(file)
      .find(({ place }) => place === file)
      ?.find();
  await assert.rejects(find(d.path('planted', 'key')), /the seal alone says .* it lies in the data directory/);
  await symlink(d.path('planted', 'key'), d.path('link'));
  await assert.rejects(find(d.path('link')), /it lies in the data directory/);
  assert.equal((await find(d.path('inner', 'key')))?.length, 32);
  // A key inside a larger file is not a key file: others may have chosen a log's contents.
  const line = await readFile(d.path('inner', 'key'), 'utf8');
  await writeFile(d.path('inner', 'log'), `one\n${line}two\n`, { mode: 0o600 });
  await assert.rejects(find(d.path('inner', 'log')), /expected one line that starts with/);
  await truncate(d.path('inner', 'log'), 2 ** 40);
  await assert.rejects(find(d.path('inner', 'log')), /found more than 65536 bytes/);
  for (const device of ['/dev/zero', '/dev/ptmx', '/dev/stdin', '/dev']) {
    await assert.rejects(find(device), /expected a (?:file|key)|found a (?:device|directory)/, device);
  }
  if (!isRoot) return;
  await chown(d.path('inner', 'key'), 65_531, 65_531);
  await assert.rejects(find(d.path('inner', 'key')), /it belongs to another user/);
});

test('a named directory: a command is run for its owner alone, and not where others can write', {
  skip: !isRoot,
}, async () => {
  await using d = await desk();
  await planted(d);
  const seal = await readFile(d.path('kms-data', 'kms.seal'));
  const { header } = parseHeader(seal, 'kms.seal');
  const find = (read: Uint8Array = seal) =>
    sourcesFor({ data: d.path('kms-data'), seal: read }, header.slots, { commands: 'run', env: () => undefined })
      .at(-1)
      ?.find();
  const { chmod } = await import('node:fs/promises');
  for (const path of [d.dir, d.path('kms-data')]) await chmod(path, 0o755);
  const cases: readonly (readonly [what: string, change: () => Promise<unknown>, expected: RegExp | undefined])[] = [
    ['root and its own', async () => {}, undefined],
    ['a directory that its group can write to', () => chmod(d.path('kms-data'), 0o770), /can be written to by others/],
    ['a seal that everybody can write to', () => chmod(d.path('kms-data', 'kms.seal'), 0o602), /can be written to/],
  ];
  await assert.rejects(async () => find(Buffer.concat([seal, seal])), /the seal in .* was changed meanwhile/);
  for (const [what, change, expected] of cases) {
    await change();
    if (expected) await assert.rejects(async () => find(), expected, what);
    else assert.equal((await find())?.length, 32, what);
    for (const name of ['', 'kms.seal']) {
      await chown(join(d.path('kms-data'), name), 0, 0);
      await chmod(join(d.path('kms-data'), name), name === '' ? 0o755 : 0o600);
    }
  }
  await chown(d.path('kms-data'), 65_531, 65_531);
  await chown(d.path('kms-data', 'kms.seal'), 65_532, 65_532);
  await assert.rejects(async () => find(), /belongs to another user/);
  process.seteuid?.(65_532);
  try {
    await assert.rejects(async () => find(), /belongs to another user/);
  } finally {
    process.seteuid?.(0);
  }
});
