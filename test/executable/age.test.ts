// The executable under its second name, as age starts it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readlinkSync, realpathSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { executable, kms, workDirectory } from './kms.ts';

test('install links it, once, and never over another file', async () => {
  const dir = workDirectory();
  const path = join(dir, 'age-plugin-kms');
  const line = `${path} is ${realpathSync(executable)}\n`;
  const install = ['age-plugin', 'install', '--dir', dir];
  for (let again = 0; again < 2; again++) {
    assert.deepEqual(await kms(dir, install, { PATH: `/bin:${dir}` }), { code: 0, stdout: line, stderr: '' });
  }
  assert.equal(readlinkSync(path), realpathSync(executable));
  const unseen = await kms(dir, install, { PATH: '/bin' });
  assert.deepEqual([unseen.code, unseen.stdout], [0, line]);
  assert.match(unseen.stderr, /^kms: warning: age will not find it: [^\n]+ is not in PATH\n$/);

  const { status, stdout, stderr } = spawnSync(path, [], { cwd: dir, encoding: 'utf8', env: { HOME: dir } });
  assert.deepEqual([status, stdout], [2, '']);
  assert.match(stderr, /^kms: age-plugin-kms: this is a plugin, which age starts itself; /);
  const help = spawnSync(path, ['--help'], { cwd: dir, encoding: 'utf8', env: { HOME: dir } });
  assert.equal(help.status, 0);
  assert.match(help.stdout, /^Usage: kms age-plugin /);
  // Without identities and files the plugin has nothing to say but `done`.
  const spoken = spawnSync(path, ['--age-plugin=identity-v1'], {
    cwd: dir,
    encoding: 'utf8',
    env: { HOME: dir },
    input: '-> done\n\n-> unsupported\n\n',
  });
  assert.deepEqual([spoken.status, spoken.stderr], [0, '']);
  assert.match(spoken.stdout, /-> done\n\n$/);

  unlinkSync(path);
  writeFileSync(path, 'another');
  const refused = await kms(dir, install);
  assert.deepEqual([refused.code, refused.stdout], [1, '']);
  assert.match(refused.stderr, /^kms: .*age-plugin-kms exists already and is not overwritten; move it away first\n$/);
  const nowhere = await kms(dir, ['age-plugin', 'install', '--dir', join(dir, 'no')]);
  assert.deepEqual([nowhere.code, nowhere.stdout], [1, '']);
});
