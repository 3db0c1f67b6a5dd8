// `kms age` and the plugin, driven as age drives it.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import test from 'node:test';
import { formatRecipient, parseRecipient } from '../../src/client/age-keys.ts';
import { publicKeyOf, readPrivateKeys } from '../../src/client/ring-keys.ts';
import { type Stanza, stanza, talk } from '../support/age-client.ts';
import type { RunOptions } from './kms.ts';
import { keyAnswers, type ServedDesk, servedDesk } from './served.ts';
import { serving } from './serving.ts';

const fileKey = randomBytes(16);

interface Spoken {
  readonly code: number;
  readonly stderr: string;
  readonly said: readonly Stanza[];
}

async function speak(
  d: Pick<ServedDesk, 'kms'>,
  machine: string,
  first: string,
  options: RunOptions = {},
): Promise<Spoken> {
  const { stdin, onStdout, said } = talk(first);
  const { code, stderr } = await d.kms(['__age-plugin', `--age-plugin=${machine}`], { ...options, stdin, onStdout });
  return { code, stderr, said };
}

/** Wraps the file key to these recipients or identities. */
function wrapped(d: Pick<ServedDesk, 'kms'>, recipients: readonly string[], options?: RunOptions): Promise<Spoken> {
  const added = recipients.map((text) => stanza(text.startsWith('age1') ? 'add-recipient' : 'add-identity', [text]));
  return speak(d, 'recipient-v1', `${added.join('')}${stanza('wrap-file-key', [], fileKey)}`, options);
}

/** Unwraps the stanzas of files, each as returned by `wrapped`. */
function unwrapped(
  d: Pick<ServedDesk, 'kms'>,
  identities: readonly string[],
  files: readonly (readonly Stanza[])[],
  options?: RunOptions,
): Promise<Spoken> {
  const added = identities.map((text) => stanza('add-identity', [text]));
  const stanzas = files.flatMap((each, file) =>
    each.map(({ args, body }) => stanza('recipient-stanza', [String(file), ...args.slice(1)], body)),
  );
  return speak(d, 'identity-v1', [...added, ...stanzas].join(''), options);
}

function stanzasIn({ code, stderr, said }: Spoken): readonly Stanza[] {
  assert.deepEqual([code, stderr, said.at(-1)?.type], [0, '', 'done'], JSON.stringify(said.map(String)));
  const stanzas = said.slice(0, -1);
  for (const { type, body } of stanzas) assert.equal(type, 'recipient-stanza', String(body));
  return stanzas;
}

/** The only message, an error. */
function errorIn({ code, said }: Spoken): readonly [args: string, message: string] {
  assert.deepEqual([code, said.map(({ type }) => type)], [0, ['error', 'done']]);
  const message = String(said[0]?.body);
  assert.match(message, /^[^\n]+$/);
  assert.doesNotMatch(message, /kms_[0-9A-Za-z]{10}|\bat .*\.ts|undefined/);
  return [String(said[0]?.args.join(' ')), message];
}

const pair = async (d: ServedDesk, ring: string, args: readonly string[] = [], options?: RunOptions) => ({
  recipient: (await d.kms([...args, 'age', 'recipient', ring], options)).stdout.trim(),
  identity: (await d.json<{ identity: string }>([...args, 'age', 'identity', ring, '--json'], options)).identity,
});

async function withRing(): Promise<ServedDesk> {
  const d = await servedDesk();
  await d.json('keyring create payroll --json');
  return d;
}

test('a file key comes back, and each unwrapping is one record of activity', async () => {
  await using d = await withRing();
  const { recipient, identity } = await pair(d, 'payroll');
  assert.match(recipient, /^age1kms1[a-z0-9]+$/);
  assert.match(identity, /^AGE-PLUGIN-KMS-1[A-Z0-9]+$/);
  const made = stanzasIn(await wrapped(d, [recipient]));
  assert.equal(made.length, 1);
  assert.deepEqual(made[0]?.args.slice(0, 3), ['0', 'kms', '1']);
  assert.ok(!JSON.stringify(made).includes('payroll'));
  assert.ok(!made[0]?.body.includes(fileKey));
  const count = async () => {
    const records = await d.json<{ data: { action: string }[] }>('activity search --all --json');
    return records.data.filter(({ action }) => action === 'keyring.decrypt').length;
  };
  assert.equal(await count(), 0);
  const { code, stderr, said } = await unwrapped(d, [identity], [made]);
  assert.deepEqual([code, stderr], [0, '']);
  assert.deepEqual(
    said.map(({ type, args, body }) => [type, args.join(), body.toString('hex')]),
    [
      ['file-key', '0', fileKey.toString('hex')],
      ['done', '', ''],
    ],
  );
  assert.equal(await count(), 1);
});

