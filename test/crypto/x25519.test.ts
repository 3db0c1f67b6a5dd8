// X25519 keys: RFC 7748 vectors, DER and PEM as node:crypto reads and writes them, and everything that is refused.
import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { toBase64, toHex, utf8 } from '../../src/crypto/bytes.ts';
import { hpkeOpen, hpkeSeal } from '../../src/crypto/hpke.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import {
  generateX25519,
  parsePrivateKey,
  parsePublicKey,
  pkcs8ToPem,
  privateKeyToPkcs8,
  publicFromPrivate,
  publicKeyToSpki,
  sharedSecret,
} from '../../src/crypto/x25519.ts';
import { KmsError } from '../../src/errors.ts';
import { hex } from '../support/vectors.ts';

/** An X25519 key fits on one line. */
const spkiToPem = (der: Uint8Array): string =>
  `-----BEGIN PUBLIC KEY-----\n${toBase64(der)}\n-----END PUBLIC KEY-----\n`;

/** Every u whose point has order 1, 2, 4 or 8, in all encodings of 255 bits (cr.yp.to/ecdh.html#validate). */
const lowOrder255 = [
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800',
  '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
].map(hex);

/** The same with the bit set that RFC 7748 §5 ignores. */
const lowOrder = [...lowOrder255, ...lowOrder255.map((u) => u.with(31, (u[31] ?? 0) | 0x80))];

/**
 * The rest of that list: 256-bit values of small order before reduction, and other encodings that no key pair yields.
 */
const notCanonical = [
  'cdeb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b880',
  '4c9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f11d7',
  'd9ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  'daffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  'dbffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  'f6ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  '0900000000000000000000000000000000000000000000000000000000000080',
].map(hex);

test('Diffie-Hellman (RFC 7748 §6.1)', () => {
  const alice = hex('77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a');
  const bob = hex('5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb');
  const alicePublic = hex('8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a');
  const bobPublic = hex('de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f');
  const shared = hex('4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742');
  assert.deepEqual(publicFromPrivate(alice), alicePublic);
  assert.deepEqual(publicFromPrivate(bob), bobPublic);
  assert.deepEqual(sharedSecret(alice, bobPublic), shared);
  assert.deepEqual(sharedSecret(bob, alicePublic), shared);
});

test('low-order points are refused everywhere', () => {
  const { privateKey } = generateX25519(systemRandom);
  for (const u of lowOrder) {
    assert.equal(sharedSecret(privateKey, u), undefined, toHex(u));
    assert.equal(parsePublicKey(toBase64(u)), undefined, toHex(u));
    assert.equal(parsePublicKey(toBase64(publicKeyToSpki(u))), undefined, toHex(u));
    assert.equal(parsePublicKey(spkiToPem(publicKeyToSpki(u))), undefined, toHex(u));
    assert.throws(
      () => hpkeSeal(u, utf8(''), utf8(''), utf8('secret'), systemRandom),
      (error) => error instanceof KmsError && error.code === 'invalid',
    );
    assert.equal(hpkeOpen(privateKey, u, utf8(''), utf8(''), new Uint8Array(48)), undefined);
  }
});

test('public keys in an encoding that no key pair yields are refused', () => {
  for (const u of notCanonical) assert.equal(parsePublicKey(toBase64(u)), undefined, toHex(u));
  // 2^255 - 20 and 2^255 - 21 are the greatest canonical ones; the first is of low order.
  const greatest = new Uint8Array(32).fill(0xff).with(0, 0xeb).with(31, 0x7f);
  assert.deepEqual(parsePublicKey(toBase64(greatest)), greatest);
});

test('DER and PEM are what node:crypto makes and reads', () => {
  for (let i = 0; i < 5; i++) {
    const pair = generateKeyPairSync('x25519');
    const spki = new Uint8Array(pair.publicKey.export({ format: 'der', type: 'spki' }));
    const pkcs8 = new Uint8Array(pair.privateKey.export({ format: 'der', type: 'pkcs8' }));
    const privatePem = pair.privateKey.export({ format: 'pem', type: 'pkcs8' });
    const publicPem = pair.publicKey.export({ format: 'pem', type: 'spki' });
    const privateKey = parsePrivateKey(String(privatePem)) ?? assert.fail('PEM not read');
    const publicKey = publicFromPrivate(privateKey);
    assert.deepEqual(publicKeyToSpki(publicKey), spki);
    assert.deepEqual(privateKeyToPkcs8(privateKey), pkcs8);
    assert.equal(pkcs8ToPem(pkcs8), privatePem);
    assert.equal(spkiToPem(spki), publicPem);
    for (const text of [
      toBase64(spki),
      toBase64(publicKey),
      String(publicPem),
      String(publicPem).replaceAll('\n', '\r\n'),
    ]) {
      assert.deepEqual(parsePublicKey(text), publicKey);
    }
    for (const text of [toBase64(pkcs8), toBase64(privateKey), ` ${toBase64(pkcs8)}\n`]) {
      assert.deepEqual(parsePrivateKey(text), privateKey);
    }
    assert.ok(createPrivateKey(pkcs8ToPem(privateKeyToPkcs8(privateKey))).equals(pair.privateKey));
    assert.ok(createPublicKey(spkiToPem(publicKeyToSpki(publicKey))).equals(pair.publicKey));
  }
});

test('what is no X25519 key is refused', () => {
  const { privateKey, publicKey } = generateX25519(systemRandom);
  const ed = generateKeyPairSync('ed25519');
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const spki = publicKeyToSpki(publicKey);
  const wrongPublic = [
    '',
    'nonsense',
    '-----BEGIN PUBLIC KEY-----',
    '-----BEGIN PUBLIC KEY----------END PUBLIC KEY-----',
    toBase64(publicKey.subarray(1)),
    toBase64(new Uint8Array(33).fill(9)),
    toBase64(spki.subarray(0, 43)),
    toBase64(new Uint8Array([...spki, 0])),
    toBase64(spki.with(8, 0x70)),
    toHex(publicKey),
    toBase64(publicKey).slice(0, -1),
    toBase64(privateKeyToPkcs8(privateKey)),
    pkcs8ToPem(privateKeyToPkcs8(privateKey)),
    spkiToPem(publicKey),
    spkiToPem(spki).replace('BEGIN PUBLIC', 'BEGIN EC PUBLIC'),
    String(ed.publicKey.export({ format: 'pem', type: 'spki' })),
    toBase64(ed.publicKey.export({ format: 'der', type: 'spki' })),
    String(ec.publicKey.export({ format: 'pem', type: 'spki' })),
  ];
  for (const text of wrongPublic) assert.equal(parsePublicKey(text), undefined, text);
  const wrongPrivate = [
    '',
    'nonsense',
    toBase64(privateKey.subarray(1)),
    toBase64(privateKeyToPkcs8(privateKey).subarray(1)),
    spkiToPem(spki),
    toBase64(spki),
    String(ed.privateKey.export({ format: 'pem', type: 'pkcs8' })),
    String(ec.privateKey.export({ format: 'pem', type: 'pkcs8' })),
  ];
  for (const text of wrongPrivate) assert.equal(parsePrivateKey(text), undefined, 'a wrong private key was read');
});
