// Makes a segment of a run of records: the bytes of its file and its summary.
import { concatBytes } from '../../crypto/bytes.ts';
import { toBase64Url, utf8 } from '../../crypto/encoding.ts';
import { KmsError } from '../../errors.ts';
import type { ActivityRecord } from '../port.ts';
import { makeBloom } from './bloom.ts';
import { makePages } from './postings.ts';
import { parseActivityLine } from './record.ts';
import { type ActivityKeys, compressPart, encodeHeader, partSealer, sealedLength } from './segment-format.ts';
import { idMark, type SegmentRoot, type SegmentSummary, segmentFile } from './segment-root.ts';
import { actionTerm, keyTerm, propsTerms, ringTerm, validTerm } from './terms.ts';

const blockRecords = 128;
const blockText = 64 * 1024;
const bloomBytes = { keys: 200, actions: 100, rings: 150, props: 300 };

export interface SegmentRun {
  readonly firstSeq: number;
  readonly lines: readonly string[];
  /** Chain hash of a record of the run, or of the one before it. */
  hashOf(seq: number): Uint8Array;
}

interface Range<T> {
  from: T;
  to: T;
}

function widen<T extends string | number>(range: Range<T> | undefined, value: T): Range<T> {
  if (!range) return { from: value, to: value };
  return { from: value < range.from ? value : range.from, to: value > range.to ? value : range.to };
}

/** Cuts lines into blocks of 128, or fewer when they are long. */
function cutBlocks(lines: readonly string[]): { first: number; lines: readonly string[] }[] {
  const blocks: { first: number; lines: readonly string[] }[] = [];
  let first = 0;
  let text = 0;
  for (let at = 0; at < lines.length; at++) {
    text += lines[at]?.length ?? 0;
    if (at + 1 - first < blockRecords && text < blockText && at + 1 < lines.length) continue;
    blocks.push({ first, lines: lines.slice(first, at + 1) });
    first = at + 1;
    text = 0;
  }
  return blocks;
}

/** Collects the terms of records, by kind and with their positions. */
function termCollector() {
  const postings = new Map<number, number[]>();
  const kinds = {
    keys: new Set<number>(),
    actions: new Set<number>(),
    rings: new Set<number>(),
    props: new Set<number>(),
  };
  const post = (term: number, position: number): void => {
    const positions = postings.get(term);
    if (!positions) postings.set(term, [position]);
    else if (positions.at(-1) !== position) positions.push(position);
  };
  const add = (record: ActivityRecord, position: number): void => {
    const terms = { keys: keyTerm(record.keyid), actions: actionTerm(record.action), rings: ringTerm(record.ringname) };
    for (const kind of ['keys', 'actions', 'rings'] as const) {
      kinds[kind].add(terms[kind]);
      post(terms[kind], position);
    }
    post(validTerm(record.validAction), position);
    for (const term of propsTerms(record.props)) {
      kinds.props.add(term);
      post(term, position);
    }
  };
  return { postings, kinds, add };
}

/** Throws `corrupt` for a line that is no record. */
export function makeSegment(
  run: SegmentRun,
  keys: ActivityKeys,
  uid: Uint8Array,
): { summary: SegmentSummary; bytes: Uint8Array } {
  const { firstSeq, lines } = run;
  const collector = termCollector();
  const root = {
    records: [] as number[],
    lengths: [] as number[],
    from: [] as number[],
    to: [] as number[],
    idFrom: [] as string[],
    idTo: [] as string[],
  };
  let times: Range<number> | undefined;
  let ids: Range<string> | undefined;
  let validCount = 0;
  const blocks: Uint8Array[] = [];
  for (const block of cutBlocks(lines)) {
    let blockTimes: Range<number> | undefined;
    let blockIds: Range<string> | undefined;
    for (const [index, line] of block.lines.entries()) {
      const position = block.first + index;
      const record = parseActivityLine(line);
      if (!record) throw new KmsError('corrupt', `activity record ${firstSeq + position} is not readable`);
      collector.add(record, position);
      if (record.validAction) validCount++;
      blockTimes = widen(blockTimes, record.createdAt);
      blockIds = widen(blockIds, idMark(record.id));
    }
    if (!blockTimes || !blockIds) continue;
    times = widen(widen(times, blockTimes.from), blockTimes.to);
    ids = widen(widen(ids, blockIds.from), blockIds.to);
    const part = compressPart(concatBytes(run.hashOf(firstSeq + block.first - 1), utf8(block.lines.join('\n'))));
    blocks.push(part);
    root.records.push(block.lines.length);
    root.lengths.push(sealedLength(part));
    root.from.push(blockTimes.from);
    root.to.push(blockTimes.to);
    root.idFrom.push(blockIds.from);
    root.idTo.push(blockIds.to);
  }
  if (!times || !ids) throw new KmsError('internal', 'a segment of no records');
  const lastSeq = firstSeq + lines.length - 1;
  const hash = toBase64Url(run.hashOf(lastSeq));
  const pages = makePages(collector.postings, lines.length);
  const pageParts = pages.map((page) => compressPart(page.bytes));
  const whole: SegmentRoot = {
    hash,
    ...root,
    pageTerms: pages.map((page) => page.firstTerm),
    pageLengths: pageParts.map(sealedLength),
  };
  const rootPart = compressPart(utf8(JSON.stringify(whole)));
  const header = encodeHeader({
    epoch: keys.epoch,
    uid,
    firstSeq,
    records: lines.length,
    blocks: blocks.length,
    pages: pages.length,
    rootLength: sealedLength(rootPart),
  });
  const seal = partSealer(keys.key('activity'));
  const bytes = concatBytes(
    header,
    seal(header, 'root', 0, rootPart),
    ...blocks.map((part, index) => seal(header, 'block', index, part)),
    ...pageParts.map((part, index) => seal(header, 'page', index, part)),
  );
  const { kinds } = collector;
  const summary: SegmentSummary = {
    file: segmentFile(firstSeq),
    bytes: bytes.length,
    firstSeq,
    lastSeq,
    prevHash: toBase64Url(run.hashOf(firstSeq - 1)),
    hash,
    ...times,
    idFrom: ids.from,
    idTo: ids.to,
    validCount,
    invalidCount: lines.length - validCount,
    keys: makeBloom(kinds.keys, bloomBytes.keys),
    actions: makeBloom(kinds.actions, bloomBytes.actions),
    rings: makeBloom(kinds.rings, bloomBytes.rings),
    props: makeBloom(kinds.props, bloomBytes.props),
  };
  return { summary, bytes };
}
