// Verifies an export of the activity log from its bytes alone, without an appliance. Format: docs/activity-export.md.
import { type ActivityHead, isSigned, isSignedBy, parseHead } from '../core/activity.ts';
import { equalBytes, fromUtf8, utf8 } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';
import { startRsa } from '../platform/native-rsa.ts';
import { type ChainLink, type ChainVerdict, chainStart, placeOf, verifyChain } from '../store/activity/chain.ts';
import { ApprovalCheck, type ApprovalFindings } from './verify-approvals.ts';

/** For commands too, which must not load the primitives. */
export { mlDsaFingerprint } from '../core/activity.ts';

interface ExportExpectations {
  /**
   * An earlier head: the export must contain it, or begin right after it. Any JSON value; refused unless it is a head.
   */
  readonly since?: unknown;
  /** The key that must have signed the head, in the form of `isSignedBy`. Default: any. */
  readonly publicKey?: string;
}

interface ExportVerdict extends ChainVerdict {
  readonly since?: ActivityHead;
  /** The head of the last record dropped by retention, with which the export begins. */
  readonly dropped?: ActivityHead;
  /** Absent if nothing was done with approval. */
  readonly approvals?: ApprovalFindings;
}

/** Throws `invalid` or `conflict` for a head that is malformed or not signed as it should be. */
export async function verifyExport(
  source: AsyncIterable<Uint8Array>,
  { since: given, publicKey }: ExportExpectations = {},
): Promise<ExportVerdict> {
  const since = given === undefined ? undefined : signedHead(given, publicKey);
  const lines = linesOf(source);
  const line = await lines.next();
  if (!line.done && isHeadLine(line.value)) {
    const dropped = droppedHead(line.value, since, publicKey);
    const start = { seq: dropped.seq, hash: dropped.hash };
    const verdict = await verifyRecords(linksOf(lines), { start, anchors: since ? [since] : [] }, dropped.tenant);
    return { ...verdict, dropped, ...(since && { since }) };
  }
  const links = linksOf(resumed(line, lines));
  if (!since) return verifyRecords(links, {});
  const anchor = { seq: since.seq, hash: since.hash };
  const first = await links.next();
  const all = resumed(first, links);
  const startsAfter = !first.done && placeOf(first.value.line) === since.seq + 1;
  const expected = startsAfter ? { start: anchor } : { anchors: [anchor] };
  return { ...(await verifyRecords(all, expected, since.tenant)), since };
}

/** The chain, and what its records say of approvals. */
async function verifyRecords(
  links: AsyncIterable<ChainLink>,
  expected: NonNullable<Parameters<typeof verifyChain>[1]>,
  tenant?: string,
): Promise<ExportVerdict> {
  const { start = chainStart } = expected;
  // Passkeys may be of RSA.
  startRsa();
  const approvals = new ApprovalCheck(start.seq, tenant);
  let head = start;
  let count = 0;
  let wrong: { readonly seq: number; readonly problem: string } | undefined;
  async function* watched(): AsyncGenerator<ChainLink> {
    for await (const link of links) {
      yield link;
      // Resumed once the link has verified.
      const seq = head.seq + 1;
      const problem = approvals.see(link.line);
      if (problem !== undefined) {
        wrong = { seq, problem };
        return;
      }
      head = { seq, hash: link.hash };
      count++;
    }
  }
  const verdict = await verifyChain(watched(), expected);
  wrong ??= verdict.broken === undefined ? approvals.end() : undefined;
  if (wrong) {
    const { seq, problem } = wrong;
    return { count, head, broken: { position: seq - start.seq, seq, problem: `record ${seq} ${problem}` } };
  }
  const { findings } = approvals;
  return findings === undefined || verdict.broken ? verdict : { ...verdict, approvals: findings };
}

const headLine = utf8('{"format":');
/** Limit of a head in bytes. */
const longestHead = 64 * 1024;

