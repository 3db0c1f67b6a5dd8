// node:crypto instead of noble: the same bytes over messages of all kinds, the same refusals, and a fallback to noble
// if the self-test finds any difference.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { afterEach, test } from 'node:test';
import { ed25519 } from '@noble/curves/ed25519.js';
import { p256 } from '@noble/curves/nist.js';
import fc from 'fast-check';
import { openXChaCha, sealXChaCha } from '../../src/crypto/aead.ts';
import { argon2id, hashPassword, verifyPassword } from '../../src/crypto/argon2id.ts';
import { utf8 } from '../../src/crypto/bytes.ts';
import { ed25519PublicKey, ed25519Sign, ed25519Verify, isEd25519Signature } from '../../src/crypto/ed25519.ts';
import { sha256 } from '../../src/crypto/fast-hash.ts';
import * as plain from '../../src/crypto/hash.ts';
import { ecdsaSign, ecdsaVerify, ecPublicKey, newScalar } from '../../src/crypto/managed/ecdsa.ts';
import { native, type Primitives } from '../../src/crypto/primitives.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { decapsulateXWing, encapsulateXWing, xWingPublicKey } from '../../src/crypto/x-wing.ts';
import { publicFromPrivate, sharedSecret } from '../../src/crypto/x25519.ts';
import type { ApplianceEvent } from '../../src/platform/events.ts';
import { nodeAgreement, startAgreement } from '../../src/platform/native-agreement.ts';
import { type CryptoChoice, cryptoInUse, startCrypto, takeCrypto } from '../../src/platform/native-crypto.ts';

afterEach(() => takeCrypto('noble'));

const hexBytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'hex'));
const edgeCases: readonly { number: number; key: string; sig: string; msg: string }[] = JSON.parse(
  readFileSync(new URL('../vectors/cctv-ed25519-edge-cases.json', import.meta.url), 'utf8'),
);

const bytes = fc.uint8Array({ maxLength: 700 });
const bytesOf = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });

function by<T>(choice: CryptoChoice, run: () => T): T {
  takeCrypto(choice);
  return run();
}

/** Checks that both give the same result, of the same class. */
function same<T>(run: () => T): void {
  assert.deepStrictEqual(by('node', run), by('noble', run));
}

function flipped(given: Uint8Array, bit: number): Uint8Array {
  const copy = given.slice();
  copy[bit >>> 3] = (copy[bit >>> 3] ?? 0) ^ (1 << (bit & 7));
  return copy;
}

test('a command takes key agreement alone, and none that gives wrong answers or throws', () => {
  const seed = new Uint8Array(32).fill(7);
  const publicKey = by('noble', () => xWingPublicKey(seed));
  for (const wrong of [
    { ...nodeAgreement, x25519Shared: () => new Uint8Array(32).fill(1) },
    { ...nodeAgreement, mlKemPublicKey: () => new Uint8Array(1184) },
    { ...nodeAgreement, mlKemDecapsulate: () => new Uint8Array(32) },
    {
      ...nodeAgreement,
      mlKemEncapsulate: () => ({ cipherText: new Uint8Array(1088), sharedSecret: new Uint8Array(32) }),
    },
    {
      ...nodeAgreement,
      x25519PublicKey() {
        throw new Error('broken');
      },
    },
  ]) {
    takeCrypto('noble');
    startAgreement(wrong);
    assert.deepEqual(native(), {});
  }
  startAgreement();
  assert.deepEqual(native(), nodeAgreement);
  assert.deepEqual(Object.keys(nodeAgreement).sort(), [
    'mlKemDecapsulate',
    'mlKemEncapsulate',
    'mlKemPublicKey',
    'x25519PublicKey',
    'x25519Shared',
  ]);
  assert.deepEqual(xWingPublicKey(seed), publicKey);
  // Primitives that a server already uses stay.
  takeCrypto('node');
  const all = native();
  startAgreement();
  assert.equal(native(), all);
});

