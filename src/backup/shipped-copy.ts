// A local copy of a shipped directory, with the same file names: arrived data is copied, and data that no state needs
// is removed. Files of the last proven state are never replaced; any other is fetched again if it differs from what is
// shipped. Without the master key nothing that arrived is removed or replaced: what differs is refused, and a seal or
// journal that is replaced is kept.
import { equalBytes, toHex } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';
import { longestSeal, sealFile } from '../platform/data-dir.ts';
import type { Files } from '../store/files.ts';
import {
  decodeFileHeader,
  headerLength,
  listStoreFiles,
  logName,
  type StoreKeys,
  snapshotName,
} from '../store/store-files.ts';
import { pieces } from './format.ts';
import { keepJournal, keepSeal, removeContained, removeKept } from './kept-versions.ts';
import {
  arrived,
  filesUpTo,
  journalFile,
  nextSealFile,
  type Point,
  parseShippedSegment,
  type ShippedPlace,
} from './ship-journal.ts';
import { longestSegment, needAtMost } from './shipped-bounds.ts';
import { countedSegments, endOfSegment } from './shipped-segments.ts';

interface Arriving {
  /** Name of the shipped directory. */
  readonly directory: string;
  readonly point: Point;
  /** The state up to which logs were copied: later bytes may be torn. */
  readonly before: Point | undefined;
  /** The state whose files are never replaced: the proven one; without a key, the copied one. */
  readonly sure: Point | undefined;
  /** Whether a proof failed: then nothing that is here counts but `sure`. */
  readonly isDistrusted: boolean;
  /** Files that are here and were compared with what is shipped; of a segment, the record after its last. */
  readonly known: Map<string, number>;
  readonly seal: Uint8Array;
  /** Bytes of the journal, from offset `from` on. */
  readonly lines: Uint8Array;
  readonly from: number;
  /** The keys of a store; undefined without the master key. */
  readonly keysOf: ((dir: string) => StoreKeys) | undefined;
  /** Epoch milliseconds. */
  readonly now: number;
  /** Bytes that can still be written locally. */
  room(): Promise<number>;
}

/**
 * Copies the missing data; the journal is written last. Returns what is not there, in words, where no proof will say
 * so.
 */
export async function bringNear(source: Files, copy: Files, arriving: Arriving): Promise<readonly string[]> {
  const { directory, point, seal, lines, from, keysOf, now, room } = arriving;
  await copy.makeDir('.');
  const keeping = { now, needRoom: (name: string, bytes: number) => needRoom(name, bytes, room) };
  if (!keysOf && from === 0) await keepJournal(copy, lines, directory, keeping);
  const [before, sure] = [arriving.before, arriving.sure].map((state) => state && arrived([state]));
  const lacks: string[] = [];
  for (const [dir, place] of arrived([point])) {
    const keys = keysOf?.(dir);
    const bringing = { ...arriving, dir, place, before: before?.get(dir), sure: sure?.get(dir), keys };
    const found = await bring(source, copy, bringing);
    if (!keys && found < place.segments) {
      lacks.push(`${dir}: ${found} segments of its activity log are there, and the journal counts ${place.segments}`);
    }
  }
  const hasSeal = await copy.exists(sealFile);
  const isOther = !hasSeal || !equalBytes(await copy.read(sealFile, longestSeal), seal);
  if (!keysOf && hasSeal && isOther) await keepSeal(copy, keeping);
  if (isOther) await copy.replace(hasSeal ? nextSealFile : sealFile, seal);
  if (from > 0) await needLength(copy, journalFile, from);
  await (from > 0 ? append(copy, journalFile, from, lines) : copy.replace(journalFile, lines));
  if (isOther && hasSeal) {
    await copy.replace(sealFile, seal);
    await copy.remove(nextSealFile);
  }
  if (!keysOf && from === 0) await removeContained(copy, lines);
  return lacks;
}

/** Removes data that only states before this point need, and the versions kept until a state was proven. */
export async function prune(copy: Files, point: Point): Promise<void> {
  await removeKept(copy);
  for (const [dir, { snapshot, from = 1 }] of arrived([point])) {
    const { snapshots, logs } = await listStoreFiles(copy, dir);
    for (const each of snapshots) if (each < snapshot) await copy.remove(snapshotName(dir, each));
    for (const each of logs) if (each <= snapshot) await copy.remove(logName(dir, each));
    for (const name of await copy.list(dir)) {
      if ((parseShippedSegment(name)?.from ?? from) < from) await copy.remove(`${dir}/${name}`);
    }
  }
}

