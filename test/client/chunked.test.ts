// C2SP chunked encryption: the Wycheproof vectors, sizes around every boundary, and streams altered in every way.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { inflateSync } from 'node:zlib';
import fc from 'fast-check';
import { decryptChunks, encryptChunks } from '../../src/client/chunked.ts';
import { faultOf } from '../../src/client/file-format.ts';
import { toHex, utf8 } from '../../src/crypto/bytes.ts';
import { chunkNonce, deriveChunkKeys, maxChunks } from '../../src/crypto/chunk-keys.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { KmsError } from '../../src/errors.ts';
import { hex, vectorsOf } from '../support/vectors.ts';
import { collect, inPieces, piece, readable } from './streams.ts';

interface Vector {
  readonly tcId: number;
  readonly comment: string;
  readonly key: string;
  readonly ctx: string;
  /** Hex of the zlib-compressed stream. */
  readonly ct: string;
  readonly aeadKey?: string;
  readonly baseNonce?: string;
  readonly msgLength?: number;
  readonly msgSha512?: string;
  readonly result: 'valid' | 'invalid';
  readonly flags: readonly string[];
}

const groups: { testGroups: { tests: Vector[] }[] } = vectorsOf('c2sp-chunked-encryption-aes-256-gcm');
const vectors = groups.testGroups.flatMap((group) => group.tests);

for (const vector of vectors) {
  test(`Wycheproof ${vector.tcId}: ${vector.comment}`, async () => {
    const stream = new Uint8Array(inflateSync(hex(vector.ct)));
    const [key, context] = [hex(vector.key), hex(vector.ctx)];
    if (vector.aeadKey !== undefined) {
      const keys = await deriveChunkKeys(key, context, stream.subarray(0, 24));
      assert.equal(toHex(keys.key), vector.aeadKey);
      assert.equal(toHex(keys.baseNonce), vector.baseNonce);
    }
    for (const size of [stream.length + 1, 16384, 1000]) {
      const { bytes, error } = await collect(decryptChunks(inPieces(stream, size), { key, context }));
      if (vector.result === 'valid') {
        assert.equal(error, undefined);
        assert.equal(bytes.length, vector.msgLength);
        assert.equal(createHash('sha512').update(bytes).digest('hex'), vector.msgSha512);
        continue;
      }
      const expected = vector.flags.includes('InvalidKeySize') && stream.length >= 56 ? 'invalid' : 'corrupt';
      assert.ok(error instanceof KmsError && error.code === expected, String(error));
      // At most the longest authentic prefix was output before the failure.
      assert.ok(bytes.length <= (vector.flags.includes('PartialPlaintext') ? (vector.msgLength ?? 0) : 0));
      if (vector.flags.includes('HeaderFailure')) assert.equal(bytes.length, 0);
    }
  });
}

test('the vectors are all there', () => assert.equal(vectors.length, 35));

const key = systemRandom(32);
const context = utf8('a context');
const encrypt = (source: Uint8Array, size = 65536): AsyncGenerator<Uint8Array> =>
  encryptChunks(inPieces(source, size), { key, context, random: systemRandom });
const decrypt = (source: Uint8Array, size = 65536): AsyncGenerator<Uint8Array> =>
  decryptChunks(inPieces(source, size), { key, context });

async function encrypted(message: Uint8Array, size?: number): Promise<Uint8Array> {
  const { bytes, error } = await collect(encrypt(message, size));
  assert.equal(error, undefined);
  return bytes;
}

const chunk = 16384;
const block = 16 * chunk;
const borders = [0, chunk, 2 * chunk, block, 2 * block, 3 * block, 4 * block].flatMap((size) => [
  size - 1,
  size,
  size + 1,
]);

