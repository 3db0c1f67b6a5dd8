// Key pairs for clients of Tang, from the command line.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { desk, typed } from './kms.ts';

const tty = { stdin: true, stdout: true, stderr: true };

test('tang: make, show, list, rotate and delete', async () => {
  await using d = await desk();
  await d.kms('init');
  assert.match((await d.kms('tang list')).stderr, /^kms: no Tang key pairs yet/);
  const none = await d.kms('tang show');
  assert.deepEqual([none.code, none.stdout], [1, '']);
  assert.match(none.stderr, /make one: kms tang rotate/);
  const made = await d.kms('tang rotate');
  const [, first = ''] = /^thumbprint +(\S{43})$/m.exec(made.stdout) ?? [];
  assert.match(made.stdout, /^advertised +yes$/m);
  assert.equal((await d.kms('tang show')).stdout, `${first}\n`);
  const refused = await d.kms(`tang delete ${first} --yes`);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /is advertised: rotate first/);
  const { pair } = await d.json<{ pair: { thumbprint: string } }>('tang rotate --json');
  const listed = (await d.kms('tang list')).stdout.split('\n');
  assert.match(listed[1] ?? '', new RegExp(`^${pair.thumbprint} +yes .* 0 +never$`));
  assert.match(listed[2] ?? '', new RegExp(`^${first} +no .* 0 +never$`));
  const asked = await d.kms(`tang delete ${first}`, { tty, stdin: typed('yes\n') });
  assert.equal(asked.code, 1);
  assert.match(
    asked.stderr,
    /^Nothing was ever recovered with this pair\.\nThis deletes .* for good: what is bound to it alone can never be/,
  );
  const gone = await d.kms(`tang delete ${first}`, { tty, stdin: typed(`${first}\n`) });
  assert.deepEqual([gone.code, gone.stdout], [0, `${first} is deleted\n`]);
  assert.equal((await d.kms(`tang delete ${first} --yes`)).code, 1);
});

test('pairs are in a backup, and open where it is restored', async () => {
  await using d = await desk();
  await d.kms('init');
  await d.kms('tang rotate');
  await d.kms('tang rotate');
  const listed = (await d.kms('tang list')).stdout;
  assert.equal((await d.kms('backup create all.backup')).code, 0);
  assert.equal((await d.kms('restore all.backup --data again --key-file kms-data.master.key')).code, 0);
  const there = ['--data', d.path('again'), '--key-file', d.path('kms-data.master.key')];
  assert.equal((await d.kms(['tang', 'list', ...there])).stdout, listed);
  assert.equal((await d.kms(['tang', 'rotate', ...there])).code, 0);
});