test('this Node has all of them', () => {
  const names = [
    'sha256',
    'runningSha256',
    'ed25519Sign',
    'ed25519PublicKey',
    'ed25519Verify',
    'ecdsaSign',
    'ecdsaVerify',
    'mlDsaSign',
    'mlDsaVerify',
    'rsa',
    'hash',
    'hmac',
    'sealChaCha',
    'openChaCha',
    'argon2id',
    'sealGcm',
    'openGcm',
    'x25519PublicKey',
    'x25519Shared',
    'mlKemPublicKey',
    'mlKemEncapsulate',
    'mlKemDecapsulate',
  ];
  assert.deepEqual(
    by('node', () => Object.keys(native()).sort()),
    names.sort(),
  );
  assert.deepEqual(
    by('noble', () => Object.keys(native())),
    [],
  );
});

test('SHA-256, whole and in pieces', () => {
  fc.assert(
    fc.property(bytes, (message) => same(() => sha256(message))),
    { numRuns: 3000 },
  );
  const inPieces = (pieces: readonly Uint8Array[]) => () => {
    const running = plain.runningSha256();
    for (const piece of pieces) running.update(piece);
    return running.digest();
  };
  fc.assert(fc.property(fc.array(bytes), (pieces) => same(inPieces(pieces))));
  const hash = by('node', () => sha256(utf8('abc')));
  const copy = hash.slice();
  copy.fill(0);
  assert.deepEqual(hash, plain.sha256(utf8('abc')), 'a slice of it is a copy');
});

test('Ed25519: keys and signatures, over 10,000 messages', () => {
  const seeds = Array.from({ length: 10 }, () => systemRandom(32));
  for (const seed of seeds) same(() => ed25519PublicKey(seed));
  const message = fc.tuple(fc.constantFrom(...seeds), bytes);
  fc.assert(
    fc.property(message, ([seed, text]) => same(() => ed25519Sign(seed, text))),
    { numRuns: 10_000 },
  );
});

for (const choice of ['node', 'noble'] as const) {
  test(`a signature is known again with the seed, and no other bytes are, by ${choice}`, () => {
    const [seed, message] = [systemRandom(32), systemRandom(254)];
    const isIt = (given: Uint8Array, text = message): boolean =>
      by(choice, () => isEd25519Signature(seed, text, given));
    const signature = by('noble', () => ed25519Sign(seed, message));
    assert.ok(isIt(signature));
    for (let bit = 0; bit < 512; bit++) assert.ok(!isIt(flipped(signature, bit)), `bit ${bit}`);
    for (let bit = 0; bit < 254 * 8; bit += choice === 'node' ? 1 : 41) {
      assert.ok(!isIt(signature, flipped(message, bit)), `bit ${bit} of the message`);
    }
    for (const wrong of [new Uint8Array(), signature.subarray(1), new Uint8Array(65)]) assert.ok(!isIt(wrong));
    assert.ok(ed25519Verify(ed25519PublicKey(seed), message, signature));
  });
}

test('Ed25519: the same signatures are taken, edge cases among them', () => {
  const [seed, message] = [systemRandom(32), systemRandom(100)];
  const publicKey = ed25519PublicKey(seed);
  const signature = ed25519Sign(seed, message);
  for (const choice of ['node', 'noble'] as const) {
    assert.equal(
      by(choice, () => ed25519Verify(publicKey, message, signature)),
      true,
    );
  }
  for (let bit = 0; bit < 512; bit += 7) same(() => ed25519Verify(publicKey, message, flipped(signature, bit)));
  for (let bit = 0; bit < 256; bit += 5) same(() => ed25519Verify(flipped(publicKey, bit), message, signature));
  const torsion = ed25519.Point.fromBytes(hexBytes('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a'));
  const small = Array.from({ length: 8 }, (_, n) => (n === 0 ? ed25519.Point.ZERO : torsion.multiplyUnsafe(BigInt(n))));
  const encodings = small.flatMap((point) => [point.toBytes(), flipped(point.toBytes(), 255)]);
  // y of 0 and 1, encoded non-canonically with the prime added.
  encodings.push(...['ed', 'ee'].map((low) => hexBytes(`${low}${'ff'.repeat(30)}7f`)), new Uint8Array(32).fill(255));
  for (const point of encodings) {
    assert.equal(
      by('node', () => ed25519Verify(point, message, Buffer.concat([point, new Uint8Array(32)]))),
      false,
    );
    for (const r of [...encodings, signature.subarray(0, 32)]) {
      for (const s of [new Uint8Array(32), signature.subarray(32)]) {
        const made = new Uint8Array([...r, ...s]);
        for (const key of [point, publicKey]) same(() => ed25519Verify(key, message, made));
      }
    }
  }
  for (const { number, key, sig, msg } of edgeCases) {
    const asked = [hexBytes(key), utf8(msg), hexBytes(sig)] as const;
    assert.equal(
      by('node', () => ed25519Verify(...asked)),
      by('noble', () => ed25519Verify(...asked)),
      String(number),
    );
  }
});

