// Where files of a configuration come from, what makes room for what, and how values are shown.
import assert from 'node:assert/strict';
import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import test from 'node:test';
import { type ServedDesk, servedDesk } from './served.ts';

const account = (name: string) => `kind: account\nname: ${name}\n`;

test('files come from directories, from stdin, or one by one', async () => {
  await using d = await servedDesk();
  await mkdir(d.path('team', 'deeper.yaml'), { recursive: true });
  const files = { 'b.yaml': 'b', 'a.yml': 'a', 'deeper.yaml/x.yaml': 'x', '.hidden.yaml': 'h', 'notes.txt': 't' };
  for (const [name, uid] of Object.entries(files)) await writeFile(d.path('team', name), account(uid));
  await writeFile(d.path('team', 'c.json'), JSON.stringify({ kind: 'account', name: 'c' }));
  await writeFile(d.path('team', 'kms.schema.json'), '{}');
  const all = await d.kms('plan -f team -f -', { stdin: account('piped') });
  assert.equal(all.code, 2, all.stderr);
  assert.deepEqual(
    all.stdout.match(/^\+ .*$/gm),
    ['a', 'b', 'c', 'piped']
      .map((name) => `+ account ${name}`)
      .concat('+ is made, ~ is changed, - is removed, ! is to be noted'),
  );
  await writeFile(d.path('team', 'b.yaml'), 'kind: acount\nname: b\n');
  assert.match((await d.kms('plan -f team')).stderr, /^kms: team\/b\.yaml:1:1: unknown kind 'acount'/);
  assert.match(
    (await d.kms('plan -f -', { stdin: 'kind: acount\nname: b\n' })).stderr,
    /^kms: stdin:1:1: unknown kind/,
  );
  await mkdir(d.path('empty'));
  const wrong: readonly (readonly [string, number, RegExp])[] = [
    ['plan -f empty', 1, /empty: expected files \*\.yaml, \*\.yml or \*\.json in this directory, found none/],
    ['plan -f - -f -', 1, /expected stdin \(-\) once/],
    ['plan -f a.yaml b.yaml c.yaml', 1, /too many arguments.*; each file takes its own -f, and a directory one/],
    ['apply -f a.yaml b.yaml', 2, /expected a PLAN or --file, got both: each file takes its own -f/],
    ['apply -f a.yaml b.yaml c.yaml', 2, /too many arguments.*; each file takes its own -f, and a directory one/],
  ];
  for (const [line, code, expected] of wrong) {
    const ran = await d.kms(line);
    assert.equal(ran.code, code, line);
    assert.match(ran.stderr, expected);
  }
});

test('drafts of secrets that a killed run has left go with a later one', async () => {
  await using d = await servedDesk();
  await writeFile(d.path('f.yaml'), 'kind: apikey\nname: k\naccountId: admin\n');
  await mkdir(d.path('secrets'), { mode: 0o700 });
  const long = Date.now() / 1000 - 3600;
  for (const [name, isOld] of [
    ['.k.apikey.0123456789ab.tmp', true],
    ['.other.apikey.0123456789ab.tmp', true],
    ['.young.apikey.0123456789ab.tmp', false],
    ['.profile', true],
    ['k.apikey.old', true],
  ] as const) {
    await writeFile(d.path('secrets', name), 'x');
    if (isOld) await utimes(d.path('secrets', name), long, long);
  }
  const ran = await d.kms('apply -f f.yaml --secrets-out secrets');
  assert.equal(ran.code, 0, ran.stderr);
  assert.deepEqual((await readdir(d.path('secrets'))).sort(), [
    '.profile',
    '.young.apikey.0123456789ab.tmp',
    'k.apikey',
    'k.apikey.old',
  ]);
});

async function applied(d: ServedDesk, text: string, more = ''): Promise<string> {
  await writeFile(d.path('f.yaml'), text);
  const line = `apply -f f.yaml --secrets-out secrets --prune --yes ${more}`.trim();
  const { code, stdout, stderr } = await d.kms(line);
  assert.equal(code, 0, stdout + stderr);
  const again = await d.kms('plan -f f.yaml --drift');
  assert.equal(again.code, 0, again.stdout);
  return stdout;
}

test('what a new object needs of one that goes is free by then: an alias, an address', async () => {
  await using d = await servedDesk();
  const files = (key: string, user: string) =>
    `kind: managed-key\nname: ${key}\ndeletionAllowed: true\naliases: [App/x]\n---\n` +
    `kind: user\nname: ${user}\nemail: same@example.org\nfirstName: A\nlastName: L\n`;
  await applied(d, files('former', 'one'));
  const stdout = await applied(d, files('next', 'two'));
  assert.match(stdout, /! after the removal of user one, which makes room for it/);
  assert.match(stdout, /removed user one\n.*made user two\n/s);
  assert.match((await d.kms('key show App/x')).stdout, /next/);
  await writeFile(d.path('f.yaml'), files('third', 'three'));
  const kept = await d.kms('plan -f f.yaml');
  assert.match(kept.stderr, /the managed key next has the alias app\/x/, 'without --prune it stays');
  assert.match(kept.stderr, /the user two has this address/);
});

test('at a limit, what is new is made after the removals of its kind, with what needs it', async () => {
  const limits = { accounts: 2, apikeys: 2 };
  await using d = await servedDesk({ tenants: [{ name: 'default', hosts: ['*'], limits }] });
  const files = (name: string) =>
    `${account(name)}---\nkind: apikey\nname: of-${name}\nsecret: false\naccountId: ${name}\n`;
  await applied(d, files('one'));
  const stdout = await applied(d, files('two'));
  assert.match(stdout, /removed API key of-one\nremoved account one\nmade account two\nmade API key of-two\n/);
  await writeFile(d.path('g.yaml'), `${account('two')}---\n${account('three')}`);
  const full = await d.kms('apply -f g.yaml');
  assert.match(full.stderr, /account three: the limit of 2 accounts/, 'nothing goes that makes room');
});

test('a change that is shown can be told from no change', async () => {
  await using d = await servedDesk();
  const long = 'x'.repeat(400);
  const cases: readonly (readonly [string, string, RegExp])[] = [
    [`${long}a${long}`, `${long}b${long}`, /notes: …x{20}ax+… → …x{20}bx+…$/m],
    ['none', '', /notes: "none" → ""$/m],
    ['none', 'never', /notes: "none" → "never"$/m],
    ['two words', 'two  words ', /notes: two words → two {2}words$/m],
    ['end', 'end\n', /notes: "end" → "end\\n"$/m],
  ];
  for (const [before, after, expected] of cases) {
    const file = (notes: string) => writeFile(d.path('f.yaml'), JSON.stringify({ kind: 'account', name: 'a', notes }));
    await file(before);
    assert.equal((await d.kms('apply -f f.yaml')).code, 0);
    await file(after);
    assert.match((await d.kms('plan -f f.yaml')).stdout, expected);
  }
});
