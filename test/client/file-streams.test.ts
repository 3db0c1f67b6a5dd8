// Encrypted files as Web Streams: round trips in pieces of any size, every damaged file, ends from either side, and
// bounds on buffered data.
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import fc from 'fast-check';
import { faultOf } from '../../src/client/file-format.ts';
import {
  type DecryptStreamOptions,
  decryptBytes,
  decryptStream,
  type EncryptStreamOptions,
  encryptBytes,
  encryptStream,
} from '../../src/client/file-streams.ts';
import { forgetKeys } from '../../src/client/known-keys.ts';
import type { Client } from '../../src/client/methods.ts';
import { generateRingKey, readPrivateKeys } from '../../src/client/ring-keys.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { wrapRingKey } from '../../src/crypto/ring-key.ts';
import { parsePublicKey, privateKeyToPkcs8 } from '../../src/crypto/x25519.ts';
import { KmsError } from '../../src/errors.ts';
import { hex } from '../support/vectors.ts';
import { cameOutAsTold, type FileVector, fileOf, fileVectors } from './file-vectors.ts';
import { collect, inPieces, readable } from './streams.ts';

const pair = generateRingKey();
const { privateKey } = pair;
const raw = readPrivateKeys(privateKey, 'it')[0]?.bytes ?? assert.fail('no key');

interface Asked {
  readonly client: Pick<Client, 'encrypt' | 'decrypt'>;
  readonly calls: unknown[];
}

/** An appliance that always returns this key, wrapped to the ring. */
function appliance(bytes: Uint8Array = systemRandom(32), header = 'AQAB'): Asked {
  const publicKey = parsePublicKey(pair.publicKey) ?? assert.fail('no key');
  const { wrapped: value, iv } = wrapRingKey('ks', publicKey, 'key_1', bytes, systemRandom);
  const keyData = { encrypted: { key: { value, encoding: 'base64' as const } }, iv };
  const key = { id: 'key_1', type: 'aes256' as const, kem: 'x25519' as const, props: {}, keyData };
  const calls: unknown[] = [];
  return {
    calls,
    client: {
      async encrypt(input) {
        calls.push(input);
        return { key, ringId: 'ring_1', hash: 'h', header };
      },
      async decrypt(input) {
        calls.push(input);
        return { key, ringId: 'ring_1', ringname: 'r', asset: { valid: true, id: 'a', message: 'good', data: {} } };
      },
    },
  };
}

/** Output of a stream before it ended or failed; read with a reader, since that is what browsers have. */
async function drain(stream: ReadableStream<Uint8Array>) {
  return collect(
    (async function* () {
      const reader = stream.getReader();
      for (let each = await reader.read(); !each.done; each = await reader.read()) yield each.value;
    })(),
  );
}

const { client } = appliance();
const encryptWith = (more: Partial<EncryptStreamOptions> = {}) =>
  encryptStream({ client, ring: 'r', privateKey, ...more });
const decryptWith = (more: Partial<DecryptStreamOptions> = {}) => decryptStream({ client, privateKey, ...more });

test('random messages in random pieces come back', async () => {
  const size = fc.oneof(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 16_300, max: 60_000 }));
  const cuts = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 30_000 })), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(size, cuts, cuts, async (length, inCuts, outCuts) => {
      fc.pre(inCuts.some((cut) => cut > 0) && outCuts.some((cut) => cut > 0));
      const message = systemRandom(length);
      const file = await drain(readable(inPieces(message, ...inCuts)).pipeThrough(encryptWith()));
      assert.equal(file.error, undefined);
      const plain = await drain(readable(inPieces(file.bytes, ...outCuts)).pipeThrough(decryptWith()));
      assert.equal(plain.error, undefined);
      assert.deepEqual(plain.bytes, message);
    }),
    { numRuns: 40 },
  );
});

test('the appliance is asked once, for what was said, and its answer is at hand', async () => {
  const { client, calls } = appliance();
  const asset = { data: { title: 'x' } };
  const encryption = encryptStream({ client, ring: 'r', privateKey, asset });
  assert.deepEqual(calls, []);
  const { bytes } = await drain(readable(inPieces(systemRandom(300_000), 1000)).pipeThrough(encryption));
  assert.equal((await encryption.answer).header, 'AQAB');
  const decryption = decryptStream({ client, privateKey });
  await drain(readable(inPieces(bytes)).pipeThrough(decryption));
  assert.deepEqual((await decryption.answer).asset, { valid: true, id: 'a', message: 'good', data: {} });
  assert.deepEqual(calls, [
    { ringname: 'r', asset },
    { header: 'AQAB', knownKeys: ['key_1'] },
  ]);
});

