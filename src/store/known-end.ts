// A known end is the log position up to which this process knows its log. Everything read back from the files must
// reach it: nothing is recovered from a log that was cut, replaced by an older copy or by another history.
import { equalBytes } from '../crypto/bytes.ts';
import { systemCode } from '../errors.ts';
import { isFork, type Mark } from '../model/store-mark.ts';
import { FileLost, type Files } from './files.ts';
import type { LogPlace } from './log-format.ts';
import { logName, tagLength } from './store-files.ts';

interface KnownEnd {
  /** The last log file, and the end of the durable records in it. */
  readonly generation: number;
  readonly place: LogPlace;
}

/**
 * Checks that the file still ends as it must, with a read of 16 bytes. Throws `FileLost`. Only a recovery verifies the
 * records before the end.
 */
export async function needEnd(
  { files, dir }: { readonly files: Pick<Files, 'readAt'>; readonly dir: string },
  { generation, place: { offset, chain } }: Pick<KnownEnd, 'generation'> & { readonly place: EndOfFile },
): Promise<void> {
  const name = logName(dir, generation);
  let found: Uint8Array;
  try {
    found = await files.readAt(name, offset - tagLength, tagLength);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') throw new FileLost(name, 'the file is gone');
    throw error;
  }
  if (found.length < tagLength) throw new FileLost(name, `the file was cut, expected at least ${offset} bytes`);
  if (!equalBytes(found, chain)) throw new FileLost(name, 'the file holds something else than was written to it');
}

type EndOfFile = Pick<LogPlace, 'offset' | 'chain'>;

/** Throws `FileLost` unless `found` includes everything `known`, in the same history. */
export function needAllKnown(
  dir: string,
  found: { readonly generation: number; readonly place: LogPlace },
  known: KnownEnd,
): void {
  const what = lostOf(found.place, known.place);
  if (what !== undefined) throw new FileLost(logName(dir, found.generation), what);
  // Two histories of one opening may differ only in their last record.
  const isSame = found.generation === known.generation && found.place.sequence === known.place.sequence;
  if (isSame && !equalBytes(found.place.chain, known.place.chain)) {
    throw new FileLost(logName(dir, found.generation), anotherHistory(known.place));
  }
}

/** Says in words what a history that ends at `found` lacks; undefined if it includes all that is known. */
export function lostOf(found: Mark, known: Mark): string | undefined {
  if (found.sequence < known.sequence) {
    return `it ends at transaction ${found.sequence}, and this process knows of ${known.sequence}`;
  }
  return isFork(found, known) ? anotherHistory(known) : undefined;
}

function anotherHistory({ sequence }: Mark): string {
  return `it holds another history than the one whose transaction ${sequence} this process knows`;
}
