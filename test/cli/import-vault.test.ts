// `kms import vault` against a source in this process, whose answers have the form of those of an OpenBao 2.7.2, and
// against hostile ones. test/interop does the same with a real OpenBao.
import assert from 'node:assert/strict';
import { createCipheriv, generateKeyPairSync, randomBytes } from 'node:crypto';
import { chmod, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { wrapForImport } from '../../src/client/key-transfer.ts';
import { startRsa } from '../../src/platform/native-rsa.ts';
import { certificate, privateKey } from '../support/localhost-certificate.ts';
import { type Desk, desk, type RunOptions, typed } from './kms.ts';
import { servedDesk } from './served.ts';

startRsa();

interface FakeKey {
  readonly versions: Uint8Array[];
  /** Fields of the source's answer, besides the usual ones. */
  readonly data: Record<string, unknown>;
}

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly headers: IncomingMessage['headers'];
}

/** Answers in place of the source's own, by method and path. */
type Instead = (asked: Asked, response: ServerResponse) => boolean;

interface Source {
  readonly args: readonly string[];
  readonly address: string;
  readonly keys: Map<string, FakeKey>;
  readonly asked: Asked[];
  /** Public keys that were imported, by name. */
  readonly wrapping: Map<string, string>;
  instead: Instead | undefined;
  [Symbol.asyncDispose](): Promise<void>;
}

async function source(d: Desk, isTls = false): Promise<Source> {
  const it: Omit<Source, 'args' | 'address' | typeof Symbol.asyncDispose> = {
    keys: new Map(),
    asked: [],
    wrapping: new Map(),
    instead: undefined,
  };
  const answers = (request: IncomingMessage, response: ServerResponse): void => {
    void text(request).then((body) => {
      const { method = '', url = '', headers } = request;
      const asked = { method, path: url, body, headers };
      it.asked.push(asked);
      if (it.instead?.(asked, response)) return;
      const { status, answer } = answerOf(it, asked);
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(status === 204 ? undefined : JSON.stringify(answer));
    });
  };
  const server = isTls ? createTlsServer({ cert: certificate, key: privateKey }, answers) : createServer(answers);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = `${isTls ? 'https://localhost' : 'http://127.0.0.1'}:${(server.address() as AddressInfo).port}`;
  await writeFile(d.path('vault.token'), 's.token\n', { mode: 0o600 });
  return Object.assign(it, {
    address,
    args: ['import', 'vault', '--address', address, '--token-file', 'vault.token'],
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
    },
  });
}

type State = Pick<Source, 'keys' | 'wrapping'>;

function answerOf({ keys, wrapping }: State, { method, path, body }: Asked): { status: number; answer?: object } {
  const none = { status: 404, answer: { errors: [] } };
  const done = { status: 204 };
  const data = (found: object) => ({ status: 200, answer: { lease_id: '', data: found, warnings: null } });
  const [, first = '', name = '', last = ''] =
    /^\/v1\/transit\/([\w-]+)(?:\/([^/?]+))?(?:\/([^/?]+))?/.exec(path) ?? [];
  if (first === 'keys' && name === '') return keys.size === 0 ? none : data({ keys: [...keys.keys()] });
  if (method === 'POST' && last === 'import') {
    wrapping.set(name, JSON.parse(body).public_key);
    return done;
  }
  const key = keys.get(first === 'keys' ? name : last);
  if (method === 'POST' && last === 'config') {
    if (key) Object.assign(key.data, JSON.parse(body));
    return done;
  }
  if (method === 'DELETE') return wrapping.delete(name) ? done : none;
  if (!key) return none;
  if (first === 'keys') return data(keyData(name, key));
  const least = Number(key.data.min_decryption_version ?? 1);
  const publicKey = wrapping.get(name) ?? assert.fail('no such wrapping key');
  const wrapped = key.versions.map((each, n) => [n + 1, wrapForImport(each, { publicKey } as never)] as const);
  return data({ keys: Object.fromEntries(wrapped.filter(([version]) => version >= least)), name: last });
}

