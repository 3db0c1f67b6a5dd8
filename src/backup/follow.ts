// Follower keeps a local copy of a shipped directory: everything that its journal says has arrived. New data never
// replaces older data before it is proven. Without the master key it can check that all that the journal names is there
// and nothing went missing; only the key proves who wrote it, and that it opens. Until there is one, nothing that
// arrived is removed or replaced.
import { equalBytes } from '../crypto/bytes.ts';
import { KmsError, systemCode } from '../errors.ts';
import { longestSeal, sealFile, systemDir } from '../platform/data-dir.ts';
import type { Seal } from '../seal/seal.ts';
import type { Files } from '../store/files.ts';
import type { ChainHead } from '../store/port.ts';
import type { Proof } from './prove.ts';
import { isBehind } from './ship.ts';
import {
  arrived,
  beginningOf,
  isFarAhead,
  type Journal,
  journalFile,
  type Point,
  PointChain,
  readJournal,
  type ShippedDirectory,
  sealAfter,
  sealDigest,
  shippedSeal,
  storesGone,
} from './ship-journal.ts';
import { proveShipped } from './ship-source.ts';
import { journalBytes } from './shipped-bounds.ts';
import { bringNear, cutBack, keptVersions, prune, putBack } from './shipped-copy.ts';

/** A state of a shipped directory: its last point, with all stores. */
export interface ShippedState {
  readonly directory: ShippedDirectory;
  readonly point: Point;
}

interface FollowDeps {
  /** Shipped directories, the highest epoch first. */
  directories(): Promise<readonly ShippedDirectory[]>;
  /** Local copies, the highest epoch first. */
  copies(): Promise<readonly ShippedDirectory[]>;
  /** Files of a shipped directory. */
  source(directory: string): Files;
  /** Files of its local copy. */
  copy(directory: string): Files;
  /** Removes the local copy of this directory, or of all others. */
  drop(directory: string, which: 'it' | 'others'): Promise<void>;
  /** Undefined if there is no key. Throws for a wrong one. */
  openSeal(bytes: Uint8Array, name: string): Promise<Seal | undefined>;
  readonly wasm: Uint8Array;
  /** Bytes that can still be written locally. */
  room(): Promise<number>;
  /** Milliseconds of a monotonic clock. */
  uptime(): number;
  /** Epoch milliseconds. */
  now(): number;
  /** Called with a proven state, before data that only earlier states need is removed. */
  onProven(state: ShippedState): Promise<void>;
}

/** Position in the journal. */
interface Reading {
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

/** A state of a local copy, and the files that say so. */
interface Recalled extends ShippedState {
  readonly seal: Uint8Array;
  readonly journal: Uint8Array;
  readonly isCurrent: boolean;
}

export interface Proven extends ShippedState {
  readonly proof: Proof;
  /** The end of each store's activity log. */
  readonly heads: ReadonlyMap<string, ChainHead>;
  /** The end of the last closed segment of each, if none is faulty. */
  readonly closed: ReadonlyMap<string, ChainHead>;
}

/** A proof may take up to one part in this many of the time. */
const provingShare = 20;
/** Milliseconds that a state that failed its proof is left alone, unless it changes. */
const badPause = 60_000;

/** More looks at a journal whose files were gone when they were to be read. */
const vanishedTries = 4;

export class Follower {
  readonly #deps: FollowDeps;
  #reading: Reading | undefined;
  #copied: ShippedState | undefined;
  #proven: ShippedState | undefined;
  #proof: Proven | undefined;
  #shipped: ShippedState | undefined;
  #doubts: string[] = [];
  #hasRecalled = false;
  #seal: { readonly digest: string; readonly seal: Seal | undefined } | undefined;
  /** Earliest time of the next proof. */
  #proveFrom = 0;
  #bad: { readonly end: Uint8Array; readonly until: number; readonly error: unknown } | undefined;

  /** @param proven the state proven before, by an earlier process. */
  constructor(deps: FollowDeps, proven: ShippedState | undefined) {
    this.#deps = deps;
    this.#proven = proven;
    this.#copied = proven;
  }

