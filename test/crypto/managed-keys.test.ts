// Managed keys coming in and going out: what node:crypto writes is read, what is written node:crypto reads, and what is
// no sound key is refused with the reason.
import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, diffieHellman, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { after, before, test } from 'node:test';
import { invert } from '@noble/curves/abstract/modular.js';
import fc from 'fast-check';
import { concatBytes, toHex } from '../../src/crypto/bytes.ts';
import { der, derUnsigned, onlySequence, tags } from '../../src/crypto/der.ts';
import { ecdhShared, sec1OfPkcs8 } from '../../src/crypto/managed/ecdsa.ts';
import { unwrapFromRsa, unwrapKwp, wrapKwp, wrapToRsa } from '../../src/crypto/managed/key-wrap.ts';
import {
  type AsymmetricType,
  exportPkcs8,
  exportTraditional,
  generateKey,
  importKey,
  importPublicKey,
  keyDerOfPem,
  publicKeyOf,
  publicKeyPem,
  rawPublicKey,
} from '../../src/crypto/managed/keys.ts';
import { generateRsaKey, type RsaType } from '../../src/crypto/managed/rsa-keys.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { KmsError } from '../../src/errors.ts';
import { takeCrypto } from '../../src/platform/native-crypto.ts';
import { hex } from '../support/vectors.ts';

before(() => takeCrypto('node'));
after(() => takeCrypto('noble'));

const curves = { 'ecdsa-p256': 'P-256', 'ecdsa-p384': 'P-384', 'ecdsa-p521': 'P-521', 'ecdsa-secp256k1': 'secp256k1' };
type EcName = keyof typeof curves;
const ecTypes = Object.keys(curves) as EcName[];

function newPair(type: AsymmetricType): KeyObject {
  if (type === 'ed25519') return generateKeyPairSync('ed25519').privateKey;
  if (type === 'ml-dsa-44' || type === 'ml-dsa-65' || type === 'ml-dsa-87') return generateKeyPairSync(type).privateKey;
  if (type in curves) return generateKeyPairSync('ec', { namedCurve: curves[type as EcName] }).privateKey;
  return generateKeyPairSync('rsa', { modulusLength: Number(type.slice(4)) }).privateKey;
}

const bytes = (buffer: Buffer): Uint8Array => new Uint8Array(buffer);
const pkcs8 = (key: KeyObject): Uint8Array => bytes(key.export({ format: 'der', type: 'pkcs8' }));
const spki = (key: KeyObject): Uint8Array => bytes(createPublicKey(key).export({ format: 'der', type: 'spki' }));
const take = (type: AsymmetricType, given: Uint8Array): Uint8Array => importKey(type, 'der', given, systemRandom);
const refuses = (run: () => unknown, message: RegExp): void =>
  assert.throws(run, (error) => error instanceof KmsError && error.code === 'invalid' && message.test(error.message));

const asymmetric = [...ecTypes, 'ed25519', 'ml-dsa-44', 'ml-dsa-65', 'ml-dsa-87', 'rsa-2048', 'rsa-3072'] as const;

for (const type of asymmetric) {
  test(`${type}: keys of node:crypto come in, go out and have their public keys`, () => {
    const pair = newPair(type);
    const key = take(type, pkcs8(pair));
    assert.deepEqual(exportPkcs8(type, key), pkcs8(pair));
    const publicKey = publicKeyOf(type, key);
    assert.deepEqual(publicKey, spki(pair));
    assert.deepEqual(importPublicKey(type, 'der', publicKey), publicKey);
    assert.deepEqual(importPublicKey(type, 'raw', rawPublicKey(type, publicKey)), publicKey);
    const pem = pair.export({ format: 'pem', type: 'pkcs8' }).toString();
    assert.deepEqual(take(type, keyDerOfPem(pem, 'private')), key);
    const publicPem = createPublicKey(pair).export({ format: 'pem', type: 'spki' });
    assert.equal(publicKeyPem(publicKey), publicPem);
    assert.deepEqual(keyDerOfPem(publicPem.toString(), 'public'), publicKey);
    refuses(() => keyDerOfPem(publicPem.toString(), 'private'), /expected a private key in PEM, got none/);
    refuses(() => keyDerOfPem(pem + pem, 'private'), /got 2/);
    const secret = pair.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' }).toString();
    refuses(() => keyDerOfPem(secret, 'private'), /got an encrypted one/);
    for (const other of asymmetric) {
      if (other === type) continue;
      refuses(() => take(other, pkcs8(pair)), /expected a key of the type|malformed DER|bits for rsa/);
      refuses(
        () => importPublicKey(other, 'der', publicKey),
        /expected a (?:public )?key of|bits for rsa|malformed DER/,
      );
    }
  });
}