function keyData(name: string, { versions, data }: FakeKey): object {
  return {
    ...{ allow_plaintext_backup: false, auto_rotate_period: 0, deletion_allowed: false, derived: false },
    ...{ exportable: true, imported_key: false, keys: Object.fromEntries(versions.map((_, n) => [n + 1, 1795947252])) },
    ...{ latest_version: versions.length, min_available_version: 0, min_decryption_version: 1 },
    ...{ min_encryption_version: 0, name, soft_deleted: false, type: 'aes256-gcm96' },
    ...data,
  };
}

/** A key with so many versions. */
function key(count: number, data: Record<string, unknown> = {}): FakeKey {
  return { versions: Array.from({ length: count }, () => new Uint8Array(randomBytes(32))), data };
}

/** A message as a transit engine makes it: nonce, ciphertext and tag. */
function sealed(bytes: Uint8Array | undefined, version: number, associatedData = ''): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', bytes ?? assert.fail(), nonce).setAAD(Buffer.from(associatedData));
  const whole = [nonce, cipher.update('hello'), cipher.final(), cipher.getAuthTag()];
  return `vault:v${version}:${Buffer.concat(whole).toString('base64')}`;
}

async function started(): Promise<Desk> {
  const d = await desk();
  assert.equal((await d.kms('init')).code, 0);
  return d;
}

test('keys come with their versions and options, wrapped, and open what was encrypted there', async () => {
  await using d = await started();
  await using it = await source(d);
  const payroll = key(3, { auto_rotate_period: 86_400, min_encryption_version: 2, deletion_allowed: true });
  it.keys.set('payroll', payroll);
  const { privateKey } = generateKeyPairSync('ed25519');
  it.keys.set('release', {
    versions: [new Uint8Array(privateKey.export({ format: 'der', type: 'pkcs8' }))],
    data: { type: 'ed25519' },
  });
  await d.kms('key create here');
  const before = await d.json('key show here --json');
  it.keys.set('here', key(1));
  const lines = [
    `payroll ${sealed(payroll.versions[0], 1)}`,
    `payroll ${sealed(payroll.versions[2], 3, 'bound')} associated_data=${Buffer.from('bound').toString('base64')}`,
    '',
    `payroll ${sealed(payroll.versions[0], 2)}`,
    `gone ${sealed(payroll.versions[0], 1)}`,
  ];
  await writeFile(d.path('samples'), lines.join('\n'));

  const planned = await d.kms([...it.args, '--dry-run', '--verify', 'samples']);
  assert.equal(planned.code, 0, planned.stderr);
  assert.equal(
    planned.stdout,
    `KEY      TYPE        VERSIONS  RESULT      NOTE
here     aes256-gcm  1         left alone  a managed key has this name here: it is left alone
payroll  aes256-gcm  3         would come  encrypts from version 2, rotated every 1d, may be deleted
release  ed25519     1         would come
`,
  );
  assert.ok(
    it.asked.every(({ method }) => method === 'GET'),
    'a plan changes nothing',
  );

  const { code, stdout, stderr } = await d.kms([...it.args, '--yes', '--verify', 'samples', '--namespace', 'team/a']);
  assert.equal(code, 1);
  assert.match(stdout, /^payroll +aes256-gcm +3 +came over +encrypts/m);
  assert.match(stdout, /^here .* left alone /m);
  assert.match(stderr, /^kms: 2 of 3 keys came over; /m);
  assert.match(stderr, /^kms: line 4, payroll, does not open here: its key, context or associated data do not fit$/m);
  assert.match(stderr, /^kms: line 5, gone, does not open here: there is no such managed key$/m);
  assert.match(stderr, /^kms: 2 of 4 samples open here; do not switch before all do$/m);
  assert.deepEqual([...it.wrapping.keys()], [], 'the wrapping key is deleted there');
  const { key: brought } = await d.json<{ key: Record<string, unknown> }>('key show payroll --json');
  assert.deepEqual(
    ['type', 'latestVersion', 'origin', 'rotateAfter', 'minEncryptVersion', 'deletionAllowed', 'exportable'].map(
      (name) => brought[name],
    ),
    ['aes256-gcm', 3, 'imported', 86_400, 2, true, true],
  );
  assert.deepEqual(
    (await d.kms('key export payroll --version 2 --plaintext')).bytes,
    Buffer.from(payroll.versions[1] ?? []),
  );
  assert.deepEqual(
    (await d.kms('key export release --plaintext')).stdout,
    privateKey.export({ format: 'pem', type: 'pkcs8' }),
  );
  assert.deepEqual(await d.json('key show here --json'), before);
  const asked = it.asked.slice(-5);
  assert.ok(
    asked.every(({ headers }) => headers['x-vault-token'] === 's.token' && headers['x-vault-namespace'] === 'team/a'),
  );

  // A second time all are left alone, and nothing is made at the source.
  const count = it.asked.length;
  assert.equal((await d.kms([...it.args, '--yes'])).code, 0);
  assert.ok(it.asked.slice(count).every(({ method }) => method === 'GET'));
});

