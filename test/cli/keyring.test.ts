// `kms keyring` as typed: create, upgrade, configure, rotate and delete; and where private keys are kept.
import assert from 'node:assert/strict';
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdir, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { generateRingKey, publicKeyOf, readPrivateKeys } from '../../src/client/ring-keys.ts';
import { desk, typed } from './kms.ts';
import { servedDesk } from './served.ts';
import { serving } from './serving.ts';

interface Created {
  readonly ring: { readonly id: string; readonly name: string; readonly publicKey: string; readonly activeKey: string };
  readonly privateKey?: string;
}

test('create keeps the private key in its usual place, says where, and prints no secret', async () => {
  await using d = await servedDesk();
  const { code, stdout, stderr } = await d.kms('keyring create PayRoll --props {"a":1}');
  const path = d.path('config', 'kms', 'rings', 'payroll.key');
  assert.equal(code, 0);
  assert.equal(stderr, `kms: the private key is in ${path}; nobody else has it, so keep a copy of it safe\n`);
  assert.match(
    stdout,
    /^name {9}PayRoll\nid {11}ring_\w{26}\nactive key {3}key_\w{26}\nalgorithm {4}aes256\ncustody {6}client\nkem {10}mlkem768-x25519\npublic key {3}\S+ \(whole with --json\)\nfingerprint {2}[0-9a-f]{8}( [0-9a-f]{8}){7}\nprops {8}\{"a":1\}\n/,
  );
  const pem = await readFile(path, 'utf8');
  assert.match(pem, /^-----BEGIN PRIVATE KEY-----\n/);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.equal((await stat(d.path('config', 'kms', 'rings'))).mode & 0o777, 0o700);
  const [key] = readPrivateKeys(pem, path);
  assert.equal(key?.kem, 'mlkem768-x25519');
  const shown = await d.json<{ ring: { publicKey: string } }>('keyring show payroll --json');
  assert.equal(shown.ring.publicKey, publicKeyOf(key));
  assert.ok(stdout.includes(`public key   ${shown.ring.publicKey.slice(0, 60)}... (`));
  const hex = createHash('sha256').update(Buffer.from(shown.ring.publicKey, 'base64')).digest('hex');
  const told = `\nfingerprint  ${hex.match(/.{8}/g)?.join(' ')}\n`;
  assert.ok(stdout.includes(told));
  assert.ok((await d.kms('keyring show payroll')).stdout.includes(told));
  assert.ok(!Object.hasOwn(shown.ring, 'fingerprint'), 'what the API answers');
  assert.ok(!(stdout + stderr).includes(pem.split('\n')[1] ?? 'x'));
});

test('create with --json prints what the API answers', async () => {
  await using d = await servedDesk();
  const answer = await d.json<Created>('keyring create r --json --private-key-out r.pem');
  assert.deepEqual(Object.keys(answer), ['ring', 'key', 'privateKey']);
  const lines = (await readFile(d.path('r.pem'), 'utf8')).trimEnd().split('\n');
  assert.equal(answer.privateKey, lines.slice(1, -1).join(''));
});

test('create makes a keyring of x25519 where that is said, which other programs read', async () => {
  await using d = await servedDesk();
  const answer = await d.json<Created>('keyring create r --kem x25519 --json --private-key-out r.pem');
  const pem = await readFile(d.path('r.pem'), 'utf8');
  const der = createPrivateKey(pem).export({ format: 'der', type: 'pkcs8' });
  assert.equal(answer.privateKey, der.toString('base64'));
  const spki = createPublicKey(pem).export({ format: 'der', type: 'spki' }).toString('base64');
  assert.equal(answer.ring.publicKey, spki);
  assert.match(
    (await d.kms('keyring show r')).stdout,
    new RegExp(`^public key {3}${spki.replaceAll('+', '\\+')}$`, 'm'),
  );
  const { publicKey } = generateRingKey('mlkem768-x25519');
  await writeFile(d.path('h.pub'), publicKey);
  const own = await d.json<Created>('keyring create h --public-key h.pub --json');
  assert.equal(own.ring.publicKey, publicKey);
  const other = await d.kms('keyring create i --public-key h.pub --kem x25519');
  assert.equal(other.code, 1);
  assert.match(other.stderr, /publicKey: expected one of the kem x25519, got one of mlkem768-x25519/);
});

