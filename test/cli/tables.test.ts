// On a terminal of 80 columns each table shows its names whole, and says so where it hides a column.
import assert from 'node:assert/strict';
import test from 'node:test';
import { width } from '../../src/cli/text.ts';
import { type Desk, desk } from './kms.ts';

/** A long name of the kind that people choose. */
const name = 'payroll-production-eu';

const setUp = [
  `keyring create ${name}`,
  `key create ${name}-keys`,
  `account create ${name} --notes ${'the-billing-system-in-the-cellar'.repeat(3)}`,
  `apikey create --account ${name} --name ${name}-key --flag * --allow-address 10.1.2.0/24 --secret-out secret`,
  `user create ${name} --email ${name}@accounting.example.org --first-name Ada --last-name Lovelace`,
  'tang rotate',
  'tang rotate',
  `tenant create ${name} --host ${name}.example.org --host second.${name}.example.org`,
  'tenant limits default --users 50 --keyrings 10',
  `profile add ${name} --server https://kms.accounting.example.org --api-key-file secret`,
];

const tables: readonly (readonly [string, RegExp])[] = [
  ['keyring list', new RegExp(`^${name} `, 'm')],
  [`keyring keys ${name}`, /^CREATED .* ID /],
  ['key list', new RegExp(`^${name}-keys `, 'm')],
  ['account list', new RegExp(`^${name} `, 'm')],
  ['apikey list', new RegExp(`${name}-key `, 'm')],
  ['user list', new RegExp(`^${name} `, 'm')],
  ['tang list', /advertised/i],
  ['tenant list --tenant default', new RegExp(`^${name} `, 'm')],
  ['profile list', new RegExp(`^${name} `, 'm')],
  ['master list', /keyfile/],
  ['activity search --tenant default', /granted {2}keyring\.create {2}/],
  [`keyring keys ${name} --usage`, /^ID .* LAST DECRYPT /],
  [`key versions ${name}-keys`, /^VERSION /],
  [`key dependents ${name}-keys`, /encrypt/],
  ['status', /^payroll-/m],
];

const things: readonly string[] = [
  `keyring show ${name}`,
  `keyring config ${name}`,
  `key show ${name}-keys`,
  `key create ${name}-rsa --type rsa-2048`,
  `keyring create ${name}-2`,
  `account show ${name}`,
  `apikey show ${name}-key`,
  `user show ${name}`,
  `tenant show ${name}`,
  `key create ${name}-later --activate-at 2999-01-01 --deactivate-at 3000-01-01`,
  `apikey create --account ${name} --name two --expires 90d`,
  'keyring list --deleted',
  'status',
  `keyring delete ${name}-2 --yes`,
  'keyring list --deleted',
  `tenant delete ${name} --yes`,
  'tenant list --deleted',
];

/** A time for programs: on a terminal people get a local one, or how long ago it was. */
const exactTime = /\d{4}-\d\d-\d\dT\d\d:/;

const terminal = { tty: { stdout: true, stderr: true, columns: 80 }, env: { NO_COLOR: '1' } };

async function furnished(): Promise<Desk> {
  const d = await desk();
  await d.json('init --json');
  for (const line of setUp) {
    const ran = await d.kms(line.split(' '));
    assert.equal(ran.code, 0, `${line}: ${ran.stderr}`);
  }
  await d.kms('tenant use default');
  await d.kms(`key encrypt ${name}-keys`, { stdin: 'x' });
  return d;
}

test('at 80 columns a single thing is no wider, words aside that have no end before', async () => {
  await using d = await furnished();
  for (const line of things) {
    const ran = await d.kms(line, terminal);
    assert.equal(ran.code, 0, `${line}: ${ran.stderr}`);
    assert.doesNotMatch(`${ran.stdout}${ran.stderr}`, exactTime, line);
    for (const each of `${ran.stdout}${ran.stderr}`.split('\n')) {
      assert.ok(width(each) <= 80 || /^(?:\S.*? {2,}| *)\S{50,}$/.test(each), `${line}: ${each}`);
    }
  }
  const { stdout } = await d.kms(`keyring show ${name}`, terminal);
  assert.match(stdout, /^fingerprint {2}(?:[0-9a-f]{8} ){6}[0-9a-f]{8}\n {13}[0-9a-f]{8}$/m, 'in the same column');
  const elsewhere = await d.kms(`keyring show ${name}`);
  assert.match(elsewhere.stdout, /^fingerprint {2}(?:[0-9a-f]{8} ){7}[0-9a-f]{8}$/m);
});

test('at 80 columns no table cuts a name or is wider', async () => {
  await using d = await furnished();
  for (const [line, shown] of tables) {
    const ran = await d.kms(line, terminal);
    assert.equal(ran.code, 0, `${line}: ${ran.stderr}`);
    assert.match(ran.stdout, shown, line);
    for (const each of ran.stdout.split('\n')) assert.ok(width(each) <= 80, `${line}: ${each}`);
    assert.doesNotMatch(ran.stdout, exactTime, line);
    assert.doesNotMatch(ran.stdout, /(?:payroll|keyring|managed)[\w-]*…/, line);
  }
});

test('below 80 columns names go on in further lines, and none is cut', async () => {
  await using d = await furnished();
  for (const columns of [70, 60, 50]) {
    for (const line of ['key list', 'keyring list', 'user list', 'account list']) {
      const { stdout } = await d.kms(line, { ...terminal, tty: { ...terminal.tty, columns } });
      for (const each of stdout.split('\n')) assert.ok(width(each) <= columns, `${line}: ${each}`);
      assert.doesNotMatch(stdout, /(?:payroll|production|eu|keys)[\w-]*…/, `${line} at ${columns}`);
    }
  }
});

test('a table of API keys shows at 80 columns when keys expire, where one does so soon', async () => {
  await using d = await furnished();
  const titles = async (): Promise<readonly string[]> =>
    (await d.kms('apikey list', terminal)).stdout.split('\n')[0]?.split(/ {2,}/) ?? [];
  const create = (name: string, age: string) =>
    d.json(`apikey create --account ${name} --name ${name}-${age} --flag keyring.list --expires ${age} --json`);
  await create(name, '90d');
  assert.equal((await titles()).includes('EXPIRES'), false);
  await create(name, '4d');
  assert.deepEqual((await titles()).slice(0, 4), ['NAME', 'ID', 'ACTIVE', 'EXPIRES']);
  const { stdout } = await d.kms('apikey list', terminal);
  assert.match(stdout, /in (?:3|4) days/);
  assert.equal((await d.kms('apikey list')).stdout.split('\n')[0]?.includes('LAST USED'), true);
});
