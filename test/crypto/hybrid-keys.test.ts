// Encodings of X-Wing keys: the draft's pair, WebCrypto's exports, age's identities, and all that are refused; and ring
// keys wrapped to them.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { toBech32 } from '../../src/crypto/bech32.ts';
import { fromBase64, toBase64, toBase64Url } from '../../src/crypto/bytes.ts';
import { hybridKeyToSpki, parseHybridKey, parseSeed, seedToPkcs8 } from '../../src/crypto/hybrid-keys.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { kemOf, unwrapRingKey, wrapRingKey } from '../../src/crypto/ring-key.ts';
import { xWingPublicKey } from '../../src/crypto/x-wing.ts';
import { generateX25519, parsePrivateKey, parsePublicKey, pkcs8ToPem } from '../../src/crypto/x25519.ts';
import { hex, vectorsOf } from '../support/vectors.ts';

const pem = (name: string): string =>
  readFileSync(new URL(`../vectors/x-wing-draft.${name}.pem`, import.meta.url), 'utf8');
const seed = Uint8Array.from({ length: 32 }, (_, at) => at);
const publicKey = xWingPublicKey(seed);

test("the draft's pair is read, and written the same", () => {
  assert.deepEqual(parseSeed(pem('priv')), seed);
  assert.deepEqual(parseHybridKey(pem('pub')), publicKey);
  assert.equal(pkcs8ToPem(seedToPkcs8(seed)), pem('priv'));
  const body = pem('pub').split('\n').slice(1, -2).join('');
  assert.equal(toBase64(hybridKeyToSpki(publicKey)), body);
});

test('every form of a key is the same key', async () => {
  for (const text of [toBase64(seedToPkcs8(seed)), toBech32('age-secret-key-pq-', seed).toUpperCase()]) {
    assert.deepEqual(parseSeed(text), seed);
    assert.deepEqual(parseSeed(` ${text}\n`), seed);
  }
  for (const text of [toBase64(publicKey), toBase64(hybridKeyToSpki(publicKey))]) {
    assert.deepEqual(parseHybridKey(`${text}\n`), publicKey);
  }
  const { subtle } = globalThis.crypto;
  // Cast: the types of this Node don't know the name yet.
  const algorithm = 'MLKEM768-X25519' as 'Ed25519';
  const made = (await subtle.generateKey(algorithm, true, [
    'decapsulateBits',
  ] as unknown as KeyUsage[])) as CryptoKeyPair;
  const jwk = await subtle.exportKey('jwk', made.privateKey);
  const read = parseSeed(JSON.stringify(jwk));
  assert.ok(read);
  assert.equal(parseHybridKey(JSON.stringify(jwk)), undefined, 'the appliance is not to be handed a private key');
  assert.deepEqual(parseHybridKey(JSON.stringify(await subtle.exportKey('jwk', made.publicKey))), xWingPublicKey(read));
});

