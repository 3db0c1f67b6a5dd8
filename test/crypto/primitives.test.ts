// Hash, MAC, derivation, AEAD, checksum and signature against published vectors and against node:crypto.
import assert from 'node:assert/strict';
import { createHmac, createPrivateKey, hkdfSync, sign } from 'node:crypto';
import { test } from 'node:test';
import { crc32 as zlibCrc32 } from 'node:zlib';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { openXChaCha, sealXChaCha } from '../../src/crypto/aead.ts';
import { fromHex, toHex, utf8 } from '../../src/crypto/bytes.ts';
import { canonicalJson } from '../../src/crypto/canonical-json.ts';
import { hkdfExpandSha512 } from '../../src/crypto/chunk-keys.ts';
import { ed25519PublicKey, ed25519Sign, ed25519Verify } from '../../src/crypto/ed25519.ts';
import { hkdfSha256, hmacSha256, runningHmacSha256, sha256 } from '../../src/crypto/hash.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { crc32 } from '../../src/crypto/secrets.ts';
import { KmsError } from '../../src/errors.ts';

const hex = (text: string): Uint8Array => fromHex(text.replaceAll(/\s/g, '')) ?? assert.fail('not hex');

test('SHA-256 of "abc" (FIPS 180-4)', () => {
  assert.equal(toHex(sha256(utf8('abc'))), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});

test('HMAC-SHA256 (RFC 4231, cases 1, 2 and 6), with one keyed state for many messages', () => {
  assert.equal(
    toHex(hmacSha256(new Uint8Array(20).fill(0x0b))(utf8('Hi There'))),
    'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
  );
  assert.equal(
    toHex(hmacSha256(utf8('Jefe'))(utf8('what do ya want for nothing?'))),
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  );
  assert.equal(
    toHex(hmacSha256(new Uint8Array(131).fill(0xaa))(utf8('Test Using Larger Than Block-Size Key - Hash Key First'))),
    '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
  );
  const bytes = fc.uint8Array({ maxLength: 300 });
  fc.assert(
    fc.property(bytes, fc.array(bytes, { maxLength: 4 }), (key, messages) => {
      const mac = hmacSha256(key);
      const running = runningHmacSha256(key.subarray(0, 64));
      for (const message of messages) running.update(message);
      const inPieces = createHmac('sha256', key.subarray(0, 64)).update(Buffer.concat(messages));
      assert.equal(toHex(running.digest()), inPieces.digest('hex'));
      for (const message of messages) {
        assert.equal(toHex(mac(message)), createHmac('sha256', key).update(message).digest('hex'));
      }
    }),
  );
});

test('HKDF-SHA256 agrees with node:crypto', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 80 }),
      fc.string(),
      fc.integer({ min: 1, max: 100 }),
      (key, label, length) => {
        const expected = new Uint8Array(hkdfSync('sha256', key, new Uint8Array(0), utf8(label), length));
        assert.deepEqual(hkdfSha256(key, label, length), expected);
      },
    ),
    { numRuns: 30 },
  );
});

test('HKDF-Expand with SHA-512 is RFC 5869 §2.3 written out', async () => {
  const prk = systemRandom(32);
  const info = utf8('info');
  const block = (...parts: Uint8Array[]): Buffer => createHmac('sha512', prk).update(Buffer.concat(parts)).digest();
  const first = block(info, Uint8Array.of(1));
  const second = block(first, info, Uint8Array.of(2));
  const expected = Buffer.concat([first, second]);
  for (const length of [1, 63, 64, 65, 76, 128]) {
    assert.equal(toHex(await hkdfExpandSha512(prk, info, length)), expected.subarray(0, length).toString('hex'));
  }
});

