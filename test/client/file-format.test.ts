// The kms file: the vectors of the format, the prelude split into pieces of any size, and files from end to end with a
// ring's own key.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { makeFileVectors } from '../../scripts/make-file-vectors.ts';
import { encodePrelude, faultOf, readPrelude } from '../../src/client/file-format.ts';
import { decryptFile, encryptFile } from '../../src/client/file-streams.ts';
import { unwrapRingKey } from '../../src/client/ring-keys.ts';
import { utf8 } from '../../src/crypto/bytes.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { wrapRingKey } from '../../src/crypto/ring-key.ts';
import { generateX25519 } from '../../src/crypto/x25519.ts';
import { KmsError } from '../../src/errors.ts';
import { hex } from '../support/vectors.ts';
import { cameOutAsTold, type FileVector, fileOf, fileVectors } from './file-vectors.ts';
import { collect, inPieces, readable } from './streams.ts';

interface Vector extends FileVector {
  readonly key: string;
  readonly header?: string;
}

const vectors = fileVectors<Vector>('kms-file');

for (const [name, vector] of vectors) {
  test(`vector ${name}: ${vector.comment}`, async () => {
    const [file, key] = [fileOf(vector), hex(vector.key)];
    for (const size of [file.length + 1, 7000, 1]) {
      cameOutAsTold(vector, await collect(decryptFile({ source: inPieces(file, size), key })));
    }
    if (vector.header !== undefined) assert.equal((await readPrelude(inPieces(file, 3))).header, vector.header);
  });
}

test('the vectors are those that the script makes, and each fault has one', () => {
  const made = makeFileVectors();
  assert.deepEqual(made.map(({ name }) => name).sort(), [...vectors.keys()].sort());
  for (const { name, expected, key, file } of made) {
    const stored = vectors.get(name) ?? assert.fail(name);
    assert.equal(stored.expected, expected);
    assert.deepEqual(hex(stored.key), new Uint8Array(key));
    assert.deepEqual(fileOf(stored), new Uint8Array(file));
  }
  const kinds = ['valid', 'not-kms', 'cut-prelude', 'unknown-version', 'bad-header', 'cut', 'wrong-key', 'altered'];
  assert.deepEqual([...new Set(made.map(({ expected }) => expected))].sort(), kinds.sort());
});

const key = systemRandom(32);
const headerText = fc.stringMatching(/^[A-Za-z0-9_-]{1,1024}$/);

test('files come back, whatever the header, the message and the pieces', async () => {
  const size = fc.integer({ min: 1, max: 3000 });
  await fc.assert(
    fc.asyncProperty(headerText, fc.uint8Array({ maxLength: 4000 }), size, async (header, message, pieces) => {
      const file = await collect(encryptFile({ source: inPieces(message, pieces), key, header }));
      assert.equal(file.bytes.length, 11 + header.length + 56 + message.length + 16);
      const asked: string[] = [];
      const keyFor = async ({ header: of }: { readonly header: string }): Promise<Uint8Array> => {
        asked.push(of);
        return key;
      };
      const plain = await collect(decryptFile({ source: inPieces(file.bytes, pieces), key: keyFor }));
      assert.equal(plain.error, undefined);
      assert.deepEqual(plain.bytes, message);
      assert.deepEqual(asked, [header]);
    }),
    { numRuns: 100 },
  );
});

test('every byte of a file counts: changed, cut before, or more behind it', async () => {
  const message = systemRandom(40);
  const { bytes: file } = await collect(encryptFile({ source: inPieces(message), key, header: 'AQAB' }));
  for (let at = 0; at < file.length; at++) {
    for (const broken of [
      file.with(at, (file[at] ?? 0) ^ 0x20),
      file.with(at, (file[at] ?? 0) ^ 1),
      file.subarray(0, at),
    ]) {
      const { bytes, error } = await collect(decryptFile({ source: inPieces(broken), key }));
      assert.ok(faultOf(error), `at ${at}: ${String(error)}`);
      assert.equal(bytes.length, 0);
    }
  }
  const longer = await collect(decryptFile({ source: inPieces(new Uint8Array([...file, 0])), key }));
  assert.equal(faultOf(longer.error), 'altered');
});