  /** Undefined if the last look could not tell. */
  get shipped(): ShippedState | undefined {
    return this.#shipped;
  }

  get copied(): ShippedState | undefined {
    return this.#copied;
  }

  /** A reason for a person to look at what is shipped, although it is followed. */
  get doubt(): string | undefined {
    return this.#doubts.length > 0 ? this.#doubts.join('; ') : undefined;
  }

  /** Length of the journal at the last look, as far as it verified; undefined if that look took nothing. */
  get journalBytes(): number | undefined {
    return this.#reading?.bytes;
  }

  get proven(): ShippedState | undefined {
    return this.#proven;
  }

  /** The keys of the copied state; undefined without the master key. */
  get seal(): Seal | undefined {
    return this.#seal?.seal;
  }

  /**
   * Copies what has arrived since. Throws if it cannot; the earlier state then still counts. `isUrgent`: also retries a
   * state that just failed its proof, perhaps through a fault of the copy.
   */
  async look(isUrgent = false): Promise<void> {
    for (let tries = vanishedTries; ; tries--) {
      try {
        return await this.#lookOnce(isUrgent);
      } catch (error) {
        // The appliance ships meanwhile, and removes files that the newest line of its journal no longer needs.
        if (tries === 0 || !isOfMissingFile(error)) throw error;
      }
    }
  }

  async #lookOnce(isUrgent: boolean): Promise<void> {
    const known = this.#reading;
    // Cleared until all of it is copied: it may have to be read again.
    this.#reading = undefined;
    this.#shipped = undefined;
    this.#doubts = [];
    if (!this.#copied && !this.#hasRecalled) await this.#begin();
    this.#hasRecalled = true;
    const found = await this.#read(known);
    const { reading, lines, seal } = found;
    const { directory, point } = reading;
    this.#shipped = { directory, point };
    if (this.#copied) needNotOlder({ directory, point }, this.#copied, this.#seal?.seal ? undefined : found.gone);
    if (!isUrgent && this.#bad && equalBytes(this.#bad.end, reading.end) && this.#deps.uptime() < this.#bad.until) {
      throw this.#bad.error;
    }
    if (lines.length > 0) await this.#take(reading, lines, seal);
    this.#reading = reading;
    if (!this.#seal?.seal) await this.#sayKept(directory);
    await this.#prove();
  }

  /**
   * Falls back to the local copy if the shipped directory is unreachable. With the key, to the newest state of it that
   * verifies, of the latest life that has one.
   */
  async recall(): Promise<void> {
    const { copies, copy } = this.#deps;
    for (const directory of await copies()) {
      const found = await this.#recalled(directory).catch(() => undefined);
      if (!found) continue;
      await this.#open(found.seal, directory.name);
      if (!found.isCurrent) await putBack(copy(directory.name), found.seal, found.journal);
      this.#copied = { directory, point: found.point };
      return;
    }
  }

  /** An earlier process may have copied what no key proved: that is not to be replaced by anything unproven either. */
  async #begin(): Promise<void> {
    await this.recall().catch(() => {});
    await this.#prove().catch(() => {});
    this.#proveFrom = 0;
  }

  async #recalled(directory: ShippedDirectory): Promise<Recalled | undefined> {
    const files = this.#deps.copy(directory.name);
    const journals: { readonly name: string; readonly bytes: Uint8Array }[] = [];
    for (const name of await keptVersions(files, journalFile)) {
      journals.push({ name, bytes: await journalBytes(files, name) });
    }
    let best: Recalled | undefined;
    for (const sealName of await keptVersions(files, sealFile)) {
      const seal = await files.read(sealName, longestSeal);
      const opened = await this.#open(seal, directory.name).catch(() => null);
      if (opened === null) continue;
      for (const { name, bytes } of journals) {
        const read = await beginningOf(bytes, new PointChain(directory.name, opened?.keysFor(systemDir)));
        const point = merged(read.points);
        if (!point || (best && point.at <= best.point.at)) continue;
        if (point.seal !== undefined && point.seal !== sealDigest(seal)) continue;
        const isCurrent = name === journalFile && sealName === sealFile && read.bytes === bytes.length;
        best = { directory, point, seal, journal: bytes.subarray(0, read.bytes), isCurrent };
        // Without the key no other version is any better.
        if (!opened) return { ...best, isCurrent: true };
      }
    }
    return best;
  }