test('what cannot come is told with the reason', async () => {
  await using d = await started();
  await using it = await source(d);
  for (const [name, data, reason] of [
    [
      'convergent',
      { convergent_encryption: true, derived: true },
      /convergent encryption is not supported here: let the/,
    ],
    [
      'derived-sign',
      { derived: true, type: 'ed25519' },
      /derived keys of the type ed25519 are not supported here: make/,
    ],
    ['hsm', { type: 'managed_key' }, /keys of the type managed_key are not supported here: make a new key here/],
    ['kept', { exportable: false }, /not exportable: set exportable=true in its config there, or let the source/],
    [
      'later',
      { min_decryption_version: 2 },
      /versions before 2 do not decrypt there, so .*: add --lower-min-decryption/,
    ],
    ['soft', { soft_deleted: true }, /softly deleted there/],
    ['trimmed', { min_available_version: 2, min_decryption_version: 2 }, /versions before 2 were trimmed there/],
    ['xchacha', { type: 'xchacha20-poly1305' }, /not supported here: let the source decrypt, and encrypt here again/],
    ['_x', {}, /no key can have this name here/],
    ['Random', {}, /no key can have this name here: the appliance keeps it for itself/],
    ['hash', {}, /no key can have this name here: the appliance keeps it for itself/],
    ['wrapping-key', {}, /no key can have this name here: the appliance keeps it for itself/],
    ['kms-import-00ff', {}, /left behind by an import that was cut off/],
    ['a/../b', {}, /no name that a transit engine gives/],
    ['TRIMMED', {}, undefined],
  ] as const) {
    it.keys.set(name, key(3, data));
    if (reason === undefined) continue;
    const { keys } = await d.json<{ keys: { name: string; result: string; note: string }[] }>([
      ...[...it.args, '--yes', '--json'],
      ...['--prefix', name],
    ]);
    const [only] = keys;
    assert.equal(keys.length, 1);
    assert.deepEqual([only?.name, only?.result], [name, 'unsupported']);
    assert.match(only?.note ?? '', reason);
  }
  const listed = await d.kms([...it.args, '--dry-run']);
  assert.match(listed.stdout, /^trimmed .* another key has this name here, where case does not count$/m);
  assert.equal(listed.code, 0);
  const named = await d.kms([...it.args, '--yes', '--key', 'kept', '--key', 'none']);
  assert.equal(named.code, 1, 'a key that was named did not come');
  assert.match(named.stdout, /^none +unknown +cannot come +the source has no such key$/m);
  assert.ok(it.asked.every(({ method }) => method === 'GET'));
});

test('a name that no key can have here keeps no other from coming', async () => {
  await using d = await started();
  await using it = await source(d);
  it.keys.set('Random', key(1));
  it.keys.set('payroll', key(1));
  const { code, stdout, stderr } = await d.kms([...it.args, '--yes']);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^Random +unknown +cannot come +no key can have this name here/m);
  assert.match(stdout, /^payroll +aes256-gcm +1 +came over/m);
  assert.match(stderr, /^kms: 1 of 2 keys came over; .*\nkms: 1 cannot come: see its note in the table above\n$/);
});

