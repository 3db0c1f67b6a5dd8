// Every command that destroys something asks first, and every command that asks says so.
import assert from 'node:assert/strict';
import test from 'node:test';
import type { GrammarCommand } from '../../src/cli/command.ts';
import { grammar, leavesOf } from './grammar-tree.ts';
import { desk, typed } from './kms.ts';
import { servedDesk } from './served.ts';
import { serving } from './serving.ts';

const wordsOf = (leaf: GrammarCommand): string[] => leaf.fullName().split(' ').slice(1);
const asks = (leaf: GrammarCommand): boolean => leaf.options.some(({ long }) => long === '--yes');
/** Those that ask on a terminal only have their own tests below. */
const asksAtTerminal = (leaf: GrammarCommand): boolean =>
  ['kms seal', 'kms apikey revoke', 'kms key compromised'].includes(leaf.fullName());
const destroying = leavesOf(grammar()).filter((leaf) => asks(leaf) && !asksAtTerminal(leaf));
const tty = { stdin: true, stdout: true, stderr: true };
/** The most destructive commands: the object's name must be typed. */
const worst = ['keyring delete', 'tenant delete', 'key delete', 'tang delete'];

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
  const words = [...wordsOf(leaf), ...leaf.registeredArguments.map(() => 'it')];
  test(`${words.join(' ')}: without a terminal it takes --yes, and on one somebody's word`, async () => {
    await using d = await desk();
    for (const missing of [{}, { stdin: true }, { stderr: true }]) {
      const { code, stdout, stderr } = await d.kms(words, { tty: missing });
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(
        stderr,
        /^kms: this (deletes|removes|ends|disables) .*\bit\b.*, and there is no terminal to ask at; add --yes to do it\n$/,
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
      assert.match(stderr, /(nothing to talk to|there is no profile it)/);
    }
    assert.doesNotMatch((await d.kms([...words, '--yes'])).stderr, /This/);
  });
}

test('seal asks on a terminal and says what stops; without one it seals', async () => {
  await using d = await desk();
  await d.json('init --json');
  const sealed = async (): Promise<unknown> => (await d.json<{ sealed: boolean }>('status --json')).sealed;
  const server = await serving(d);
  const deed =
    /^This seals the appliance: encrypting, .* until somebody unseals it, which takes keyfile\. Go on\? \[y\/N\] /;
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
  const asked = async (...args: string[]): Promise<string> =>
    (await d.kms(['asset', 'delete', 'a', ...args], { tty, stdin: typed('n\n') })).stderr;
  const rest = 'this deletes the asset a for good: headers that carry it will no longer verify. Go on';
  assert.ok((await asked('--profile', 'far')).startsWith(`At ${d.url} (profile far), ${rest}`));
  assert.ok((await asked('--server', d.url)).startsWith(`At ${d.url}, ${rest}`));
  assert.ok((await asked()).startsWith(`T${rest.slice(1)}`));
});

test('the question says on which appliance, by its label, which takes no record', async () => {
  await using d = await servedDesk({ label: { text: 'prod €', colour: 'red' } });
  const asked = async (...args: string[]): Promise<string> => (await d.kms(args, { tty, stdin: typed('n\n') })).stderr;
  const seen = d.appliance.activity;
  const before = (await seen()).length;
  const rest = 'this deletes the asset a for good: headers that carry it will no longer verify. Go on? [y/N] ';
  const not = 'kms: not confirmed; nothing was done\n';
  assert.equal(await asked('asset', 'delete', 'a'), `On prod €, ${rest}${not}`);
  const args = ['asset', 'delete', 'a', '--server', d.url];
  assert.equal(await asked(...args), `On prod €, at ${d.url}, ${rest}${not}`);
  assert.equal((await seen()).length, before, 'nothing is recorded');
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
  assert.equal((await d.kms('apikey revoke worker')).code, 0);
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
