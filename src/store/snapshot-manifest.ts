// The manifest of a snapshot, read strictly: it names files that are read, copied and replaced, and its keys prove only
// who sealed it. A directory that somebody else made may hold a sealed manifest that no appliance wrote.
import { isCount, isHex, isJsonObject, type JsonObject, jsonOf } from '../model/json.ts';
import { type Run, runsKept } from '../model/store-mark.ts';
import { segmentFile } from './activity/segment.ts';
import type { ChainHead, DroppedActivity, SegmentSummary } from './port.ts';

export interface SnapshotManifest {
  readonly version: 1;
  /** Number of migrations done. */
  readonly schema: number;
  /** Epoch milliseconds. */
  readonly savedAt: number;
  /** The newest runs up to the snapshot's end. */
  readonly runs: readonly Run[];
  readonly activity: {
    readonly segments: readonly SegmentSummary[];
    readonly head: ChainHead;
    /** Activity before the segments that retention dropped, if any. */
    readonly dropped?: DroppedActivity | undefined;
  };
  readonly tailBytes: number;
  readonly imageBytes: number;
}

/** Undefined for anything but a manifest. */
export function readManifest(json: string): SnapshotManifest | undefined {
  const value = jsonOf(json);
  if (!isJsonObject(value) || value.version !== 1 || !isJsonObject(value.activity)) return undefined;
  const { schema, savedAt, runs, tailBytes, imageBytes } = value;
  const { segments, head, dropped } = value.activity;
  if (!isCount(schema) || !Number.isSafeInteger(savedAt) || !isCount(tailBytes) || !isCount(imageBytes))
    return undefined;
  if (!isRuns(runs) || !isList(segments, isSummary) || !isHead(head)) return undefined;
  if (dropped !== undefined && !isDropped(dropped)) return undefined;
  const activity = { segments, head, ...(dropped === undefined ? {} : { dropped }) };
  return { version: 1, schema, savedAt: Number(savedAt), runs, activity, tailBytes, imageBytes };
}

/** Whether these are the newest runs of a log, as in a `Mark`. */
export function isRuns(value: unknown): value is readonly Run[] {
  const isRun = (run: unknown): run is Run => isJsonObject(run) && isCount(run.from) && isHex(run.tag, 16);
  return isList(value, isRun) && value.length <= runsKept;
}

function isList<T>(value: unknown, isOne: (each: unknown) => each is T): value is readonly T[] {
  return Array.isArray(value) && value.every(isOne);
}

/** Twelve digits, as in the names of segments. */
const latestRecord = 999_999_999_999;
/** Characters of an `idMark`. */
const longestMark = 17;

function isSummary(value: unknown): value is SegmentSummary {
  if (!isJsonObject(value)) return false;
  const { file, bytes, firstSeq, lastSeq, prevHash, hash, from, to, validCount, invalidCount } = value;
  if (!isCount(firstSeq) || !isCount(lastSeq) || firstSeq < 1 || lastSeq < firstSeq || lastSeq > latestRecord)
    return false;
  if (file !== segmentFile(firstSeq) || !isCount(bytes) || !isHash(prevHash) || !isHash(hash)) return false;
  return (
    Number.isSafeInteger(from) &&
    Number.isSafeInteger(to) &&
    isCount(validCount) &&
    isCount(invalidCount) &&
    hasTexts(value)
  );
}

function hasTexts({ idFrom, idTo, keys, actions, rings, props, addresses }: JsonObject): boolean {
  const isMark = (id: unknown): boolean => typeof id === 'string' && id.length <= longestMark;
  const isFilter = (text: unknown): boolean => text === null || typeof text === 'string';
  return isMark(idFrom) && isMark(idTo) && [keys, actions, rings, props, addresses ?? null].every(isFilter);
}

function isHead(value: unknown): value is ChainHead {
  return isJsonObject(value) && isCount(value.seq) && isHash(value.hash);
}

function isDropped(value: unknown): value is DroppedActivity {
  return isJsonObject(value) && isHead(value) && value.seq >= 1 && Number.isSafeInteger(Object(value).until);
}

/** SHA-256 in base64url. */
function isHash(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9_-]{43}$/.test(value);
}
