// Transit's formats: the context that a message, a sealed key and a signature are bound to, and frozen ones that must
// open for ever.
import assert from 'node:assert/strict';
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { toBase64, utf8 } from '../../src/crypto/bytes.ts';
import { ed25519Sign } from '../../src/crypto/ed25519.ts';
import { ecdsaSign } from '../../src/crypto/managed/ecdsa.ts';
import {
  derivedKey,
  openMessage,
  openVaultMessage,
  prefixed,
  readPrefixed,
  sealMessage,
} from '../../src/crypto/managed/messages.ts';
import { openKey, sealKey } from '../../src/crypto/managed/sealed-keys.ts';
import { systemRandom } from '../../src/crypto/random.ts';

const key = Uint8Array.from({ length: 32 }, (_, at) => at);
const place = { keyId: 'ring_01kdyak3se5g95x5q7yjatpbew', version: 3 };
const ciphers = ['aes256-gcm', 'chacha20-poly1305'] as const;
const bytes = fc.uint8Array({ maxLength: 300 });

function bytesOf(text: string): Uint8Array {
  const read = readPrefixed(text, 'ciphertext');
  return 'bytes' in read ? read.bytes : assert.fail(read.problem);
}

test('a message opens with its key, ring, version and associated data alone', () => {
  for (const type of ciphers) {
    fc.assert(
      fc.property(bytes, bytes, fc.nat(10_000), (plaintext, associated, bit) => {
        const sealed = prefixed(3, sealMessage(type, key, place, plaintext, associated, systemRandom));
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
          openMessage(type, key, { ...place, keyId: 'ring_01kdyak3se5g95x5q7yjatpbex' }, read, associated),
          openMessage(type, key, place, read, new Uint8Array([...associated, 0])),
          openMessage(type, key, place, read.subarray(0, -1), associated),
          openMessage(type, derivedKey(type, key, associated), place, read, associated),
          openMessage(type === 'aes256-gcm' ? 'chacha20-poly1305' : 'aes256-gcm', key, place, read, associated),
        ];
        assert.deepEqual(others, others.fill(undefined));
      }),
      { numRuns: 50 },
    );
  }
});

test('a message is what docs/formats.md says: node:crypto opens it', () => {
  const read = sealMessage('aes256-gcm', key, place, utf8('hello'), utf8('aad'), systemRandom);
  const open = createDecipheriv('aes-256-gcm', key, read.subarray(0, 12));
  open.setAAD(
    Buffer.concat([Buffer.from(`kms/transit/1\0${place.keyId}\0`), Buffer.from([0, 0, 0, 3]), Buffer.from('aad')]),
  );
  open.setAuthTag(read.subarray(-16));
  assert.equal(Buffer.concat([open.update(read.subarray(12, -16)), open.final()]).toString(), 'hello');
});

test('frozen: keys and messages that were made once', () => {
  const nine = (length: number) => new Uint8Array(length).fill(9);
  const made = {
    sealed: sealKey(key, place, 'aes256-gcm', key.toReversed(), (n) => new Uint8Array(n).fill(7)),
    message: prefixed(3, sealMessage('aes256-gcm', key, place, utf8('hello'), utf8('aad'), nine)),
    chacha: prefixed(3, sealMessage('chacha20-poly1305', key, place, utf8('hello'), utf8('aad'), nine)),
    derived: toBase64(derivedKey('aes256-gcm', key, utf8('context'))),
    ed25519: prefixed(1, ed25519Sign(key, utf8('hello'))),
    ecdsa: prefixed(1, ecdsaSign('ecdsa-p256', key, { bytes: utf8('hello'), isDigest: false }, 'sha2-256')),
  };
  assert.deepEqual(made, {
    sealed: 'AgcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHB/mhRsRFc92Ma4xgM1M1aDCXzcs9YevKNzw7YBMpKolKsa8TEqrDxrLaTW8XoF+ceQ==',
    message: 'vault:v3:CQkJCQkJCQkJCQkJ231kV+gBdoiSK29I/419/6+hCoPE',
    chacha: 'vault:v3:CQkJCQkJCQkJCQkJWRrnwkUyeMG6/7Mk/poMB0S+XzFh',
    derived: 'P+u865kh731Kw8oSMgl8tLqAkEaXByLuFddQt1f4yMQ=',
    ed25519: 'vault:v1:4af8qUqDUSeIW5ni66cz1u5b9dxGPtg4Xrbx3KoRF8DxUXUKEPRvWzeWqRIDV49wLIXGfDNLVomlFihNSZ9xDw==',
    ecdsa: 'vault:v1:MEUCIAGPjdTH9po+Y2fBe2QmqUbnhuQljsNpGQYOhJQcxdQLAiEA7dLyDuSc/y8ScYF3ghsU8xl8LOBzc9kyQwKfP+3i9ZY=',
  });
});

test('a key sealed in format 1, as a transit ring, opens for ever', () => {
  const sealed = 'AQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHB/mhRsRFc92Ma4xgM1M1aDCXzcs9YevKNzw7YBMpKolK2kIiTwxhZqXAZ4+aPKV4yg==';
  assert.deepEqual(openKey(key, place, 'aes256-gcm', sealed), key.toReversed());
  for (const type of ['aes128-gcm', 'chacha20-poly1305', 'ed25519', 'aes256-gcm96', 'secret']) {
    assert.equal(openKey(key, place, type, sealed), undefined, type);
  }
});

test('a sealed key of any length opens in its place alone', () => {
  for (const bytes of [new Uint8Array(), key, new Uint8Array(65_536).fill(3)]) {
    const sealed = sealKey(key, place, 'ed25519', bytes, systemRandom);
    assert.deepEqual(openKey(key, place, 'ed25519', sealed), bytes);
    assert.equal(openKey(key, place, 'aes256-gcm', sealed), undefined);
    assert.equal(openKey(key, { ...place, version: 1 }, 'ed25519', sealed), undefined);
    assert.equal(openKey(key, { ...place, keyId: 'x' }, 'ed25519', sealed), undefined);
    assert.equal(openKey(key.toReversed(), place, 'ed25519', sealed), undefined);
    assert.equal(openKey(key, place, 'ed25519', `AQ${sealed.slice(2)}`), undefined);
    assert.equal(openKey(key, place, 'ed25519', ''), undefined);
  }
});

test('a message of Vault opens with its key and associated data alone', () => {
  const nonce = systemRandom(12);
  const made = createCipheriv('aes-256-gcm', key, nonce).setAAD(utf8('aad'));
  const sealed = Buffer.concat([nonce, made.update('hello'), made.final(), made.getAuthTag()]);
  assert.deepEqual(openVaultMessage('aes256-gcm', key, Uint8Array.from(sealed), utf8('aad')), utf8('hello'));
  assert.equal(openVaultMessage('aes256-gcm', key, Uint8Array.from(sealed), utf8('')), undefined);
  assert.equal(openMessage('aes256-gcm', key, place, Uint8Array.from(sealed), utf8('aad')), undefined);
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