test('keys are read in the forms of SEC 1 and PKCS #1 too', () => {
  for (const type of ecTypes) {
    const pair = newPair(type);
    const sec1 = bytes(pair.export({ format: 'der', type: 'sec1' }));
    assert.deepEqual(take(type, sec1), take(type, pkcs8(pair)));
    const key = take(type, sec1);
    assert.deepEqual(exportTraditional(type, key), sec1);
    const made = exportPkcs8(type, key, publicKeyOf(type, key));
    assert.deepEqual([made, sec1OfPkcs8(type, made)], [exportPkcs8(type, key), sec1]);
    const pem = pair.export({ format: 'pem', type: 'sec1' }).toString();
    assert.deepEqual(
      keyDerOfPem(`-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n${pem}`, 'private'),
      sec1,
    );
    for (const other of ecTypes) if (other !== type) refuses(() => take(other, sec1), /expected/);
  }
  const pair = newPair('rsa-2048');
  const pkcs1 = bytes(pair.export({ format: 'der', type: 'pkcs1' }));
  assert.deepEqual(take('rsa-2048', pkcs1), pkcs8(pair));
  assert.deepEqual(importKey('rsa-2048', 'raw', pkcs1, systemRandom), pkcs8(pair));
  assert.deepEqual(exportTraditional('rsa-2048', pkcs8(pair)), pkcs1);
});

test('keys made here are keys of node:crypto, and ECDSA takes compressed points', () => {
  for (const type of ['ed25519', 'ml-dsa-44', 'ml-dsa-65', 'ml-dsa-87', ...ecTypes] as const) {
    const key = generateKey(type, systemRandom);
    const made = createPrivateKey({ key: Buffer.from(exportPkcs8(type, key)), format: 'der', type: 'pkcs8' });
    assert.deepEqual(spki(made), publicKeyOf(type, key));
  }
  for (const type of ecTypes) {
    const publicKey = publicKeyOf(type, generateKey(type, systemRandom));
    const point = rawPublicKey(type, publicKey);
    const half = (point.length - 1) / 2;
    const compressed = concatBytes(Uint8Array.of(2 + ((point.at(-1) ?? 0) & 1)), point.subarray(1, 1 + half));
    assert.deepEqual(importPublicKey(type, 'raw', compressed), publicKey);
  }
});

test('RSA keys are made off this thread', async () => {
  let turns = 0;
  const counting = setInterval(() => turns++, 1);
  const key = await generateRsaKey('rsa-2048');
  clearInterval(counting);
  assert.ok(turns > 0);
  assert.deepEqual(take('rsa-2048', key), key);
  takeCrypto('noble');
  await assert.rejects(generateRsaKey('rsa-2048'), { code: 'unavailable', message: /this platform has no RSA/ });
  takeCrypto('node');
});

interface Numbers {
  readonly n: bigint;
  readonly e: bigint;
  readonly d: bigint;
  readonly p: bigint;
  readonly q: bigint;
}

const numberOf = (text: string | undefined): bigint =>
  BigInt(`0x${Buffer.from(text ?? '', 'base64url').toString('hex')}`);