test('round trips at every border, in pieces of every kind', async () => {
  const message = systemRandom(4 * block + 1);
  for (const size of borders.filter((border) => border >= 0)) {
    const part = message.subarray(0, size);
    const stream = await encrypted(part, size % 2 === 0 ? block : 40_000);
    assert.equal(stream.length, 56 + size + 16 * (Math.floor(size / chunk) + 1));
    for (const pieces of [stream.length + 1, 65536, block + 16 * 16]) {
      const { bytes, error } = await collect(decrypt(stream, pieces));
      assert.equal(error, undefined);
      assert.ok(Buffer.from(part).equals(bytes), `${size} bytes`);
    }
  }
});

test('random messages in random pieces', async () => {
  const size = fc.oneof(fc.integer({ min: 0, max: 100 }), fc.integer({ min: chunk - 20, max: 3 * chunk + 20 }));
  const cuts = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 20_000 })), { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(size, cuts, cuts, async (length, inCuts, outCuts) => {
      fc.pre(inCuts.some((cut) => cut > 0) && outCuts.some((cut) => cut > 0));
      const message = systemRandom(length);
      const options = { key, context, random: systemRandom };
      const stream = await collect(encryptChunks(inPieces(message, ...inCuts), options));
      const plain = await collect(decryptChunks(inPieces(stream.bytes, ...outCuts), { key, context }));
      assert.equal(plain.error, undefined);
      assert.deepEqual(plain.bytes, message);
    }),
    // Tens of thousands of pieces in one block, every other one empty.
    { numRuns: 60, examples: [[41_107, [1, 0], [0, 1, 0]]] },
  );
});

test('150,000 pieces of one byte, in both directions', async () => {
  const message = systemRandom(150_000);
  const stream = await encrypted(message, 1);
  const { bytes, error } = await collect(decrypt(stream, 1));
  assert.equal(error, undefined);
  assert.deepEqual(bytes, message);
});

test('one byte at a time, and through ReadableStreams', async () => {
  const message = systemRandom(chunk + 3);
  const stream = await encrypted(message, 1);
  assert.deepEqual((await collect(decrypt(stream, 1))).bytes, message);
  const from = readable(inPieces(message, 5000));
  const ours = await collect(encryptChunks(from, { key, context, random: systemRandom }));
  const back = readable(inPieces(ours.bytes, 5000));
  assert.deepEqual((await collect(decryptChunks(back, { key, context }))).bytes, message);
});

/** Asserts that decryption fails, and that its output until then is a prefix of the message. */
async function assertFails(stream: Uint8Array, message: Uint8Array, faults: readonly string[]): Promise<void> {
  const { bytes, error } = await collect(decrypt(stream));
  assert.ok(faults.includes(faultOf(error) ?? 'none'), String(error));
  assert.ok(Buffer.from(message.subarray(0, bytes.length)).equals(bytes), 'unauthenticated bytes came out');
}

test('any flipped bit, any cut and any extension fails, and nothing unauthenticated comes out', async () => {
  const messages = [0, 1, chunk - 1, chunk, chunk + 1, 2 * chunk].map((size) => systemRandom(size));
  const streams = await Promise.all(messages.map((message) => encrypted(message)));
  const which = fc.integer({ min: 0, max: messages.length - 1 });
  await fc.assert(
    fc.asyncProperty(
      which,
      fc.nat(),
      fc.integer({ min: 0, max: 7 }),
      fc.uint8Array({ minLength: 1, maxLength: 40 }),
      async (n, at, bit, tail) => {
        const message = piece(messages, n);
        const stream = piece(streams, n);
        const place = at % stream.length;
        const flipped = stream.with(place, (stream[place] ?? 0) ^ (1 << bit));
        await assertFails(flipped, message, place < 56 ? ['wrong-key'] : ['altered']);
        await assertFails(stream.subarray(0, place), message, ['cut', 'altered']);
        await assertFails(new Uint8Array([...stream, ...tail]), message, ['altered', 'cut']);
      },
    ),
    { numRuns: 150 },
  );
});