test('ECDSA with P-256: each takes what the other made, and the same of what is altered', () => {
  const key = newScalar('ecdsa-p256', systemRandom);
  const publicKey = ecPublicKey('ecdsa-p256', key);
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
  for (const hash of ['sha2-224', 'sha2-256', 'sha2-384', 'sha2-512'] as const) {
    const message = systemRandom(hash === 'sha2-224' ? 0 : 100);
    const verifyMessage = (signature: Uint8Array) =>
      ecdsaVerify('ecdsa-p256', publicKey, { bytes: message, isDigest: false }, hash, signature);
    for (const choice of ['node', 'noble'] as const) {
      const signature = by(choice, () => ecdsaSign('ecdsa-p256', key, { bytes: message, isDigest: false }, hash));
      const taken = () => verifyMessage(signature);
      assert.deepEqual([by('node', taken), by('noble', taken)], [true, true]);
      for (let bit = 0; bit < signature.length * 8; bit += 3) {
        same(() => verifyMessage(flipped(signature, bit)));
      }
      for (let end = 0; end < signature.length; end += 9) {
        same(() => verifyMessage(signature.subarray(0, end)));
      }
      same(() => verifyMessage(new Uint8Array([...signature, 0])));
      const { r, s } = p256.Signature.fromBytes(signature, 'der');
      for (const [one, two] of [
        [r, order - s],
        [r, s + order],
        [r + order, s],
        [0n, s],
        [r, 0n],
        [order, s],
        [s, r],
      ] as const) {
        same(() => verifyMessage(derOf(one, two)));
      }
      assert.equal(
        by('node', () => verifyMessage(derOf(r, order - s))),
        true,
        'either s is taken',
      );
      // An integer with a superfluous leading zero, and a length in long form.
      const loose = [
        new Uint8Array([0x30, signature.length - 1, 2, (signature[3] ?? 0) + 1, 0, ...signature.subarray(4)]),
        new Uint8Array([0x30, 0x81, ...signature.subarray(1)]),
      ];
      for (const bad of loose) same(() => verifyMessage(bad));
      const hashed = plain.sha256(message);
      const ofHash = by('node', () => ecdsaSign('ecdsa-p256', key, { bytes: hashed, isDigest: true }, 'sha2-256'));
      same(() => ecdsaSign('ecdsa-p256', key, { bytes: hashed, isDigest: true }, 'sha2-256'));
      same(() => ecdsaVerify('ecdsa-p256', publicKey, { bytes: hashed, isDigest: true }, 'sha2-256', ofHash));
      assert.equal(
        by('node', () => ecdsaVerify('ecdsa-p256', publicKey, { bytes: message, isDigest: false }, 'sha2-256', ofHash)),
        true,
      );
    }
  }
});

function derOf(r: bigint, s: bigint): Uint8Array {
  const integer = (value: bigint): number[] => {
    const hex = value.toString(16);
    const bytes = [...hexBytes(hex.length % 2 === 0 ? hex : `0${hex}`)];
    if ((bytes[0] ?? 0) >= 0x80) bytes.unshift(0);
    return [2, bytes.length, ...bytes];
  };
  const content = [...integer(r), ...integer(s)];
  return new Uint8Array([0x30, content.length, ...content]);
}

