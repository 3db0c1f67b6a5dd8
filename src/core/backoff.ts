// Backoff slows guessing down: it counts failures in a row under keys (a name, an address, both), and past a key's
// threshold each further try under it must wait. A try is counted from its start: while what is under way could use up
// the tries left, the next ones wait for the outcome, so that no number of parallel tries gets past the count.
//
// Its memory is bounded, and nobody can push a wait out of it: looking and refused tries remember nothing, and room is
// made only by forgetting a count whose wait, if it had one, is over. When waits that run fill a table, keys that it
// doesn't hold share lots by a hash that nobody outside can foresee: they may wait for each other's failures, and no
// wait is lost.
//
// Where several processes count beside each other and know nothing of each other's failures, each takes one that it
// sees for one on each of them: however tries are spread, all together let through what one alone would, but for the
// one try that each of them always has.
import { toHex, utf8 } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { KmsError } from '../errors.ts';

export interface BackoffTurn {
  failed(): void;
  succeeded(): void;
  /** Neither: nothing was looked at. */
  abandoned(): void;
}

/** What a try is counted under. */
export type BackoffKeys<Scope extends string> = readonly (readonly [scope: Scope, key: string])[];

export interface BackoffOptions<Scope extends string> {
  /** Failures in a row after which tries must wait. */
  readonly thresholds: Readonly<Record<Scope, number>>;
  /** What fails, in the plural. */
  readonly what: string;
  /** Milliseconds by a clock that nobody sets: else a wait would last until one that was ahead is reached again. */
  elapsed(): number;
  random(length: number): Uint8Array;
  /** Keys of each scope that have a count of their own. */
  readonly held?: number;
  /** Lots of each scope that the other keys share. */
  readonly lots?: number;
  /** Tries that may wait for the outcome of others. */
  readonly waiting?: number;
  /** Processes that count beside each other, this one included; 1 when absent. */
  readonly sharers?: (() => number) | undefined;
}

const firstWait = 1_000;
const longestWait = 900_000;
/** A wait is as long as two to the power of this many seconds, the last one as long as the longest. */
const lastStep = Math.ceil(Math.log2(longestWait / firstWait));

export class Backoff<Scope extends string> {
  readonly #options: BackoffOptions<Scope>;
  readonly #counts = new Map<Scope, Counts>();
  readonly #salt: string;
  #queue: (() => void)[] = [];

  constructor(options: BackoffOptions<Scope>) {
    this.#options = options;
    this.#salt = toHex(options.random(16));
  }

