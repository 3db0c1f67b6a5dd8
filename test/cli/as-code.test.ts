// Configuration as code, as typed: plans, what they do, and what they refuse.
import assert from 'node:assert/strict';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import test from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { Ajv } from 'ajv';
import { type Desk, type Ran, typed, withKey } from './kms.ts';
import { type ServedDesk, servedDesk } from './served.ts';

const tty = { stdin: true, stdout: true, stderr: true };

const team = `kind: account
name: billing
notes: Nightly invoices
props: {costCentre: 4711}
---
kind: apikey
name: nightly
accountId: billing
flags: {key.orders.encrypt: true, Asset.Search: true}
allowedAddresses: [192.0.2.7/24]
---
kind: apikey
name: off
accountId: billing
active: false
---
kind: apikey
name: ci
accountId: billing
secret: false
flags: {asset.search: true}
proofs:
  - {kind: jwt, name: main, issuer: 'https://ci.example.org', audience: kms, subject: 'repo:acme/payroll:ref:refs/heads/main'}
  - {kind: aws, name: s3}
  - {kind: certificate, name: tls, issue: true}
---
kind: keyring
name: Payroll
publicKey: hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=
keyProps: {a: 1}
config: {rotateAfter: 7200}
---
kind: managed-key
name: Orders
type: ed25519
state: suspended
aliases: [app/orders]
tags: {team: payments}
---
kind: user
name: ada
email: ada@example.org
firstName: Ada
lastName: Lovelace
flags: {asset.read: true}
`;

async function write(d: Desk, name: string, text: string): Promise<void> {
  await writeFile(d.path(name), text);
}

async function teamDesk(): Promise<ServedDesk> {
  const d = await servedDesk();
  // Commands compare times with those of this machine.
  d.appliance.advance(Date.now() - d.appliance.world.now());
  await write(d, 'team.yaml', team);
  return d;
}

const over = (d: ServedDesk, line: string, key?: string): Promise<Ran> => {
  const { args, env } = d.network(key);
  return d.kms([...args, ...line.split(' ')], { env });
};

