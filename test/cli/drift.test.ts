// A nightly look for drift: its findings, its exit code, and its files.
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import test from 'node:test';
import { servedDesk } from './served.ts';

const account = (name: string) => `kind: account\nname: ${name}\n`;

test('what was made from files and is in none of them any more is drift, also where it stays', async () => {
  await using d = await servedDesk();
  const key = 'kind: managed-key\nname: sec\n';
  const ring = 'kind: keyring\nname: ring\npublicKey: hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\n';
  await writeFile(d.path('all.yaml'), [account('used'), account('one'), key, ring].join('---\n'));
  assert.equal((await d.kms('apply -f all.yaml')).code, 0);
  assert.equal((await d.kms('plan -f all.yaml --drift')).code, 0);
  await d.json('apikey create --account used --name user --flag keyring.ring.encrypt --json');
  await writeFile(d.path('one.yaml'), account('one'));
  const { code, stdout, stderr } = await d.kms('plan -f one.yaml --drift --metrics-file m.prom');
  assert.deepEqual([code, stderr], [2, '']);
  assert.match(stdout, /^! managed key sec stays: it is protected from deletion/m);
  assert.match(stdout, /^! keyring ring stays: the API key user uses it$/m);
  assert.match(stdout, /^! account used stays: it has an API key/m);
  assert.match(stdout, /^nothing to do: 1 object is as the files say; 3 are in no file, and stay$/m);
  const metrics = await readFile(d.path('m.prom'), 'utf8');
  assert.match(metrics, /^kms_drift_changes\{action="keep"\} 3$/m);
  assert.match(metrics, /^kms_drift_changes\{action="remove"\} 0$/m);
  assert.equal((await d.kms('plan -f one.yaml --prune')).code, 0, 'there is nothing that it would do');
});

test('metrics are for others to read, and a failure leaves nothing beside them', async () => {
  await using d = await servedDesk();
  await writeFile(d.path('one.yaml'), account('admin'));
  const before = process.umask(0o077);
  try {
    for (let n = 0; n < 2; n++) assert.equal((await d.kms('plan -f one.yaml --drift --metrics-file m.prom')).code, 0);
  } finally {
    process.umask(before);
  }
  assert.equal((await stat(d.path('m.prom'))).mode & 0o777, 0o644);
  await mkdir(d.path('directory'));
  const names = await readdir(d.path('.'));
  const failed = await d.kms('plan -f one.yaml --drift --metrics-file directory');
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /cannot write .*directory: it is a directory/);
  assert.deepEqual(await readdir(d.path('.')), names);
});

test('a file that holds nothing is a slip where it would remove everything, and an empty list is none', async () => {
  await using d = await servedDesk();
  await writeFile(d.path('f.yaml'), account('one'));
  assert.equal((await d.kms('apply -f f.yaml')).code, 0);
  for (const text of ['', '# nothing\n', '---\n', 'null\n', '---\n# a\n---\n', '\n \n']) {
    await writeFile(d.path('empty.yaml'), text);
    assert.equal((await d.kms('plan -f empty.yaml')).code, 0, text);
    for (const line of [
      'plan -f empty.yaml --prune',
      'plan -f empty.yaml --drift',
      'apply -f empty.yaml --prune --yes',
    ])
      assert.match((await d.kms(line)).stderr, /^kms: empty\.yaml: holds no object: write \[\] if that is meant$/m);
    const both = await d.kms('plan -f f.yaml -f empty.yaml --prune');
    assert.equal(both.code, 1, both.stdout);
    const piped = await d.kms('apply -f - --prune --yes', { stdin: text });
    assert.match(piped.stderr, /^kms: stdin: holds no object/);
  }
  assert.equal((await d.kms('account show one')).code, 0);
  for (const text of ['[]', '[]\n---\n', '# none\n[]\n']) {
    await writeFile(d.path('empty.yaml'), text);
    assert.match((await d.kms('plan -f empty.yaml --drift')).stdout, /^- account one$/m);
  }
});

test('an empty name is no file, for every option that may be given several times', async () => {
  await using d = await servedDesk();
  await writeFile(d.path('f.yaml'), account('one'));
  for (const args of [
    ['plan', '-f', ''],
    ['plan', '-f', 'f.yaml', '--file', '', '--prune'],
    ['apply', '-f', '', '--prune', '--yes'],
  ]) {
    const { code, stdout, stderr } = await d.kms(args);
    assert.deepEqual([code, stdout], [args[0] === 'plan' ? 1 : 2, ''], stderr);
    assert.match(stderr, /^kms: --file: expected a path, got nothing/);
  }
});
