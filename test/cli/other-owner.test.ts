// Root in a data directory of another user, such as that of a stopped service: files that root makes there belong to
// that user, and nothing that this user may have written there decides what root runs. If the tests don't run as root,
// it is all one user's anyway.
import assert from 'node:assert/strict';
import { chmodSync, lchownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { desk } from './kms.ts';

const own = process.getuid?.() ?? 0;
const other = own === 0 ? 65_532 : own;

function giveAll(dir: string): void {
  const names = readdirSync(dir, { recursive: true }) as string[];
  if (other !== own) for (const name of ['', ...names]) lchownSync(join(dir, name), other, other);
}

const notTheirs = (dir: string): string[] =>
  (readdirSync(dir, { recursive: true }) as string[]).filter((name) => statSync(join(dir, name)).uid !== other);

test('what commands make in the data directory belongs to its owner', async () => {
  await using d = await desk();
  assert.equal((await d.kms('init')).code, 0);
  giveAll(d.path('kms-data'));
  for (const line of [
    'keyring create payroll',
    'tenant create blue --host blue.example',
    'master rotate',
    'doctor',
    'status',
  ]) {
    const { code, stderr } = await d.kms(`${line} --data kms-data`);
    assert.equal(code, 0, `${line}: ${stderr}`);
    assert.deepEqual(notTheirs(d.path('kms-data')), [], line);
  }
  assert.equal(statSync(d.path('kms-data')).uid, other);
});

test('the command that the seal names is run as its owner', async () => {
  await using d = await desk();
  chmodSync(d.dir, 0o711);
  mkdirSync(d.path('open'));
  chmodSync(d.path('open'), 0o777);
  writeFileSync(d.path('open', 'key'), 'ab'.repeat(32));
  chmodSync(d.path('open', 'key'), 0o644);
  const said = d.path('open', 'said');
  const program = `id -u >>${said}; id -g >>${said}; id -G >>${said}; cat ${d.path('open', 'key')}`;
  const made = await d.kms([
    'init',
    '--custodian',
    'exec',
    '--exec',
    '/bin/sh',
    '--exec-arg=-c',
    `--exec-arg=${program}`,
  ]);
  assert.equal(made.code, 0, made.stderr);
  giveAll(d.path('kms-data'));
  writeFileSync(said, '');
  chmodSync(said, 0o666);
  const { code, stderr } = await d.kms('keyring list --data kms-data');
  assert.equal(code, 0, stderr);
  const ids = readFileSync(said, 'utf8').trim().split('\n');
  assert.equal(ids[0], String(other));
  if (other !== own) assert.deepEqual(ids, [String(other), String(other), String(other)]);
});