test('what is no key of X-Wing is refused, and so is one of it where X25519 is meant', () => {
  const jwk = { kty: 'AKP', alg: 'MLKEM768-X25519', pub: toBase64Url(publicKey), priv: toBase64Url(seed) };
  const der = seedToPkcs8(seed);
  const overflowing = publicKey.slice();
  overflowing.fill(0xff, 0, 3);
  const lowOrder = publicKey.slice();
  lowOrder.fill(0, 1184);
  const x25519 = generateX25519(systemRandom);
  for (const text of [
    '',
    '{',
    '{}',
    toBase64(seed),
    toBase64(der.subarray(1)),
    toBase64(new Uint8Array([...der, 0])),
    toBase64(der.with(9, 0x2c)),
    pem('pub'),
    pem('priv').replace('PRIVATE', 'PUBLIC'),
    toBech32('age-secret-key-', seed).toUpperCase(),
    toBech32('age-secret-key-pq-', seed.subarray(1)).toUpperCase(),
    JSON.stringify({ ...jwk, kty: 'OKP' }),
    JSON.stringify({ ...jwk, alg: 'ML-KEM-768' }),
    JSON.stringify({ ...jwk, priv: toBase64Url(seed.subarray(1)) }),
    JSON.stringify({ ...jwk, priv: toBase64Url(systemRandom(32)) }),
    JSON.stringify({ ...jwk, pub: 7 }),
    JSON.stringify({ kty: 'AKP', alg: jwk.alg, pub: jwk.pub }),
  ]) {
    assert.equal(parseSeed(text), undefined, text.slice(0, 60));
  }
  for (const text of [
    '',
    '{}',
    pem('priv'),
    toBase64(publicKey.subarray(1)),
    toBase64(overflowing),
    toBase64(hybridKeyToSpki(overflowing)),
    toBase64(lowOrder),
    toBase64(hybridKeyToSpki(publicKey).with(23, 1)),
    toBase64(x25519.publicKey),
    JSON.stringify({ ...jwk, priv: undefined, pub: toBase64Url(overflowing) }),
    JSON.stringify({ ...jwk, priv: undefined, pub: toBase64Url(x25519.publicKey) }),
    JSON.stringify(jwk),
    JSON.stringify({ ...jwk, priv: '' }),
    JSON.stringify({ ...jwk, priv: null }),
  ]) {
    assert.equal(parseHybridKey(text), undefined, text.slice(0, 60));
  }
  assert.equal(parsePrivateKey(pem('priv')), undefined);
  assert.equal(parsePublicKey(pem('pub')), undefined);
});

test('a ring key wrapped to X-Wing opens for its ring, service and id only', async () => {
  const key = systemRandom(32);
  const ring = systemRandom(32);
  for (const service of ['ks', 'asym'] as const) {
    const { wrapped, iv } = wrapRingKey(service, xWingPublicKey(ring), 'key_a', key, systemRandom);
    assert.equal(fromBase64(wrapped)?.length, 1168);
    assert.equal(fromBase64(iv)?.length, 12);
    assert.deepEqual(await unwrapRingKey(service, ring, 'key_a', wrapped), key);
    assert.equal(await unwrapRingKey(service, ring, 'key_b', wrapped), undefined);
    assert.equal(await unwrapRingKey(service, systemRandom(32), 'key_a', wrapped), undefined);
    assert.equal(await unwrapRingKey(service === 'ks' ? 'asym' : 'ks', ring, 'key_a', wrapped), undefined);
    for (const text of [wrapped.slice(4), wrapped.slice(0, -4), `${wrapped}AAAA`, wrapped.slice(0, 108)]) {
      assert.equal(await unwrapRingKey(service, ring, 'key_a', text), undefined);
    }
  }
});

const vectors: readonly Readonly<Record<string, string>>[] = vectorsOf('ring-keys');

for (const { kem = '', service = '', privateKey = '', publicKey = '', keyId = '', ...told } of vectors) {
  test(`the vector of a wrapped key: ${kem}, ${service}`, async () => {
    assert.ok(service === 'ks' || service === 'asym');
    const bytes = parseSeed(privateKey) ?? parsePrivateKey(privateKey) ?? assert.fail('no private key');
    const raw = parsePublicKey(publicKey) ?? parseHybridKey(publicKey) ?? assert.fail('no public key');
    const key = hex(told.key ?? '');
    const random = hex(told.random ?? '');
    assert.deepEqual(await unwrapRingKey(service, bytes, keyId, told.wrapped ?? ''), key);
    assert.equal(await unwrapRingKey(service, bytes, 'key_b', told.wrapped ?? ''), undefined);
    assert.equal(await unwrapRingKey(service, random.slice(0, 32), keyId, told.wrapped ?? ''), undefined);
    assert.equal(await unwrapRingKey(service, bytes, keyId, told.wrapped?.slice(4) ?? ''), undefined);
    const { wrapped, iv } = wrapRingKey(service, raw, keyId, key, (length) => random.slice(0, length));
    assert.deepEqual([wrapped, iv], [told.wrapped, told.iv]);
    assert.equal(kemOf(wrapped), kem);
  });
}
