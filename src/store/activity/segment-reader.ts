// Reads segment files: their parts, through a cache bounded in bytes, or whole files as links of the chain. All that it
// returns has been verified. A part that does not verify is a fault that names the file, and so is a missing file.
import { setImmediate } from 'node:timers/promises';
import { equalBytes, toBase64Url } from '../../crypto/bytes.ts';
import { KmsError } from '../../errors.ts';
import { yieldToEventLoop } from '../event-loop.ts';
import type { WholeFiles } from '../files.ts';
import type { ActivityRecord, SegmentSummary } from '../port.ts';
import { chainHash } from './chain.ts';
import { decodeBlock, decodeTexts, type SegmentTexts } from './columns.ts';
import { inflatePart } from './compression.ts';
import type { Origins } from './origins.ts';
import { unpackPage } from './postings.ts';
import { parseActivityLine } from './record.ts';
import {
  type ActivityKeys,
  decodeHash,
  decodeHeader,
  headerLength,
  openPart,
  type PartKind,
  readError,
  readRoot,
  type SegmentBlock,
  SegmentFault,
  type SegmentHeader,
  type SegmentRoot,
  segmentPath,
} from './segment.ts';

/** Enough for the header and the root of an ordinary segment in one read. */
const firstRead = 12 * 1024;
/** Pages opened before yielding to the event loop. */
const pagesATurn = 8;

interface Entry {
  readonly value: unknown;
  readonly cost: number;
}

/** A cache of segment parts within a budget of bytes; evicts the least recently used first. */
export class ByteCache {
  readonly #budget: number;
  readonly #entries = new Map<string, Entry>();
  #used = 0;

  constructor(budget: number) {
    this.#budget = budget;
  }

  get used(): number {
    return this.#used;
  }

  /** The value under `name`; the caller knows its type from the name. */
  get<T>(name: string): T | undefined {
    const entry = this.#entries.get(name);
    if (!entry) return undefined;
    // A Map keeps insertion order, so the first entry is the least recently used.
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    return entry.value as T;
  }

  set(name: string, value: unknown, cost: number): void {
    this.#drop(name);
    if (cost > this.#budget) return;
    this.#entries.set(name, { value, cost });
    this.#used += cost;
    for (const oldest of this.#entries.keys()) {
      if (this.#used <= this.#budget) return;
      this.#drop(oldest);
    }
  }

  delete(name: string): void {
    this.#drop(name);
  }

  #drop(name: string): void {
    const entry = this.#entries.get(name);
    if (!entry) return;
    this.#entries.delete(name);
    this.#used -= entry.cost;
  }
}

function costOf(texts: SegmentTexts): number {
  const all: readonly Origins[] = Object.values(texts);
  return all.reduce((sum, { numbers, addresses }) => sum + numbers.byteLength + addresses.length * 48, 256);
}

/** A segment whose header and root have been read. */
export interface OpenSegment {
  readonly summary: SegmentSummary;
  readonly header: Uint8Array;
  readonly epoch: number;
  /** The key of that epoch, held here so that a read under way can finish after the epoch is retired. */
  readonly key: Uint8Array;
  readonly root: SegmentRoot;
  /** Position of each block's first record, then the number of records. */
  readonly starts: readonly number[];
  /** Offset of each block in the file, then of each page, then of the origins, then the end of the file. */
  readonly offsets: readonly number[];
}

interface SegmentSource {
  readonly files: Pick<WholeFiles, 'size' | 'read' | 'readAt'>;
  readonly dir: string;
  readonly keys: ActivityKeys;
  readonly uid: Uint8Array;
  readonly cache: ByteCache;
}

function runningSum(first: number, ...columns: readonly (readonly number[])[]): number[] {
  const sums = [first];
  let sum = first;
  for (const value of columns.flat()) {
    sum += value;
    sums.push(sum);
  }
  return sums;
}

export class SegmentReader {
  readonly #source: SegmentSource;

  constructor(source: SegmentSource) {
    this.#source = source;
  }

