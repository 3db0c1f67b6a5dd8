// The newest records of the log, in memory: those that no segment covers yet. Some at its end may be staged: in the
// chain, but not yet part of the log. Their fields stand in typed arrays and their lines in one buffer, so that they
// cost the garbage collector nothing.
import { equalBytes } from '../../crypto/bytes.ts';
import { KmsError } from '../../errors.ts';
import type { ActivityInput, ActivityRecord } from '../port.ts';
import { othersTurn } from '../turns.ts';
import { type ChainPlace, chainHash, hashLength } from './chain.ts';
import { activityLine, parseActivityLine } from './record.ts';
import type { Found, PreparedFilter } from './search.ts';
import { hashTerm } from './terms.ts';

interface ColumnFields {
  readonly id: string;
  readonly createdAt: number;
  readonly keyid: string;
  readonly action: string;
  readonly ringname: string;
  readonly validAction: boolean;
  readonly address?: string | undefined;
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

  /** The numbers of the texts that fit. */
  where(fits: (text: string) => boolean): Set<number> {
    const numbers = new Set<number>();
    for (const [number, text] of this.#texts.entries()) if (fits(text)) numbers.add(number);
    return numbers;
  }

  text(number: number | undefined): string {
    return this.#texts[number ?? 0] ?? '';
  }
}

/**
 * The searchable fields of records as growing typed arrays: a hundred thousand records are scanned in about a
 * millisecond. Texts are numbered in the order of their first appearance.
 */
class TailColumns {
  readonly keys = new Numbering();
  readonly actions = new Numbering();
  readonly rings = new Numbering();
  /** None is the empty text. */
  readonly addresses = new Numbering();
  createdAt: Float64Array<ArrayBuffer>;
  /** Hashes of the ids. */
  idHash: Uint32Array<ArrayBuffer>;
  key: Uint32Array<ArrayBuffer>;
  action: Uint32Array<ArrayBuffer>;
  ring: Uint32Array<ArrayBuffer>;
  address: Uint32Array<ArrayBuffer>;
  valid: Uint8Array<ArrayBuffer>;
  #hashes: Uint8Array<ArrayBuffer>;

  constructor(capacity = 256) {
    this.createdAt = new Float64Array(capacity);
    this.idHash = new Uint32Array(capacity);
    this.key = new Uint32Array(capacity);
    this.action = new Uint32Array(capacity);
    this.ring = new Uint32Array(capacity);
    this.address = new Uint32Array(capacity);
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
    this.address = grown(new Uint32Array(wanted), this.address);
    this.valid = grown(new Uint8Array(wanted), this.valid);
    this.#hashes = grown(new Uint8Array(wanted * hashLength), this.#hashes);
  }

  set(at: number, fields: ColumnFields): void {
    this.createdAt[at] = fields.createdAt;
    this.idHash[at] = hashTerm(fields.id);
    this.key[at] = this.keys.of(fields.keyid);
    this.action[at] = this.actions.of(fields.action);
    this.ring[at] = this.rings.of(fields.ringname);
    this.address[at] = this.addresses.of(fields.address ?? '');
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
        address: this.addresses.text(this.address[at]),
      });
    }
    kept.idHash.set(this.idHash.subarray(from, to));
    kept.#hashes.set(this.#hashes.subarray(from * hashLength, to * hashLength));
    return kept;
  }
}

const smallest = 64 * 1024;

/**
 * Canonical lines as UTF-8: strings of their own, some built of twenty pieces, would be most of what the collector
 * carries.
 */
class TailText {
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

/** A search lets others have their turn after so much text; each line counts for a kibibyte more. Some 10 ms. */
const lengthInOneGo = 512 * 1024;

const restoreHint = 'restore the data directory from a backup, or ask who changed it';

export class ActivityTail {
  #before: ChainPlace;
  #lines = new TailText();
  #columns: TailColumns;
  #committed: number;
  // What came from the disk is put into the columns when somebody searches, and every record is hashed when somebody
  // asks for the chain: a checkpoint, on its own thread, hashes each of them anyway.
  /** Records from here to `#pendingEnd` are not in the columns yet. */
  #pending = 0;
  #pendingEnd: number;
  /**
   * The records before `#anchor` came with the snapshot, and with the hash of the last of them; up to `#verified` they
   * are hashed.
   */
  #verified = 0;
  #anchor: number;
  /** The records from `#anchor` to here are hashed. */
  #hashedEnd: number;