test('the identity as a file has comments that say what it is for', async () => {
  await using d = await withRing();
  const { recipient, identity } = await pair(d, 'payroll');
  const { code, stdout, stderr } = await d.kms('age identity PAYROLL');
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(stdout, `# keyring: payroll\n# recipient: ${recipient}\n${identity}\n`);
  assert.equal((await d.kms(['age', 'identity', recipient])).stdout, stdout);
  const json = await d.json('age recipient payroll --json');
  assert.deepEqual(Object.keys(json), ['ring', 'ringId', 'recipient']);
});

test('several recipients, identities and files in one run', async () => {
  await using d = await withRing();
  await d.json('keyring create second --json');
  const [one, two] = [await pair(d, 'payroll'), await pair(d, 'second')];
  const both = stanzasIn(await wrapped(d, [one.recipient, two.recipient]));
  assert.equal(both.length, 2);
  const ofOne = stanzasIn(await wrapped(d, [one.identity]));
  const foreign: Stanza = { type: 'recipient-stanza', args: ['0', 'X25519', 'abc'], body: randomBytes(32) };
  const files = [[foreign, ...both], [foreign], ofOne, both.slice(1)];
  const keysBy = async (...identities: string[]) =>
    (await unwrapped(d, identities, files)).said.map(({ type, args, body }) => {
      if (type === 'file-key') assert.deepEqual(body, fileKey);
      return [type, ...args].join(' ');
    });
  assert.deepEqual(await keysBy(one.identity), ['file-key 0', 'file-key 2', 'done']);
  assert.deepEqual(await keysBy(two.identity), ['file-key 0', 'file-key 3', 'done']);
  assert.deepEqual(await keysBy(two.identity, one.identity), ['file-key 0', 'file-key 2', 'file-key 3', 'done']);
  const twice = [stanza('add-recipient', [one.recipient]), ...[1, 2].map(() => stanza('wrap-file-key', [], fileKey))];
  const ofTwo = stanzasIn(await speak(d, 'recipient-v1', twice.join('')));
  assert.deepEqual(
    ofTwo.map(({ args }) => args[0]),
    ['0', '1'],
  );
});

test('a key crosses the network once for all files of one run, and again in the next', async () => {
  await using d = await withRing();
  const { recipient, identity } = await pair(d, 'payroll');
  const seen = keyAnswers(d);
  const files = Array.from({ length: 5 }, () => stanza('wrap-file-key', [], fileKey));
  const made = stanzasIn(await speak(d, 'recipient-v1', [stanza('add-recipient', [recipient]), ...files].join('')));
  const each = files.map((_, file) => made.filter(({ args }) => args[0] === String(file)));
  const ofEncrypts = seen.splice(0);
  const { said } = await unwrapped(d, [identity], each);
  assert.deepEqual(said.filter(({ body }) => body.equals(fileKey)).length, 5);
  for (const answers of [ofEncrypts, seen]) {
    assert.deepEqual(
      answers.map(({ known, hasKey }) => [known, hasKey]),
      [[0, true], ...Array.from({ length: 4 }, () => [1, false])],
    );
    const [first, ...others] = answers.map(({ bytes }) => bytes);
    for (const bytes of others) assert.ok(bytes < (first ?? 0) - 1500, `${first} and ${bytes} bytes`);
  }
});

