// HPKE: the RFC 9180 vectors for X25519; the suite in use, which has no vectors, against node:crypto alone.
import assert from 'node:assert/strict';
import {
  createCipheriv,
  createHmac,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { fromBase64, toHex, utf8 } from '../../src/crypto/bytes.ts';
import { hpkeOpen, hpkeSeal } from '../../src/crypto/hpke.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { unwrapRingKey, wrapRingKey } from '../../src/crypto/ring-key.ts';
import { generateX25519, parsePrivateKey, publicFromPrivate } from '../../src/crypto/x25519.ts';
import { type HpkeVector, hex, isAsPublished, vectorsOf } from '../support/vectors.ts';

interface Vector extends HpkeVector {
  readonly name: string;
  readonly skEm: string;
  readonly pkEm: string;
}
const vectors: readonly Vector[] = vectorsOf('hpke-rfc9180-base-x25519-hkdf-sha256');

for (const vector of vectors) {
  test(`RFC 9180: ${vector.name}`, () => {
    assert.equal(toHex(publicFromPrivate(hex(vector.skEm))), vector.pkEm);
    isAsPublished(vector, vector.skEm);
  });
}

/** RFC 9180 §5 for the suite in use, written from the standard over node:crypto: no line shared with the product. */
function referenceSeal(
  recipient: KeyObject,
  ephemeral: KeyObject,
  info: string,
  aad: string,
  plaintext: Buffer,
): Buffer {
  const rawOf = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'spki' }).subarray(-32);
  const extract = (salt: Buffer, ikm: Buffer): Buffer => createHmac('sha256', salt).update(ikm).digest();
  const expand = (prk: Buffer, about: Buffer, length: number): Buffer =>
    createHmac('sha256', prk)
      .update(Buffer.concat([about, Buffer.from([1])]))
      .digest()
      .subarray(0, length);
  const kem = Buffer.from('KEM\x00\x20', 'latin1');
  const suite = Buffer.from('HPKE\x00\x20\x00\x01\x00\x02', 'latin1');
  const labeled = (id: Buffer, label: string, value: Buffer): Buffer =>
    Buffer.concat([Buffer.from('HPKE-v1'), id, Buffer.from(label), value]);
  const sized = (length: number, rest: Buffer): Buffer => Buffer.concat([Buffer.from([0, length]), rest]);
  const nothing = Buffer.alloc(0);

  const enc = rawOf(createPublicKey(ephemeral));
  const dh = diffieHellman({ privateKey: ephemeral, publicKey: recipient });
  const eaePrk = extract(nothing, labeled(kem, 'eae_prk', dh));
  const kemContext = Buffer.concat([enc, rawOf(recipient)]);
  const shared = expand(eaePrk, sized(32, labeled(kem, 'shared_secret', kemContext)), 32);
  const context = Buffer.concat([
    Buffer.from([0]),
    extract(nothing, labeled(suite, 'psk_id_hash', nothing)),
    extract(nothing, labeled(suite, 'info_hash', Buffer.from(info))),
  ]);
  const secret = extract(shared, labeled(suite, 'secret', nothing));
  const key = expand(secret, sized(32, labeled(suite, 'key', context)), 32);
  const nonce = expand(secret, sized(12, labeled(suite, 'base_nonce', context)), 12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(aad));
  return Buffer.concat([enc, cipher.update(plaintext), cipher.final(), cipher.getAuthTag(), nonce]);
}

test('AES-256-GCM suite: what node:crypto seals opens, and what is sealed is what node:crypto seals', () => {
  for (let i = 0; i < 10; i++) {
    const recipient = generateKeyPairSync('x25519');
    const ephemeral = generateKeyPairSync('x25519');
    const rawPrivate = parsePrivateKey(String(recipient.privateKey.export({ format: 'pem', type: 'pkcs8' })));
    const rawEphemeral = parsePrivateKey(String(ephemeral.privateKey.export({ format: 'pem', type: 'pkcs8' })));
    assert.ok(rawPrivate && rawEphemeral);
    const plaintext = Buffer.from(systemRandom(i * 7));
    const sealed = referenceSeal(recipient.publicKey, ephemeral.privateKey, 'kms/ks/key/v1', 'key_1', plaintext);
    const info = utf8('kms/ks/key/v1');
    const ct = sealed.subarray(32, -12);
    assert.deepEqual(hpkeOpen(rawPrivate, sealed.subarray(0, 32), info, utf8('key_1'), ct), new Uint8Array(plaintext));
    const ours = hpkeSeal(publicFromPrivate(rawPrivate), info, utf8('key_1'), plaintext, () => rawEphemeral);
    assert.equal(toHex(new Uint8Array([...ours.enc, ...ours.ciphertext, ...ours.baseNonce])), sealed.toString('hex'));
  }
});

test('a wrapped ring key opens for its ring, service and id only', async () => {
  const ring = generateX25519(systemRandom);
  const other = generateX25519(systemRandom);
  const key = systemRandom(32);
  for (const service of ['ks', 'asym'] as const) {
    const { wrapped, iv } = wrapRingKey(service, ring.publicKey, 'key_a', key, systemRandom);
    assert.equal(fromBase64(wrapped)?.length, 80);
    assert.equal(fromBase64(iv)?.length, 12);
    assert.deepEqual(await unwrapRingKey(service, ring.privateKey, 'key_a', wrapped), key);
    assert.equal(await unwrapRingKey(service, ring.privateKey, 'key_b', wrapped), undefined);
    assert.equal(await unwrapRingKey(service, other.privateKey, 'key_a', wrapped), undefined);
    assert.equal(await unwrapRingKey(service === 'ks' ? 'asym' : 'ks', ring.privateKey, 'key_a', wrapped), undefined);
    for (const text of ['', 'AAAA', wrapped.slice(4), `${wrapped}\n`, wrapped.slice(0, -4)]) {
      assert.equal(await unwrapRingKey(service, ring.privateKey, 'key_a', text), undefined);
    }
  }
});

test('any flipped bit of what HPKE made fails to open', () => {
  const { privateKey, publicKey } = generateX25519(systemRandom);
  const { enc, ciphertext } = hpkeSeal(publicKey, utf8('info'), utf8('aad'), systemRandom(32), systemRandom);
  assert.ok(hpkeOpen(privateKey, enc, utf8('info'), utf8('aad'), ciphertext));
  fc.assert(
    fc.property(fc.integer({ min: 0, max: (32 + 48) * 8 - 1 }), (bit) => {
      const all = new Uint8Array([...enc, ...ciphertext]);
      all[bit >>> 3] = (all[bit >>> 3] ?? 0) ^ (1 << (bit & 7));
      assert.equal(hpkeOpen(privateKey, all.subarray(0, 32), utf8('info'), utf8('aad'), all.subarray(32)), undefined);
    }),
    { numRuns: 60 },
  );
  assert.equal(hpkeOpen(privateKey, enc, utf8('infO'), utf8('aad'), ciphertext), undefined);
  assert.equal(hpkeOpen(privateKey, enc, utf8('info'), utf8('aaD'), ciphertext), undefined);
  assert.equal(hpkeOpen(privateKey, enc.subarray(1), utf8('info'), utf8('aad'), ciphertext), undefined);
  assert.equal(hpkeOpen(privateKey, enc, utf8('info'), utf8('aad'), ciphertext.subarray(0, 15)), undefined);
});
