// The plugin for age: stanzas that it wrote must open for ever, and no input makes it hang or crash.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type AgeIdentity,
  type AgeRecipient,
  fingerprintOf,
  formatIdentity,
  formatRecipient,
  isForRing,
  isKeyOf,
  openFileKey,
  parseIdentity,
  parseRecipient,
  readKmsStanza,
  sealFileKey,
} from '../../src/client/age-keys.ts';
import { speakAge } from '../../src/client/age-plugin.ts';
import { publicKeyOf } from '../../src/client/ring-keys.ts';
import { fromBech32, toBech32 } from '../../src/crypto/bech32.ts';
import { toHex } from '../../src/crypto/bytes.ts';
import { KmsError } from '../../src/errors.ts';
import { type Kem, kemNames } from '../../src/model/kems.ts';
import { Stanzas, stanza } from '../support/age-client.ts';
import { hex } from '../support/vectors.ts';

type Said = Omit<AgeRecipient, 'kem' | 'fingerprint'> & {
  readonly kem?: Kem;
  readonly fingerprint: string;
  readonly text: string;
};

interface Frozen {
  readonly ringId: string;
  readonly publicKey: string;
  readonly recipients: readonly Said[];
  readonly identities: readonly (Said & { readonly privateKey?: string; readonly privateKeyBytes?: string })[];
  readonly stanza: { readonly key: string; readonly fileKey: string; readonly args: string[]; readonly body: string };
}

const fixture = <T>(name: string): T =>
  JSON.parse(readFileSync(new URL(`../compat/${name}.json`, import.meta.url), 'utf8'));
/** Made with a keyring of X25519. */
const frozen = fixture<Frozen>('age-1');
/** Made with a hybrid keyring. */
const hybrid = fixture<Omit<Frozen, 'stanza'>>('age-hybrid-1');

test('recipients and identities of version 1 are read as they were meant, and made again', () => {
  assert.ok(frozen.recipients.length > 1 && frozen.identities.length > 2);
  for (const [kem, { publicKey, recipients, identities }] of [
    ['x25519', frozen],
    ['mlkem768-x25519', hybrid],
  ] as const) {
    for (const { text, ...said } of recipients) {
      const recipient = { ...said, kem, fingerprint: hex(said.fingerprint) };
      assert.deepEqual(parseRecipient(text), recipient);
      assert.equal(formatRecipient(recipient), text);
      assert.deepEqual(fingerprintOf(publicKey), recipient.fingerprint);
    }
    for (const { text, privateKeyBytes, ...said } of identities) {
      const inside = privateKeyBytes === undefined ? {} : { privateKey: hex(privateKeyBytes) };
      const identity: AgeIdentity = { ...said, kem, fingerprint: hex(said.fingerprint), ...inside };
      assert.deepEqual(parseIdentity(text), identity);
      assert.equal(formatIdentity(identity), text);
      if (privateKeyBytes !== undefined)
        assert.ok(isKeyOf(identity, publicKeyOf({ kem, bytes: hex(privateKeyBytes) })));
    }
  }
});

test('a way of wrapping that nobody knows yet is refused', () => {
  const text = hybrid.recipients[0]?.text ?? '';
  const { bytes, prefix } = fromBech32(text) ?? assert.fail('no recipient');
  assert.equal(bytes[1], 2);
  for (const number of [0, 3, 255]) {
    assert.throws(
      () => parseRecipient(toBech32(prefix, bytes.with(1, number))),
      /of a kind that this program does not/,
    );
  }
});

test('a stanza of version 1 opens with its key, for its ring', async () => {
  const { args, body, key, fileKey } = frozen.stanza;
  const read = readKmsStanza({ type: 'kms', args, body: hex(body) }) ?? assert.fail('not ours');
  assert.ok(isForRing(read, frozen.ringId));
  assert.ok(!isForRing(read, 'ring_01jz4b8m6q3v9x2c5d7f8g9h0m'));
  assert.equal(toHex(await openFileKey(read, frozen.ringId, hex(key))), fileKey);
  await assert.rejects(openFileKey(read, frozen.ringId, randomBytes(32)), { code: 'corrupt' });
  await assert.rejects(openFileKey(read, 'ring_01jz4b8m6q3v9x2c5d7f8g9h0m', hex(key)), { code: 'corrupt' });
});

