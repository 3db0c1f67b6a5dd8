// Makes a segment of a run of records: the bytes of its file and its summary. The records are cut into blocks, and on
// the way the terms are gathered by which searches find them.
import { concatBytes, toBase64Url, utf8 } from '../../crypto/bytes.ts';
import { KmsError } from '../../errors.ts';
import type { ActivityRecord, SegmentSummary } from '../port.ts';
import { encodeBlock, TextCollector } from './columns.ts';
import { compressPart } from './compression.ts';
import { makePages, packPage } from './postings.ts';
import { parseActivityLine } from './record.ts';
import {
  type ActivityKeys,
  encodeHeader,
  idMark,
  partSealer,
  type SegmentRoot,
  sealedLength,
  segmentFile,
} from './segment.ts';
import {
  actionTerm,
  deedTerms,
  keyTerm,
  makeBloom,
  maxPropsTerms,
  networkTerms,
  propsTerms,
  ringTerm,
  validTerm,
  wideTerm,
} from './terms.ts';

/** Ten bits a term up to here: a thousand keys, or addresses with their networks, are told apart from a stranger. */
const bloomBytes = { keys: 2048, actions: 100, rings: 512, props: 1024, addresses: 2048 };

interface SegmentRun {
  readonly firstSeq: number;
  readonly lines: readonly string[];
  /** Chain hash of a record of the run, or of the one before it. */
  hashOf(seq: number): Uint8Array;
}

/** Throws `corrupt` for a line that is no record. */
export function makeSegment(
  run: SegmentRun,
  keys: ActivityKeys,
  uid: Uint8Array,
): { summary: SegmentSummary; bytes: Uint8Array } {
  const { firstSeq, lines } = run;
  const terms = new TermCollector();
  let validCount = 0;
  const blocks = makeBlocks(run, (record, position) => {
    terms.add(record, position);
    if (record.validAction) validCount++;
  });
  const lastSeq = firstSeq + lines.length - 1;
  const hash = toBase64Url(run.hashOf(lastSeq));
  const bytes = segmentBytes(run, hash, blocks, terms, keys, uid);
  const summary: SegmentSummary = {
    file: segmentFile(firstSeq),
    bytes: bytes.length,
    firstSeq,
    lastSeq,
    prevHash: toBase64Url(run.hashOf(firstSeq - 1)),
    hash,
    from: range(blocks.from).from,
    to: range(blocks.to).to,
    idFrom: range(blocks.idFrom).from,
    idTo: range(blocks.idTo).to,
    validCount,
    invalidCount: lines.length - validCount,
    keys: makeBloom(terms.keys, bloomBytes.keys),
    actions: makeBloom(terms.actions, bloomBytes.actions),
    rings: makeBloom(terms.rings, bloomBytes.rings),
    props: makeBloom(terms.props, bloomBytes.props),
    addresses: makeBloom(new Set([...blocks.texts.addresses].flatMap(networkTerms)), bloomBytes.addresses),
  };
  return { summary, bytes };
}

/**
 * Header, root, blocks, pages; each sealed part is bound to the header, so all lengths are settled before the first is
 * sealed.
 */
function segmentBytes(
  { firstSeq, lines }: SegmentRun,
  hash: string,
  blocks: SegmentBlocks,
  terms: TermCollector,
  keys: ActivityKeys,
  uid: Uint8Array,
): Uint8Array {
  const pages = makePages(terms.postings, lines.length);
  const pageParts = pages.map((page) => compressPart(packPage(page.bytes)));
  const { parts, texts, ...columns } = blocks;
  const textsPart = compressPart(texts.bytes());
  const root: SegmentRoot = {
    hash,
    ...columns,
    pageTerms: pages.map((page) => page.firstTerm),
    pageLengths: pageParts.map(sealedLength),
    originsLength: sealedLength(textsPart),
  };
  const rootPart = compressPart(utf8(JSON.stringify(root)));
  const header = encodeHeader({
    epoch: keys.epoch,
    uid,
    firstSeq,
    records: lines.length,
    blocks: parts.length,
    pages: pages.length,
    rootLength: sealedLength(rootPart),
  });
  const seal = partSealer(keys.key('activity'));
  return concatBytes(
    header,
    seal(header, 'root', 0, rootPart),
    ...parts.map((part, index) => seal(header, 'block', index, part)),
    ...pageParts.map((part, index) => seal(header, 'page', index, part)),
    seal(header, 'origins', 0, textsPart),
  );
}

