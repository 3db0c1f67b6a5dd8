// Opened keys are cached within bounds, and overwritten when they leave the cache.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tenantKeys } from '../../src/seal/tenant-keys.ts';

const opened = () => tenantKeys(new Map([[1, new Uint8Array(32).fill(1)]]));
const isWiped = (key: Uint8Array) => key.every((byte) => byte === 0);

test('the least recently used of many keys are overwritten', () => {
  const keys = opened();
  const all = Array.from({ length: 501 }, () => new Uint8Array(32).fill(7));
  for (const [n, key] of all.entries()) {
    assert.equal(
      keys.opened(`key ${n}`, () => key),
      key,
    );
    keys.opened('key 0', () => undefined);
  }
  assert.deepEqual(
    all.flatMap((key, n) => (isWiped(key) ? [n] : [])),
    [1],
  );
});

test('long keys leave the cache sooner, and one that is longer than all of it is still given', () => {
  const keys = opened();
  const long = Array.from({ length: 100 }, () => new Uint8Array(64 * 1024).fill(7));
  for (const [n, key] of long.entries()) keys.opened(`key ${n}`, () => key);
  assert.equal(long.filter((key) => !isWiped(key)).length, 63);
  const longest = new Uint8Array(5 * 1024 * 1024).fill(7);
  assert.equal(
    keys.opened('longest', () => longest),
    longest,
  );
  assert.ok(!isWiped(longest) && long.every(isWiped));
  keys.wipe();
  assert.ok(isWiped(longest));
});
