// Lives of one appliance that ship to the same place, each to the directory of its epoch. A later life is rightful if
// the earlier is over: its machine died, or it was fenced. If the earlier one kept shipping beside it, as when a
// restored backup is tried out, a person has to decide which goes on. Others may write there, so the name of a
// directory proves nothing: with the keys only lives count whose journal verifies. Without them, names, times and
// fences are taken as they are read, and lead to no more than a warning.
import { KmsError, systemCode } from '../errors.ts';
import { sealFile, systemDir } from '../platform/data-dir.ts';
import type { Seal } from '../seal/seal.ts';
import type { Files } from '../store/files.ts';
import { fenceSaid, readFence } from './fence.ts';
import {
  beginningOf,
  frontOf,
  journalFile,
  livesNamed,
  nextSealFile,
  PointChain,
  type PointKeys,
  type ShippedDirectory,
} from './ship-journal.ts';
import { journalBytes, longestLine, mostLives } from './shipped-bounds.ts';

type SourceOf = (directory: string) => Files;

/** The part of a life's files that tells whether it is one. */
export interface LifeFiles extends Pick<Files, 'exists' | 'size' | 'readAt'> {
  /** Text that changes whenever the file does. */
  stamp?(name: string): Promise<string>;
}

/** The keys to prove lives with. */
export interface LifeKeys {
  readonly own: PointKeys;
  /** The seal in a life's directory: its keys may differ by now. Throws if it does not open. */
  openBeside?(directory: string): Promise<Seal>;
}

interface Life {
  readonly directory: ShippedDirectory;
  /** Epoch milliseconds of the newest point. */
  readonly at: number;
}

/** Calls `work` with the keys that verify the first line of a life's journal; undefined if there are none. */
async function withKeysOf<T>(
  files: LifeFiles,
  name: string,
  { own, openBeside }: LifeKeys,
  work: (keys: PointKeys | undefined) => Promise<T>,
): Promise<T> {
  const line = await firstLine(files, name);
  if (line === undefined) return work(undefined);
  if (await isFirst(line, name, own)) return work(own);
  const beside = await openBeside?.(name).catch(() => undefined);
  try {
    const keys = beside?.keysFor(systemDir);
    return await work(keys && (await isFirst(line, name, keys)) ? keys : undefined);
  } finally {
    beside?.wipe();
  }
}

/** Whether the first line of its journal verifies; a journal that cannot be read proves nothing. */
export function isProvenLife(files: LifeFiles, name: string, keys: LifeKeys): Promise<boolean> {
  return withKeysOf(files, name, keys, async (found) => found !== undefined).catch(() => false);
}

/** Whether nothing has arrived in the directory: no appliance ships a journal without a seal. */
export async function isEmptyLife(files: Files): Promise<boolean> {
  return !(await files.exists(journalFile)) && !(await files.exists(sealFile));
}

/** Undefined if there are a journal and a seal; `nothing` for a fence alone, which is not shipped. */
export async function lackOf(files: Pick<Files, 'exists' | 'list'>): Promise<string | undefined> {
  try {
    const [hasSeal, hasJournal] = [await files.exists(sealFile), await files.exists(journalFile)];
    if (hasSeal && hasJournal) return undefined;
    if (hasJournal) return 'it has a journal and no seal';
    if (hasSeal || (await files.exists(nextSealFile))) return 'it has a seal and no journal';
    return (await files.list(systemDir)).length > 0 ? 'it has files of a store, no journal and no seal' : 'nothing';
  } catch (error) {
    const code = systemCode(error) ?? (error instanceof KmsError ? systemCode(error.cause) : undefined);
    if (code === 'ENOTDIR' || code === 'ELOOP') return 'it is no directory';
    if (code === 'EACCES' || code === 'EPERM') return 'it may not be read';
    throw error;
  }
}

