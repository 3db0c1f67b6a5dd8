// Searches the segments of a log, newest first.
import type { ActivityRecord } from '../port.ts';
import type { PreparedFilter } from './filter.ts';
import { lookAhead, takeTurns } from './look-ahead.ts';
import type { SegmentReader } from './segment-read.ts';
import type { SegmentSummary } from './segment-root.ts';
import { mayMatch, planSegment, searchSegment } from './segment-search.ts';

/** Adds matching records before `beforeSeq` to `found`, newest first, until it has `limit`. */
export async function searchSegments(
  reader: SegmentReader,
  segments: readonly SegmentSummary[],
  prepared: PreparedFilter,
  { beforeSeq, limit }: { beforeSeq: number; limit: number },
  found: ActivityRecord[],
): Promise<void> {
  const turn = takeTurns();
  const candidates = segments.toReversed().filter((summary) => mayMatch(summary, prepared, beforeSeq));
  for await (const plan of lookAhead(candidates, (summary) => planSegment(reader, summary, prepared))) {
    await searchSegment(reader, plan, prepared, { beforeSeq, limit, turn }, found);
    if (found.length >= limit) return;
    await turn();
  }
}
