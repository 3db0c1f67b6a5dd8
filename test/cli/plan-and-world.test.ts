// Plans beside what others do and what the caller cannot see: nothing goes that has come into use, and a saved plan is
// refused once anything of its objects has changed.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import test from 'node:test';
import type { Account } from '../../src/api/accounts.ts';
import type { SafeApiKey } from '../../src/api/apikeys.ts';
import { accountKind } from '../../src/cli/as-code/kinds/account.ts';
import { TestCertificate } from '../support/client-certificates.ts';
import type { Desk } from './kms.ts';
import { type ServedDesk, servedDesk } from './served.ts';

const write = (d: Desk, name: string, text: string) => writeFile(d.path(name), text);
const ring = 'publicKey: hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=';
const key = (name: string, more: string) => `kind: apikey\nname: ${name}\nsecret: false\n${more}`;

async function done(d: ServedDesk, line: string): Promise<string> {
  const { code, stdout, stderr } = await d.kms(line);
  assert.equal(code, 0, `${line}: ${stdout}${stderr}`);
  return stdout;
}

async function refused(d: ServedDesk, line: string, why: RegExp): Promise<void> {
  const { code, stdout, stderr } = await d.kms(line);
  assert.equal(code, 1, `${line}: ${stdout}${stderr}`);
  assert.match(stderr, why);
}

test('a saved plan removes nothing that has come into use since', async () => {
  await using d = await servedDesk();
  await write(d, 'all.yaml', `kind: account\nname: one\n---\nkind: keyring\nname: ring\n${ring}\n`);
  await done(d, 'apply -f all.yaml');
  await write(d, 'none.yaml', 'kind: account\nname: admin\n');
  for (const [use, why] of [
    ['apikey create --account one --name production --json', /account one stays: it has an API key/],
    ['apikey create --account admin --name user --flag keyring.ring.encrypt --json', /keyring ring stays: the API key/],
  ] as const) {
    await d.kms('plan -f none.yaml --prune --out p.plan');
    await done(d, use);
    await refused(d, 'apply p.plan --yes', why);
    await done(d, `apikey delete ${use.includes('production') ? 'production' : 'user'} --yes`);
  }
  await done(d, 'account show one');
});

test('a saved plan is refused when anything of its objects has changed, also what it leaves alone', async () => {
  await using d = await servedDesk();
  await write(d, 'f.yaml', `${key('k', 'accountId: admin\n')}---\nkind: keyring\nname: ring\n${ring}\n`);
  await done(d, 'apply -f f.yaml');
  for (const [file, change] of [
    [key('k', 'flags: {asset.search: true}\n').replace('secret: false\n', ''), 'apikey proof add k aws --name mine'],
    ['kind: keyring\nname: ring\nprops: {a: 1}\n', 'keyring config ring --rotate-after 12h'],
  ] as const) {
    await write(d, 'g.yaml', file);
    await d.kms('plan -f g.yaml --out p.plan');
    await done(d, change);
    await refused(d, 'apply p.plan', /is not as it was when the plan was made; nothing was done/);
  }
});

test('what the files name is never removed, and once is as good as twice', async () => {
  await using d = await servedDesk();
  const first = `kind: account\nname: a\n---\nkind: account\nname: b\n---\nkind: keyring\nname: ring\n${ring}\n---\n`;
  await write(d, 'f.yaml', first + key('mover', 'accountId: a\nflags: {keyring.ring.encrypt: true}\n'));
  await done(d, 'apply -f f.yaml');
  await write(
    d,
    'f.yaml',
    `${key('mover', 'accountId: a\n')}---\n${key('new', 'accountId: b\nflags: {keyring.ring.encrypt: true}\n')}`,
  );
  const kept = await d.kms('plan -f f.yaml --prune');
  assert.match(kept.stdout, /! account a stays: the API key mover names it/);
  assert.match(kept.stdout, /! account b stays: the API key new names it/);
  assert.match(kept.stdout, /! keyring ring stays: the API key new uses it/);
  await write(d, 'f.yaml', `kind: account\nname: b\n---\n${key('mover', 'accountId: b\nflags: {}\n')}`);
  assert.match(await done(d, 'apply -f f.yaml --prune --yes'), /removed account a/);
  assert.equal(await done(d, 'plan -f f.yaml --drift'), 'nothing to do: 2 objects are as the files say\n');
});

