// Search walks the log from its newest record back. It prepares a filter for tail and segments, fills a page, and
// searches the segments: the summary may rule one out, its postings give candidates, its blocks hold the records. While
// one is searched the next are already loading.

import { detailsIn, type ResourceRef } from '../../model/activity-details.ts';
import { type AddressSet, addressSet } from '../../model/addresses.ts';
import { containing, longestPage } from '../../model/json.ts';
import { yieldToEventLoop } from '../event-loop.ts';
import type { ActivityFilter, ActivityRecord, SegmentSummary } from '../port.ts';
import type { Page } from '../sql.ts';
import { positionsFrom } from './origins.ts';

import { findPositions, intersect, union } from './postings.ts';
import { parseActivityLine } from './record.ts';
import { idMark } from './segment.ts';
import type { OpenSegment, SegmentReader } from './segment-reader.ts';
import {
  actionTerm,
  blockTerm,
  grantedTerm,
  keyTerm,
  objectTerm,
  propsNeedles,
  propsTerms,
  readBloom,
  revokedTerm,
  ringTerm,
  validTerm,
  wideTerm,
} from './terms.ts';

/** The part of a segment's summary that covers a term. */
type TermKind = 'keys' | 'actions' | 'rings' | 'valid' | 'props' | 'addresses';

/** A record must have at least one of these terms. */
interface TermGroup {
  readonly kind: TermKind;
  readonly anyOf: readonly number[];
  /**
   * For addresses: the set itself. `anyOf` then only serves the summary, and is empty if the block is too large for it.
   */
  readonly from?: AddressSet;
  /** Only segments that store addresses have such terms. */
  readonly isNew?: true;
}

export interface PreparedFilter {
  readonly filter: ActivityFilter;
  readonly keyids: ReadonlySet<string> | undefined;
  readonly addresses: AddressSet | undefined;
  /** Every group must hold. */
  readonly groups: readonly TermGroup[];
  /** Texts that occur in every matching line. */
  readonly needles: readonly string[];
  /** Inclusive bounds of `createdAt`. */
  readonly start: number;
  readonly end: number;
  /** Only records after this sequence number; 0 for all. */
  readonly afterSeq: number;
  matches(record: ActivityRecord): boolean;
}

/** With more keys than this no index is used; the records are scanned. */
const keysUsed = 1000;

/** Paths of a filter's props that are used to find candidates; a match must satisfy all of them. */
const propsUsed = 16;

/** Throws `invalid` for props that JSON cannot represent. */
export function prepareFilter(filter: ActivityFilter): PreparedFilter {
  const keyids = filter.keyids && new Set(filter.keyids);
  const { action, actions, ringname, valid, props, address, exclude, afterSeq = 0 } = filter;
  const { withoutActions, withoutGranted } = filter;
  const addresses = address === undefined ? undefined : addressSet([address]);
  const start = filter.start ?? Number.NEGATIVE_INFINITY;
  const end = filter.end ?? Number.POSITIVE_INFINITY;
  const groups: TermGroup[] = [];
  if (keyids && keyids.size <= keysUsed) groups.push({ kind: 'keys', anyOf: Array.from(keyids, keyTerm) });
  if (action !== undefined) groups.push({ kind: 'actions', anyOf: [actionTerm(action)] });
  if (actions) groups.push({ kind: 'actions', anyOf: actions.map(actionTerm) });
  if (ringname !== undefined) groups.push({ kind: 'rings', anyOf: [ringTerm(ringname)] });
  if (valid !== undefined) groups.push({ kind: 'valid', anyOf: [validTerm(valid)] });
  for (const term of props ? propsTerms(props, propsUsed) : []) groups.push({ kind: 'props', anyOf: [term, wideTerm] });
  if (address !== undefined && addresses) groups.push(addressGroup(address, addresses));
  groups.push(...deedGroups(filter));
  const holdsProps = props && containing(props);
  return {
    filter,
    keyids,
    addresses,
    groups,
    needles: [...(props ? propsNeedles(props, propsUsed) : []), ...deedNeedles(filter)],
    start,
    end,
    afterSeq,
    matches: (record) =>
      record.seq > afterSeq &&
      (keyids === undefined || keyids.has(record.keyid)) &&
      (action === undefined || action === record.action) &&
      (actions === undefined || actions.includes(record.action)) &&
      (ringname === undefined || ringname === record.ringname) &&
      (valid === undefined || valid === record.validAction) &&
      start <= record.createdAt &&
      record.createdAt <= end &&
      (addresses === undefined || (record.address !== undefined && addresses.has(record.address))) &&
      (holdsProps === undefined || holdsProps(record.props)) &&
      didWhatIsAsked(record, filter) &&
      !withoutActions?.has(record.action) &&
      !(record.validAction && withoutGranted?.has(record.action)) &&
      !(exclude && isExcluded(record, exclude)),
  };
}