interface ShownRing {
  readonly ring: { readonly kem: string; readonly publicKey: string; readonly activeKey: string };
}

test('upgrade gives a keyring a hybrid pair: what was encrypted before and after opens with its file', async () => {
  await using d = await servedDesk();
  const made = await d.json<ShownRing>('keyring create r --kem x25519 --json');
  const path = d.path('config', 'kms', 'rings', 'r.key');
  const before = await readFile(path, 'utf8');
  assert.equal((await d.kms('encrypt --ring r -o old.kms', { stdin: 'old' })).code, 0);

  // In two steps: the file first.
  const prepared = await d.kms('keyring upgrade R --prepare');
  assert.deepEqual(
    [prepared.code, prepared.stderr],
    [
      0,
      `kms: ${path} has the earlier private key and a hybrid one: hand it to all who use the keyring, then run this without --prepare\n`,
    ],
  );
  assert.match(prepared.stdout, /^kem {10}x25519$/m);
  const both = await readFile(path, 'utf8');
  assert.ok(both.startsWith(before));
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.ok(!(prepared.stdout + prepared.stderr).includes(both.split('\n')[5] ?? 'x'));
  assert.deepEqual((await d.json<ShownRing>('keyring show r --json')).ring, made.ring);
  assert.equal((await d.kms('encrypt --ring r -o between.kms', { stdin: 'between' })).code, 0);

  const upgraded = await d.kms('keyring upgrade r');
  assert.equal(upgraded.code, 0, upgraded.stderr);
  assert.match(upgraded.stdout, /^kem {10}mlkem768-x25519$/m);
  assert.equal(await readFile(path, 'utf8'), both);
  const { ring } = await d.json<ShownRing>('keyring show r --json');
  const [earlier, hybrid] = readPrivateKeys(both, path).map(publicKeyOf);
  assert.deepEqual([ring.kem, ring.publicKey], ['mlkem768-x25519', hybrid]);
  assert.notEqual(ring.activeKey, made.ring.activeKey);
  const { data } = await d.json<{ data: { id: string; kem: string; publicKey: string }[] }>('keyring keys r --json');
  assert.deepEqual(
    data.map(({ id, kem, publicKey }) => [id, kem, publicKey]),
    [
      [made.ring.activeKey, 'x25519', earlier],
      [ring.activeKey, 'mlkem768-x25519', hybrid],
    ],
  );
  assert.equal((await d.kms('encrypt --ring r -o new.kms', { stdin: 'new' })).code, 0);
  for (const text of ['old', 'between', 'new']) {
    assert.deepEqual([text, (await d.kms(`decrypt ${text}.kms`)).stdout], [text, text]);
  }
  // With only the earlier private key, the error says what is missing.
  await writeFile(d.path('before.pem'), before, { mode: 0o600 });
  assert.equal((await d.kms('decrypt --private-key before.pem old.kms')).stdout, 'old');
  const missing = await d.kms('decrypt --private-key before.pem new.kms');
  assert.deepEqual([missing.code, missing.stdout], [1, '']);
  assert.match(missing.stderr, /is wrapped by mlkem768-x25519, and the private key is one of x25519; if the ring was/);

  // Again: nothing is left to do.
  const again = await d.kms('keyring upgrade r');
  assert.deepEqual([again.code, again.stderr], [0, '']);
  assert.deepEqual((await d.json<ShownRing>('keyring show r --json')).ring, ring);
  assert.equal(await readFile(path, 'utf8'), both);
});