test('a caller that may list and not look deeper gets its plan, with what it cannot see', async () => {
  await using d = await servedDesk();
  await write(
    d,
    'f.yaml',
    `kind: account\nname: gone\n---\nkind: keyring\nname: ring\n${ring}\nconfig: {rotateAfter: 7200}\n`,
  );
  await done(d, 'apply -f f.yaml');
  const { key: secret } = await d.appliance.keyWith('keyring.list', 'account.read', 'account.delete', 'account.create');
  const { args, env } = d.network(secret);
  await write(d, 'g.yaml', `kind: keyring\nname: ring\nconfig: {rotateAfter: 9000}\n---\nkind: account\nname: new\n`);
  const { code, stdout, stderr } = await d.kms([...args, 'plan', '-f', 'g.yaml', '--prune'], { env });
  assert.equal(code, 2, stderr);
  assert.match(
    stdout,
    /~ keyring ring\n {4}! it cannot be compared: the permission flag keyring\.ring\.read is missing/,
  );
  assert.match(stdout, /\+ account new\n/);
  assert.match(
    stdout,
    /! account gone stays: what uses it cannot be seen: the permission flag apikey\.read is missing/,
  );
});

test('a caller that narrows its own flags does so after all else', async () => {
  await using d = await servedDesk();
  await write(d, 'f.yaml', 'kind: account\nname: out\n---\nkind: account\nname: in\n');
  await done(d, 'apply -f f.yaml');
  const made = await d.json<{ key: string }>(
    'apikey create --account admin --name self --flag account.* --flag apikey.* --json',
  );
  await write(
    d,
    'f.yaml',
    'kind: account\nname: in\n---\nkind: apikey\nname: self\nflags: {account.read: true, apikey.read: true}\n',
  );
  const { args, env } = d.network(made.key);
  const { code, stdout, stderr } = await d.kms([...args, ...'apply -f f.yaml --prune --yes'.split(' ')], { env });
  assert.equal(code, 0, stdout + stderr);
  assert.match(stdout, /removed account out\nchanged API key self/);
});

test('what was deleted and can be brought back is told before another is made in its place', async () => {
  await using d = await servedDesk();
  await write(
    d,
    'f.yaml',
    `kind: managed-key\nname: Orders\ndeletionAllowed: true\n---\nkind: keyring\nname: Ring\n${ring}\n`,
  );
  await done(d, 'apply -f f.yaml');
  await done(d, 'key delete orders --yes');
  await done(d, 'keyring delete ring --yes');
  const { stdout } = await d.kms('plan -f f.yaml');
  assert.match(stdout, /! one of this name was deleted: `kms key restore \S+` brings it back until \d{4}-/);
  const [, id] = /`kms keyring restore (\S+)`/.exec(stdout) ?? [];
  assert.equal((await d.kms('apply -f f.yaml')).code, 2, 'it takes a word');
  await done(d, `keyring restore ${id}`);
  assert.doesNotMatch((await d.kms('plan -f f.yaml')).stdout, /keyring/);
  await done(d, 'apply -f f.yaml --yes');
});

test('an object of another configuration is changed, and told; its mark goes only with a word', async () => {
  await using d = await servedDesk();
  await write(d, 'f.yaml', 'kind: account\nname: a\nnotes: one\n');
  await done(d, 'apply -f f.yaml --managed-by one');
  await write(d, 'f.yaml', 'kind: account\nname: a\nnotes: two\n');
  assert.match((await d.kms('plan -f f.yaml')).stdout, /notes: one → two\n {4}! belongs to the configuration one\n/);
  const adopting = (await d.kms('plan -f f.yaml --adopt')).stdout;
  assert.match(adopting, /! belongs to the configuration one, whose mark goes\n/);
  assert.doesNotMatch(adopting, /was not made from a configuration/);
  assert.equal((await d.kms('apply -f f.yaml --adopt')).code, 2);
  await done(d, 'apply -f f.yaml');
  await done(d, 'apply -f f.yaml --adopt --yes');
});

test('two secrets that would share a file are refused before anything is begun', async () => {
  await using d = await servedDesk();
  const named = (name: string, more = '') => `kind: apikey\nname: ${name}\naccountId: admin\n${more}`;
  for (const [one, two] of [
    [named('a', 'proofs: [{kind: aws, name: b}]\n'), named('a.b', 'proofs: [{kind: aws}]\n')],
    [named('Case'), named('case')],
  ]) {
    await write(d, 'f.yaml', `${one}---\n${two}`);
    await refused(
      d,
      'apply -f f.yaml --secrets-out secrets',
      /two secrets would be in (?:a\.b\.aws|case\.apikey); nothing/,
    );
  }
  assert.doesNotMatch((await d.kms('apikey list')).stdout, /Case|a\.b/);
});

