// Secrets that `kms apply` seals to a recipient of age, opened by the system's age.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { withKey } from '../cli/kms.ts';

test('age opens what was sealed to its recipient, from a file and from the output', async () => {
  await using d = await withKey('account create billing');
  const age = (program: string, ...args: readonly string[]): string => {
    const { status, stdout, stderr } = spawnSync(program, args, { cwd: d.dir, encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    return stdout;
  };
  age('age-keygen', '-o', 'key.txt');
  await writeFile(d.path('age.pub'), `# of the team\n${age('age-keygen', '-y', 'key.txt')}`);
  await writeFile(d.path('one.yaml'), 'kind: apikey\nname: one\naccountId: billing\n');
  await writeFile(d.path('two.yaml'), 'kind: apikey\nname: two\naccountId: billing\n');
  await d.json('apply -f one.yaml --secrets-out secrets --secrets-to age.pub --json');
  assert.equal((await stat(d.path('secrets/one.apikey.age'))).mode & 0o777, 0o600);
  assert.doesNotMatch(await readFile(d.path('secrets/one.apikey.age'), 'utf8'), /kms_/);
  const { code, stdout } = await d.kms('apply -f two.yaml --secrets-to age.pub');
  assert.equal(code, 0);
  const [sealed = ''] = /^-----BEGIN AGE[\s\S]*?-----END AGE.*$/m.exec(stdout) ?? [];
  await writeFile(d.path('two.age'), `${sealed}\n`);
  for (const file of ['secrets/one.apikey.age', 'two.age']) {
    const key = age('age', '-d', '-i', 'key.txt', file);
    assert.equal((await d.kms('apikey validate', { stdin: key })).stdout, 'valid\n');
  }
});