interface Step {
  readonly action: string;
  readonly kind: string;
  readonly name: string;
  readonly missingFlags: readonly string[];
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
type AnyJson = any;

async function planned(d: Desk, line: string, code = 2): Promise<AnyJson> {
  const ran = await d.kms(`plan ${line} --json`);
  assert.equal(ran.code, code, ran.stderr);
  return JSON.parse(ran.stdout);
}

const names = (steps: readonly Step[]): string[] => steps.map(({ action, kind, name }) => `${action} ${kind} ${name}`);

test('one file makes everything, and the same file again does nothing, in every way to the appliance', async () => {
  await using d = await teamDesk();
  const { steps } = await planned(d, '-f team.yaml');
  assert.equal(steps.length, 7);
  const made = await d.json<AnyJson>('apply -f team.yaml --secrets-out secrets --json');
  assert.equal(made.done.length, 7);
  assert.deepEqual((await readdir(d.path('secrets'))).sort(), [
    'ada.invite',
    'ci.s3.aws',
    'ci.tls.pem',
    'nightly.apikey',
    'off.apikey',
  ]);
  for (const name of await readdir(d.path('secrets'))) {
    assert.equal((await stat(d.path('secrets', name))).mode & 0o777, 0o600);
  }
  const secret = await readFile(d.path('secrets/nightly.apikey'), 'utf8');
  assert.equal((await d.kms('apikey validate', { stdin: secret })).stdout, 'valid\n');
  const nightly = await d.json<AnyJson>('apikey show nightly --json');
  assert.deepEqual(nightly.props, { managedBy: 'kms-apply' });
  assert.deepEqual(nightly.allowedAddresses, ['192.0.2.0/24']);
  assert.equal((await d.json<AnyJson>('apikey show off --json')).active, false);
  const { key } = await d.json<AnyJson>('key show orders --json');
  assert.deepEqual([key.state, key.aliases], ['suspended', ['app/orders']]);
  const { config } = await d.json<AnyJson>('keyring config payroll --json');
  assert.deepEqual([config.rotateAfter, config.key.props], [7200, { a: 1 }]);
  const again = 'nothing to do: 7 objects are as the files say\n';
  for (const ran of [await d.kms('plan -f team.yaml'), await over(d, 'plan -f team.yaml')]) {
    assert.deepEqual([ran.code, ran.stdout, ran.stderr], [0, again, '']);
  }
  assert.equal((await over(d, 'apply -f team.yaml')).stdout, again);
});

test('no key, proof or managed key is live before it is switched off', async () => {
  await using d = await teamDesk();
  await d.json('apply -f team.yaml --secrets-out secrets --json');
  const { data } = await d.json<AnyJson>('activity search --all --json');
  const about = (name: string) => data.filter(({ props }: AnyJson) => props.object?.name === name);
  assert.ok(about('orders').every(({ props }: AnyJson) => props.state !== 'active'));
  assert.equal(about('orders').length, 1, 'it is made suspended, in one request');
  for (const { props } of about('off')) assert.deepEqual(props.granted ?? [], []);
});

test('every change is recorded with the digest of its plan', async () => {
  await using d = await teamDesk();
  const ran = await over(d, 'apply -f team.yaml --secrets-out secrets --json');
  assert.equal(ran.code, 0, ran.stderr);
  const { plan } = JSON.parse(ran.stdout);
  assert.match(plan, /^[0-9a-f]{64}$/);
  const { data } = await d.json<AnyJson>('activity search --all --json');
  const changes = data.filter(({ action }: AnyJson) => /\.(create|update|invite|config)$/.test(action));
  assert.ok(changes.length >= 7);
  assert.deepEqual([...new Set(changes.map(({ props }: AnyJson) => props.plan))], [plan]);
});

test('what was changed by hand is found, shown and mended', async () => {
  await using d = await teamDesk();
  await d.json('apply -f team.yaml --secrets-out secrets --json');
  for (const line of [
    'account update billing --notes x',
    'apikey update nightly --flag user.delete',
    'apikey update nightly --any-address',
    'user update ada --first-name A',
    'key config orders --tag team=red',
    'key alias add orders more/names',
    'keyring config payroll --rotate-after never',
    'apikey proof add ci aws --name mine',
  ]) {
    assert.equal((await d.kms(line)).code, 0, line);
  }
  const drift = await d.kms('plan -f team.yaml --drift --metrics-file kms.prom');
  assert.deepEqual([drift.code, drift.stderr], [2, '']);
  assert.equal(
    drift.stdout.replace(/\(AKIA\w+\)|\([A-Z2-7]{20}\)/g, '(…)'),
    `~ account billing
    notes: x → Nightly invoices
~ API key nightly
    flags: - user.delete
    allowedAddresses: [] → ["192.0.2.0/24"]
~ API key ci
    proofs: - aws "mine" (…)
~ keyring Payroll
    config.rotateAfter: none → 7200
~ managed key Orders
    aliases: ["app/orders","more/names"] → ["app/orders"]
    tags: {"team":"red"} → {"team":"payments"}
~ user ada
    firstName: A → Ada

+ is made, ~ is changed, - is removed, ! is to be noted
6 to change; 1 object is as the files say
`,
  );
  assert.match(await readFile(d.path('kms.prom'), 'utf8'), /^kms_drift_changes\{action="update"\} 6$/m);
  // A proof goes: without a terminal that takes a word.
  assert.equal((await d.kms('apply -f team.yaml')).code, 2);
  assert.equal((await d.kms('apply -f team.yaml --yes')).code, 0);
  assert.equal((await d.kms('plan -f team.yaml --drift')).code, 0);
});

test('a saved plan is done as it is, or refused', async () => {
  await using d = await servedDesk();
  await write(d, 'one.yaml', 'kind: account\nname: one\nnotes: a\n---\nkind: account\nname: two\n');
  await planned(d, '-f one.yaml --out one.plan');
  const text = await readFile(d.path('one.plan'), 'utf8');
  assert.equal((await stat(d.path('one.plan'))).mode & 0o777, 0o600);
  const refusal = async (ran: Promise<Ran>, why: RegExp): Promise<void> => {
    const { code, stderr } = await ran;
    assert.equal(code, 1, stderr);
    assert.match(stderr, why);
  };
  await write(d, 'altered.plan', text.replace('"a"', '"b"'));
  await refusal(d.kms('apply altered.plan'), /was altered/);
  for (const [field, why] of [
    ['appliance', /another appliance/],
    ['tenant', /another tenant/],
  ] as const) {
    assert.match(text, new RegExp(`"${field}"`));
    await write(d, 'other.plan', text.replace(new RegExp(`"${field}": "?[^",]+"?`), `"${field}": "x"`));
    await refusal(d.kms('apply other.plan'), /was altered/);
    assert.ok(why);
  }
  await refusal(over(d, 'apply one.plan'), /another caller, local/);
  // The world moves on: one is there, but otherwise.
  await d.json('account create one --notes other --json');
  await refusal(d.kms('apply one.plan'), /account one is not as it was when the plan was made; nothing was done/);
  assert.equal((await d.kms('account show two')).code, 1, 'nothing was done');
  // It is as the plan makes it: that part is done, and the rest goes on.
  await d.json('account update one --notes a --json');
  const { done } = await d.json<AnyJson>('apply one.plan --json');
  assert.deepEqual(names(done), ['create account two']);
  assert.deepEqual((await d.json<AnyJson>('apply one.plan --json')).done, []);
  await refusal(d.kms('apply one.yaml'), /holds no plan/);
});

test('--prune removes what has the mark and is in no file, and nothing else', async () => {
  await using d = await teamDesk();
  await d.json('apply -f team.yaml --secrets-out secrets --json');
  await d.json('account create byhand --json');
  await write(d, 'other.yaml', 'kind: account\nname: others\n');
  await d.json('apply -f other.yaml --managed-by others --json');
  await d.json('apikey create --account billing --name byhand --json');
  await write(d, 'less.yaml', 'kind: apikey\nname: nightly\n');
  const none = await planned(d, '-f less.yaml', 0);
  assert.deepEqual(none.steps, [], 'without --prune nothing is removed');
  const { steps, kept } = await planned(d, '-f less.yaml --prune');
  assert.deepEqual(names(steps).sort(), [
    'remove apikey ci',
    'remove apikey off',
    'remove keyring Payroll',
    'remove user ada',
  ]);
  assert.deepEqual(
    kept.map(({ name, why }: AnyJson) => `${name}: ${why}`),
    [
      'Orders: it is protected from deletion (deletionAllowed: false)',
      'billing: it has 2 API keys that would be deleted with it',
    ],
  );
  const unasked = await d.kms('apply -f less.yaml --prune');
  assert.equal(unasked.code, 2);
  assert.match(unasked.stderr, /there is no terminal to ask at; add --yes to do it\n$/);
  const no = await d.kms('apply -f less.yaml --prune', { tty, stdin: typed('n\n') });
  assert.deepEqual([no.code, (await d.kms('user show ada')).code], [1, 0]);
  assert.equal((await d.kms('apply -f less.yaml --prune --yes')).code, 0);
  assert.equal((await d.kms('user show ada')).code, 1);
  for (const uid of ['byhand', 'others', 'billing']) assert.equal((await d.kms(`account show ${uid}`)).code, 0);
});

test('--adopt gives the mark to what somebody made by hand', async () => {
  await using d = await servedDesk();
  await d.json(['account', 'create', 'old', '--props', '{"a":1}', '--json']);
  await write(d, 'old.yaml', 'kind: account\nname: old\n');
  assert.equal((await d.kms('plan -f old.yaml')).code, 0);
  assert.equal((await d.kms('apply -f old.yaml --adopt')).code, 0);
  assert.deepEqual((await d.json<AnyJson>('account show old --json')).props, { a: 1, managedBy: 'kms-apply' });
  assert.equal((await d.kms('plan -f old.yaml --adopt')).code, 0);
});

test('a caller that cannot see or do something is told, and nothing is begun', async () => {
  await using d = await teamDesk();
  await d.json('apply -f team.yaml --secrets-out secrets --json');
  const { key } = await d.json<AnyJson>(
    'apikey create --account admin --flag account.read --flag keyring.create --json',
  );
  await write(d, 'mixed.yaml', 'kind: account\nname: new\n---\nkind: keyring\nname: payroll\n');
  const ran = await over(d, 'plan -f mixed.yaml', key);
  assert.equal(ran.code, 2, ran.stderr);
  assert.equal(
    ran.stdout,
    `+ account new
    ! you may not do this: the permission flag account.create is missing
+ keyring payroll
    ! may exist already: you cannot see it

+ is made, ~ is changed, - is removed, ! is to be noted
2 to make; 0 objects are as the files say
`,
  );
  const refused = await over(d, 'apply -f mixed.yaml', key);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /account new: the permission flag account\.create is missing; nothing was done/);
  // Granting takes what is granted.
  await write(d, 'grant.yaml', 'kind: apikey\nname: nightly\nflags: {user.delete: true}\n');
  const reader = await d.json<AnyJson>(
    'apikey create --account admin --flag account.read --flag apikey.read --flag apikey.update --json',
  );
  const { stdout } = await over(d, 'plan -f grant.yaml', reader.key);
  assert.match(
    stdout,
    /you may not do this: the permission flags asset\.search, key\.orders\.encrypt, user\.delete are missing/,
  );
});