type Bringing = Pick<Arriving, 'isDistrusted' | 'known' | 'room'> & {
  readonly dir: string;
  readonly place: ShippedPlace;
  readonly before: ShippedPlace | undefined;
  readonly sure: ShippedPlace | undefined;
  readonly keys: StoreKeys | undefined;
};

interface StoreFile {
  readonly name: string;
  /** Bytes that count of the last log; undefined for a whole file. */
  readonly bytes?: number;
}

/** Copies the missing data of a store. Returns how many of the counted segments of its activity log are there. */
async function bring(source: Files, copy: Files, bringing: Bringing): Promise<number> {
  const { dir, place, keys, known } = bringing;
  await copy.makeDir(dir);
  const there = new Set((await copy.list(dir)).map((name) => `${dir}/${name}`));
  for (const file of filesUpTo(dir, place)) {
    if (file.bytes === undefined && known.has(file.name)) continue;
    await bringFile(source, copy, file, there.has(file.name), bringing);
    if (file.bytes === undefined) known.set(file.name, 0);
  }
  const counted = await countedSegments(source, dir, place, { keys, known });
  for (const [path, end] of counted.files) {
    if (known.has(path)) continue;
    if (!there.has(path)) await bringSegment(source, copy, path, bringing.room);
    // With the key a faulty one shows in the proof.
    else if (!keys && !(await isSame(source, copy, path))) throw isOtherFile(path, await isAsLong(source, copy, path));
    known.set(path, end);
  }
  return counted.found;
}

/** Copies a snapshot or log, or its missing part. */
async function bringFile(
  source: Files,
  copy: Files,
  file: StoreFile,
  isHere: boolean,
  bringing: Bringing,
): Promise<void> {
  const { name, bytes } = file;
  const { dir, place, room } = bringing;
  const length = bytes ?? (await source.size(name));
  const has = isHere ? await bytesKept(source, copy, file, length, bringing) : 0;
  if (has > 0 && has >= length) return;
  const size = bytes === undefined ? length : await source.size(name);
  // A journal line may claim any number of bytes.
  if (size < length) throw endsEarly(name, size, length);
  await needStoreFile(source, name === snapshotName(dir, place.snapshot) ? 'snapshot' : 'log', name, place);
  await needRoom(name, length - has, room);
  await (has === 0
    ? copy.replace(name, exactly(source, name, length))
    : append(copy, name, has, exactly(source, name, length, has)));
}

/** Bytes of a file here that stay; from there on it is fetched. */
async function bytesKept(
  source: Files,
  copy: Files,
  { name, bytes }: StoreFile,
  length: number,
  { dir, before, sure, isDistrusted, keys }: Bringing,
): Promise<number> {
  const size = await copy.size(name);
  if (before && name === logName(dir, before.log)) {
    const has = Math.min(size, before.offset);
    if (has <= length) return has;
    throw keys ? endsEarly(name, length, has) : isOtherFile(name, false);
  }
  const isSure = sure !== undefined && [...filesUpTo(dir, sure)].some((each) => each.name === name);
  if (bytes === undefined && (isSure || !isDistrusted) && size === length && (await isSame(source, copy, name))) {
    return length;
  }
  if (!keys && sure && generationOf(name) <= sure.log) throw isOtherFile(name, size === length);
  if (!isSure) return 0;
  return name === logName(dir, sure.log) ? Math.min(size, sure.offset) : length;
}

function generationOf(name: string): number {
  return Number(/-([0-9]{10})\.kms$/.exec(name)?.[1] ?? 0);
}

/** Bytes at either end that are compared: they hold a header or a seal, which depends on all of the file. */
const comparedEnds = 64;

async function isAsLong(source: Files, copy: Files, name: string): Promise<boolean> {
  return (await source.size(name)) === (await copy.size(name));
}

/** Whether a whole file is as long here as what is shipped, and its ends are the same. */
async function isSame(source: Files, copy: Files, name: string): Promise<boolean> {
  if (!(await isAsLong(source, copy, name))) return false;
  const size = await copy.size(name);
  const length = Math.min(comparedEnds, size);
  for (const at of [0, size - length]) {
    if (!equalBytes(await source.readAt(name, at, length), await copy.readAt(name, at, length))) return false;
  }
  return true;
}

