// A segment file of the activity log: a clear header, then sealed parts (root, blocks, pages of postings, origins).
// Associated data bind each part to the header, its kind and its number, so that no part can stand anywhere else. Also
// checks the snapshot's list of segments: they follow each other without gap or break.
import { openXChaCha, sealXChaCha } from '../../crypto/aead.ts';
import { concatBytes, equalBytes, fromBase64Url, fromUtf8, toBase64Url, utf8 } from '../../crypto/bytes.ts';
import { hmacSha256 } from '../../crypto/fast-hash.ts';
import { hkdfSha256 } from '../../crypto/hash.ts';
import { KmsError, reasonOf, systemCode } from '../../errors.ts';
import { isCount, isJsonObject, jsonOf } from '../../model/json.ts';
import type { SegmentSummary } from '../port.ts';
import { type ChainPlace, hashLength } from './chain.ts';
import { inflatePart } from './compression.ts';

export const headerLength = 52;
const nonceLength = 24;
const tagLength = 16;
const magic = utf8('KMS-ACTV');
export const formatVersion = 1;
const partKinds = { root: 1, block: 2, page: 3, origins: 4 } as const;

export type PartKind = keyof typeof partKinds;

/** The tenant's keys, as the log needs them. */
export interface ActivityKeys {
  readonly epoch: number;
  key(label: 'activity', epoch?: number): Uint8Array;
}

export interface SegmentHeader {
  readonly epoch: number;
  /** The store's 16 bytes. */
  readonly uid: Uint8Array;
  readonly firstSeq: number;
  readonly records: number;
  readonly blocks: number;
  readonly pages: number;
  /** Bytes of the sealed root, which follows the header. */
  readonly rootLength: number;
}

export interface SegmentBlock {
  /** Chain hash before the block's first line. */
  readonly prevHash: Uint8Array;
  /** The line of a record, from 0 on. Built on demand: a search looks at only a few. */
  readonly line: (at: number) => string;
  readonly records: number;
}

/** The layout of a segment's file; columns with one entry a block, then one a page. */
export interface SegmentRoot {
  /** The segment's last chain hash; a file from another history has a different one. */
  readonly hash: string;
  readonly records: readonly number[];
  readonly lengths: readonly number[];
  readonly from: readonly number[];
  readonly to: readonly number[];
  readonly idFrom: readonly string[];
  readonly idTo: readonly string[];
  readonly pageTerms: readonly number[];
  readonly pageLengths: readonly number[];
  /** Sealed bytes of the recurring texts; 0 if there are none. */
  readonly originsLength: number;
}

/** The part of an id that blocks are found by: of a ULID, the prefix, the time and two more characters. */
export function idMark(id: string): string {
  return id.slice(0, 17);
}

export function segmentFile(firstSeq: number): string {
  return `activity-${String(firstSeq).padStart(12, '0')}.kms`;
}

/** The path of a segment's file in the data directory. */
export function segmentPath(dir: string, file: string): string {
  return dir === '' ? file : `${dir}/${file}`;
}

/** magic 8 | version u16 | epoch u16 | uid 16 | first seq u64 | records, blocks, pages, root length u32 each. */
export function encodeHeader(header: SegmentHeader): Uint8Array {
  const bytes = new Uint8Array(headerLength);
  const view = new DataView(bytes.buffer);
  bytes.set(magic);
  view.setUint16(8, formatVersion);
  view.setUint16(10, header.epoch);
  bytes.set(header.uid, 12);
  view.setBigUint64(28, BigInt(header.firstSeq));
  view.setUint32(36, header.records);
  view.setUint32(40, header.blocks);
  view.setUint32(44, header.pages);
  view.setUint32(48, header.rootLength);
  return bytes;
}

/** The header, or a description of its fault. */
export function decodeHeader(bytes: Uint8Array): SegmentHeader | string {
  if (bytes.length < headerLength) return 'is cut short';
  if (!equalBytes(bytes.subarray(0, 8), magic)) return 'is not an activity segment';
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const version = view.getUint16(8);
  if (version !== formatVersion) return `has format version ${version}, expected ${formatVersion}`;
  return {
    epoch: view.getUint16(10),
    uid: new Uint8Array(bytes.subarray(12, 28)),
    firstSeq: Number(view.getBigUint64(28)),
    records: view.getUint32(36),
    blocks: view.getUint32(40),
    pages: view.getUint32(44),
    rootLength: view.getUint32(48),
  };
}