test('--encrypts takes RSA keys that would come, and nothing else', async () => {
  await using d = await started();
  await using it = await source(d);
  it.keys.set('payroll', key(1));
  for (const [name, problem] of [
    ['payrol', 'no key payrol is among those that would come'],
    ['payroll', 'expected RSA keys, but payroll is aes256-gcm'],
  ] as const) {
    const { code, stdout, stderr } = await d.kms([...it.args, '--encrypts', name, '--dry-run']);
    assert.deepEqual([code, stdout, stderr.split(';')[0]], [2, '', `kms: --encrypts: ${problem}`]);
  }
  assert.ok(it.asked.every(({ method }) => method === 'GET'));
});

test('older versions come where the source may be told to export them, and its setting is put back', async () => {
  await using d = await started();
  await using it = await source(d);
  const old = key(3, { min_decryption_version: 2 });
  it.keys.set('old', old);
  const done = await d.kms([...it.args, '--yes', '--lower-min-decryption']);
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stdout, /^old +aes256-gcm +3 +came over +decrypts from version 2$/m);
  assert.equal(old.data.min_decryption_version, 2);
  const { key: brought } = await d.json<{ key: Record<string, unknown> }>('key show old --json');
  assert.deepEqual([brought.latestVersion, brought.minDecryptVersion], [3, 2]);
});

test('it works through the socket and over the network, with the flag for the key’s import alone', async () => {
  await using d = await servedDesk();
  await using it = await source(d);
  it.keys.set('one', key(2));
  it.keys.set('two', key(1));
  assert.equal((await d.kms([...it.args, '--yes', '--key', 'one'])).code, 0);
  const { id } = await d.json('account create billing --json');
  assert.ok(id);
  const flags = ['--flag', 'key.one.import', '--flag', 'key.two.import'];
  const made = await d.json<{ key: string }>(['apikey', 'create', '--account', 'billing', ...flags, '--json']);
  const { args, env } = d.network(made.key);
  const { code, stdout, stderr } = await d.kms([...it.args, '--yes', ...args], { env });
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^one .* left alone /m);
  assert.match(stdout, /^two .* came over$/m);
  it.keys.set('three', key(1));
  const denied = await d.kms([...it.args, '--yes', '--key', 'three', ...args], { env });
  assert.equal(denied.code, 1);
  assert.match(denied.stdout, /^three .* failed +.*key\.three\.import/m);
  assert.deepEqual([...it.wrapping.keys()], []);
});

test('it asks at a terminal and shows the plan, and goes on without one only with --yes', async () => {
  await using d = await started();
  await using it = await source(d);
  it.keys.set('payroll', key(1));
  const plain = await d.kms(it.args);
  assert.equal(plain.code, 2);
  assert.match(
    plain.stderr,
    /^kms: this takes one key over from http:\S+, and there is no terminal to ask at; add --yes/,
  );
  const tty = { stdin: true, stderr: true };
  const no = await d.kms(it.args, { tty, stdin: typed('n\n') });
  assert.equal(no.code, 1);
  assert.match(no.stderr, /payroll +aes256-gcm +1 +would come\n/);
  assert.equal((await d.kms('key show payroll')).code, 1);
  assert.equal((await d.kms(it.args, { tty, stdin: typed('y\n') })).code, 0);
});