/** Leaves out known keys, as an appliance does. */
function frugal({ client, calls }: Asked): Asked {
  const without = async <A extends { key: { id: string; keyData?: unknown } }>(
    { knownKeys = [] }: { knownKeys?: string[] },
    answer: Promise<A>,
  ): Promise<A> => {
    const { keyData, ...key } = (await answer).key;
    return { ...(await answer), key: knownKeys.includes(key.id) ? key : { ...key, keyData } };
  };
  return {
    calls,
    client: {
      encrypt: (input) => without(input, client.encrypt(input)),
      decrypt: (input = {}) => without(input, client.decrypt(input)),
    },
  };
}

test('a key is named once it is known, by the private key that opened it, and nothing is unwrapped twice', async () => {
  const { client, calls } = frugal(appliance());
  const message = systemRandom(100);
  const files: Uint8Array[] = [];
  for (let i = 0; i < 3; i++) {
    const { bytes, answer } = await encryptBytes(message, { client, ring: i === 1 ? 'R' : 'r', privateKey });
    assert.equal(answer.key.keyData === undefined, i > 0);
    files.push(bytes);
  }
  assert.deepEqual(
    calls.map((call) => Object(call).knownKeys),
    [undefined, ['key_1'], ['key_1']],
  );
  for (const file of files) {
    assert.deepEqual((await decryptBytes(file, { client, privateKey })).bytes, message);
    assert.deepEqual((await decryptBytes(file, { client, privateKey: () => privateKey })).bytes, message);
  }
  // Keys of one ring are not named as known for another.
  await encryptBytes(message, { client, ring: 'other', privateKey });
  assert.equal(Object(calls.at(-1)).knownKeys, undefined);
  // A private key that did not open the key gets no cached copy, given directly or as a function.
  const stranger = generateRingKey().privateKey;
  for (const other of [stranger, () => stranger]) {
    await assert.rejects(decryptBytes(files[0] ?? message, { client, privateKey: other }), /does not open key_1/);
  }
  await assert.rejects(encryptBytes(message, { client, ring: 'r', privateKey: stranger }), /does not open key_1/);
});

test('keys that are to be forgotten are overwritten, and named no more', async () => {
  const { client, calls } = frugal(appliance());
  const encrypt = () => encryptBytes(systemRandom(9), { client, ring: 'r', privateKey });
  const { bytes: file } = await encrypt();
  const fill = mock.method(Uint8Array.prototype, 'fill');
  forgetKeys(client);
  // The cached key; a caller's copy is the caller's to wipe.
  assert.deepEqual(
    fill.mock.calls.map(({ this: bytes }) => bytes),
    [new Uint8Array(32)],
  );
  fill.mock.restore();
  forgetKeys(client);
  await encrypt();
  assert.equal(Object(calls.at(-1)).knownKeys, undefined);
  await decryptBytes(file, { client, privateKey });
  assert.deepEqual(Object(calls.at(-1)).knownKeys, ['key_1']);
});

test('a key that does not open what it was asked for is asked for again: its wrapping may have been put right', async () => {
  const bytes = systemRandom(32);
  const right = frugal(appliance(bytes));
  const message = systemRandom(100);
  const { bytes: file } = await encryptBytes(message, { client: right.client, ring: 'r', privateKey });
  const wrong = frugal(appliance());
  let now = wrong;
  const client: Asked['client'] = { encrypt: right.client.encrypt, decrypt: (input) => now.client.decrypt(input) };
  for (const given of [privateKey, () => privateKey]) {
    now = wrong;
    const failure = await decryptBytes(file, { client, privateKey: given }).catch((error: unknown) => error);
    assert.equal(faultOf(failure), 'wrong-key');
    now = right;
    assert.deepEqual((await decryptBytes(file, { client, privateKey: given })).bytes, message);
    forgetKeys(client);
  }
});

test('a client that is to keep no keys names none', async () => {
  const { client, calls } = frugal(appliance());
  for (let i = 0; i < 2; i++) {
    const { bytes } = await encryptBytes(systemRandom(9), { client, ring: 'r', privateKey, keepKeys: false });
    await decryptBytes(bytes, { client, privateKey, keepKeys: false });
  }
  assert.ok(calls.every((call) => Object(call).knownKeys === undefined));
});

test('of the keys that are kept the last four are named, and what rotated is unwrapped anew', async () => {
  let n = 0;
  const calls: unknown[] = [];
  const publicKey = parsePublicKey(pair.publicKey) ?? assert.fail('no key');
  const client: Pick<Client, 'encrypt'> = {
    async encrypt(input) {
      calls.push(input.knownKeys);
      const id = `key_${++n}`;
      const { wrapped: value, iv } = wrapRingKey('ks', publicKey, id, systemRandom(32), systemRandom);
      const keyData = { encrypted: { key: { value, encoding: 'base64' as const } }, iv };
      return {
        key: { id, type: 'aes256', kem: 'x25519', props: {}, keyData },
        ringId: 'ring_1',
        hash: 'h',
        header: 'AQAB',
      };
    },
  };
  for (let i = 0; i < 7; i++) await encryptBytes(new Uint8Array(), { client, ring: 'r', privateKey });
  assert.deepEqual(calls.at(-1), ['key_3', 'key_4', 'key_5', 'key_6']);
});