function addressGroup(block: string, from: AddressSet): TermGroup {
  const term = blockTerm(block);
  return { kind: 'addresses', anyOf: term === undefined ? [] : [term], from, isNew: true };
}

function deedGroups({ object, granted, revoked }: ActivityFilter): TermGroup[] {
  const group = (...anyOf: number[]): TermGroup => ({ kind: 'props', anyOf, isNew: true });
  const flags = (names: readonly string[], term: (flag?: string) => number): TermGroup =>
    names.length === 0 ? group(term()) : group(...names.map(term));
  return [
    ...(object === undefined ? [] : [group(objectTerm(object))]),
    ...(granted ? [flags(granted, grantedTerm)] : []),
    ...(revoked ? [flags(revoked, revokedTerm)] : []),
  ];
}

function deedNeedles({ object, granted, revoked }: ActivityFilter): string[] {
  return [
    ...(object === undefined ? [] : ['"object']),
    ...(granted ? ['"granted":'] : []),
    ...(revoked ? ['"revoked":'] : []),
  ];
}

/** Reported records are the reporter's claim, and do not count. */
function didWhatIsAsked({ props, reporter }: ActivityRecord, filter: ActivityFilter): boolean {
  if (filter.object === undefined && !filter.granted && !filter.revoked) return true;
  if (reporter !== undefined) return false;
  const { object, objects = [], granted = [], revoked = [] } = detailsIn(props);
  const wanted = filter.object?.toLowerCase();
  const isAbout = ({ type, id, name }: ResourceRef): boolean =>
    (filter.objectType === undefined || type === filter.objectType) &&
    (id.toLowerCase() === wanted || name?.toLowerCase() === wanted);
  const has = (flags: readonly string[], asked: readonly string[] | undefined): boolean =>
    !asked || (asked.length === 0 ? flags.length > 0 : flags.some((flag) => asked.includes(flag)));
  return (
    (wanted === undefined || (object !== undefined && isAbout(object)) || objects.some(isAbout)) &&
    has(granted, filter.granted) &&
    has(revoked, filter.revoked)
  );
}

function isExcluded(
  record: ActivityRecord,
  { keyid = record.keyid, action = record.action }: NonNullable<ActivityFilter['exclude']>,
): boolean {
  return record.keyid === keyid && record.action === action;
}

/**
 * A page of records, newest first, bounded in length too, and one record more, which shows that there is a next page.
 */
export class Found {
  readonly #limit: number;
  readonly #records: ActivityRecord[] = [];
  #length = 0;
  #enough = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Adds a record whose line has `length` bytes; returns whether there are enough. */
  add(record: ActivityRecord, length: number): boolean {
    this.#enough = this.#records.push(record) > this.#limit || this.#length >= longestPage;
    this.#length += length;
    return this.#enough;
  }

  get enough(): boolean {
    return this.#enough;
  }

