// Every state and option in which the API leaves an object: what `kms export` prints of it is a file that plans to
// nothing, and that goes on doing so when dates pass.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import test from 'node:test';
import { keyTypes, usualUses } from '../../src/model/key-types.ts';
import { TestCertificate } from '../support/client-certificates.ts';
import type { Ran } from './kms.ts';
import { type ServedDesk, servedDesk } from './served.ts';

const hour = 3_600_000;

/** A desk whose appliance has the time of the commands. */
async function timelyDesk(): Promise<ServedDesk> {
  const d = await servedDesk();
  d.appliance.advance(Date.now() - d.appliance.world.now());
  return d;
}

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
async function call(d: ServedDesk, method: string, path: string, body?: object): Promise<any> {
  const answer = await d.appliance.call(method, path, body);
  assert.equal(answer.status, 200, `${method} ${path} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

const over = (d: ServedDesk, line: string): Promise<Ran> => {
  const { args, env } = d.network();
  return d.kms([...args, ...line.split(' ')], { env });
};

/** Says `nothing`, or all that a plan of the exported objects says. */
async function planOfExport(d: ServedDesk): Promise<string> {
  const { code, stdout, stderr } = await over(d, 'export');
  assert.equal(code, 0, stderr);
  await writeFile(d.path('all.yaml'), stdout);
  return said(d);
}

async function said(d: ServedDesk): Promise<string> {
  const { code, stdout, stderr } = await over(d, 'plan -f all.yaml');
  return code === 0 ? 'nothing' : stdout + stderr;
}

test('managed keys: every state, by hand and by dates, with every option', async () => {
  await using d = await timelyDesk();
  const now = Date.now();
  const make = (name: string, more: object = {}) => call(d, 'POST', '/managed-keys', { name, ...more });
  const config = (name: string, body: object) => call(d, 'PUT', `/managed-keys/${name}/config`, body);
  const move = (name: string, state: string) => call(d, 'POST', `/managed-keys/${name}/state`, { state });
  const dates: readonly (readonly [string, object])[] = [
    ['none', {}],
    ['later', { activateAt: now + hour }],
    ['begun', { activateAt: now - hour }],
    ['ends', { deactivateAt: now + hour }],
    ['both', { activateAt: now + hour, deactivateAt: now + 2 * hour }],
  ];
  for (const [dated, fields] of dates) {
    const isWaiting = dated === 'later' || dated === 'both';
    for (const state of isWaiting ? ['active'] : ['active', 'suspended', 'deactivated', 'compromised']) {
      await make(`${dated}-${state}`, fields);
      if (isWaiting || state !== 'active') {
        await make(`${dated}-${state}-by-hand`, fields);
        await move(`${dated}-${state}-by-hand`, state);
      }
      if (!isWaiting && state !== 'active') await move(`${dated}-${state}`, state);
    }
  }
  await make('undated', { activateAt: now + hour });
  await config('undated', { activateAt: null });
  for (const before of ['active', 'suspended', 'compromised']) {
    await make(`over-${before}`);
    if (before !== 'active') await move(`over-${before}`, before);
    await config(`over-${before}`, { deactivateAt: now - hour });
  }
  for (const type of keyTypes) {
    if (type === 'secret') continue;
    const [use = 'encrypt'] = usualUses(type);
    await make(`type-${type}`, { type });
    await make(`one-${type}`, { type, uses: [use] }).catch(() => undefined);
  }
  await make('derived', { derived: true });
  await make('empty', { origin: 'imported' });
  await make('versions', {
    exportable: true,
    deletionAllowed: true,
    rotateAfter: 7200,
    aliases: ['App/One', 'app/two'],
  });
  for (let n = 0; n < 3; n++) await call(d, 'POST', '/managed-keys/versions/rotate');
  await config('versions', { minDecryptVersion: 2, minEncryptVersion: 3, tags: { a: 'b', '<<': '*x', null: '' } });
  await make('removed', { deletionAllowed: true });
  await call(d, 'DELETE', '/managed-keys/removed');
  assert.equal(await planOfExport(d), 'nothing');
  // The same file says the same when dates have passed.
  d.appliance.advance(3 * hour);
  const { now: real } = Date;
  Date.now = () => real() + 3 * hour;
  try {
    assert.equal(await said(d), 'nothing');
    assert.equal(await planOfExport(d), 'nothing');
  } finally {
    Date.now = real;
  }
});

test('a state beside a date means the state but for the date, and never keeps a plan from its end', async () => {
  await using d = await timelyDesk();
  const at = Date.now() + hour;
  const file = `kind: managed-key
name: ends
state: active
deactivateAt: ${at}
---
kind: managed-key
name: begins
state: active
activateAt: ${at}
---
kind: managed-key
name: rests
state: suspended
deactivateAt: ${at}
`;
  await writeFile(d.path('all.yaml'), file);
  assert.equal((await d.kms('apply -f all.yaml')).code, 0);
  assert.equal(await said(d), 'nothing');
  const state = async (name: string) => (await call(d, 'GET', `/managed-keys/${name}`)).key.state;
  assert.deepEqual(
    [await state('ends'), await state('begins'), await state('rests')],
    ['active', 'pre-active', 'suspended'],
  );
  const { now: real } = Date;
  Date.now = () => real() + 2 * hour;
  d.appliance.advance(2 * hour);
  try {
    assert.equal(await said(d), 'nothing');
    // By hand before the date: nothing is left for the date to do.
    await call(d, 'POST', '/managed-keys/begins/state', { state: 'suspended' });
    assert.match(await said(d), /state: suspended → active/);
  } finally {
    Date.now = real;
  }
  for (const [more, expected] of [
    [`state: suspended\nactivateAt: ${at}`, /all\.yaml:3:1: state: a key with a time to come in activateAt/],
    ['state: pre-active', /all\.yaml:3:1: state: a new key is active or suspended, not pre-active/],
    ['deactivateAt: 1000', /all\.yaml:3:1: deactivateAt: expected a time to come/],
    [`activateAt: ${at}\ndeactivateAt: ${at}`, /all\.yaml:4:1: deactivateAt: expected a time after activateAt/],
  ] as const) {
    await writeFile(d.path('all.yaml'), `kind: managed-key\nname: new\n${more}\n`);
    assert.match(await said(d), expected);
  }
  await writeFile(d.path('all.yaml'), `kind: managed-key\nname: ends\nactivateAt: ${at + hour * 9}\n`);
  assert.match(await said(d), /all\.yaml:3:1: activateAt: the key is deactivated/);
});

test('accounts, keyrings, users and rules: values that JSON has and files can hold', async () => {
  await using d = await timelyDesk();
  const props = {
    managedBy: 5,
    big: 2 ** 53,
    huge: 1e300,
    small: -0.5e-7,
    long: 12345678901234567000,
    none: null,
    texts: [
      '',
      ' ',
      'null',
      '~',
      '0x1',
      '1e3',
      '<<',
      '*a',
      '&b',
      '!c',
      '- d',
      'e: f',
      '# g',
      '\u2028\u0007',
      'ä\n\nb\n',
      '\ud83d\ude00',
    ],
    deep: { '<<': { '': [[[{}], []]] }, __proto__x: true },
  };
  for (const managedBy of [5, null, true, {}, '', 'other', 'x (unfinished) ']) {
    await call(d, 'POST', '/auth/accounts', {
      uid: `by-${JSON.stringify(managedBy)}`,
      notes: 'n\n#',
      props: { ...props, managedBy },
    });
  }
  await call(d, 'POST', '/ks/keyrings', { name: 'Plain' });
  await call(d, 'PUT', '/ks/config', { ringname: 'plain', config: { rotateAfter: 7200, offlineDecrypt: true, props } });
  const user = { firstName: 'A', lastName: 'B', props };
  await call(d, 'POST', '/auth/users', {
    ...user,
    username: 'Ada',
    email: 'Ada@Example.org',
    flags: { 'app.Custom': true, 'asset.read': false },
  });
  await call(d, 'POST', '/auth/user/invite', {
    ...user,
    username: 'bob',
    email: 'bob@example.org',
    flags: { '*': true },
  });
  const { user: approver } = { user: await call(d, 'GET', '/auth/users/ada') };
  await call(d, 'POST', '/approvals/rules', {
    name: 'one',
    actions: ['account.*'],
    approvers: { users: [approver.id] },
    breakers: [approver.id],
    window: 300,
    mode: 'hold',
    objects: ['b', 'a'],
    expires: Date.now() + hour,
    props,
    count: 1,
  });
  assert.equal(await planOfExport(d), 'nothing');
});

test('API keys: every option, flags of other programs, every kind of proof on and off', async () => {
  await using d = await timelyDesk();
  const { id: accountId } = await call(d, 'POST', '/auth/accounts', { uid: 'a' });
  const make = async (name: string, more: object = {}): Promise<string> =>
    (await call(d, 'POST', '/auth/apikey', { accountId, name, ...more })).keyid;
  await make('plain');
  await make('flags', {
    flags: { 'app.custom': true, 'Asset.Read': true, 'asset.search': false, 'keyring.a.b.encrypt': true },
  });
  await make('off', { active: false });
  await make('soon', { expiresAt: Date.now() + hour });
  await make('places', { allowedAddresses: ['192.0.2.7/24', '::ffff:10.0.0.1', '2001:DB8::/32'] });
  await make('proofless', { secret: false });
  const claims = { repository: ['a', 'b*'], 'sub-claim': 'x' };
  for (const active of [true, false]) {
    const keyid = await make(`proofs-${active}`, { secret: false });
    const add = (proof: object) => call(d, 'POST', `/auth/apikeys/${keyid}/proofs`, { active, ...proof });
    const { pem } = await TestCertificate.authority(Date.now());
    for (const proof of [
      { kind: 'aws' },
      { kind: 'aws', name: 'second' },
      { kind: 'certificate', issue: true, days: 3 },
      { kind: 'certificate', name: 'pinned', certificate: pem },
      { kind: 'certificate', name: 'named', ca: pem, san: 'dns:Foo.example.org' },
      { kind: 'certificate', name: 'spiffe', ca: pem, san: `spiffe://prod-${active}.example.org/payroll/*` },
      {
        kind: 'jwt',
        issuer: `https://ci-${active}.example.org`,
        audience: ['b', 'a'],
        subject: 'repo:acme/x:*',
        claims,
        once: true,
        longest: 60,
      },
      {
        kind: 'jwt',
        name: 'pinned',
        issuer: `https://a-${active}.example.org`,
        audience: 'kms',
        subject: 'me',
        jwks: jwks(),
      },
      {
        kind: 'jwt',
        name: 'ca',
        issuer: `https://b-${active}.example.org`,
        audience: 'kms',
        subject: 'me',
        ca: pem,
        jwksUrl: 'https://b.example.org/keys',
      },
    ]) {
      await add(proof);
    }
    const twins = await make(`twins-${active}`);
    const token = { kind: 'jwt', issuer: 'https://ci.example.org', audience: 'kms', subject: 'me' };
    for (const proof of [{ kind: 'aws' }, { kind: 'certificate', issue: true }, token]) {
      for (let n = 0; n < 2; n++) await call(d, 'POST', `/auth/apikeys/${twins}/proofs`, { active, ...proof });
    }
  }
  assert.equal(await planOfExport(d), 'nothing');
});