test('labels are told to those who ask, grease and commands that nobody knows are passed over', async () => {
  await using d = await withRing();
  await d.json('keyring create older --kem x25519 --json');
  const [hybrid, older] = [await pair(d, 'payroll'), await pair(d, 'older')];
  for (const [{ recipient }, labels] of [
    [hybrid, ['postquantum']],
    [older, []],
  ] as const) {
    const first = [
      stanza('grease-1f', ['7', 'x'], randomBytes(100)),
      stanza('add-recipient', [recipient]),
      stanza('wrap-file-key', [], fileKey),
      stanza('add-something', [recipient]),
      stanza('extension-labels'),
    ];
    const { code, stderr, said } = await speak(d, 'recipient-v1', first.join(''));
    assert.deepEqual([code, stderr], [0, '']);
    assert.deepEqual(
      said.map(({ type }) => type),
      ['labels', 'recipient-stanza', 'done'],
    );
    assert.deepEqual(said[0]?.args, labels);
  }
  // Beside a keyring that a quantum computer can open, a hybrid one would protect nothing: age gets an error instead of
  // labels that would allow both.
  const both = [older, hybrid].map(({ recipient }) => stanza('add-recipient', [recipient])).join('');
  const mixed = await speak(
    d,
    'recipient-v1',
    `${both}${stanza('wrap-file-key', [], fileKey)}${stanza('extension-labels')}`,
  );
  const [place, message] = errorIn(mixed);
  assert.equal(place, 'recipient 1');
  assert.match(message, /^the keyring payroll is wrapped by mlkem768-x25519, others beside it are not/);
  // A client without labels could not separate them from its own recipients either.
  assert.equal(stanzasIn(await wrapped(d, [older.recipient, hybrid.recipient])).length, 2);
});

test('a keyring that was upgraded: recipients and files from before go on, a hybrid recipient takes no less', async () => {
  await using d = await servedDesk();
  await d.json('keyring create payroll --kem x25519 --json');
  const path = d.path('config', 'kms', 'rings', 'payroll.key');
  const earlier = await readFile(path, 'utf8');
  const before = await pair(d, 'payroll');
  const inside = (await d.kms('age identity payroll --with-private-key')).stdout.split('\n')[2] ?? '';
  const old = stanzasIn(await wrapped(d, [before.recipient]));
  assert.equal((await d.kms('keyring upgrade payroll')).code, 0);
  const after = await pair(d, 'payroll');
  assert.notEqual(after.recipient, before.recipient);
  const made = [
    old,
    stanzasIn(await wrapped(d, [before.recipient])),
    stanzasIn(await wrapped(d, [after.recipient])),
    stanzasIn(await wrapped(d, [after.identity])),
  ];
  for (const identity of [before.identity, after.identity]) {
    const { said } = await unwrapped(d, [identity], made);
    assert.deepEqual(
      said.map(({ type, body }) => (type === 'file-key' ? body : type)),
      [fileKey, fileKey, fileKey, fileKey, 'done'],
    );
  }
  // An identity with the earlier key opens the older file, and reports what the other needs.
  const { said } = await unwrapped(d, [inside], made.slice(0, 2));
  assert.deepEqual(
    said.map(({ type }) => type),
    ['file-key', 'error', 'done'],
  );
  assert.match(String(said[1]?.body), /is wrapped by mlkem768-x25519, and the private key is one of x25519/);
  // Back to X25519, by a user who may configure the keyring: a recipient that promises safety from quantum computers is
  // then refused.
  const publicKey = publicKeyOf(readPrivateKeys(earlier, 'it')[0] ?? assert.fail('no key'));
  await d.appliance.call('PUT', '/ks/config', { ringname: 'payroll', config: { publicKey } });
  await d.appliance.call('POST', '/ks/rotate', { ringname: 'payroll' });
  const [, message] = errorIn(await wrapped(d, [after.recipient]));
  assert.match(message, /is wrapped by x25519, and the private key is one of mlkem768-x25519/);
  assert.equal(stanzasIn(await wrapped(d, [before.recipient])).length, 1);
});