function isHeadLine(line: Uint8Array): boolean {
  return equalBytes(line.subarray(0, headLine.length), headLine);
}

/**
 * The first line of an export whose beginning was dropped by retention. A later head vouches for it through the hashes
 * in between; otherwise the expected key must have signed it.
 */
function droppedHead(line: Uint8Array, since: ActivityHead | undefined, publicKey: string | undefined): ActivityHead {
  const isVouchedFor = since !== undefined && since.seq >= parsedHead(line).seq;
  const head = signedHead(parsedHead(line), isVouchedFor ? undefined : publicKey);
  if (since === undefined || since.tenant === head.tenant) return head;
  throw new KmsError('conflict', `record ${head.seq} is of another tenant than the head`);
}

function parsedHead(line: Uint8Array): ActivityHead {
  let value: unknown;
  try {
    value = line.length <= longestHead && JSON.parse(new TextDecoder().decode(line));
  } catch {
    value = undefined;
  }
  return parseHead(value, 'the first line');
}

function signedHead(value: unknown, publicKey: string | undefined): ActivityHead {
  const head = parseHead(value, 'since');
  if (!isSigned(head)) throw new KmsError('conflict', 'the head was changed: its signature does not verify');
  if (publicKey === undefined || isSignedBy(head, publicKey)) return head;
  throw new KmsError('conflict', `the head is signed by another key than expected, ${head.publicKey}`);
}

async function* resumed<T>(first: IteratorResult<T>, rest: AsyncIterable<T>): AsyncGenerator<T> {
  if (first.done) return;
  yield first.value;
  yield* rest;
}

const shape = /^\{"hash":"([A-Za-z0-9_-]{43})",(?=").*\}$/s;
/** Length of the text before the record's own fields. */
const prefixLength = '{"hash":"",'.length + 43;
const nothing: ChainLink = { line: '', hash: '' };

async function* linksOf(lines: AsyncIterable<Uint8Array>): AsyncGenerator<ChainLink> {
  for await (const bytes of lines) {
    const text = fromUtf8(bytes);
    const [, hash] = (text && shape.exec(text)) || [];
    // A malformed line stands for no record: the chain breaks there.
    yield text === undefined || hash === undefined || isTooDeep(text)
      ? nothing
      : { line: `{${text.slice(prefixLength)}`, hash };
  }
}

/**
 * Limit of a record's nesting, itself included: more than `props` can have, and less than common JSON parsers accept.
 */
const deepest = 64;
const mayBeTooDeep = new RegExp(`(?:[[{][^[{]*){${deepest}}`);

function isTooDeep(line: string): boolean {
  if (!mayBeTooDeep.test(line)) return false;
  const isDeeper = (value: unknown, left: number): boolean =>
    left < 0 ||
    (typeof value === 'object' && value !== null && Object.values(value).some((each) => isDeeper(each, left - 1)));
  try {
    return isDeeper(JSON.parse(line), deepest);
  } catch {
    return true;
  }
}

/** Limit of a record in bytes: its props came in one request. */
const longestLine = 64 * 1024 * 1024;
const lineFeed = 10;

/** Lines without their line feed, which the last one may lack. */
async function* linesOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let parts: Uint8Array[] = [];
  let length = 0;
  const take = (last: Uint8Array): Uint8Array => {
    const line = parts.length === 0 ? last : Buffer.concat([...parts, last]);
    parts = [];
    length = 0;
    return line.length > longestLine ? new Uint8Array() : line;
  };
  for await (const chunk of source) {
    let from = 0;
    for (let at = chunk.indexOf(lineFeed); at >= 0; at = chunk.indexOf(lineFeed, from)) {
      yield take(chunk.subarray(from, at));
      from = at + 1;
    }
    parts.push(chunk.slice(from));
    length += chunk.length - from;
    if (length > longestLine) {
      yield new Uint8Array();
      return;
    }
  }
  const last = take(new Uint8Array());
  if (last.length > 0) yield last;
}