test('damage far into a long stream: all that came out before it is true, and less than a block is held back', async () => {
  const message = systemRandom(5 * block + 77);
  const stream = await encrypted(message);
  const sealedBlock = 16 * (chunk + 16);
  for (let n = 0; n < 5; n++) {
    const place = 56 + n * sealedBlock + 12_345;
    const { bytes, error } = await collect(decrypt(stream.with(place, (stream[place] ?? 0) ^ 1)));
    assert.equal(faultOf(error), 'altered');
    assert.equal(bytes.length, n * block);
    assert.ok(Buffer.from(message.subarray(0, n * block)).equals(bytes));
  }
  for (const length of [56, 56 + sealedBlock, 56 + 3 * sealedBlock, 56 + sealedBlock + 16_400]) {
    const { bytes, error } = await collect(decrypt(stream.subarray(0, length)));
    assert.equal(faultOf(error), 'cut');
    assert.ok(Buffer.from(message.subarray(0, bytes.length)).equals(bytes));
  }
});

test('chunks that are swapped, doubled or dropped do not decrypt', async () => {
  const message = systemRandom(3 * chunk + 5);
  const stream = await encrypted(message);
  const head = stream.subarray(0, 56);
  const chunks = [0, 1, 2, 3].map((n) => stream.subarray(56 + n * 16_400, 56 + (n + 1) * 16_400));
  const build = (...order: number[]): Uint8Array =>
    new Uint8Array(Buffer.concat([head, ...order.map((n) => piece(chunks, n))]));
  assert.deepEqual((await collect(decrypt(build(0, 1, 2, 3)))).bytes, message);
  for (const order of [[1, 0, 2, 3], [0, 1, 1, 3], [0, 1, 3], [1, 2, 3], [3], [0, 1, 2, 3, 3], [0, 1, 2, 2, 3]]) {
    await assertFails(build(...order), message, ['altered']);
  }
  for (const order of [[], [0], [0, 1, 2]]) await assertFails(build(...order), message, ['cut']);
});

test('another key, another context and another stream are told before anything is decrypted', async () => {
  const stream = await encrypted(systemRandom(100));
  for (const options of [
    { key: systemRandom(32), context },
    { key, context: utf8('b') },
    { key, context: utf8('') },
  ]) {
    const { bytes, error } = await collect(decryptChunks(inPieces(stream, 100), options));
    assert.equal(faultOf(error), 'wrong-key');
    assert.equal(bytes.length, 0);
  }
});

test('keys of another length are refused', async () => {
  const stream = await encrypted(systemRandom(100));
  for (const length of [0, 16, 31, 33, 64]) {
    const wrong = { key: systemRandom(length), context, random: systemRandom };
    for (const result of [encryptChunks(inPieces(stream, 9), wrong), decryptChunks(inPieces(stream, 9), wrong)]) {
      const { error } = await collect(result);
      assert.match(String(error), /expected a key of 32 bytes/);
    }
  }
});

test('two encryptions of one message share nothing', async () => {
  const message = systemRandom(1000);
  const [one, two] = [await encrypted(message), await encrypted(message)];
  assert.notDeepEqual(one.subarray(0, 24), two.subarray(0, 24));
  assert.notDeepEqual(one.subarray(24, 56), two.subarray(24, 56));
  assert.notDeepEqual(one.subarray(56), two.subarray(56));
});

test('nonces count to 2^38 and no further', () => {
  const base = hex('ffffffffffffffffffffffff');
  assert.equal(toHex(chunkNonce(base, 0)), 'ffffffffffffffffffffffff');
  assert.equal(toHex(chunkNonce(base, 0x0102)), 'fffffffffffffffffffffefd');
  assert.equal(toHex(chunkNonce(base, 0x8000_0001)), 'ffffffffffffffff7ffffffe');
  assert.equal(toHex(chunkNonce(base, 2 ** 32)), 'fffffffffffffffeffffffff');
  assert.equal(toHex(chunkNonce(base, maxChunks - 1)), 'ffffffffffffffc000000000');
  assert.throws(() => chunkNonce(base, maxChunks), { code: 'too-large' });
});