function numbersOf(pair: KeyObject): Numbers {
  const { n, e, d, p, q } = pair.export({ format: 'jwk' });
  return { n: numberOf(n), e: numberOf(e), d: numberOf(d), p: numberOf(p), q: numberOf(q) };
}

function derNumber(number: bigint): Uint8Array {
  const text = number.toString(16);
  return derUnsigned(hex(text.length % 2 === 0 ? text : `0${text}`));
}

/** PKCS #1 of these numbers; `rest` replaces those for the Chinese remainder theorem. */
function pkcs1({ n, e, d, p, q }: Numbers, rest?: readonly bigint[], version = 0n): Uint8Array {
  const own = rest ?? [d % (p - 1n), d % (q - 1n), invert(q % p, p)];
  return der(tags.sequence, ...[version, n, e, d, p, q, ...own].map(derNumber));
}

/** A key with these factors, made to fit. */
function keyOf(p: bigint, q: bigint, e = 65537n): Numbers {
  return { n: p * q, e, d: invert(e, (p - 1n) * (q - 1n)), p, q };
}

test('RSA keys whose numbers do not fit together are refused with the reason', () => {
  const good = numbersOf(newPair('rsa-2048'));
  const { n, e, d, p, q } = good;
  const raw = (given: Uint8Array, type: RsaType = 'rsa-2048') => importKey(type, 'raw', given, systemRandom);
  raw(pkcs1(good));
  refuses(() => raw(pkcs1(good), 'rsa-4096'), /expected 4096 bits for rsa-4096, got 2048/);
  refuses(() => raw(pkcs1({ ...good, n: n + 2n })), /factors are not those of the modulus/);
  refuses(() => raw(pkcs1({ ...good, n: n + 1n })), /its modulus is even/);
  refuses(() => raw(pkcs1({ ...good, d: d + 2n })), /exponents do not fit/);
  refuses(() => raw(pkcs1({ ...good, d: d + (p - 1n) * (q - 1n) })), /exponents do not fit/);
  refuses(() => raw(pkcs1({ ...good, e: 3n })), /public exponent from 65537/);
  refuses(() => raw(pkcs1({ ...good, e: 65536n })), /public exponent from 65537/);
  refuses(() => raw(pkcs1({ ...good, e: e + (1n << 40n) })), /public exponent from 65537/);
  refuses(() => raw(pkcs1({ ...good, p: 1n, q: n }, [0n, 0n, 0n])), /two factors of 1024 bits/);
  refuses(() => raw(pkcs1(good, [1n, d % (q - 1n), invert(q % p, p)])), /Chinese remainder/);
  refuses(() => raw(pkcs1(good, [d % (p - 1n), d % (q - 1n), 1n])), /Chinese remainder/);
  refuses(() => raw(pkcs1(good, undefined, 1n)), /more than two factors/);
  refuses(() => raw(concatBytes(pkcs1(good), Uint8Array.of(0))), /malformed DER: unexpected bytes/);
  // Swapping the factors is another form of the same key.
  raw(pkcs1(keyOf(q, p)));
});

test('RSA keys with factors that are no primes, or too close, are refused', () => {
  const raw = (given: Uint8Array) => importKey('rsa-2048', 'raw', given, systemRandom);
  const { p } = numbersOf(newPair('rsa-2048'));
  // A product of two numbers of 512 bits, with an inverse of the exponent.
  for (let found = false; !found; ) {
    const half = () => BigInt(`0x${toHex(systemRandom(64))}`) | (3n << 510n) | 1n;
    const composite = half() * half();
    if (composite.toString(2).length !== 1024) continue;
    try {
      const key = keyOf(p, composite);
      if (key.n.toString(2).length !== 2048) continue;
      refuses(() => raw(pkcs1(key)), /its factors are not primes/);
      found = true;
    } catch (error) {
      // No inverse: another one.
      if (error instanceof assert.AssertionError) throw error;
    }
  }
  for (let distance = 2n, found = false; !found; distance += 2n) {
    try {
      refuses(() => raw(pkcs1(keyOf(p, p + distance))), /too close/);
      found = true;
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
    }
  }
});

