// A known end is how far a log goes by the knowledge of the process that writes it. Whatever is read back from the
// files must hold all of that: nothing is recovered from a log that was cut, put back from an older copy or replaced by
// another history.
import { equalBytes } from '../crypto/bytes.ts';
import { systemCode } from '../errors.ts';
import { isFork, type Mark } from '../model/store-mark.ts';
import { FileLost, type Files } from './files.ts';
import type { LogPlace } from './log-format.ts';
import { logName, tagLength } from './store-files.ts';

interface KnownEnd {
  /** The last log file, and where in it what is durable ends. */
  readonly generation: number;
  readonly place: LogPlace;
}

/**
 * Looks whether the file still ends as it must, at the cost of a read of 16 bytes. Throws `FileLost`. What stands
 * before the end only a recovery proves.
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

/** Throws `FileLost` unless what was `found` holds all that is `known`, in one history. */
export function needAllKnown(
  dir: string,
  found: { readonly generation: number; readonly place: LogPlace },
  known: KnownEnd,
): void {
  const what = lostOf(found.place, known.place);
  if (what !== undefined) throw new FileLost(logName(dir, found.generation), what);
  // Two histories of one opening differ in their last record alone.
  const isSame = found.generation === known.generation && found.place.sequence === known.place.sequence;
  if (isSame && !equalBytes(found.place.chain, known.place.chain)) {
    throw new FileLost(logName(dir, found.generation), anotherHistory(known.place));
  }
}

/** What a history lacks that ends at `found`, in words; undefined when it holds all that is known. */
export function lostOf(found: Mark, known: Mark): string | undefined {
  if (found.sequence < known.sequence) {
    return `it ends at transaction ${found.sequence}, and this process knows of ${known.sequence}`;
  }
  return isFork(found, known) ? anotherHistory(known) : undefined;
}

function anotherHistory({ sequence }: Mark): string {
  return `it holds another history than the one whose transaction ${sequence} this process knows`;
}
