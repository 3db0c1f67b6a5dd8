// The newest records of the log, in memory: those that no segment covers yet. The last ones may be staged: in the
// chain, but not yet part of the log. They are kept in blocks, so that neither growing nor dropping copies any of them.
import { equalBytes } from '../../crypto/bytes.ts';
import { KmsError } from '../../errors.ts';
import { yieldToEventLoop } from '../event-loop.ts';
import type { ActivityInput, ActivityRecord } from '../port.ts';
import { type ChainPlace, chainHash } from './chain.ts';
import type { Alike } from './record.ts';
import type { Found, PreparedFilter } from './search.ts';
import type { SegmentMaker } from './segment-writer.ts';
import { blockRecords, TailBlock } from './tail-block.ts';

/** Length of text after which a search yields to the event loop; each line counts a kibibyte more. Some 10 ms. */
const lengthInOneGo = 512 * 1024;

const restoreHint = 'restore the data directory from a backup, or ask who changed it';

export class ActivityTail {
  #before: ChainPlace;
  /** The first `#skipped` records of the first block are covered by segments. */
  #blocks: TailBlock[] = [];
  #skipped = 0;
  #count = 0;
  #committed: number;
  // Lines from the disk are parsed at the first search, and records are hashed when the chain is asked for: a
  // checkpoint, on its own thread, hashes each of them anyway.
  /** Some records from here to `#pendingEnd` are not parsed yet. */
  #pending = 0;
  #pendingEnd: number;
  /**
   * The records before `#anchor` came with the snapshot, which has the hash of the last of them; those before
   * `#verified` are hashed.
   */
  #verified = 0;
  #anchor: number;
  /** The records from `#anchor` to here are hashed. */
  #hashedEnd: number;

  /** `before` is the position of the last record that segments cover; `head` that of the last of `lines`. */
  constructor(before: ChainPlace, lines: readonly string[], head: ChainPlace) {
    this.#before = before;
    for (const line of lines) this.#append((block) => block.pushLine(line));
    this.#committed = this.#pendingEnd = this.#anchor = this.#hashedEnd = lines.length;
    if (lines.length > 0) this.#setHash(lines.length - 1, head.hash);
  }

  /** The position of the last record that segments cover. */
  get before(): ChainPlace {
    return this.#before;
  }

  /** Sequence number of the first record here, or of the next one if there is none. */
  get firstSeq(): number {
    return this.#before.seq + 1;
  }

  get stagedCount(): number {
    return this.#count - this.#committed;
  }

  /** Sequence number of the last record of the log. */
  get headSeq(): number {
    return this.#before.seq + this.#committed;
  }

