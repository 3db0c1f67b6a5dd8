// The bytes of a log file: a header authenticated by its own seal, then one sealed record per group of transactions;
// and the traces that a crash may leave at the end. Associated data bind each record to its store, file, offset and
// sequence, and to the tag before it.
//
//   file   = header 64 | nonce 24 | tag 16 | record*
//   record = length u32 | check 8 | nonce 24 | ciphertext | tag 16      (length counts from the nonce on)
//
// One append is under way at a time and the next starts after its fsync, so only the last record of the last file can
// be torn. A crash may keep any of an unsynced append's sectors, leave zeros instead of the others, and shorten the
// file. The records of the last file may also be followed by zeros, preallocated room for more.
import { openXChaCha, sealXChaCha } from '../crypto/aead.ts';
import { concatBytes, equalBytes, toHex, utf8 } from '../crypto/bytes.ts';
import { hmacSha256 } from '../crypto/fast-hash.ts';
import { hkdfSha256 } from '../crypto/hash.ts';
import type { Run } from '../model/store-mark.ts';
import { encodeFileHeader, type FileHeader, headerLength, nonceLength, tagLength } from './store-files.ts';

/** Offset of the first record. */
export const logHeaderLength = headerLength + nonceLength + tagLength;
/** Length and check, before a record's nonce. */
export const prefixLength = 12;
const recordOverhead = prefixLength + nonceLength + tagLength;
/** Bytes that a disk writes as a whole or not at all. */
export const sectorLength = 512;

const checkLength = 8;
const padding = 0x0a;
const headerLabel = utf8('kms/log/header/v1');
const recordLabel = utf8('kms/log/record/v1');
const empty = new Uint8Array(0);

/** The position that a record is bound to. */
interface RecordPlace {
  readonly offset: number;
  /** Number of transactions before it. */
  readonly sequence: number;
  /** The tag before it. */
  readonly chain: Uint8Array;
}

/** The position for the next record, and the runs before it. */
export interface LogPlace extends RecordPlace {
  /** Newest first. */
  readonly runs: readonly Run[];
}

/** The run that begins with the record that `tag` seals, after `from` transactions. */
export function runOf(from: number, tag: Uint8Array): Run {
  return { from, tag: toHex(tag.subarray(0, 8)) };
}

/** The header of a new file. The last 16 bytes are the chain's value for the first record. */
export function sealLogHeader(key: Uint8Array, nonce: Uint8Array, header: FileHeader): Uint8Array {
  const clear = encodeFileHeader('log', header);
  return concatBytes(clear, nonce, sealXChaCha(key, nonce, empty, concatBytes(headerLabel, clear)));
}

/** Whether the first `logHeaderLength` bytes are a header sealed with `key`. */
export function logHeaderVerifies(key: Uint8Array, bytes: Uint8Array): boolean {
  const nonce = bytes.subarray(headerLength, headerLength + nonceLength);
  const tag = bytes.subarray(headerLength + nonceLength, logHeaderLength);
  const associated = concatBytes(headerLabel, bytes.subarray(0, headerLength));
  return openXChaCha(key, nonce, tag, associated) !== undefined;
}

/** Seals and opens the records of one file. */
export class RecordSealer {
  readonly #key: Uint8Array;
  readonly #mac: (message: Uint8Array) => Uint8Array;
  readonly #checked: Uint8Array;
  readonly #associated: Uint8Array;

  constructor(key: Uint8Array, uid: Uint8Array, generation: number) {
    this.#key = key;
    this.#mac = hmacSha256(hkdfSha256(key, 'kms/log/v1/check', 32));
    const file = new Uint8Array(24);
    file.set(uid);
    new DataView(file.buffer).setBigUint64(16, BigInt(generation));
    this.#checked = concatBytes(file, new Uint8Array(12));
    this.#associated = concatBytes(recordLabel, file, new Uint8Array(8 + 8 + tagLength));
  }