test('mistakes are found before anything is done, each with its place and what was probably meant', async () => {
  await using d = await servedDesk();
  const long = 'x'.repeat(300);
  const proved = 'accountId: admin\nproofs: ';
  const jwt = "kind: jwt, issuer: 'https://a.example', audience: kms, subject: me";
  for (const [text, expected] of [
    ['kind: acount\nname: a\n', /^kms: f\.yaml:1:1: unknown kind 'acount'.*did you mean account\?/],
    ['kind: account\n', /f\.yaml:1:1: name: is required/],
    ['- kind: account\n  name: a\n  nots: x\n', /f\.yaml:3:3: unknown field 'nots' of account; did you mean notes\?/],
    ['kind: account\nname: a\nnotes: 7\n', /f\.yaml:3:1: notes: expected a string, got a number/],
    [`kind: account\nname: ${long}\n`, /f\.yaml:2:1: name: has at most 256 characters/],
    ['kind: keyring\nname: a/b\n', /f\.yaml:2:1: name: does not have the right form/],
    ['kind: keyring\nname: a\n', /f\.yaml:2:1: name: a new keyring needs its publicKey/],
    ['kind: keyring\nname: a\npublicKey: AAAA\n', /f\.yaml:3:1: publicKey: expected an X25519/],
    [
      'kind: apikey\nname: a\naccountId: admn\n',
      /f\.yaml:3:1: accountId: there is no account admn; did you mean admin\?/,
    ],
    [
      'kind: apikey\nname: a\naccountId: admin\nflags: {keyring.x.encrpt: true}\n',
      /f\.yaml:4:9: .*keyring\.x\.encrypt\?/,
    ],
    [
      'kind: apikey\nname: a\naccountId: admin\nflags:\n  asset.search: true\n  key.a.encrypt: "true"\n',
      /f\.yaml:6:3: flags\.key\.a\.encrypt: expected true or false, got a string/,
    ],
    [
      'kind: apikey\nname: a\naccountId: admin\nexpiresAt: 2027-01-01T00:00:00Z\n',
      /f\.yaml:4:1: expiresAt: expected a number, got a string: a time is in milliseconds since 1970-01-01T00:00:00Z/,
    ],
    [
      'kind: managed-key\nname: k\nrotateAfter: 30d\n',
      /rotateAfter: expected a number, got a string: an age is in sec/,
    ],
    ['kind: apikey\nname: a\naccountId: admin\nallowedAddresses: [1.2.3.400]\n', /f\.yaml:4:20: allowedAddresses\.0/],
    ['kind: apikey\nname: a\naccountId: admin\nexpiresAt: 5\n', /f\.yaml:4:1: expiresAt: expected a time to come/],
    [
      'kind: apikey\nname: a\naccountId: admin\nproofs: [{kind: jwt, issuer: https://ci.example.org, audience: kms}]\n',
      /f\.yaml:4:10: proofs\.0\.subject: would let in others/,
    ],
    ['kind: apikey\nname: a\naccountId: admin\nproofs: [{kind: aws, san: x}]\n', /is not for proofs of the kind aws/],
    ['kind: apikey\nname: a\naccountId: admin\nproofs: [{kind: aws}, {kind: aws}]\n', /has the same name/],
    ['kind: user\nname: b\nemail: b@example.org\n', /f\.yaml:2:1: name: a new user needs firstName, lastName/],
    ['kind: managed-key\nname: k\nuses: [sign]\n', /f\.yaml:3:1: uses:/],
    ['kind: managed-key\nname: k\nstate: compromised\n', /state: a new key is active or suspended/],
    ['kind: managed-key\nname: random\n', /no managed key can have this name/],
    [
      'kind: account\nname: a\n---\nkind: account\nname: a\n',
      /f\.yaml:5:1: account a is described at f\.yaml:2:1 already/,
    ],
    ['kind: keyring\nname: A\n---\nkind: keyring\nname: a\n', /keyring a is described at/],
    ['kind: account\nname: a\nname: b\n', /f\.yaml:3:1: name is given twice/],
    ['kind: account\nname: !!str a\nnotes: !x y\n', /found a tag/],
    ...['!!binary abc', '!!timestamp 2027-01-01', '!!set {a}', '!!omap [{a: 1}]', '!!pairs [{a: 1}]', '!!merge a'].map(
      (value): [string, RegExp] => [
        `kind: account\nname: a\nprops: {a: ${value}}\n`,
        /f\.yaml:3:12: expected plain values, found a tag \(!\)/,
      ],
    ),
    ['kind: account\nname: [\n', /f\.yaml:\d+:\d+: expected YAML/],
    ['kind: account\nname: a\nprops: {managedBy: me}\n', /props\.managedBy: is the mark/],
    ['kind: account\nname: a\nprops: {n: 12345678901234567890}\n', /cannot be kept exactly/],
    ['kind: account\nname: a\nprops: {n: .inf}\n', /out of range/],
    [`kind: apikey\nname: a\n${proved}[{kind: jwt}]\n`, /f\.yaml:4:10: proofs\.0\.issuer: is required/],
    [`kind: apikey\nname: a\n${proved}[{kind: jwt, issuer: 'https://a.example'}]\n`, /proofs\.0\.audience: is req/],
    [`kind: apikey\nname: a\n${proved}[{${jwt}, jwks: {}}]\n`, /proofs\.0\.jwks: expected keys/],
    [`kind: apikey\nname: a\n${proved}[{${jwt}, jwks: {keys: [1, {}]}}]\n`, /proofs\.0\.jwks: expected keys/],
    [
      `kind: apikey\nname: a\n${proved}[{kind: certificate, ca: x, san: 'ip:10.0.0.1'}]\n`,
      /proofs\.0\.san: expected dns/,
    ],
    ['kind: managed-key\nname: k\ntags: {port: 8080}\n', /f\.yaml:3:8: tags\.port: expected a name and a text/],
    [
      'kind: managed-key\nname: k\naliases: [a/b]\n---\nkind: managed-key\nname: l\naliases: [A/B]\n',
      /f\.yaml:3:11: aliases\.0: the managed key l of the files has it/,
    ],
    ['kind: user\nname: b\nemail: a\nfirstName: A\nlastName: B\n', /f\.yaml:3:1: email: does not have the right form/],
    // Anchors end with their document, and come before what names them.
    ['kind: apikey\nname: a\nexpiresAt: *nope\n', /f\.yaml:3:12: there is no anchor &nope before it/],
    ['kind: account\nname: &n a\n---\nkind: account\nname: *n\n', /f\.yaml:5:7: there is no anchor &n before it/],
    ['- {kind: account, name: *n}\n- {kind: account, name: &n a}\n', /f\.yaml:1:25: there is no anchor &n before/],
    ['- *x\n', /f\.yaml:1:3: there is no anchor &x/],
    ['*x\n', /f\.yaml:1:1: there is no anchor &x/],
    ['kind: account\nname: a\nprops: {a: [1, *x]}\n', /f\.yaml:3:16: there is no anchor &x/],
    ['kind: account\nname: a\nprops: {*x : 1}\n', /f\.yaml:3:9: expected fields/],
    ['kind: account\nname: a\nprops: {a: &x {b: 1}, <<: *x}\n', /f\.yaml:3:23: merge keys/],
    ['hello\n', /f\.yaml:1:1: expected an object with kind and name/],
  ] as const) {
    await write(d, 'f.yaml', text);
    const { code, stdout, stderr } = await d.kms('plan -f f.yaml');
    assert.deepEqual([code, stdout], [1, ''], `${text}${stderr}`);
    assert.match(stderr, expected, text);
  }
  assert.equal((await d.kms('plan -f nothing.yaml')).code, 1);
  assert.equal((await d.kms('plan')).code, 1, 'wrong usage is no change');
  assert.equal((await d.kms('apply')).code, 2);
});