test('upgrade goes on where it was cut off, and two at once agree', async () => {
  await using d = await servedDesk();
  for (const name of ['a', 'b'])
    await d.json(`keyring create ${name} --kem x25519 --json --private-key-out ${name}.pem`);
  // The ring has the public key, and no key wrapped to it yet.
  assert.equal((await d.kms('keyring upgrade a --private-key a.pem --prepare')).code, 0);
  const publicKey = publicKeyOf(readPrivateKeys(await readFile(d.path('a.pem')), 'it').at(-1) ?? assert.fail());
  await d.appliance.call('PUT', '/ks/config', { ringname: 'a', config: { publicKey } });
  const { ring } = await d.json<ShownRing>('keyring upgrade a --json --private-key a.pem');
  const active = (await d.appliance.call('GET', `/ks/keyrings/a/keys/${ring.activeKey}`)).body;
  assert.deepEqual([active.kem, active.publicKey], ['mlkem768-x25519', publicKey]);

  const both = await Promise.all([1, 2].map(() => d.kms('keyring upgrade b --private-key b.pem')));
  for (const { code, stderr } of both) assert.ok(code === 0 || /is being written to/.test(stderr), stderr);
  assert.ok(both.some(({ code }) => code === 0));
  const keys = readPrivateKeys(await readFile(d.path('b.pem')), 'it');
  assert.equal(keys.length, 2);
  assert.equal(
    (await d.json<ShownRing>('keyring show b --json')).ring.publicKey,
    publicKeyOf(keys[1] ?? assert.fail()),
  );
  assert.ok(!(await readdir(d.dir)).includes('b.pem.new'));
});

test('upgrade refuses what would lose a key, and changes nothing', async () => {
  await using d = await servedDesk();
  await d.json('keyring create r --kem x25519 --json --private-key-out r.pem');
  await d.json('keyring create s --kem x25519 --json --private-key-out s.pem');
  const { publicKey } = generateRingKey('mlkem768-x25519');
  await writeFile(d.path('h.pub'), publicKey);
  await writeFile(d.path('x.pub'), generateRingKey().publicKey);
  await writeFile(d.path('busy.pem'), await readFile(d.path('r.pem')), { mode: 0o600 });
  await writeFile(d.path('busy.pem.new'), '');
  const file = await readFile(d.path('s.pem'), 'utf8');
  for (const [line, code, message] of [
    ['--private-key s.pem', 1, /s\.pem does not have the private key of the keyring r; name the file/],
    ['', 1, /cannot read the private key from .*r\.key/],
    ['--private-key busy.pem', 1, /busy\.pem is being written to: there is a file .*busy\.pem\.new; wait/],
    ['--public-key x.pub', 2, /--public-key: expected a public key of mlkem768-x25519/],
    ['--public-key h.pub --prepare', 2, /--prepare and --public-key exclude each other/],
  ] as const) {
    const answer = await d.kms(`keyring upgrade r ${line}`.trim());
    assert.equal(answer.code, code, answer.stderr);
    assert.match(answer.stderr, message);
  }
  assert.equal(await readFile(d.path('s.pem'), 'utf8'), file);
  assert.equal((await d.json<ShownRing>('keyring show r --json')).ring.kem, 'x25519');
  // With a pair of the user's own no file is needed.
  const { ring } = await d.json<ShownRing>('keyring upgrade r --public-key h.pub --json');
  assert.equal(ring.publicKey, publicKey);
  const nobody = await d.kms('keyring upgrade nobody');
  assert.equal(nobody.code, 1);
});

test('create with a public key of ones own writes no private key', async () => {
  await using d = await servedDesk();
  const { publicKey } = generateKeyPairSync('x25519');
  await writeFile(d.path('r.pub'), publicKey.export({ format: 'pem', type: 'spki' }));
  const answer = await d.json<Created>('keyring create r --public-key r.pub --json');
  assert.equal(answer.privateKey, undefined);
  assert.equal(answer.ring.publicKey, publicKey.export({ format: 'der', type: 'spki' }).toString('base64'));
  assert.deepEqual(await readdir(d.dir), ['kms-data', 'r.pub']);
});