  /** Without the key, the copies of all lives stay. */
  async #sayKept({ name }: ShippedDirectory): Promise<void> {
    const others = (await this.#deps.copies()).filter((each) => each.name !== name).map((each) => each.name);
    if (others.length === 0) return;
    this.#doubts.push(
      `${name} is followed, and nobody proved it: the copy of ${others.join(', ')} is kept until the key tells which ` +
        'is right; give it with --key-file',
    );
  }

  /**
   * Proves the last copied state, unless that is done. Throws `corrupt` if it does not verify, `sealed` without a key.
   * `before`: a state proven a moment ago, whose closed segments need not be verified again.
   */
  async prove(before?: Proven): Promise<Proven> {
    this.#proveFrom = 0;
    if (this.#copied) await this.#sealOf(this.#copied);
    await this.#prove(before);
    if (this.#proof && this.#copied?.point === this.#proof.point) return this.#proof;
    throw nothingYet();
  }

  /** Proves the last proven state again. */
  async proveAgain(): Promise<Proven> {
    if (!this.#proven) throw new KmsError('refused', 'nothing that arrived has been proven yet');
    const seal = await this.#sealOf(this.#proven);
    return this.#proofOf(this.#proven, seal);
  }

  wipe(): void {
    this.#seal?.seal?.wipe();
    this.#seal = undefined;
  }

  /**
   * Reads the newest non-empty journal: its position, and the lines not read before. The name of a directory proves
   * nothing: with the key only a life counts of which the first line verifies.
   */
  async #read(known: Reading | undefined): Promise<Found> {
    const { directories, source } = this.#deps;
    for (const directory of await directories()) {
      const files = source(directory.name);
      if (!(await files.exists(sealFile)) || !(await files.exists(journalFile))) continue;
      const before = await goesOn(known, directory, files);
      const from = before?.bytes ?? 0;
      const bytes = await journalBytes(files, journalFile, from);
      const keyless = await beginningOf(bytes, new PointChain(directory.name, undefined));
      const points = before ? [before.point, ...keyless.points] : keyless.points;
      if (points.length === 0) {
        if (bytes.includes(lineFeed)) this.#doubts.push(leftOut(directory.name, 'its journal is none that kms writes'));
        continue;
      }
      const sealBytes = await shippedSeal(files, points);
      const digest = sealAfter(points);
      if (digest !== undefined && digest !== sealDigest(sealBytes)) throw underWay(directory.name);
      // The earlier lines were read with keys from the seal of that time.
      if (before && this.#seal?.digest !== sealDigest(sealBytes)) return this.#read(undefined);
      const seal = await this.#open(sealBytes, directory.name);
      const journal = await this.#journalOf(directory, bytes, seal, before);
      if (!journal) continue;
      const lines = bytes.subarray(0, journal.bytes);
      const point = merged(points.slice(0, journal.points.length + (before ? 1 : 0)));
      if (!point) continue;
      const end = lines.length > 0 ? lastLine(lines) : (before?.end ?? lines);
      const reading = { directory, bytes: from + lines.length, end, chain: journal.chain, point };
      return { reading, lines, seal: sealBytes, gone: storesGone(keyless.points) };
    }
    throw nothingYet();
  }

  /** Undefined for a life that does not count, which is then doubted. */
  async #journalOf(
    { name, epoch }: ShippedDirectory,
    bytes: Uint8Array,
    seal: Seal | undefined,
    before: Reading | undefined,
  ): Promise<Journal | undefined> {
    if (!seal && isFarAhead(epoch, this.#deps.now())) {
      this.#doubts.push(leftOut(name, "its epoch is far beyond this machine's clock, and there is no key to prove it"));
      return undefined;
    }
    const chain = () => new PointChain(name, seal?.keysFor(systemDir));
    if (seal && !before && (await beginningOf(bytes, chain())).points.length === 0) {
      this.#doubts.push(leftOut(name, 'none of its journal verifies with the key'));
      return undefined;
    }
    return readJournal(bytes, name, seal?.keysFor(systemDir), before?.chain ?? chain());
  }

  async #open(bytes: Uint8Array, name: string): Promise<Seal | undefined> {
    const digest = sealDigest(bytes);
    if (this.#seal?.digest !== digest) {
      const seal = await this.#deps.openSeal(bytes, name);
      this.#seal?.seal?.wipe();
      this.#seal = { digest, seal };
      // With other keys, the proof may differ.
      this.#proof = undefined;
    }
    return this.#seal.seal;
  }

  async #sealOf({ directory, point }: ShippedState): Promise<Seal> {
    const seal = await this.#open(await shippedSeal(this.#deps.copy(directory.name), [point]), directory.name);
    if (seal) return seal;
    throw new KmsError('sealed', 'the master key is not available', { hint: 'give the key with --key-file' });
  }

  async #take(reading: Reading, lines: Uint8Array, seal: Uint8Array): Promise<void> {
    const { directory, point } = reading;
    const [source, copy] = [this.#deps.source(directory.name), this.#deps.copy(directory.name)];
    const before = this.#copied?.directory.name === directory.name ? this.#copied.point : undefined;
    await bringNear(source, copy, {
      point,
      before,
      seal,
      lines,
      from: reading.bytes - lines.length,
      isProvable: this.#seal?.seal !== undefined,
      now: this.#deps.now(),
      room: this.#deps.room,
    });
    this.#copied = { directory, point };
    this.#bad = undefined;
  }

  async #prove(before?: Proven): Promise<void> {
    const [copied, seal] = [this.#copied, this.#seal?.seal];
    if (!copied || !seal || this.#proof?.point === copied.point) return;
    const began = this.#deps.uptime();
    if (began < this.#proveFrom) return;
    try {
      const proven = await this.#proofOf(copied, seal, before);
      await this.#deps.onProven({ directory: copied.directory, point: copied.point });
      this.#proof = proven;
      this.#proven = copied;
      await this.#prune(copied);
    } catch (error) {
      if (error instanceof KmsError && error.code === 'corrupt') await this.#goBack(error);
      throw error;
    } finally {
      const ended = this.#deps.uptime();
      this.#proveFrom = ended + (ended - began) * provingShare;
    }
  }

  async #proofOf(state: ShippedState, seal: Seal, before?: Proven): Promise<Proven> {
    const heads = new Map<string, ChainHead>();
    const closed = new Map<string, ChainHead>();
    const { directory, point } = state;
    const known = before?.directory.name === directory.name ? before.closed : undefined;
    const proof = await proveShipped(this.#deps.copy(directory.name), this.#deps.wasm, seal, [point], {
      from: (dir) => known?.get(dir),
      onStore(dir, checked) {
        heads.set(dir, checked.activity);
        if (checked.closed) closed.set(dir, checked.closed);
      },
    });
    return { directory, point, proof, heads, closed };
  }

  /**
   * Discards data after the last proven state; all of it, if that does not verify any more. If the shipped directory is
   * out of reach, what cannot be copied again stays.
   */
  async #goBack(error: unknown): Promise<void> {
    const [bad, good] = [this.#copied, this.#proven];
    const { uptime, copy, drop } = this.#deps;
    this.#bad = { end: this.#reading?.end ?? new Uint8Array(), until: uptime() + badPause, error };
    this.#reading = undefined;
    this.#proof = undefined;
    this.#copied = good;
    if (!bad) return;
    const isReachable = this.#shipped !== undefined;
    if (good?.directory.name !== bad.directory.name) {
      if (isReachable) await drop(bad.directory.name, 'it');
      return;
    }
    await cutBack(copy(bad.directory.name), bad.point, good.point);
    try {
      await this.#proofOf(good, await this.#sealOf(good));
    } catch {
      this.#proven = undefined;
      this.#copied = undefined;
      if (isReachable) await drop(bad.directory.name, 'it');
    }
  }

  /** Removes data that only earlier states need. */
  async #prune(state: ShippedState): Promise<void> {
    await this.#deps.drop(state.directory.name, 'others');
    await prune(this.#deps.copy(state.directory.name), state.point);
  }
}

const lineFeed = 0x0a;

function leftOut(directory: string, why: string): string {
  return `${directory}: ${why}: it is left out; find out who wrote it, and move it away`;
}

/** The earlier reading, if the journal still begins with it. */
async function goesOn(
  known: Reading | undefined,
  directory: ShippedDirectory,
  files: Files,
): Promise<Reading | undefined> {
  if (known?.directory.name !== directory.name || (await files.size(journalFile)) < known.bytes) return undefined;
  const there = await files.readAt(journalFile, known.bytes - known.end.length, known.end.length);
  return equalBytes(there, known.end) ? known : undefined;
}

/** The last point, with all stores of the earlier ones in it. */
function merged(points: readonly Point[]): Point | undefined {
  const last = points.at(-1);
  const seal = sealAfter(points);
  return last && { ...last, ...(seal === undefined ? {} : { seal }), stores: Object.fromEntries(arrived(points)) };
}

function lastLine(lines: Uint8Array): Uint8Array {
  return lines.slice(lines.lastIndexOf(lineFeed, lines.length - 2) + 1);
}

function isOfMissingFile(error: unknown): boolean {
  return systemCode(error) === 'ENOENT' || (error instanceof KmsError && systemCode(error.cause) === 'ENOENT');
}

/** Transactions in all stores. */
export function transactionsIn({ point }: ShippedState): number {
  return [...arrived([point]).values()].reduce((sum, { sequence = 0 }) => sum + sequence, 0);
}

/**
 * Throws `refused` if the state found is older than the copy. `gone`: for a state without proof, the stores that it
 * calls gone; any other that it lacks makes it older.
 */
function needNotOlder(found: ShippedState, mine: ShippedState, gone: ReadonlySet<string> | undefined): void {
  const before = arrived([mine.point]);
  const there = arrived([found.point]);
  const lost = gone && [...before.keys()].find((dir) => !there.has(dir) && !gone.has(dir));
  const isLess =
    found.directory.name === mine.directory.name &&
    (found.point.at < mine.point.at ||
      lost !== undefined ||
      [...there].some(([dir, place]) => {
        const had = before.get(dir);
        return had !== undefined && (had.uid !== place.uid || isBehind(place, had));
      }));
  if (found.directory.appliance !== mine.directory.appliance) {
    throw new KmsError('refused', `what is shipped there belongs to another appliance, ${found.directory.appliance}`, {
      hint: `this standby follows ${mine.directory.appliance}: give that one a directory of its own`,
    });
  }
  if (!isLess && found.directory.epoch >= mine.directory.epoch) return;
  const at = new Date(mine.point.at).toISOString();
  const why = lost === undefined ? '' : `: it lacks ${lost}, and nothing says that this was deleted`;
  throw new KmsError('refused', `the state shipped there is older than the one that had arrived by ${at}${why}`, {
    hint: gone
      ? 'what arrived is kept; give the key with --key-file, which tells which is right'
      : 'the newer state is kept; find out who put the older one there',
  });
}

function underWay(directory: string): KmsError {
  return new KmsError('unavailable', `${directory}: something is arriving there right now`, { hint: 'try again' });
}

function nothingYet(): KmsError {
  return new KmsError('unavailable', 'nothing has arrived there yet', {
    hint: 'the appliance ships there with `kms serve --ship-to DIR`',
  });
}