test('files that would take the machine away are refused', { timeout: 60_000 }, async () => {
  await using d = await servedDesk();
  const bomb = ['a: &a [x,x,x,x,x,x,x,x,x]'];
  for (let n = 1; n < 9; n++) {
    const [own, former] = [String.fromCharCode(97 + n), String.fromCharCode(96 + n)];
    bomb.push(`${own}: &${own} [${Array.from({ length: 9 }, () => `*${former}`).join(',')}]`);
  }
  const head = 'kind: account\nname: a\nprops:\n';
  for (const [text, expected] of [
    [`${head}${bomb.map((line) => `  ${line}`).join('\n')}\n`, /expected at most 32 aliases/],
    [`${head}  a: &a {b: *a}\n`, /f\.yaml/],
    [`${head}  a: ${'['.repeat(5000)}${']'.repeat(5000)}\n`, /nests/],
    [`${'#'.repeat(9 * 1024 * 1024)}\n`, /too large/],
    [`[${'{kind: account, name: a},'.repeat(20_001)}]`, /at most 20000 objects|20,000/],
  ] as const) {
    await write(d, 'f.yaml', text);
    const { code, stderr } = await d.kms('plan -f f.yaml');
    assert.equal(code, 1, stderr);
    assert.match(stderr, expected);
  }
});

