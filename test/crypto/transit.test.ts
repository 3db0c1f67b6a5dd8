// Transit's formats: the context that a message, a sealed key and a signature are bound to, and frozen ones that must
// open for ever.
import assert from 'node:assert/strict';
import { createDecipheriv, createPublicKey, createVerify, verify } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { toBase64, utf8 } from '../../src/crypto/bytes.ts';
import { ed25519ToSpki } from '../../src/crypto/ed25519.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import {
  derivedKey,
  isSignature,
  newTransitKey,
  openMessage,
  openTransitKey,
  p256Pem,
  readPrefixed,
  sealMessage,
  sealTransitKey,
  signMessage,
  transitPublicKey,
} from '../../src/crypto/transit.ts';

const key = Uint8Array.from({ length: 32 }, (_, at) => at);
const place = { ringId: 'ring_01kdyak3se5g95x5q7yjatpbew', version: 3 };
const ciphers = ['aes256-gcm96', 'chacha20-poly1305'] as const;
const bytes = fc.uint8Array({ maxLength: 300 });

function bytesOf(text: string): Uint8Array {
  const read = readPrefixed(text, 'ciphertext');
  return 'bytes' in read ? read.bytes : assert.fail(read.problem);
}

test('a message opens with its key, ring, version and associated data alone', () => {
  for (const type of ciphers) {
    fc.assert(
      fc.property(bytes, bytes, fc.nat(10_000), (plaintext, associated, bit) => {
        const sealed = sealMessage(type, key, place, plaintext, associated, systemRandom);
        assert.match(sealed, /^vault:v3:[A-Za-z0-9+/]+={0,2}$/);
        assert.equal(sealed.split(':').length, 3);
        const read = bytesOf(sealed);
        assert.equal(read.length, 12 + plaintext.length + 16);
        assert.deepEqual(openMessage(type, key, place, read, associated), plaintext);
        const flipped = read.slice();
        const at = bit % (read.length * 8);
        flipped[at >> 3] = (flipped[at >> 3] ?? 0) ^ (1 << (at & 7));
        const others = [
          openMessage(type, key, place, flipped, associated),
          openMessage(type, key.toReversed(), place, read, associated),
          openMessage(type, key, { ...place, version: 4 }, read, associated),
          openMessage(type, key, { ...place, ringId: 'ring_01kdyak3se5g95x5q7yjatpbex' }, read, associated),
          openMessage(type, key, place, read, new Uint8Array([...associated, 0])),
          openMessage(type, key, place, read.subarray(0, -1), associated),
          openMessage(type, derivedKey(key, associated), place, read, associated),
          openMessage(type === 'aes256-gcm96' ? 'chacha20-poly1305' : 'aes256-gcm96', key, place, read, associated),
        ];
        assert.deepEqual(others, others.fill(undefined));
      }),
      { numRuns: 50 },
    );
  }
});

test('a message is what docs/formats.md says: node:crypto opens it', () => {
  const read = bytesOf(sealMessage('aes256-gcm96', key, place, utf8('hello'), utf8('aad'), systemRandom));
  const open = createDecipheriv('aes-256-gcm', key, read.subarray(0, 12));
  open.setAAD(
    Buffer.concat([Buffer.from(`kms/transit/1\0${place.ringId}\0`), Buffer.from([0, 0, 0, 3]), Buffer.from('aad')]),
  );
  open.setAuthTag(read.subarray(-16));
  assert.equal(Buffer.concat([open.update(read.subarray(12, -16)), open.final()]).toString(), 'hello');
});

