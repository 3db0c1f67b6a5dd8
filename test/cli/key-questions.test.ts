// Questions of the commands for managed keys, before software that uses the keys meets something else.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pick, typed, withKey } from './kms.ts';

const tty = { stdin: true, stdout: true, stderr: true, columns: 200 };
const not = 'kms: not confirmed; nothing was done\n';

test('an alias is taken from another key only with consent', async () => {
  await using d = await withKey('key create unseal --alias apps/un', 'key create hook');
  const deed = 'takes the name apps/un from the managed key unseal: software that uses it gets hook instead';
  const owner = async () => (await d.json<{ key: { name: string } }>('key show apps/un --json')).key.name;
  assert.deepEqual(pick(await d.kms('key alias add hook apps/un')), [
    2,
    '',
    `kms: this ${deed}, and there is no terminal to ask at; add --yes to do it\n`,
  ]);
  const refused = await d.kms('key alias add hook APPS/un', { tty, stdin: typed('n\n') });
  assert.deepEqual(pick(refused), [1, '', `This ${deed.replace('apps/un', 'APPS/un')}. Go on? [y/N] ${not}`]);
  assert.equal(await owner(), 'unseal');
  // Its own, and a free one, need no question.
  assert.equal((await d.kms('key alias add unseal apps/un')).code, 0);
  assert.equal((await d.kms('key alias add hook apps/free', { tty, stdin: typed('') })).code, 0);
  assert.equal((await d.kms('key alias add hook apps/un --yes')).stdout, 'apps/un is a name of the managed key hook\n');
  assert.equal(await owner(), 'hook');
  assert.deepEqual(pick(await d.kms('key alias add hok apps/un', { tty, stdin: typed('y\n') })), [
    1,
    '',
    'kms: there is no managed key hok; did you mean hook?\n',
  ]);
  assert.deepEqual(pick(await d.kms('key alias remove unseal nosuch', { tty, stdin: typed('y\n') })), [
    1,
    '',
    'kms: unseal has no alias nosuch; `kms key show unseal` lists those that it has\n',
  ]);
});

test('a higher minimum version shows who used the versions that it refuses, and asks', async () => {
  await using d = await withKey('key create unseal');
  const made = await d.kms('key encrypt unseal', { stdin: 'x' });
  for (let i = 0; i < 2; i++) await d.kms('key rotate unseal');
  await d.kms('key encrypt unseal', { stdin: 'x' });
  const deed = (versions: string) =>
    `makes the managed key unseal refuse ${versions}: data that they protect cannot be read until it is lowered again`;
  assert.deepEqual(pick(await d.kms('key config unseal --min-decrypt-version 3 --tag a=b')), [
    2,
    '',
    `kms: this ${deed('versions before 3')}, and there is no terminal to ask at; add --yes to do it\n`,
  ]);
  const asked = await d.kms('key config unseal --min-decrypt-version 3', { tty, stdin: typed('n\n') });
  const [title, , local, question] = asked.stderr.split('\n');
  assert.deepEqual([asked.code, title], [1, 'Who uses versions of unseal before 3:']);
  assert.match(local ?? '', /^ {2}local +native +1 +encrypt +(?:just now|\d+ (?:s|min) ago) +1$/);
  assert.equal(question, `This ${deed('versions before 3')}. Go on? [y/N] kms: not confirmed; nothing was done`);
  assert.equal((await d.kms('key decrypt unseal', { stdin: made.stdout })).stdout, 'x', 'nothing was changed');
  assert.equal((await d.kms('key config unseal --min-decrypt-version 2', { tty, stdin: typed('y\n') })).code, 0);
  for (const line of ['--min-decrypt-version 2', '--min-decrypt-version 1', '--tag a=b']) {
    assert.equal((await d.kms(`key config unseal ${line}`)).code, 0, line);
  }
  assert.equal((await d.kms('key config unseal --min-decrypt-version 3 --yes')).code, 0);
});

test('compromised is for good: it looks first, shows who uses the key, and takes the name at a terminal', async () => {
  await using d = await withKey('key create unseal', 'key create later --activate-at 2999-01-01');
  await d.kms('key encrypt unseal', { stdin: 'x' });
  const asked = await d.kms('key compromised unseal', { tty, stdin: typed('y\n') });
  assert.deepEqual([asked.code, asked.stdout], [1, '']);
  assert.match(
    asked.stderr,
    /^Who uses unseal:\n.*\n {2}local .*\nThis marks .* To go on, type unseal: kms: not confirmed/,
  );
  for (const [line, said] of [
    ['key compromised unsael', 'there is no managed key unsael; did you mean unseal?'],
    ['key compromised unseal --version 4', 'unseal has no version 4; check the name or id'],
    [
      'key compromised later',
      'the managed key later is pre-active: only what was active before can be marked as compromised',
    ],
  ] as const) {
    assert.deepEqual(pick(await d.kms(line, { tty, stdin: typed('unseal\n') })), [1, '', `kms: ${said}\n`]);
  }
  assert.equal((await d.kms('key compromised unseal', { tty, stdin: typed('unseal\n') })).code, 0);
  const enabled = await d.kms('key enable unseal');
  assert.match(enabled.stderr, /^kms: .*: only a key that is suspended or not active yet can/);
});

