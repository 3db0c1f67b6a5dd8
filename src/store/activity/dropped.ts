// Dropped is the beginning of an activity log that retention let go of: whole segments, from the first one on. What is
// kept goes on from the chain hash of the last dropped record, which stands in the sealed snapshot; so a segment that
// is missing and was not dropped is missed as ever.
import type { DroppedActivity, SegmentSummary } from '../port.ts';
import { type ChainPlace, genesisHash } from './chain.ts';
import { decodeHash } from './segment.ts';

/** The place in the chain before the first record that is kept. Throws `corrupt` for a hash that is none. */
export function placeBefore(dropped: DroppedActivity | undefined): ChainPlace {
  return dropped ? { seq: dropped.seq, hash: decodeHash(dropped.hash) } : { seq: 0, hash: genesisHash() };
}

/**
 * What the log lacks once the first segments are dropped, as far as each of them `may` be; what it lacked before where
 * none may.
 */
export function afterDropping(
  segments: readonly SegmentSummary[],
  before: DroppedActivity | undefined,
  may: (segment: SegmentSummary) => boolean,
): DroppedActivity | undefined {
  let dropped = before;
  for (const segment of segments) {
    if (!may(segment)) break;
    const { lastSeq: seq, hash, to } = segment;
    dropped = { seq, hash, until: Math.max(to, dropped?.until ?? to) };
  }
  return dropped;
}

/** Those of the files in a store's directory that are segments of dropped records. */
export function droppedFiles(names: readonly string[], { seq }: DroppedActivity): string[] {
  return names.filter((name) => {
    const [, first] = /^activity-([0-9]{12})\.kms$/.exec(name) ?? [];
    return first !== undefined && Number(first) <= seq;
  });
}