test('no ring is made whose private key could not be kept', async () => {
  await using d = await servedDesk();
  await writeFile(d.path('taken.pem'), 'mine');
  await symlink('nowhere', d.path('link.pem'));
  await mkdir(d.path('config', 'kms', 'rings'), { recursive: true });
  await writeFile(d.path('config', 'kms', 'rings', 'old.key'), 'mine');
  const advice = 'move it away, or name another file with --private-key-out FILE';
  for (const [line, message] of [
    [
      'keyring create r --private-key-out taken.pem',
      `${d.path('taken.pem')} exists already and is not overwritten; ${advice}`,
    ],
    ...['keyring', 'asym'].map(
      (group) =>
        [
          `${group} create r --private-key-out link.pem`,
          `${d.path('link.pem')} exists already and is not overwritten; ${advice}`,
        ] as const,
    ),
    ['keyring create OLD', `${d.path('config/kms/rings/old.key')} exists already and is not overwritten; ${advice}`],
    [
      'keyring create r --private-key-out no/r.pem',
      `cannot write ${d.path('no/r.pem')}: there is no such file or directory`,
    ],
    [
      'asym create r --private-key-out taken.pem',
      `${d.path('taken.pem')} exists already and is not overwritten; ${advice}`,
    ],
  ] as const) {
    const { code, stdout, stderr } = await d.kms(line);
    assert.deepEqual([code, stdout, stderr], [1, '', `kms: ${message}\n`], line);
  }
  assert.equal(await readFile(d.path('taken.pem'), 'utf8'), 'mine');
  assert.deepEqual((await d.json<{ data: unknown[] }>('keyring list --json')).data, []);
});

test('a refused create leaves no file behind', async () => {
  await using d = await servedDesk();
  await d.json('keyring create r --json');
  const { code, stdout, stderr } = await d.kms('keyring create R --private-key-out again.pem');
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /^kms: there is already a keyring R\n$/);
  assert.deepEqual((await readdir(d.dir)).sort(), ['config', 'kms-data']);
});

test('a private key whose place is taken in the meantime is not lost', async () => {
  await using d = await servedDesk();
  await mkdir(d.path('keys'));
  const appliance = d.appliance;
  const original = appliance.app.fetch.bind(appliance.app);
  // The path is taken between the check and the write.
  appliance.app.fetch = async (request, env) => {
    if (request.url.endsWith('/ks/keyrings')) await writeFile(d.path('keys', 'r.pem'), 'mine');
    return original(request, env);
  };
  const { code, stderr } = await d.kms('keyring create r --private-key-out keys/r.pem');
  assert.equal(code, 1);
  assert.equal(await readFile(d.path('keys', 'r.pem'), 'utf8'), 'mine');
  const [kept] = (await readdir(d.path('keys'))).filter((name) => name !== 'r.pem');
  assert.ok(kept && stderr.includes(kept), stderr);
  assert.equal(readPrivateKeys(await readFile(d.path('keys', kept)), 'it').length, 1);
});

for (const [name, text] of [
  [
    'an RSA key',
    generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'pem', type: 'spki' }).toString(),
  ],
  ['a private key', generateKeyPairSync('x25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()],
  ['a low-order point', Buffer.alloc(32).toString('base64')],
  ['nothing', ''],
  ['binary', '\0\x01\x02'],
] as const) {
  test(`a public key file that holds ${name} is refused`, async () => {
    await using d = await servedDesk();
    await writeFile(d.path('r.pub'), text);
    const { code, stdout, stderr } = await d.kms('keyring create r --public-key r.pub');
    assert.deepEqual(
      [code, stdout, stderr],
      [
        1,
        '',
        `kms: ${d.path('r.pub')} holds no X25519 or MLKEM768-X25519 public key that can be used; expected PEM, base64 of SPKI DER, or base64 of the raw bytes\n`,
      ],
    );
  });
}