  path(summary: SegmentSummary): string {
    return segmentPath(this.#source.dir, summary.file);
  }

  /** Checks that the file exists, has the expected length and header, and is under a key that is held. */
  async look(summary: SegmentSummary): Promise<void> {
    const { files } = this.#source;
    const path = this.path(summary);
    this.#length(summary, await this.#io(path, () => files.size(path)));
    const start = await this.#io(path, () => files.readAt(path, 0, headerLength));
    this.#keyOf(path, this.#header(summary, start).epoch);
  }

  async open(summary: SegmentSummary): Promise<OpenSegment> {
    const { cache } = this.#source;
    const known = cache.get<OpenSegment>(summary.file);
    if (known) return known;
    const { files } = this.#source;
    const path = this.path(summary);
    let start = await this.#io(path, () => files.readAt(path, 0, Math.min(firstRead, summary.bytes)));
    const header = this.#header(summary, start);
    const rootEnd = headerLength + header.rootLength;
    if (rootEnd > summary.bytes) throw new SegmentFault(path, 'is cut short');
    if (rootEnd > start.length) start = await this.#io(path, () => files.readAt(path, 0, rootEnd));
    // Decoded again from the last read: the file may have been replaced between the two.
    const opened = this.#root(summary, this.#header(summary, start), start);
    cache.set(summary.file, opened, 256 + opened.root.records.length * 160 + opened.root.pageTerms.length * 24);
    return opened;
  }

  /** Blocks are cached compressed: five times as many fit, and decompressing one takes a few dozen microseconds. */
  block(segment: OpenSegment, index: number): Promise<SegmentBlock> {
    return this.#asItIs(segment, (current) => this.#readBlock(current, index));
  }

  page(segment: OpenSegment, index: number): Promise<Uint8Array> {
    return this.#asItIs(segment, (current) => this.#readPage(current, index));
  }

  /** Reads a part. If the segment was resealed under the newest key since it was opened, opens it again first. */
  async #asItIs<R>(segment: OpenSegment, read: (segment: OpenSegment) => Promise<R>): Promise<R> {
    try {
      return await read(segment);
    } catch (error) {
      const { keys, cache } = this.#source;
      if (segment.epoch === keys.epoch || !(error instanceof KmsError) || error.code !== 'corrupt') throw error;
      const { summary } = segment;
      if (cache.get<OpenSegment>(summary.file)?.epoch === segment.epoch) cache.delete(summary.file);
      const current = await this.open(summary);
      if (current.epoch === segment.epoch) throw error;
      return read(current);
    }
  }

  /** The origins of the segment's records; undefined if none has an address. */
  async origins(segment: OpenSegment): Promise<Origins | undefined> {
    return (await this.#asItIs(segment, (current) => this.#readTexts(current)))?.addresses;
  }

  async #readBlock(segment: OpenSegment, index: number): Promise<SegmentBlock> {
    const { cache } = this.#source;
    const name = `${segment.summary.file} block ${index}`;
    let part = cache.get<Uint8Array>(name);
    if (!part) {
      part = this.#open(segment, 'block', index, await this.#part(segment, index));
      cache.set(name, part, part.length + 256);
    }
    return this.#block(segment, index, part, await this.#readTexts(segment));
  }

  async #readTexts(segment: OpenSegment): Promise<SegmentTexts | undefined> {
    const { records, pageLengths, originsLength } = segment.root;
    if (originsLength === 0) return undefined;
    const { cache } = this.#source;
    const name = `${segment.summary.file} origins`;
    const known = cache.get<SegmentTexts>(name);
    if (known) return known;
    const texts = this.#texts(segment, await this.#part(segment, records.length + pageLengths.length));
    cache.set(name, texts, costOf(texts));
    return texts;
  }

  #texts(segment: OpenSegment, sealed: Uint8Array): SegmentTexts {
    const part = inflatePart(this.#open(segment, 'origins', 0, sealed));
    const records = segment.starts.at(-1) ?? 0;
    const texts = decodeTexts(part, records);
    if (!texts) throw new SegmentFault(this.path(segment.summary), 'has bad origins');
    return texts;
  }

