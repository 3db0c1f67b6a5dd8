// Makes a segment of a run of records: the bytes of its file and its summary.
import { concatBytes } from '../../crypto/bytes.ts';
import { toBase64Url, utf8 } from '../../crypto/encoding.ts';
import { makeBloom } from './bloom.ts';
import { makePages } from './postings.ts';
import { makeBlocks, range, type SegmentBlocks, type SegmentRun } from './segment-blocks.ts';
import { type ActivityKeys, compressPart, encodeHeader, partSealer, sealedLength } from './segment-format.ts';
import { type SegmentRoot, type SegmentSummary, segmentFile } from './segment-root.ts';
import { TermCollector } from './term-collector.ts';

const bloomBytes = { keys: 200, actions: 100, rings: 150, props: 300 };

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
  };
  return { summary, bytes };
}

/** Header, root, blocks, pages; each sealed part is bound to the header, so all lengths are settled before the first is sealed. */
function segmentBytes(
  { firstSeq, lines }: SegmentRun,
  hash: string,
  blocks: SegmentBlocks,
  terms: TermCollector,
  keys: ActivityKeys,
  uid: Uint8Array,
): Uint8Array {
  const pages = makePages(terms.postings, lines.length);
  const pageParts = pages.map((page) => compressPart(page.bytes));
  const { parts, ...columns } = blocks;
  const root: SegmentRoot = {
    hash,
    ...columns,
    pageTerms: pages.map((page) => page.firstTerm),
    pageLengths: pageParts.map(sealedLength),
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
  );
}