test('recipients and identities of any ring and place come back, and nothing else is read as one', () => {
  const plain = { noNullPrototype: true };
  const recipient = fc.record(
    {
      ring: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/),
      ringId: fc.constant(frozen.ringId),
      kem: fc.constantFrom(...kemNames),
      fingerprint: fc.uint8Array({ minLength: 16, maxLength: 16 }),
      place: fc.record(
        {
          kind: fc.constantFrom('server' as const, 'profile' as const, 'data' as const),
          name: fc.string({ unit: 'grapheme', maxLength: 200 }).filter((text) => !/\p{Cc}/u.test(text)),
        },
        plain,
      ),
    },
    plain,
  );
  const privateKey = fc.oneof(fc.constant('/etc/kms/é.pem'), fc.uint8Array({ minLength: 32, maxLength: 32 }));
  fc.assert(
    fc.property(recipient, privateKey, (each, privateKey) => {
      assert.deepEqual(parseRecipient(formatRecipient(each)), each);
      assert.deepEqual(parseIdentity(formatIdentity(each)), each);
      assert.deepEqual(parseIdentity(formatIdentity({ ...each, privateKey })), { ...each, privateKey });
      assert.throws(() => parseRecipient(formatIdentity(each)), { code: 'invalid' });
      assert.throws(() => parseIdentity(formatRecipient(each)), { code: 'invalid' });
    }),
  );
});

/** Not a Buffer, whose slices would share its bytes. */
const key = Uint8Array.from(randomBytes(32));
const header = frozen.stanza.args[2] ?? '';
const own = await sealFileKey(hex(frozen.stanza.fileKey), frozen.ringId, { key, header }, randomBytes);

/** The plugin's output for this input, once it has ended, and the error that it ended with. */
async function answer(machine: string, pieces: Iterable<Uint8Array>): Promise<[said: string, error: unknown]> {
  let said = '';
  try {
    await speakAge(machine, {
      source: (async function* () {
        yield* pieces;
      })(),
      async write(bytes) {
        said += Buffer.from(bytes).toString();
      },
      encryptKey: async () => ({ key: key.slice(), header }),
      decryptKey: async () => key.slice(),
      explain: (error) => (error instanceof Error ? error.message : String(error)),
    });
  } catch (error) {
    return [said, error];
  }
  return [said, undefined];
}

const word = fc.stringMatching(/^[!-~]{1,12}$/);
const command = fc.constantFrom(
  ...['add-recipient', 'add-identity', 'wrap-file-key', 'recipient-stanza', 'extension-labels', 'done', 'ok', 'fail'],
);
const said: fc.Arbitrary<[type: string, args: string[], body: Uint8Array]> = fc.oneof(
  fc.tuple(fc.oneof(command, word), fc.array(word, { maxLength: 4 }), fc.uint8Array({ maxLength: 200 })),
  fc.constantFrom<[string, string[], Uint8Array]>(
    ['add-recipient', [frozen.recipients[0]?.text ?? ''], new Uint8Array()],
    ['add-identity', [frozen.identities[0]?.text ?? ''], new Uint8Array()],
    ['wrap-file-key', [], hex(frozen.stanza.fileKey)],
    ['recipient-stanza', ['0', 'kms', ...own.args], own.body],
    ['recipient-stanza', ['1', 'kms', ...own.args], own.body],
    ['recipient-stanza', ['0', 'kms', '1'], own.body],
    ['done', [], new Uint8Array()],
    ['ok', [], new Uint8Array()],
    ['unsupported', [], new Uint8Array()],
  ),
);
const machine = fc.constantFrom('recipient-v1', 'identity-v1');

/**
 * Whatever the input, it ended without an error or with one of the product's, and its output consists of whole stanzas.
 */
function mustBeSound([text, error]: [said: string, error: unknown]): void {
  if (error !== undefined) {
    assert.ok(error instanceof KmsError, String(error));
    assert.equal(error.code, 'invalid');
    assert.match(error.message, /^[^\n]{1,200}$/);
  }
  const stanzas = new Stanzas();
  const types = [...stanzas.add(text)].map(({ type }) => type);
  assert.equal(stanzas.rest, '');
  assert.ok(!types.includes('error') || !types.includes('recipient-stanza'), types.join());
  assert.equal(types.includes('done'), error === undefined);
}