test('scalars, points and seeds that are none are refused', () => {
  const order = 'ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551';
  const raw = (text: string) => importKey('ecdsa-p256', 'raw', hex(text), systemRandom);
  refuses(() => raw('00'.repeat(32)), /from 1 to the order/);
  refuses(() => raw(order), /from 1 to the order/);
  refuses(() => raw('01'.repeat(31)), /expected a private key of 32 bytes/);
  raw(order.replace(/51$/, '50'));
  for (const type of ecTypes) {
    const publicKey = publicKeyOf(type, generateKey(type, systemRandom));
    const point = rawPublicKey(type, publicKey);
    const off = point.with(-1, (point.at(-1) ?? 0) ^ 1);
    refuses(() => importPublicKey(type, 'raw', off), /on the curve/);
    refuses(() => importPublicKey(type, 'der', publicKey.with(-1, (publicKey.at(-1) ?? 0) ^ 1)), /on the curve/);
    refuses(() => importPublicKey(type, 'raw', Uint8Array.of(0)), /expected a point/);
    refuses(() => importPublicKey(type, 'raw', point.with(0, 6 + ((point.at(-1) ?? 0) & 1))), /on the curve/);
    refuses(() => importPublicKey(type, 'raw', new Uint8Array(point.length).with(0, 4)), /on the curve/);
  }
  const neutral = new Uint8Array(32).with(0, 1);
  refuses(() => importPublicKey('ed25519', 'raw', neutral), /expected a public key of ed25519/);
  refuses(() => importPublicKey('ed25519', 'raw', new Uint8Array(31)), /expected a public key of ed25519/);
  refuses(() => importPublicKey('ml-dsa-44', 'raw', new Uint8Array(1311)), /1312 bytes/);
});

test('a public key given with a private one must be its own', () => {
  const [one, two] = [newPair('ecdsa-p256'), newPair('ecdsa-p256')].map(pkcs8);
  assert.ok(one && two);
  // The public key is the end of each.
  refuses(() => take('ecdsa-p256', concatBytes(one.subarray(0, -64), two.subarray(-64))), /is not its own/);
  const seed = systemRandom(32);
  const own = rawPublicKey('ed25519', publicKeyOf('ed25519', seed));
  const inside = (point: Uint8Array) =>
    der(
      tags.sequence,
      der(tags.integer, Uint8Array.of(1)),
      der(tags.sequence, der(tags.oid, Uint8Array.of(0x2b, 0x65, 0x70))),
      der(tags.octetString, der(tags.octetString, seed)),
      der(tags.implicit1, Uint8Array.of(0), point),
    );
  assert.deepEqual(take('ed25519', inside(own)), seed);
  refuses(() => take('ed25519', inside(own.toReversed())), /is not its own/);
});

test('ML-DSA keys come as a seed, alone or with the expanded key, and not as that alone', () => {
  for (const type of ['ml-dsa-44', 'ml-dsa-65', 'ml-dsa-87'] as const) {
    const seed = generateKey(type, systemRandom);
    const outer = onlySequence(exportPkcs8(type, seed));
    outer.read(tags.integer);
    const algorithm = der(tags.sequence, outer.read(tags.sequence));
    const wrap = (key: Uint8Array) =>
      der(tags.sequence, der(tags.integer, Uint8Array.of(0)), algorithm, der(tags.octetString, key));
    const expanded = der(tags.octetString, new Uint8Array(2560));
    refuses(() => take(type, wrap(expanded)), /expanded form without its seed/);
    refuses(() => take(type, wrap(der(tags.sequence, der(tags.octetString, seed), expanded))), /not that of its seed/);
    refuses(() => take(type, wrap(der(tags.implicit0, seed.subarray(1)))), /seed of 32 bytes/);
    assert.deepEqual(take(type, wrap(der(tags.implicit0, seed))), seed);
  }
});

