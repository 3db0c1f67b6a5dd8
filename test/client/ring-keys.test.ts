// A ring's key pair as the client makes it: in forms that this and other programs read.
import assert from 'node:assert/strict';
import { createHash, createPrivateKey, createPublicKey, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import {
  fingerprintOf,
  generateRingKey,
  kemOfPublicKey,
  type PrivateKey,
  privateKeyPem,
  publicKeyOf,
  type RingPrivateKey,
  readPrivateKeys,
  unwrapRingKey,
  withHybridKey,
} from '../../src/client/ring-keys.ts';
import { toBech32 } from '../../src/crypto/bech32.ts';
import { fromBase64 } from '../../src/crypto/bytes.ts';
import { parseHybridKey } from '../../src/crypto/hybrid-keys.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { wrapRingKey } from '../../src/crypto/ring-key.ts';
import { parsePublicKey } from '../../src/crypto/x25519.ts';

/** The only key in it. */
function readOne(key: PrivateKey): RingPrivateKey {
  const [read, ...rest] = readPrivateKeys(key, 'it');
  assert.deepEqual(rest, []);
  return read ?? assert.fail('no key');
}

test('the two halves belong together, here and for Node', () => {
  const { privateKey, publicKey } = generateRingKey();
  assert.equal(publicKeyOf(readOne(privateKey)), publicKey);
  assert.equal(kemOfPublicKey(publicKey), 'x25519');
  const theirs = createPrivateKey(privateKey);
  assert.equal(theirs.asymmetricKeyType, 'x25519');
  assert.equal(createPublicKey(theirs).export({ type: 'spki', format: 'der' }).toString('base64'), publicKey);
});

test('each pair is another one, and all of it comes from the given bytes', () => {
  assert.notEqual(generateRingKey().privateKey, generateRingKey().privateKey);
  const seed = new Uint8Array(randomBytes(32));
  const asked: number[] = [];
  const random = (length: number): Uint8Array => {
    asked.push(length);
    return seed.slice();
  };
  for (const kem of ['x25519', 'mlkem768-x25519'] as const) {
    assert.deepEqual(generateRingKey(kem, random), generateRingKey(kem, random));
    assert.deepEqual(readOne(generateRingKey(kem, random).privateKey), { kem, bytes: seed });
  }
  assert.deepEqual(asked, Array(6).fill(32));
});

const kem = 'mlkem768-x25519';

test('a fingerprint is SHA-256 of the SPKI DER, whatever form the public key has', () => {
  for (const each of ['x25519', kem] as const) {
    const { publicKey } = generateRingKey(each);
    const der = Buffer.from(publicKey, 'base64');
    const told = createHash('sha256').update(der).digest('hex').match(/.{8}/g)?.join(' ');
    const pem = `-----BEGIN PUBLIC KEY-----\n${publicKey}\n-----END PUBLIC KEY-----\n`;
    const raw = der.subarray(each === kem ? -1216 : -32).toString('base64');
    for (const form of [publicKey, pem, raw]) assert.equal(fingerprintOf(form), told);
  }
  assert.equal(fingerprintOf('no key'), undefined);
});

test('a hybrid key is added once, at the end of the private keys of a ring', () => {
  const earlier = generateRingKey().privateKey;
  const first = withHybridKey(readPrivateKeys(earlier, 'it'));
  assert.ok(first.privateKey.startsWith(earlier));
  const both = readPrivateKeys(first.privateKey, 'it');
  assert.deepEqual(
    both.map(({ kem }) => kem),
    ['x25519', kem],
  );
  assert.equal(publicKeyOf(both[1] ?? assert.fail()), first.publicKey);
  assert.deepEqual(withHybridKey(both), first);
  assert.equal(readPrivateKeys(withHybridKey([]).privateKey, 'it').length, 1);
});

test('a hybrid pair belongs together, and its PEM is what the answer of the API makes', () => {
  const { privateKey, publicKey } = generateRingKey(kem);
  const { bytes } = readOne(privateKey);
  assert.equal(bytes.length, 32);
  assert.equal(publicKeyOf({ kem, bytes }), publicKey);
  assert.equal(kemOfPublicKey(publicKey), kem);
  assert.equal(kemOfPublicKey(publicKey.slice(4)), undefined);
  const der = privateKey.split('\n').slice(1, -2).join('');
  assert.equal(privateKeyPem(der), privateKey);
  assert.deepEqual(readOne(new Uint8Array(Buffer.from(der, 'base64'))), { kem, bytes });
  assert.deepEqual(readOne(toBech32('age-secret-key-pq-', bytes).toUpperCase()), { kem, bytes });
  // 32 bytes alone may be of either kind.
  assert.deepEqual(readOne(bytes), { bytes });
});

/** A key as the service returns it, wrapped to a public key. */
function wrappedTo(publicKey: string, id = 'key_1') {
  const raw = parsePublicKey(publicKey) ?? parseHybridKey(publicKey) ?? assert.fail('no public key');
  const bytes = systemRandom(32);
  const { wrapped: value, iv } = wrapRingKey('ks', raw, id, bytes, systemRandom);
  const keyData = { encrypted: { key: { value, encoding: 'base64' as const } }, iv };
  return { bytes, key: { id, type: 'aes256' as const, kem, props: {}, keyData } };
}

test('a file with the private keys of several pairs opens what is wrapped to each, and one of them its own', async () => {
  const pairs = [generateRingKey(), generateRingKey(kem), generateRingKey(kem)];
  const file = new TextEncoder().encode(pairs.map(({ privateKey }) => `${privateKey}\n`).join('\r\n'));
  const read = readPrivateKeys(file, 'it');
  assert.deepEqual(
    read.map(publicKeyOf),
    pairs.map(({ publicKey }) => publicKey),
  );
  assert.equal(privateKeyPem(read), pairs.map(({ privateKey }) => privateKey).join(''));
  for (const [at, pair] of pairs.entries()) {
    const { bytes, key } = wrappedTo(pair.publicKey);
    assert.deepEqual(await unwrapRingKey({ privateKey: file, key }), bytes);
    assert.deepEqual(await unwrapRingKey({ privateKey: read, key }), bytes);
    assert.deepEqual(await unwrapRingKey({ privateKey: pair.privateKey, key }), bytes);
    assert.deepEqual(await unwrapRingKey({ privateKey: read[at]?.bytes ?? '', key }), bytes);
    for (const other of pairs.filter((each) => each !== pair)) {
      await assert.rejects(unwrapRingKey({ privateKey: other.privateKey, key }), { code: 'invalid' });
    }
  }
  const { key } = wrappedTo(pairs[1]?.publicKey ?? '');
  await assert.rejects(
    unwrapRingKey({ privateKey: pairs[0]?.privateKey ?? '', key }),
    /key_1 is wrapped by mlkem768-x25519, and the private key is one of x25519/,
  );
  const short = { ...key, keyData: { encrypted: { key: { value: 'AAAA', encoding: 'base64' as const } }, iv: '' } };
  await assert.rejects(unwrapRingKey({ privateKey: file, key: short }), /the private key does not open key_1/);
});

test('a file with a key that is damaged, or with none, holds none', () => {
  const [one, other] = [generateRingKey().privateKey, generateRingKey(kem).privateKey];
  const cut = one.replace('MC4', 'MC5');
  for (const text of [
    '',
    `x${one}${other}`,
    `${one}x${other}`,
    `${one}${cut}`,
    one + other.slice(0, 40),
    one.slice(1) + other,
    '[]',
    '{}',
  ]) {
    assert.throws(() => readPrivateKeys(text, 'it'), /it holds no private key of X25519 or MLKEM768-X25519/);
  }
  assert.throws(() => readPrivateKeys([], 'it'), { code: 'invalid' });
  // An untyped program may pass undefined.
  assert.throws(() => readPrivateKeys(undefined as unknown as string, 'it'), { code: 'invalid' });
  assert.equal(fromBase64(one.split('\n')[1] ?? '')?.length, 48);
});
