// The searchable fields of the tail's records as growing typed arrays: a hundred thousand records are scanned in about a
// millisecond and cost the garbage collector nothing. Texts are numbered in the order of their first appearance.
import { hashLength } from './chain.ts';
import { hashTerm } from './terms.ts';

export interface ColumnFields {
  readonly id: string;
  readonly createdAt: number;
  readonly keyid: string;
  readonly action: string;
  readonly ringname: string;
  readonly validAction: boolean;
}

/** The texts of one column, each under a number. */
class Numbering {
  readonly #numbers = new Map<string, number>();
  readonly #texts: string[] = [];

  /** The number of a text, given on its first appearance. */
  of(text: string): number {
    let number = this.#numbers.get(text);
    if (number === undefined) {
      number = this.#texts.push(text) - 1;
      this.#numbers.set(text, number);
    }
    return number;
  }

  find(text: string): number | undefined {
    return this.#numbers.get(text);
  }

  text(number: number | undefined): string {
    return this.#texts[number ?? 0] ?? '';
  }
}

export class TailColumns {
  readonly keys = new Numbering();
  readonly actions = new Numbering();
  readonly rings = new Numbering();
  createdAt: Float64Array<ArrayBuffer>;
  /** Hashes of the ids. */
  idHash: Uint32Array<ArrayBuffer>;
  key: Uint32Array<ArrayBuffer>;
  action: Uint32Array<ArrayBuffer>;
  ring: Uint32Array<ArrayBuffer>;
  valid: Uint8Array<ArrayBuffer>;
  #hashes: Uint8Array<ArrayBuffer>;

  constructor(capacity = 256) {
    this.createdAt = new Float64Array(capacity);
    this.idHash = new Uint32Array(capacity);
    this.key = new Uint32Array(capacity);
    this.action = new Uint32Array(capacity);
    this.ring = new Uint32Array(capacity);
    this.valid = new Uint8Array(capacity);
    this.#hashes = new Uint8Array(capacity * hashLength);
  }

  /** Makes room for `length` records. */
  reserve(length: number): void {
    const { length: capacity } = this.valid;
    if (length <= capacity) return;
    const wanted = Math.max(length, capacity * 2);
    const grown = <A extends { set(old: A): void }>(fresh: A, old: A): A => {
      fresh.set(old);
      return fresh;
    };
    this.createdAt = grown(new Float64Array(wanted), this.createdAt);
    this.idHash = grown(new Uint32Array(wanted), this.idHash);
    this.key = grown(new Uint32Array(wanted), this.key);
    this.action = grown(new Uint32Array(wanted), this.action);
    this.ring = grown(new Uint32Array(wanted), this.ring);
    this.valid = grown(new Uint8Array(wanted), this.valid);
    this.#hashes = grown(new Uint8Array(wanted * hashLength), this.#hashes);
  }

  set(at: number, fields: ColumnFields): void {
    this.createdAt[at] = fields.createdAt;
    this.idHash[at] = hashTerm(fields.id);
    this.key[at] = this.keys.of(fields.keyid);
    this.action[at] = this.actions.of(fields.action);
    this.ring[at] = this.rings.of(fields.ringname);
    this.valid[at] = fields.validAction ? 1 : 0;
  }

  /** The 32-byte hash, valid until the columns change. */
  hashAt(at: number): Uint8Array {
    return this.#hashes.subarray(at * hashLength, (at + 1) * hashLength);
  }

  setHash(at: number, hash: Uint8Array): void {
    this.#hashes.set(hash, at * hashLength);
  }

  /** Columns of the records from `from` to `to`, numbered anew so that texts no longer in use are let go of. */
  slice(from: number, to: number): TailColumns {
    const kept = new TailColumns(Math.max(256, to - from));
    for (let at = from; at < to; at++) {
      kept.set(at - from, {
        id: '',
        createdAt: this.createdAt[at] ?? 0,
        keyid: this.keys.text(this.key[at]),
        action: this.actions.text(this.action[at]),
        ringname: this.rings.text(this.ring[at]),
        validAction: this.valid[at] === 1,
      });
    }
    kept.idHash.set(this.idHash.subarray(from, to));
    kept.#hashes.set(this.#hashes.subarray(from * hashLength, to * hashLength));
    return kept;
  }
}
