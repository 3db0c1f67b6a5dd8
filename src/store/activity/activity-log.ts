// The activity log of one tenant: a hash chain of records, the newest in memory (the tail), all older ones in sealed
// segments that are only rewritten for a new key. Staged records become part of the log when the store reports them
// durable.
import { setImmediate } from 'node:timers/promises';
import { toBase64Url } from '../../crypto/bytes.ts';
import { KmsError } from '../../errors.ts';
import { yieldToEventLoop } from '../event-loop.ts';
import type { WholeFiles } from '../files.ts';
import type {
  ActivityFilter,
  ActivityInput,
  ActivityRecord,
  ChainHead,
  DroppedActivity,
  SegmentSummary,
} from '../port.ts';
import type { Page, PageRequest } from '../sql.ts';
import { afterDropping, placeBefore } from './dropped.ts';
import { type Alike, parseActivityLine } from './record.ts';
import { Found, findInSegment, prepareFilter, searchSegments } from './search.ts';
import { type ActivityKeys, bytesOfSegments, decodeHash, endOfSegments, segmentOf, segmentPath } from './segment.ts';
import { ByteCache, readSegmentChain, SegmentReader } from './segment-reader.ts';
import { SegmentMaker } from './segment-writer.ts';
import { ActivityTail } from './tail.ts';

/** The head of a log without records. */
export const emptyHead: ChainHead = { seq: 0, hash: toBase64Url(new Uint8Array(32)) };

export interface ActivityLogOptions {
  readonly files: WholeFiles;
  /** Directory of the segments; made by the caller. */
  readonly dir: string;
  readonly keys: ActivityKeys;
  /** The store's 16 bytes that its segments are bound to. */
  readonly uid: Uint8Array;
  readonly segments: readonly SegmentSummary[];
  /** The beginning of the log that retention dropped, if any. */
  readonly dropped?: DroppedActivity | undefined;
  /** The canonical lines after the segments. */
  readonly tail: readonly string[];
  readonly head: ChainHead;
  /** Records in a segment. */
  readonly segmentRecords?: number;
  /** Size of a segment's lines in bytes at which it is full with fewer records. */
  readonly segmentText?: number;
  /** Cache for segments that were read, in bytes. Default: 16 MiB. */
  readonly cacheBytes?: number;
}

/** A record of the chain with its canonical line and its hash, base64url. */
interface ChainedRecord {
  readonly record: ActivityRecord;
  readonly line: string;
  readonly hash: string;
}

/** Records of the tail to read, some microseconds each, before yielding to the event loop. */
const recordsInOneGo = 128;
/** Records to index or hash, between turns of the event loop. */
const indexStep = 256;

export class ActivityLog {
  readonly #options: ActivityLogOptions;
  readonly #segmentRecords: number;
  readonly #segmentText: number;
  readonly #reader: SegmentReader;
  readonly #tail: ActivityTail;
  #segments: readonly SegmentSummary[];
  #dropped: DroppedActivity | undefined;
  #bytes: number;
  /** Number of readers of segments that may be dropped in the meantime. */
  #readers = 0;

  constructor(options: ActivityLogOptions) {
    const { segments, tail, head, cacheBytes = 16 * 1024 * 1024 } = options;
    this.#options = options;
    this.#segmentRecords = options.segmentRecords ?? 8192;
    this.#segmentText = options.segmentText ?? 16 * 1024 * 1024;
    this.#reader = new SegmentReader({ ...options, cache: new ByteCache(cacheBytes) });
    this.#segments = segments;
    this.#bytes = bytesOfSegments(segments);
    this.#dropped = options.dropped;
    const covered = endOfSegments(segments, placeBefore(options.dropped));
    if (head.seq !== covered.seq + tail.length || (tail.length === 0 && head.hash !== toBase64Url(covered.hash))) {
      throw new KmsError(
        'corrupt',
        `the activity log ends at record ${covered.seq + tail.length}, expected ${head.seq}`,
        {
          hint: 'restore the data directory from a backup',
        },
      );
    }
    this.#tail = new ActivityTail(covered, tail, { seq: head.seq, hash: decodeHash(head.hash) });
  }

