// Builds a segment from records, one after the other: the bytes of its file and its summary. It cuts the records into
// blocks, hashes them, and collects the terms by which searches find them. Fields that records share are processed once
// for all of them.
import { concatBytes, toBase64Url, utf8 } from '../../crypto/bytes.ts';
import { KmsError } from '../../errors.ts';
import type { ActivityInput, SegmentSummary } from '../port.ts';
import { type ChainPlace, chainHash } from './chain.ts';
import { BlockMaker, frameOfAlike, type LineFrame, TextCollector, type TextNumbers } from './columns.ts';
import { compressPart } from './compression.ts';
import { digitsOf, idLength, type RecordKind } from './kind.ts';
import { makePages, packPage } from './postings.ts';
import { type Alike, parseActivityLine } from './record.ts';
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

/**
 * Maximum sizes in bytes. Up to them a filter has ten bits a term, which tells a thousand keys, or addresses with their
 * networks, from others.
 */
const bloomBytes = { keys: 2048, actions: 100, rings: 512, props: 1024, addresses: 2048 };
const blockRecords = 128;
const blockText = 64 * 1024;

/** The segment's data for records of one kind. */
interface KindInSegment {
  readonly texts: TextNumbers;
  readonly frame: LineFrame;
  readonly postings: readonly number[][];
  /** Characters of a line without time and number. */
  readonly length: number;
}

export class SegmentMaker {
  readonly #before: ChainPlace;
  readonly #texts: TextCollector;
  readonly #terms = new TermCollector();
  readonly #kinds = new Map<RecordKind, KindInSegment>();
  readonly #blocks = new Blocks();
  #count = 0;
  #hash: Uint8Array;
  #validCount = 0;

  /** `before` is the position before the first record; `records` is the number to come. */
  constructor(before: ChainPlace, records: number) {
    this.#before = before;
    this.#hash = before.hash;
    this.#texts = new TextCollector(records);
  }