test('XChaCha20-Poly1305: the same bytes, and every flipped bit refused', () => {
  const all = fc.tuple(bytesOf(32), bytesOf(24), bytes, bytes);
  fc.assert(
    fc.property(all, ([key, nonce, text, bound]) => {
      same(() => sealXChaCha(key, nonce, text, bound));
      const sealed = sealXChaCha(key, nonce, text, bound);
      same(() => openXChaCha(key, nonce, sealed, bound));
      assert.deepEqual(openXChaCha(key, nonce, sealed, bound), text);
    }),
    { numRuns: 3000 },
  );
  const [key, nonce, text, bound] = [systemRandom(32), systemRandom(24), systemRandom(70), systemRandom(9)];
  const sealed = sealXChaCha(key, nonce, text, bound);
  takeCrypto('node');
  for (const [what, open] of Object.entries({
    sealed: (bit: number) => openXChaCha(key, nonce, flipped(sealed, bit % (sealed.length * 8)), bound),
    key: (bit: number) => openXChaCha(flipped(key, bit % 256), nonce, sealed, bound),
    nonce: (bit: number) => openXChaCha(key, flipped(nonce, bit % 192), sealed, bound),
    bound: (bit: number) => openXChaCha(key, nonce, sealed, flipped(bound, bit % 72)),
  })) {
    for (let bit = 0; bit < sealed.length * 8; bit++) assert.equal(open(bit), undefined, `bit ${bit} of ${what}`);
  }
  for (let length = 0; length < sealed.length; length++) {
    assert.equal(openXChaCha(key, nonce, sealed.subarray(0, length), bound), undefined);
  }
  // Views into a longer buffer, like parts of a file.
  const file = new Uint8Array(200);
  file.set(sealed, 3);
  file.set(nonce, 101);
  const opened = openXChaCha(key, file.subarray(101, 125), file.subarray(3, 3 + sealed.length), bound);
  assert.deepEqual(opened, text);
});

for (const choice of ['node', 'noble'] as const) {
  test(`a key or nonce of another length is no key or nonce, by ${choice}`, () => {
    takeCrypto(choice);
    const none = new Uint8Array();
    for (const [key, nonce] of [
      [31, 24],
      [33, 24],
      [32, 12],
      [32, 25],
    ] as const) {
      assert.throws(() => sealXChaCha(new Uint8Array(key), new Uint8Array(nonce), none, none));
      assert.throws(() => openXChaCha(new Uint8Array(key), new Uint8Array(nonce), new Uint8Array(40), none));
    }
  });
}

test('Argon2id: the same bytes at every cost, and passwords by either', () => {
  const cost = fc.record({ m: fc.integer({ min: 32, max: 64 }), t: fc.integer({ min: 1, max: 3 }), p: fc.nat(3) });
  const salt = fc.uint8Array({ minLength: 8, maxLength: 64 });
  fc.assert(
    fc.property(bytes, salt, cost, fc.integer({ min: 16, max: 80 }), (secret, salt_, { m, t, p }, length) =>
      same(() => argon2id(secret, salt_, { m, t, p: p + 1 }, length)),
    ),
  );
  const stored = by('node', () => hashPassword('Secret-123', systemRandom(16)));
  assert.ok(by('noble', () => verifyPassword(stored, 'Secret-123')));
  assert.ok(by('node', () => verifyPassword(stored, 'Secret-123')));
  for (const wrong of ['Secret-124', '']) assert.ok(!by('node', () => verifyPassword(stored, wrong)));
});

function started(choice: CryptoChoice, offered?: Partial<Primitives>) {
  const events: ApplianceEvent[] = [];
  const finish = startCrypto(choice, (event) => events.push(event), offered);
  return { events, finish };
}

function offeredBy(): Partial<Primitives> {
  return by('node', native);
}

