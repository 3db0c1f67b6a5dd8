// One rule for every secret: the same bytes are the same secret from any source, or are refused by all.
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import test from 'node:test';
import { secretLines, secretOf } from '../../src/model/secret-text.ts';
import { type Desk, desk, type Ran, typed } from './kms.ts';
import { serving } from './serving.ts';

const bytes = (text: string): Buffer => Buffer.from(text, 'utf8');
/** The Cyrillic word for password with a few more letters, in CP1251. */
const cp1251 = Buffer.from('efe0f0eeebfce0e1e2e3', 'hex');

/** The input, and the resulting secret; undefined if it is refused. */
const given: readonly (readonly [what: string, bytes: Buffer, secret: string | undefined])[] = [
  ['a line without an end', bytes('correct horse'), 'correct horse'],
  ['a line', bytes('correct horse\n'), 'correct horse'],
  ['a line of Windows', bytes('correct horse\r\n'), 'correct horse'],
  ['a blank behind it', bytes('correct horse \n'), 'correct horse '],
  ['a blank before it', bytes(' correct horse'), ' correct horse'],
  ['a tab behind it', bytes('correct horse\t\n'), 'correct horse\t'],
  ['a no-break space', bytes('correct horse\u00a0\n'), 'correct horse\u00a0'],
  ['letters of three alphabets', bytes('пароль-κλειδί-hé\n'), 'пароль-κλειδί-hé'],
  ['beyond the basic plane', bytes('🐎🔋📎🐎🔋📎🐎🔋\n'), '🐎🔋📎🐎🔋📎🐎🔋'],
  ['two line ends', bytes('correct horse\n\n'), undefined],
  ['two lines', bytes('correct horse\nbattery staple\n'), undefined],
  ['a carriage return in it', bytes('correct\rhorse\n'), undefined],
  ['a byte order mark', bytes('\ufeffcorrect horse\n'), undefined],
  ['U+FFFD itself', bytes('correct \ufffd horse\n'), undefined],
  ['CP1251', cp1251, undefined],
  ['Latin-1', Buffer.from('motdepass\xe9\n', 'latin1'), undefined],
  ['UTF-16', Buffer.from('correct horse\n', 'utf16le'), undefined],
  ['cut off within a character', bytes('correct horse é').subarray(0, -1), undefined],
  ['a surrogate in UTF-8 (CESU-8)', Buffer.from('636f727265637420eda0bd', 'hex'), undefined],
];

/** Bytes as the platform decodes them from the environment, the command line and a terminal. */
const decoded = (given: Buffer): string => given.toString('utf8');

type Source = (d: Desk, args: string, bytes: Buffer) => Promise<Ran> | undefined;

const sources: Readonly<Record<string, Source>> = {
  async 'a file'(d, args, bytes) {
    await writeFile(d.path('words'), bytes, { mode: 0o600 });
    return d.kms(`${args} --passphrase-file words`);
  },
  // A variable can't contain a zero byte.
  'the environment': (d, args, bytes) =>
    bytes.includes(0) ? undefined : d.kms(args, { env: { KMS_PASSPHRASE: decoded(bytes) } }),
  stdin: (d, args, bytes) => d.kms(args, { stdin: bytes }),
};

test('the same bytes are the same passphrase from a file, the environment, stdin and JSON, or none', async () => {
  for (const [what, content, secret] of given) {
    await using d = await desk();
    for (const [source, give] of Object.entries(sources)) {
      await rm(d.path('kms-data'), { recursive: true, force: true });
      const made = await give(d, 'init --custodian passphrase', content);
      if (made === undefined) continue;
      if (secret === undefined) {
        assert.deepEqual([made.code, made.stdout], [1, ''], `${what}, ${source}: ${made.stderr}`);
        assert.match(made.stderr, /UTF-8|expected one line|byte order mark|byte 0/, `${what}, ${source}`);
        assert.doesNotMatch(made.stderr, /correct|horse|пароль/, 'nothing of it is shown');
        continue;
      }
      assert.equal(made.code, 0, `${what}, ${source}: ${made.stderr}`);
      const opened = await d.kms('keyring list', { env: { KMS_PASSPHRASE: secret } });
      assert.equal(opened.code, 0, `${what}, ${source}: ${opened.stderr}`);
    }
    if (secret === undefined) continue;
    const server = await serving(d);
    for (const [source, give] of Object.entries(sources)) {
      const unsealed = await give(d, 'unseal', content);
      assert.equal(unsealed?.code, 0, `${what}, ${source}: ${unsealed?.stderr}`);
      assert.equal((await d.kms('seal')).code, 0);
    }
    // A terminal interprets tabs and line ends.
    if (!/[\t]/.test(secret)) {
      const tty = { stdin: true, stderr: true };
      assert.equal((await d.kms('unseal', { stdin: typed(`${secret}\n`), tty })).code, 0, `${what}, at a terminal`);
      assert.equal((await d.kms('seal')).code, 0);
    }
    const answer = await posted(server.url, { passphrase: decoded(content) });
    assert.equal(answer.status, 200, `${what}, in JSON`);
    await server.stop();
  }
});