  /** The last record of the log, without staged ones. */
  get head(): ChainHead {
    const { seq, hash } = this.#tail.head;
    return { seq, hash: toBase64Url(hash) };
  }

  /** Sequence number of the last record. */
  get count(): number {
    return this.#tail.headSeq;
  }

  /** Bytes of all segments on disk. */
  get bytes(): number {
    return this.#bytes;
  }

  get segments(): readonly SegmentSummary[] {
    return this.#segments;
  }

  /** The beginning of the log that retention dropped; undefined if the first record is kept. */
  get dropped(): DroppedActivity | undefined {
    return this.#dropped;
  }

  /** Whether a reader may still need files of dropped segments. */
  get isRead(): boolean {
    return this.#readers > 0;
  }

  get stagedCount(): number {
    return this.#tail.stagedCount;
  }

  /** Assigns a record its place in the chain. Throws `invalid` for props that JSON cannot represent. */
  stage(record: ActivityInput): void {
    this.#tail.stage(record);
  }

  /** Makes the oldest `count` staged records (default: all) part of the log. */
  commitStaged(count?: number): void {
    this.#tail.commit(count);
  }

  /** Discards the newest staged records until `toCount` of them are left. */
  discardStaged(toCount = 0): void {
    this.#tail.discard(toCount);
  }

  /** Adds a record that was made durable earlier. */
  replay(record: ActivityInput): void {
    this.#needNoneStaged();
    this.#tail.replay(record);
  }

  /** The same for a record without a reporter and with no props but a key version, whose id is 30 bytes of `bytes`. */
  replayAlike(alike: Alike, createdAt: number, bytes: Uint8Array, idAt: number, keyVersion?: number): void {
    this.#needNoneStaged();
    this.#tail.replayAlike(alike, createdAt, bytes, idAt, keyVersion);
  }

