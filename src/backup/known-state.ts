// The states that a standby knows to have arrived: how far the newest went that the key ever verified, whatever became
// of the copy of it, and the newest in the local copy that verifies. By them an older state is told from a newer one.
import { KmsError } from '../errors.ts';
import { longestSeal, sealFile, systemDir } from '../platform/data-dir.ts';
import type { Seal } from '../seal/seal.ts';
import type { Files } from '../store/files.ts';
import { keptVersions, putBack } from './kept-versions.ts';
import { isBehind } from './ship.ts';
import {
  arrived,
  beginningOf,
  goesOnBehind,
  journalFile,
  type Point,
  PointChain,
  type ShippedDirectory,
  sealAfter,
  sealDigest,
} from './ship-journal.ts';
import { journalBytes } from './shipped-bounds.ts';

/** A state of a shipped directory: its last point, with all stores. */
export interface ShippedState {
  readonly directory: ShippedDirectory;
  readonly point: Point;
}

/** How far a life went that the key verified. */
interface Reach {
  readonly directory: ShippedDirectory;
  /** Epoch milliseconds of its last point. */
  readonly at: number;
}

/** A state of a local copy, and the files that say so. */
interface Recalled extends ShippedState {
  readonly seal: Uint8Array;
  readonly journal: Uint8Array;
  readonly isCurrent: boolean;
  /** Whether more lines follow, which do not verify. */
  readonly isShortened: boolean;
}

/** The last point, with all stores of the earlier ones in it. */
export function merged(points: readonly Point[]): Point | undefined {
  const last = points.at(-1);
  const seal = sealAfter(points);
  return last && { ...last, ...(seal === undefined ? {} : { seal }), stores: Object.fromEntries(arrived(points)) };
}

/** Transactions in all stores. */
export function transactionsIn({ point }: ShippedState): number {
  return [...arrived([point]).values()].reduce((sum, { sequence = 0 }) => sum + sequence, 0);
}

/** The keys of a seal; undefined without the master key. Throws for a wrong one. */
type OpenSeal = (seal: Uint8Array, name: string) => Promise<Seal | undefined>;

/** The newest state of a local copy; with the key, of those that verify. */
async function recalledState(files: Files, directory: ShippedDirectory, open: OpenSeal): Promise<Recalled | undefined> {
  const { name } = directory;
  const journals = await keptVersions(files, journalFile);
  let best: Recalled | undefined;
  for (const sealName of await keptVersions(files, sealFile)) {
    const seal = await files.read(sealName, longestSeal);
    const opened = await open(seal, name).catch(() => null);
    if (opened === null) continue;
    for (const each of journals) {
      // One at a time: all of them may be large.
      const bytes = await journalBytes(files, each);
      const read = await beginningOf(bytes, new PointChain(name, opened?.keysFor(systemDir)));
      const point = merged(read.points);
      const isShortened = goesOnBehind(bytes, read);
      const isBetter = point && (!best || point.at > best.point.at || (point.at === best.point.at && best.isShortened));
      if (!isBetter) continue;
      if (point.seal !== undefined && point.seal !== sealDigest(seal)) continue;
      const isCurrent = each === journalFile && sealName === sealFile && read.bytes === bytes.length;
      best = { directory, point, seal, journal: bytes.slice(0, read.bytes), isCurrent, isShortened };
      // Without the key no other version is any better.
      if (!opened) return { ...best, isCurrent: true };
    }
  }
  return best;
}

export interface KnownDeps {
  /** Local copies, the highest epoch first. */
  copies(): Promise<readonly ShippedDirectory[]>;
  /** Files of a local copy. */
  copy(directory: string): Files;
  /** Called when the key verified a journal further than ever, before anything is copied. Durable when it resolves. */
  onReach(reach: Reach): Promise<void>;
}

/** Notes of an earlier process. */
export interface Noted {
  readonly proven?: ShippedState | undefined;
  readonly reach?: Reach | undefined;
}

export class KnownStates {
  readonly #deps: KnownDeps;
  #reach: Reach | undefined;
  /** The last copied state. */
  copied: ShippedState | undefined;
  /** The last state of the copy that was proven to open. */
  proven: ShippedState | undefined;
  /** Copies of which the key verifies nothing, or not all. */
  #damaged: readonly ShippedDirectory[] = [];

  constructor(deps: KnownDeps, { proven, reach }: Noted) {
    this.#deps = deps;
    this.proven = proven;
    this.copied = proven;
    this.#reach = reach ?? (proven && reachOf(proven));
  }

