// Backoff slows guessing down: it counts failures in a row under keys (a name, an address, both), and past a key's
// threshold each further try under it must wait. A try is counted from its start: while tries in progress could use up
// the ones left, further tries wait for their outcome, so that no number of parallel tries gets past the count.
//
// Its memory is bounded, and an attacker cannot push a wait out of it: looking and refused tries store nothing, and
// room is made only by forgetting a count that has no running wait. When running waits fill a table, further keys share
// lots by a salted hash that outsiders cannot predict: these keys may wait for each other's failures, and no wait is
// lost.
//
// When several processes count side by side without knowing each other's failures, each counts one failure as one on
// every process: however tries are spread, together they let through no more than one process would, except the one try
// that each always allows.
import { toHex, utf8 } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { KmsError } from '../errors.ts';

export interface BackoffTurn {
  failed(): void;
  succeeded(): void;
  /** No outcome: the try was not checked. */
  abandoned(): void;
}

/** Keys that a try is counted under. */
export type BackoffKeys<Scope extends string> = readonly (readonly [scope: Scope, key: string])[];

export interface BackoffOptions<Scope extends string> {
  /** Failures in a row after which tries must wait. */
  readonly thresholds: Readonly<Record<Scope, number>>;
  /** Plural noun for the error message: what fails. */
  readonly what: string;
  /** Monotonic clock in milliseconds: with a settable clock, turning it back would prolong a wait. */
  elapsed(): number;
  random(length: number): Uint8Array;
  /** Keys per scope that have a count of their own. */
  readonly held?: number;
  /** Lots per scope that the other keys share. */
  readonly lots?: number;
  /** Maximum of tries waiting for the outcome of others. */
  readonly waiting?: number;
  /** Processes that count side by side, this one included. Default: 1. */
  readonly sharers?: (() => number) | undefined;
}

const firstWait = 1_000;
const longestWait = 900_000;
/** Step n stands for waits of up to 2^n seconds; the last step includes the longest wait. */
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

  /** Why a try under these keys is refused now; undefined if it is not. Changes nothing. */
  refusal(keys: BackoffKeys<Scope>): KmsError | undefined {
    const now = this.#options.elapsed();
    const wait = Math.max(0, ...keys.map(([scope, key]) => this.#of(scope).wait(key, now)));
    return wait > 0 ? this.#mustWait(wait) : undefined;
  }

  /** Waits for its turn. Throws `rate-limited` if the try has to wait; that does not lengthen the wait. */
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

  /** A turn without waiting; undefined if the try would have to wait. */
  take(keys: BackoffKeys<Scope>): BackoffTurn | undefined {
    return this.refusal(keys) ? undefined : this.#enter(keys);
  }

  /** Undefined if the outcome of other tries decides. */
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

  /** Clears the counts of these keys, as a success does. */
  forgive(keys: BackoffKeys<Scope>): void {
    for (const [scope, key] of keys) this.#of(scope).forgive(key);
  }

  /** Number of counts and lots held. */
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
  /** Milliseconds; in the past if tries are allowed. */
  waitUntil: number;
}

interface Held extends Failures {
  /** The list that holds its key. */
  list: Set<string>;
}

interface Lot extends Failures {
  /** Expiry time. A success does not shorten it, since any key that shares the lot could bring one. */
  forgetAt: number;
}

interface CountsOptions {
  readonly threshold: number;
  readonly sharers: () => number;
  /** Keys with a count of their own, and lots that the others share. */
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
  /** Keys without a running wait, least recently touched first. */
  readonly #quiet = new Set<string>();
  /** The other keys by length of wait: waits in one list end roughly in insertion order. */
  readonly #waiting = Array.from({ length: lastStep + 1 }, () => new Set<string>());
  readonly #lots = new Map<string, Lot>();
  /** Tries in progress by place. */
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
    // The number of sharers may have dropped since the wait began.
    return failures ? Math.min(longestWait * this.#sharers(), Math.max(0, failures.waitUntil - now)) : 0;
  }

  /** Name that the key is counted under: its own, or that of its lot. */
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

  /** Returns the step of the wait that begins, if one does. */
  #count(failures: Failures, now: number): number | undefined {
    const sharers = this.#sharers();
    failures.count += sharers;
    // Until the next try here, each other process lets one in too: the wait is the sum of those that a single process
    // would impose for them.
    let wait = 0;
    for (let each = failures.count; each < failures.count + sharers; each++) {
      if (each >= this.#threshold) wait += Math.min(longestWait, firstWait * 2 ** (each - this.#threshold));
    }
    if (wait === 0) return undefined;
    failures.waitUntil = now + wait;
    return Math.min(lastStep, Math.ceil(Math.log2(wait / firstWait)));
  }

  /** Whether there is room for one more key, or room can be made. */
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

  /** A key that can be forgotten: no running wait, no try in progress. */
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

/** A try has one outcome: the first one reported. */
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
