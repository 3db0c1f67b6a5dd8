// `--json` prints one shape for each noun, whatever the command: docs/cli.md lists each command's output in nouns and
// their fields, and here each command is run and compared with that. A command that is not in the table, or prints
// something else, fails.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { SignJWT } from 'jose';
import type { z } from 'zod';
import { localEndpoints } from '../../src/api/local-endpoints.ts';
import { Standby } from '../../src/backup/standby.ts';
import type { GrammarCommand } from '../../src/cli/command.ts';
import { TestCertificate } from '../support/client-certificates.ts';
import { grammar, leavesOf } from './grammar-tree.ts';
import { desk } from './kms.ts';
import { serving } from './serving.ts';

const page = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8');

/** The rows of a two-column table with this heading, by the code in the first column. */
function rowsBelow(heading: string): Map<string, string> {
  const [, below = ''] = page.split(`| ${heading} |`);
  const [table = ''] = below.split('\n\n');
  return new Map(
    [...table.matchAll(/^\| `([^`]+)` \| (.+) \|$/gm)].map(([, name = '', told = '']) => [
      name,
      told.replaceAll('`', ''),
    ]),
  );
}

const commands = rowsBelow('command | prints');
/** Field names by noun; those that end in `?` may be absent. */
const nouns = new Map([...rowsBelow('noun | fields')].map(([noun, fields]) => [noun, fields.split(', ')]));

/** Differences between `value` and the documented shape, a line each. */
function problems(value: unknown, shape: string, at: string): string[] {
  if (shape.startsWith('[')) {
    const { data, pagination, ...others } = Object(value);
    if (!Array.isArray(data) || Object.keys(others).length > 0) return [`${at} is no list in pages`];
    const of = shape.slice(1, -1);
    return [
      ...problems(pagination, 'Page', `${at}.pagination`),
      ...data.flatMap((item, index) => problems(item, of, `${at}.data[${index}]`)),
    ];
  }
  if (shape === 'null' || shape.endsWith(' or null')) {
    if (value === null) return [];
    return problems(value, shape.slice(0, -' or null'.length), at);
  }
  if (shape.includes(' and ')) {
    const [noun = '', more = ''] = shape.split(' and ');
    return compared(value, [...fieldsOf(noun), ...fieldsOf(more)], at);
  }
  return compared(value, fieldsOf(shape), at);
}

function fieldsOf(shape: string): readonly string[] {
  if (shape === '{}') return [];
  if (shape.startsWith('{')) return shape.slice(1, -1).split(', ');
  return nouns.get(shape) ?? assert.fail(`no noun ${shape}`);
}

