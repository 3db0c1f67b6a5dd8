// Lives of one appliance that ship to the same place, each to the directory of its epoch. A later life is rightful if
// the earlier is over: its machine died, or it was fenced. If the earlier one kept shipping beside it, as when a
// restored backup is tried out, a person has to decide which goes on. Times are those of the journals' points, read
// without keys: anyone able to forge them could remove the directory too.
import { KmsError } from '../errors.ts';
import type { Files } from '../store/files.ts';
import { fenceSaid } from './fence.ts';
import { journalFile, type Point, PointChain, parseShippedDirectory, type ShippedDirectory } from './ship-journal.ts';
import { longestLine } from './shipped-bounds.ts';

type SourceOf = (directory: string) => Files;

interface Life {
  readonly directory: ShippedDirectory;
  /** Epoch milliseconds of the newest point. */
  readonly at: number;
}

/** The unfenced life earlier than `of` that shipped last, if it still shipped after `of` had begun to. */
export async function lifeBeside(
  source: SourceOf,
  directories: readonly ShippedDirectory[],
  of: ShippedDirectory,
): Promise<Life | undefined> {
  let found: Life | undefined;
  for (const directory of directories) {
    if (directory.appliance !== of.appliance || directory.epoch >= of.epoch) continue;
    const files = source(directory.name);
    if ((await fenceSaid(files)) !== undefined) continue;
    const at = (await lastPoint(files, directory.name))?.at;
    if (at !== undefined && at > (found?.at ?? 0)) found = { directory, at };
  }
  const began = found && (await firstPoint(source(of.name), of.name))?.at;
  return found && began !== undefined && found.at > began ? found : undefined;
}

/** The latest life after `epoch` that has shipped something and is not fenced. */
export async function laterLife(
  source: SourceOf,
  names: readonly string[],
  { appliance, epoch }: Omit<ShippedDirectory, 'name'>,
): Promise<ShippedDirectory | undefined> {
  let found: ShippedDirectory | undefined;
  for (const directory of names.map(parseShippedDirectory)) {
    if (!directory || directory.appliance !== appliance || directory.epoch <= (found?.epoch ?? epoch)) continue;
    const files = source(directory.name);
    if ((await files.exists(journalFile)) && (await fenceSaid(files)) === undefined) found = directory;
  }
  return found;
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

async function firstPoint(files: Files, name: string): Promise<Point | undefined> {
  const size = await journalSize(files);
  for (let length = Math.min(firstPiece, size); ; length = Math.min(length * 8, size)) {
    const bytes = await piece(files, 0, length);
    const end = bytes.indexOf(lineFeed);
    if (end >= 0) return pointIn(bytes.subarray(0, end), name);
    if (length === size) return undefined;
    if (length >= longestLine) throw noLine(name, size);
  }
}

/** The last complete line; a torn end is ignored. */
async function lastPoint(files: Files, name: string): Promise<Point | undefined> {
  const size = await journalSize(files);
  for (let length = Math.min(firstPiece, size); ; length = Math.min(length * 8, size)) {
    const bytes = await piece(files, size - length, length);
    const end = bytes.lastIndexOf(lineFeed);
    const before = end > 0 ? bytes.lastIndexOf(lineFeed, end - 1) : -1;
    if (end > 0 && (before >= 0 || length === size)) return pointIn(bytes.subarray(before + 1, end), name);
    if (length === size) return undefined;
    if (length >= longestLine) throw noLine(name, size);
  }
}

function noLine(name: string, size: number): KmsError {
  return new KmsError('corrupt', `${name}/${journalFile}: ${size} bytes, and no line of at most ${longestLine}`, {
    hint: 'no appliance wrote it like that: find out who did; nothing was changed',
  });
}

async function journalSize(files: Files): Promise<number> {
  return (await files.exists(journalFile)) ? files.size(journalFile) : 0;
}

async function piece(files: Files, offset: number, length: number): Promise<Uint8Array> {
  return length > 0 ? files.readAt(journalFile, offset, length) : new Uint8Array();
}

function pointIn(line: Uint8Array, name: string): Point | undefined {
  return new PointChain(name, undefined).read(new TextDecoder().decode(line));
}
