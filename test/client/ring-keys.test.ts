// A ring's key pair as it is made on the client: in forms that this program and others read.
import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { generateRingKey, isPublicKey, publicKeyOf, readPrivateKey } from '../../src/client/ring-keys.ts';

test('the two halves belong together, here and for Node', () => {
  const { privateKey, publicKey } = generateRingKey();
  assert.equal(publicKeyOf(readPrivateKey(privateKey, 'it')), publicKey);
  assert.ok(isPublicKey(publicKey));
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
  assert.deepEqual(generateRingKey(random), generateRingKey(random));
  assert.deepEqual(asked, [32, 32]);
  assert.deepEqual(readPrivateKey(generateRingKey(random).privateKey, 'it'), seed);
});