test('a plan shows all that decides whom a proof lets in', async () => {
  await using d = await servedDesk();
  const { pem } = await TestCertificate.authority(Date.now());
  const [one, two] = [await TestCertificate.authority(Date.now()), await TestCertificate.authority(Date.now())];
  const keys = (x: string) => ({ keys: [{ kty: 'OKP', crv: 'Ed25519', kid: 'same', x }] });
  const base = { kind: 'jwt', name: 'main', issuer: 'https://ci.example.org', audience: 'kms', subject: 'me' };
  const [x, y] = ['11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo', 'hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo'];
  const pairs: readonly (readonly [object, object])[] = [
    [base, { ...base, audience: ['kms', 'other'] }],
    [base, { ...base, claims: { env: 'prod' } }],
    [
      { ...base, claims: { env: 'prod' } },
      { ...base, claims: { env: ['prod', 'test'] } },
    ],
    [base, { ...base, jwksUrl: 'https://evil.example/jwks' }],
    [
      { ...base, jwks: keys(x) },
      { ...base, jwks: keys(y) },
    ],
    [
      { ...base, ca: one.pem },
      { ...base, ca: two.pem },
    ],
    [base, { ...base, once: true }],
    [base, { ...base, longest: 60 }],
    [
      { kind: 'certificate', certificate: one.pem },
      { kind: 'certificate', certificate: two.pem },
    ],
    [
      { kind: 'certificate', ca: pem, san: 'dns:a' },
      { kind: 'certificate', ca: one.pem, san: 'dns:a' },
    ],
  ];
  for (const [n, [before, after]] of pairs.entries()) {
    const object = { kind: 'apikey', name: `k${n}`, accountId: 'admin', secret: false };
    await write(d, 'f.yaml', JSON.stringify({ ...object, proofs: [{ ...before, ...issuerOf(before, n) }] }));
    await done(d, 'apply -f f.yaml');
    await write(d, 'f.yaml', JSON.stringify({ ...object, proofs: [{ ...after, ...issuerOf(after, n) }] }));
    const { stdout } = await d.kms('plan -f f.yaml');
    const [, added] = /proofs: \+ (.*)\n/.exec(stdout) ?? [];
    const [, removed] = /proofs: - (.*)\n/.exec(stdout) ?? [];
    assert.ok(added !== undefined && removed !== undefined && added !== removed, `${n}: ${stdout}`);
    await done(d, `apikey delete k${n} --yes`);
  }
});

function issuerOf(proof: object, n: number): object {
  return 'issuer' in proof ? { issuer: `https://ci-${n}.example.org` } : {};
}

test('a defect of this program is told as one, with the place of the object, not as the answer of the appliance', async (t) => {
  await using d = await servedDesk();
  await write(d, 'f.yaml', 'kind: account\nname: a\n');
  const { args, env } = d.network();
  for (const method of ['problems', 'secrets'] as const) {
    const mocked = t.mock.method(accountKind, method, () => {
      throw new TypeError('it is not iterable');
    });
    const { code, stderr } = await d.kms([...args, 'plan', '-f', 'f.yaml'], { env });
    assert.equal(code, 1);
    assert.equal(
      stderr,
      'kms: f.yaml:1:1: account a: it is not iterable; this is a defect of kms: KMS_DEBUG=1 shows where\n',
    );
    mocked.mock.restore();
  }
  t.mock.method(accountKind, 'create', async () => {
    throw new TypeError('it is not iterable');
  });
  const { stderr } = await d.kms([...args, 'apply', '-f', 'f.yaml'], { env });
  assert.match(stderr, /^kms: account a: it is not iterable; this is a defect of kms/);
});

