// Verifying an asset's signature: once or repeatedly, with either implementation.
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { isSignatureOf, signAsset } from '../../src/core/asset-signing.ts';
import { ed25519PublicKey, ed25519Verify } from '../../src/crypto/ed25519.ts';
import { sealKeyHash } from '../../src/crypto/key-hash.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { KmsError } from '../../src/errors.ts';
import { takeCrypto } from '../../src/platform/native-crypto.ts';
import { type TenantKeys, tenantKeys } from '../../src/seal/tenant-keys.ts';

afterEach(() => takeCrypto('noble'));

const ring = `ring_${'0'.repeat(26)}`;
const key = `key_${'1'.repeat(26)}`;

function signedBy(keys: TenantKeys, n = 0) {
  const { hash } = sealKeyHash(keys, ring, key, systemRandom);
  const version = { id: `asset_${'2'.repeat(26)}`, version: 1, parents: [], data: { n }, hash };
  return { version, signature: signAsset(keys, version) };
}

for (const choice of ['node', 'noble'] as const) {
  test(`what differs in anything is refused, also after it was found to fit, by ${choice}`, () => {
    takeCrypto(choice);
    const keys = tenantKeys(new Map([[1, systemRandom(32)]]));
    const { version, signature } = signedBy(keys);
    for (let again = 0; again < 3; again++) {
      assert.ok(isSignatureOf(keys, version, signature));
      for (let bit = 0; bit < 512; bit += choice === 'node' ? 1 : 37) {
        const other = signature.slice();
        other[bit >>> 3] = (other[bit >>> 3] ?? 0) ^ (1 << (bit & 7));
        assert.ok(!isSignatureOf(keys, version, other), `bit ${bit}`);
      }
      for (const other of [new Uint8Array(), signature.subarray(0, 63), new Uint8Array(65), new Uint8Array(64)]) {
        assert.ok(!isSignatureOf(keys, version, other));
      }
      for (const change of [
        { id: `asset_${'3'.repeat(26)}` },
        { version: 2 },
        { parents: [`asset_${'3'.repeat(26)}`] },
        { data: { n: 1 } },
        { data: {} },
        { hash: signedBy(keys).version.hash },
      ]) {
        assert.ok(!isSignatureOf(keys, { ...version, ...change }, signature), JSON.stringify(change));
      }
      const others = tenantKeys(new Map([[1, systemRandom(32)]]));
      assert.ok(!isSignatureOf(others, version, signature), "another tenant's key");
    }
  });
}

test('of many signatures each is found to fit, however often and in whatever order it is asked', () => {
  takeCrypto('node');
  const keys = tenantKeys(new Map([[1, systemRandom(32)]]));
  const many = Array.from({ length: 1500 }, (_, n) => signedBy(keys, n));
  for (const order of [many, many.toReversed(), many.slice(700, 800)]) {
    for (const { version, signature } of order) {
      assert.ok(isSignatureOf(keys, version, signature));
      assert.ok(!isSignatureOf(keys, { ...version, data: {} }, signature));
    }
  }
});

test('every epoch has its key; after a wipe nothing is found to fit any more', () => {
  takeCrypto('node');
  const [first, second] = [systemRandom(32), systemRandom(32)];
  const before = tenantKeys(new Map([[1, first]]));
  const made = signedBy(before);
  const after = tenantKeys(
    new Map([
      [1, first.slice()],
      [2, second],
    ]),
  );
  assert.ok(isSignatureOf(before, made.version, made.signature));
  assert.ok(isSignatureOf(after, made.version, made.signature));
  const later = signedBy(after);
  assert.ok(isSignatureOf(after, later.version, later.signature));
  const publicKey = ed25519PublicKey(after.key('asset-signing', 2));
  assert.ok(!ed25519Verify(publicKey, new Uint8Array(), later.signature));
  after.wipe();
  for (const each of [made, later]) {
    assert.throws(
      () => isSignatureOf(after, each.version, each.signature),
      (error) => error instanceof KmsError && error.code === 'sealed',
    );
  }
});
