// AutoUnsealer unseals a sealed node automatically once no seal on purpose is in force, such as after another node was
// unsealed. It checks every second, backs off after failures, and keeps the last reason.
import { reasonOf } from '../errors.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import { StaysSealed } from './key-sources.ts';

/** Milliseconds between two checks, and the longest pause after failures. */
const lookEvery = 1000;
const longestPause = 60_000;

interface LookOutWorld {
  isSealed(): boolean;
  /** Whether the appliance is sealed on purpose, on any node. */
  isOnPurpose(): Promise<boolean>;
  /** Unseals, if a key needs no person. Throws the reason if it cannot. */
  open(): Promise<void>;
  onEvent(event: ApplianceEvent): void;
  /** Milliseconds of a monotonic clock. */
  now?(): number;
  later?(milliseconds: number, run: () => void): void;
}

export class AutoUnsealer {
  readonly #world: Required<LookOutWorld>;
  #reason: string | undefined;
  #failures = 0;
  #notBefore = Number.NEGATIVE_INFINITY;
  #hasEnded = false;

  constructor(world: LookOutWorld) {
    const clock = {
      now: () => performance.now(),
      later: (milliseconds: number, run: () => void) => void setTimeout(run, milliseconds).unref(),
    };
    this.#world = { ...clock, ...world };
  }

  /** Why it is still sealed, although not on purpose. */
  get reason(): string | undefined {
    return this.#reason;
  }

  start(): void {
    this.#world.later(lookEvery, () => {
      if (this.#hasEnded) return;
      void this.#look().finally(() => this.start());
    });
  }

  end(): void {
    this.#hasEnded = true;
  }

  /** Notes why unsealing failed; returns whether the reason is new. */
  note(cause: unknown): boolean {
    const reason = cause instanceof StaysSealed ? cause.reason : reasonOf(cause);
    const isNew = reason !== this.#reason;
    this.#reason = reason;
    return isNew;
  }

  /** Clears the reason and the backoff: it is open, or sealed on purpose. */
  forget(): void {
    this.#reason = undefined;
    this.#failures = 0;
    this.#notBefore = Number.NEGATIVE_INFINITY;
  }

  async #look(): Promise<void> {
    const { isSealed, isOnPurpose, open, onEvent, now } = this.#world;
    try {
      if (!isSealed() || (await isOnPurpose())) return this.forget();
      if (now() < this.#notBefore) return;
      await open();
    } catch (cause) {
      this.#notBefore = now() + Math.min(longestPause, lookEvery * 2 ** this.#failures++);
      // Reported once, not at each try.
      if (!this.note(cause)) return;
      const message = `the appliance is not open on this node, which tries again by itself: ${this.#reason}`;
      onEvent({ level: 'warn', message, cause });
    }
  }
}
