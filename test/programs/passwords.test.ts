// The commands of the guide on passwords for other programs, run with Debian's restic, BorgBackup, rclone and
// cryptsetup; and its units, with as much of systemd as works without a running one.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { servedDesk } from '../cli/served.ts';
import { stepsOf } from '../docs/blocks.ts';
import { typePage } from '../docs/typing.ts';

const page = 'docs/guide-password-commands.md';
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

test(page, () => typePage(page));

/** A guide's block for this file. */
function fileOf(name: string, from = page): string {
  const steps = stepsOf(readFileSync(new URL(`../../${from}`, import.meta.url), 'utf8'));
  const file = steps.find((step) => step.kind === 'file' && step.name === name);
  return file?.kind === 'file' ? file.text : assert.fail(name);
}

test('systemd has nothing against the units', () => {
  const dir = mkdtempSync(join(tmpdir(), 'kms-password-units-'));
  try {
    const units = ['kms-password@.service', 'kms-password.socket', 'kms-kubernetes.service'];
    for (const name of units) {
      const text = fileOf(name, name.startsWith('kms-kubernetes') ? 'docs/kubernetes.md' : page);
      writeFileSync(join(dir, name), text.replace('/usr/local/bin/kms', '/bin/true'));
    }
    const files = units.map((name) => join(dir, name)).reverse();
    const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...files], {
      encoding: 'utf8',
    });
    assert.deepEqual([status, stdout, stderr], [0, '', '']);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

/** All bytes from a socket until it ends, as systemd reads a key or a credential. */
async function readSocket(path: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of connect(path)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

test('a socket that starts the command of the unit gives the bytes as they were encrypted, or none', async () => {
  const unit = fileOf('kms-password@.service');
  assert.match(unit, /^StandardOutput=socket$/m);
  const [, command = ''] = /^ExecStart=\/usr\/local\/bin\/kms (.+)$/m.exec(unit) ?? [];
  await using d = await servedDesk();
  await d.json('keyring create passwords --json --private-key-out passwords.key');
  // With a line end, a zero byte, and bytes that are no text.
  const secret = Buffer.concat([randomBytes(64), Buffer.from('\0\r\n')]);
  await d.kms('encrypt --ring passwords --private-key passwords.key -o disk.kms', { stdin: secret });
  const key = await d.appliance.keyWith('keyring.passwords.decrypt');
  await writeFile(d.path('machine.apikey'), `${key.key}\n`, { mode: 0o600 });
  const env = Object.fromEntries(
    [...unit.matchAll(/^Environment=(\w+)=(.+)$/gm)].map(([, name, value]) => [name, value]),
  );
  const places = {
    KMS_SERVER: d.url,
    KMS_API_KEY_FILE: d.path('machine.apikey'),
    KMS_PRIVATE_KEY: d.path('passwords.key'),
  };
  assert.deepEqual(Object.keys(env), Object.keys(places));
  const socket = d.path('disk.sock');
  const args = command.replace('/etc/kms/disk.kms', d.path('disk.kms')).split(' ');
  const set = Object.entries({ ...places, HOME: d.dir }).map(([name, value]) => `--setenv=${name}=${value}`);
  const activate = spawn(
    'systemd-socket-activate',
    ['--accept', '--inetd', `--listen=${socket}`, ...set, process.execPath, main, ...args],
    // The command's messages go to its stderr, which with --inetd is this one.
    { stdio: ['ignore', 'ignore', 'pipe'], cwd: '/' },
  );
  let said = '';
  activate.stderr.on('data', (chunk) => {
    said += chunk;
  });
  try {
    for (let i = 0; !said.includes('Listening on'); i++) {
      assert.ok(i < 200 && activate.exitCode === null, said);
      await delay(50);
    }
    assert.deepEqual(await readSocket(socket), secret);
    assert.doesNotMatch(said, /^kms: /m);
    await d.kms(['apikey', 'revoke', key.keyid]);
    assert.deepEqual(await readSocket(socket), Buffer.alloc(0));
    assert.match(said, /^kms: the credential is not known, no longer valid/m);
  } finally {
    activate.kill();
  }
});
