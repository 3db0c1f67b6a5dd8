// Finds the life to follow in a directory that others may write, and reads its journal. The name of a directory proves
// nothing: with the key only a life counts whose first line verifies, and nothing after that line is read before. A
// directory that is no life costs its first line, once, and what fails there never stops the life that is followed.
import { equalBytes } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';
import { longestSeal, sealFile, systemDir } from '../platform/data-dir.ts';
import type { Seal } from '../seal/seal.ts';
import type { Files } from '../store/files.ts';
import { merged } from './known-state.ts';
import { firstLine, isFirst, type LifeFiles, lackOf, metered, mostOfLook } from './lives.ts';
import {
  frontOf,
  isFarAhead,
  journalFile,
  nextSealFile,
  type Point,
  type PointChain,
  readJournal,
  type ShippedDirectory,
  sealAfter,
  sealDigest,
  storesGone,
} from './ship-journal.ts';
import { journalBytes } from './shipped-bounds.ts';

/** Position in the journal. */
export interface Reading {
  readonly directory: ShippedDirectory;
  readonly bytes: number;
  /** The last line read. */
  readonly end: Uint8Array;
  readonly chain: PointChain;
  readonly point: Point;
}

/** Result of a look. */
interface Found {
  readonly reading: Reading;
  /** The lines not read before. */
  readonly lines: Uint8Array;
  readonly seal: Uint8Array;
  /** Directories of the stores that the journal calls gone. */
  readonly gone: ReadonlySet<string>;
}

interface ReaderDeps {
  /** Shipped directories, the highest epoch first. */
  directories(): Promise<readonly ShippedDirectory[]>;
  /** Files of a shipped directory. */
  source(directory: string): LifeFiles & Files;
  /**
   * Opens a seal: undefined if there is no key; throws for a wrong one. It replaces the open one if `isRight` says that
   * its keys are those of the life.
   */
  open(
    bytes: Uint8Array,
    name: string,
    isRight: (seal: Seal | undefined) => Promise<boolean>,
  ): Promise<{ readonly seal: Seal | undefined; readonly isRight: boolean }>;
  /** Digest of the open seal. */
  opened(): string | undefined;
  /** Milliseconds of a monotonic clock. */
  uptime(): number;
  /** Epoch milliseconds. */
  now(): number;
}

/** Milliseconds until a directory that is no life is read again, if nothing in it changes. */
const retryPause = 600_000;

export class JournalReader {
  readonly #deps: ReaderDeps;
  /** Directories that are no lives, by name. */
  readonly #leftOut = new Map<
    string,
    { readonly stamp: string; readonly until: number; readonly why: string | KmsError }
  >();

  constructor(deps: ReaderDeps) {
    this.#deps = deps;
  }

  /**
   * Reads the newest life's journal: its position, and the lines not read before. `followed`: names of lives whose
   * faults are errors. Of all others, what is wrong is said to `doubt`.
   */
  async read(known: Reading | undefined, followed: ReadonlySet<string>, doubt: (why: string) => void): Promise<Found> {
    const left = { bytes: mostOfLook };
    const directories = await this.#deps.directories();
    const names = new Set(directories.map(({ name }) => name));
    for (const name of this.#leftOut.keys()) if (!names.has(name)) this.#leftOut.delete(name);
    let failed: unknown;
    for (const directory of directories) {
      const files = this.#deps.source(directory.name);
      const found = followed.has(directory.name)
        ? await this.#find(directory, files, await goesOn(known, directory, files))
        : await this.#findNew(directory, files, left, followed.size === 0);
      if (found instanceof KmsError) failed ??= found;
      if (found instanceof KmsError || typeof found === 'string') doubt(leftOut(directory.name, found));
      else if (found) return found;
    }
    throw failed ?? nothingYet();
  }

  /**
   * Like `#find`, for a directory that anybody may have made: one that is no life is read again only if it changes.
   * `isOnly`: no life is followed so far.
   */
  async #findNew(
    directory: ShippedDirectory,
    files: LifeFiles & Files,
    left: { bytes: number },
    isOnly: boolean,
  ): Promise<Found | string | KmsError | undefined> {
    const { uptime } = this.#deps;
    const stamp = await stampOf(files).catch(() => undefined);
    const seen = this.#leftOut.get(directory.name);
    if (stamp !== undefined && seen?.stamp === stamp && uptime() < seen.until) return seen.why;
    const meter = metered(files, left);
    const proof = { isProven: false };
    let found: Found | string | KmsError | undefined;
    try {
      found = await this.#find(directory, files, undefined, { files: meter.files, proof });
    } catch (error) {
      const unread = meter.isSpent() ? new KmsError('unavailable', 'it was not looked at yet') : error;
      // Passing over a life that the keys prove, or that may be one, would lose what it answered.
      if (!(unread instanceof KmsError) || proof.isProven || (isOnly && unread.code === 'unavailable')) throw unread;
      if (unread.code !== 'corrupt') return unread;
      found = unread;
    }
    if (stamp !== undefined && (typeof found === 'string' || found instanceof KmsError)) {
      this.#leftOut.set(directory.name, { stamp, until: uptime() + retryPause, why: found });
    }
    return found;
  }