  /** Why a try under these keys is refused now; undefined when it isn't. Looks only. */
  refusal(keys: BackoffKeys<Scope>): KmsError | undefined {
    const now = this.#options.elapsed();
    const wait = Math.max(0, ...keys.map(([scope, key]) => this.#of(scope).wait(key, now)));
    return wait > 0 ? this.#mustWait(wait) : undefined;
  }

  /** Waits for its turn. Throws `rate-limited` where the try has to wait, which lengthens nothing. */
  async begin(keys: BackoffKeys<Scope>): Promise<BackoffTurn> {
    const { waiting = 1_000 } = this.#options;
    for (;;) {
      const refusal = this.refusal(keys);
      if (refusal) throw refusal;
      const turn = this.#enter(keys);
      if (turn) return turn;
      if (this.#queue.length >= waiting) throw this.#mustWait(firstWait);
      await new Promise<void>((wake) => this.#queue.push(wake));
    }
  }

  /** The turn of a try that waits for nothing: undefined where it would have to. */
  take(keys: BackoffKeys<Scope>): BackoffTurn | undefined {
    return this.refusal(keys) ? undefined : this.#enter(keys);
  }

  /** Undefined where the outcome of others decides. */
  #enter(keys: BackoffKeys<Scope>): BackoffTurn | undefined {
    const { elapsed } = this.#options;
    const at = elapsed();
    const entered = keys.map(([scope, key]) => {
      const counts = this.#of(scope);
      return { counts, key, place: counts.placeOf(key, at) };
    });
    if (entered.some(({ counts, place }) => counts.isUndecided(place, at))) return undefined;
    for (const { counts, place } of entered) counts.enter(place);
    const settle = (outcome: (counts: Counts, key: string) => void) => (): void => {
      for (const { counts, key, place } of entered) {
        counts.leave(place);
        outcome(counts, key);
      }
      this.#wake();
    };
    return once({
      failed: settle((counts, key) => counts.fail(key, elapsed())),
      succeeded: settle((counts, key) => counts.forgive(key)),
      abandoned: settle(() => {}),
    });
  }

  /** Ends what is counted under these keys, as a success does. */
  forgive(keys: BackoffKeys<Scope>): void {
    for (const [scope, key] of keys) this.#of(scope).forgive(key);
  }

  /** Counts and lots that are remembered. */
  get size(): number {
    return [...this.#counts.values()].reduce((sum, { size }) => sum + size, 0);
  }

  #of(scope: Scope): Counts {
    const { thresholds, held = 20_000, lots = 1_024, sharers = () => 1 } = this.#options;
    const made = (): Counts => new Counts({ threshold: thresholds[scope], sharers, held, lots, salt: this.#salt });
    const counts = this.#counts.get(scope) ?? made();
    this.#counts.set(scope, counts);
    return counts;
  }

  #wake(): void {
    const woken = this.#queue;
    this.#queue = [];
    for (const wake of woken) wake();
  }

  #mustWait(milliseconds: number): KmsError {
    const seconds = Math.max(1, Math.ceil(milliseconds / 1_000));
    const message = `too many failed ${this.#options.what}; try again in ${seconds} s`;
    return new KmsError('rate-limited', message, { retryAfter: seconds });
  }
}

interface Failures {
  count: number;
  /** Milliseconds; in the past when tries are let in. */
  waitUntil: number;
}

interface Held extends Failures {
  /** The list that its key is in. */
  list: Set<string>;
}

interface Lot extends Failures {
  /** When it is forgotten. No success shortens it, since whoever shares it could bring one. */
  forgetAt: number;
}

interface CountsOptions {
  readonly threshold: number;
  readonly sharers: () => number;
  /** Keys that have a count of their own, and lots that the others share. */
  readonly held: number;
  readonly lots: number;
  readonly salt: string;
}

/** The failures of one scope. */
class Counts {
  readonly #threshold: number;
  readonly #sharers: () => number;
  readonly #most: number;
  readonly #lotCount: number;
  readonly #salt: string;
  readonly #held = new Map<string, Held>();
  /** Keys without a wait that runs, the longest untouched first. */
  readonly #quiet = new Set<string>();
  /** The others by how long their wait is: those of one list end about in the order in which they came. */
  readonly #waiting = Array.from({ length: lastStep + 1 }, () => new Set<string>());
  readonly #lots = new Map<string, Lot>();
  /** Tries by place. */
  readonly #underWay = new Map<string, number>();

  constructor({ threshold, sharers, held, lots, salt }: CountsOptions) {
    this.#threshold = threshold;
    this.#sharers = sharers;
    this.#most = held;
    this.#lotCount = lots;
    this.#salt = salt;
  }

  get size(): number {
    return this.#held.size + this.#lots.size;
  }

  /** Milliseconds. */
  wait(key: string, now: number): number {
    const failures = this.#held.get(key) ?? (this.#lots.size > 0 ? this.#lot(this.#lotOf(key), now) : undefined);
    // Fewer may share it than when it began.
    return failures ? Math.min(longestWait * this.#sharers(), Math.max(0, failures.waitUntil - now)) : 0;
  }

  /** Under which name the key is counted: its own, or that of its lot. */
  placeOf(key: string, now: number): string {
    if (this.#held.has(key)) return key;
    const hasRoom = this.#hasRoom(now);
    if (hasRoom && this.#lots.size === 0) return key;
    const lot = this.#lotOf(key);
    return hasRoom && !this.#lot(lot, now) ? key : lot;
  }

  isUndecided(place: string, now: number): boolean {
    const underWay = this.#underWay.get(place) ?? 0;
    const failures = (this.#held.get(place) ?? this.#lot(place, now))?.count ?? 0;
    return underWay > 0 && failures + (underWay + 1) * this.#sharers() > this.#threshold;
  }

  enter(place: string): void {
    this.#underWay.set(place, (this.#underWay.get(place) ?? 0) + 1);
  }

  leave(place: string): void {
    const left = (this.#underWay.get(place) ?? 0) - 1;
    if (left > 0) this.#underWay.set(place, left);
    else this.#underWay.delete(place);
  }

  fail(key: string, now: number): void {
    const place = this.placeOf(key, now);
    if (place !== key) {
      const lot = this.#lot(place, now) ?? { count: 0, waitUntil: 0, forgetAt: 0 };
      this.#count(lot, now);
      lot.forgetAt = Math.max(now, lot.waitUntil) + longestWait * this.#sharers();
      this.#lots.set(place, lot);
      return;
    }
    const held = this.#held.get(key) ?? { count: 0, waitUntil: 0, list: this.#quiet };
    if (!this.#held.has(key)) this.#makeRoom();
    const step = this.#count(held, now);
    held.list.delete(key);
    held.list = (step === undefined ? undefined : this.#waiting[step]) ?? this.#quiet;
    held.list.add(key);
    this.#held.set(key, held);
  }

  forgive(key: string): void {
    this.#held.get(key)?.list.delete(key);
    this.#held.delete(key);
  }

  /** Answers how long the wait is that begins, as a step. */
  #count(failures: Failures, now: number): number | undefined {
    const sharers = this.#sharers();
    failures.count += sharers;
    // Before the next try here one is let in on each of the others too: as long as one process alone would let them
    // wait.
    let wait = 0;
    for (let each = failures.count; each < failures.count + sharers; each++) {
      if (each >= this.#threshold) wait += Math.min(longestWait, firstWait * 2 ** (each - this.#threshold));
    }
    if (wait === 0) return undefined;
    failures.waitUntil = now + wait;
    return Math.min(lastStep, Math.ceil(Math.log2(wait / firstWait)));
  }

  /** Whether there is room for one more key, or can be made. */
  #hasRoom(now: number): boolean {
    if (this.#held.size < this.#most) return true;
    for (const list of this.#waiting) {
      for (const key of list) {
        const held = this.#held.get(key);
        if (!held || held.waitUntil > now) break;
        list.delete(key);
        held.list = this.#quiet;
        this.#quiet.add(key);
      }
    }
    return this.#spare() !== undefined;
  }

  /** What can be forgotten: no wait of it runs, and no try under it is under way. */
  #spare(): string | undefined {
    for (const key of this.#quiet) if (!this.#underWay.has(key)) return key;
    return undefined;
  }

  #makeRoom(): void {
    if (this.#held.size < this.#most) return;
    const spare = this.#spare();
    if (spare !== undefined) this.forgive(spare);
  }

  #lot(place: string, now: number): Lot | undefined {
    const lot = this.#lots.get(place);
    if (!lot || lot.forgetAt > now) return lot;
    this.#lots.delete(place);
    return undefined;
  }

  #lotOf(key: string): string {
    const [a = 0, b = 0, c = 0] = sha256(utf8(`${this.#salt} ${key}`));
    return `lot ${((a << 16) | (b << 8) | c) % this.#lotCount}`;
  }
}

/** A try has one outcome: the first that it is told. */
function once(outcomes: BackoffTurn): BackoffTurn {
  let told = false;
  const tell = (outcome: () => void) => () => {
    if (told) return;
    told = true;
    outcome();
  };
  return {
    failed: tell(outcomes.failed),
    succeeded: tell(outcomes.succeeded),
    abandoned: tell(outcomes.abandoned),
  };
}
