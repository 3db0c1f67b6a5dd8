// Availability tracks whether a store is in service: the recovered store, until it fails. A failed one is discarded
// whole and recovered again; until that succeeds nothing is in service, and callers get the reason.
import { KmsError, reasonOf } from '../errors.ts';
import { HistoryLost } from './files.ts';
import type { StoreEvent } from './port.ts';

interface AvailabilityWorld<L> {
  /** Milliseconds between tries to recover. */
  readonly retry: number;
  readonly later: (milliseconds: number, run: () => void) => void;
  readonly onEvent: (event: StoreEvent) => void;
  /** The event texts for a failure and for the recovery from it. */
  readonly words: { readonly failed: string; readonly mended: string };
  /** The kind of event to report for a failure of its own kind. Default: `write-failed`, or `recovery-failed`. */
  kindOf?(cause: unknown): StoreEvent['kind'] | undefined;
  /** Releases a failed store once no caller uses it any more. */
  release(dead: L): void;
  /** Recovers a replacement. */
  recover(dead: L): Promise<L>;
}

export class Availability<L extends { dead: boolean }> {
  readonly #world: AvailabilityWorld<L>;
  #live: L | undefined;
  #reason = 'the store is being opened';
  #cause: unknown;
  #recovery: Promise<void> | undefined;
  #isClosing = false;

  constructor(world: AvailabilityWorld<L>) {
    this.#world = world;
  }

  begin(live: L): void {
    this.#live = live;
  }

  /** Undefined while nothing is in service. */
  get live(): L | undefined {
    return this.#live;
  }

  /** Why nothing is in service. */
  get reason(): string {
    return this.#reason;
  }

  /** The store in service, after any recovery under way. Throws `unavailable` if there is none. */
  async serving(): Promise<L> {
    while (this.#recovery) await this.#recovery;
    if (this.#live) return this.#live;
    throw notServing(this.#reason, this.#cause);
  }

  /** The same for callers outside the store, for whom it also throws once the store is closing. */
  inService(): Promise<L> {
    return this.#isClosing ? Promise.reject(storeClosed()) : this.serving();
  }

  /** Refuses calls from outside from now on. */
  beginClosing(): void {
    this.#isClosing = true;
  }

  /** Takes the store out of service for good and returns it. No caller may use it after that. */
  async end(): Promise<L | undefined> {
    await this.#recovery;
    const live = this.#live;
    this.#live = undefined;
    this.#reason = 'the store is closed';
    this.#cause = undefined;
    return live;
  }

  /** Discards the state and recovers it once `ready` resolves. */
  leave(live: L, cause: unknown, ready: Promise<void>): void {
    if (live.dead) return;
    live.dead = true;
    this.#live = undefined;
    this.#reason = `${this.#world.words.failed}: ${reasonOf(cause)}`;
    this.#cause = cause;
    const kind = this.#world.kindOf?.(cause) ?? 'write-failed';
    this.#world.onEvent({ kind, message: this.#reason, cause });
    this.#recover(live, ready);
  }

  #recover(dead: L, ready?: Promise<void>): void {
    this.#recovery = (async () => {
      await ready;
      this.#world.release(dead);
      await this.#tryToRecover(dead);
      this.#recovery = undefined;
    })();
  }

  async #tryToRecover(dead: L): Promise<void> {
    const { retry, later, onEvent, words } = this.#world;
    try {
      this.#live = await this.#world.recover(dead);
      onEvent({ kind: 'recovered', message: words.mended });
    } catch (cause) {
      const reason = `${words.failed}, and the store is not recovered yet: ${reasonOf(cause)}`;
      // Reported once, not at each try.
      const kind = this.#world.kindOf?.(cause) ?? 'recovery-failed';
      if (reason !== this.#reason) onEvent({ kind, message: reason, cause });
      this.#reason = reason;
      this.#cause = cause;
      later(retry, () => {
        if (!this.#isClosing && !this.#recovery) this.#recover(dead);
      });
    }
  }
}

export function storeClosed(): KmsError {
  return notServing('the store is closed');
}

export function notServing(reason: string, cause?: unknown): KmsError {
  return new KmsError('unavailable', `cannot serve requests: ${reason}`, {
    hint: (cause instanceof HistoryLost && cause.hint) || 'it resumes by itself once the cause is gone',
    retryAfter: 1,
    ...(cause === undefined ? {} : { cause }),
  });
}