test('XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03, A.3.1)', () => {
  const key = hex('808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f');
  const nonce = hex('404142434445464748494a4b4c4d4e4f5051525354555657');
  const associated = hex('50515253c0c1c2c3c4c5c6c7');
  const plaintext = utf8(
    "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.",
  );
  const sealed = hex(`bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb731c7f1b0b4aa6440bf3a82f4eda7e39
    ae64c6708c54c216cb96b72e1213b4522f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff921f9664c97637da9768812f615c68b13b52e
    c0875924c1c7987947deafd8780acf49`);
  assert.deepEqual(sealXChaCha(key, nonce, plaintext, associated), sealed);
  assert.deepEqual(openXChaCha(key, nonce, sealed, associated), plaintext);
  for (const at of [0, 50, sealed.length - 1]) {
    assert.equal(openXChaCha(key, nonce, flipped(sealed, at), associated), undefined);
  }
  assert.equal(openXChaCha(key, nonce, sealed, utf8('other')), undefined);
  assert.equal(openXChaCha(flipped(key, 0), nonce, sealed, associated), undefined);
  for (const length of [0, 15, 16, sealed.length - 1]) {
    assert.equal(openXChaCha(key, nonce, sealed.subarray(0, length), associated), undefined);
  }
});

test('CRC-32: the check value, and agreement with zlib', () => {
  assert.equal(crc32(utf8('123456789')), 0xcbf43926);
  fc.assert(fc.property(fc.uint8Array(), (bytes) => assert.equal(crc32(bytes), zlibCrc32(bytes))));
  assert.equal(crc32(utf8('123456789xyz'), 9), 0xcbf43926);
});

test('Ed25519 (RFC 8032 §7.1, test 2)', () => {
  const seed = hex('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb');
  const publicKey = hex('3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c');
  const signature = hex(`92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da
    085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00`);
  assert.deepEqual(ed25519PublicKey(seed), publicKey);
  assert.deepEqual(ed25519Sign(seed, Uint8Array.of(0x72)), signature);
  assert.equal(ed25519Verify(publicKey, Uint8Array.of(0x72), signature), true);
  assert.equal(ed25519Verify(publicKey, Uint8Array.of(0x73), signature), false);
  for (let at = 0; at < 64; at += 7)
    assert.equal(ed25519Verify(publicKey, Uint8Array.of(0x72), flipped(signature, at)), false);
  for (const wrong of [new Uint8Array(0), new Uint8Array(31), new Uint8Array(32).fill(0xff)]) {
    assert.equal(ed25519Verify(wrong, Uint8Array.of(0x72), signature), false);
  }
  assert.equal(ed25519Verify(publicKey, Uint8Array.of(0x72), signature.subarray(1)), false);
});

test('Ed25519 agrees with node:crypto', () => {
  const seed = systemRandom(32);
  const pkcs8 = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]);
  const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
  assert.deepEqual(ed25519Sign(seed, utf8('message')), new Uint8Array(sign(null, utf8('message'), key)));
});

test('canonical JSON (RFC 8785 §3.2.2 and §3.2.3)', () => {
  const input = JSON.parse(String.raw`{
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]
  }`);
  assert.equal(
    canonicalJson(input),
    String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
  );
  const keys = JSON.parse(String.raw`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`);
  assert.deepEqual(Object.values(JSON.parse(canonicalJson(keys))).length, 7);
  assert.equal(canonicalJson(keys), '{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"\u{1f600}":5,"\ufb33":3}');
  assert.equal(canonicalJson(JSON.parse('{"b":1,"__proto__":{"a":-0}}')), '{"__proto__":{"a":0},"b":1}');
});

test('canonical JSON agrees with a general library', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => assert.equal(canonicalJson(value), canonicalize(value))),
  );
  assert.equal(canonicalJson({ a: undefined, b: [1, 'x', { d: -0, c: 1e21 }] }), '{"b":[1,"x",{"c":1e+21,"d":0}]}');
});

test('what canonical JSON cannot say is refused as invalid', () => {
  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  for (const value of ['\ud800', { '\udfff': 1 }, [Number.NaN], Number.POSITIVE_INFINITY, undefined, cycle]) {
    assert.throws(
      () => canonicalJson(value),
      (error) => error instanceof KmsError && error.code === 'invalid',
    );
  }
});

test('system randomness fills any length', () => {
  for (const length of [0, 1, 32, 65536, 65537, 200000]) {
    const bytes = systemRandom(length);
    assert.equal(bytes.length, length);
    if (length > 1000) assert.ok(bytes.subarray(-500).some((byte) => byte !== 0));
  }
});

function flipped(bytes: Uint8Array, at: number): Uint8Array {
  const copy = bytes.slice();
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}