test('an API key goes to the account of its file, whatever the uids look like', async () => {
  await using d = await servedDesk();
  const uids = ['plain', 'acct_team', `acct_${'0'.repeat(26)}`];
  await write(d, 'f.yaml', uids.map((uid) => `kind: account\nname: ${uid}\n`).join('---\n'));
  await done(d, 'apply -f f.yaml');
  for (const uid of [...uids, ...uids.toReversed()]) {
    await write(d, 'f.yaml', key('moved', `accountId: ${uid}\n`));
    await done(d, 'apply -f f.yaml');
    const { references } = await d.json<SafeApiKey>('apikey show moved --json');
    const { data } = await d.json<{ data: Account[] }>('account list --json');
    assert.equal(references.accountId, data.find((account) => account.uid === uid)?.id);
    assert.equal(await done(d, 'plan -f f.yaml'), 'nothing to do: 1 object is as the files say\n');
  }
});

test('--prune removes each of several that have one name', async () => {
  await using d = await servedDesk();
  const two = ['one', 'two'].map((name) => key(name, 'accountId: acc\n'));
  await write(d, 'f.yaml', ['kind: account\nname: acc\n', ...two].join('---\n'));
  await done(d, 'apply -f f.yaml');
  const { data } = await d.json<{ data: SafeApiKey[] }>('apikey list --json');
  const { keyid } = data.find(({ name }) => name === 'one') ?? {};
  await d.appliance.call('PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'replace', name: 'two' });
  await write(d, 'f.yaml', '[]');
  const plan = await d.kms('plan -f f.yaml --prune --out p.plan');
  assert.match(plan.stdout, /^- API key two\n- API key two\n- account acc$/m);
  assert.match(await done(d, 'apply p.plan --yes'), /removed API key two\nremoved API key two\nremoved account acc\n/);
  assert.equal(await done(d, 'plan -f f.yaml --drift'), 'nothing to do: 0 objects are as the files say\n');
});

test('an export leaves out what the caller cannot see, says so, and has the rest', async () => {
  await using d = await servedDesk();
  await write(d, 'f.yaml', `${key('k', 'accountId: admin\n')}---\nkind: keyring\nname: ring\n${ring}\n`);
  await done(d, 'apply -f f.yaml');
  const { key: secret } = await d.appliance.keyWith('apikey.read', 'keyring.list', 'key.list');
  const { args, env } = d.network(secret);
  const all = await d.kms([...args, 'export'], { env });
  assert.equal(all.code, 0, all.stderr);
  assert.match(all.stdout, /^name: k$/m);
  assert.doesNotMatch(all.stdout, /kind: keyring|accountId/);
  assert.match(all.stderr, /^kms: 1 keyring left out: the permission flag keyring\.ring\.read is missing$/m);
  assert.match(all.stderr, /^kms: \d API keys without the account: the permission flag account\.read is missing$/m);
  await write(d, 'all.yaml', all.stdout);
  await done(d, 'plan -f all.yaml');
  const asked = await d.kms([...args, 'export', '--kind', 'keyring'], { env });
  assert.deepEqual([asked.code, asked.stdout], [1, '']);
});

test('names and aliases that a deleted managed key still has go to new ones; those of others are told', async () => {
  await using d = await servedDesk();
  const managed = (name: string, aliases: string) =>
    `kind: managed-key\nname: ${name}\ndeletionAllowed: true\naliases: ${aliases}\n`;
  await write(d, 'f.yaml', `${managed('s1', '[X]')}---\n${managed('s2', '[Y, stays]')}`);
  await done(d, 'apply -f f.yaml');
  await write(d, 'f.yaml', `${managed('s3', '[Z]')}`);
  await done(d, 'apply -f f.yaml --prune --yes');
  await write(d, 'f.yaml', `${managed('n1', '[x, new]')}---\n${managed('y', '[]')}---\n${managed('s3', '[Z]')}`);
  await done(d, 'apply -f f.yaml');
  assert.equal(await done(d, 'plan -f f.yaml'), 'nothing to do: 3 objects are as the files say\n');
  assert.match(await done(d, 'key show X'), /n1/);
  await write(d, 'h.yaml', managed('n2', '[stays]'));
  const { key: secret } = await d.appliance.keyWith('key.create', 'key.list');
  const { args, env } = d.network(secret);
  const lacking = await d.kms([...args, 'apply', '-f', 'h.yaml', '--yes'], { env });
  assert.match(lacking.stderr, /the deleted key s2 has stays as an alias: .*key\.mkey_\w+\.config/);
  await write(d, 'g.yaml', managed('z', '[]'));
  await refused(d, 'plan -f g.yaml', /g\.yaml:2:1: name: the managed key s3 has it as an alias: a run before this one/);
});
