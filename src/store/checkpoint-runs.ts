// When a store has checkpoints, whatever it is kept in: once its log has outgrown the snapshot, one at a time, and
// where one failed a while later again.
import { reasonOf } from '../errors.ts';
import { storeClosed } from './availability.ts';
import type { StoreLimits } from './embedded-options.ts';
import type { StoreEvent } from './port.ts';

interface RunsWorld {
  readonly limits: Pick<StoreLimits, 'checkpointBytes' | 'checkpointRetry'>;
  /** Milliseconds by a clock that nobody sets. */
  readonly elapsed: () => number;
  readonly onEvent: (event: StoreEvent) => void;
}

/**
 * Makes one, and drops the segments of activity up to record `dropTo` where that is given; one that `yields` gives way
 * to what is asked of the store. Answers undefined where there was nothing to be made, or others were at it.
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
  /** Up to which record activity is to be dropped by the next one. */
  #dropTo: number | undefined;
  #stopped = false;

  constructor(world: RunsWorld, make: MakeCheckpoint<R, How>) {
    this.#world = world;
    this.#make = make;
  }

  /** Waits for the one under way. None begins after it: those that wait are refused. */
  async stop(): Promise<void> {
    this.#stopped = true;
    while (this.#running) await this.#running.catch(() => {});
  }

  /** Starts one when the log has outgrown the snapshot; it yields unless the log has done so twice over. */
  startWhenDue(logBytes: number, snapshotBytes: number): void {
    const { limits, elapsed } = this.#world;
    const due = Math.max(limits.checkpointBytes, snapshotBytes);
    if (this.#stopped || this.#running || logBytes <= due || elapsed() < this.#notBefore) return;
    this.#run(undefined, logBytes <= 2 * due).catch(() => {});
  }

  /** Runs one after the one under way. Throws `unavailable` once they are stopped. */
  run(how?: How): Promise<R | undefined> {
    return this.#run(how, false);
  }

  async #run(how: How | undefined, yields: boolean): Promise<R | undefined> {
    // Here, so that of several that wait one goes on alone.
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

  /** Lets go of the segments of the activity log up to record `seq`, by a checkpoint. */
  async drop(seq: number): Promise<void> {
    this.#dropTo = Math.max(seq, this.#dropTo ?? 0);
    await this.run();
  }
}
