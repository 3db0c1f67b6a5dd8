// The bytes of a segment file: a clear header, then sealed parts (root, blocks, pages of postings). Each part is bound by
// associated data to the header, to its kind and to its number, so that no part can stand anywhere else.
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { openXChaCha, sealXChaCha } from '../../crypto/aead.ts';
import { concatBytes, equalBytes } from '../../crypto/bytes.ts';
import { utf8 } from '../../crypto/encoding.ts';
import { hmacSha256 } from '../../crypto/hash.ts';
import { hkdfSha256 } from '../../crypto/hkdf.ts';

export const headerLength = 52;
const nonceLength = 24;
const tagLength = 16;
/** A little more than the ordinary block. */
const inflateChunk = 32 * 1024;
const magic = utf8('KMS-ACTV');
const formatVersion = 1;
const partKinds = { root: 1, block: 2, page: 3 } as const;

export type PartKind = keyof typeof partKinds;

/** The keys of a tenant as the log needs them. */
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

/** The header, or in words what is wrong with it. */
export function decodeHeader(bytes: Uint8Array): SegmentHeader | string {
  if (bytes.length < headerLength) return 'is cut short';
  if (!equalBytes(bytes.subarray(0, 8), magic)) return 'is no activity segment';
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

export function compressPart(part: Uint8Array): Uint8Array {
  return zstdCompressSync(part);
}

/** Bytes that a compressed part takes in the file. */
export function sealedLength(compressed: Uint8Array): number {
  return compressed.length + nonceLength + tagLength;
}

/**
 * Seals compressed parts under the nonce HMAC(associated data || part): a checkpoint that is repeated after a crash writes the same bytes
 * again, and two texts never meet one nonce, even when an old backup was put back.
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

/** The compressed part, or undefined when any byte of it or of the header is another. */
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

/** The part; its buffer may be larger than it is. */
export function inflatePart(compressed: Uint8Array): Uint8Array {
  return zstdDecompressSync(compressed, { chunkSize: inflateChunk });
}