async function bringSegment(source: Files, copy: Files, path: string, room: () => Promise<number>): Promise<void> {
  const length = await source.size(path);
  needAtMost(path, length, longestSegment);
  await needRoom(path, length, room);
  await copy.replace(path, exactly(source, path, length));
}

/**
 * Fetches segments of which a proof found the copy faulty, by own path, where what is shipped verifies and differs.
 * Returns whether there was any.
 */
export async function bringAgain(
  source: Files,
  copy: Files,
  faulty: readonly string[],
  { point, keysOf, room }: Pick<Arriving, 'point' | 'room'> & { readonly keysOf: (dir: string) => StoreKeys },
): Promise<boolean> {
  let isAny = false;
  for (const [dir, { uid }] of arrived([point])) {
    for (const name of faulty.some((path) => path.startsWith(`${dir}/`)) ? await source.list(dir) : []) {
      const path = `${dir}/${name}`;
      const segment = parseShippedSegment(name);
      if (!segment || !faulty.includes(`${dir}/${segment.own}`)) continue;
      if ((await endOfSegment(source, path, uid, keysOf(dir))) === undefined) continue;
      if ((await copy.exists(path)) && (await isEqual(source, copy, path))) continue;
      await bringSegment(source, copy, path, room);
      isAny = true;
    }
  }
  return isAny;
}

async function isEqual(source: Files, copy: Files, path: string): Promise<boolean> {
  if (!(await isAsLong(source, copy, path))) return false;
  let at = 0;
  for await (const piece of pieces(copy, path, await copy.size(path))) {
    if (!equalBytes(piece, await source.readAt(path, at, piece.length))) return false;
    at += piece.length;
  }
  return true;
}

function isOtherFile(name: string, isAsLong: boolean): KmsError {
  const what = isAsLong ? 'is another one' : 'is of another length';
  return new KmsError('refused', `${name}: ${what} than what arrived before, and there is no key`, {
    hint: 'what arrived before is kept; give the key with --key-file, which tells which is right',
  });
}

/** Bytes that a standby leaves free, so that it can note its progress and take over. */
const keptFree = 64 * 1024 * 1024;

/** Throws `refused` before writing data that would fill the disk: without a key its origin is unproven. */
async function needRoom(name: string, bytes: number, room: () => Promise<number>): Promise<void> {
  const free = await room();
  if (bytes === 0 || bytes + keptFree <= free) return;
  throw new KmsError('refused', `${name}: ${bytes} bytes arrived, but there is room for only ${free} here`, {
    hint: `${lookThere}; or make room: ${keptFree} bytes must stay free`,
  });
}

/** Throws `corrupt` for a file of another kind or store, by its header, which is in clear. */
async function needStoreFile(
  source: Files,
  kind: 'log' | 'snapshot',
  name: string,
  { uid }: ShippedPlace,
): Promise<void> {
  const header = decodeFileHeader(kind, name, await source.readAt(name, 0, headerLength));
  if (toHex(header.uid) === uid) return;
  throw new KmsError('corrupt', `${name}: expected a file of store ${uid}, found one of ${toHex(header.uid)}`, {
    hint: lookThere,
  });
}

/** Throws `unavailable` if a file here is shorter than it was: then all of it is to be copied again. */
async function needLength(copy: Files, name: string, length: number): Promise<void> {
  const size = await copy.size(name);
  if (size >= length) return;
  throw new KmsError('unavailable', `${name}: has ${size} bytes here, and had ${length}`, {
    hint: 'it is copied again',
  });
}

async function* exactly(files: Files, name: string, to: number, from = 0): AsyncGenerator<Uint8Array> {
  let at = from;
  for await (const piece of pieces(files, name, to, from)) {
    at += piece.length;
    yield piece;
  }
  if (at < to) throw endsEarly(name, at, to);
}

function endsEarly(name: string, at: number, bytes: number): KmsError {
  return new KmsError('corrupt', `${name}: ends at byte ${at}, ${bytes} were shipped`, { hint: lookThere });
}

const lookThere = 'what was there before is kept; look for the fault where it is shipped to';

async function append(
  files: Files,
  name: string,
  size: number,
  bytes: Uint8Array | AsyncIterable<Uint8Array>,
): Promise<void> {
  const file = await files.openAppend(name, false);
  try {
    if (file.size > size) await file.truncate(size);
    if (bytes instanceof Uint8Array) await file.append(bytes);
    else for await (const piece of bytes) await file.append(piece);
    await file.sync();
  } finally {
    await file.close();
  }
}
