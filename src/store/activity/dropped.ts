// The beginning of an activity log that retention dropped: whole segments, from the first one on. The kept part
// continues from the chain hash of the last dropped record, which is in the sealed snapshot; so a missing segment that
// was not dropped is still noticed.
import type { DroppedActivity, SegmentSummary } from '../port.ts';
import { type ChainPlace, genesisHash } from './chain.ts';
import { decodeHash } from './segment.ts';

/** The position in the chain before the first kept record. Throws `corrupt` if the hash is malformed. */
export function placeBefore(dropped: DroppedActivity | undefined): ChainPlace {
  return dropped ? { seq: dropped.seq, hash: decodeHash(dropped.hash) } : { seq: 0, hash: genesisHash() };
}

/** The dropped beginning once the leading segments that `may` be dropped are; `before` if none may. */
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

/** The files in a store's directory that are segments of dropped records. */
export function droppedFiles(names: readonly string[], { seq }: DroppedActivity): string[] {
  return names.filter((name) => {
    const [, first] = /^activity-([0-9]{12})\.kms$/.exec(name) ?? [];
    return first !== undefined && Number(first) <= seq;
  });
}