function associated(header: Uint8Array, kind: PartKind, index: number): Uint8Array {
  const place = new Uint8Array(5);
  place[0] = partKinds[kind];
  new DataView(place.buffer).setUint32(1, index);
  return concatBytes(header, place);
}

/** Bytes that a compressed part takes in the file. */
export function sealedLength(compressed: Uint8Array): number {
  return compressed.length + nonceLength + tagLength;
}

/**
 * Seals compressed parts under the nonce HMAC(associated data || part): a checkpoint repeated after a crash writes the
 * same bytes again, and no nonce is ever used for two texts, even after an old backup was restored.
 */
export function partSealer(
  key: Uint8Array,
): (header: Uint8Array, kind: PartKind, index: number, compressed: Uint8Array) => Uint8Array {
  const nonceOf = hmacSha256(hkdfSha256(key, 'kms/activity/v1/nonce', 32));
  return (header, kind, index, compressed) => {
    const place = associated(header, kind, index);
    const nonce = nonceOf(concatBytes(place, compressed)).subarray(0, nonceLength);
    return concatBytes(nonce, sealXChaCha(key, nonce, compressed, place));
  };
}

/** The compressed part; undefined if any byte of it or of the header was changed. */
export function openPart(
  key: Uint8Array,
  header: Uint8Array,
  kind: PartKind,
  index: number,
  sealed: Uint8Array,
): Uint8Array | undefined {
  const nonce = sealed.subarray(0, nonceLength);
  if (nonce.length < nonceLength) return undefined;
  return openXChaCha(key, nonce, sealed.subarray(nonceLength), associated(header, kind, index));
}

/** The key epoch in the header, given the first bytes of a segment's file. Throws `corrupt`. */
export function segmentEpoch(start: Uint8Array, path: string): number {
  const header = decodeHeader(start);
  if (typeof header === 'string') throw new SegmentFault(path, header);
  return header.epoch;
}

/** The root in its compressed part. Throws `corrupt` for anything that no segment has: its lengths are read. */
export function readRoot(part: Uint8Array, path: string): SegmentRoot {
  const root = jsonOf(fromUtf8(inflatePart(part)) ?? '');
  if (isRoot(root)) return root;
  throw new SegmentFault(path, 'has a root that kms does not write');
}

function isRoot(value: unknown): value is SegmentRoot {
  if (!isJsonObject(value) || typeof value.hash !== 'string' || !isCount(value.originsLength)) return false;
  const { records, lengths, from, to, idFrom, idTo, pageTerms, pageLengths } = value;
  const every = (list: unknown, is: (each: unknown) => boolean): boolean => Array.isArray(list) && list.every(is);
  const isText = (each: unknown): boolean => typeof each === 'string';
  return (
    [records, lengths, pageLengths].every((list) => every(list, isCount)) &&
    [from, to, pageTerms].every((list) => every(list, Number.isSafeInteger)) &&
    [idFrom, idTo].every((list) => every(list, isText))
  );
}

/** Bytes per yielded piece, at least. */
const pieceLength = 256 * 1024;

/**
 * The bytes of the segment's new file, under the newest key, piece by piece. `hash` is the chain hash after its last
 * record. Throws `corrupt`.
 */