  page(): Page<ActivityRecord> {
    if (!this.#enough) return { items: this.#records };
    const items = this.#records.slice(0, -1);
    const last = items.at(-1);
    return last ? { items, next: last.seq } : { items };
  }
}

const maxAhead = 8;

/**
 * The result of `load` for each item, in order, with more of them loading the further the walk goes. The first item is
 * loaded alone: often it suffices.
 */
async function* lookAhead<T, R>(items: Iterable<T>, load: (item: T) => Promise<R>): AsyncGenerator<R> {
  const rest = items[Symbol.iterator]();
  const loading: Promise<R>[] = [];
  for (let ahead = 1; ; ahead = Math.min(ahead * 2, maxAhead)) {
    while (loading.length < ahead) {
      const { value, done } = rest.next();
      if (done) break;
      const loaded = load(value);
      // Awaited in its turn, or never if the walk ends before.
      loaded.catch(() => undefined);
      loading.push(loaded);
    }
    const next = loading.shift();
    if (!next) return;
    yield await next;
  }
}

/** Adds matching records before `beforeSeq` to `found`, newest first, until it has enough. */
export async function searchSegments(
  reader: SegmentReader,
  segments: readonly SegmentSummary[],
  prepared: PreparedFilter,
  beforeSeq: number,
  found: Found,
): Promise<void> {
  const candidates = segments.toReversed().filter((summary) => mayMatch(summary, prepared, beforeSeq));
  for await (const plan of lookAhead(candidates, (summary) => planSegment(reader, summary, prepared))) {
    await searchSegment(reader, plan, prepared, beforeSeq, found);
    if (found.enough) return;
  }
}

/** The last index whose value is at most `wanted`, in an ascending list; -1 if there is none. */
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

function mayHold(summary: SegmentSummary, group: TermGroup): boolean {
  if (group.kind === 'valid') {
    const has = (valid: boolean): boolean => (valid ? summary.validCount : summary.invalidCount) > 0;
    return group.anyOf.some((term) => has(term === validTerm(true)));
  }
  if (group.isNew && summary.addresses === undefined) return false;
  if (group.from && group.anyOf.length === 0) return summary.addresses !== '';
  return group.anyOf.some(readBloom(summary[group.kind] ?? null));
}

/** Whether a segment may have matching records before `beforeSeq`; false is certain. */
function mayMatch(summary: SegmentSummary, prepared: PreparedFilter, beforeSeq: number): boolean {
  if (summary.firstSeq >= beforeSeq || summary.lastSeq <= prepared.afterSeq) return false;
  if (summary.from > prepared.end || summary.to < prepared.start) return false;
  return prepared.groups.every((group) => mayHold(summary, group));
}

async function positionsOf(
  reader: SegmentReader,
  segment: OpenSegment,
  { anyOf, from }: TermGroup,
): Promise<readonly number[]> {
  if (from) {
    const origins = await reader.origins(segment);
    return origins ? positionsFrom(origins, from) : [];
  }
  const lists: number[][] = [];
  for (const term of anyOf) {
    const page = lastAtMost(segment.root.pageTerms, term);
    if (page >= 0) lists.push(findPositions(await reader.page(segment, page), term));
  }
  return union(lists);
}

/** Positions that have all terms, ascending; undefined if the filter has no terms, which means all. */
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

/** A segment with its candidates. */
interface SegmentPlan {
  readonly segment: OpenSegment;
  /** Ascending positions; undefined = all. */
  readonly positions: readonly number[] | undefined;
}

/** Opens a segment and looks up its candidates, without reading a record. */
async function planSegment(
  reader: SegmentReader,
  summary: SegmentSummary,
  prepared: PreparedFilter,
): Promise<SegmentPlan> {
  const segment = await reader.open(summary);
  return { segment, positions: await candidates(reader, segment, prepared) };
}

/**
 * Candidates of one block: indexes into the plan's positions (or positions, if all are candidates), from high to low.
 */
interface BlockPlan {
  readonly index: number;
  readonly high: number;
  readonly low: number;
}

/** The blocks to be read, newest first. */
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

/** Adds matching records before `beforeSeq` to `found`, newest first, until it has enough. */
async function searchSegment(
  reader: SegmentReader,
  plan: SegmentPlan,
  prepared: PreparedFilter,
  beforeSeq: number,
  found: Found,
): Promise<void> {
  const { segment, positions } = plan;
  const before = Math.min(beforeSeq, segment.summary.lastSeq + 1) - segment.summary.firstSeq;
  const load = async (block: BlockPlan) => ({ ...block, loaded: await reader.block(segment, block.index) });
  for await (const { index, high, low, loaded } of lookAhead(planBlocks(plan, prepared, before), load)) {
    await yieldToEventLoop();
    const start = segment.starts[index] ?? 0;
    for (let at = high; at >= low; at--) {
      const line = loaded.line((positions ? (positions[at] ?? 0) : at) - start);
      const record = parseActivityLine(line);
      if (record && prepared.matches(record) && found.add(record, Buffer.byteLength(line))) return;
    }
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
    const block = await reader.block(segment, index);
    for (let at = 0; at < block.records; at++) {
      const line = block.line(at);
      const record = line.includes(needle) ? parseActivityLine(line) : undefined;
      if (record?.id === id) return record;
    }
  }
  return undefined;
}
