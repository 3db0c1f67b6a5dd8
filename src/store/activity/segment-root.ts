// What is known of a segment without reading its blocks: the summary, which the snapshot keeps, and the root, which the
// segment's file keeps.

/** What a search and a start need to know of a segment; JSON, about a kilobyte at most. */
export interface SegmentSummary {
  readonly file: string;
  readonly bytes: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** Chain hash before the first record and after the last, base64url. */
  readonly prevHash: string;
  readonly hash: string;
  /** Earliest and latest `createdAt`. */
  readonly from: number;
  readonly to: number;
  /** Least and greatest `idMark`. */
  readonly idFrom: string;
  readonly idTo: string;
  readonly validCount: number;
  readonly invalidCount: number;
  /** Bloom filters of the terms, base64url; null = too many to tell. */
  readonly keys: string | null;
  readonly actions: string | null;
  readonly rings: string | null;
  readonly props: string | null;
}

/** How a segment's file is laid out; columns with one entry a block, then one a page. */
export interface SegmentRoot {
  /** The segment's last chain hash, which tells a file of another history by. */
  readonly hash: string;
  readonly records: readonly number[];
  readonly lengths: readonly number[];
  readonly from: readonly number[];
  readonly to: readonly number[];
  readonly idFrom: readonly string[];
  readonly idTo: readonly string[];
  readonly pageTerms: readonly number[];
  readonly pageLengths: readonly number[];
}

/** The part of an id by which blocks are found: of a ULID the prefix, the time and two characters more. */
export function idMark(id: string): string {
  return id.slice(0, 17);
}

export function segmentFile(firstSeq: number): string {
  return `activity-${String(firstSeq).padStart(12, '0')}.kms`;
}