test('over the network, with a key that may do just this, found by its address', async () => {
  await using d = await withRing();
  const { args, env } = d.network();
  const { recipient, identity } = await pair(d, 'payroll', args, { env });
  const maker = (await d.appliance.keyWith('keyring.payroll.encrypt')).key;
  const reader = (await d.appliance.keyWith('keyring.payroll.decrypt')).key;
  const made = stanzasIn(await wrapped(d, [recipient], { env: { KMS_SERVER: `${d.url}/`, KMS_API_KEY: maker } }));
  const denied = await unwrapped(d, [identity], [made], { env: { KMS_SERVER: d.url, KMS_API_KEY: maker } });
  assert.deepEqual(errorIn(denied)[0], 'stanza 0 0');
  assert.match(errorIn(denied)[1], /flag keyring\..*\.decrypt.*; use an API key that has it$/);
  // Found through any profile with that address.
  await d.kms(['profile', 'add', 'prod', '--server', d.url], { env: { KMS_API_KEY: reader } });
  const { said } = await unwrapped(d, [identity], [made]);
  assert.deepEqual(said[0]?.body, fileKey);
  // The recipient names the address for other users, the identity the profile for its own.
  await rm(d.path('kms-data'), { recursive: true });
  await d.kms(['profile', 'add', 'root', '--server', d.url], { env });
  const own = await pair(d, 'payroll', ['--profile', 'root']);
  assert.equal(own.recipient, recipient);
  assert.notEqual(own.identity, identity);
  assert.deepEqual((await unwrapped(d, [own.identity], [made])).said[0]?.body, fileKey);
});