test('a key whose secret cannot be kept is not left behind', async () => {
  await using d = await teamDesk();
  await write(d, 'keys.yaml', 'kind: apikey\nname: one\naccountId: admin\n');
  const none = await d.kms('apply -f keys.yaml');
  assert.equal(none.code, 2);
  assert.match(none.stderr, /API key one brings a secret: say where it goes/);
  // The place is taken: the key is not even made.
  await d.kms('apply -f team.yaml --secrets-out secrets --yes');
  await writeFile(d.path('secrets/one.apikey'), 'mine');
  const taken = await d.kms('apply -f keys.yaml --secrets-out secrets');
  assert.equal(taken.code, 1);
  assert.match(taken.stderr, /one\.apikey exists already and is not overwritten/);
  assert.equal((await d.kms('apikey show one')).code, 1);
  assert.equal(await readFile(d.path('secrets/one.apikey'), 'utf8'), 'mine');
  // The place is taken after the key was made: it is removed again.
  await write(d, 'two.yaml', 'kind: apikey\nname: two\naccountId: admin\n');
  const { app } = d.appliance;
  const served = app.fetch.bind(app);
  app.fetch = async (request, env) => {
    const answer = await served(request, env);
    if (request.method === 'POST' && request.url.includes('/auth/apikey'))
      await writeFile(d.path('secrets/two.apikey'), 'x');
    return answer;
  };
  const lost = await d.kms('apply -f two.yaml --secrets-out secrets');
  app.fetch = served;
  assert.equal(lost.code, 1);
  assert.match(lost.stderr, /so the API key apik_\w+ was removed again/);
  assert.equal((await d.kms('apikey show two')).code, 1);
  assert.deepEqual(
    (await readdir(d.path('secrets'))).filter((name) => name.startsWith('.')),
    [],
  );
});

