// Every command that destroys something asks first, and every command that asks says so.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import test from 'node:test';
import type { GrammarCommand } from '../../src/cli/command.ts';
import { grammar, leavesOf } from './grammar-tree.ts';
import { desk, pick, typed, withKey } from './kms.ts';
import { servedDesk } from './served.ts';
import { serving } from './serving.ts';

const wordsOf = (leaf: GrammarCommand): string[] => leaf.fullName().split(' ').slice(1);
const asks = (leaf: GrammarCommand): boolean => leaf.options.some(({ long }) => long === '--yes');
/** Those that ask on a terminal only have their own tests below. */
const asksAtTerminal = (leaf: GrammarCommand): boolean =>
  ['kms seal', 'kms apikey revoke', 'kms key compromised'].includes(leaf.fullName());
/** Those that ask only at times have tests of their own. */
const asksIfNeeded = (leaf: GrammarCommand): boolean =>
  ['kms key config', 'kms key alias add', 'kms import vault', 'kms apply'].includes(leaf.fullName());
/** It looks at files of this user, which need no appliance, and has a test below. */
const asksOfFiles = (leaf: GrammarCommand): boolean => leaf.fullName() === 'kms profile remove';
const destroying = leavesOf(grammar()).filter(
  (leaf) => asks(leaf) && !asksAtTerminal(leaf) && !asksIfNeeded(leaf) && !asksOfFiles(leaf),
);
const tty = { stdin: true, stdout: true, stderr: true };
/** The most destructive commands: the object's name must be typed. */
const worst = ['keyring delete', 'tenant delete', 'key delete', 'tang delete', 'secret delete', 'secret destroy'];

