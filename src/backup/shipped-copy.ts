// A local copy of a shipped directory, with the same file names: arrived data is copied, and data that no state needs
// is removed. Logs only grow, and files of the last proven state stay. Without the master key nothing is ever removed
// or replaced: a seal or journal that would be is kept under another name, from which the key finds the right one.
import { equalBytes, toHex } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';
import { longestSeal, sealFile } from '../platform/data-dir.ts';
import type { Files } from '../store/files.ts';
import { decodeFileHeader, headerLength, listStoreFiles, logName, snapshotName } from '../store/store-files.ts';
import { pieces } from './format.ts';
import {
  arrived,
  filesUpTo,
  journalFile,
  nextSealFile,
  type Point,
  parseShippedSegment,
  type ShippedPlace,
} from './ship-journal.ts';
import { longestJournal, longestSegment, needAtMost } from './shipped-bounds.ts';

interface Arriving {
  readonly point: Point;
  /** The state that is certainly here. */
  readonly before: Point | undefined;
  readonly seal: Uint8Array;
  /** Bytes of the journal, from offset `from` on. */
  readonly lines: Uint8Array;
  readonly from: number;
  /** Whether there is a key that will prove it. */
  readonly isProvable: boolean;
  /** Epoch milliseconds. */
  readonly now: number;
  /** Bytes that can still be written locally. */
  room(): Promise<number>;
}

/** Copies the missing data; the journal is written last. */
export async function bringNear(source: Files, copy: Files, arriving: Arriving): Promise<void> {
  const { point, seal, lines, from, isProvable, room } = arriving;
  await copy.makeDir('.');
  const before = arriving.before && arrived([arriving.before]);
  for (const [dir, place] of arrived([point])) {
    await bring(source, copy, { dir, place, before: before?.get(dir), isProvable, room });
  }
  const hasSeal = await copy.exists(sealFile);
  const isOther = !hasSeal || !equalBytes(await copy.read(sealFile, longestSeal), seal);
  if (!isProvable) {
    if (hasSeal && isOther) await keepSeal(copy, arriving);
    if (from === 0) await keepJournal(copy, arriving);
  }
  if (isOther) await copy.replace(hasSeal ? nextSealFile : sealFile, seal);
  await (from > 0 ? append(copy, journalFile, from, lines) : copy.replace(journalFile, lines));
  if (isOther && hasSeal) {
    await copy.replace(sealFile, seal);
    await copy.remove(nextSealFile);
  }
}

/** Names end in the time at which the file was replaced, in epoch milliseconds. */
const keptPattern = /^(kms\.seal|points\.kms)\.kept-([0-9]{1,15})$/;
/** Changes of keys and new tenants change the seal: a few a year. */
const mostSeals = 32;
/** Milliseconds between two journals that are kept. */
const keptEvery = 24 * 60 * 60 * 1000;

async function keptNames(copy: Files, of: string): Promise<readonly { readonly name: string; readonly at: number }[]> {
  const kept = (await copy.list('.')).flatMap((name) => {
    const [, file, at] = keptPattern.exec(name) ?? [];
    return file === of ? [{ name, at: Number(at) }] : [];
  });
  return kept.sort((a, b) => b.at - a.at);
}

/** Files under which a seal, or a journal, may be: the current one, then those that it replaced, the latest first. */
export async function keptVersions(copy: Files, of: typeof sealFile | typeof journalFile): Promise<readonly string[]> {
  const current = of === sealFile ? [sealFile, nextSealFile] : [journalFile];
  const there = [];
  for (const name of current) if (await copy.exists(name)) there.push(name);
  return [...there, ...(await keptNames(copy, of)).map(({ name }) => name)];
}

async function keepSeal(copy: Files, { now, room }: Arriving): Promise<void> {
  const seal = await copy.read(sealFile, longestSeal);
  const kept = await keptNames(copy, sealFile);
  for (const { name } of kept) if (equalBytes(await copy.read(name, longestSeal), seal)) return;
  if (kept.length >= mostSeals) {
    throw new KmsError('refused', `another seal arrived, after ${mostSeals} others that no key proved`, {
      hint: 'what is here is kept; give the key with --key-file, which tells which is right',
    });
  }
  await keep(copy, sealFile, seal, { now, room });
}

/** Keeps the journal that is about to be replaced, unless the new one begins with it, or one was kept a while ago. */
async function keepJournal(copy: Files, { lines, now, room }: Arriving): Promise<void> {
  if (!(await copy.exists(journalFile))) return;
  const [latest] = await keptNames(copy, journalFile);
  if (latest && latest.at <= now && now - latest.at < keptEvery) return;
  const journal = await copy.read(journalFile, longestJournal);
  if (equalBytes(journal, lines.subarray(0, journal.length))) return;
  await keep(copy, journalFile, journal, { now, room });
}