test('any stanzas in any order: it ends, without a defect', async () => {
  const cut = fc.nat({ max: 400 });
  await fc.assert(
    fc.asyncProperty(machine, fc.array(said, { maxLength: 12 }), cut, async (name, all, at) => {
      const bytes = Buffer.from(all.map(([type, args, body]) => stanza(type, args, body)).join(''));
      mustBeSound(await answer(name, [bytes]));
      mustBeSound(await answer(name, [bytes.subarray(0, at), bytes.subarray(at)]));
      mustBeSound(await answer(name, [bytes.subarray(0, at)]));
    }),
    { numRuns: 300 },
  );
});

test('any bytes, and stanzas in which some changed: it ends, without a defect', async () => {
  const change = fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 }));
  await fc.assert(
    fc.asyncProperty(machine, fc.uint8Array({ maxLength: 400 }), async (name, bytes) => {
      mustBeSound(await answer(name, [bytes]));
    }),
  );
  await fc.assert(
    fc.asyncProperty(machine, fc.array(said, { maxLength: 8 }), fc.array(change), async (name, all, changes) => {
      const bytes = Buffer.from(
        `${all.map(([type, args, body]) => stanza(type, args, body)).join('')}${stanza('done')}${stanza('ok')}`,
      );
      for (const [at, to] of changes) bytes[at % bytes.length] = to;
      // A byte at a time.
      mustBeSound(
        await answer(
          name,
          Array.from(bytes, (byte) => Uint8Array.of(byte)),
        ),
      );
    }),
    { numRuns: 200 },
  );
});

test('lines and talk without end are not kept', async () => {
  const piece = Buffer.alloc(1 << 16, 'a');
  const [, error] = await answer(
    'identity-v1',
    (function* () {
      for (;;) yield piece;
    })(),
  );
  assert.ok(error instanceof KmsError && error.code === 'invalid');
  const line = Buffer.from(stanza('grease', [], Buffer.alloc(48_000)).repeat(4));
  let read = 0;
  const [, stopped] = await answer(
    'identity-v1',
    (function* () {
      for (;;) {
        read += line.length;
        yield line;
      }
    })(),
  );
  assert.ok(stopped instanceof KmsError && stopped.code === 'invalid');
  assert.ok(read < 20_000_000, String(read));
});

test('what is no protocol is said in one line', async () => {
  const cases: [string, string, RegExp][] = [
    ['recipient-v1', '', /the input ended/],
    ['recipient-v1', 'hello\n', /expected a stanza/],
    ['recipient-v1', '-> \n\n', /expected a stanza/],
    ['recipient-v1', '-> done', /the input ended/],
    ['recipient-v1', '-> done\n', /the input ended/],
    ['recipient-v1', `-> a\n${'A'.repeat(65)}\n`, /lines of 64 characters/],
    ['recipient-v1', `-> wrap-file-key\n${'A'.repeat(64)}\n-> done\n\n`, /end with a line shorter than 64/],
    ['recipient-v1', '-> wrap-file-key\n-> done\n\n', /end with a line shorter than 64/],
    ['identity-v1', stanza('recipient-stanza', ['1', 'X25519']), /in their order/],
    ['identity-v1', stanza('recipient-stanza', ['x', 'X25519']), /in their order/],
    ['identity-v1', stanza('recipient-stanza', ['0']), /in their order/],
    ['identity-v2', '', /expected the state machine/],
  ];
  for (const [name, text, message] of cases) {
    const [said, error] = await answer(name, [Buffer.from(text)]);
    assert.equal(said, '');
    assert.ok(error instanceof KmsError && message.test(error.message), `${text}: ${error}`);
  }
  const refused = `${stanza('add-identity', ['x'])}${stanza('done')}${stanza('fail')}`;
  const [, error] = await answer('identity-v1', [Buffer.from(refused)]);
  assert.match(String(error), /expected ok to error, got fail/);
});