  #needNoneStaged(): void {
    if (this.stagedCount > 0) throw new KmsError('internal', 'activity replayed behind staged records');
  }

  /** The newest records that match; `page.after` is the sequence number of the last record of the previous page. */
  async search(filter: ActivityFilter, page: PageRequest): Promise<Page<ActivityRecord>> {
    const prepared = prepareFilter(filter);
    await this.#indexed();
    await yieldToEventLoop();
    // Nothing changes from here to the first await: tail and segments fit together, and the tail's search continues on
    // the blocks it starts with.
    const segments = this.#segments;
    const beforeSeq = page.after ?? Number.MAX_SAFE_INTEGER;
    const found = new Found(page.limit);
    return this.#reading(async () => {
      await this.#tail.search(prepared, beforeSeq, found);
      if (!found.enough) await searchSegments(this.#reader, segments, prepared, beforeSeq, found);
      return found.page();
    });
  }

  async find(id: string): Promise<ActivityRecord | undefined> {
    await this.#indexed();
    const segments = this.#segments;
    const inTail = this.#tail.find(id);
    if (inTail) return inTail;
    return this.#reading(async () => {
      for (let at = segments.length - 1; at >= 0; at--) {
        const summary = segments[at];
        const record = summary && (await findInSegment(this.#reader, summary, id));
        if (record) return record;
      }
      return undefined;
    });
  }

  /** Keeps the segments' files while `read` runs. */
  async #reading<R>(read: () => Promise<R>): Promise<R> {
    this.#readers++;
    try {
      return await read();
    } finally {
      this.#readers--;
    }
  }

  /**
   * The records from `fromSeq`, or from the first one kept, to the current head, in chain order. Every segment on the
   * way is read and verified whole. Throws `corrupt` if the chain breaks.
   */
  async *read(fromSeq: number): AsyncGenerator<ChainedRecord> {
    this.#readers++;
    try {
      yield* this.#read(fromSeq);
    } finally {
      this.#readers--;
    }
  }

  async *#read(fromSeq: number): AsyncGenerator<ChainedRecord> {
    const end = this.#tail.headSeq;
    const kept = (this.#dropped?.seq ?? 0) + 1;
    // Segments dropped in the meantime are still read to their end.
    const known = this.#segments;
    await this.hashed();
    for (let next = Math.max(kept, fromSeq); next <= end; ) {
      // Before locating the record: a checkpoint may move it from the tail into a segment in the meantime.
      if (next % recordsInOneGo === 0) await yieldToEventLoop();
      const isClosed = next < this.#tail.firstSeq;
      const segment = isClosed ? (segmentOf(known, next) ?? segmentOf(this.#segments, next)) : undefined;
      if (segment) {
        for await (const link of readSegmentChain(this.#reader, segment)) {
          if (link.record.seq >= next && link.record.seq <= end) yield link;
        }
        next = segment.lastSeq + 1;
      } else {
        yield this.#inTail(next);
        next++;
      }
    }
  }

  /**
   * Takes over a checkpoint's segments of this log, and what it dropped before them, and removes the records that they
   * cover from the tail.
   */
  adopt(segments: readonly SegmentSummary[], dropped?: DroppedActivity): void {
    this.#tail.dropTo(endOfSegments(segments, placeBefore(dropped)));
    this.#segments = segments;
    this.#dropped = dropped;
    this.#bytes = bytesOfSegments(segments);
  }

  /** The same for the newest segments; known ones that were not dropped stay. */
  extend(newest: readonly SegmentSummary[], dropped?: DroppedActivity): void {
    const known = this.#segments.at(-1)?.lastSeq ?? 0;
    const all = [...this.#segments, ...newest.filter(({ firstSeq }) => firstSeq > known)];
    const from = dropped?.seq ?? 0;
    this.adopt(from === 0 ? all : all.filter(({ firstSeq }) => firstSeq > from), dropped);
  }

  /**
   * The part of the log that would go with its first segments, if all their records are older than `before` and none
   * comes after record `upTo`. Undefined if no further segment may go.
   */
  droppable(before: number, upTo: number): DroppedActivity | undefined {
    const may = ({ to, lastSeq }: SegmentSummary): boolean => to < before && lastSeq <= upTo;
    const dropped = afterDropping(this.#segments, this.#dropped, may);
    return dropped === this.#dropped ? undefined : dropped;
  }

  /** Drops the segments up to record `seq`; their files stay. Only for a checkpoint, on its own copy of the log. */
  drop(seq: number): void {
    const dropped = afterDropping(this.#segments, this.#dropped, ({ lastSeq }) => lastSeq <= seq);
    this.extend([], dropped);
  }

  /**
   * Writes every full run of the tail as a segment and returns all segments. Only for a checkpoint, on its own copy of
   * the log.
   */
  async roll(): Promise<readonly SegmentSummary[]> {
    if (this.stagedCount > 0) throw new KmsError('internal', 'a checkpoint of staged activity');
    const { files, dir, keys, uid } = this.#options;
    for (let count = this.#fullRun(); count !== undefined; count = this.#fullRun()) {
      const segment = new SegmentMaker(this.#tail.before, count);
      this.#tail.addTo(segment, count);
      const { summary, bytes } = segment.finish(keys, uid);
      await files.replace(segmentPath(dir, summary.file), bytes);
      this.extend([summary], this.#dropped);
    }
    return this.#segments;
  }

  /** The canonical lines of the log that no segment covers. */
  tailLines(): string[] {
    return this.#tail.lines();
  }

  /** The number of the tail's oldest lines that fill a segment; undefined if they do not. */
  #fullRun(): number | undefined {
    return this.#tail.runOf(this.#segmentRecords, this.#segmentText);
  }

  #inTail(seq: number): ChainedRecord {
    const line = this.#tail.lineOf(seq) ?? '';
    const record = parseActivityLine(line);
    if (!record) throw new KmsError('corrupt', `activity record ${seq} is not readable`);
    return { record, line, hash: toBase64Url(this.#tail.hashOf(seq)) };
  }

  /** Waits until all records are hashed, so that a later use of the hashes need not block the event loop. */
  async hashed(): Promise<void> {
    while (this.#tail.hashSome(indexStep)) await setImmediate();
  }

  /** Waits until records from the disk can be searched. */
  async #indexed(): Promise<void> {
    while (this.#tail.indexSome(indexStep)) await setImmediate();
  }
}

/** Opens the log of a snapshot. Throws `corrupt` if its parts do not fit together. */
export function openActivityLog(options: ActivityLogOptions): ActivityLog {
  return new ActivityLog(options);
}
