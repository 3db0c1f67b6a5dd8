// Secrets from the command line: values from files and stdin alone, versions, folders, and questions before one goes.
import assert from 'node:assert/strict';
import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { desk, pick } from './kms.ts';

const tty = { stdin: true, stdout: true, stderr: true, columns: 100 };

async function withSecret() {
  const d = await desk();
  await d.kms('init');
  await writeFile(d.path('value.json'), '{"password": "hunter2"}\n', { mode: 0o600 });
  assert.deepEqual(pick(await d.kms('secret put db/App value.json')), [0, 'db/App has the new version 1\n', '']);
  return d;
}

test('a value is written from a file or stdin, and read as it was', async () => {
  await using d = await withSecret();
  assert.deepEqual(pick(await d.kms('secret get db/App')), [0, '{\n  "password": "hunter2"\n}\n', '']);
  const put = (stdin: string, more = '') => d.kms(`secret put db/App ${more}`.trim(), { stdin });
  assert.equal((await put('{"password": "two", "n": [1, null]}', '--cas 1')).code, 0);
  const stale = await put('{"password": "three"}', '--cas 1');
  assert.deepEqual(
    [stale.code, stale.stderr],
    [1, 'kms: the latest version of db/App is another one; see `kms secret show db/App`\n'],
  );
  const { secret, value } = await d.json<{ secret: { version: number }; value: object }>('secret get db/App --json');
  assert.deepEqual([secret.version, value], [2, { password: 'two', n: [1, null] }]);
  assert.match((await d.kms('secret get db/App --version 1')).stdout, /hunter2/);
  const written = await d.kms('secret get db/App --version 1 -o copy.json');
  assert.deepEqual([written.code, written.stdout], [0, '']);
  assert.match(written.stderr, /copy\.json has version 1 of db\/App, in clear: keep it safe\n$/);
  assert.deepEqual(JSON.parse(await readFile(d.path('copy.json'), 'utf8')), { password: 'hunter2' });
  assert.equal((await stat(d.path('copy.json'))).mode & 0o777, 0o600);
  assert.equal((await d.kms('secret get db/App -o copy.json')).code, 1, 'overwritten');
  const odd = { 'a\u009b': '\u202e\n' };
  assert.equal((await put(JSON.stringify(odd))).code, 0);
  const onTerminal = await d.kms('secret get db/App', { tty });
  assert.doesNotMatch(onTerminal.stdout, /[\u009b\u202e]/);
  assert.deepEqual(JSON.parse(onTerminal.stdout), odd);
  assert.equal((await d.kms('secret config db/App --cas-required true')).code, 0);
  assert.match((await put('{}')).stderr, /must name the version that it follows; give --cas N/);
});

test('a warning about one version says so, on stderr and in JSON, also beside a file', async () => {
  await using d = await withSecret();
  for (let n = 0; n < 2; n++) await d.kms('secret put db/one value.json');
  const marked = await d.kms('key compromised db.one --version 1 --yes');
  assert.equal(marked.code, 0, marked.stderr);
  const warning = 'this version of the secret is compromised: others may know it, so replace it';
  const read = await d.kms('secret get db/one --version 1 -o one.json');
  assert.match(read.stderr, new RegExp(`^kms: warning: ${warning}$`, 'm'));
  const old = await d.json<{ warning?: string }>('secret get db/one --version 1 -o two.json --json');
  assert.equal(old.warning, warning);
  const newest = await d.json<{ warning?: string }>('secret get db/one -o three.json --json');
  assert.equal(newest.warning, undefined);
});