/** The unfenced life earlier than `of` that shipped last, if it still shipped after `of` had begun to. */
export async function lifeBeside(
  source: SourceOf,
  directories: readonly ShippedDirectory[],
  of: ShippedDirectory,
  keys?: LifeKeys,
): Promise<Life | undefined> {
  const earlier = directories.filter(({ appliance, epoch }) => appliance === of.appliance && epoch < of.epoch);
  if (earlier.length === 0) return undefined;
  const first = await firstLine(source(of.name), of.name);
  const began = first && frontOf(first)?.at;
  let found: Life | undefined;
  for (const directory of began === undefined ? [] : earlier) {
    const at = await endOf(source(directory.name), directory.name, began ?? 0, keys);
    if (at !== undefined && at > Math.max(found?.at ?? 0, began ?? 0)) found = { directory, at };
  }
  return found;
}

/** Time of the last point of an unfenced life; with keys only if it proves to be after `began`. */
async function endOf(
  files: Files,
  name: string,
  began: number,
  keys: LifeKeys | undefined,
): Promise<number | undefined> {
  // A journal without lines that an appliance writes is none.
  const last = await lastLine(files, name).catch(unlessForeign);
  const said = last && frontOf(last)?.at;
  if (!keys) return (await fenceSaid(files)) === undefined ? said : undefined;
  // Verifying a whole journal each second would be much for a warning; a takeover and a restore do it.
  const isWarning = keys.openBeside === undefined;
  if (last === undefined || (isWarning && said !== undefined && said <= began)) return undefined;
  return withKeysOf(files, name, keys, async (own) => {
    if (!own || (await isFenced(files, name, own))) return undefined;
    const { points } = await beginningOf(await journalBytes(files, journalFile), new PointChain(name, own));
    return points.at(-1)?.at;
  });
}

/** For what somebody else may have put there: a file of another kind, a link, or a directory that is closed. */
export function unlessForeign(error: unknown): undefined {
  if (error instanceof KmsError && (error.code === 'corrupt' || error.code === 'refused')) return undefined;
  if (['ENOTDIR', 'ELOOP', 'EACCES', 'EPERM'].includes(systemCode(error) ?? '')) return undefined;
  throw error;
}

/** Whether there is a fence that verifies. */
async function isFenced(files: Files, directory: string, keys: PointKeys): Promise<boolean> {
  const fence = await readFence({ files, directory, keys }).catch((error: unknown) => {
    if (error instanceof KmsError && error.code === 'corrupt') return undefined;
    throw error;
  });
  return fence !== undefined;
}

interface LaterLives {
  /** The latest that has shipped something and is not fenced; one that proves to be a life before any other. */
  readonly found?: { readonly directory: ShippedDirectory; readonly isProven: boolean };
  /** Directories that are named like later lives. */
  readonly count: number;
}

/** Bytes of journals read in one look for later lives; the next look goes on. */
export const mostOfLook = 32 * 1024 * 1024;

/** A life's files, of which no more can be read than the look's `left` bytes. */
export function metered(
  files: LifeFiles,
  left: { bytes: number },
): { readonly files: LifeFiles; readonly isSpent: () => boolean } {
  let isSpent = false;
  const readAt: LifeFiles['readAt'] = (name, offset, length) => {
    isSpent ||= length > left.bytes;
    if (isSpent) return Promise.reject(new KmsError('unavailable', 'enough was read for one look'));
    left.bytes -= length;
    return files.readAt(name, offset, length);
  };
  const limited = { exists: (name: string) => files.exists(name), size: (name: string) => files.size(name), readAt };
  return { files: limited, isSpent: () => isSpent };
}

/**
 * Directories that proved to be no lives under some keys, each with the stamp of its journal: none is read again until
 * it changes.
 */
export class UnprovenLives {
  readonly #stamps = new Map<string, string>();