function jwks(): object {
  return {
    keys: [{ kty: 'OKP', crv: 'Ed25519', kid: 'one', alg: 'EdDSA', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }],
  };
}

test('capitals of names and aliases come from files, and go into them', async () => {
  await using d = await timelyDesk();
  const text = `kind: keyring
name: RingOne
publicKey: hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=
config:
  rotateAfter: 7200
---
kind: managed-key
name: CaseKey
type: aes256-gcm
uses:
  - encrypt
  - decrypt
aliases:
  - b/Two
  - My/App_1
`;
  await writeFile(d.path('all.yaml'), text);
  const shown = async () => {
    const { key } = await call(d, 'GET', '/managed-keys/casekey');
    return [(await call(d, 'GET', '/ks/keyrings/ringone')).ring.displayName, key.displayName, ...key.aliases];
  };
  assert.equal((await over(d, 'apply -f all.yaml')).code, 0);
  assert.deepEqual(await shown(), ['RingOne', 'CaseKey', 'b/Two', 'My/App_1']);
  assert.equal(await planOfExport(d), 'nothing');
  const exported = (await over(d, 'export')).stdout;
  await using other = await timelyDesk();
  await writeFile(other.path('all.yaml'), exported);
  const made = await over(other, 'apply -f all.yaml --secrets-out secrets');
  assert.equal(made.code, 0, made.stderr);
  assert.equal((await over(other, 'export')).stdout, exported);
  // A change keeps them, and none is needed for other capitals.
  const changed = exported.replaceAll('My/App_1', 'MY/app_1').replace('b/Two', 'C/Three').replace('7200', '9000');
  for (const [from, to] of [
    [changed, ['RingOne', 'CaseKey', 'C/Three', 'My/App_1']],
    [
      changed.replace('RingOne', 'RINGONE').replace('CaseKey', 'casekey'),
      ['RingOne', 'CaseKey', 'C/Three', 'My/App_1'],
    ],
  ] as const) {
    await writeFile(d.path('all.yaml'), from);
    assert.equal((await over(d, 'apply -f all.yaml')).code, 0);
    assert.deepEqual(await shown(), to);
    assert.equal(await said(d), 'nothing');
  }
  await writeFile(d.path('all.yaml'), `${text.replace('type:', 'deletionAllowed: true\ntype:')}`);
  assert.equal((await over(d, 'apply -f all.yaml')).code, 0);
  await writeFile(d.path('all.yaml'), '[]');
  const gone = await over(d, 'apply -f all.yaml --prune --yes');
  assert.deepEqual(
    [gone.code, gone.stdout.match(/^removed .*$/gm)],
    [0, ['removed managed key CaseKey', 'removed keyring RingOne']],
    gone.stderr,
  );
});