test('a run that is cut off leaves no live key, and the next one goes on', async () => {
  await using d = await teamDesk();
  const { app } = d.appliance;
  const served = app.fetch.bind(app);
  let isCut = false;
  app.fetch = async (request, env) => {
    if (isCut) return Response.json({ message: 'gone' }, { status: 503 });
    const answer = await served(request, env);
    if (request.method === 'POST' && request.url.includes('/auth/apikey?')) isCut = true;
    return answer;
  };
  assert.equal((await d.kms('apply -f team.yaml --secrets-out secrets')).code, 1);
  app.fetch = served;
  const left = (await d.json<AnyJson>('apikey list --json')).data.filter(({ props }: AnyJson) => props.managedBy);
  assert.ok(left.length > 0);
  for (const key of left) assert.deepEqual([key.active, key.props.managedBy], [false, 'kms-apply (unfinished)']);
  const { stdout } = await d.kms('plan -f team.yaml');
  assert.match(stdout, /! an earlier run was cut off: it is made again/);
  assert.equal((await d.kms('apply -f team.yaml --secrets-out later --yes')).code, 0);
  assert.equal((await d.kms('plan -f team.yaml')).code, 0);
  const all = (await d.json<AnyJson>('apikey list --json')).data.map(({ name }: AnyJson) => name);
  assert.equal(new Set(all).size, all.length);
});