  /** Whether the journal proves a life; undefined if not enough of the look's `left` bytes remain to tell. */
  async isProven(
    files: LifeFiles,
    name: string,
    own: PointKeys,
    left: { bytes: number },
  ): Promise<boolean | undefined> {
    const found = await files.stamp?.(journalFile).catch(() => undefined);
    const stamp = found && `${own.epoch} ${found}`;
    if (stamp !== undefined && this.#stamps.get(name) === stamp) return false;
    const meter = metered(files, left);
    const isProven = await isProvenLife(meter.files, name, { own });
    if (meter.isSpent()) return undefined;
    if (!isProven && stamp !== undefined) this.#stamps.set(name, stamp);
    return isProven;
  }

  forgetOthers(names: readonly ShippedDirectory[]): void {
    const there = new Set(names.map(({ name }) => name));
    for (const name of this.#stamps.keys()) if (!there.has(name)) this.#stamps.delete(name);
  }
}

/** The lives after `epoch`. At most `mostLives` of them are looked at, the latest first. */
export async function laterLives(
  source: (directory: string) => Files & LifeFiles,
  names: readonly string[],
  { appliance, epoch }: Omit<ShippedDirectory, 'name'>,
  own: PointKeys,
  unprovenLives = new UnprovenLives(),
): Promise<LaterLives> {
  const later = livesNamed(names).filter((life) => life.appliance === appliance && life.epoch > epoch);
  const count = later.length;
  const looked = later.slice(0, mostLives);
  const left = { bytes: mostOfLook };
  let unproven: ShippedDirectory | undefined;
  unprovenLives.forgetOthers(looked);
  for (const directory of looked) {
    const { name } = directory;
    const files = source(name);
    // A file of that name is no directory.
    if (!(await files.exists(journalFile).catch(unlessForeign))) continue;
    const isProven = await unprovenLives.isProven(files, name, own, left);
    if (isProven === undefined) {
      unproven ??= directory;
      break;
    }
    const isOver = isProven ? await isFenced(files, name, own) : (await fenceSaid(files)) !== undefined;
    if (isProven && !isOver) return { found: { directory, isProven }, count };
    if (!isOver) unproven ??= directory;
  }
  return unproven ? { found: { directory: unproven, isProven: false }, count } : { count };
}

/** The error for two lives; its text is the same at each check, so that it is reported once. */
export function parted({ directory }: Life, of: ShippedDirectory, from: string, how: string): KmsError {
  return new KmsError(
    'refused',
    `an earlier life of the appliance went on shipping to ${directory.name} after ${of.name} had begun: what either of ` +
      'them answered since is missing in the other',
    {
      hint:
        `find out which is to go on, and name it: ${how} ${from}/${directory.name} for the earlier one, as after the ` +
        `trial of a restored copy, or ${how} ${from}/${of.name}`,
    },
  );
}

/** Bytes of the first read for finding one line. */
const firstPiece = 4096;
const lineFeed = 0x0a;

/** The first line; undefined if none is complete. */
export async function firstLine(files: LifeFiles, name: string): Promise<Uint8Array | undefined> {
  const size = await journalSize(files);
  for (let length = Math.min(firstPiece, size); ; length = Math.min(length * 8, size)) {
    const bytes = await piece(files, 0, length);
    const end = bytes.indexOf(lineFeed);
    if (end >= 0) return bytes.subarray(0, end);
    if (length === size) return undefined;
    if (length >= longestLine) throw noLine(name, size);
  }
}

/** The last complete line; a torn end is ignored. */
async function lastLine(files: LifeFiles, name: string): Promise<Uint8Array | undefined> {
  const size = await journalSize(files);
  for (let length = Math.min(firstPiece, size); ; length = Math.min(length * 8, size)) {
    const bytes = await piece(files, size - length, length);
    const end = bytes.lastIndexOf(lineFeed);
    const before = end > 0 ? bytes.lastIndexOf(lineFeed, end - 1) : -1;
    if (end > 0 && (before >= 0 || length === size)) return bytes.subarray(before + 1, end);
    if (length === size) return undefined;
    if (length >= longestLine) throw noLine(name, size);
  }
}

function noLine(name: string, size: number): KmsError {
  return new KmsError('corrupt', `${name}/${journalFile}: ${size} bytes, and no line of at most ${longestLine}`, {
    hint: 'no appliance wrote it like that: find out who did; nothing was changed',
  });
}

async function journalSize(files: LifeFiles): Promise<number> {
  return (await files.exists(journalFile)) ? files.size(journalFile) : 0;
}

async function piece(files: LifeFiles, offset: number, length: number): Promise<Uint8Array> {
  return length > 0 ? files.readAt(journalFile, offset, length) : new Uint8Array();
}

/** Whether the line verifies as the first of its journal; without keys, whether it is one. */
export async function isFirst(line: Uint8Array, name: string, keys: PointKeys | undefined): Promise<boolean> {
  return (await new PointChain(name, keys).read(line)) !== undefined;
}
