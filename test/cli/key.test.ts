// Rings whose keys the appliance holds, from the command line.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { desk } from './kms.ts';

test('managed keys: make, encrypt, rotate, decrypt, configure, delete and restore', async () => {
  await using d = await desk();
  await d.kms('init');
  const { ring } = await d.json<{ ring: { id: string; custody: string } }>('key create Unseal --json');
  assert.equal(ring.custody, 'server');
  const shown = await d.kms('key show unseal');
  assert.match(shown.stdout, /custody +server: the appliance holds its keys\n/);
  const made = await d.kms('key encrypt unseal --associated-data a', { stdin: 'hello\n' });
  assert.match(made.stdout, /^vault:v1:\S+\n$/);
  assert.equal((await d.kms('key rotate unseal')).stdout, 'unseal has the new version 2\n');
  const opened = await d.kms('key decrypt unseal --associated-data a', { stdin: made.stdout });
  assert.deepEqual([opened.code, opened.stdout], [0, 'hello\n']);
  const wrong = await d.kms('key decrypt unseal', { stdin: made.stdout });
  assert.deepEqual([wrong.code, wrong.stdout], [1, '']);
  assert.match(wrong.stderr, /^kms: cipher: message authentication failed/);
  const large = await d.kms('key encrypt unseal', { stdin: 'x'.repeat(600_000) });
  assert.equal(large.code, 1);
  assert.match(large.stderr, /over the limit of 524288 bytes/);
  assert.match(
    (await d.kms('key list')).stdout,
    /^NAME +TYPE +VERSION +CUSTODY .*\nUnseal +aes256-gcm96 +2 +server /,
  );
  assert.match((await d.kms('status')).stdout, /MANAGED KEYS.*\ndefault .* 1 /);
  assert.match((await d.kms('recovery-kit')).stdout, /"server" \(managed keys\)[\s\S]*on that day: default 1\.\n/);
  const refused = await d.kms('key delete unseal --yes');
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /deletion is not allowed/);
  assert.match((await d.kms('key config unseal --deletion-allowed true --rotate-after 90d')).stdout, /90d/);
  assert.equal((await d.kms('key delete unseal --yes')).code, 0);
  assert.equal((await d.kms('key show unseal')).code, 1);
  assert.equal((await d.kms(`key restore ${ring.id}`)).code, 0);
  const again = await d.kms('key decrypt unseal --associated-data a', { stdin: made.stdout });
  assert.equal(again.stdout, 'hello\n');
  assert.equal((await d.kms('tenant update default --custody client')).code, 0);
  const denied = await d.kms('key create other');
  assert.equal(denied.code, 1);
  assert.match(denied.stderr, /custody client/);
  assert.equal((await d.kms('key encrypt unseal', { stdin: 'x' })).code, 0, 'those that are there go on');
});