async function keep(
  copy: Files,
  name: string,
  bytes: Uint8Array,
  { now, room }: Pick<Arriving, 'now' | 'room'>,
): Promise<void> {
  const kept = `${name}.kept-${Math.max(0, Math.floor(now))}`;
  await needRoom(kept, bytes.length, room);
  if (!(await copy.exists(kept))) await copy.replace(kept, bytes);
}

/** Makes these the current seal and journal again, which the key proved. */
export async function putBack(copy: Files, seal: Uint8Array, journal: Uint8Array): Promise<void> {
  await copy.replace(sealFile, seal);
  if (await copy.exists(nextSealFile)) await copy.remove(nextSealFile);
  await copy.replace(journalFile, journal);
}

/** Discards data after the point `good`. */
export async function cutBack(copy: Files, bad: Point, good: Point): Promise<void> {
  if (await copy.exists(journalFile)) await copy.remove(journalFile);
  for (const [dir] of arrived([bad])) {
    const place = arrived([good]).get(dir);
    if (place) await cutBackStore(copy, dir, place);
    else await copy.removeDir(dir);
  }
}

/** Removes data that only states before this point need, and the versions kept until a state was proven. */
export async function prune(copy: Files, point: Point): Promise<void> {
  for (const file of [sealFile, journalFile]) {
    for (const { name } of await keptNames(copy, file)) await copy.remove(name);
  }
  for (const [dir, { snapshot, from = 1 }] of arrived([point])) {
    const { snapshots, logs } = await listStoreFiles(copy, dir);
    for (const each of snapshots) if (each < snapshot) await copy.remove(snapshotName(dir, each));
    for (const each of logs) if (each <= snapshot) await copy.remove(logName(dir, each));
    for (const name of await copy.list(dir)) {
      if ((parseShippedSegment(name)?.from ?? from) < from) await copy.remove(`${dir}/${name}`);
    }
  }
}

interface Bringing {
  readonly dir: string;
  readonly place: ShippedPlace;
  /** The place up to which it is certainly here: later bytes may be torn. */
  readonly before: ShippedPlace | undefined;
  readonly isProvable: boolean;
  room(): Promise<number>;
}

/** Copies the missing data of a store. */
async function bring(source: Files, copy: Files, bringing: Bringing): Promise<void> {
  const { dir, place, before, isProvable, room } = bringing;
  await copy.makeDir(dir);
  const there = new Set((await copy.list(dir)).map((name) => `${dir}/${name}`));
  const snapshot = snapshotName(dir, place.snapshot);
  if (!there.has(snapshot)) {
    const length = await source.size(snapshot);
    await needStoreFile(source, 'snapshot', snapshot, place);
    await needRoom(snapshot, length, room);
    await copy.replace(snapshot, exactly(source, snapshot, length));
  }
  for (const { name, bytes } of filesUpTo(dir, place)) {
    if (name === snapshot) continue;
    const length = bytes ?? (await source.size(name));
    const isLast = before !== undefined && name === logName(dir, before.log);
    const isEarlier = before !== undefined && name < logName(dir, before.log) && there.has(name);
    if (isEarlier && (await copy.size(name)) === length) continue;
    const has = isLast && there.has(name) ? before.offset : 0;
    if (!isProvable && (isEarlier || has > length)) throw isOtherFile(name);
    if (has < length || has === 0) {
      await needAllThere(source, name, length);
      await needStoreFile(source, 'log', name, place);
      await needRoom(name, length - has, room);
    }
    if (has === 0 || has > length) await copy.replace(name, exactly(source, name, length));
    else if (has < length) await append(copy, name, has, exactly(source, name, length, has));
  }
  for (const name of await source.list(dir)) {
    const segment = parseShippedSegment(name);
    if (!segment || segment.from < (place.from ?? 1) || there.has(`${dir}/${name}`)) continue;
    const path = `${dir}/${name}`;
    const length = await source.size(path);
    needAtMost(path, length, longestSegment);
    await needRoom(path, length, room);
    await copy.replace(path, exactly(source, path, length));
  }
}

function isOtherFile(name: string): KmsError {
  return new KmsError('refused', `${name}: is of another length than what arrived before, and there is no key`, {
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

/** Checks that the file is long enough: a journal line may claim any number of bytes. */
async function needAllThere(source: Files, name: string, bytes: number): Promise<void> {
  const size = await source.size(name);
  if (size < bytes) throw endsEarly(name, size, bytes);
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

/** Reduces a store to what a state needs. */
async function cutBackStore(files: Files, dir: string, place: ShippedPlace): Promise<void> {
  const { snapshots, logs } = await listStoreFiles(files, dir);
  for (const each of snapshots) if (each > place.snapshot) await files.remove(snapshotName(dir, each));
  for (const each of logs) if (each > place.log) await files.remove(logName(dir, each));
  if (logs.includes(place.log)) await append(files, logName(dir, place.log), place.offset, new Uint8Array());
  const own = new Set<string>();
  for (const name of (await files.list(dir)).sort()) {
    const segment = parseShippedSegment(name);
    if (segment && own.add(segment.own).size > place.segments) await files.remove(`${dir}/${name}`);
  }
}