for (const [name, vector] of fileVectors<FileVector & { readonly key: string }>('kms-file')) {
  test(`vector ${name}: ${vector.comment}`, async () => {
    const file = fileOf(vector);
    const { client } = appliance(hex(vector.key));
    const decryption = decryptStream({ client, privateKey });
    cameOutAsTold(vector, await drain(readable(inPieces(file, 7000)).pipeThrough(decryption)));
    if (vector.expected === 'valid') return;
    await assert.rejects(decryptBytes(file, { client, privateKey }), (same) => faultOf(same) === vector.expected);
  });
}

test('of a file that is damaged or cut far in, only verified bytes come out, and the stream ends with the error', async () => {
  const message = systemRandom(1_000_000);
  const { bytes: file } = await encryptBytes(message, { client, ring: 'r', privateKey });
  for (const [broken, fault] of [
    [file.with(700_000, (file[700_000] ?? 0) ^ 1), 'altered'],
    [file.subarray(0, 700_000), 'altered'],
    [file.subarray(0, 15 + 56 + 16_400 * 40), 'cut'],
  ] as const) {
    const { bytes, error } = await drain(readable(inPieces(broken, 5000)).pipeThrough(decryptWith()));
    assert.equal(faultOf(error), fault);
    assert.equal(bytes.length, 2 * 262_144);
    assert.ok(Buffer.from(message.subarray(0, bytes.length)).equals(bytes));
  }
});

test('a failure tells the source why', async () => {
  let told: unknown;
  const endless = (async function* () {
    for (;;) yield new Uint8Array(1000);
  })();
  const source = readable(endless, (reason?: unknown) => {
    told = reason;
  });
  const decryption = decryptWith();
  const { error } = await drain(source.pipeThrough(decryption));
  assert.equal(faultOf(error), 'not-kms');
  await assert.rejects(decryption.answer, (same) => same === error);
  while (told === undefined) await new Promise(setImmediate);
  assert.equal(told, error);
});

test('a failure of the source comes out, and so does one of the appliance', async () => {
  const gone = new Error('the disk is gone');
  const failing = (async function* () {
    yield new Uint8Array(1000);
    throw gone;
  })();
  assert.equal((await drain(readable(failing).pipeThrough(encryptWith()))).error, gone);
  const no = new KmsError('forbidden', 'the flag is missing');
  const refusing = { encrypt: () => Promise.reject(no), decrypt: () => Promise.reject(no) };
  const encryption = encryptWith({ client: refusing });
  assert.equal((await drain(readable(inPieces(new Uint8Array(9))).pipeThrough(encryption))).error, no);
  await assert.rejects(encryption.answer, no);
  const { bytes } = await encryptBytes(new Uint8Array(9), { client, ring: 'r', privateKey });
  assert.equal((await drain(readable(inPieces(bytes)).pipeThrough(decryptWith({ client: refusing })))).error, no);
});

test('a signal ends both sides with its reason, before the start, at the request and in the middle', async () => {
  const reason = new Error('enough');
  for (const when of ['before', 'request', 'middle'] as const) {
    const ending = new AbortController();
    if (when === 'before') ending.abort(reason);
    let told: unknown;
    let given = 0;
    const endless = (async function* () {
      for (;;) {
        if (when === 'middle' && ++given > 1000) ending.abort(reason);
        yield new Uint8Array(1000);
      }
    })();
    let requestEnded: unknown;
    const asking: Pick<Client, 'encrypt'> = {
      encrypt(input, options) {
        if (when !== 'request') return client.encrypt(input, options);
        queueMicrotask(() => ending.abort(reason));
        return new Promise((_, reject) => {
          options?.signal?.addEventListener('abort', () => {
            requestEnded = options.signal?.reason;
            reject(requestEnded);
          });
        });
      },
    };
    const source = readable(endless, (why?: unknown) => {
      told = why;
    });
    const encryption = encryptWith({ client: asking, signal: ending.signal });
    const { error } = await drain(source.pipeThrough(encryption));
    assert.equal(error, reason, when);
    while (told === undefined) await new Promise(setImmediate);
    assert.equal(told, reason);
    if (when === 'request') assert.equal(requestEnded, reason);
    if (when !== 'middle') await assert.rejects(encryption.answer, (same) => same === reason);
  }
});