export function* resealedSegment(
  bytes: Uint8Array,
  keys: ActivityKeys,
  path: string,
  hash: string,
): Generator<Uint8Array> {
  const header = decodeHeader(bytes);
  if (typeof header === 'string') throw new SegmentFault(path, header);
  const before = bytes.subarray(0, headerLength);
  const after = encodeHeader({ ...header, epoch: keys.epoch });
  const from = keys.key('activity', header.epoch);
  const seal = partSealer(keys.key('activity'));

  function open(kind: PartKind, index: number, start: number, length: number): Uint8Array {
    const part = openPart(from, before, kind, index, bytes.subarray(start, start + length));
    if (!part) throw new SegmentFault(path, `does not verify: ${kind} ${index} was changed or cut`);
    return part;
  }

  const rootPart = open('root', 0, headerLength, header.rootLength);
  const root = readRoot(rootPart, path);
  if (root.hash !== hash) throw new SegmentFault(path, 'is from another history than the snapshot');
  let piece = [after, seal(after, 'root', 0, rootPart)];
  let filled = 0;
  let offset = headerLength + header.rootLength;
  for (const [kind, lengths] of [
    ['block', root.lengths],
    ['page', root.pageLengths],
    ['origins', root.originsLength ? [root.originsLength] : []],
  ] as const) {
    for (const [index, length] of lengths.entries()) {
      piece.push(seal(after, kind, index, open(kind, index, offset, length)));
      offset += length;
      filled += length;
      if (filled < pieceLength) continue;
      yield concatBytes(...piece);
      piece = [];
      filled = 0;
    }
  }
  if (offset !== bytes.length) throw new SegmentFault(path, `has ${bytes.length} bytes, expected ${offset}`);
  if (piece.length > 0) yield concatBytes(...piece);
}

/** A fault of one segment's file: its path and the problem. The rest of the log can still be read. */
export class SegmentFault extends KmsError {
  /** Path within the data directory. */
  readonly path: string;
  readonly problem: string;

  /** `code`: whether it was read and does not verify, or could not be read. */
  constructor(path: string, problem: string, cause?: unknown, code: 'corrupt' | 'unavailable' = 'corrupt') {
    super(code, `activity segment ${path} ${problem}`, {
      hint: `put ${path} back from a backup of this data directory; without it the records in it are lost`,
      cause,
    });
    this.path = path;
    this.problem = problem;
  }
}

/** Shortages of the process or the system, which say nothing about the file. */
const shortages: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN', 'EBUSY']);

/** The error for a failed read of the file at `path`, naming it. */
export function readError(path: string, cause: unknown): unknown {
  // The file port throws this if the path is not a file.
  if (cause instanceof KmsError && cause.code === 'corrupt') return new SegmentFault(path, 'is not a file', cause);
  const code = systemCode(cause);
  if (cause instanceof KmsError || code === undefined) return cause;
  if (code === 'ENOENT' || code === 'ENOTDIR') return new SegmentFault(path, 'is missing', cause);
  if (code === 'EISDIR' || code === 'ELOOP') return new SegmentFault(path, 'is not a file', cause);
  if (!shortages.has(code)) {
    return new SegmentFault(path, `cannot be read: ${reasonOf(cause)}`, cause, 'unavailable');
  }
  return new KmsError('unavailable', `activity segment ${path} cannot be read now: ${reasonOf(cause)}`, {
    hint: 'try again',
    cause,
  });
}

/** The hash of a base64url text. Throws `corrupt`. */
export function decodeHash(text: string): Uint8Array {
  const hash = fromBase64Url(text);
  if (hash?.length !== hashLength) throw new KmsError('corrupt', 'a hash of the activity log is not readable');
  return hash;
}

/**
 * The position of the last record in the segments; `start` is the position before the first. Throws `corrupt` if they
 * do not follow it and each other.
 */
export function endOfSegments(segments: readonly SegmentSummary[], start: ChainPlace): ChainPlace {
  let { seq } = start;
  let hash = toBase64Url(start.hash);
  for (const segment of segments) {
    if (segment.firstSeq !== seq + 1 || segment.prevHash !== hash || segment.lastSeq < segment.firstSeq) {
      throw new KmsError('corrupt', `activity segment ${segment.file} does not follow record ${seq}`, {
        hint: 'restore the data directory from a backup',
      });
    }
    seq = segment.lastSeq;
    hash = segment.hash;
  }
  return { seq, hash: decodeHash(hash) };
}

/** The segment that holds a record, if one does. */
export function segmentOf(segments: readonly SegmentSummary[], seq: number): SegmentSummary | undefined {
  let low = 0;
  let high = segments.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((segments[middle]?.lastSeq ?? 0) < seq) low = middle + 1;
    else high = middle;
  }
  return segments[low];
}

/** Total size of the segments on disk. */
export function bytesOfSegments(segments: readonly SegmentSummary[]): number {
  return segments.reduce((sum, { bytes }) => sum + bytes, 0);
}
