// Searches the segments of a log, newest first. While one is read, the next ones are looked up already: the further a search
// has to go, the more of them.
import type { ActivityRecord } from '../port.ts';
import type { PreparedFilter } from './filter.ts';
import type { SegmentReader } from './segment-read.ts';
import type { SegmentSummary } from './segment-root.ts';
import { mayMatch, planSegment, type SegmentPlan, searchSegment } from './segment-search.ts';
import { takeTurns } from './turns.ts';

const maxAhead = 8;
const stepsATurn = 16;

/** Adds matching records before `beforeSeq` to `found`, newest first, until it has `limit`. */
export async function searchSegments(
  reader: SegmentReader,
  segments: readonly SegmentSummary[],
  prepared: PreparedFilter,
  { beforeSeq, limit }: { beforeSeq: number; limit: number },
  found: ActivityRecord[],
): Promise<void> {
  const turn = takeTurns(stepsATurn);
  const plans: Promise<SegmentPlan>[] = [];
  let next = segments.length - 1;
  const planUpTo = (count: number): void => {
    for (; next >= 0 && plans.length < count; next--) {
      const summary = segments[next];
      if (!summary || !mayMatch(summary, prepared, beforeSeq)) continue;
      const plan = planSegment(reader, summary, prepared);
      // It is awaited when its turn comes, or never, when enough was found before.
      plan.catch(() => undefined);
      plans.push(plan);
    }
  };
  for (let ahead = 1; ; ahead = Math.min(ahead * 2, maxAhead)) {
    planUpTo(ahead);
    const plan = await plans.shift();
    if (!plan) return;
    await searchSegment(reader, plan, prepared, { beforeSeq, limit, turn }, found);
    if (found.length >= limit) return;
    await turn();
  }
}