test('X25519 and X-Wing: keys and shared secrets, and points of low order refused', () => {
  const keys = fc.tuple(bytesOf(32), bytesOf(32), bytesOf(64));
  fc.assert(
    fc.property(keys, ([key, point, random]) => {
      same(() => publicFromPrivate(key));
      same(() => sharedSecret(key, point));
      same(() => xWingPublicKey(key));
      const { enc } = encapsulateXWing(xWingPublicKey(key), () => random);
      same(() => decapsulateXWing(key, enc));
      same(() => decapsulateXWing(point, enc));
      // With the system's randomness: each opens the other's output.
      for (const [one, other] of [
        ['noble', 'node'],
        ['node', 'noble'],
      ] as const) {
        const made = by(one, () => encapsulateXWing(xWingPublicKey(key), systemRandom));
        assert.deepEqual(
          by(other, () => decapsulateXWing(key, made.enc)),
          made.shared,
        );
      }
    }),
    { numRuns: 50 },
  );
  const key = systemRandom(32);
  const one = Uint8Array.from({ length: 32 }, (_, at) => (at === 0 ? 1 : 0));
  for (const wrong of [new Uint8Array(32), one, new Uint8Array(31), new Uint8Array(33)]) {
    same(() => sharedSecret(key, wrong));
    assert.equal(sharedSecret(key, wrong), undefined);
  }
});

test('what passes the self-test is put in, signatures a while after the start', async () => {
  const { events, finish } = started('node');
  assert.deepEqual(cryptoInUse(), { by: 'node', openssl: process.versions.openssl });
  assert.ok(native().sha256 && native().sealChaCha && native().argon2id);
  assert.ok(native().x25519Shared && native().mlKemDecapsulate && native().sealGcm);
  assert.equal(native().ed25519Sign ?? native().ed25519Verify ?? native().ecdsaSign, undefined);
  await finish();
  assert.ok(native().x25519PublicKey && native().x25519Shared && native().mlKemPublicKey && native().mlKemDecapsulate);
  assert.ok(native().mlKemEncapsulate);
  assert.ok(native().ed25519Sign && native().ed25519PublicKey && native().sha256);
  assert.deepEqual([events, cryptoInUse().by], [[], 'node']);
});

test('with noble asked for, nothing is put in', async () => {
  const { events, finish } = started('noble');
  await finish();
  assert.deepEqual([native(), events, cryptoInUse()], [{}, [], { by: 'noble' }]);
});

test('what this Node has not stays with noble', async () => {
  const { argon2id: _, sha256: __, ...older } = offeredBy();
  const { events, finish } = started('node', older);
  await finish();
  assert.deepEqual([events, cryptoInUse().by], [[], 'node']);
  assert.equal(native().argon2id, undefined);
});

