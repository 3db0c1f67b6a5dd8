// LookOut is how a node that is sealed opens without anybody's doing once nobody wants it sealed, such as after another
// node was unsealed: it looks every second, and where opening fails it tries again, ever less often. It knows why it is
// not open.
import { reasonOf } from '../errors.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import { StaysSealed } from './key-sources.ts';

/** Between two looks, and between two tries at most, in milliseconds. */
const lookEvery = 1000;
const longestPause = 60_000;

interface LookOutWorld {
  isSealed(): boolean;
  /** Whether somebody sealed the appliance on purpose, on whichever node. */
  isOnPurpose(): Promise<boolean>;
  /** Opens it, if its key comes by itself. Throws why it does not. */
  open(): Promise<void>;
  onEvent(event: ApplianceEvent): void;
  /** Milliseconds of a clock that is never set. */
  now?(): number;
  later?(milliseconds: number, run: () => void): void;
}

export class LookOut {
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

  /** Why it is not open, where nobody wants it sealed. */
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

  /** Notes why it could not be opened; answers whether that is anything new. */
  note(cause: unknown): boolean {
    const reason = cause instanceof StaysSealed ? cause.reason : reasonOf(cause);
    const isNew = reason !== this.#reason;
    this.#reason = reason;
    return isNew;
  }

  /** It is open, or sealed on purpose. */
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
      // Said once, not at each try.
      if (!this.note(cause)) return;
      const message = `the appliance is not open on this node, which tries again by itself: ${this.#reason}`;
      onEvent({ level: 'warn', message, cause });
    }
  }
}
