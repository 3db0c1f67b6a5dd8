// Random bytes drawn in bulk for many short requests: each byte is handed out once, and none outlives its turn of the
// event loop.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pooledRandom } from '../../src/crypto/random.ts';

/** A generator that counts, so that every byte shows where it came from. */
function counting() {
  const draws: Uint8Array[] = [];
  let next = 0;
  const random = (length: number): Uint8Array => {
    const bytes = Uint8Array.from({ length }, () => next++ & 0xff);
    draws.push(bytes);
    return bytes;
  };
  const ends: (() => void)[] = [];
  const take = pooledRandom(random, (run) => ends.push(run));
  return { draws, take, endTurn: () => ends.splice(0).forEach((run) => void run()) };
}

describe('random bytes drawn together', () => {
  it('are each given out once, and forgotten where they lay', () => {
    const { draws, take } = counting();
    const given = Array.from({ length: 40 }, () => [...take(24)]).flat();
    assert.deepEqual(
      given,
      Array.from({ length: 960 }, (_, i) => i & 0xff),
    );
    assert.equal(draws.length, 1);
    assert.ok(draws[0]?.subarray(0, 960).every((byte) => byte === 0));
  });

  it('are drawn anew when the turn has ended, and the rest is thrown away', () => {
    const { draws, take, endTurn } = counting();
    take(10);
    endTurn();
    assert.ok(draws[0]?.every((byte) => byte === 0));
    take(10);
    assert.equal(draws.length, 2);
    endTurn();
    endTurn();
    assert.equal(take(10).length, 10);
    assert.equal(draws.length, 3);
  });

  it('come straight from the generator where many are asked for', () => {
    const { draws, take } = counting();
    assert.equal(take(33).length, 33);
    assert.equal(take(5000).length, 5000);
    assert.deepEqual(
      draws.map((bytes) => bytes.length),
      [33, 5000],
    );
  });

  it('are never shared between two asks, also where one does not fit what is left', () => {
    const { take } = counting();
    const seen: number[] = [];
    for (let i = 0; i < 300; i++) seen.push(take(31).length);
    assert.ok(seen.every((length) => length === 31));
  });
});