async function posted(url: string, body: object | Buffer): Promise<Response> {
  return fetch(`${url}/system/unseal`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: Buffer.isBuffer(body) ? new Uint8Array(body) : JSON.stringify(body),
  });
}

test('what stands for bytes that are no UTF-8 unseals nothing over the network, and says so', async () => {
  await using d = await desk();
  const secret = 'correct horse battery';
  assert.equal((await d.kms('init --custodian passphrase', { env: { KMS_PASSPHRASE: secret } })).code, 0);
  const server = await serving(d);
  for (const [what, body] of [
    ['U+FFFD', { passphrase: '\ufffd'.repeat(8) }],
    ['a lone surrogate', Buffer.from('{"passphrase":"\\ud800 correct horse"}')],
    ['bytes that are no UTF-8', Buffer.concat([Buffer.from('{"passphrase":"'), cp1251, Buffer.from('"}')])],
    ['a line end and more', { passphrase: `${secret}\n\n` }],
  ] as const) {
    assert.equal((await posted(server.url, body)).status, 400, what);
  }
  await server.stop();
});

test('every other secret follows the same rule', async () => {
  await using d = await desk();
  assert.equal((await d.kms('init')).code, 0);
  const refused = given
    .filter(([, , secret]) => secret === undefined)
    .map(([what, content]) => [what, content] as const);
  /** Commands that take a file with a secret, each with a value it would accept. */
  const takers = [
    ['serve --smtp-url-file FILE --smtp-from kms@example.org --listen 127.0.0.1:0', 'smtp://mail.example.org'],
    ['serve --activity-webhook-secret-file FILE --activity-to https://127.0.0.1:9/ --listen 127.0.0.1:0', ''],
    ['keyring list --server http://127.0.0.1:9 --api-key-file FILE', 'kms_abc'],
    [
      'tenant oidc set default --issuer https://id.example.org --client-id kms --client-secret-file FILE',
      'client secret',
    ],
  ] as const;
  for (const [line] of takers) {
    for (const [what, content] of refused) {
      // A webhook may have several secrets, a line each.
      if (line.includes('webhook') && /line/.test(what)) continue;
      await writeFile(d.path('secret'), content, { mode: 0o600 });
      const signal = AbortSignal.timeout(20_000);
      const { code, stderr } = await d.kms(line.replace('FILE', d.path('secret')), { signal });
      assert.equal(code, 1, `${line}, ${what}: ${stderr}`);
      assert.match(
        stderr,
        /secret: (expected UTF-8|expected one line|it begins with a byte|it has a byte 0)/,
        `${line}, ${what}`,
      );
    }
  }
  for (const [what, content] of refused) {
    for (const env of [{ KMS_API_KEY: decoded(content), KMS_SERVER: 'http://127.0.0.1:9' }]) {
      const { code, stderr } = await d.kms('keyring list', { env });
      assert.equal(code, 1, `${what}: ${stderr}`);
      assert.match(stderr, /^kms: KMS_API_KEY/, what);
    }
  }
});

test('a key file of 32 raw bytes opens with `unseal`, as it does with `serve`', async () => {
  await using d = await desk();
  await writeFile(d.path('raw.key'), Buffer.from('ff'.repeat(16) + '80'.repeat(16), 'hex'), { mode: 0o600 });
  assert.equal((await d.kms('init --key-file raw.key')).code, 0);
  const server = await serving(d, ['--key-file', 'raw.key']);
  assert.equal((await d.kms('seal')).code, 0);
  const unsealed = await d.kms('unseal --key-file raw.key');
  assert.equal(unsealed.code, 0, unsealed.stderr);
  await server.stop();
});

test('the rule, by itself', () => {
  for (const [what, content, secret] of given) {
    for (const form of [content, decoded(content)]) {
      if (secret === undefined) assert.throws(() => secretOf(form, 'it'), { code: 'invalid' }, what);
      else assert.equal(secretOf(form, 'it'), secret, what);
    }
  }
  assert.throws(() => secretOf(Buffer.from('a\0b'), 'it'), /it: it has a byte 0 in it/);
  assert.deepEqual(secretLines('one\r\n\n two \nthree', 'it'), ['one', ' two ', 'three']);
  assert.throws(() => secretLines(cp1251, 'it'), /it: expected UTF-8/);
});