  /** The last record of the log. */
  get head(): ChainPlace {
    return { seq: this.headSeq, hash: this.#hashAt(this.#committed - 1).slice() };
  }

  /** A copy of the hash of a record, from `firstSeq - 1` on. */
  hashOf(seq: number): Uint8Array {
    return this.#hashAt(seq - this.firstSeq).slice();
  }

  lineOf(seq: number): string | undefined {
    const at = seq - this.firstSeq;
    return at < 0 || at >= this.#count ? undefined : this.#line(at);
  }

  /** The number of oldest lines that make a run of `records` or of `bytes`; undefined if there are too few. */
  runOf(records: number, bytes: number): number | undefined {
    const most = Math.min(records, this.#committed);
    let length = 0;
    for (let at = 0; at < most; at++) {
      length += this.#block(at).lineBytes(this.#inside(at), this.firstSeq + at);
      if (length >= bytes) return at + 1;
    }
    return most === records ? most : undefined;
  }

  /** The log's lines held here, oldest first; only the oldest `count` if that is given. */
  lines(count = this.#committed): string[] {
    return Array.from({ length: count }, (_, at) => this.#line(at));
  }

  /**
   * Adds the oldest `count` records to a segment, which hashes them; they stay here. Throws `corrupt` if the snapshot's
   * records do not fit its head.
   */
  addTo(segment: SegmentMaker, count: number): void {
    for (let at = 0; at < count; at++) {
      this.#block(at).addTo(segment, this.#inside(at));
      if (at === this.#anchor - 1 && !equalBytes(segment.end.hash, this.#hashAt(at))) throw this.#misfit(at);
    }
  }

  /** Throws `invalid` for props that JSON cannot represent. */
  stage(record: ActivityInput): void {
    this.#append((block) => block.push(record, this.firstSeq + this.#count));
  }

  commit(count = this.stagedCount): void {
    this.#committed += Math.min(count, this.stagedCount);
  }

  discard(toCount: number): void {
    const kept = Math.min(this.#count, this.#committed + toCount);
    while (this.#count > kept) {
      const last = this.#inside(this.#count - 1);
      const cut = Math.min(last + 1, this.#count - kept);
      this.#block(this.#count - 1).cut(last + 1 - cut);
      this.#count -= cut;
    }
    this.#hashedEnd = Math.min(this.#hashedEnd, kept);
  }

  /** Appends a record of the log, before anything is staged. */
  replay(record: ActivityInput): void {
    this.stage(record);
    this.#committed = this.#count;
  }

  /** Appends a record without a reporter and with no props but a key version, whose id is 30 bytes of `bytes`. */
  replayAlike(alike: Alike, createdAt: number, bytes: Uint8Array, idAt: number, keyVersion?: number): void {
    const seq = this.firstSeq + this.#count;
    this.#append((block) => block.pushAlike(alike, createdAt, bytes, idAt, seq, keyVersion));
    this.#committed = this.#count;
  }

  /** Parses up to `count` lines from the disk; returns false when none is left. */
  indexSome(count: number): boolean {
    const end = Math.min(this.#pending + count, this.#pendingEnd);
    for (; this.#pending < end; this.#pending++) {
      const block = this.#block(this.#pending);
      const inside = this.#inside(this.#pending);
      if (!block.isRead(inside) && !block.read(inside, this.firstSeq + this.#pending)) {
        throw this.#misfit(this.#pending);
      }
    }
    return this.#pending < this.#pendingEnd;
  }

  /**
   * Hashes up to `count` unhashed records; returns false when none is left. Throws `corrupt` if the snapshot's records
   * do not fit its head.
   */
  hashSome(count: number): boolean {
    const end = Math.min(this.#verified + count, this.#anchor);
    for (; this.#verified < end; this.#verified++) {
      const at = this.#verified;
      const hash = chainHash(this.#hashAt(at - 1), this.#line(at));
      if (at === this.#anchor - 1 && !equalBytes(hash, this.#hashAt(at))) throw this.#misfit(at);
      this.#setHash(at, hash);
    }
    if (this.#verified < this.#anchor) return true;
    this.#hashAt(Math.min(this.#hashedEnd + count, this.#count) - 1);
    return this.#hashedEnd < this.#count;
  }

  #misfit(at: number): KmsError {
    return new KmsError('corrupt', `activity record ${this.firstSeq + at} does not match the hash chain`, {
      hint: restoreHint,
    });
  }

  /** Drops the records up to `place`, which segments cover now. */
  dropTo(place: ChainPlace): void {
    const count = place.seq - this.#before.seq;
    if (count === 0) return;
    const known = count > 0 && count <= this.#committed;
    // A record not yet hashed is not compared; the writer of the segment has hashed it.
    const comparable = count <= this.#verified || (count >= this.#anchor && count <= this.#hashedEnd);
    if (!known || (comparable && !equalBytes(this.#hashAt(count - 1), place.hash))) {
      throw new KmsError('corrupt', `activity segments up to record ${place.seq} do not match the records in memory`, {
        hint: restoreHint,
      });
    }
    const skipped = this.#skipped + count;
    this.#blocks = this.#blocks.slice(Math.floor(skipped / blockRecords));
    this.#skipped = skipped % blockRecords;
    this.#count -= count;
    this.#committed -= count;
    this.#pending = Math.max(0, this.#pending - count);
    this.#pendingEnd = Math.max(0, this.#pendingEnd - count);
    this.#verified = Math.max(0, this.#verified - count);
    this.#anchor = Math.max(0, this.#anchor - count);
    this.#hashedEnd = Math.max(0, this.#hashedEnd - count);
    this.#before = place;
  }

  /**
   * Adds matching records before `beforeSeq` to `found`, newest first, until it has enough. It searches the records
   * present at its start: later ones are appended after them, and dropped blocks stay as they are. Every line must be
   * parsed.
   */
  async search(prepared: PreparedFilter, beforeSeq: number, found: Found): Promise<void> {
    const { filter, keyids, addresses, needles, start, end, afterSeq } = prepared;
    const blocks = this.#blocks;
    const seqOf = this.firstSeq - this.#skipped;
    let position = this.#skipped + Math.min(this.#committed, beforeSeq - this.firstSeq) - 1;
    const first = Math.max(this.#skipped, afterSeq + 1 - seqOf);
    let passed = 0;
    for (let number = Math.floor(position / blockRecords); number >= 0 && position >= first; number--) {
      const block = blocks[number];
      if (!block) continue;
      const fits = block.thatFit(
        ({ alike: { action, keyid, ringname, validAction, address } }) =>
          (filter.action === undefined || filter.action === action) &&
          (filter.actions === undefined || filter.actions.includes(action)) &&
          (filter.ringname === undefined || filter.ringname === ringname) &&
          (filter.valid === undefined || filter.valid === validAction) &&
          !filter.withoutActions?.has(action) &&
          !(validAction && filter.withoutGranted?.has(action)) &&
          (keyids === undefined || keyids.has(keyid)) &&
          (addresses === undefined || (address !== undefined && addresses.has(address))),
      );
      const holds = block.thatFit((kind) => includesAll(kind.inside, needles));
      const base = number * blockRecords;
      for (; position >= Math.max(base, first); position--) {
        const at = position - base;
        if (!fits(at)) continue;
        const time = block.createdAt(at);
        if (time < start || time > end) continue;
        // The needles occur only in stored lines, or in the props of a kind.
        if (needles.length > 0 && !block.hasMore(at) && !holds(at)) continue;
        const seq = seqOf + position;
        const length = block.lineBytes(at, seq);
        passed += length + 1024;
        if (needles.length === 0 || includesAll(block.line(at, seq), needles)) {
          const record = block.record(at, seq);
          if (record && prepared.matches(record) && found.add(record, length)) return;
        }
        if (passed < lengthInOneGo) continue;
        await yieldToEventLoop();
        passed = 0;
      }
    }
  }

  /** The record with an id. Every line must be parsed. */
  find(id: string): ActivityRecord | undefined {
    const ends = this.#skipped + this.#committed;
    for (let number = Math.ceil(ends / blockRecords) - 1; number >= 0; number--) {
      const base = number * blockRecords;
      const at = this.#blocks[number]?.find(id, ends - base);
      if (at === undefined) continue;
      const position = base + at - this.#skipped;
      return position < 0 ? undefined : this.#blocks[number]?.record(at, this.firstSeq + position);
    }
    return undefined;
  }

  #append(push: (block: TailBlock) => void): void {
    const number = Math.floor((this.#skipped + this.#count) / blockRecords);
    let block = this.#blocks[number];
    if (!block) {
      block = new TailBlock();
      this.#blocks.push(block);
    }
    push(block);
    this.#count++;
  }

  #block(at: number): TailBlock {
    const block = this.#blocks[Math.floor((this.#skipped + at) / blockRecords)];
    if (!block) throw new KmsError('internal', `activity record ${this.firstSeq + at} is not in memory`);
    return block;
  }

  /** The record's index in its block. */
  #inside(at: number): number {
    return (this.#skipped + at) % blockRecords;
  }

  #line(at: number): string {
    return this.#block(at).line(this.#inside(at), this.firstSeq + at);
  }

  #setHash(at: number, hash: Uint8Array): void {
    this.#block(at).setHash(this.#inside(at), hash);
  }

  #hashAt(at: number): Uint8Array {
    for (let next = this.#hashedEnd; next <= at; next = ++this.#hashedEnd) {
      const before = next === 0 ? this.#before.hash : this.#hashAt(next - 1);
      this.#setHash(next, chainHash(before, this.#line(next)));
    }
    return at < 0 ? this.#before.hash : this.#block(at).hashAt(this.#inside(at));
  }
}

function includesAll(line: string, needles: readonly string[]): boolean {
  return needles.every((needle) => line.includes(needle));
}
