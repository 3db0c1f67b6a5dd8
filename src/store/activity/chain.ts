// The hash chain over the lines of the log, and its verification: hash n = SHA-256(hash n-1 || UTF-8 of line n), hash 0
// = 32 zero bytes. Verifying an export, a backup or the log itself takes only lines and hashes, no appliance; the
// verdict names the first record that was changed, dropped or moved.

import { fromBase64Url, toBase64Url } from '../../crypto/bytes.ts';
import { sha256 } from '../../crypto/fast-hash.ts';

export const hashLength = 32;
const encoder = new TextEncoder();
let scratch = new Uint8Array(4096);

/** The hash before the first record. */
export function genesisHash(): Uint8Array {
  return new Uint8Array(hashLength);
}

/** The hash of a line, given as text or UTF-8, that follows the 32-byte hash `previous`. */
export function chainHash(previous: Uint8Array, line: string | Uint8Array): Uint8Array {
  // UTF-8 takes at most 3 bytes for a UTF-16 code unit. The shared buffer saves two allocations per record.
  const room = hashLength + line.length * 3;
  if (scratch.length < room) scratch = new Uint8Array(room * 2);
  scratch.set(previous);
  return sha256(scratch.subarray(0, hashLength + placed(line)));
}

/** Puts the line after the room for the hash; returns its length in bytes. */
function placed(line: string | Uint8Array): number {
  if (typeof line === 'string') return encoder.encodeInto(line, scratch.subarray(hashLength)).written;
  scratch.set(line, hashLength);
  return line.length;
}

/** A position in the chain: `hash` is that of record `seq`. */
export interface ChainPlace {
  readonly seq: number;
  readonly hash: Uint8Array;
}

/** A record as exported: its canonical line and its hash, base64url. */
export interface ChainLink {
  readonly line: string;
  readonly hash: string;
}

/** A position in the chain that is known from elsewhere. */
export interface ChainAnchor {
  readonly seq: number;
  readonly hash: string;
}

interface ChainBreak {
  /** Number of the link in the input, from 1 on. */
  readonly position: number;
  /** The record that should be here. */
  readonly seq: number;
  /** A lower-case sentence that names the record. */
  readonly problem: string;
}

export interface ChainVerdict {
  /** Number of links that verified. */
  readonly count: number;
  /** The last record that verified, or the start of the chain if there is none. */
  readonly head: ChainAnchor;
  /** Absent if everything verified. */
  readonly broken?: ChainBreak;
}

interface ChainExpectations {
  /** The position before the first link. Default: the beginning of the log. */
  readonly start?: ChainAnchor;
  /**
   * Positions that the chain must pass through, such as heads written down earlier. Those before the start are ignored.
   */
  readonly anchors?: readonly ChainAnchor[];
}

export const chainStart: ChainAnchor = { seq: 0, hash: toBase64Url(genesisHash()) };

/**
 * The sequence number in a record's text; undefined if the text is no record. The rest of the record is not checked:
 * the hashes vouch for it, and verifiers of any age must agree.
 */
export function placeOf(line: string): number | undefined {
  try {
    const { seq } = JSON.parse(line);
    return Number.isSafeInteger(seq) ? seq : undefined;
  } catch {
    return undefined;
  }
}

/** Why a link cannot be record `seq`; undefined if only its hash remains to be compared. */
function wrongPlace(line: string, seq: number): string | undefined {
  const place = placeOf(line);
  if (place === undefined) return `record ${seq} was changed: it is not readable as a record`;
  if (place === seq) return undefined;
  if (place > seq) return `record ${seq} was dropped or moved: record ${place} stands in its place`;
  return `record ${place} was moved or repeated: it stands in the place of record ${seq}`;
}

/** Follows the chain until its end or its first break. */
export async function verifyChain(
  links: AsyncIterable<ChainLink> | Iterable<ChainLink>,
  { start = chainStart, anchors = [] }: ChainExpectations = {},
): Promise<ChainVerdict> {
  const first = fromBase64Url(start.hash);
  const anchored = new Map<number, string>();
  let farthest: ChainAnchor = start;
  let head: ChainAnchor = start;
  let count = 0;
  const broken = (problem: string): ChainVerdict => ({
    count,
    head,
    broken: { position: count + 1, seq: head.seq + 1, problem },
  });
  for (const anchor of [start, ...anchors]) {
    const known = anchored.get(anchor.seq);
    if (known !== undefined && known !== anchor.hash) {
      return broken(`record ${anchor.seq} has another hash than the one that was anchored`);
    }
    anchored.set(anchor.seq, anchor.hash);
    if (anchor.seq > farthest.seq) farthest = anchor;
  }
  if (first?.length !== hashLength) return broken(`the hash of record ${start.seq} is not readable`);
  let hash: Uint8Array = first;
  for await (const link of links) {
    const seq = head.seq + 1;
    const misplaced = wrongPlace(link.line, seq);
    if (misplaced !== undefined) return broken(misplaced);
    const next = chainHash(hash, link.line);
    const text = toBase64Url(next);
    if (text !== link.hash) return broken(`record ${seq} was changed: its hash does not fit`);
    const anchor = anchored.get(seq);
    if (anchor !== undefined && anchor !== text) {
      return broken(`record ${seq} has another hash than the one that was anchored: it or one before it was changed`);
    }
    hash = next;
    head = { seq, hash: text };
    count++;
  }
  if (farthest.seq > head.seq) {
    return broken(
      `the chain ends at record ${head.seq}: records up to ${farthest.seq}, which were anchored, were dropped`,
    );
  }
  return { count, head };
}