const blockRecords = 128;
const blockText = 64 * 1024;

/** Blocks in columns, as the root has them. */
class SegmentBlocks {
  /** Compressed. */
  readonly parts: Uint8Array[] = [];
  readonly records: number[] = [];
  readonly lengths: number[] = [];
  readonly from: number[] = [];
  readonly to: number[] = [];
  readonly idFrom: string[] = [];
  readonly idTo: string[] = [];
  readonly texts: TextCollector;

  constructor(records: number) {
    this.texts = new TextCollector(records);
  }

  /** `seq` is the number of the first. */
  add(prevHash: Uint8Array, lines: readonly string[], records: readonly ActivityRecord[], seq: number): void {
    const isBare = records.map((record) => this.texts.add(record));
    const part = encodeBlock(prevHash, lines, records, isBare, seq);
    const times = range(records.map((record) => record.createdAt));
    const ids = range(records.map((record) => idMark(record.id)));
    this.parts.push(part);
    this.records.push(lines.length);
    this.lengths.push(sealedLength(part));
    this.from.push(times.from);
    this.to.push(times.to);
    this.idFrom.push(ids.from);
    this.idTo.push(ids.to);
  }
}

/** Least and greatest of some values. */
function range<T extends string | number>(values: readonly T[]): { from: T; to: T } {
  const [first, ...rest] = values;
  if (first === undefined) throw new KmsError('internal', 'a segment of no records');
  let from = first;
  let to = first;
  for (const value of rest) {
    if (value < from) from = value;
    if (value > to) to = value;
  }
  return { from, to };
}

/** Blocks of 128 records, or fewer when their lines are long. Throws `corrupt` for a line that is no record. */
function makeBlocks(run: SegmentRun, each: (record: ActivityRecord, position: number) => void): SegmentBlocks {
  const blocks = new SegmentBlocks(run.lines.length);
  let first = 0;
  let text = 0;
  let records: ActivityRecord[] = [];
  for (const [position, line] of run.lines.entries()) {
    const record = parseActivityLine(line);
    if (!record) throw new KmsError('corrupt', `activity record ${run.firstSeq + position} is not readable`);
    each(record, position);
    records.push(record);
    text += line.length;
    if (records.length < blockRecords && text < blockText && position + 1 < run.lines.length) continue;
    const seq = run.firstSeq + first;
    blocks.add(run.hashOf(seq - 1), run.lines.slice(first, position + 1), records, seq);
    first = position + 1;
    text = 0;
    records = [];
  }
  return blocks;
}

/** What a segment's searches need of its records: postings of all terms, and the terms of each kind for the summary. */
class TermCollector {
  /** Positions by term, ascending. */
  readonly postings = new Map<number, number[]>();
  readonly keys = new Set<number>();
  readonly actions = new Set<number>();
  readonly rings = new Set<number>();
  readonly props = new Set<number>();

  /** Takes in the record at a position; positions ascend from call to call. */
  add(record: ActivityRecord, position: number): void {
    this.#post(this.keys, keyTerm(record.keyid), position);
    this.#post(this.actions, actionTerm(record.action), position);
    this.#post(this.rings, ringTerm(record.ringname), position);
    this.#post(undefined, validTerm(record.validAction), position);
    const terms = propsTerms(record.props, maxPropsTerms + 1);
    for (const term of terms.length > maxPropsTerms ? [wideTerm] : terms) this.#post(this.props, term, position);
    if (record.reporter === undefined) {
      for (const term of deedTerms(record.props)) this.#post(this.props, term, position);
    }
  }

  #post(kind: Set<number> | undefined, term: number, position: number): void {
    kind?.add(term);
    const positions = this.postings.get(term);
    if (!positions) this.postings.set(term, [position]);
    else if (positions.at(-1) !== position) positions.push(position);
  }
}
