// Schedules the checkpoints of a store of any kind: when its log has outgrown the snapshot, one at a time, and with a
// pause after a failure.
import { reasonOf } from '../errors.ts';
import { storeClosed } from './availability.ts';
import type { StoreLimits } from './journal.ts';
import type { StoreEvent } from './port.ts';

interface RunsWorld {
  readonly limits: Pick<StoreLimits, 'checkpointBytes' | 'checkpointRetry'>;
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number;
  readonly onEvent: (event: StoreEvent) => void;
}

/**
 * Makes a checkpoint, and drops the activity segments up to record `dropTo` if that is given. With `yields` it gives
 * way to requests. Returns undefined if there was nothing to do or another node is making one.
 */
type MakeCheckpoint<R, How> = (
  dropTo: number | undefined,
  how: How | undefined,
  yields: boolean,
) => Promise<R | undefined>;

export class CheckpointRuns<R, How = never> {
  readonly #world: RunsWorld;
  readonly #make: MakeCheckpoint<R, How>;
  #running: Promise<R | undefined> | undefined;
  #notBefore = Number.NEGATIVE_INFINITY;
  /** Activity up to this record is dropped by the next checkpoint. */
  #dropTo: number | undefined;
  #stopped = false;

  constructor(world: RunsWorld, make: MakeCheckpoint<R, How>) {
    this.#world = world;
    this.#make = make;
  }

  /** Waits for the checkpoint under way. No other begins after it: waiting ones are refused. */
  async stop(): Promise<void> {
    this.#stopped = true;
    while (this.#running) await this.#running.catch(() => {});
  }

  /**
   * Starts a checkpoint if the log has outgrown the snapshot; it yields unless the log is more than twice the limit.
   */
  startWhenDue(logBytes: number, snapshotBytes: number): void {
    const { limits, elapsed } = this.#world;
    const due = Math.max(limits.checkpointBytes, snapshotBytes);
    if (this.#stopped || this.#running || logBytes <= due || elapsed() < this.#notBefore) return;
    this.#run(undefined, logBytes <= 2 * due).catch(() => {});
  }

  /** Runs a checkpoint after the one under way. Throws `unavailable` once stopped. */
  run(how?: How): Promise<R | undefined> {
    return this.#run(how, false);
  }

  async #run(how: How | undefined, yields: boolean): Promise<R | undefined> {
    // A loop, so that of several waiters only one goes on.
    while (this.#running) await this.#running.catch(() => {});
    if (this.#stopped) throw storeClosed();
    const dropTo = this.#dropTo;
    const running = this.#make(dropTo, how, yields);
    this.#running = running;
    try {
      const made = await running;
      this.#notBefore = Number.NEGATIVE_INFINITY;
      if (made !== undefined && this.#dropTo === dropTo) this.#dropTo = undefined;
      return made;
    } catch (cause) {
      const { limits, elapsed, onEvent } = this.#world;
      this.#notBefore = elapsed() + limits.checkpointRetry;
      const message = `a checkpoint failed, nothing is lost, the log grows on: ${reasonOf(cause)}`;
      onEvent({ kind: 'checkpoint-failed', message, cause });
      throw cause;
    } finally {
      this.#running = undefined;
    }
  }

  /** Drops the segments of the activity log up to record `seq` with the next checkpoint. */
  drop(seq: number): void {
    this.#dropTo = Math.max(seq, this.#dropTo ?? 0);
  }
}