  /** Seals `payload` as a whole record at `place`, padded with line feeds if needed (see `paddedLength`). */
  seal(payload: Uint8Array, place: RecordPlace, nonce: Uint8Array): Uint8Array {
    const plain = new Uint8Array(paddedLength(place.offset, payload.length)).fill(padding, payload.length);
    plain.set(payload);
    const sealed = sealXChaCha(this.#key, nonce, plain, this.#bind(place));
    const record = new Uint8Array(prefixLength + nonceLength + sealed.length);
    const length = nonceLength + sealed.length;
    new DataView(record.buffer).setUint32(0, length);
    record.set(this.#check(place.offset, length), 4);
    record.set(nonce, prefixLength);
    record.set(sealed, prefixLength + nonceLength);
    return record;
  }

  /** The length in the prefix of a record at `offset` of the file; undefined if its check does not verify. */
  lengthAt(record: Uint8Array, offset: number): number | undefined {
    const length = new DataView(record.buffer, record.byteOffset, prefixLength).getUint32(0);
    return equalBytes(record.subarray(4, prefixLength), this.#check(offset, length)) ? length : undefined;
  }

  /** The payload of a record of known length; undefined if it does not verify. */
  open(record: Uint8Array, length: number, place: RecordPlace): Uint8Array | undefined {
    const start = prefixLength + nonceLength;
    const sealed = record.subarray(start, prefixLength + length);
    return openXChaCha(this.#key, record.subarray(prefixLength, start), sealed, this.#bind(place));
  }

  #check(offset: number, length: number): Uint8Array {
    const view = new DataView(this.#checked.buffer);
    view.setBigUint64(24, BigInt(offset));
    view.setUint32(32, length);
    return this.#mac(this.#checked).subarray(0, checkLength);
  }

  #bind(place: RecordPlace): Uint8Array {
    const start = recordLabel.length + 24;
    const view = new DataView(this.#associated.buffer);
    view.setBigUint64(start, BigInt(place.offset));
    view.setBigUint64(start + 8, BigInt(place.sequence));
    this.#associated.set(place.chain, start + 16);
    return this.#associated;
  }
}

/**
 * The length to which a plaintext is padded so that its record has at least 8 bytes in every sector: it ends with a
 * sector, or 8 to 504 bytes into one. A sector that a crash lost then shows as a run of zeros that damage to a single
 * byte cannot make.
 */
function paddedLength(offset: number, length: number): number {
  const into = (offset + recordOverhead + length) % sectorLength;
  if (into === 0) return length;
  if (into < 8) return length + 8 - into;
  return into > sectorLength - 8 ? length + sectorLength - into : length;
}

/** A run of zeros shorter than this proves nothing. */
const provingZeros = 4;

/**
 * Why the record at `offset`, which does not verify, is damage; undefined if it is a torn end. `length` is the record's
 * length if its check verifies. `file` may leave out its first `from` bytes, whole sectors, which no offset counts.
 */
export function damageAt(
  file: Uint8Array,
  offset: number,
  length: number | undefined,
  sealer: RecordSealer,
  from = 0,
): string | undefined {
  if (file.length - offset < prefixLength) return undefined;
  if (length !== undefined) {
    const end = offset + prefixLength + length;
    if (end > file.length) return undefined;
    if (endOfContent(file, end) > end) return 'a record does not verify, and more follows it';
    return zeroSector(file, offset, end) ? undefined : 'the last record does not verify';
  }
  const prefixEnd = offset + prefixLength;
  const sectorEnd = Math.ceil(prefixEnd / sectorLength) * sectorLength;
  if (!zeroSector(file, offset, Math.min(sectorEnd, file.length))) return "a record's length does not verify";
  const next = nextRecord(file, prefixEnd, sealer, from);
  return next === undefined ? undefined : `a record is missing; the next one is at offset ${next + from}`;
}

/** The end of the last non-zero byte from `start` on, or `start`. */
export function endOfContent(file: Uint8Array, start: number): number {
  const last = file.subarray(start).findLastIndex((byte) => byte !== 0);
  return start + last + 1;
}

/** Whether the range's part of some sector is all zeros. */
function zeroSector(file: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; ) {
    const sectorEnd = Math.min(end, (Math.floor(at / sectorLength) + 1) * sectorLength);
    if (sectorEnd - at >= provingZeros && file.subarray(at, sectorEnd).every((byte) => byte === 0)) return true;
    at = sectorEnd;
  }
  return false;
}

/** In a torn write of some megabytes, fewer offsets than this look like the beginning of a record. */
const mostTries = 1_000_000;

/** The first offset from `start` on at which a record's length verifies, or at which too many have looked like one. */
function nextRecord(file: Uint8Array, start: number, sealer: RecordSealer, from: number): number | undefined {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  let tries = 0;
  for (let at = start; at + recordOverhead <= file.length; at++) {
    const length = view.getUint32(at);
    if (length < recordOverhead - prefixLength || at + prefixLength + length > file.length) continue;
    if (++tries > mostTries || sealer.lengthAt(file.subarray(at, at + prefixLength), at + from) !== undefined)
      return at;
  }
  return undefined;
}