test('no secret is shown, in the plan, in the output, or sealed in clear', async () => {
  await using d = await teamDesk();
  await write(d, 'age.pub', '# a comment\nage1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z\n');
  await write(d, 'bad.pub', 'AGE-SECRET-KEY-1QQQQ\n');
  assert.equal((await d.kms('apply -f team.yaml --secrets-to bad.pub')).code, 1);
  const ran = await d.kms('apply -f team.yaml --secrets-to age.pub');
  assert.equal(ran.code, 0, ran.stderr);
  assert.doesNotMatch(ran.stdout + ran.stderr, /kms_[0-9A-Za-z]{43}|SECRET_ACCESS_KEY=|token=|PRIVATE KEY/);
  assert.equal(ran.stdout.match(/:\n-----BEGIN AGE ENCRYPTED FILE-----\n/g)?.length, 5);
});

test('two API keys of one name are told, not guessed', async () => {
  await using d = await servedDesk();
  for (let n = 0; n < 2; n++) await d.json('apikey create --account admin --name twin --json');
  await write(d, 'f.yaml', 'kind: apikey\nname: twin\n');
  const { code, stderr } = await d.kms('plan -f f.yaml');
  assert.equal(code, 1);
  assert.match(stderr, /2 API keys have this name/);
});

test('what a managed key cannot become is said in the plan', async () => {
  await using d = await withKey();
  await d.json('key create k --json');
  for (const [text, expected] of [
    ['type: ed25519', /type: cannot be changed: the key has aes256-gcm/],
    ['derived: true', /derived: cannot be changed/],
    ['exportable: true', /exportable: cannot be given back/],
    ['minDecryptVersion: 5', /minDecryptVersion: the latest version is 1/],
    ['minEncryptVersion: 2', /minEncryptVersion is 0, or a version from 1 to 1, not 2/],
  ] as const) {
    await write(d, 'f.yaml', `kind: managed-key\nname: K\n${text}\n`);
    const { code, stderr } = await d.kms('plan -f f.yaml');
    assert.equal(code, 1);
    assert.match(stderr, expected);
  }
  await d.kms('key encrypt k', { stdin: 'x' });
  await write(d, 'f.yaml', 'kind: managed-key\nname: k\nstate: suspended\n');
  assert.match((await d.kms('plan -f f.yaml')).stdout, /! 1 caller used it in the last 24 hours: --used goes on/);
  assert.match((await d.kms('apply -f f.yaml')).stderr, /1 caller used it in the last 24 hours.*; nothing was done/);
  assert.equal((await d.kms('apply -f f.yaml --used')).code, 0);
});

test('a managed key is not stopped for good without a word, nor while it is in use', async () => {
  await using d = await withKey();
  await d.json('key create k --exportable --json');
  await d.kms('key encrypt k', { stdin: 'x' });
  for (const [fields, isUse] of [
    ['deactivateAt: 1000', true],
    ['state: deactivated', true],
    ['exportable: false', false],
    ['state: compromised', false],
  ] as const) {
    await write(d, 'f.yaml', `kind: managed-key\nname: k\n${fields}\n`);
    const { code, stderr } = await d.kms('apply -f f.yaml --yes');
    if (isUse) assert.match(stderr, /1 caller used it in the last 24 hours.*; nothing was done/);
    else assert.equal(code, 0, stderr);
  }
  for (const [name, fields] of [
    ['a', 'deactivateAt: 1000'],
    ['b', 'state: deactivated'],
    ['c', 'state: compromised'],
    ['d', 'exportable: false'],
  ] as const) {
    await d.json(`key create ${name} --exportable --json`);
    await write(d, 'f.yaml', `kind: managed-key\nname: ${name}\n${fields}\n`);
    assert.match((await d.kms('apply -f f.yaml')).stderr, /there is no terminal to ask at; add --yes to do it/);
    assert.equal((await d.kms('apply -f f.yaml --yes')).code, 0);
  }
});

