// Follower keeps a local copy of a shipped directory: everything that its journal says has arrived. New data never
// replaces older data before it is proven, and nothing here is given up for a state that is older than the newest that
// ever verified. Without the master key it can check that all that the journal names is there and nothing went missing;
// only the key proves who wrote it, and that it opens. Until there is one, nothing that arrived is removed or replaced.
import { equalBytes } from '../crypto/bytes.ts';
import { KmsError, systemCode } from '../errors.ts';
import { sealName } from '../platform/data-dir.ts';
import type { Seal } from '../seal/seal.ts';
import type { Files } from '../store/files.ts';
import type { ChainHead } from '../store/port.ts';
import { JournalReader, nothingYet, type Reading } from './followed-journal.ts';
import { type KnownDeps, KnownStates, type Noted, type ShippedState } from './known-state.ts';
import type { LifeFiles } from './lives.ts';
import { lackOf, type Proof } from './prove.ts';
import { type ShippedDirectory, sealDigest, shippedSeal } from './ship-journal.ts';
import { proveShipped } from './ship-source.ts';
import { bringAgain, bringNear, prune } from './shipped-copy.ts';

interface FollowDeps extends KnownDeps {
  /** Shipped directories, the highest epoch first. */
  directories(): Promise<readonly ShippedDirectory[]>;
  /** Files of a shipped directory. */
  source(directory: string): LifeFiles & Files;
  /** Removes the local copies of all other directories. */
  dropOthers(directory: string): Promise<void>;
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

export interface Proven extends ShippedState {
  readonly proof: Proof;
  /** The end of each store's activity log. */
  readonly heads: ReadonlyMap<string, ChainHead>;
  /** The end of the last closed segment of each, if none is faulty. */
  readonly closed: ReadonlyMap<string, ChainHead>;
  /** Paths of the faulty segments in the copy. */
  readonly faulty: readonly string[];
}

/** A proof may take up to one part in this many of the time. */
const provingShare = 20;
/** Milliseconds that a state that failed its proof, or lacks a segment, is left alone, unless it changes. */
const badPause = 60_000;

/** More looks at a journal whose files were gone when they were to be read. */
const vanishedTries = 4;

export class Follower {
  readonly #deps: FollowDeps;
  #reading: Reading | undefined;
  readonly #known: KnownStates;
  readonly #journal: JournalReader;
  #proof: Proven | undefined;
  #shipped: ShippedState | undefined;
  #doubts: string[] = [];
  /** Counted segments that were not there when the last state was copied without a key. */
  #lacks: readonly string[] = [];
  #hasBegun = false;
  #seal: { readonly digest: string; readonly seal: Seal | undefined } | undefined;
  /** Earliest time of the next proof. */
  #proveFrom = 0;
  #bad: { readonly end: Uint8Array; readonly until: number; readonly error: unknown } | undefined;
  /** Files that are in the copy of `directory` as they are shipped. */
  #here: { readonly directory: string; readonly files: Map<string, number> } | undefined;
  #isDistrusted = false;
  /** Earliest time to fetch faulty segments again. */
  #mendFrom = 0;