test('what is no JSON object, too long or readable by others is refused, and never quoted', async () => {
  await using d = await withSecret();
  for (const stdin of ['hunter2', '["hunter2"]', '{"password": "hunter2"', '', '{"n": 12345678901234567890}']) {
    const { code, stdout, stderr } = await d.kms('secret put db/App', { stdin });
    assert.deepEqual([code, stdout], [1, ''], stdin);
    assert.match(stderr, /^kms: stdin: /);
    assert.doesNotMatch(stderr, /hunter2|1234567/);
  }
  const long = await d.kms('secret put db/App', { stdin: JSON.stringify({ password: 'x'.repeat(70_000) }) });
  assert.match(long.stderr, /over the limit of 65536 bytes/);
  await chmod(d.path('value.json'), 0o644);
  assert.equal((await d.kms('secret put db/App value.json')).code, 1);
  const typed = await d.kms('secret put db/App', { tty });
  assert.deepEqual([typed.code, typed.stdout], [2, '']);
  assert.match((await d.kms('secret show db/App')).stdout, /^latest version +1$/m);
});

test('secrets are listed by folder, and shown with their versions but without their values', async () => {
  await using d = await withSecret();
  await d.kms('secret put top', { stdin: '{"a": "hunter2"}' });
  await d.kms('secret put top', { stdin: '{"a": "hunter2"}' });
  assert.deepEqual(pick(await d.kms('secret list')), [0, 'db/\ntop\n', '']);
  assert.deepEqual(pick(await d.kms('secret list db')), [0, 'App\n', '']);
  assert.deepEqual(pick(await d.kms('secret list db/')), [0, 'App\n', '']);
  assert.match((await d.kms('secret list none')).stderr, /^kms: no secrets here/);
  const { stdout } = await d.kms('secret show top');
  assert.match(stdout, /^path +top\n[\s\S]*\n\nVERSION +STATE +CREATED.*\n2 +active .*\n1 +active /);
  assert.doesNotMatch(stdout, /hunter2/);
  const none = await d.kms('secret show none');
  assert.deepEqual([none.code, none.stdout], [1, '']);
});

test('versions are deleted, brought back and destroyed; a secret that was deleted can be restored', async () => {
  await using d = await withSecret();
  await d.kms('secret put db/App', { stdin: '{"password": "two"}' });
  for (const line of ['delete db/App', 'delete db/App --version 1', 'destroy db/App --version 1']) {
    const { code, stderr } = await d.kms(`secret ${line}`);
    assert.equal(code, 2, line);
    assert.match(stderr, /add --yes to do it/);
  }
  for (const line of ['destroy db/App --yes', 'undelete db/App', 'destroy db/App --version 0 --yes']) {
    assert.equal((await d.kms(`secret ${line}`)).code, 2, line);
  }
  const deleted = await d.kms('secret delete db/App --version 1 --version 2 --yes');
  assert.deepEqual(pick(deleted), [0, 'versions 1, 2 of db/App are deleted\n', '']);
  for (const more of ['', '--json', '-o none.json']) {
    const gone = await d.kms(`secret get db/App ${more}`.trim());
    assert.deepEqual([gone.code, gone.stdout], [1, '']);
    assert.match(gone.stderr, /version 2 of db\/App is deleted; bring it back with `kms secret undelete db\/App --ver/);
  }
  await assert.rejects(stat(d.path('none.json')), { code: 'ENOENT' });
  assert.equal((await d.kms('secret undelete db/App --version 2')).stdout, 'version 2 of db/App is there again\n');
  assert.equal((await d.kms('secret destroy db/App --version 1 --yes')).stdout, 'version 1 of db/App is destroyed\n');
  assert.match((await d.kms('secret get db/App --version 1')).stderr, /is destroyed\n$/);
  assert.match((await d.kms('secret undelete db/App --version 1')).stderr, /nothing to do/);
  const asked = await d.kms('secret delete db/App', { tty, stdin: 'no\n' });
  assert.equal(asked.code, 1);
  assert.match(asked.stderr, /db\/App has 2 versions\.[\s\S]*deletes the secret db\/App with all its versions/);
  const whole = await d.kms('secret delete db/App --yes');
  const [, id = ''] = /`kms key restore (mkey_\w+)`/.exec(whole.stdout) ?? assert.fail(whole.stdout);
  assert.equal((await d.kms('secret get db/App')).code, 1);
  assert.equal((await d.kms(`key restore ${id}`)).code, 0);
  assert.match((await d.kms('secret get db/App')).stdout, /two/);
});