  async #readPage(segment: OpenSegment, index: number): Promise<Uint8Array> {
    const { cache } = this.#source;
    const name = `${segment.summary.file} page ${index}`;
    const known = cache.get<Uint8Array>(name);
    if (known) return known;
    const part = this.#open(segment, 'page', index, await this.#part(segment, segment.root.records.length + index));
    const page = unpackPage(inflatePart(part));
    cache.set(name, page, page.length + 256);
    return page;
  }

  /** Reads and verifies a whole file, then yields its blocks one by one. */
  async *blocks(summary: SegmentSummary): AsyncGenerator<SegmentBlock> {
    const path = this.path(summary);
    this.#length(summary, await this.#io(path, () => this.#source.files.size(path)));
    const bytes = await this.#io(path, () => this.#source.files.read(path, summary.bytes));
    this.#length(summary, bytes.length);
    const header = this.#header(summary, bytes);
    const segment = this.#root(summary, header, bytes);
    const part = (index: number): Uint8Array => bytes.subarray(segment.offsets[index], segment.offsets[index + 1]);
    for (let index = 0; index < header.pages; index++) {
      this.#open(segment, 'page', index, part(header.blocks + index));
      if (index % pagesATurn === pagesATurn - 1) await setImmediate();
    }
    const texts = segment.root.originsLength ? this.#texts(segment, part(header.blocks + header.pages)) : undefined;
    for (let index = 0; index < header.blocks; index++)
      yield this.#block(segment, index, this.#open(segment, 'block', index, part(index)), texts);
  }

  #length(summary: SegmentSummary, length: number): void {
    if (length === summary.bytes) return;
    throw new SegmentFault(this.path(summary), `has ${length} bytes, expected ${summary.bytes}`);
  }

  #header(summary: SegmentSummary, bytes: Uint8Array): SegmentHeader {
    const path = this.path(summary);
    const header = decodeHeader(bytes);
    if (typeof header === 'string') throw new SegmentFault(path, header);
    if (!equalBytes(header.uid, this.#source.uid)) throw new SegmentFault(path, 'belongs to another store');
    const records = summary.lastSeq - summary.firstSeq + 1;
    if (header.firstSeq !== summary.firstSeq || header.records !== records) {
      throw new SegmentFault(path, 'does not hold the records that it should');
    }
    return header;
  }

  #root(summary: SegmentSummary, header: SegmentHeader, bytes: Uint8Array): OpenSegment {
    const path = this.path(summary);
    const clear = new Uint8Array(bytes.subarray(0, headerLength));
    const end = headerLength + header.rootLength;
    const key = this.#keyOf(path, header.epoch);
    const part = openedPart(path, key, clear, 'root', 0, bytes.subarray(headerLength, end));
    const root = readRoot(part, path);
    if (root.hash !== summary.hash) throw new SegmentFault(path, 'is from another history than the snapshot');
    const offsets = runningSum(end, root.lengths, root.pageLengths, [root.originsLength]);
    if (offsets.at(-1) !== summary.bytes) throw new SegmentFault(path, 'is cut short');
    return { summary, header: clear, epoch: header.epoch, key, root, starts: runningSum(0, root.records), offsets };
  }

  #block(segment: OpenSegment, index: number, part: Uint8Array, texts: SegmentTexts | undefined): SegmentBlock {
    const first = segment.starts[index] ?? 0;
    const place = { first, seq: segment.summary.firstSeq + first, records: segment.root.records[index] ?? 0 };
    const decoded = texts && decodeBlock(part, place, texts);
    if (decoded) return decoded;
    throw new SegmentFault(this.path(segment.summary), `has a bad block ${index}`);
  }

  async #part(segment: OpenSegment, index: number): Promise<Uint8Array> {
    const path = this.path(segment.summary);
    const offset = segment.offsets[index] ?? 0;
    const length = (segment.offsets[index + 1] ?? 0) - offset;
    return this.#io(path, () => this.#source.files.readAt(path, offset, length));
  }

  #open(segment: OpenSegment, kind: PartKind, index: number, sealed: Uint8Array): Uint8Array {
    return openedPart(this.path(segment.summary), segment.key, segment.header, kind, index, sealed);
  }

  #keyOf(path: string, epoch: number): Uint8Array {
    try {
      return this.#source.keys.key('activity', epoch);
    } catch (cause) {
      throw new SegmentFault(path, `is under the tenant key of epoch ${epoch}, which is not held`, cause);
    }
  }

  async #io<T>(path: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      throw readError(path, cause);
    }
  }
}

function openedPart(
  path: string,
  key: Uint8Array,
  header: Uint8Array,
  kind: PartKind,
  index: number,
  sealed: Uint8Array,
): Uint8Array {
  const part = openPart(key, header, kind, index, sealed);
  if (!part) throw new SegmentFault(path, `does not verify: ${kind} ${index} was changed or cut`);
  return part;
}

/**
 * The records of a segment in chain order, each hash recomputed and compared with any stored one. Throws `corrupt` if
 * the file does not verify or the chain breaks.
 */
export async function* readSegmentChain(
  reader: SegmentReader,
  summary: SegmentSummary,
): AsyncGenerator<{ record: ActivityRecord; line: string; hash: string }> {
  const path = reader.path(summary);
  let seq = summary.firstSeq;
  let hash = decodeHash(summary.prevHash);
  for await (const block of reader.blocks(summary)) {
    if (!equalBytes(block.prevHash, hash)) throw new SegmentFault(path, `breaks the hash chain before record ${seq}`);
    for (let at = 0; at < block.records; at++) {
      const line = block.line(at);
      const record = parseActivityLine(line);
      if (record?.seq !== seq) throw new SegmentFault(path, `has another record where record ${seq} should be`);
      hash = chainHash(hash, line);
      yield { record, line, hash: toBase64Url(hash) };
      seq++;
    }
    await yieldToEventLoop();
  }
  if (seq !== summary.lastSeq + 1 || !equalBytes(hash, decodeHash(summary.hash))) {
    throw new SegmentFault(path, `breaks the hash chain at record ${seq - 1}`);
  }
}