  /** The position of the last record. */
  get end(): ChainPlace {
    return { seq: this.#before.seq + this.#count, hash: this.#hash };
  }

  /** Adds a record by its canonical line. Throws `corrupt` if the line is no record. */
  add(line: string): void {
    const seq = this.end.seq + 1;
    const record = parseActivityLine(line);
    if (!record) throw new KmsError('corrupt', `activity record ${seq} is not readable`);
    const texts = this.#texts.numbersOf(record);
    this.#blocks.at(this.#hash).add(line, record, texts.isBare, seq);
    this.#added(record, line.length, record.createdAt, record.id);
    this.#hash = chainHash(this.#hash, line);
    this.#texts.add(texts);
    post(this.#terms.postingsOf(record), this.#count++);
  }

  /** Adds a record that its kind, time and id fully describe; the id is `idLength` bytes of `ids`. */
  addAlike(kind: RecordKind, createdAt: number, ids: Buffer, idAt: number): void {
    const known = this.#kinds.get(kind) ?? this.#take(kind);
    const seq = this.end.seq + 1;
    const id = ids.toString('latin1', idAt, idAt + idLength);
    const isBare = known.texts.isBare && createdAt >= 0;
    if (!isBare || !this.#blocks.at(this.#hash).addFramed(known.frame, createdAt, id)) {
      this.add(kind.line(createdAt, id, seq));
      return;
    }
    this.#added(kind.alike, known.length + digitsOf(createdAt) + digitsOf(seq), createdAt, id);
    this.#hash = kind.hash(this.#hash, createdAt, ids, idAt, seq);
    this.#texts.add(known.texts);
    post(known.postings, this.#count++);
  }

  #take(kind: RecordKind): KindInSegment {
    const { alike } = kind;
    const texts = this.#texts.numbersOf(alike);
    const length = kind.lineLength + idLength;
    const frame = frameOfAlike(alike, kind.inside);
    const postings = this.#terms.postingsOf({ ...alike, props: kind.props });
    const known = { texts, frame, postings, length };
    this.#kinds.set(kind, known);
    return known;
  }

  #added({ validAction }: Alike, length: number, createdAt: number, id: string): void {
    this.#blocks.added(length, createdAt, id);
    if (validAction) this.#validCount++;
  }

  finish(keys: ActivityKeys, uid: Uint8Array): { summary: SegmentSummary; bytes: Uint8Array } {
    const firstSeq = this.#before.seq + 1;
    const { seq: lastSeq } = this.end;
    const hash = toBase64Url(this.#hash);
    const columns = this.#blocks.columns();
    const bytes = this.#bytes(firstSeq, { hash, ...columns }, keys, uid);
    const terms = this.#terms;
    const summary: SegmentSummary = {
      file: segmentFile(firstSeq),
      bytes: bytes.length,
      firstSeq,
      lastSeq,
      prevHash: toBase64Url(this.#before.hash),
      hash,
      from: range(columns.from).from,
      to: range(columns.to).to,
      idFrom: range(columns.idFrom).from,
      idTo: range(columns.idTo).to,
      validCount: this.#validCount,
      invalidCount: this.#count - this.#validCount,
      keys: makeBloom(terms.keys, bloomBytes.keys),
      actions: makeBloom(terms.actions, bloomBytes.actions),
      rings: makeBloom(terms.rings, bloomBytes.rings),
      props: makeBloom(terms.props, bloomBytes.props),
      addresses: makeBloom(new Set([...this.#texts.addresses].flatMap(networkTerms)), bloomBytes.addresses),
    };
    return { summary, bytes };
  }

  /**
   * Header, root, blocks, pages, origins. Each sealed part is bound to the header, so all lengths are settled before
   * the first is sealed.
   */
  #bytes(
    firstSeq: number,
    columns: Omit<SegmentRoot, 'pageTerms' | 'pageLengths' | 'originsLength'>,
    keys: ActivityKeys,
    uid: Uint8Array,
  ): Uint8Array {
    const { parts } = this.#blocks;
    const pages = makePages(this.#terms.postings, this.#count);
    const pageParts = pages.map((page) => compressPart(packPage(page.bytes)));
    const textsPart = compressPart(this.#texts.bytes());
    const root: SegmentRoot = {
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
      records: this.#count,
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
}

/** A block that is being filled. */
interface OpenBlock {
  readonly maker: BlockMaker;
  records: number;
  text: number;
  from: number;
  to: number;
  idFrom: string;
  idTo: string;
}

/** Blocks of 128 records, or fewer when their lines are long. */
class Blocks {
  /** The closed blocks, compressed. */
  readonly parts: Uint8Array[] = [];
  readonly #closed: OpenBlock[] = [];
  #open: OpenBlock | undefined;

  /** The block for the next record; `hash` is the chain hash before it. */
  at(hash: Uint8Array): BlockMaker {
    this.#open ??= { maker: new BlockMaker(hash), records: 0, text: 0, from: 0, to: 0, idFrom: '', idTo: '' };
    return this.#open.maker;
  }

  /** Counts the record just added, with a line of `length` characters. */
  added(length: number, createdAt: number, id: string): void {
    const block = this.#open;
    if (!block) return;
    const isFirst = block.records++ === 0;
    block.text += length;
    if (isFirst || createdAt < block.from) block.from = createdAt;
    if (isFirst || createdAt > block.to) block.to = createdAt;
    if (isFirst || id < block.idFrom) block.idFrom = id;
    if (isFirst || id > block.idTo) block.idTo = id;
    if (block.records === blockRecords || block.text >= blockText) this.#close();
  }

  #close(): void {
    const block = this.#open;
    if (!block) return;
    this.parts.push(block.maker.bytes());
    this.#closed.push(block);
    this.#open = undefined;
  }

  /** The root's columns, one entry a block; closes the last block. */
  columns(): Pick<SegmentRoot, 'records' | 'lengths' | 'from' | 'to' | 'idFrom' | 'idTo'> {
    this.#close();
    const blocks = this.#closed;
    return {
      records: blocks.map(({ records }) => records),
      lengths: this.parts.map(sealedLength),
      from: blocks.map(({ from }) => from),
      to: blocks.map(({ to }) => to),
      idFrom: blocks.map(({ idFrom }) => idMark(idFrom)),
      idTo: blocks.map(({ idTo }) => idMark(idTo)),
    };
  }
}

/** Minimum and maximum of some values. */
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

/**
 * Collects the search data of a segment's records: postings of all terms, and the terms of each kind for the summary.
 */
class TermCollector {
  /** Positions by term, ascending. */
  readonly postings = new Map<number, number[]>();
  readonly keys = new Set<number>();
  readonly actions = new Set<number>();
  readonly rings = new Set<number>();
  readonly props = new Set<number>();

  /** The posting lists for the position of a record, and of all others with the same fields. */
  postingsOf({ keyid, action, ringname, validAction, props, reporter }: TermsSource): number[][] {
    const paths = propsTerms(props, maxPropsTerms + 1);
    const terms = paths.length > maxPropsTerms ? [wideTerm] : paths;
    const deeds = reporter === undefined ? deedTerms(props) : [];
    return [
      this.#positions(this.keys, keyTerm(keyid)),
      this.#positions(this.actions, actionTerm(action)),
      this.#positions(this.rings, ringTerm(ringname)),
      this.#positions(undefined, validTerm(validAction)),
      ...[...terms, ...deeds].map((term) => this.#positions(this.props, term)),
    ];
  }

  #positions(kind: Set<number> | undefined, term: number): number[] {
    kind?.add(term);
    const known = this.postings.get(term);
    if (known) return known;
    const positions: number[] = [];
    this.postings.set(term, positions);
    return positions;
  }
}

type TermsSource = Alike & Pick<ActivityInput, 'props' | 'reporter'>;

/** Adds the next record's position; only once where two terms share a hash. */
function post(postings: readonly number[][], position: number): void {
  for (const positions of postings) if (positions.at(-1) !== position) positions.push(position);
}