test('control characters of what an appliance tells reach no terminal', async () => {
  await using d = await servedDesk();
  await d.json(['account', 'create', 'a', '--notes', '\u001b[2Jgone\u202e', '--json']);
  await write(d, 'f.yaml', 'kind: account\nname: a\nnotes: ""\n');
  const { stdout } = await d.kms('plan -f f.yaml', { tty });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the very thing that is looked for
  assert.doesNotMatch(stdout, /\u001b\[2J|\u202e/);
  assert.match(stdout, /gone/);
});

test('what is exported plans to nothing, and makes the same of another appliance', async () => {
  await using d = await withKey();
  await write(d, 'team.yaml', team);
  await d.json('apply -f team.yaml --secrets-out secrets --json');
  await d.json('account create byhand --json');
  const { stdout } = await d.kms('export');
  await write(d, 'all.yaml', stdout);
  const again = await d.kms('plan -f all.yaml --drift');
  assert.equal(again.code, 0, again.stdout);
  assert.doesNotMatch(stdout, /managedBy/);
  const list = await d.json<AnyJson[]>('export --json');
  await write(d, 'all.json', JSON.stringify(list));
  assert.equal((await d.kms('plan -f all.json')).code, 0);
  assert.deepEqual(
    (await d.json<AnyJson[]>('export --kind account --json')).map(({ name }) => name),
    ['admin', 'billing', 'byhand'],
  );
  await using other = await withKey();
  await write(other, 'all.yaml', stdout);
  const made = await other.kms('apply -f all.yaml --secrets-out secrets --yes');
  assert.equal(made.code, 0, made.stderr);
  assert.equal((await other.kms('export')).stdout, stdout);
});

test('limits are set on the machine of the appliance, and there alone', async () => {
  await using d = await withKey();
  await write(d, 'f.yaml', 'kind: tenant-limits\nname: Default\nusers: 5\nassets: null\n');
  assert.equal((await d.kms('apply -f f.yaml')).code, 0);
  assert.equal((await d.kms('plan -f f.yaml')).code, 0);
  await write(d, 'none.yaml', 'kind: tenant-limits\nname: nowhere\nusers: 1\n');
  assert.match((await d.kms('plan -f none.yaml')).stderr, /none\.yaml:2:1: name: there is no such tenant/);
  assert.deepEqual((await d.json<AnyJson>('tenant show default --json')).limits, { users: 5 });
  const { data } = await d.json<AnyJson>('activity search --json');
  assert.ok(data.some(({ props }: AnyJson) => props.operation === 'limits' && /^[0-9a-f]{64}$/.test(props.plan)));
  await using served = await servedDesk();
  await write(served, 'f.yaml', 'kind: tenant-limits\nname: default\nusers: 5\n');
  const { code, stderr } = await over(served, 'plan -f f.yaml');
  assert.equal(code, 1);
  assert.match(stderr, /for the administrator at the machine alone/);
});

test('the JSON Schema takes what plans take, and refuses unknown fields', async () => {
  await using d = await servedDesk();
  const schema = await d.json('schema');
  const check = new Ajv({ strict: false, validateFormats: false }).compile(schema);
  const { parseAllDocuments } = await import('yaml');
  for (const document of parseAllDocuments(team)) assert.ok(check(document.toJS()), JSON.stringify(check.errors));
  assert.ok(check([{ kind: 'account', name: 'a' }]));
  for (const wrong of [
    { kind: 'account', name: 'a', nots: 'x' },
    { kind: 'acount', name: 'a' },
    { kind: 'account' },
    { kind: 'apikey', name: 'a', proofs: [{ kind: 'jwt', isuer: 'x' }] },
    { kind: 'managed-key', name: 'a', type: 'aes' },
  ]) {
    assert.ok(!check(wrong), JSON.stringify(wrong));
  }
});

test('500 objects are made side by side, in few requests', async () => {
  await using d = await servedDesk();
  const texts = [
    ...Array.from({ length: 50 }, (_, n) => `kind: account\nname: a${n}\n`),
    ...Array.from({ length: 450 }, (_, n) => `kind: apikey\nname: k${n}\naccountId: a${n % 50}\nsecret: false\n`),
  ];
  await write(d, 'f.yaml', texts.join('---\n'));
  const { app } = d.appliance;
  const served = app.fetch.bind(app);
  let [now, most, all] = [0, 0, 0];
  app.fetch = async (request, env) => {
    all++;
    most = Math.max(most, ++now);
    try {
      await setTimeout(5);
      return await served(request, env);
    } finally {
      now--;
    }
  };
  const { done } = await d.json<AnyJson>('apply -f f.yaml --json');
  assert.equal(done.length, 500);
  assert.ok(all < 520, `${all} requests`);
  assert.ok(most > 8, `${most} at once`);
});
