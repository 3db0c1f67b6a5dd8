// Searches one segment: its summary may rule it out, its postings give candidates, its blocks have the records.
import type { ActivityRecord } from '../port.ts';
import { readBloom } from './bloom.ts';
import type { PreparedFilter, TermGroup } from './filter.ts';
import { lookAhead } from './look-ahead.ts';
import { findPositions, intersect, union } from './postings.ts';
import { parseActivityLine } from './record.ts';
import type { OpenSegment, SegmentReader } from './segment-read.ts';
import { idMark, type SegmentSummary } from './segment-root.ts';
import { validTerm } from './terms.ts';

function mayHold(summary: SegmentSummary, group: TermGroup): boolean {
  if (group.kind === 'valid') {
    const has = (valid: boolean): boolean => (valid ? summary.validCount : summary.invalidCount) > 0;
    return group.anyOf.some((term) => has(term === validTerm(true)));
  }
  return group.anyOf.some(readBloom(summary[group.kind]));
}

/** Whether a segment may have matching records before `beforeSeq`; false is certain. */
export function mayMatch(summary: SegmentSummary, prepared: PreparedFilter, beforeSeq: number): boolean {
  if (summary.firstSeq >= beforeSeq || summary.from > prepared.end || summary.to < prepared.start) return false;
  return prepared.groups.every((group) => mayHold(summary, group));
}

/** The last index whose value is at most `wanted`, in an ascending list; -1 when there is none. */
function lastAtMost(values: readonly number[], wanted: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] ?? 0) <= wanted) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

async function positionsOf(reader: SegmentReader, segment: OpenSegment, group: TermGroup): Promise<readonly number[]> {
  const lists: number[][] = [];
  for (const term of group.anyOf) {
    const page = lastAtMost(segment.root.pageTerms, term);
    if (page >= 0) lists.push(findPositions(await reader.page(segment, page), term));
  }
  return union(lists);
}

/** Positions that have all terms, ascending; undefined when the filter asks for none, which is all. */
async function candidates(
  reader: SegmentReader,
  segment: OpenSegment,
  prepared: PreparedFilter,
): Promise<readonly number[] | undefined> {
  let positions: readonly number[] | undefined;
  for (const group of prepared.groups) {
    const having = await positionsOf(reader, segment, group);
    positions = positions ? intersect(positions, having) : having;
    if (positions.length === 0) return positions;
  }
  return positions;
}

/** A segment with the candidates in it. */
export interface SegmentPlan {
  readonly segment: OpenSegment;
  /** Ascending positions; undefined = all. */
  readonly positions: readonly number[] | undefined;
}

/** Opens a segment and looks up its candidates, without reading a record. */
export async function planSegment(
  reader: SegmentReader,
  summary: SegmentSummary,
  prepared: PreparedFilter,
): Promise<SegmentPlan> {
  const segment = await reader.open(summary);
  return { segment, positions: await candidates(reader, segment, prepared) };
}

/** Candidates of one block: indexes into the plan's positions (or positions, where all are candidates), from high to low. */
interface BlockPlan {
  readonly index: number;
  readonly high: number;
  readonly low: number;
}

/** The blocks that must be read, newest first. */
function* planBlocks(
  { segment, positions }: SegmentPlan,
  prepared: PreparedFilter,
  before: number,
): Generator<BlockPlan> {
  const { starts, root } = segment;
  const indexBefore = (position: number): number => (positions ? lastAtMost(positions, position - 1) : position - 1);
  for (let high = indexBefore(before); high >= 0; ) {
    const index = lastAtMost(starts, positions ? (positions[high] ?? 0) : high);
    const low = indexBefore(starts[index] ?? 0) + 1;
    const inTime = (root.from[index] ?? 0) <= prepared.end && (root.to[index] ?? 0) >= prepared.start;
    if (inTime) yield { index, high, low };
    high = low - 1;
  }
}

/** Adds matching records before `beforeSeq` to `found`, newest first, until it has `limit`. Awaits `turn` after each block. */
export async function searchSegment(
  reader: SegmentReader,
  plan: SegmentPlan,
  prepared: PreparedFilter,
  { beforeSeq, limit, turn }: { beforeSeq: number; limit: number; turn: () => Promise<void> },
  found: ActivityRecord[],
): Promise<void> {
  const { segment, positions } = plan;
  const before = Math.min(beforeSeq, segment.summary.lastSeq + 1) - segment.summary.firstSeq;
  const load = async (block: BlockPlan) => ({ ...block, lines: (await reader.block(segment, block.index)).lines });
  for await (const { index, high, low, lines } of lookAhead(planBlocks(plan, prepared, before), load)) {
    const start = segment.starts[index] ?? 0;
    for (let at = high; at >= low; at--) {
      const record = parseActivityLine(lines[(positions ? (positions[at] ?? 0) : at) - start] ?? '');
      if (record && prepared.matches(record) && found.push(record) >= limit) return;
    }
    await turn();
  }
}

/** The record with an id, if the segment has it. */
export async function findInSegment(
  reader: SegmentReader,
  summary: SegmentSummary,
  id: string,
): Promise<ActivityRecord | undefined> {
  const mark = idMark(id);
  if (mark < summary.idFrom || mark > summary.idTo) return undefined;
  const segment = await reader.open(summary);
  const { idFrom, idTo } = segment.root;
  const needle = `"id":${JSON.stringify(id)}`;
  for (let index = idFrom.length - 1; index >= 0; index--) {
    if (mark < (idFrom[index] ?? '') || mark > (idTo[index] ?? '')) continue;
    for (const line of (await reader.block(segment, index)).lines) {
      const record = line.includes(needle) ? parseActivityLine(line) : undefined;
      if (record?.id === id) return record;
    }
  }
  return undefined;
}
