// Reads segment files part by part, through the cache. Everything that comes out of here has been verified; what does not
// verify is a `corrupt` error that names the file.
import { equalBytes } from '../../crypto/bytes.ts';
import { fromUtf8 } from '../../crypto/encoding.ts';
import { KmsError } from '../../errors.ts';
import type { Files } from '../files.ts';
import type { ByteCache } from './byte-cache.ts';
import { hashLength } from './chain.ts';
import {
  type ActivityKeys,
  decodeHeader,
  headerLength,
  inflatePart,
  openPart,
  type PartKind,
  type SegmentHeader,
} from './segment-format.ts';
import type { SegmentRoot, SegmentSummary } from './segment-root.ts';

/** Enough for the header and the root of an ordinary segment in one read. */
const firstRead = 12 * 1024;

export interface SegmentBlock {
  /** Chain hash before the block's first line. */
  readonly prevHash: Uint8Array;
  readonly lines: readonly string[];
}

/** A segment whose header and root have been read. */
export interface OpenSegment {
  readonly summary: SegmentSummary;
  readonly header: Uint8Array;
  readonly epoch: number;
  /** Of that epoch: held here, so that whoever is in the middle of reading gets to the end when the epoch is retired. */
  readonly key: Uint8Array;
  readonly root: SegmentRoot;
  /** Position of each block's first record, then the number of records. */
  readonly starts: readonly number[];
  /** Where each block starts in the file, then each page, then the end of the file. */
  readonly offsets: readonly number[];
}

export interface SegmentSource {
  readonly files: Files;
  readonly dir: string;
  readonly keys: ActivityKeys;
  readonly uid: Uint8Array;
  readonly cache: ByteCache;
}

/** The name of a segment's file in the data directory. */
export function segmentPath(dir: string, file: string): string {
  return dir === '' ? file : `${dir}/${file}`;
}

export function corruptSegment(path: string, problem: string, cause?: unknown): KmsError {
  return new KmsError('corrupt', `activity segment ${path} ${problem}`, {
    hint: `put ${path} back from a backup of this data directory; without it the records in it are lost`,
    cause,
  });
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
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

  async open(summary: SegmentSummary): Promise<OpenSegment> {
    const { cache } = this.#source;
    const known = cache.get<OpenSegment>(summary.file);
    if (known) return known;
    const { files } = this.#source;
    const path = this.path(summary);
    let start = await this.#io(path, () => files.readAt(path, 0, Math.min(firstRead, summary.bytes)));
    const header = this.#header(summary, start);
    const rootEnd = headerLength + header.rootLength;
    if (rootEnd > summary.bytes) throw corruptSegment(path, 'is cut short');
    if (rootEnd > start.length) start = await this.#io(path, () => files.readAt(path, 0, rootEnd));
    // Read anew from what was read last: between the two the file may have been replaced.
    const opened = this.#root(summary, this.#header(summary, start), start);
    cache.set(summary.file, opened, 256 + opened.root.records.length * 160 + opened.root.pageTerms.length * 24);
    return opened;
  }

  /** Blocks are kept compressed: five times as many fit, and unpacking one takes a few dozen microseconds. */
  block(segment: OpenSegment, index: number): Promise<SegmentBlock> {
    return this.#asItIs(segment, (current) => this.#readBlock(current, index));
  }

  page(segment: OpenSegment, index: number): Promise<Uint8Array> {
    return this.#asItIs(segment, (current) => this.#readPage(current, index));
  }

  /** A segment of an old key may have been replaced by one of the newest since it was opened: then it is opened again. */
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

  async #readBlock(segment: OpenSegment, index: number): Promise<SegmentBlock> {
    const { cache } = this.#source;
    const name = `${segment.summary.file} block ${index}`;
    let part = cache.get<Uint8Array>(name);
    if (!part) {
      part = this.#open(segment, 'block', index, await this.#part(segment, index));
      cache.set(name, part, part.length + 256);
    }
    return this.#block(segment, index, part);
  }

  async #readPage(segment: OpenSegment, index: number): Promise<Uint8Array> {
    const { cache } = this.#source;
    const name = `${segment.summary.file} page ${index}`;
    const known = cache.get<Uint8Array>(name);
    if (known) return known;
    const part = this.#open(segment, 'page', index, await this.#part(segment, segment.root.records.length + index));
    // A copy: the buffer that zlib gives is larger than the page.
    const page = new Uint8Array(inflatePart(part));
    cache.set(name, page, page.length + 256);
    return page;
  }

  /** Reads and verifies a whole file, then gives its blocks one by one. */
  async *blocks(summary: SegmentSummary): AsyncGenerator<SegmentBlock> {
    const path = this.path(summary);
    const bytes = await this.#io(path, () => this.#source.files.read(path));
    if (bytes.length !== summary.bytes)
      throw corruptSegment(path, `has ${bytes.length} bytes, expected ${summary.bytes}`);
    const header = this.#header(summary, bytes);
    const segment = this.#root(summary, header, bytes);
    const part = (index: number): Uint8Array => bytes.subarray(segment.offsets[index], segment.offsets[index + 1]);
    for (let index = 0; index < header.pages; index++) this.#open(segment, 'page', index, part(header.blocks + index));
    for (let index = 0; index < header.blocks; index++)
      yield this.#block(segment, index, this.#open(segment, 'block', index, part(index)));
  }

  #header(summary: SegmentSummary, bytes: Uint8Array): SegmentHeader {
    const path = this.path(summary);
    const header = decodeHeader(bytes);
    if (typeof header === 'string') throw corruptSegment(path, header);
    if (!equalBytes(header.uid, this.#source.uid)) throw corruptSegment(path, 'belongs to another store');
    const records = summary.lastSeq - summary.firstSeq + 1;
    if (header.firstSeq !== summary.firstSeq || header.records !== records) {
      throw corruptSegment(path, 'does not hold the records that it should');
    }
    return header;
  }

  #root(summary: SegmentSummary, header: SegmentHeader, bytes: Uint8Array): OpenSegment {
    const path = this.path(summary);
    const clear = new Uint8Array(bytes.subarray(0, headerLength));
    const end = headerLength + header.rootLength;
    const key = this.#keyOf(path, header.epoch);
    const part = openedPart(path, key, clear, 'root', 0, bytes.subarray(headerLength, end));
    const root: SegmentRoot = JSON.parse(fromUtf8(inflatePart(part)) ?? 'null');
    if (root.hash !== summary.hash) throw corruptSegment(path, 'is from another history than the snapshot');
    const offsets = runningSum(end, root.lengths, root.pageLengths);
    if (offsets.at(-1) !== summary.bytes) throw corruptSegment(path, 'is cut short');
    return { summary, header: clear, epoch: header.epoch, key, root, starts: runningSum(0, root.records), offsets };
  }

  #block(segment: OpenSegment, index: number, part: Uint8Array): SegmentBlock {
    const block = inflatePart(part);
    const lines = fromUtf8(block.subarray(hashLength))?.split('\n');
    if (!lines || lines.length !== segment.root.records[index])
      throw corruptSegment(this.path(segment.summary), `has a bad block ${index}`);
    return { prevHash: new Uint8Array(block.subarray(0, hashLength)), lines };
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
      throw corruptSegment(path, `is sealed under the tenant key of epoch ${epoch}, which is not held`, cause);
    }
  }

  async #io<T>(path: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      if (isMissing(cause)) throw corruptSegment(path, 'is missing', cause);
      throw cause;
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
  if (!part) throw corruptSegment(path, `does not verify: ${kind} ${index} was changed or cut`);
  return part;
}