test('a date of deactivation that is over asks as `deactivate` does, and one to come does not', async () => {
  await using d = await withKey('key create unseal');
  await d.kms('key encrypt unseal', { stdin: 'x' });
  const deed =
    'deactivates the managed key unseal for good, as that time is over: it still decrypts and verifies, but never ' +
    'protects anything new';
  const line = 'key config unseal --deactivate-at 2020-01-01';
  const alone = await d.kms(line);
  assert.deepEqual(pick(alone), [2, '', `kms: this ${deed}, and there is no terminal to ask at; add --yes to do it\n`]);
  const asked = await d.kms(line, { tty, stdin: typed('n\n') });
  assert.match(asked.stderr, /^Who uses unseal:\n.*\n {2}local .*encrypt.*\nThis deactivates /);
  assert.equal((await d.kms('key encrypt unseal', { stdin: 'x' })).code, 0);
  assert.equal((await d.kms('key config unseal --deactivate-at 2999-01-01')).code, 0);
  assert.match((await d.kms(`${line} --yes`)).stdout, /^state +deactivated$/m);
  const made = await d.kms('key create dead --deactivate-at 2020-01-01');
  const never = 'deactivateAt: expected a time to come: the key would never protect anything';
  assert.match(made.stderr, new RegExp(`^kms: (--deactivate-at|deactivateAt): ${never.slice(14)}`));
  assert.equal(made.code, 1);
});

test('a secret that shall not leave the appliance again asks, since nothing could read it', async () => {
  await using d = await withKey('key create unseal --exportable true');
  await d.kms('secret put db', { stdin: '{}' });
  await d.kms('secret get db');
  const deed = 'makes the secret db unreadable for good: nothing and nobody gets its value again';
  const line = 'key config db --exportable false';
  const alone = await d.kms(line);
  assert.deepEqual(pick(alone), [2, '', `kms: this ${deed}, and there is no terminal to ask at; add --yes to do it\n`]);
  const asked = await d.kms(line, { tty, stdin: typed('n\n') });
  assert.match(asked.stderr, /^Who uses db:\n.*\n {2}local .*export.*\nThis makes the secret db unreadable/);
  assert.equal((await d.kms('secret get db')).code, 0);
  assert.equal((await d.kms(line, { tty, stdin: typed('y\n') })).code, 0);
  assert.equal((await d.kms(line)).code, 0, 'it was that already');
  assert.equal((await d.kms('key config unseal --exportable false')).code, 0);
});

test('names that no managed key can have are told as names of nothing, whatever is done', async () => {
  await using d = await withKey('key create unseal');
  for (const name of ['random', 'hash', 'wrapping-key']) {
    for (const line of [
      'show NAME',
      'encrypt NAME',
      'delete NAME --yes',
      'dependents NAME',
      'config NAME',
      'rotate NAME',
    ]) {
      const { code, stdout, stderr } = await d.kms(`key ${line.replace('NAME', name)}`, { stdin: 'x' });
      assert.deepEqual([code, stdout], [1, ''], line);
      assert.match(stderr, /^kms: there is no (?:such managed key|managed key \S+)/, line);
    }
    const created = await d.kms(`key create ${name}`);
    assert.match(created.stderr, /expected another name than/);
  }
});

test('deactivate, of a key or one version, is for good and asks', async () => {
  await using d = await withKey('key create unseal', 'key rotate unseal');
  const made = await d.kms('key encrypt unseal', { stdin: 'x' });
  const asked = await d.kms('key deactivate unseal --version 2', { tty, stdin: typed('n\n') });
  assert.match(
    asked.stderr,
    /^Who uses version 2 of unseal:\n[\s\S]*\nThis deactivates version 2 of the managed key unseal for good: .* Go on\? /,
  );
  const one = await d.kms('key deactivate unseal --version 1 --yes');
  assert.deepEqual(pick(one), [0, 'version 1 of the managed key unseal is deactivated\n', '']);
  assert.equal((await d.kms('key deactivate unseal --yes')).stdout, 'the managed key unseal is deactivated\n');
  assert.equal((await d.kms('key encrypt unseal', { stdin: 'x' })).code, 1);
  assert.equal((await d.kms('key decrypt unseal', { stdin: made.stdout })).stdout, 'x');
});
