// Bytes in pieces: however small these are, few are held, and none is lost.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pieces } from '../../src/server/pieces.ts';

test('pieces of any length are held in few, and come out as they came in', () => {
  for (const sizes of [[1], [1, 2, 3], [16_384], [65_536, 1], [5, 16_384, 1, 70_000]]) {
    const pieces = new Pieces();
    const all: Uint8Array[] = [];
    let length = 0;
    for (let n = 0; length < 131_072; n++) {
      const piece = new Uint8Array(sizes[n % sizes.length] ?? 1).fill(n % 251);
      all.push(piece);
      pieces.push(piece);
      length += piece.length;
      assert.ok(pieces.count <= 64, `${sizes}: ${pieces.count}`);
    }
    assert.equal(pieces.length, length);
    const whole = Buffer.concat(all);
    const first = pieces.joined(8);
    assert.deepEqual(Buffer.from(first.subarray(0, 8)), whole.subarray(0, 8));
    assert.deepEqual(Buffer.from(pieces.take(100)), whole.subarray(0, 100));
    assert.equal(pieces.length, length - 100);
    assert.deepEqual(Buffer.from(pieces.take(length - 100)), whole.subarray(100));
    assert.equal(pieces.count, 0);
  }
});