  /** `before` is the place of the last record that segments cover; `head` that of the last of `lines`. */
  constructor(before: ChainPlace, lines: readonly string[], head: ChainPlace) {
    this.#before = before;
    for (const line of lines) this.#lines.push(line);
    this.#committed = this.#pendingEnd = this.#anchor = this.#hashedEnd = lines.length;
    this.#columns = new TailColumns(Math.max(256, lines.length));
    if (lines.length > 0) this.#columns.setHash(lines.length - 1, head.hash);
  }

  /** Sequence number of the first record here, or of the next one when there is none. */
  get firstSeq(): number {
    return this.#before.seq + 1;
  }

  get stagedCount(): number {
    return this.#lines.count - this.#committed;
  }

  /** Sequence number of the last record of the log. */
  get headSeq(): number {
    return this.#before.seq + this.#committed;
  }

  /** The last record of the log. */
  get head(): ChainPlace {
    return { seq: this.headSeq, hash: this.#hashAt(this.#committed - 1).slice() };
  }

  /** Hash of a record from `firstSeq - 1` on, copied. */
  hashOf(seq: number): Uint8Array {
    return this.#hashAt(seq - this.firstSeq).slice();
  }

  lineOf(seq: number): string | undefined {
    return this.#lines.at(seq - this.firstSeq);
  }

  /** How many of the oldest lines make a run of `records` or of `bytes`; undefined while there are too few. */
  runOf(records: number, bytes: number): number | undefined {
    const count = Math.min(this.#lines.countWithin(bytes), records);
    return count <= this.#committed ? count : undefined;
  }

  /** The lines of the log that are here, oldest first; the first `count` of them where that is given. */
  lines(count = this.#committed): string[] {
    return this.#lines.first(count);
  }

  stage(input: ActivityInput): string {
    const line = activityLine(input, this.firstSeq + this.#lines.count);
    this.#append(line, input);
    return line;
  }

  commit(count = this.stagedCount): void {
    this.#committed += Math.min(count, this.stagedCount);
  }

  discard(toCount: number): void {
    this.#lines.cut(this.#committed + toCount);
    this.#hashedEnd = Math.min(this.#hashedEnd, this.#lines.count);
  }

  /** Appends a line of the log, before anything is staged; answers whether it is the record that follows the head. */
  replay(line: string): boolean {
    if (!line.includes(`"seq":${this.firstSeq + this.#committed},`)) return false;
    this.#lines.push(line);
    this.#columns.reserve(this.#lines.count);
    this.#pendingEnd = this.#committed = this.#lines.count;
    return true;
  }

  /** Puts up to `count` records that came from the disk into the columns; false when none is left. */
  indexSome(count: number): boolean {
    const end = Math.min(this.#pending + count, this.#pendingEnd);
    for (; this.#pending < end; this.#pending++) {
      const record = parseActivityLine(this.#lines.at(this.#pending) ?? '');
      if (record?.seq !== this.firstSeq + this.#pending) throw this.#misfit(this.#pending);
      this.#columns.set(this.#pending, record);
    }
    return this.#pending < this.#pendingEnd;
  }

  /**
   * Hashes up to `count` records that are not yet; false when none is left. Throws `corrupt` where the snapshot's do
   * not fit its head.
   */
  hashSome(count: number): boolean {
    const end = Math.min(this.#verified + count, this.#anchor);
    for (; this.#verified < end; this.#verified++) {
      const at = this.#verified;
      const hash = chainHash(this.#hashAt(at - 1), this.#lines.bytesAt(at));
      if (at === this.#anchor - 1 && !equalBytes(hash, this.#hashAt(at))) throw this.#misfit(at);
      this.#columns.setHash(at, hash);
    }
    if (this.#verified < this.#anchor) return true;
    this.#hashAt(Math.min(this.#hashedEnd + count, this.#lines.count) - 1);
    return this.#hashedEnd < this.#lines.count;
  }

  #misfit(at: number): KmsError {
    return new KmsError('corrupt', `activity record ${this.firstSeq + at} does not fit the hash chain`, {
      hint: restoreHint,
    });
  }

  /** Lets go of the records up to `place`, which segments cover now. */
  dropTo(place: ChainPlace): void {
    const count = place.seq - this.#before.seq;
    if (count === 0) return;
    const known = count > 0 && count <= this.#committed;
    // A record that is still to be hashed is not compared; who wrote the segment has hashed it.
    const comparable = count <= this.#verified || (count >= this.#anchor && count <= this.#hashedEnd);
    if (!known || (comparable && !equalBytes(this.#hashAt(count - 1), place.hash))) {
      throw new KmsError('corrupt', `activity segments up to record ${place.seq} do not fit the records in memory`, {
        hint: restoreHint,
      });
    }
    this.#columns = this.#columns.slice(count, this.#lines.count);
    this.#lines = this.#lines.rest(count);
    this.#committed -= count;
    this.#pending = Math.max(0, this.#pending - count);
    this.#pendingEnd = Math.max(0, this.#pendingEnd - count);
    this.#verified = Math.max(0, this.#verified - count);
    this.#anchor = Math.max(0, this.#anchor - count);
    this.#hashedEnd = Math.max(0, this.#hashedEnd - count);
    this.#before = place;
  }

  /**
   * Adds matching records before `beforeSeq` to `found`, newest first, until it has enough: of those that are here when
   * it begins. What is added or dropped while others have their turn is in other places. Everything must be indexed.
   */
  async search(prepared: PreparedFilter, beforeSeq: number, found: Found): Promise<void> {
    const { filter, keyids, addresses, needles, start, end } = prepared;
    const lines = this.#lines;
    const { createdAt, key, action, ring, address, valid, keys, actions, rings } = this.#columns;
    const wantedKeys = keyids && numbersOf(keyids, (text) => keys.find(text));
    const wantedActions = filter.actions && numbersOf(filter.actions, (text) => actions.find(text));
    const wantedAction = filter.action === undefined ? undefined : (actions.find(filter.action) ?? -1);
    const wantedRing = filter.ringname === undefined ? undefined : (rings.find(filter.ringname) ?? -1);
    const wantedAddresses = addresses && this.#columns.addresses.where(addresses.has);
    const wantedValid = filter.valid === undefined ? undefined : Number(filter.valid);
    let passed = 0;
    for (let at = Math.min(this.#committed, beforeSeq - this.firstSeq) - 1; at >= 0; at--) {
      if (wantedAction !== undefined && action[at] !== wantedAction) continue;
      if (wantedActions && !wantedActions.has(action[at] ?? 0)) continue;
      if (wantedRing !== undefined && ring[at] !== wantedRing) continue;
      if (wantedValid !== undefined && valid[at] !== wantedValid) continue;
      if (wantedKeys && !wantedKeys.has(key[at] ?? 0)) continue;
      if (wantedAddresses && !wantedAddresses.has(address[at] ?? 0)) continue;
      const time = createdAt[at] ?? 0;
      if (time < start || time > end) continue;
      const line = lines.at(at) ?? '';
      passed += line.length + 1024;
      if (needles.every((needle) => line.includes(needle))) {
        const record = parseActivityLine(line);
        if (record && prepared.matches(record) && found.add(record, line.length)) return;
      }
      if (passed < lengthInOneGo) continue;
      await othersTurn();
      passed = 0;
    }
  }

  /** The record with an id. Everything must be indexed. */
  find(id: string): ActivityRecord | undefined {
    const { idHash } = this.#columns;
    const hash = hashTerm(id);
    for (let at = this.#committed - 1; at >= 0; at--) {
      const record = idHash[at] === hash ? parseActivityLine(this.#lines.at(at) ?? '') : undefined;
      if (record?.id === id) return record;
    }
    return undefined;
  }

  #append(line: string, fields: ColumnFields): void {
    const at = this.#lines.count;
    this.#columns.reserve(at + 1);
    this.#columns.set(at, fields);
    this.#lines.push(line);
  }

  #hashAt(at: number): Uint8Array {
    for (let next = this.#hashedEnd; next <= at; next = ++this.#hashedEnd) {
      const before = next === 0 ? this.#before.hash : this.#columns.hashAt(next - 1);
      this.#columns.setHash(next, chainHash(before, this.#lines.bytesAt(next)));
    }
    return at < 0 ? this.#before.hash : this.#columns.hashAt(at);
  }
}

function numbersOf(texts: Iterable<string>, find: (text: string) => number | undefined): Set<number> {
  const numbers = new Set<number>();
  for (const text of texts) {
    const number = find(text);
    if (number !== undefined) numbers.add(number);
  }
  return numbers;
}