test('a reader that stops early stops the source', async () => {
  let told: unknown;
  const endless = (async function* () {
    for (;;) yield new Uint8Array(65_536);
  })();
  const source = readable(endless, (why?: unknown) => {
    told = why;
  });
  const reader = source.pipeThrough(encryptWith()).getReader();
  await reader.read();
  await reader.cancel('seen enough');
  while (told === undefined) await new Promise(setImmediate);
  assert.equal(told, 'seen enough');
});

test('an aborted writer fails the reader', async () => {
  const { writable, readable: output } = encryptWith();
  const writer = writable.getWriter();
  const read = drain(output);
  await writer.write(new Uint8Array(10));
  await writer.abort(new Error('the upload stopped'));
  assert.match(String((await read).error), /the upload stopped/);
});

test('64 MiB go through in constant memory, and no faster than they are read', async () => {
  const piece = systemRandom(65_536);
  let written = 0;
  const source = readable(
    (async function* () {
      for (let i = 0; i < 1024; i++) {
        written += piece.length;
        yield piece;
      }
    })(),
  );
  const reader = source.pipeThrough(encryptWith()).pipeThrough(decryptWith()).getReader();
  let read = 0;
  let most = 0;
  for (let each = await reader.read(); !each.done; each = await reader.read()) {
    read += each.value.length;
    if (read % 8_388_608 === 0) for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    most = Math.max(most, written - read);
  }
  assert.equal(read, 64 * 1024 * 1024);
  assert.ok(most < 6 * 1024 * 1024, `${most} bytes under way`);
});

test('what is never read is never asked for', async () => {
  const { client, calls } = appliance();
  let taken = 0;
  const source = readable(
    (async function* () {
      for (;;) {
        taken++;
        yield new Uint8Array(1000);
      }
    })(),
  );
  const output = source.pipeThrough(encryptStream({ client, ring: 'r', privateKey }));
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
  assert.deepEqual(calls, []);
  assert.ok(taken < 5);
  await output.cancel();
});

test('the private key in each form, and found by the ring', async () => {
  const message = systemRandom(100);
  const der = privateKeyToPkcs8(raw);
  const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
  const forms = [
    privateKey,
    `${base64(der)}\n`,
    base64(raw),
    raw,
    der,
    Buffer.from(privateKey),
    Buffer.from(base64(der)),
  ];
  for (const form of forms) {
    const { bytes } = await encryptBytes(message, { client, ring: 'r', privateKey: form });
    assert.deepEqual((await decryptBytes(bytes, { client, privateKey: form })).bytes, message);
  }
  const { bytes } = await encryptBytes(message, { client, ring: 'r', privateKey });
  const found = await decryptBytes(bytes, {
    client,
    privateKey: async ({ ringname, ringId }) => {
      assert.deepEqual([ringname, ringId], ['r', 'ring_1']);
      return privateKey;
    },
  });
  assert.deepEqual(found.bytes, message);
  for (const wrong of ['', 'x', pair.publicKey, new Uint8Array(31), Buffer.from('nothing')]) {
    assert.throws(() => encryptWith({ privateKey: wrong }), {
      code: 'invalid',
      message: /privateKey holds no private key/,
    });
    assert.throws(() => decryptWith({ privateKey: wrong }), { code: 'invalid' });
    await assert.rejects(decryptBytes(bytes, { client, privateKey: () => wrong }), { code: 'invalid' });
  }
  const none = undefined as unknown as string; // as from an unset environment variable
  await assert.rejects(decryptBytes(bytes, { client, privateKey: () => none }), { code: 'invalid' });
  const other = generateRingKey().privateKey;
  await assert.rejects(encryptBytes(message, { client, ring: 'r', privateKey: other }), /does not open key_1/);
  await assert.rejects(decryptBytes(bytes, { client, privateKey: other }), /does not open key_1/);
});

test('a file whose asset does not verify is decrypted only where that is allowed', async () => {
  const { client } = appliance();
  const { bytes } = await encryptBytes(new Uint8Array(5), { client, ring: 'r', privateKey });
  const verdict = { valid: false, id: 'a', message: 'it was deleted', data: {} };
  const refusing: Pick<Client, 'decrypt'> = {
    async decrypt(input) {
      const body = { ...(await client.decrypt(input)), asset: verdict };
      throw new KmsError('asset-invalid', 'it was deleted', { body });
    },
  };
  await assert.rejects(decryptBytes(bytes, { client: refusing, privateKey }), { code: 'asset-invalid' });
  const { bytes: plain, answer } = await decryptBytes(bytes, { client: refusing, privateKey, allowInvalidAsset: true });
  assert.deepEqual([plain, answer.asset], [new Uint8Array(5), verdict]);
});

test('pieces that are no bytes are refused', async () => {
  const texts = new ReadableStream({ pull: (controller) => controller.enqueue('text') });
  const { error } = await drain(texts.pipeThrough(encryptWith()));
  assert.match(String(error), /expected a stream of bytes/);
});
