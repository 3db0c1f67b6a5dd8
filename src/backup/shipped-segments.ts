// The segments of the activity log that a state counts, among the files that lie in a shipped directory or its copy.
// Others may write there, so a name proves nothing: the header must fit it, and with the keys the segment's root must
// open, which authenticates the header.
import { toHex } from '../crypto/bytes.ts';
import { decodeHeader, headerLength, openPart } from '../store/activity/segment.ts';
import type { Files } from '../store/files.ts';
import type { StoreKeys } from '../store/store-files.ts';
import { parseShippedSegment, type ShippedPlace } from './ship-journal.ts';
import { longestRoot } from './shipped-bounds.ts';

type Reading = Pick<Files, 'list' | 'size' | 'readAt'>;

/** The files of one segment. */
interface Variants {
  /** Its own name. */
  readonly own: string;
  /** Its first record. */
  readonly from: number;
  /** Epochs of their keys, the newest first. */
  readonly epochs: readonly number[];
}

/** In the order of the records, from record `first` on. */
async function segmentsIn(files: Reading, dir: string, first: number): Promise<readonly Variants[]> {
  const found = new Map<string, { own: string; from: number; epochs: number[] }>();
  for (const name of await files.list(dir)) {
    const segment = parseShippedSegment(name);
    if (!segment || segment.from < first) continue;
    const { own, from, epoch } = segment;
    const variants = found.get(own) ?? { own, from, epochs: [] };
    variants.epochs.push(epoch);
    found.set(own, variants);
  }
  for (const { epochs } of found.values()) epochs.sort((a, b) => b - a);
  return [...found.values()].sort((a, b) => a.from - b.from);
}

/** The record after the last of a segment's file; undefined for a file that is none of this store's, by that name. */
export async function endOfSegment(
  files: Reading,
  path: string,
  uid: string,
  keys: StoreKeys | undefined,
): Promise<number | undefined> {
  const named = parseShippedSegment(path.slice(path.lastIndexOf('/') + 1));
  const start = await files.readAt(path, 0, headerLength);
  const header = decodeHeader(start);
  if (!named || typeof header === 'string' || toHex(header.uid) !== uid) return undefined;
  if (header.firstSeq !== named.from || header.epoch !== named.epoch) return undefined;
  if (keys) {
    const key = keyOf(keys, header.epoch);
    if (!key || header.rootLength > longestRoot) return undefined;
    const root = await files.readAt(path, headerLength, header.rootLength);
    if (!openPart(key, start, 'root', 0, root)) return undefined;
  }
  return header.firstSeq + header.records;
}

interface Counting {
  /** Undefined without the master key. */
  readonly keys: StoreKeys | undefined;
  /** By path, the record after the last of a segment that was looked at before. */
  readonly known?: ReadonlyMap<string, number>;
}

interface Counted {
  /** By path, the record after the last of each segment. */
  readonly files: ReadonlyMap<string, number>;
  /** Segments found, of those that the place counts. */
  readonly found: number;
}

/**
 * The files of the segments that a place counts: a segment begins where the ones before it have ended. Without the keys
 * a header proves nothing, and a forged one could claim the records of others: then whatever may be one of them is
 * counted too.
 */
export async function countedSegments(
  files: Reading,
  dir: string,
  { uid, segments, from = 1 }: ShippedPlace,
  { keys, known }: Counting,
): Promise<Counted> {
  const passed: ReadonlyMap<string, number>[] = [];
  const counted: ReadonlyMap<string, number>[] = [];
  let [next, isClear] = [from, true];
  const rest: ReadonlyMap<string, number>[] = [];
  for (const { own, from: first, epochs } of await segmentsIn(files, dir, from)) {
    if (counted.length === segments && keys) break;
    const ends = new Map<string, number>();
    for (const epoch of epochs) {
      const path = `${dir}/${own}.${epoch}`;
      const end = known?.get(path) ?? (await endOfSegment(files, path, uid, keys));
      if (end !== undefined) ends.set(path, end);
    }
    if (ends.size === 0) continue;
    if (counted.length === segments) rest.push(ends);
    else if (first < next) passed.push(ends);
    else {
      counted.push(ends);
      next = Math.max(...ends.values());
      isClear &&= new Set(ends.values()).size === 1;
    }
  }
  const isSure = isClear && counted.length === segments;
  const taken = keys ? counted : [...counted, ...passed, ...(isSure ? [] : rest)];
  return { files: new Map(taken.flatMap((ends) => [...ends])), found: counted.length };
}

/**
 * The segments to restore, by own name, with the epoch of the file to take: the newest under an available key. What
 * verifies comes first; what does not, where the place counts more, so that a check names its fault.
 */
export async function restoredSegments(
  files: Reading,
  dir: string,
  place: ShippedPlace,
  keys: StoreKeys,
): Promise<ReadonlyMap<string, number>> {
  const { uid, segments, from = 1 } = place;
  const readable = (await segmentsIn(files, dir, from))
    .map(({ own, epochs }) => ({ own, epochs: epochs.filter((epoch) => keyOf(keys, epoch)) }))
    .filter(({ epochs }) => epochs.length > 0);
  const chosen = new Map<string, number>();
  const isClear = readable.length <= segments && readable.every(({ epochs }) => epochs.length === 1);
  for (const { own, epochs } of isClear ? [] : readable) {
    for (const epoch of epochs) {
      if (chosen.has(own) || chosen.size === segments) break;
      if (await endOfSegment(files, `${dir}/${own}.${epoch}`, uid, keys)) chosen.set(own, epoch);
    }
  }
  for (const {
    own,
    epochs: [newest = 0],
  } of readable) {
    if (chosen.size < segments && !chosen.has(own)) chosen.set(own, newest);
  }
  return new Map([...chosen].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Undefined for an epoch whose key is not held. */
function keyOf(keys: StoreKeys, epoch: number): Uint8Array | undefined {
  try {
    const key = keys.key('activity', epoch);
    return key.length > 0 ? key : undefined;
  } catch {
    return undefined;
  }
}
