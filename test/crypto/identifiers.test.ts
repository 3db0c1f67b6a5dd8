// ULIDs and the secrets of API keys: form, order, uniqueness, and what is refused.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { crc32 as zlibCrc32 } from 'node:zlib';
import fc from 'fast-check';
import { toHex } from '../../src/crypto/bytes.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { hashSecret, isWellFormedApiKey, newApiKeySecret } from '../../src/crypto/secrets.ts';
import { formatUlid, idFromBytes, idToBytes, knownIdInto, ulidGenerator } from '../../src/crypto/ulid.ts';

const ulidBytes = fc.uint8Array({ minLength: 16, maxLength: 16 });

test('a ULID is its 128 bits in Crockford base32, most significant first', () => {
  const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
  fc.assert(
    fc.property(ulidBytes, (bytes) => {
      let number = BigInt(`0x${toHex(bytes)}`);
      let expected = '';
      for (let i = 0; i < 26; i++, number >>= 5n) expected = alphabet.charAt(Number(number & 31n)) + expected;
      assert.equal(formatUlid(bytes), expected);
      assert.deepEqual(idToBytes('ring', `ring_${expected}`), bytes);
      assert.equal(formatUlid(new Uint8Array([9, ...bytes, 9]), 1), expected);
      assert.deepEqual(idToBytes('ring', idFromBytes('ring', bytes)), bytes);
    }),
  );
  assert.equal(formatUlid(new Uint8Array(16).fill(255)), '7zzzzzzzzzzzzzzzzzzzzzzzzz');
});

test('texts that no ULID has are refused', () => {
  const good = '01arz3ndektsv4rrffq69g5fav';
  assert.ok(idToBytes('ring', `ring_${good}`));
  const wrong = ['', good.slice(1), `${good}0`, good.toUpperCase(), `8${good.slice(1)}`, `z${good.slice(1)}`];
  for (const character of ['i', 'l', 'o', 'u', ' ', '-', 'é', '\u0661', 'A']) wrong.push(good.slice(0, -1) + character);
  for (const text of wrong) assert.equal(idToBytes('ring', `ring_${text}`), undefined, text);
  for (const id of [
    good,
    `key_${good}`,
    `ring-${good}`,
    `ring_${good.toUpperCase()}`,
    `ring_${good} `,
    'ring_',
    'ring',
  ]) {
    assert.equal(idToBytes('ring', id), undefined, id);
  }
  assert.throws(() => knownIdInto('ring', 'key_x', new Uint8Array(16), 0), /expected an id that starts with ring_/);
});

test('ULIDs only grow, whatever the clock does', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 200 }), (times) => {
      let time = 0;
      const next = ulidGenerator({ now: () => 1_700_000_000_000 + time, random: systemRandom });
      let last = '';
      for (time of times) {
        const text = formatUlid(next());
        assert.ok(text > last);
        last = text;
      }
    }),
  );
});

test('a ULID starts with the time, and random bits that overflow carry into it', () => {
  const next = ulidGenerator({ now: () => 0xfedc_ba98_7654, random: (length) => new Uint8Array(length).fill(0xff) });
  assert.equal(toHex(next()), 'fedcba987654ffffffffffffffffffff');
  assert.equal(toHex(next()), 'fedcba98765500000000000000000000');
  assert.equal(toHex(next()), 'fedcba98765500000000000000000001');
});

test('each ULID is an array of its own', () => {
  const next = ulidGenerator({ now: () => 1, random: systemRandom });
  const first = next();
  const text = formatUlid(first);
  next();
  assert.equal(formatUlid(first), text);
});

test('an API key is kms_, 43 base62 characters, and the CRC-32 of both in base62', () => {
  for (let i = 0; i < 100; i++) {
    const key = newApiKeySecret(systemRandom);
    assert.match(key, /^kms_[0-9A-Za-z]{49}$/);
    assert.ok(isWellFormedApiKey(key));
    const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
    let sum = zlibCrc32(key.slice(0, 47));
    let expected = '';
    for (let j = 0; j < 6; j++, sum = Math.floor(sum / 62)) expected = digits.charAt(sum % 62) + expected;
    assert.equal(key.slice(47), expected);
  }
  assert.equal(newApiKeySecret((length) => new Uint8Array(length)).slice(0, 47), `kms_${'0'.repeat(43)}`);
});

test('the base62 part holds all 256 bits', () => {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
      const body = newApiKeySecret(() => bytes).slice(4, 47);
      const number = [...body].reduce((sum, character) => sum * 62n + BigInt(digits.indexOf(character)), 0n);
      assert.equal(number, BigInt(`0x${toHex(bytes)}`));
    }),
  );
});

test('a mistyped API key is not well formed', () => {
  const key = newApiKeySecret(systemRandom);
  for (let at = 4; at < key.length; at++) {
    for (const character of ['0', 'z', 'A', '-', ' ', 'é']) {
      const typed = key.slice(0, at) + character + key.slice(at + 1);
      assert.equal(isWellFormedApiKey(typed), typed === key);
    }
    const swapped = key.slice(0, at) + key.slice(at + 1, at + 2) + key.slice(at, at + 1) + key.slice(at + 2);
    assert.equal(isWellFormedApiKey(swapped), swapped === key);
  }
  for (const text of ['', 'kms_', key.slice(0, -1), `${key}0`, ` ${key}`, key.replace('kms_', 'KMS_'), key.slice(4)]) {
    assert.equal(isWellFormedApiKey(text), false);
  }
});

test('a secret is stored as the base64url of its SHA-256', () => {
  assert.equal(hashSecret('secret'), createHash('sha256').update('secret').digest('base64url'));
});