  constructor(deps: FollowDeps, noted: Noted = {}) {
    this.#deps = deps;
    this.#known = new KnownStates(deps, noted);
    this.#journal = new JournalReader({
      ...deps,
      open: (...opening) => this.#open(...opening),
      opened: () => this.#seal?.digest,
    });
  }

  /** Undefined if the last look could not tell. */
  get shipped(): ShippedState | undefined {
    return this.#shipped;
  }

  get copied(): ShippedState | undefined {
    return this.#known.copied;
  }

  /** A reason for a person to look at what is shipped, although it is followed. */
  get doubt(): string | undefined {
    // A copy that is followed is as long as what is shipped.
    const followed = this.#reading ? { ...this.#reading.directory, name: '' } : this.#known.copied?.directory;
    const doubts = [...this.#doubts, ...this.#known.damagedBeside(followed)];
    return doubts.length > 0 ? doubts.join('; ') : undefined;
  }

  /** Segments that the copy of the proven state lacks, in words; everything else in it opens. */
  get lack(): string | undefined {
    return this.#proof && lackOf(this.#proof.proof);
  }

  /** Length of the journal at the last look, as far as it verified; undefined if that look took nothing. */
  get journalBytes(): number | undefined {
    return this.#reading?.bytes;
  }

  get proven(): ShippedState | undefined {
    return this.#known.proven;
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
        // The appliance ships in the meantime, and removes files that the newest line of its journal no longer needs.
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
    if (!this.#hasBegun) await this.#begin();
    const found = await this.#journal.read(known, this.#known.lives, (doubt) => this.#doubts.push(doubt));
    const { reading, lines, seal } = found;
    const { directory, point } = reading;
    this.#shipped = { directory, point };
    const hasKey = this.#seal?.seal !== undefined;
    this.#known.needNotOlder({ directory, point }, hasKey ? undefined : found.gone);
    if (hasKey) await this.#known.noteReach({ directory, at: point.at });
    if (!isUrgent && this.#bad && equalBytes(this.#bad.end, reading.end) && this.#deps.uptime() < this.#bad.until) {
      throw this.#bad.error;
    }
    if (lines.length > 0) await this.#take(reading, lines, seal);
    this.#reading = reading;
    if (!hasKey) this.#doubts.push(...this.#lacks, ...(await this.#known.unprovenBeside(directory)));
    await this.#prove();
    if (isUrgent || this.#deps.uptime() >= this.#mendFrom) await this.#mend();
  }

  /** Falls back to the local copy if the shipped directory is unreachable. */
  recall(): Promise<void> {
    return this.#known.recall(async (bytes, name) => (await this.#open(bytes, name)).seal);
  }

  /** Throws `refused` for a state that does not go as far as one that verified before. */
  needNewest(state: ShippedState): void {
    this.#known.needNewest(state);
  }

  /** Follows what is shipped although it is older than what had arrived, as a person decided. */
  async lookAtOlder(): Promise<void> {
    this.#known.forget();
    this.#here = undefined;
    this.#isDistrusted = true;
    await this.look(true);
  }

  /** An earlier process may have copied a state that no key proved: nothing unproven may replace that either. */
  async #begin(): Promise<void> {
    this.#hasBegun = true;
    await this.recall().catch(() => {});
    if (this.#known.copied === this.#known.proven) return;
    await this.#prove().catch(() => {});
    this.#proveFrom = 0;
  }

  /**
   * Proves the last copied state, unless that is done. Throws `corrupt` if it does not verify, `sealed` without a key.
   * `before`: a state proven a moment ago, whose closed segments need not be verified again.
   */
  async prove(before?: Proven): Promise<Proven> {
    this.#proveFrom = 0;
    if (this.#known.copied) await this.#sealOf(this.#known.copied);
    await this.#prove(before);
    if (this.#proof && this.#known.copied?.point === this.#proof.point) return this.#proof;
    throw nothingYet();
  }

  /** Proves the last proven state again. */
  async proveAgain(): Promise<Proven> {
    if (!this.#known.proven) throw new KmsError('refused', 'nothing that arrived has been proven yet');
    return this.#proofOf(this.#known.proven, await this.#sealOf(this.#known.proven));
  }

  wipe(): void {
    this.#seal?.seal?.wipe();
    this.#seal = undefined;
  }

  /** `isRight`: whether the keys are those of the life; others are wiped, and the last opened seal stays. */
  async #open(
    bytes: Uint8Array,
    name: string,
    isRight: (seal: Seal | undefined) => Promise<boolean> = async () => true,
  ): Promise<{ readonly seal: Seal | undefined; readonly isRight: boolean }> {
    const digest = sealDigest(bytes);
    if (this.#seal?.digest === digest) return { seal: this.#seal.seal, isRight: await isRight(this.#seal.seal) };
    const seal = await this.#deps.openSeal(bytes, name);
    if (!(await isRight(seal))) {
      seal?.wipe();
      return { seal, isRight: false };
    }
    this.#seal?.seal?.wipe();
    this.#seal = { digest, seal };
    // With other keys, the proof may differ.
    this.#proof = undefined;
    return { seal, isRight: true };
  }

  async #sealOf({ directory, point }: ShippedState): Promise<Seal> {
    const { seal } = await this.#open(await shippedSeal(this.#deps.copy(directory.name), [point]), directory.name);
    if (seal) return seal;
    throw new KmsError('sealed', 'the master key is not available', { hint: 'give the key with --key-file' });
  }

  async #take(reading: Reading, lines: Uint8Array, seal: Uint8Array): Promise<void> {
    const { directory, point } = reading;
    const before = this.#known.copied?.directory.name === directory.name ? this.#known.copied.point : undefined;
    const key = this.#seal?.seal;
    const { proven } = this.#known;
    const surely = proven?.directory.name === directory.name ? proven.point : undefined;
    if (this.#here?.directory !== directory.name) this.#here = { directory: directory.name, files: new Map() };
    this.#lacks = await bringNear(this.#deps.source(directory.name), this.#deps.copy(directory.name), {
      directory: directory.name,
      point,
      before,
      sure: key ? surely : before,
      isDistrusted: this.#isDistrusted,
      known: this.#here.files,
      seal,
      lines,
      from: reading.bytes - lines.length,
      keysOf: key && ((dir) => key.keysFor(sealName(dir))),
      now: this.#deps.now(),
      room: this.#deps.room,
    });
    this.#isDistrusted = false;
    this.#known.copied = { directory, point };
    this.#bad = undefined;
  }

  async #prove(before?: Proven): Promise<void> {
    const [copied, seal] = [this.#known.copied, this.#seal?.seal];
    if (!copied || !seal || this.#proof?.point === copied.point) return;
    const began = this.#deps.uptime();
    if (began < this.#proveFrom) return;
    try {
      const proven = await this.#proofOf(copied, seal, before);
      await this.#deps.onProven({ directory: copied.directory, point: copied.point });
      this.#proof = proven;
      this.#known.proven = copied;
      await this.#prune(proven);
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
    const faulty: string[] = [];
    const { directory, point } = state;
    const known = before?.directory.name === directory.name ? before.closed : undefined;
    const proof = await proveShipped(this.#deps.copy(directory.name), this.#deps.wasm, seal, [point], {
      from: (dir) => known?.get(dir),
      onStore(dir, checked) {
        heads.set(dir, checked.activity);
        if (checked.closed) closed.set(dir, checked.closed);
        faulty.push(...checked.faults.map(({ path }) => path));
      },
    });
    return { directory, point, proof, heads, closed, faulty };
  }

  /** Fetches segments again that the last proof found faulty. */
  async #mend(): Promise<void> {
    const [proof, seal] = [this.#proof, this.#seal?.seal];
    if (!proof || !seal || proof.faulty.length === 0) return;
    const { source, copy, uptime, room } = this.#deps;
    const { directory, point, faulty } = proof;
    this.#mendFrom = uptime() + badPause;
    const keysOf = (dir: string) => seal.keysFor(sealName(dir));
    if (!(await bringAgain(source(directory.name), copy(directory.name), faulty, { point, keysOf, room }))) return;
    this.#proof = undefined;
    this.#proveFrom = 0;
    await this.#prove();
  }

  /**
   * Goes back to the last proven state, if that still verifies. Nothing is removed: what comes after it, or all of it,
   * is fetched again from a source that goes as far.
   */
  async #goBack(error: unknown): Promise<void> {
    const good = this.#known.proven;
    this.#bad = { end: this.#reading?.end ?? new Uint8Array(), until: this.#deps.uptime() + badPause, error };
    this.#reading = undefined;
    this.#proof = undefined;
    this.#here = undefined;
    this.#isDistrusted = true;
    this.#known.copied = good;
    if (!good) return;
    try {
      await this.#proofOf(good, await this.#sealOf(good));
    } catch {
      this.#known.proven = undefined;
      this.#known.copied = undefined;
      // The copy is at fault: what is there is tried at once.
      this.#bad = undefined;
    }
  }

  /** Removes data that only earlier states need. */
  async #prune({ directory, point, faulty }: Proven): Promise<void> {
    if (!this.#known.isNewest({ directory, point })) return;
    // The copy of an earlier life may have a segment that this one lacks, and that of a later one may be mended.
    if (faulty.length === 0 && this.#known.damagedBeside({ ...directory, name: '' }).length === 0)
      await this.#deps.dropOthers(directory.name);
    await prune(this.#deps.copy(directory.name), point);
  }
}

function isOfMissingFile(error: unknown): boolean {
  return systemCode(error) === 'ENOENT' || (error instanceof KmsError && systemCode(error.cause) === 'ENOENT');
}