test('headers that are none are not written', () => {
  for (const header of ['', 'a b', 'a=', 'a\n', 'é', 'A'.repeat(1025)]) {
    assert.throws(
      () => encodePrelude(header),
      (error) => error instanceof KmsError && error.code === 'invalid',
    );
  }
  assert.deepEqual(encodePrelude('AQ'), new Uint8Array([...utf8('kms-file'), 1, 0, 2, ...utf8('AQ')]));
});

test('a failure gives the source up, and the error of a source or of the key goes on up', async () => {
  const file = (await collect(encryptFile({ source: inPieces(systemRandom(100_000)), key, header: 'AQAB' }))).bytes;
  const broken: [Uint8Array, Uint8Array][] = [
    [file.with(0, 0), key],
    [file, systemRandom(32)],
    [file.with(200, (file[200] ?? 0) ^ 1), key],
  ];
  for (const [bytes, withKey] of broken) {
    let cancelled = false;
    const endless = (async function* () {
      yield bytes;
      for (;;) yield new Uint8Array(100_000);
    })();
    const source = readable(endless, () => {
      cancelled = true;
    });
    const { error } = await collect(decryptFile({ source, key: withKey }));
    assert.ok(faultOf(error));
    await new Promise(setImmediate);
    assert.equal(cancelled, true);
  }
  const failing = (async function* () {
    yield systemRandom(10);
    throw new Error('the disk is gone');
  })();
  assert.match(String((await collect(encryptFile({ source: failing, key, header: 'AQ' }))).error), /the disk is gone/);
  const refusing = async (): Promise<Uint8Array> => {
    throw new KmsError('forbidden', 'no');
  };
  const { error } = await collect(decryptFile({ source: inPieces(file), key: refusing }));
  assert.ok(error instanceof KmsError && error.code === 'forbidden');
});

test('a reader that stops early cancels the source', async () => {
  for (const enough of [1, 200, 1_000_000]) {
    let cancelled = false;
    const endless = (async function* () {
      for (;;) yield new Uint8Array(65_536);
    })();
    const source = readable(endless, () => {
      cancelled = true;
    });
    let seen = 0;
    for await (const bytes of encryptFile({ source, key, header: 'A'.repeat(119) })) {
      seen += bytes.length;
      if (seen > enough) break;
    }
    await new Promise(setImmediate);
    assert.equal(cancelled, true, `after ${enough} bytes`);
  }
});

test('a failure does not wait for a source that gives no more bytes', async () => {
  const file = (await collect(encryptFile({ source: inPieces(systemRandom(600_000)), key, header: 'AQ' }))).bytes;
  const silent = (async function* () {
    yield file.with(300, (file[300] ?? 0) ^ 1);
    await new Promise(() => {});
  })();
  assert.equal(faultOf((await collect(decryptFile({ source: silent, key }))).error), 'altered');
});

test('pieces that are no bytes are refused', async () => {
  const source = inPieces(utf8('text')) as AsyncIterable<unknown>;
  const texts = (async function* () {
    for await (const _ of source) yield 'text';
  })() as AsyncIterable<unknown> as AsyncIterable<Uint8Array>; // as from an untyped caller
  const { error } = await collect(encryptFile({ source: texts, key, header: 'AQ' }));
  assert.match(String(error), /expected a stream of bytes/);
});

test('the key of an answer opens with the private key of its ring alone', async () => {
  const ring = generateX25519(systemRandom);
  const { wrapped, iv } = wrapRingKey('ks', ring.publicKey, 'key_1', key, systemRandom);
  const wire = (id: string, value: string) =>
    ({ id, type: 'aes256', keyData: { encrypted: { key: { value, encoding: 'base64' } }, iv } }) as const;
  assert.deepEqual(await unwrapRingKey({ privateKey: ring.privateKey, key: wire('key_1', wrapped) }), key);
  const other = generateX25519(systemRandom).privateKey;
  for (const [privateKey, answer] of [
    [other, wire('key_1', wrapped)],
    [ring.privateKey, wire('key_2', wrapped)],
    [ring.privateKey, wire('key_1', wrapped.slice(4))],
    [ring.privateKey, wire('key_1', '')],
  ] as const) {
    await assert.rejects(unwrapRingKey({ privateKey, key: answer }), /the private key does not open key_/);
  }
  const short = wrapRingKey('ks', ring.publicKey, 'key_1', systemRandom(16), systemRandom).wrapped;
  await assert.rejects(unwrapRingKey({ privateKey: ring.privateKey, key: wire('key_1', short) }), { code: 'invalid' });
});