  /** Names of the lives that were followed. */
  get lives(): ReadonlySet<string> {
    const names = [this.copied, this.proven, this.#reach].map((each) => each?.directory.name);
    return new Set(names.filter((name) => name !== undefined));
  }

  /**
   * Throws `refused` if the state found is older than what arrived. `gone`: for a state without proof, the stores that
   * it calls gone; any other that it lacks makes it older.
   */
  needNotOlder(found: ShippedState, gone: ReadonlySet<string> | undefined): void {
    for (const known of [this.copied?.directory, this.#reach?.directory]) {
      if (known) needSameAppliance(found.directory, known);
    }
    if (this.copied) {
      const lost = gone && lostStore(found, this.copied, gone);
      const why = lost === undefined ? '' : `: it lacks ${lost}, and nothing says that this was deleted`;
      if (lost !== undefined || isOlder(found, this.copied)) throw olderThere(this.copied.point.at, why, !gone);
    }
    if (this.#reach && !this.isNewest(found)) throw olderThere(this.#reach.at, '', !gone);
  }

  /** Whether a state goes as far as any that the key ever verified. */
  isNewest(state: ShippedState): boolean {
    return !this.#reach || goesAsFar(reachOf(state), this.#reach);
  }

  /** Throws `refused` for a state to take over that does not go as far as one that verified before. */
  needNewest(state: ShippedState): void {
    if (!this.#reach || this.isNewest(state)) return;
    const [here, there] = [state.point.at, this.#reach.at].map((at) => new Date(at).toISOString());
    throw new KmsError('refused', `the newest state that opens is of ${here}, and one of ${there} had been shipped`, {
      hint: 'this standby did not take over; find the newer one, or take the older one with --accept-older',
    });
  }

  /** Notes how far a journal verified, if that is further than ever. */
  async noteReach(reach: Reach): Promise<void> {
    const known = this.#reach;
    if (known && goesAsFar(known, reach)) return;
    await this.#deps.onReach(reach);
    this.#reach = reach;
  }

  /** Forgets all, for a person who accepts an older state. */
  forget(): void {
    this.#reach = undefined;
    this.copied = undefined;
    this.proven = undefined;
  }

  /**
   * Goes back to the local copy: with the key, to the newest state of it that verifies, of the latest life that has
   * one, unless it is older than what was known to be here.
   */
  async recall(open: OpenSeal): Promise<void> {
    const { copies, copy } = this.#deps;
    const damaged: ShippedDirectory[] = [];
    this.#damaged = damaged;
    for (const directory of await copies()) {
      const files = copy(directory.name);
      const found = await recalledState(files, directory, open).catch(() => undefined);
      if (!found || found.isShortened) damaged.push(directory);
      if (!found) continue;
      const hasKey = (await open(found.seal, directory.name)) !== undefined;
      // Without the key a life counts for no more than one that was proven.
      if (!hasKey && this.proven && this.proven.directory.name !== directory.name) continue;
      if (this.copied && isOlder(found, this.copied)) return;
      // A journal that was cut short may be mended.
      if (!found.isCurrent) await putBack(files, found.seal, found.isShortened ? undefined : found.journal);
      if (hasKey) await this.noteReach(reachOf(found));
      if (!this.copied || isOlder(this.copied, found)) this.copied = { directory, point: found.point };
      return;
    }
  }

  /** A doubt about copies that are as late as what is followed, or later, and cannot be read to their end. */
  damagedBeside(followed: ShippedDirectory | undefined): readonly string[] {
    return this.#damaged
      .filter(({ name, epoch }) => !followed || epoch > followed.epoch || name === followed.name)
      .map(({ name }) => `the copy of ${name} does not verify to its end: what it had may be newer`);
  }

  /** A doubt about the copies of other lives, which all stay without the key. */
  async unprovenBeside({ name }: ShippedDirectory): Promise<readonly string[]> {
    const others = (await this.#deps.copies()).filter((each) => each.name !== name).map((each) => each.name);
    if (others.length === 0) return [];
    return [
      `${name} is followed, and nobody proved it: the copy of ${others.join(', ')} is kept until the key tells which ` +
        'is right; give it with --key-file',
    ];
  }
}

function reachOf({ directory, point }: ShippedState): Reach {
  return { directory, at: point.at };
}

/** Whether one goes as far as the other, by time, or is of a later life. */
function goesAsFar(one: Reach, other: Reach): boolean {
  const { name, epoch } = other.directory;
  return one.directory.name === name ? one.at >= other.at : one.directory.epoch >= epoch;
}

/** Whether a state lacks anything of another. */
function isOlder(found: ShippedState, mine: ShippedState): boolean {
  if (!goesAsFar(reachOf(found), reachOf(mine))) return true;
  if (found.directory.name !== mine.directory.name) return false;
  const before = arrived([mine.point]);
  return [...arrived([found.point])].some(([dir, place]) => {
    const had = before.get(dir);
    return had !== undefined && (had.uid !== place.uid || isBehind(place, had));
  });
}

/** A store that only the earlier of two states of one life has, and that the later does not call gone. */
function lostStore(found: ShippedState, mine: ShippedState, gone: ReadonlySet<string>): string | undefined {
  if (found.directory.name !== mine.directory.name) return undefined;
  const there = arrived([found.point]);
  return [...arrived([mine.point]).keys()].find((dir) => !there.has(dir) && !gone.has(dir));
}

function needSameAppliance({ appliance }: ShippedDirectory, { appliance: mine }: ShippedDirectory): void {
  if (appliance === mine) return;
  throw new KmsError('refused', `what is shipped there belongs to another appliance, ${appliance}`, {
    hint: `this standby follows ${mine}: give that one a directory of its own`,
  });
}

function olderThere(at: number, why: string, hasKey: boolean): KmsError {
  const time = new Date(at).toISOString();
  return new KmsError('refused', `the state shipped there is older than the one that had arrived by ${time}${why}`, {
    hint: hasKey
      ? 'the newer state is kept; find out who put the older one there'
      : 'what arrived is kept; give the key with --key-file, which tells which is right',
  });
}
