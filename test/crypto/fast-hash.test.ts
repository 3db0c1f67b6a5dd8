// Fast forms give the same results as their plain forms, for any input and in any order.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import * as fastHash from '../../src/crypto/fast-hash.ts';
import * as plain from '../../src/crypto/hash.ts';
import * as secrets from '../../src/crypto/secrets.ts';

const bytes = fc.uint8Array({ maxLength: 300 });

test('SHA-256 and HMAC-SHA256', () => {
  fc.assert(
    fc.property(bytes, fc.array(bytes, { maxLength: 4 }), (key, messages) => {
      const [fast, slow] = [fastHash.hmacSha256(key), plain.hmacSha256(key)];
      for (const message of messages) {
        assert.deepEqual(fastHash.sha256(message), plain.sha256(message));
        assert.deepEqual(fast(message), slow(message));
      }
    }),
  );
});

test('a keyed state that is kept is that of its key, not of its bytes', () => {
  fc.assert(
    fc.property(bytes, bytes, (key, message) => {
      const other = key.slice();
      assert.deepEqual(fastHash.keyedHmac(key)(message), plain.hmacSha256(key)(message));
      assert.equal(fastHash.keyedHmac(key), fastHash.keyedHmac(key));
      const kept = fastHash.keyedHmac(key);
      // Found before its key was overwritten, it still is under that key and not under zeros.
      key.fill(0);
      assert.deepEqual(kept(message), plain.hmacSha256(other)(message));
      assert.notEqual(fastHash.keyedHmac(other), kept);
    }),
  );
});

test('API keys: their hashes, and none of what is not well formed', () => {
  const made = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((seed) => secrets.newApiKeySecret(() => seed));
  const mistyped = fc
    .tuple(made, fc.nat({ max: 52 }), fc.string({ unit: 'binary', minLength: 1, maxLength: 2 }))
    .map(([text, at, put]) => text.slice(0, at) + put + text.slice(at + put.length));
  const any = fc.string({ unit: 'binary', maxLength: 1200 });
  fc.assert(
    fc.property(fc.oneof(made, mistyped, any), (text) => {
      const hash = secrets.isWellFormedApiKey(text) ? secrets.hashSecret(text) : undefined;
      assert.equal(fastHash.hashApiKey(text), hash);
    }),
    { numRuns: 2000 },
  );
  fc.assert(fc.property(made, (text) => fastHash.hashApiKey(text) === secrets.hashSecret(text)));
});
