// Deleted keyrings, managed keys and tenants: a command about one says that it is deleted and how to restore it, and
// `restore` takes its name where only one has it.
import assert from 'node:assert/strict';
import test from 'node:test';
import { pick, withKey } from './kms.ts';

const tty = { stderr: true };

test('a command about what is deleted says so, and how to restore it, at a terminal', async () => {
  await using d = await withKey(
    'keyring create backups',
    'key create orders --deletion-allowed',
    'tenant create blue --host blue.example',
    'tenant use default',
    'keyring delete backups --yes',
    'key delete orders --yes',
    'tenant delete blue --yes',
  );
  for (const [line, stderr] of [
    ['keyring show backups', 'the keyring backups is deleted; `kms keyring restore backups` restores it'],
    ['encrypt --ring backups', 'the keyring backups is deleted; `kms keyring restore backups` restores it'],
    ['keyring rotate Backups', 'the keyring Backups is deleted; `kms keyring restore Backups` restores it'],
    [
      'key encrypt orders',
      'the key is pending deletion, so it cannot encrypt; `kms key restore NAME` takes the deletion back, ' +
        'until its time is over',
    ],
    ['tenant show blue', 'the tenant blue is deleted; `kms tenant restore blue` restores it'],
  ] as const) {
    assert.deepEqual(pick(await d.kms(line, { tty, stdin: 'x' })), [1, '', `kms: ${stderr}\n`], line);
  }
  assert.match((await d.kms('key show orders')).stdout, /^state +pending-deletion$.*^restorable until +\d/ms);
  assert.equal((await d.kms('keyring show backups')).stderr, 'kms: there is no such keyring; check the name or id\n');
  for (const line of ['keyring restore Backups', 'key restore orders', 'tenant restore blue']) {
    const { code, stderr } = await d.kms(line);
    assert.equal(code, 0, `${line}: ${stderr}`);
  }
  for (const line of ['keyring show backups', 'key show orders', 'tenant show blue']) {
    assert.equal((await d.kms(line)).code, 0, line);
  }
});

test('a name that several deleted things have restores none, and one that none has is no name', async () => {
  await using d = await withKey(
    'key create orders --deletion-allowed',
    'key delete orders --yes',
    'key create orders --deletion-allowed',
    'key delete orders --yes',
  );
  const several = await d.kms('key restore orders');
  assert.deepEqual([several.code, several.stdout], [1, '']);
  const [, first = '', second = ''] =
    /^kms: 2 deleted managed keys are named by orders; give the id of one: (mkey_\w+), (mkey_\w+)\n$/.exec(
      several.stderr,
    ) ?? assert.fail(several.stderr);
  assert.equal((await d.kms(`key restore ${first}`)).code, 0);
  const taken = await d.kms(`key restore ${second}`);
  assert.equal(taken.code, 1);
  for (const [group, noun, name] of [
    ['keyring', 'keyring', 'payroll'],
    ['key', 'managed key', 'payroll'],
    ['tenant', 'tenant', 'payroll'],
  ] as const) {
    assert.deepEqual(pick(await d.kms(`${group} restore ${name}`)), [
      1,
      '',
      `kms: there is no deleted ${noun} ${name} to restore; see \`kms ${group} list --deleted\`\n`,
    ]);
  }
});