test('wrong use and wrong files are told before anything is asked', async () => {
  await using d = await started();
  await using it = await source(d);
  await writeFile(d.path('bad'), 'payroll vault:v1:AAAA\npayroll\n');
  await writeFile(d.path('context'), 'payroll vault:v1:AAAA contxt=AAAA\n');
  await writeFile(d.path('none'), '\n');
  const far = it.args.map((word) => (word === it.address ? 'http://vault.example:8200' : word));
  for (const [args, code, said] of [
    [[...it.args, '--key', 'a', '--prefix', 'b'], 2, /^kms: --key and --prefix exclude each other/],
    [[...it.args, '--mount', '../sys'], 2, /^kms: --mount: expected a path such as transit/],
    [[...it.args, '--namespace', 'a b'], 2, /^kms: --namespace: expected/],
    [['import', 'vault', '--address', 'ftp://x', '--token-file', 'vault.token'], 2, /^kms: --address: expected/],
    [['import', 'vault'], 2, /^kms: --address and --token-file are missing/],
    [far, 1, /^kms: the token would go to vault\.example:8200 unencrypted; use its https address/],
    [[...it.args, '--verify', 'bad'], 1, /bad:2: expected KEY CIPHERTEXT, found one word/],
    [[...it.args, '--verify', 'context'], 1, /context:1: expected context=BASE64 or associated_data=BASE64/],
    [[...it.args, '--verify', 'none'], 1, /none has no samples/],
    [[...it.args, '--ca', 'bad'], 1, /bad has no certificate in it/],
  ] as const) {
    const ran = await d.kms(args);
    assert.equal(ran.code, code, ran.stderr);
    assert.match(ran.stderr, said);
  }
  await chmod(d.path('vault.token'), 0o644);
  const exposed = await d.kms(it.args);
  assert.equal(exposed.code, 1);
  assert.match(exposed.stderr, /chmod 0600/);
  assert.deepEqual(it.asked, []);
});

test('its certificate is verified, with --ca or the authorities of the system', async () => {
  await using d = await started();
  await using it = await source(d, true);
  it.keys.set('payroll', key(1));
  await writeFile(d.path('source.pem'), certificate);
  const trusted = await d.kms([...it.args, '--yes', '--ca', 'source.pem']);
  assert.equal(trusted.code, 0, trusted.stderr);
  // Trust in an authority is for that source alone.
  await using other = await source(d, true);
  const untrusted = await d.kms([...other.args, '--yes']);
  assert.equal(untrusted.code, 3);
  assert.match(untrusted.stderr, /its certificate is not trusted; name the authority .* with --ca FILE\n/);
  assert.deepEqual(other.asked, []);
});

const hostile: readonly (readonly [
  about: string,
  answer: (response: ServerResponse, address: string) => void,
  said: RegExp,
])[] = [
  ['no JSON', (to) => to.end('<html>'), /expected an answer of a transit engine from /],
  ['another shape', (to) => to.end('{"data":{"keys":{"a":1}}}'), /expected an answer of a transit engine from /],
  ['names that are none', (to) => to.end('{"data":{"keys":[1]}}'), /expected an answer of a transit engine from /],
  ['no data', (to) => to.end('[]'), /expected an answer of a transit engine from /],
  [
    'deep JSON',
    (to) => to.end('['.repeat(10_000)),
    /^kms: expected an answer of Vault or OpenBao from .* depth; is it the/,
  ],
  [
    'a huge list',
    (to) => to.end(`{"data":{"keys":["${'x'.repeat(9_000_000)}"]}}`),
    /^kms: expected at most \d+ bytes from/,
  ],
  [
    'too many names',
    (to) => to.end(JSON.stringify({ data: { keys: Array.from({ length: 10_001 }, (_, n) => `k${n}`) } })),
    /^kms: the source has 10001 such keys: at most 10000 come at once; bring them in parts, with --prefix/,
  ],
  [
    'a list without an end',
    (to) => {
      const more = (): void =>
        void (to.write(`"${'x'.repeat(65_536)}",`) ? setImmediate(more) : to.once('drain', more));
      to.write('{"data":{"keys":[');
      more();
    },
    /^kms: expected at most \d+ bytes from/,
  ],
  [
    'a redirect',
    (to, address) => to.writeHead(307, { location: `${address}/v1/evil` }).end(),
    /^kms: \S+ redirects to \S+; use the address that the active server itself has\n/,
  ],
  [
    'text for the terminal',
    (to) => to.writeHead(400).end(JSON.stringify({ errors: ['x\u001b]0;evil\u0007\n\u202ey'], hint: 'evil' })),
    /^kms: \S+ answered 400: x\\x1b\]0;evil\\x07 \\u202ey; see the mount/,
  ],
  [
    'a refusal',
    (to) => to.writeHead(403).end('{"errors":["permission denied"]}'),
    /answered 403: permission denied; see that the/,
  ],
];