/** Each primitive with a fault that its self-test has to find. */
const faults: Readonly<Record<string, (sound: Required<Primitives>) => Partial<Primitives>>> = {
  'SHA-256:': ({ sha256: sound }) => ({ sha256: (given) => flipped(sound(given), 0) }),
  'SHA-256: ': () => ({ sha256: () => new Uint8Array() }),
  'SHA-256 in pieces:': ({ runningSha256: sound }) => ({
    runningSha256() {
      const running = sound();
      return { update: () => {}, digest: () => running.digest() };
    },
  }),
  'XChaCha20-Poly1305:': ({ sealChaCha: sound }) => ({
    sealChaCha: (key, nonce, text, bound) => flipped(sound(key, nonce, text, bound), 1),
  }),
  // Opens forgeries.
  'XChaCha20-Poly1305: ': () => ({ openChaCha: (_key, _nonce, sealed) => sealed.slice(0, -16) }),
  'Argon2id:': ({ argon2id: sound }) => ({
    argon2id: (secret, salt, cost, length) => flipped(sound(secret, salt, cost, length), 9),
  }),
  'X25519:': ({ x25519PublicKey: sound }) => ({ x25519PublicKey: (key) => flipped(sound(key), 3) }),
  // Accepts a point of low order.
  'X25519: ': ({ x25519Shared: sound }) => ({ x25519Shared: (key, point) => sound(key, point) ?? new Uint8Array(32) }),
  'X-Wing:': ({ mlKemPublicKey: sound }) => ({ mlKemPublicKey: (seed) => flipped(sound(seed), 9000) }),
  'X-Wing:  ': ({ mlKemEncapsulate: sound }) => ({
    mlKemEncapsulate: (publicKey) => {
      const { cipherText, sharedSecret } = sound(publicKey);
      return { cipherText: flipped(cipherText, 77), sharedSecret };
    },
  }),
  'X-Wing: ': ({ mlKemDecapsulate: sound }) => ({
    mlKemDecapsulate: (seed, sealed) => flipped(sound(seed, sealed), 0),
  }),
  'Ed25519 public keys:': ({ ed25519PublicKey: sound }) => ({ ed25519PublicKey: (seed) => flipped(sound(seed), 255) }),
  'Ed25519 signatures:': ({ ed25519Sign: sound }) => ({
    ed25519Sign: (seed, message) => flipped(sound(seed, message), 511),
  }),
  'SHA-2:': ({ hash: sound }) => ({ hash: (name, given) => sound(name === 'sha2-384' ? 'sha2-512' : name, given) }),
  'HMAC:': ({ hmac: sound }) => ({ hmac: (name, key, given) => flipped(sound(name, key, given), 17) }),
  'AES-128-GCM:': ({ sealGcm: sound }) => ({
    sealGcm(key, nonce, text, bound) {
      const sealed = sound(key, nonce, text, bound);
      return key.length === 16 ? flipped(sealed, 1) : sealed;
    },
  }),
  'RSA:': ({ rsa }) => ({
    rsa: { ...rsa, privateOperation: (key, block) => flipped(rsa.privateOperation(key, block), 2047) },
  }),
  // Takes any signature for the message's.
  'RSA: ': ({ rsa }) => ({ rsa: { ...rsa, publicOperation: (_key, block) => block } }),
  // Ignores the label.
  'RSA:  ': ({ rsa }) => ({
    rsa: {
      ...rsa,
      oaepEncrypt: (key, hash, _label, message) => rsa.oaepEncrypt(key, hash, new Uint8Array(), message),
      oaepDecrypt: (key, hash, _label, sealed) => rsa.oaepDecrypt(key, hash, new Uint8Array(), sealed),
    },
  }),
  'ECDSA with other curves:': ({ ecdsaSign: sound }) => ({
    ecdsaSign: (type, key, _hash, message) => sound(type, key, 'sha2-256', message),
  }),
  'ECDSA with other curves: ': () => ({ ecdsaVerify: () => true }),
  'ML-DSA:': ({ mlDsaSign: sound }) => ({ mlDsaSign: (set, seed, text) => flipped(sound(set, seed, text), 5) }),
  'ML-DSA: ': () => ({ mlDsaVerify: () => true }),
  'Ed25519 signatures: ': () => ({
    ed25519Sign() {
      throw new Error('unsupported');
    },
  }),
};

for (const [what, fault] of Object.entries(faults)) {
  test(`a failed self-test leaves all to noble and says so: ${what}`, async () => {
    const sound = offeredBy();
    // Cast: the first test checks that all are there.
    const { events, finish } = started('node', { ...sound, ...fault(sound as Primitives) });
    await finish();
    assert.deepEqual(native(), {});
    const inUse = cryptoInUse();
    assert.ok(inUse.by === 'noble' && inUse.problem?.startsWith(what.trim()), JSON.stringify(inUse));
    assert.deepEqual(
      events.map(({ level, message }) => [level, message]),
      [['error', `node:crypto failed its self-test, so noble does its work, slower: ${inUse.problem}`]],
    );
    same(() => sha256(utf8('abc')));
  });
}

test('a seed is used as itself, however many there are', () => {
  const seeds = Array.from({ length: 50 }, () => systemRandom(32));
  takeCrypto('node');
  const keys = seeds.map(ed25519PublicKey);
  for (const [at, seed] of seeds.entries()) {
    assert.ok(ed25519Verify(keys[at] ?? new Uint8Array(), utf8('m'), ed25519Sign(seed, utf8('m'))));
  }
  for (const length of [0, 31, 33]) {
    assert.throws(() => ed25519Sign(new Uint8Array(length), utf8('m')));
    assert.throws(() => ed25519PublicKey(new Uint8Array(length)));
  }
});