test('frozen: a key and messages that were made once', () => {
  const made = {
    sealed: sealTransitKey(key, place, 'aes256-gcm96', key.toReversed(), (n) => new Uint8Array(n).fill(7)),
    message: sealMessage('aes256-gcm96', key, place, utf8('hello'), utf8('aad'), (n) => new Uint8Array(n).fill(9)),
    chacha: sealMessage('chacha20-poly1305', key, place, utf8('hello'), utf8('aad'), (n) => new Uint8Array(n).fill(9)),
    derived: toBase64(derivedKey(key, utf8('context'))),
    ed25519: signMessage('ed25519', key, 1, utf8('hello'), undefined),
    ecdsa: signMessage('ecdsa-p256', key, 1, utf8('hello'), 'sha2-256'),
  };
  assert.deepEqual(made, {
    sealed: 'AQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHB/mhRsRFc92Ma4xgM1M1aDCXzcs9YevKNzw7YBMpKolK2kIiTwxhZqXAZ4+aPKV4yg==',
    message: 'vault:v3:CQkJCQkJCQkJCQkJ231kV+gBdoiSK29I/419/6+hCoPE',
    chacha: 'vault:v3:CQkJCQkJCQkJCQkJWRrnwkUyeMG6/7Mk/poMB0S+XzFh',
    derived: 'P+u865kh731Kw8oSMgl8tLqAkEaXByLuFddQt1f4yMQ=',
    ed25519: 'vault:v1:4af8qUqDUSeIW5ni66cz1u5b9dxGPtg4Xrbx3KoRF8DxUXUKEPRvWzeWqRIDV49wLIXGfDNLVomlFihNSZ9xDw==',
    ecdsa: 'vault:v1:MEUCIAGPjdTH9po+Y2fBe2QmqUbnhuQljsNpGQYOhJQcxdQLAiEA7dLyDuSc/y8ScYF3ghsU8xl8LOBzc9kyQwKfP+3i9ZY=',
  });
});

test('a sealed key opens in its place alone', () => {
  const sealed = sealTransitKey(key, place, 'ed25519', key, systemRandom);
  assert.deepEqual(openTransitKey(key, place, 'ed25519', sealed), key);
  assert.equal(openTransitKey(key, place, 'aes256-gcm96', sealed), undefined);
  assert.equal(openTransitKey(key, { ...place, version: 1 }, 'ed25519', sealed), undefined);
  assert.equal(openTransitKey(key, { ...place, ringId: 'x' }, 'ed25519', sealed), undefined);
  assert.equal(openTransitKey(key.toReversed(), place, 'ed25519', sealed), undefined);
  assert.equal(openTransitKey(key, place, 'ed25519', `Ag${sealed.slice(2)}`), undefined);
  assert.equal(openTransitKey(key, place, 'ed25519', ''), undefined);
});

test('signatures are those that OpenSSL verifies, and none fits another message', () => {
  const message = utf8('hello');
  for (const type of ['ed25519', 'ecdsa-p256'] as const) {
    const secret = newTransitKey(type, systemRandom);
    const publicKey = transitPublicKey(type, secret);
    for (const hash of ['sha2-224', 'sha2-256', 'sha2-384', 'sha2-512'] as const) {
      const read = readPrefixed(signMessage(type, secret, 2, message, hash), 'signature');
      if ('problem' in read) throw new Error(read.problem);
      assert.equal(read.version, 2);
      assert.equal(isSignature(type, publicKey, message, hash, read.bytes), true);
      assert.equal(isSignature(type, publicKey, utf8('hello!'), hash, read.bytes), false);
      assert.equal(isSignature(type, publicKey, message, hash, read.bytes.subarray(1)), false);
      const other = transitPublicKey(type, newTransitKey(type, systemRandom));
      assert.equal(isSignature(type, other, message, hash, read.bytes), false);
      if (type === 'ecdsa-p256') {
        const check = createVerify(hash.replace('sha2-', 'sha')).update(message);
        assert.equal(check.verify(p256Pem(publicKey), read.bytes), true);
      } else {
        const spki = createPublicKey({ key: Buffer.from(ed25519ToSpki(publicKey)), format: 'der', type: 'spki' });
        assert.equal(verify(null, message, spki, read.bytes), true);
      }
    }
  }
});

test('what is no message of transit is told in its words', () => {
  const problems = [
    ['', 'no prefix'],
    ['vault:1:AAAA', 'no prefix'],
    ['vault:v1', 'wrong number of fields'],
    ['vault:vx:AAAA', 'version number could not be decoded'],
    ['vault:v-1:AAAA', 'version number could not be decoded'],
    ['vault:v9999999999:AAAA', 'version number could not be decoded'],
    ['vault:v1:AAA', 'could not decode base64'],
    ['vault:v1:AAAA:', 'could not decode base64'],
  ];
  for (const [text = '', problem] of problems) {
    assert.deepEqual(readPrefixed(text, 'ciphertext'), { problem: `invalid ciphertext: ${problem}` }, text);
  }
  assert.deepEqual(readPrefixed('vault:v0:AAAA', 'signature'), { version: 1, bytes: new Uint8Array(3) });
});