test('damaged keys and arbitrary bytes are refused as invalid, never with another error', () => {
  const samples = asymmetric.slice(0, -1).map((type) => {
    const pair = newPair(type);
    return { type, key: pkcs8(pair), publicKey: spki(pair) };
  });
  const orRefused = (run: () => unknown): void => {
    try {
      run();
    } catch (error) {
      assert.ok(error instanceof KmsError && error.code === 'invalid', String(error));
    }
  };
  const damage = fc.record({ at: fc.nat(400), value: fc.nat(255), end: fc.nat(400), isCut: fc.boolean() });
  fc.assert(
    fc.property(
      fc.constantFrom(...samples),
      damage,
      fc.uint8Array({ maxLength: 200 }),
      ({ type, key, publicKey }, how, any) => {
        const changed = (given: Uint8Array): Uint8Array => {
          if (how.isCut) return given.subarray(0, how.end % given.length);
          return given.with(how.at % given.length, how.value);
        };
        orRefused(() => take(type, changed(key)));
        orRefused(() => importPublicKey(type, 'der', changed(publicKey)));
        for (const format of ['raw', 'der'] as const) {
          orRefused(() => importKey(type, format, any, systemRandom));
          orRefused(() => importPublicKey(type, format, any));
        }
      },
    ),
    { numRuns: 400 },
  );
});

test('ECDH: both sides and node:crypto agree', () => {
  for (const type of ecTypes) {
    const key = generateKey(type, systemRandom);
    const other = newPair(type);
    const shared = ecdhShared(type, key, importPublicKey(type, 'der', spki(other)));
    const own = createPublicKey({ key: Buffer.from(publicKeyOf(type, key)), format: 'der', type: 'spki' });
    assert.deepEqual(shared, bytes(diffieHellman({ privateKey: other, publicKey: own })));
  }
});

test('AES-KWP (RFC 5649 §6), and wrapping to an RSA key', async () => {
  const kek = hex('5840df6e29b02af1ab493b705bf16ea1ae8338f4dcc176a8');
  const wrapped = '138bdeaa9b8fa7fc61f97742e72248ee5ae6ae5360d1ae6a5f54f373fa543b6a';
  assert.equal(toHex(wrapKwp(kek, hex('c37b7e6492584340bed12207808941155068f738'))), wrapped);
  assert.deepEqual(unwrapKwp(kek, hex(wrapped)), hex('c37b7e6492584340bed12207808941155068f738'));
  refuses(() => wrapKwp(kek.subarray(1), kek), /AES key of 16, 24 or 32 bytes/);
  refuses(() => unwrapKwp(new Uint8Array(), kek), /AES key of 16, 24 or 32 bytes/);
  refuses(() => wrapKwp(kek, new Uint8Array()), /1 to 65536 bytes/);
  const key = await generateRsaKey('rsa-2048');
  const publicKey = publicKeyOf('rsa-2048', key);
  for (const hash of ['sha1', 'sha2-256', 'sha2-384', 'sha2-512'] as const) {
    const sealed = wrapToRsa('rsa-2048', publicKey, hash, key, systemRandom);
    assert.deepEqual(unwrapFromRsa('rsa-2048', key, hash, sealed), key);
    for (const at of [0, 255, 256, sealed.length - 1]) {
      assert.equal(unwrapFromRsa('rsa-2048', key, hash, sealed.with(at, (sealed[at] ?? 0) ^ 1)), undefined);
    }
    for (const end of [0, 255, 256, 264, sealed.length - 8]) {
      assert.equal(unwrapFromRsa('rsa-2048', key, hash, sealed.subarray(0, end)), undefined);
    }
    assert.equal(unwrapFromRsa('rsa-2048', key, hash === 'sha1' ? 'sha2-256' : 'sha1', sealed), undefined);
  }
});