test('an address that somebody else chose gets no credential that is for another', async () => {
  await using d = await withRing();
  const { args, env } = d.network();
  const { recipient } = await pair(d, 'payroll', args, { env });
  const elsewhere = { KMS_SERVER: 'http://127.0.0.1:1', KMS_API_KEY: d.appliance.root.key };
  const [place, message] = errorIn(await wrapped(d, [recipient], { env: elsewhere }));
  assert.equal(place, 'recipient 0');
  assert.match(message, /^there is no credential here for http:\/\/127\.0\.0\.1:\d+; save one with `kms profile add/);
  const { data } = await d.json<{ data: { action: string }[] }>('activity search --all --json');
  assert.ok(!data.some(({ action }) => action === 'keyring.encrypt'));
});

test('the private key: named by the identity, inside it, in KMS_PRIVATE_KEY, or missing', async () => {
  await using d = await servedDesk();
  await d.json('keyring create payroll --json --private-key-out payroll.pem');
  await d.json('keyring create other --json --private-key-out other.pem');
  const { recipient, identity } = await pair(d, 'payroll');
  const missing = errorIn(await wrapped(d, [recipient]));
  assert.match(missing[1], /^cannot read the private key from .*payroll\.key: .*; set KMS_PRIVATE_KEY to the file/);
  const env = { KMS_PRIVATE_KEY: d.path('payroll.pem') };
  const made = stanzasIn(await wrapped(d, [recipient], { env }));
  const of = async (...args: string[]) =>
    (await d.json<{ identity: string }>(['age', 'identity', 'payroll', '--json', ...args])).identity;
  const naming = await of('--private-key', 'payroll.pem');
  const holding = await of('--private-key', 'payroll.pem', '--with-private-key');
  for (const each of [naming, holding]) {
    assert.deepEqual((await unwrapped(d, [each], [made])).said[0]?.body, fileKey);
    assert.equal(stanzasIn(await wrapped(d, [each])).length, 1);
  }
  assert.match(errorIn(await unwrapped(d, [identity], [made]))[1], /KMS_PRIVATE_KEY/);
  // Another ring's key is refused when the identity is made, when wrapping and when unwrapping.
  const wrong = await d.kms('age identity payroll --private-key other.pem');
  assert.deepEqual([wrong.code, wrong.stdout], [1, '']);
  assert.match(wrong.stderr, /^kms: the private key is not that of the keyring payroll/);
  const others = { KMS_PRIVATE_KEY: d.path('other.pem') };
  assert.match(errorIn(await wrapped(d, [recipient], { env: others }))[1], /^the private key is not that of/);
  assert.match(
    errorIn(await unwrapped(d, [identity], [made], { env: others }))[1],
    /^the private key does not open key_\w+: it is not the private key of its ring; /,
  );
  // The usual directory provides a second ring's key while the variable holds the first's.
  await mkdir(d.path('config', 'kms', 'rings'), { recursive: true });
  await writeFile(d.path('config', 'kms', 'rings', 'other.key'), await readFile(d.path('other.pem')), { mode: 0o600 });
  const { recipient: second } = await pair(d, 'other');
  assert.equal(stanzasIn(await wrapped(d, [recipient, second], { env })).length, 2);
  // A secret typed in the wrong place is not echoed.
  for (const typed of [
    ['age', 'recipient', holding],
    ['decrypt', holding],
    ['age', 'identity', 'payroll', holding],
  ]) {
    const { code, stderr } = await d.kms(typed);
    assert.notEqual(code, 0);
    assert.ok(!stderr.toUpperCase().includes(holding.slice(0, 30)), stderr);
  }
  const needs = await d.kms(['age', 'identity', recipient, '--with-private-key']);
  assert.deepEqual([needs.code, needs.stdout], [2, '']);
});

test('a key that is revoked and a server that is away: one line each', async () => {
  await using d = await withRing();
  const { args, env } = d.network();
  const { recipient, identity } = await pair(d, 'payroll', args, { env });
  const key = await d.appliance.keyWith('keyring.payroll.encrypt', 'keyring.payroll.decrypt');
  const own = { KMS_SERVER: d.url, KMS_API_KEY: key.key };
  const made = stanzasIn(await wrapped(d, [recipient], { env: own }));
  await d.kms(['apikey', 'revoke', key.keyid]);
  assert.deepEqual(errorIn(await wrapped(d, [recipient], { env: own })), [
    'recipient 0',
    'the credential is not known, no longer valid, or not for requests from this address; ' +
      'check the API key in --api-key-file, KMS_API_KEY or the profile',
  ]);
  assert.equal(errorIn(await unwrapped(d, [identity], [made], { env: own }))[0], 'stanza 0 0');
  const url = 'http://127.0.0.1:1';
  const away = { KMS_SERVER: url, KMS_API_KEY: key.key };
  const moved = formatRecipient({ ...parseRecipient(recipient), place: { kind: 'server', name: url } });
  assert.match(errorIn(await wrapped(d, [moved], { env: away }))[1], /^cannot reach http:\/\/127\.0\.0\.1:1: [^\n]+$/);
  const there = await d.kms(['age', 'recipient', 'payroll'], { env: away });
  assert.deepEqual([there.code, there.stdout], [3, '']);
  assert.match(there.stderr, /^kms: cannot reach http:\/\/127\.0\.0\.1:1: [^\n]+\n$/);
});

test('a sealed appliance and one that has ended are told through the protocol', async () => {
  await using d = await servedDesk();
  const env = { KMS_PASSPHRASE: 'correct horse battery staple' };
  assert.equal((await d.kms('init --data own --custodian passphrase', { env })).code, 0);
  const server = await serving(d, ['--data', 'own'], env);
  const data = ['--data', 'own'];
  assert.equal((await d.kms([...data, 'keyring', 'create', 'payroll'])).code, 0);
  const { recipient, identity } = await pair(d, 'payroll', data);
  const made = stanzasIn(await wrapped(d, [recipient]));
  assert.equal((await d.kms([...data, 'seal'])).code, 0);
  assert.match(errorIn(await wrapped(d, [recipient]))[1], /\bsealed\b.*; run `kms unseal`$/);
  assert.match(errorIn(await unwrapped(d, [identity], [made]))[1], /\bsealed\b/);
  await server.stop();
  await rm(d.path('own'), { recursive: true });
  assert.match(
    errorIn(await unwrapped(d, [identity], [made]))[1],
    /^no server runs on .*, and a directory that a recipient or an identity names is not opened/,
  );
});

test('of several tenants one is to be named, as for any command', async () => {
  await using d = await servedDesk();
  await d.json('init --data own --json');
  await d.json('tenant create blue --host localhost --data own --json');
  const data = ['--data', 'own', '--tenant', 'blue'];
  assert.equal((await d.kms([...data, 'keyring', 'create', 'payroll'])).code, 0);
  const { recipient, identity } = await pair(d, 'payroll', data);
  const env = { KMS_DATA: d.path('own') };
  const made = stanzasIn(await wrapped(d, [recipient], { env: { ...env, KMS_TENANT: 'blue' } }));
  for (const spoken of [await wrapped(d, [recipient], { env }), await unwrapped(d, [identity], [made], { env })]) {
    assert.match(errorIn(spoken)[1], /^name a tenant with --tenant, one of: default, blue; /);
  }
});

test('a ring that was made anew under the same name is not mistaken for the one that was meant', async () => {
  await using d = await withRing();
  const { recipient, identity } = await pair(d, 'payroll');
  const made = stanzasIn(await wrapped(d, [recipient]));
  await d.kms('keyring delete payroll --yes');
  assert.match(errorIn(await unwrapped(d, [identity], [made]))[1], /; check the name or id$|deleted|no keyring/i);
  await rm(d.path('config'), { recursive: true });
  await d.json('keyring create payroll --json');
  assert.match(errorIn(await wrapped(d, [recipient]))[1], /^the keyring payroll is not the one that is meant/);
});

test('what is no recipient, identity or stanza of ours is told of by its place', async () => {
  await using d = await withRing();
  const { recipient, identity } = await pair(d, 'payroll');
  const made = stanzasIn(await wrapped(d, [recipient]));
  const other = recipient.endsWith('q') ? 'p' : 'q';
  const bad = await wrapped(d, [recipient, `${recipient.slice(0, -1)}${other}`]);
  assert.deepEqual(errorIn(bad)[0], 'recipient 1');
  assert.deepEqual(errorIn(await wrapped(d, [recipient, 'AGE-PLUGIN-KMS-1QQQ']))[0], 'identity 0');
  // With one malformed identity nothing is unwrapped with the others.
  assert.deepEqual(errorIn(await unwrapped(d, [identity, 'AGE-PLUGIN-KMS-1QQQ'], [made]))[0], 'identity 1');
  const [good] = made;
  assert.ok(good);
  const [number = '', type = '', version = '', tag = '', header = ''] = good.args;
  const altered: Stanza[] = [
    { ...good, body: Buffer.concat([good.body, Buffer.of(0)]) },
    { ...good, args: [number, type, version, tag] },
    { ...good, args: [number, type, version, tag, header, 'more'] },
    { ...good, args: [number, type, version, `${tag}=`, header] },
    { ...good, body: Buffer.from(good.body.map((byte, i) => (i === 80 ? byte ^ 1 : byte))) },
    { ...good, body: Buffer.from(good.body.map((byte, i) => (i === 0 ? byte ^ 1 : byte))) },
  ];
  for (const each of altered) {
    const [place, message] = errorIn(await unwrapped(d, [identity], [[each]]));
    assert.deepEqual([place, /altered/.test(message)], ['stanza 0 0', true], message);
  }
  // A malformed stanza keeps its whole file shut, and no other.
  const shut = await unwrapped(d, [identity], [[good, altered[0] ?? good], [good]]);
  assert.deepEqual(
    shut.said.map(({ type, args }) => [type, ...args].join(' ')),
    ['error stanza 0 1', 'file-key 1', 'done'],
  );
  // Another version, and another ring's tag, are skipped silently.
  for (const args of [
    [number, type, '2', tag, header],
    [number, type, version, 'AAAAAAAAAAA', header],
  ]) {
    const { code, said } = await unwrapped(d, [identity], [[{ ...good, args }]]);
    assert.deepEqual([code, said.map((each) => each.type)], [0, ['done']]);
  }
});

test('a file key of another length is refused', async () => {
  await using d = await withRing();
  const { recipient } = await pair(d, 'payroll');
  const first = `${stanza('add-recipient', [recipient])}${stanza('wrap-file-key', [], randomBytes(15))}`;
  assert.deepEqual(errorIn(await speak(d, 'recipient-v1', first)), [
    'recipient 0',
    'expected a file key of 16 bytes, got 15',
  ]);
});

test('started by hand, or for something else, it says what it is', async () => {
  await using d = await servedDesk();
  const plain = await d.kms(['__age-plugin']);
  assert.deepEqual([plain.code, plain.stdout], [2, '']);
  assert.match(plain.stderr, /^kms: age-plugin-kms: this is a plugin, which age starts itself; [^\n]+\n$/);
  const other = await d.kms(['__age-plugin', '--age-plugin=identity-v9']);
  assert.deepEqual([other.code, other.stdout], [1, '']);
  assert.match(other.stderr, /^kms: expected the state machine .*, got "identity-v9"; [^\n]+\n$/);
  const install = await d.kms('age-plugin install');
  assert.deepEqual([install.code, install.stdout], [1, '']);
  assert.match(install.stderr, /^kms: this is not an executable of kms, but its sources; /);
});