function compared(value: unknown, fields: readonly string[], at: string): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${at} is no object`];
  const known = new Map(
    fields.map((field) => {
      const [, name = '', optional, of] = /^(\w+)(\??)(?:: (.+))?$/.exec(field) ?? assert.fail(field);
      return [name, { isOptional: optional === '?', of }];
    }),
  );
  const missing = [...known].filter(([name, { isOptional }]) => !isOptional && !Object.hasOwn(value, name));
  return [
    ...missing.map(([name]) => `${at} has no ${name}`),
    ...Object.entries(value).flatMap(([name, inner]) => {
      const field = known.get(name);
      if (!field) return [`${at} has ${name}`];
      if (field.of === undefined) return [];
      if (!field.of.startsWith('several ')) return problems(inner, field.of, `${at}.${name}`);
      if (!Array.isArray(inner)) return [`${at}.${name} is no array`];
      const of = field.of.slice('several '.length);
      return inner.flatMap((item, index) => problems(item, of, `${at}.${name}[${index}]`));
    }),
  ];
}

function pathOf(command: GrammarCommand): string {
  return command.parent ? `${pathOf(command.parent as GrammarCommand)} ${command.name()}`.trim() : '';
}

const paths = leavesOf(grammar()).map(pathOf);

test('the page tells of every command what it prints, and of no other', () => {
  assert.deepEqual([...commands.keys()].sort(), [...paths].sort());
});

/** Commands that were run. */
const ran = new Set<string>();
const wrong: string[] = [];
const d = await desk();
after(() => d[Symbol.asyncDispose]());

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
type AnyJson = any;

interface How {
  readonly stdin?: string;
  /** The exit code. */
  readonly code?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Words of another command that runs it. */
  readonly before?: string;
}

async function run(line: string, { stdin = '', code = 0, env = {}, before = '' }: How = {}): Promise<AnyJson> {
  const path = paths.find((each) => line === each || line.startsWith(`${each} `)) ?? assert.fail(line);
  const answer = await d.kms(`${before}${line} --json`, { stdin, env });
  assert.equal(answer.code, code, `${line}: ${answer.stderr}`);
  // The part after a semicolon is for people.
  const shape = commands.get(path)?.split(';')[0];
  ran.add(path);
  if (shape !== undefined) wrong.push(...problems(JSON.parse(answer.stdout), shape, line));
  return JSON.parse(answer.stdout);
}

/** Commands that need more than one line to set up; they print the local endpoints' answers. */
const answered: Readonly<Record<string, string>> = {
  'user reset-second-factor': 'resetSecondFactor',
  'tenant oidc unlink': 'unlinkOidc',
};
/** Commands of users who log in with a second factor, or of another than who made it; each with one that prints the same. */
const alike: Readonly<Record<string, string>> = {
  'approval approve': 'approval show',
  'approval deny': 'approval show',
};
/** Commands that print no JSON, or none of the API's shapes. */
const texts = [
  'approval break-glass',
  'serve',
  'activity export',
  'completion',
  'man',
  'help',
  'tofu-key',
  'kubernetes-plugin',
  'export',
  'schema',
];
/** Links the executable, which the sources lack; the clean root tests it. */
const notHere = ['age-plugin install', 'tofu-provider install'];

test('what has another shape is found', () => {
  const page = { limit: 1, count: 1, hasMore: false };
  const license = { name: 'a', version: '1', license: 'MIT' };
  assert.deepEqual(problems({ data: [license], pagination: page }, '[License]', 'it'), []);
  assert.deepEqual(problems(null, 'License or null', 'it'), []);
  assert.deepEqual(problems({ ...license, key: 'k' }, 'License and {key?}', 'it'), []);
  for (const [value, shape, found] of [
    [[license], '[License]', 'it is no list in pages'],
    [{ data: [{ ...license, x: 1 }], pagination: page }, '[License]', 'it.data[0] has x'],
    [{ data: [], pagination: {} }, '[License]', 'it.pagination has no limit'],
    [{ name: 'a', version: '1' }, 'License', 'it has no license'],
    [{ license: {} }, '{license: License}', 'it.license has no name'],
    [{ licenses: [{}] }, '{licenses: several License}', 'it.licenses[0] has no name'],
    [null, 'License', 'it is no object'],
  ] as const) {
    assert.equal(problems(value, shape, 'it')[0], found);
  }
});

test('each command prints what the page tells', async () => {
  const first = await run('init');
  await run('status');
  await run('doctor');
  await run('user set-up-link');

  await run('keyring create payroll --private-key-out payroll.pem');
  await run('age recipient payroll');
  await run('age identity payroll');
  await run('keyring list');
  await run('keyring show payroll');
  await run('keyring keys payroll');
  await run('keyring keys payroll --usage');
  await run('keyring rotate payroll');
  await run('keyring config payroll --max-encrypt-count 100');
  await run('keyring config payroll');
  await run('keyring create gone --private-key-out gone.pem');
  const { id: gone } = await run('keyring delete gone --yes');
  await run('keyring list --deleted');
  await run(`keyring restore ${gone}`);
  await run('keyring create older --kem x25519 --private-key-out older.pem');
  await run('keyring upgrade older --private-key older.pem');

  await run('asym create partners --private-key-out partners.pem').then(({ key }) =>
    run(`asym show-key partners ${key.id}`),
  );
  await run('asym rotate partners');

  await run('key create unseal --exportable');
  await run('key list');
  await run('key show unseal');
  await run('key versions unseal');
  await run('key rotate unseal');
  await run('key config unseal --deletion-allowed true');
  const { items } = await run('key encrypt unseal', { stdin: 'hello' });
  await run('key decrypt unseal', { stdin: items[0].ciphertext });
  await run('key datakey unseal');
  await run('key datakey unseal --wrapped');
  await run('key dependents unseal');
  await run('key disable unseal --version 1 --yes');
  await run('key enable unseal --version 1');
  await run('key deactivate unseal --version 1 --yes');
  await run('key compromised unseal --version 1');
  await run('key alias add unseal app/db');
  await run('key alias remove unseal app/db --yes');
  await run('key export unseal --plaintext -o unseal.bin');
  await run('key import brought --from unseal.bin --type aes256-gcm');
  await run('secret put db/one', { stdin: '{"key": "c0ffee"}' });
  await run('secret put db/one --cas 1', { stdin: '{"key": "decaf"}' });
  await run('secret get db/one --version 1');
  await run('key deactivate db.one --version 1 --yes');
  await run('secret get db/one --version 1');
  await run('secret list');
  await run('secret show db/one');
  await run('secret config db/one --max-versions 10');
  await run('secret undelete db/one --version 1');
  await run('secret destroy db/one --version 1 --yes');
  await run('secret delete db/one --yes');
  await run('key create release --type ecdsa-p256');
  const { signature } = await run('key sign release', { stdin: 'hello' });
  await run(`key verify release --signature ${signature}`, { stdin: 'hello' });
  await run('key create hook --type hmac-sha256');
  await run('key mac hook', { stdin: 'hello' });
  await writeFile(d.path('vault.token'), 'root\n', { mode: 0o600 });
  await writeFile(d.path('samples'), 'unseal vault:v1:AAAA\n');
  const vault = createServer((request, response) => {
    const key = { type: 'aes256-gcm96', latest_version: 1 };
    response.end(JSON.stringify({ data: request.url?.includes('list=') ? { keys: ['unseal', 'kept'] } : key }));
  });
  await new Promise<void>((resolve) => vault.listen(0, '127.0.0.1', resolve));
  after(() => vault.close());
  const source = `--address http://127.0.0.1:${(vault.address() as AddressInfo).port} --token-file vault.token`;
  await run(`import vault ${source} --dry-run`);
  await run(`import vault ${source} --verify samples --yes`, { code: 1 });
  const { id: unseal } = await run('key delete unseal --yes');
  await run('key list --deleted');
  await run(`key restore ${unseal}`);

  const { pair: bound } = await run('tang rotate');
  await run('tang rotate');
  await run('tang list');
  await run('tang show');
  await run(`tang delete ${bound.thumbprint} --yes`);

  await writeFile(d.path('plain.txt'), 'plain');
  const { asset } = await run(
    'encrypt --ring payroll --private-key payroll.pem --asset-data {"case":17} -o out.kms plain.txt',
  );
  await run('encrypt --ring payroll --private-key payroll.pem -o bare.kms plain.txt');
  await run('decrypt --private-key payroll.pem -o back.txt out.kms');
  await run('decrypt --private-key payroll.pem -o bare.txt bare.kms');
  await run('inspect out.kms');
  await run('inspect bare.kms');
  await run(`asset show ${asset.id}`);
  await run('asset search');
  await run('asset signing-keys');
  await run(`asset delete ${asset.id} --yes`);

  await run('account create billing');
  await run('account list');
  await run('account show billing');
  await run('account update billing --notes x');
  const { keyid, key } = await run('apikey create --account billing --flag asset.search');
  await run('apikey create --account billing --flag asset.search --secret-out key.txt');
  await run('apikey list');
  await run('apikey list --account billing');
  await run('apikey list --ring payroll');
  await run(`apikey show ${keyid}`);
  await run(`apikey update ${keyid} --name nightly`);
  await run('apikey validate', { stdin: key });
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  await writeFile(d.path('ci.pem'), publicKey.export({ type: 'spki', format: 'pem' }));
  const trust = '--issuer https://ci.example.org --audience kms --subject build --jwks-file ci.pem';
  const { id: proof } = await run(`apikey proof add ${keyid} jwt ${trust}`);
  await run(`apikey proof add ${keyid} aws`);
  await run(`apikey proof add ${keyid} certificate --issue --out issued`);
  const authority = await TestCertificate.authority(Date.now());
  const renewed = { keys: authority.keys, notAfter: Date.now() + 90 * 86_400_000 };
  for (const { pem } of [authority, await TestCertificate.authority(Date.now(), 'CN=ca', renewed)]) {
    await writeFile(d.path('ca.crt'), pem);
    await run(`apikey proof add ${keyid} certificate --ca ca.crt --san dns:app.example`);
  }
  await run(`apikey proof list ${keyid}`);
  const now = Math.floor(Date.now() / 1000);
  const token = await new SignJWT({ iss: 'https://ci.example.org', aud: 'kms', sub: 'build', exp: now + 60, iat: now })
    .setProtectedHeader({ alg: 'ES256' })
    .sign(privateKey);
  await run(`apikey proof test ${keyid}`, { stdin: token });
  await run(`apikey login ${keyid}`, { stdin: token });
  await run(`apikey proof disable ${keyid} ${proof} --yes`);
  await run(`apikey proof enable ${keyid} ${proof}`);
  await run(`apikey proof remove ${keyid} ${proof} --yes`);
  await run('kmip client create san --account billing --out san');
  await run('apikey create --account billing --without-secret');
  await run(`apikey revoke ${keyid}`);
  await run(`apikey delete ${keyid} --yes`);
  await run('account delete billing --yes');

  await run('user create ada --email ada@example.org --first-name Ada --last-name Lovelace');
  await run('user invite bob --email bob@example.org --first-name Bob --last-name B');
  await run('user list');
  await run('user show ada');
  await run('user update ada --first-name A');
  await run('user reset-link ada');
  await run('approval rule presets');
  await run('approval rule create accounts --action account.delete --approver ada --approver bob');
  await run('approval rule list');
  await run('approval rule show accounts');
  await run('account create spare');
  await d.kms('account delete spare --yes');
  const { requests } = await run('approval list');
  await run(`approval show ${requests[0].id}`);
  await run(`approval withdraw ${requests[0].id}`);
  await d.kms('approval break-glass --reason x -- account delete spare --yes');
  await run('approval broken-glass');
  const breaking = 'approval break-glass --reason x -- ';
  await run('approval rule update accounts --mode hold', { before: breaking });
  await run('approval rule delete accounts --yes', { before: breaking });
  await run('user delete bob --yes');

  await writeFile(d.path('team.yaml'), 'kind: account\nname: team\n---\nkind: apikey\nname: app\naccountId: team\n');
  await run('plan -f team.yaml --out team.plan', { code: 2 });
  await run('apply team.plan --secrets-out secrets');
  await run('plan -f team.yaml');
  const printed = async (line: string) => JSON.parse((await d.kms(`${line} --json`)).stdout);
  for (const { kind, name } of await printed('export')) assert.ok(kind && name);
  assert.ok((await printed('schema')).definitions.account);
  await run('activity search --limit 3').then(({ data }) => run(`activity show ${data[0].id}`));
  await run('activity head');
  await run('activity verify');

  await run('tenant create blue --host blue.example');
  await run('tenant list');
  await run('tenant show blue');
  await run('tenant update blue --host blue.example --host blue2.example');
  await run('tenant limits blue --keyrings 5');
  await run('tenant use blue');
  await run('tenant use --none');
  await run('tenant rekey blue');
  await writeFile(d.path('secret'), 'x\n', { mode: 0o600 });
  await run('tenant oidc set blue --issuer https://login.example.org --client-id kms --client-secret-file secret');
  await run('tenant oidc show blue');
  await run('tenant oidc remove blue --yes');
  const { id: blue } = await run('tenant delete blue --yes');
  await run('tenant list --deleted');
  await run(`tenant restore ${blue}`);

  await run('master list');
  const { custodian } = await run('master add-custodian keyfile --file second.key');
  await run(`master remove-custodian ${custodian.id} --yes`);
  await run('master rotate');
  await run('recovery-kit');
  await run('recovery-kit -o kit.txt');

  await run('backup create b.kms-backup');
  await run('backup verify b.kms-backup');
  await run('restore b.kms-backup --data restored');

  const shipping = await serving(d, ['--data', 'followed', '--ship-to', 'shipped']);
  await shipping.stop();
  const standby = await Standby.open({ from: d.path('shipped'), data: d.path('standby'), keys: { keys: {} } });
  await standby.close();
  await run('standby promote --data standby --wait 1s');
  await writeFile(d.path('restored/kms.moved'), '{"to":"postgres://kms@db/kms"}');
  await run('move --undo --data restored');

  await run('drill');
  await run('upgrade --status');

  await run('tls self-signed --host kms.example');
  await run('licenses');
  await run('version');
  await run('profile add prod --server https://kms.example', { stdin: first.apiKey.key });
  await run('profile list');
  await run('profile show prod');
  await run('profile use prod');
  await run('profile use --none');
  await run('profile remove prod --yes');
  const env = { KMS_PASSPHRASE_FILE: d.path('passphrase') };
  await writeFile(d.path('passphrase'), 'five words that nobody guesses', { mode: 0o600 });
  await run('init --custodian passphrase --data served', { env });
  const server = await serving(d, ['--data', 'served'], env);
  after(() => server.stop());
  await run('metrics --data served');
  const keeper = 'user create keeper --email k@example.org --first-name K --last-name K --flag approval.rule';
  const { password } = JSON.parse((await d.kms(`${keeper} --data served --json`, { env })).stdout);
  await d.kms('approval rule create anything --action account.delete --approver keeper --data served', { env });
  await d.kms('account create spare --data served', { env });
  await d.kms('approval break-glass --reason x --data served -- account delete spare --yes', { env });
  const { broken } = JSON.parse((await d.kms('approval broken-glass --data served --json', { env })).stdout);
  await run(`approval acknowledge ${broken[0].id} --user keeper --data served`, { env, stdin: `${password}\n` });
  await run('status --data served');
  await run('seal --data served');
  await run('status --data served', { code: 4 });
  await run('unseal --data served', { stdin: 'five words that nobody guesses\n' });
  assert.deepEqual(wrong, []);
  for (const [command, id] of Object.entries(answered)) {
    const { answer } = localEndpoints.find((each) => each.id === id) ?? assert.fail(id);
    assert.equal(commands.get(command), `{${Object.keys((answer as z.ZodObject).shape).join(', ')}}`);
    ran.add(command);
  }
  for (const [command, other] of Object.entries(alike)) {
    assert.equal(commands.get(command), commands.get(other));
    ran.add(command);
  }
  assert.deepEqual([...ran, ...texts, ...notHere].sort(), [...paths].sort());
});
