// Bounds for reading a directory that others may write: no file larger than an appliance makes of its kind is read into
// memory, and reading a long one yields to the event loop.
import { setImmediate } from 'node:timers/promises';
import { concatBytes } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';
import type { Files } from '../store/files.ts';

/** A fence holds a host name and a few numbers. */
export const longestFence = 4096;
/** Shipping drops the older half of its points when its journal reaches half of this. */
export const longestJournal = 256 * 1024 * 1024;
/** A line that names all stores has about 200 bytes for each. */
export const longestLine = 16 * 1024 * 1024;
/** A segment is closed when it has 16 MiB of text. */
export const longestSegment = 64 * 1024 * 1024;
/** Root of a segment: some hundred bytes for each of at most a few hundred blocks and pages. */
export const longestRoot = 4 * 1024 * 1024;
/** Logs after one snapshot; usually one or two, plus one for each failed checkpoint. */
export const mostLogs = 100_000;

/** Lives of one appliance: each restore and each takeover begins one. More are not looked at: each costs two reads. */
export const mostLives = 256;

/** Entries beside the lives; sorting a million would take seconds. */
export const mostNames = 20_000;

const pieceLength = 1024 * 1024;
const lineFeed = 0x0a;

/** The journal's bytes from `from` on. Throws `corrupt` if the journal or a line is too long. */
export async function journalBytes(
  files: Pick<Files, 'size' | 'readAt'>,
  name: string,
  from = 0,
): Promise<Uint8Array<ArrayBuffer>> {
  const size = await files.size(name);
  if (size > longestJournal) throw tooLong(name, size, longestJournal);
  const read: Uint8Array[] = [];
  let lineStart = from;
  for (let at = from; at < size; ) {
    const piece = await files.readAt(name, at, Math.min(pieceLength, size - at));
    if (piece.length === 0) break;
    read.push(piece);
    const feed = piece.lastIndexOf(lineFeed);
    if (feed >= 0) lineStart = at + feed + 1;
    at += piece.length;
    if (at - lineStart > longestLine) {
      throw new KmsError('corrupt', `${name}: ${size} bytes, no line ends within ${longestLine} of byte ${lineStart}`, {
        hint: foreignHint,
      });
    }
    await setImmediate();
  }
  return concatBytes(...read);
}

const foreignHint = 'no appliance wrote it like that: find out who did; nothing was changed';

function tooLong(name: string, size: number, most: number): KmsError {
  return new KmsError('corrupt', `${name}: expected at most ${most} bytes, found ${size}`, { hint: foreignHint });
}

/** Throws `corrupt` if the file is larger than an appliance makes one of its kind. */
export function needAtMost(name: string, size: number, most: number): void {
  if (size > most) throw tooLong(name, size, most);
}
