// Bytes that arrive in pieces, until they are looked at. Small pieces are joined: each costs hundreds of bytes of
// memory, and a sender may make them as small as it likes.

/** Pieces of this length are kept as they are. */
const longEnough = 65_536;

export class Pieces {
  #pieces: Uint8Array[] = [];
  #length = 0;

  /** Bytes held. */
  get length(): number {
    return this.#length;
  }

  /** Pieces that they are held in. */
  get count(): number {
    return this.#pieces.length;
  }

  push(piece: Uint8Array): void {
    this.#length += piece.length;
    let last = piece;
    for (;;) {
      // Only with one that is no longer, so that no byte is copied more often than the length has bits.
      const before = this.#pieces.at(-1);
      if (!before || before.length > last.length || before.length + last.length > longEnough) break;
      this.#pieces.pop();
      last = Buffer.concat([before, last]);
    }
    this.#pieces.push(last);
  }

  /** At least this many of the bytes that are there, in one piece. */
  joined(length: number): Uint8Array {
    const [first] = this.#pieces;
    if (first && first.length >= length) return first;
    const all = Buffer.concat(this.#pieces);
    this.#pieces = [all];
    return all;
  }

  /** Takes this many bytes, which are there, away: a copy. */
  take(length: number): Uint8Array {
    const all = this.joined(this.#length);
    this.#pieces = all.length > length ? [all.subarray(length)] : [];
    this.#length -= length;
    return new Uint8Array(all.subarray(0, length));
  }

  clear(): void {
    this.#pieces = [];
    this.#length = 0;
  }
}