  /**
   * A text says why it is no life; undefined: nothing arrived there yet. `trying`: the files to read the first line
   * from, and whether the keys proved it.
   */
  async #find(
    directory: ShippedDirectory,
    files: LifeFiles & Files,
    before: Reading | undefined,
    trying: { readonly files: LifeFiles; readonly proof?: { isProven: boolean } } = { files },
  ): Promise<Found | string | undefined> {
    const { name, epoch } = directory;
    const lack = await lackOf(files);
    if (lack !== undefined) return lack === 'nothing' ? undefined : lack;
    const start = before ? undefined : await firstLine(trying.files, name);
    if (!before && !start) return 'its journal has no whole line';
    if (start && !frontOf(start)) return 'its journal is none that kms writes';
    let why = 'none of its journal verifies with the key';
    for (const sealBytes of await this.#seals(files)) {
      // The earlier lines were read with keys from the seal of that time.
      if (before && sealDigest(sealBytes) !== this.#deps.opened()) return this.#find(directory, files, undefined);
      const { seal, isRight } = await this.#deps.open(sealBytes, name, async (opened) => {
        return !start || isFirst(start, name, opened?.keysFor(systemDir));
      });
      if (!seal && isFarAhead(epoch, this.#deps.now())) {
        return "its epoch is far beyond this machine's clock, and there is no key to prove it";
      }
      if (!isRight && !seal) why = 'its journal is none that kms writes';
      if (!isRight) continue;
      if (seal && trying.proof) trying.proof.isProven = true;
      const from = before?.bytes ?? 0;
      const bytes = await journalBytes(files, journalFile, from);
      const journal = await readJournal(bytes, name, seal?.keysFor(systemDir), before?.chain);
      const points = before ? [before.point, ...journal.points] : journal.points;
      const [digest, point] = [sealAfter(points), merged(points)];
      if (point && (digest === undefined || digest === sealDigest(sealBytes))) {
        const lines = bytes.subarray(0, journal.bytes);
        const end = lines.length > 0 ? lastLine(lines) : (before?.end ?? lines);
        const reading = { directory, bytes: from + lines.length, end, chain: journal.chain, point };
        return { reading, lines, seal: sealBytes, gone: storesGone(journal.points) };
      }
      if (before) return this.#find(directory, files, undefined);
      why = underWay;
    }
    if (why !== underWay) return why;
    throw new KmsError('unavailable', `${name}: something is arriving there right now`, { hint: 'try again' });
  }

  /** The seals that may be valid, the open one first: it need not be opened again. */
  async #seals(files: Files): Promise<readonly Uint8Array[]> {
    const seals = [await files.read(sealFile, longestSeal)];
    if (await files.exists(nextSealFile)) seals.push(await files.read(nextSealFile, longestSeal));
    const opened = this.#deps.opened();
    return seals.sort((a, b) => Number(sealDigest(b) === opened) - Number(sealDigest(a) === opened));
  }
}

const underWay = 'something is arriving there';
const lineFeed = 0x0a;

/** Changes whenever the journal or a seal does. */
async function stampOf(files: LifeFiles): Promise<string | undefined> {
  const stamps = [journalFile, sealFile, nextSealFile].map(async (name) =>
    (await files.exists(name)) ? await files.stamp?.(name) : 'none',
  );
  const found = await Promise.all(stamps);
  return found.includes(undefined) ? undefined : found.join(' ');
}

/** The earlier reading, if the journal still begins with it. */
async function goesOn(
  known: Reading | undefined,
  directory: ShippedDirectory,
  files: Files,
): Promise<Reading | undefined> {
  if (known?.directory.name !== directory.name || !(await files.exists(journalFile))) return undefined;
  if ((await files.size(journalFile)) < known.bytes) return undefined;
  const there = await files.readAt(journalFile, known.bytes - known.end.length, known.end.length);
  return equalBytes(there, known.end) ? known : undefined;
}

function lastLine(lines: Uint8Array): Uint8Array {
  return lines.slice(lines.lastIndexOf(lineFeed, lines.length - 2) + 1);
}

function leftOut(directory: string, why: string | KmsError): string {
  if (typeof why !== 'string' && why.code === 'unavailable')
    return `${directory}: ${why.message}: it is read again soon`;
  const reason = typeof why === 'string' ? why : why.message;
  return `${directory}: ${reason}: it is left out; find out who wrote it, and move it away`;
}

export function nothingYet(): KmsError {
  return new KmsError('unavailable', 'nothing has arrived there yet', {
    hint: 'the appliance ships there with `kms serve --ship-to DIR`',
  });
}
