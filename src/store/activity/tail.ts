// The newest records of the log, in memory: those that no segment covers yet. Some at its end may be staged: in the chain,
// but not yet part of the log.
import { equalBytes } from '../../crypto/bytes.ts';
import { KmsError } from '../../errors.ts';
import type { ActivityInput, ActivityRecord } from '../port.ts';
import { chainHash } from './chain.ts';
import type { PreparedFilter } from './filter.ts';
import { activityLine, parseActivityLine } from './record.ts';
import { type ColumnFields, TailColumns } from './tail-columns.ts';
import { TailText } from './tail-text.ts';
import { hashTerm } from './terms.ts';

/** A place in the chain: the hash is that of the record `seq`. */
export interface ChainPlace {
  readonly seq: number;
  readonly hash: Uint8Array;
}

const restoreHint = 'restore the data directory from a backup, or ask who changed it';

export class ActivityTail {
  #before: ChainPlace;
  #lines = new TailText();
  #columns: TailColumns;
  #committed: number;
  // What came from the disk is put into the columns when somebody searches, and every record is hashed when somebody asks for the chain: a
  // checkpoint, on its own thread, hashes each of them anyway.
  /** Records from here to `#pendingEnd` are not in the columns yet. */
  #pending = 0;
  #pendingEnd: number;
  /** The records before `#anchor` came with the snapshot, and with the hash of the last of them; up to `#verified` they are hashed. */
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

  /** Hashes up to `count` records that are not yet; false when none is left. Throws `corrupt` where the snapshot's do not fit its head. */
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

  /** Adds up to `limit` matching records before `beforeSeq` to `found`, newest first. Everything must be indexed. */
  search(prepared: PreparedFilter, beforeSeq: number, limit: number, found: ActivityRecord[]): void {
    const { filter, keyids, needles, start, end } = prepared;
    const { createdAt, key, action, ring, valid, keys, actions, rings } = this.#columns;
    const wantedKeys = keyids && numbersOf(keyids, (text) => keys.find(text));
    const wantedAction = filter.action === undefined ? undefined : (actions.find(filter.action) ?? -1);
    const wantedRing = filter.ringname === undefined ? undefined : (rings.find(filter.ringname) ?? -1);
    const wantedValid = filter.valid === undefined ? undefined : Number(filter.valid);
    for (let at = Math.min(this.#committed, beforeSeq - this.firstSeq) - 1; at >= 0; at--) {
      if (wantedAction !== undefined && action[at] !== wantedAction) continue;
      if (wantedRing !== undefined && ring[at] !== wantedRing) continue;
      if (wantedValid !== undefined && valid[at] !== wantedValid) continue;
      if (wantedKeys && !wantedKeys.has(key[at] ?? 0)) continue;
      const time = createdAt[at] ?? 0;
      if (time < start || time > end) continue;
      const line = this.#lines.at(at) ?? '';
      if (!needles.every((needle) => line.includes(needle))) continue;
      const record = parseActivityLine(line);
      if (record && prepared.matches(record) && found.push(record) >= limit) return;
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
