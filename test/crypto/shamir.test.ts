// Shamir's secret sharing: field arithmetic against the standard's own examples and a second implementation, then the
// scheme's guarantees.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { combineShares, invert, multiply, type ShamirShare, splitSecret } from '../../src/crypto/shamir.ts';
import { prng } from '../support/prng.ts';

test('products of FIPS 197 §4.2', () => {
  assert.equal(multiply(0x57, 0x83), 0xc1);
  assert.equal(multiply(0x57, 0x13), 0xfe);
  for (const [factor, product] of [
    [0x02, 0xae],
    [0x04, 0x47],
    [0x08, 0x8e],
    [0x10, 0x07],
  ] as const) {
    assert.equal(multiply(0x57, factor), product);
  }
});

test('the whole field: tables by logarithm agree, and every byte but 0 has its inverse', () => {
  const powers: number[] = [];
  for (let power = 0, value = 1; power < 255; power++) {
    powers.push(value);
    value ^= (value << 1) ^ (value & 0x80 ? 0x11b : 0);
    value &= 0xff;
  }
  const log = new Map(powers.map((value, power) => [value, power]));
  for (let a = 0; a < 256; a++) {
    for (let b = 0; b < 256; b++) {
      const expected = a && b ? powers[((log.get(a) ?? 0) + (log.get(b) ?? 0)) % 255] : 0;
      assert.equal(multiply(a, b), expected);
    }
    assert.equal(multiply(a, invert(a)), a === 0 ? 0 : 1);
  }
});

test('the format is frozen: the coefficients come in order, the lowest power first', () => {
  const shares = splitSecret(Uint8Array.of(0x2a, 0x00), { count: 3, threshold: 3 }, () =>
    Uint8Array.of(0x01, 0x02, 0x03, 0x04),
  );
  // 0x2a + 1x + 3x², 0 + 2x + 4x² at x = 1, 2, 3.
  assert.deepEqual(shares, [
    { index: 1, bytes: Uint8Array.of(0x2a ^ 1 ^ 3, 2 ^ 4) },
    { index: 2, bytes: Uint8Array.of(0x2a ^ 2 ^ multiply(3, 4), 4 ^ multiply(4, 4)) },
    { index: 3, bytes: Uint8Array.of(0x2a ^ 3 ^ multiply(3, 5), 6 ^ multiply(4, 5)) },
  ]);
});

const split = fc
  .record({ threshold: fc.integer({ min: 2, max: 9 }), more: fc.integer({ min: 0, max: 6 }), seed: fc.nat() })
  .chain(({ threshold, more, seed }) =>
    fc.record({
      secret: fc.uint8Array({ minLength: 1, maxLength: 40 }),
      threshold: fc.constant(threshold),
      count: fc.constant(threshold + more),
      seed: fc.constant(seed),
      order: fc.shuffledSubarray(
        Array.from({ length: threshold + more }, (_, at) => at),
        { minLength: threshold, maxLength: threshold },
      ),
    }),
  );

test('any threshold of the shares, in any order, make the secret', () => {
  fc.assert(
    fc.property(split, ({ secret, threshold, count, seed, order }) => {
      const generator = prng(seed);
      const shares = splitSecret(secret, { count, threshold }, (length) => generator.bytes(length));
      assert.deepEqual(
        shares.map(({ index }) => index),
        Array.from({ length: count }, (_, at) => at + 1),
      );
      const some = order.map((at) => shares[at]).filter((share): share is ShamirShare => share !== undefined);
      assert.deepEqual(combineShares(some), secret);
    }),
  );
});

test('one share too few fits every secret alike', () => {
  const generator = prng(7);
  const shares = splitSecret(Uint8Array.of(0x2a), { count: 5, threshold: 3 }, (length) => generator.bytes(length));
  const [first, second] = shares;
  assert.ok(first && second);
  const reached = new Set<number>();
  for (let third = 0; third < 256; third++) {
    reached.add(combineShares([first, second, { index: 3, bytes: Uint8Array.of(third) }])[0] ?? -1);
  }
  assert.equal(reached.size, 256);
});

test('255 shares', () => {
  const generator = prng(3);
  const secret = generator.bytes(32);
  const shares = splitSecret(secret, { count: 255, threshold: 20 }, (length) => generator.bytes(length));
  assert.deepEqual(combineShares(shares.slice(235)), secret);
});

test('numbers that make no sense are refused', () => {
  const random = (length: number) => new Uint8Array(length);
  for (const [count, threshold] of [
    [1, 1],
    [3, 1],
    [2, 3],
    [256, 2],
    [3.5, 2],
    [3, 2.5],
    [Number.NaN, 2],
  ] as const) {
    assert.throws(() => splitSecret(Uint8Array.of(1), { count, threshold }, random), { code: 'invalid' });
  }
  const share = { index: 1, bytes: Uint8Array.of(1) };
  assert.throws(() => combineShares([share, share]), { code: 'invalid' });
  assert.throws(() => combineShares([share, { index: 2, bytes: new Uint8Array(2) }]), { code: 'invalid' });
});
