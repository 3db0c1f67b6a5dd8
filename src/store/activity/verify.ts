// Verifies the hash chain of an export, a backup or the log itself, from nothing but its lines and hashes: pure, so that it
// needs no appliance. It tells which record is the first that was changed, dropped or moved.
import { fromBase64Url, toBase64Url } from '../../crypto/encoding.ts';
import { chainHash, genesisHash, hashLength } from './chain.ts';
import { parseActivityLine } from './record.ts';

/** One record as an export has it: its canonical line and its hash, base64url. */
export interface ChainLink {
  readonly line: string;
  readonly hash: string;
}

/** A place in the chain that is known from elsewhere. */
export interface ChainAnchor {
  readonly seq: number;
  readonly hash: string;
}

export interface ChainBreak {
  /** Which link of the input, from 1 on. */
  readonly position: number;
  /** The record that should be here. */
  readonly seq: number;
  /** One lower-case sentence that names the record. */
  readonly problem: string;
}

export interface ChainVerdict {
  /** Links that verified. */
  readonly count: number;
  /** The last record that verified; where the chain starts when there is none. */
  readonly head: ChainAnchor;
  /** Absent when everything verified. */
  readonly broken?: ChainBreak;
}

export interface ChainExpectations {
  /** The place before the first link; default: the beginning of the log. */
  readonly start?: ChainAnchor;
  /** Places that the chain must go through, such as heads that were written down earlier. Those before the start say nothing. */
  readonly anchors?: readonly ChainAnchor[];
}

export const chainStart: ChainAnchor = { seq: 0, hash: toBase64Url(genesisHash()) };

/** What is wrong with a link that should be record `seq`; undefined when only its hash remains to be compared. */
function wrongPlace(line: string, seq: number): string | undefined {
  const record = parseActivityLine(line);
  if (!record) return `record ${seq} was changed: it is not readable as a record`;
  if (record.seq === seq) return undefined;
  if (record.seq > seq) return `record ${seq} was dropped or moved: record ${record.seq} stands in its place`;
  return `record ${record.seq} was moved or repeated: it stands in the place of record ${seq}`;
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