/** Base64 that age refuses: a spare bit, padding, other characters, white space, an impossible length. */
const wrongBodies = ['AB', 'AA==', '\xff', 'A_-A', 'A A', 'AAAAA', `${'A'.repeat(64)}\n*`];
const withBody = (first: string, body: string): string => `-> ${first}\n${body}\n`;

/** The plugin's output for this input, one command a line, if age acknowledges all of it. */
async function commands(machine: string, phase: string): Promise<readonly string[]> {
  // Grease is answered differently: within a few attempts one comes without it.
  for (;;) {
    const [text, error] = await answer(machine, [Buffer.from(`${phase}${stanza('done')}${stanza('ok').repeat(20)}`)]);
    const said = [...new Stanzas().add(text)];
    if (said.some(({ type }) => type.startsWith('grease'))) continue;
    assert.equal(error, undefined);
    return said.map(({ type, args }) => [type, ...args.slice(0, type === 'recipient-stanza' ? 2 : 3)].join(' '));
  }
}

test('what is no base64 in a stanza is an error of that stanza alone', async () => {
  const identity = stanza('add-identity', [frozen.identities[0]?.text ?? '']);
  const recipient = stanza('add-recipient', [frozen.recipients[0]?.text ?? '']);
  const fileKey = stanza('wrap-file-key', [], hex(frozen.stanza.fileKey));
  const good = (file: number): string => stanza('recipient-stanza', [String(file), 'kms', ...own.args], own.body);
  const [, tag = '', ownHeader = ''] = own.args;
  for (const body of wrongBodies) {
    const ours = (file: number): string => withBody(`recipient-stanza ${file} kms ${own.args.join(' ')}`, body);
    // The file is not unwrapped, even if another of its stanzas would open it; other files are.
    const cases: [phase: string, ...said: string[]][] = [
      [ours(0), 'error stanza 0 0'],
      [good(0) + ours(0), 'error stanza 0 1'],
      [ours(0) + good(0) + ours(0), 'error stanza 0 0', 'error stanza 0 2'],
      [good(0) + ours(1) + good(2), 'file-key 0', 'error stanza 1 0', 'file-key 2'],
      // Stanzas of other kinds and versions are ignored: their contents are not known here.
      [withBody('recipient-stanza 0 X25519 abc', body) + good(0), 'file-key 0'],
      [withBody('recipient-stanza 0 kms 2 abc', body) + good(0), 'file-key 0'],
      [withBody('grease-0a abc', body) + good(0), 'file-key 0'],
      // With one malformed identity, none is used.
      [withBody('add-identity abc', body) + good(0), 'error identity 1'],
    ];
    for (const [phase, ...said] of cases) {
      assert.deepEqual(await commands('identity-v1', identity + phase), [...said, 'done'], JSON.stringify(phase));
    }
    const wrapping: [phase: string, ...said: string[]][] = [
      [recipient + fileKey + withBody('grease-0a', body), 'recipient-stanza 0 kms'],
      [recipient + withBody('add-recipient abc', body) + fileKey, 'error recipient 1'],
      [recipient + withBody('add-identity abc', body) + fileKey, 'error identity 0'],
      [recipient + fileKey + withBody('wrap-file-key', body), 'error internal'],
    ];
    for (const [phase, ...said] of wrapping) {
      assert.deepEqual(await commands('recipient-v1', phase), [...said, 'done'], JSON.stringify(phase));
    }
  }
  // In the arguments of one of our stanzas.
  const wrongArgs = [
    [],
    ['1'],
    ['1', tag],
    ['1', `${tag}=`, ownHeader],
    ['1', tag.slice(1), ownHeader],
    ['1', `*${tag.slice(1)}`, ownHeader],
    ['1', tag, `${ownHeader}+`],
    ['1', tag, ownHeader, 'more'],
  ];
  for (const args of wrongArgs) {
    const phase = identity + stanza('recipient-stanza', ['0', 'kms', ...args], own.body) + good(0) + good(1);
    const said = args.length === 0 ? ['file-key 0'] : ['error stanza 0 0'];
    assert.deepEqual(await commands('identity-v1', phase), [...said, 'file-key 1', 'done'], args.join(' '));
  }
});