test('what deletes or removes asks, and nothing else says that it does', async () => {
  for (const leaf of leavesOf(grammar())) {
    const question = asksAtTerminal(leaf) ? /\bconfirmAtTerminal\(/ : /\bconfirm\(/;
    assert.equal(question.test(String(await leaf.load?.())), asks(leaf), leaf.fullName());
    for (const said of [leaf.name(), leaf.description()]) {
      if (/^(delete|remove|end)/.test(said)) assert.ok(asks(leaf), leaf.fullName());
    }
  }
  assert.ok(destroying.length >= 11);
});

for (const leaf of destroying) {
  const needed = leaf.options
    .filter((option) => option.mandatory || (option.long === '--version' && leaf.name() === 'destroy'))
    .flatMap(({ long = '' }) => [long, '1']);
  const words = [...wordsOf(leaf), ...leaf.registeredArguments.map(() => 'it'), ...needed];
  test(`${words.join(' ')}: without a terminal it takes --yes, and on one somebody's word`, async () => {
    await using d = await desk();
    for (const missing of [{}, { stdin: true }, { stderr: true }]) {
      const { code, stdout, stderr } = await d.kms(words, { tty: missing });
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(
        stderr,
        /^kms: this (deletes|destroys|removes|ends|disables|deactivates) .*\bit\b.*, and there is no terminal to ask at; add --yes to do it\n$/,
      );
    }
    const byName = worst.includes(wordsOf(leaf).join(' '));
    for (const answer of byName ? ['y\n', 'no\n', ''] : ['n\n', 'it\n', '']) {
      const { code, stdout, stderr } = await d.kms(words, { tty, stdin: typed(answer) });
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, /^This .*\. (To go on, type it:|Go on\? \[y\/N\]) kms: not confirmed; nothing was done\n$/);
    }
    // Past the question, this desk has nothing to destroy.
    for (const answered of [{ tty, stdin: typed(byName ? 'it\n' : 'yes\n') }, { env: { KMS_YES: 'true' } }]) {
      const { code, stderr } = await d.kms(words, answered);
      assert.ok(code === 3 || code === 1, String(code));
      assert.match(stderr, /nothing to talk to/);
    }
    assert.doesNotMatch((await d.kms([...words, '--yes'])).stderr, /This/);
  });
}

test('profile remove asks once it is there, and without a terminal it takes --yes', async () => {
  await using d = await desk();
  await d.kms('profile add it --server https://it.example');
  const off = await d.kms('profile remove it');
  assert.deepEqual(pick(off), [
    2,
    '',
    'kms: this removes the profile it and the copy of the API key in it, and there is no terminal to ask at; ' +
      'add --yes to do it\n',
  ]);
  const question = 'This removes the profile it and the copy of the API key in it. Go on? [y/N] ';
  const refused = await d.kms('profile remove it', { tty, stdin: typed('n\n') });
  assert.deepEqual(pick(refused), [1, '', `${question}kms: not confirmed; nothing was done\n`]);
  const done = await d.kms('profile remove it', { tty, stdin: typed('y\n') });
  assert.deepEqual(pick(done), [0, 'it is removed\n', question]);
});

test('seal asks on a terminal and says what stops; without one it seals', async () => {
  await using d = await desk();
  await d.json('init --json');
  const sealed = async (): Promise<unknown> => (await d.json<{ sealed: boolean }>('status --json')).sealed;
  const server = await serving(d);
  const deed =
    /^This seals the appliance: encrypting, .* until somebody unseals it, which takes the key file\. Go on\? \[y\/N\] /;
  const refused = await d.kms('seal', { tty, stdin: typed('n\n') });
  assert.deepEqual([refused.code, refused.stdout], [1, '']);
  assert.match(refused.stderr, deed);
  assert.match(refused.stderr, /kms: not confirmed; nothing was done\n$/);
  assert.equal(await sealed(), false);
  const done = await d.kms('seal', { tty, stdin: typed('y\n') });
  assert.equal(done.code, 0);
  assert.match(done.stderr, deed);
  // Sealed already, there is nothing to ask.
  const again = await d.kms('seal', { tty, stdin: typed('') });
  assert.deepEqual([again.code, again.stderr], [0, 'kms: it is sealed already\n']);
  for (const options of [{ tty, env: { KMS_YES: '1' } }, {}]) {
    assert.equal((await d.kms('unseal')).code, 0);
    const { code, stderr } = await d.kms('seal', options);
    assert.deepEqual([code, stderr], [0, '']);
  }
  await server.stop();
});

test('the question says at which appliance', async () => {
  await using d = await servedDesk();
  await d.kms(['profile', 'add', 'far', '--server', d.url], { stdin: d.appliance.root.key });
  await writeFile(d.path('root'), d.appliance.root.key, { mode: 0o600 });
  const asked = async (...args: string[]): Promise<string> =>
    (await d.kms(['account', 'delete', 'work', ...args], { tty, stdin: typed('n\n') })).stderr;
  await d.json('account create work --json');
  const first = 'work has no API keys.\n';
  const rest = 'this deletes the account work and its API keys for good. Go on';
  assert.ok((await asked('--profile', 'far')).startsWith(`${first}At ${d.url} (profile far), ${rest}`));
  assert.ok((await asked('--server', d.url, '--api-key-file', 'root')).startsWith(`${first}At ${d.url}, ${rest}`));
  assert.ok((await asked()).startsWith(`${first}T${rest.slice(1)}`));
});

test('the question says on which appliance, by its label, which takes no record', async () => {
  await using d = await servedDesk({ label: { text: 'prod €', colour: 'red' } });
  const asked = async (...args: string[]): Promise<string> => (await d.kms(args, { tty, stdin: typed('n\n') })).stderr;
  const seen = d.appliance.activity;
  await d.json('account create work --json');
  await writeFile(d.path('root'), d.appliance.root.key, { mode: 0o600 });
  const before = (await seen()).length;
  const first = 'work has no API keys.\n';
  const rest = 'this deletes the account work and its API keys for good. Go on? [y/N] ';
  const not = 'kms: not confirmed; nothing was done\n';
  assert.equal(await asked('account', 'delete', 'work'), `${first}On prod €, ${rest}${not}`);
  const args = ['account', 'delete', 'work', '--server', d.url, '--api-key-file', 'root'];
  assert.equal(await asked(...args), `${first}On prod €, at ${d.url}, ${rest}${not}`);
  const actions = (await seen()).slice(0, -before).map(({ action }) => action);
  assert.deepEqual([...new Set(actions)].sort(), ['account.read', 'apikey.read'], 'only the look at the account is');
  await d.kms('profile add x --server https://x.example');
  assert.match(await asked('profile', 'remove', 'x'), /^This removes the profile x /);
});

test('revoke asks on a terminal and says which key, by a name or an end of its id; without one it does not', async () => {
  await using d = await servedDesk({ label: { text: 'prod', colour: 'red' } });
  const { keyid } = await d.json<{ keyid: string }>(
    'apikey create --account admin --name worker --flag asset.search --json',
  );
  const question =
    'On prod, this disables the API key worker (never used): programs that use it are refused at once. Go on? [y/N] ';
  for (const named of [keyid, keyid.slice(-6), `apik_…${keyid.slice(-6)}`, 'worker']) {
    const kept = await d.kms(['apikey', 'revoke', named], { tty, stdin: typed('n\n') });
    assert.deepEqual([kept.code, kept.stderr], [1, `${question}kms: not confirmed; nothing was done\n`]);
  }
  assert.equal((await d.json<{ active: boolean }>('apikey show worker --json')).active, true);
  assert.equal(
    (await d.kms('apikey revoke worker')).stdout,
    `worker (${keyid}) is inactive; \`kms apikey update ${keyid} --active true\` takes that back\n`,
  );
  assert.equal((await d.json<{ active: boolean }>(`apikey show ${keyid} --json`)).active, false);
  await d.kms('apikey create --account admin --name worker');
  const twice = await d.kms('apikey revoke worker');
  assert.equal(twice.code, 1);
  assert.match(twice.stderr, /^kms: 2 API keys are named by worker; give the id of one: apik_\w+, apik_\w+\n$/);
});

test('what is missing or in use is told before the question', async () => {
  await using d = await servedDesk();
  for (const noun of ['keyring', 'key']) {
    const { code, stderr } = await d.kms([noun, 'delete', 'payroll'], { tty, stdin: typed('payroll\n') });
    assert.equal(code, 1);
    assert.doesNotMatch(stderr, /To go on/);
  }
  await d.json('keyring create payroll --json');
  for (const name of ['one', 'two']) {
    await d.kms(['apikey', 'create', '--account', 'admin', '--name', name, '--flag', 'keyring.payroll.encrypt']);
    const all =
      name === 'one'
        ? 'the active API key one names it; disable it'
        : '2 active API keys name it (one, …); disable them';
    const said = `kms: payroll cannot be deleted: ${all} first, see \`kms apikey list --ring payroll\`\n`;
    for (const options of [{ tty, stdin: typed('payroll\n') }, { env: { KMS_YES: 'true' } }]) {
      const { code, stdout, stderr } = await d.kms('keyring delete payroll', options);
      assert.deepEqual([code, stdout, stderr], [1, '', said]);
    }
  }
});

/** Commands that ask about one thing, each with the name of one that is not there. */
const missing: Readonly<Record<string, string>> = {
  'kms account delete': 'nobody',
  'kms apikey delete': 'nothing',
  'kms apikey proof disable': 'nothing proof_01jz4b8m6q3v9x2c5d7f8g9h0k',
  'kms apikey proof remove': 'nothing secret',
  'kms apikey revoke': 'nothing',
  'kms approval rule delete': 'nothing',
  'kms asset delete': 'asset_01jz4b8m6q3v9x2c5d7f8g9h0k',
  'kms key alias add': 'nothing apps/x',
  'kms key alias remove': 'nothing apps/x',
  'kms key compromised': 'nothing',
  'kms key config': 'nothing --min-decrypt-version 2',
  'kms key deactivate': 'nothing',
  'kms key delete': 'nothing',
  'kms key disable': 'nothing',
  'kms keyring delete': 'nothing',
  'kms master remove-custodian': '00000000000000aa',
  'kms profile remove': 'nothing',
  'kms secret delete': 'nothing',
  'kms secret destroy': 'nothing --version 1',
  'kms tang delete': 'nothing',
  'kms tenant delete': 'nothing',
  'kms tenant oidc remove': 'default',
  'kms user delete': 'nobody',
  'kms user reset-second-factor': 'nobody',
};
/** Those that are about no one thing of the appliance. */
const ofNothing = ['kms apply', 'kms import vault', 'kms seal'];

test('what does not exist is told before the question, whatever is asked', async () => {
  const asking = leavesOf(grammar()).filter(asks);
  assert.deepEqual(
    asking.map((leaf) => leaf.fullName()).sort(),
    [...Object.keys(missing), ...ofNothing].sort(),
    'a new command that asks has a line above',
  );
  await using d = await withKey();
  for (const [command, args] of Object.entries(missing)) {
    const line = `${command.slice('kms '.length)} ${args}`;
    const { code, stdout, stderr } = await d.kms(line, { tty, stdin: typed('y\n') });
    assert.deepEqual([code, stdout], [1, ''], line);
    assert.match(stderr, /^kms: (?:there is no |no identity provider is set up here)[^\n]+\n$/, line);
  }
});

test('on a terminal a question and its answer fit its width, and a command in them stays whole', async () => {
  await using d = await withKey('keyring create payroll', 'key create unseal', 'tenant create second --host b.example');
  const narrow = { ...tty, columns: 60 };
  const asked = await d.kms('--tenant default keyring delete payroll', { tty: narrow, stdin: typed('payroll\n') });
  assert.equal(
    asked.stderr,
    'This deletes the keyring payroll: what it encrypted cannot\nbe decrypted until it is restored, and after 30 days never.\n' +
      'To go on, type payroll: ',
  );
  assert.match(
    asked.stdout,
    /^payroll is deleted; for 30 days\n`kms keyring restore ring_\w{26}`\nrestores it\n$/,
    'a command between backticks stays in one line',
  );
  const gone = await d.kms('tenant delete second', { tty: narrow, stdin: typed('second\n') });
  for (const each of gone.stderr.split('\n')) assert.ok(each.length <= 60, each);
  assert.match(gone.stdout, /until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s\(in 29 days\)/, 'a local time');
  const elsewhere = await d.kms('tenant list --deleted --json');
  assert.match(elsewhere.stdout, /"restorableUntil": "\d{4}-\d\d-\d\dT/);
  const failed = await d.kms('key rotate nothing', { tty: { stderr: true, columns: 40 } });
  assert.match(failed.stderr, /^kms: there is no such managed key; check\nthe name or id\n$/);
});

test('the question says what goes with an account', async () => {
  await using d = await servedDesk();
  await d.json('account create work --json');
  const asked = async (): Promise<string> =>
    (await d.kms('account delete work', { tty, stdin: typed('n\n') })).stderr.split('\n')[0] ?? '';
  assert.equal(await asked(), 'work has no API keys.');
  const made: { keyid: string; key: string }[] = [];
  const make = async (): Promise<void> => {
    made.push(await d.json('apikey create --account work --flag account.read --json'));
  };
  await make();
  assert.equal(await asked(), 'work has 1 API key, which is active, never used.');
  await make();
  assert.equal(await asked(), 'work has 2 API keys, all of them active, never used.');
  const { args, env } = d.network(made[0]?.key);
  assert.equal((await d.kms(['account', 'list', ...args], { env })).code, 0);
  await d.kms(['apikey', 'revoke', made[1]?.keyid ?? '']);
  assert.equal(await asked(), 'work has 2 API keys, 1 of them active, last used 2026-01-02.');
  await d.kms(['apikey', 'revoke', made[0]?.keyid ?? '']);
  assert.equal(await asked(), 'work has 2 API keys, none of them active, last used 2026-01-02.');
});

test('the question says what an asset holds, and what was recovered with a Tang key pair', async () => {
  await using d = await servedDesk();
  await d.json('keyring create payroll --json');
  const encrypted = await d.kms(['encrypt', '--ring', 'payroll', '--asset-data', '{"case":17}', '-o', 'out', '-'], {
    stdin: 'text',
  });
  assert.equal(encrypted.code, 0, encrypted.stderr);
  const [asset] = (await d.json<{ data: { id: string }[] }>('asset search --json')).data;
  const { stderr } = await d.kms(['asset', 'delete', asset?.id ?? ''], { tty, stdin: typed('n\n') });
  assert.match(stderr, /^The asset was made 2026-01-02; its data: \{"case":17\}\nThis deletes the asset /);

  await d.kms('tang rotate');
  const { pair } = await d.json<{ pair: { thumbprint: string } }>('tang show --json');
  const advertised = await d.kms(['tang', 'delete', pair.thumbprint], { tty, stdin: typed('n\n') });
  assert.equal(
    advertised.stderr,
    `kms: ${pair.thumbprint} cannot be deleted: it is the pair that is advertised; run \`kms tang rotate\` first\n`,
  );
  await d.kms('tang rotate');
  const earlier = await d.kms(['tang', 'delete', pair.thumbprint], { tty, stdin: typed('n\n') });
  assert.match(earlier.stderr, /^Nothing was ever recovered with this pair\.\nThis deletes the Tang key pair /);
});

test('a managed key whose deletion is not allowed is told before the question', async () => {
  await using d = await servedDesk();
  await d.json('key create orders --json');
  const asked = () => d.kms('key delete orders', { tty, stdin: typed('n\n') });
  assert.equal(
    (await asked()).stderr,
    'kms: orders is protected from deletion; ' + 'lift that with `kms key config orders --deletion-allowed true`\n',
  );
  assert.equal((await d.kms('key config orders --deletion-allowed true')).code, 0);
  assert.match((await asked()).stderr, /^No caller has ever used orders\.\nThis deletes the managed key orders: /);
});

test('the deletion of a tenant says what goes with it, and first whether there is one', async () => {
  await using d = await desk();
  await d.json('init --json');
  const operator = 'kms: the tenant default cannot be deleted: its flags system.* concern the whole appliance\n';
  assert.deepEqual((await d.kms('tenant delete default', { tty, stdin: typed('default\n') })).stderr, operator);
  await d.json('tenant create second --host second.example --json');
  assert.deepEqual((await d.kms('tenant delete default', { tty, stdin: typed('default\n') })).stderr, operator);
  assert.equal((await d.kms('tenant delete default --yes')).stderr, operator, 'in the words of the appliance');
  await d.json('keyring create payroll --tenant second --json');
  await d.json('keyring create orders --tenant second --json');
  const asked = async (name: string): Promise<string> =>
    (await d.kms(['tenant', 'delete', name], { tty, stdin: typed('n\n') })).stderr;
  assert.match(
    await asked('second'),
    /^With it go 2 keyrings, 1 account and 1 API key\.\nThis deletes the tenant second: /,
  );
  assert.match(await asked('third'), /^kms: there is no [^\n]+\n$/);
});

test('the question about an account says that a key that may do everything is among its keys', async () => {
  await using d = await desk();
  await d.json('init --json');
  const asked = async () => (await d.kms('account delete admin', { tty, stdin: typed('n\n') })).stderr.split('\n')[0];
  await d.json('apikey create --account admin --flag keyring.list --json');
  assert.equal(
    await asked(),
    'admin has 2 API keys, all of them active, never used; among them is root, which may do everything.',
  );
  await d.json('apikey create --account admin --name two --flag * --json');
  assert.match((await asked()) ?? '', /; among them are 2 that may do everything, such as (root|two)\.$/);
});
