// The canonical lines of the tail as UTF-8 in one growing buffer: strings of their own, some built of twenty pieces, would be most of
// what the garbage collector has to carry.
const smallest = 64 * 1024;

export class TailText {
  #bytes = Buffer.allocUnsafeSlow(smallest);
  /** Where each line ends; it starts where the one before ends. */
  #ends = new Float64Array(256);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  push(line: string): void {
    const start = this.#startOf(this.#count);
    // UTF-8 takes at most 3 bytes for a UTF-16 code unit.
    this.#reserve(start + line.length * 3);
    this.#end(start + this.#bytes.write(line, start));
  }

  /** Its bytes, valid until the lines change. */
  bytesAt(at: number): Uint8Array {
    return this.#bytes.subarray(this.#startOf(at), this.#startOf(at + 1));
  }

  /** The line, or nothing beyond the last one. */
  at(at: number): string | undefined {
    if (at < 0 || at >= this.#count) return undefined;
    return this.#bytes.toString('utf8', this.#startOf(at), this.#startOf(at + 1));
  }

  /** The first `count` lines. */
  first(count: number): string[] {
    return Array.from({ length: count }, (_, at) => this.at(at) ?? '');
  }

  /** How many lines it takes, from the first on, to reach `bytes`; infinitely many where all are shorter. */
  countWithin(bytes: number): number {
    if (this.#startOf(this.#count) < bytes) return Number.POSITIVE_INFINITY;
    let count = 0;
    while (this.#startOf(count) < bytes) count++;
    return count;
  }

  /** Keeps the first `count` lines. */
  cut(count: number): void {
    this.#count = Math.min(this.#count, count);
  }

  /** The lines from `from` on, in a buffer of their own. */
  rest(from: number): TailText {
    const rest = new TailText();
    const start = this.#startOf(from);
    const bytes = this.#bytes.subarray(start, this.#startOf(this.#count));
    rest.#reserve(bytes.length);
    rest.#bytes.set(bytes);
    for (let at = from; at < this.#count; at++) rest.#end(this.#startOf(at + 1) - start);
    return rest;
  }

  #startOf(at: number): number {
    return at === 0 ? 0 : (this.#ends[at - 1] ?? 0);
  }

  #end(offset: number): void {
    if (this.#count === this.#ends.length) {
      const ends = new Float64Array(this.#count * 2);
      ends.set(this.#ends);
      this.#ends = ends;
    }
    this.#ends[this.#count++] = offset;
  }

  #reserve(length: number): void {
    if (length <= this.#bytes.length) return;
    const bytes = Buffer.allocUnsafeSlow(Math.max(length, this.#bytes.length * 2));
    bytes.set(this.#bytes.subarray(0, this.#startOf(this.#count)));
    this.#bytes = bytes;
  }
}