for (const [about, answer, said] of hostile) {
  test(`a source that answers with ${about} ends the command in words`, { timeout: 60_000 }, async () => {
    await using d = await started();
    await using it = await source(d);
    it.instead = (_, response) => {
      answer(response, it.address);
      return true;
    };
    const options: RunOptions = { signal: AbortSignal.timeout(50_000) };
    const { code, stdout, stderr } = await d.kms([...it.args, '--yes'], options);
    assert.match(stderr, said);
    assert.doesNotMatch(stderr, /defect of kms|s\.token|kms appliance/);
    assert.ok(code === 1 || code === 3, String(code));
    assert.equal(stdout, '');
    assert.ok(!it.asked.some(({ path }) => path.includes('evil')), 'no redirect is followed');
  });
}

test('a key of wrong types, or wrapped to another key, fails alone and leaves nothing here', async () => {
  await using d = await started();
  await using it = await source(d);
  for (const wrong of [
    { type: 7 },
    { latest_version: '3' },
    { latest_version: 0 },
    { exportable: 'yes' },
    { min_decryption_version: -1 },
    { auto_rotate_period: 1e300 },
  ]) {
    it.keys.set('odd', key(1, wrong));
    const ran = await d.kms([...it.args, '--yes']);
    assert.deepEqual([ran.code, ran.stdout], [1, '']);
    assert.match(ran.stderr, /expected an answer of a transit engine from /);
  }
  it.keys.clear();
  it.keys.set('a', key(1));
  it.keys.set('b', key(2));
  for (const [keys, said] of [
    [{ 1: 'AAAA' }, /^a .* failed +.*wrapp/m],
    [{ 1: 7 }, /^a .* failed +expected an answer of a transit engine/m],
    [{ 2: 'AAAA' }, /^a .* failed +the source does not export version 1 of a$/m],
    [{}, /^a .* failed +the source has no private key of a$/m],
  ] as const) {
    it.instead = ({ path }, response) => {
      if (!path.startsWith('/v1/transit/byok-export/') || !path.endsWith('/a')) return false;
      response.end(JSON.stringify({ data: { keys } }));
      return true;
    };
    const ran = await d.kms([...it.args, '--yes']);
    assert.equal(ran.code, 1);
    assert.match(ran.stdout, said);
    assert.match(ran.stdout, /^b .* (?:came over|left alone)/m);
    assert.equal((await d.kms('key show a')).code, 1);
    assert.deepEqual([...it.wrapping.keys()], []);
  }
});

test('a wrapping key that cannot be deleted is named, and so is a key of which a part came', async () => {
  await using d = await started();
  await using it = await source(d);
  it.keys.set('a', key(2));
  it.instead = ({ method, path }, response) => {
    if (method === 'DELETE') response.writeHead(403).end('{"errors":["permission denied"]}');
    else if (!path.includes('/byok-export/')) return false;
    else {
      const [publicKey = ''] = it.wrapping.values();
      const wrapped = wrapForImport(randomBytes(32), { publicKey } as never);
      response.end(JSON.stringify({ data: { keys: { 1: wrapped, 2: 'AAAA' } } }));
    }
    return true;
  };
  const { code, stdout, stderr } = await d.kms([...it.args, '--yes']);
  assert.equal(code, 1);
  assert.match(stdout, /failed +.*; only versions 1 to 1 of 2 of a came: `kms key config a --deletion-allowed true`/);
  assert.match(
    stderr,
    /^kms: warning: the key kms-import-[0-9a-f]{12} could not be deleted at \S+: .* permission denied; /m,
  );
});