for (const name of ['../evil', '.hidden', 'a/b', '', 'x'.repeat(129), 'é']) {
  test(`a name that is none makes no path: "${name.slice(0, 20)}"`, async () => {
    await using d = await servedDesk();
    const { code, stdout, stderr } = await d.kms(['keyring', 'create', name]);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^kms: ".*" cannot name a ring; .*\n$/);
    assert.deepEqual(await readdir(d.dir), ['kms-data']);
  });
}

test('list, show, keys, rotate, config, delete and restore', async () => {
  await using d = await servedDesk();
  assert.deepEqual(await d.kms('keyring list').then(({ code, stdout, stderr }) => [code, stdout, stderr]), [
    0,
    '',
    'kms: no keyrings yet: make one with `kms keyring create NAME`\n',
  ]);
  const { ring } = await d.json<Created>('keyring create Payroll --json');
  assert.equal(
    (await d.kms('keyring list')).stdout,
    `NAME     KEM              CUSTODY  CREATED                   ID                               ACTIVE KEY\nPayroll  mlkem768-x25519  client   2026-01-02T03:04:05.678Z  ${ring.id}  ${ring.activeKey}\n`,
  );
  assert.deepEqual(await d.json('keyring show payroll --json'), await d.json(`keyring show --id ${ring.id} --json`));
  const { key } = await d.json<{ key: { id: string } }>('keyring rotate payroll --json');
  assert.equal(
    (await d.kms('keyring keys payroll')).stdout,
    `CREATED                   TYPE    KEM              ID                              PROPS\n2026-01-02T03:04:05.678Z  aes256  mlkem768-x25519  ${key.id}  {}\n2026-01-02T03:04:05.678Z  aes256  mlkem768-x25519  ${ring.activeKey}  {}\n`,
  );
  assert.equal(
    (await d.kms('keyring config payroll')).stdout,
    'encrypts per key   4294967296\nrotates            never by age\ndecrypt offline    no\nprops              {}\nprops of new keys  {}\n',
  );
  assert.equal(
    (await d.kms('keyring config payroll --max-encrypt-count 7 --rotate-after 90d --key-props {"b":2}')).stdout,
    'encrypts per key   7\nrotates            once a key is 90d old\ndecrypt offline    no\nprops              {}\nprops of new keys  {"b":2}\n',
  );
  assert.deepEqual(
    [(await d.kms('keyring delete payroll --yes')).stdout, (await d.kms('keyring show payroll')).code],
    [`payroll is deleted; for 30 days \`kms keyring restore ${ring.id}\` restores it\n`, 1],
  );
  interface Config {
    readonly config: { readonly rotateAfter: number | null; readonly algos: object };
  }
  const deleted = await d.json<{ data: { id: string; deletedAt: string }[] }>('keyring list --deleted --json');
  assert.deepEqual(
    deleted.data.map(({ id, deletedAt }) => [id, deletedAt]),
    [[ring.id, '2026-01-02T03:04:05.678Z']],
  );
  assert.equal(
    (await d.kms('keyring list --deleted')).stdout,
    `NAME     ID                               RESTORABLE UNTIL          DELETED\nPayroll  ${ring.id}  2026-02-01T03:04:05.678Z  2026-01-02T03:04:05.678Z\n`,
  );
  assert.equal((await d.kms(`keyring restore ${ring.id}`)).code, 0);
  assert.equal((await d.kms('keyring list --deleted')).stderr, 'kms: no deleted keyrings that can be restored\n');
  const config = (rest: string) => d.json<Config>(`keyring config payroll --json ${rest}`);
  assert.equal((await config('--rotate-after 1h')).config.rotateAfter, 3600);
  assert.deepEqual((await config('--max-encrypt-count 9')).config.rotateAfter, 3600);
  assert.equal((await config('--rotate-after never')).config.rotateAfter, null);
  assert.equal((await d.kms('keyring config payroll --rotate-after 59m')).code, 2);
  for (const wrong of ['90', 'x', '-1d', '']) {
    const { code, stderr } = await d.kms(['keyring', 'config', 'payroll', '--rotate-after', wrong]);
    assert.equal(code, 2);
    assert.match(stderr, /^kms: --rotate-after: expected an age such as 12h or 90d, or never, got "/);
  }
  assert.equal((await d.kms('keyring show payroll')).code, 0);
});

test('keys --usage tells what each key was last asked for, by whom, and how often of late', async (t) => {
  await using d = await servedDesk();
  const { appliance } = d;
  t.mock.method(Date, 'now', () => appliance.world.now());
  const { ring } = await d.json<Created>('keyring create Payroll --json');
  const { header } = (await appliance.call('POST', '/ks/encrypt', { ringname: 'payroll' })).body;
  const { key } = await d.json<{ key: { id: string } }>('keyring rotate payroll --json');
  const day = 24 * 60 * 60 * 1000;
  const reader = await appliance.keyWith('keyring.payroll.decrypt');
  for (const wait of [0, 29 * day, 0]) {
    appliance.advance(wait);
    await appliance.call('POST', '/ks/decrypt', { header }, { key: reader.key });
  }
  const table = async (...more: string[]) => {
    const { code, stdout } = await d.kms(['keyring', 'keys', ...more, '--usage']);
    assert.equal(code, 0);
    return stdout.split('\n').map((line) => line.split(/ {2,}/));
  };
  const made = '2026-01-02T03:04:05.678Z';
  const { keyid } = appliance.root;
  const titles = ['ID', 'ACTIVE', 'LAST DECRYPT', 'IN 30 DAYS', 'BY', 'LAST ENCRYPT', 'IN 30 DAYS', 'BY', 'CREATED'];
  assert.deepEqual((await table('payroll'))[0], titles);
  const old = (decrypts: string, encrypts: string) => [
    ...[ring.activeKey, 'no', '2026-01-31T03:04:05.678Z', decrypts, reader.keyid],
    ...[made, encrypts, keyid, made],
  ];
  assert.deepEqual((await table('payroll'))[2], old('3', '1'));
  assert.match((await table('payroll'))[1]?.join('|') ?? '', new RegExp(`^${key.id}\\|yes\\|none since ${made}\\|`));
  assert.deepEqual(await table('--id', ring.id), await table('payroll'));
  appliance.advance(day);
  assert.deepEqual((await table('payroll'))[2], old('2', '0'));
  appliance.advance(30 * day);
  assert.deepEqual((await table('payroll'))[2], old('0', '0'));
  interface Keys {
    readonly data: readonly { readonly usage?: { readonly days: readonly object[] } }[];
  }
  const { data } = await d.json<Keys>('keyring keys payroll --usage --json');
  assert.deepEqual(data[0]?.usage?.days, [
    { day: '2026-01-02', encrypts: 1, decrypts: 1 },
    { day: '2026-01-31', encrypts: 0, decrypts: 2 },
  ]);
  const plain = await d.json<Keys>('keyring keys payroll --json');
  assert.deepEqual(
    plain.data.map(({ usage }) => usage),
    [undefined, undefined],
  );
});

test('pages: all as one, or one by one', async () => {
  await using d = await servedDesk();
  for (const name of ['a', 'b', 'c']) await d.json(`keyring create ${name} --json`);
  interface Page {
    readonly data: readonly { readonly name: string }[];
    readonly pagination: {
      readonly limit: number;
      readonly count: number;
      readonly hasMore: boolean;
      readonly nextCursor?: string;
    };
  }
  const all = await d.json<Page>('keyring list --json');
  assert.deepEqual(
    [all.data.map(({ name }) => name), all.pagination],
    [['a', 'b', 'c'], { limit: 1000, count: 3, hasMore: false }],
  );
  const first = await d.json<Page>('keyring list --json --limit 2');
  assert.deepEqual(
    first.data.map(({ name }) => name),
    ['a', 'b'],
  );
  const second = await d.json<Page>(`keyring list --json --limit 2 --cursor ${first.pagination.nextCursor}`);
  assert.deepEqual([second.data.map(({ name }) => name), second.pagination.hasMore], [['c'], false]);
  const shown = await d.kms('keyring list --limit 2');
  assert.match(shown.stderr, /^kms: there is more: add --cursor \S+\n$/);
  assert.match((await d.kms('keyring list --cursor nonsense')).stderr, /^kms: .*cursor.*\n$/);
});

test('deleting asks on a terminal, and no is no', async () => {
  await using d = await servedDesk();
  await d.json('keyring create r --json');
  const tty = { stdin: true, stdout: true, stderr: true };
  const question =
    'This deletes the keyring r: what it encrypted cannot be decrypted until it is restored, and after 30 days never. To go on, type r: ';
  for (const answer of ['n\n', '\n', 'y\n', 'yes\n', 'R\n', 'r r\n', '', 'y'.repeat(5)]) {
    const { code, stdout, stderr } = await d.kms('keyring delete r', { tty, stdin: typed(answer) });
    assert.deepEqual([code, stdout, stderr], [1, '', `${question}kms: not confirmed; nothing was done\n`], answer);
  }
  const { code, stderr } = await d.kms('keyring delete r', { tty, stdin: typed('r\n') });
  assert.deepEqual([code, stderr], [0, question]);
});

test('without a terminal it takes --yes, from the environment too', async () => {
  await using d = await servedDesk();
  await d.json('keyring create r --json');
  assert.equal((await d.kms('keyring delete r')).code, 2);
  assert.equal((await d.kms('keyring delete r', { env: { KMS_YES: '0' } })).code, 2);
  assert.equal((await d.kms('keyring delete r', { env: { KMS_YES: '1' } })).code, 0);
});

test('nothing that a server says can play with the terminal', async () => {
  await using d = await servedDesk();
  const props = JSON.stringify({ a: '\x1b[2J\u202e' });
  await d.json(['keyring', 'create', 'r', '--json', '--props', props]);
  const { stdout } = await d.kms('keyring show r', { tty: { stdout: true } });
  assert.ok(stdout.includes('{"a":"\\u001b[2J\\u202e"}'), stdout);
  assert.match(stdout, /^[\x20-\x7e\n]*$/);
});

test('asym: create, rotate, show-key', async () => {
  await using d = await servedDesk();
  const created = await d.json<Created & { key: { id: string } }>('asym create Partners --json');
  assert.match(
    await readFile(d.path('config', 'kms', 'asym', 'partners.key'), 'utf8'),
    /^-----BEGIN PRIVATE KEY-----\n/,
  );
  const { key } = await d.json<{ key: { id: string } }>('asym rotate partners --json');
  assert.notEqual(key.id, created.key.id);
  const shown = await d.kms(`asym show-key partners ${created.key.id}`);
  assert.match(
    shown.stdout,
    new RegExp(`^id {11}${created.key.id}\ntype {9}AES256\nprops {8}\\{\\}\nwrapped key {2}\\S+\n$`),
  );
  const { publicKey } = created.ring;
  assert.deepEqual(await d.json(`asym show-key partners ${key.id} --json`), { ...key, publicKey });
  const { stdout } = await d.kms('asym create devices --kem mlkem768-x25519');
  assert.match(stdout, /\npublic key {3}\S+ \(whole with --json\)\nfingerprint {2}[0-9a-f ]{71}\ncreated {6}\S+\n$/);
});

test('a number that would not stay itself is refused before it is sent', async () => {
  await using d = await servedDesk();
  for (const [number, problem] of [
    ['12345678901234567890', 'holds a number that cannot be kept exactly: send it as a string'],
    ['1e999', 'holds a number out of range'],
  ]) {
    const ran = await d.kms(['keyring', 'create', 'r', '--props', `{"n": [${number}]}`]);
    assert.deepEqual([ran.code, ran.stderr], [2, `kms: --props: ${problem}; see \`kms keyring create --help\`\n`]);
  }
});

test('rings of one name and different appliances do not meet', async () => {
  await using d = await desk();
  const ids: string[] = [];
  let env = {};
  for (const data of ['one', 'two']) {
    const { apiKey } = await d.json<{ apiKey: { key: string } }>(`init --json --data ${data}`);
    env = { KMS_API_KEY: apiKey.key };
    const { applianceId } = await d.json<{ applianceId: string }>(`status --json --data ${data}`);
    ids.push(applianceId);
    for (const [line, kind] of [
      ['keyring create Payroll', 'rings'],
      ['asym create Payroll', 'asym'],
    ] as const) {
      const { code, stderr } = await d.kms(`${line} --data ${data}`);
      const path = d.path('config', 'kms', kind, applianceId, 'payroll.key');
      assert.deepEqual([code, stderr.split(';')[0]], [0, `kms: the private key is in ${path}`]);
      assert.equal((await stat(path)).mode & 0o777, 0o600);
      assert.equal((await stat(d.path('config', 'kms', kind, applianceId))).mode & 0o777, 0o700);
    }
    assert.equal((await d.kms(`encrypt --ring payroll --data ${data} -o ${data}.kms`, { stdin: data })).code, 0);
  }
  const rings = d.path('config', 'kms', 'rings');
  const kept = (id = ''): string => join(rings, id, 'payroll.key');
  for (const data of ['one', 'two']) assert.equal((await d.kms(`decrypt --data ${data} ${data}.kms`)).stdout, data);

  const [first, second] = ids;
  await rename(kept(second), d.path('away'));
  await rename(kept(first), kept(second));
  const wrong = await d.kms('decrypt --data two two.kms');
  assert.deepEqual([wrong.code, wrong.stdout], [1, '']);
  assert.match(wrong.stderr, /^kms: the private key does not open key_\w+: it is not the private key of its ring; /);
  await rename(kept(second), kept(first));
  for (const line of ['decrypt --data two two.kms', 'encrypt --ring payroll --data two away']) {
    const none = await d.kms(line);
    assert.deepEqual([none.code, none.stdout], [1, '']);
    assert.ok(none.stderr.startsWith(`kms: cannot read the private key from ${kept(second)}: `), none.stderr);
  }
  // The same over the socket and over the network, where the server returns its id.
  await rename(d.path('away'), kept(second));
  const server = await serving(d, ['--data', 'two']);
  try {
    for (const way of ['--data two', `--server ${server.url}`]) {
      assert.equal((await d.kms(`decrypt ${way} two.kms`, { env })).stdout, 'two', way);
      const again = await d.kms(`keyring create payroll ${way}`, { env });
      assert.match(again.stderr, /^kms: there is already a keyring payroll\n$/, 'its key would have had another place');
    }
  } finally {
    await server.stop();
  }
});

test('serve --default-kem says how keys are wrapped of rings whose makers do not', async () => {
  await using d = await desk();
  await d.json('init --json');
  assert.equal((await d.kms('serve --default-kem xwing')).code, 2);
  for (const [args, wanted] of [
    [[], 'x25519'],
    [['--default-kem', 'mlkem768-x25519'], 'mlkem768-x25519'],
  ] as const) {
    const server = await serving(d, args);
    const made = await d.json<ShownRing>(['asym', 'create', `a-${wanted}`, '--json']);
    assert.equal(made.ring.kem, wanted);
    // An explicit choice wins, also for keys that the command line makes.
    assert.equal((await d.json<ShownRing>(`keyring create x-${wanted} --kem x25519 --json`)).ring.kem, 'x25519');
    assert.equal((await d.json<ShownRing>(`keyring create h-${wanted} --json`)).ring.kem, 'mlkem768-x25519');
    assert.equal((await server.stop()).code, 0);
  }
});
