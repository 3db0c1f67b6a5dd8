// Turns runs the jobs of a store that cannot run at once: all that wait run together, one after the other, in one turn
// of the journal.
import { yieldBeforeRequest } from './event-loop.ts';
import type { StoreLimits } from './journal.ts';

/** A job on the store in service. */
interface Job<L> {
  /** Runs it; resolves when the state is free for the next one. Its result may be durable later. Never fails. */
  run(live: L): Promise<void>;
  /** Rejects the job with the reason. */
  refuse(error: unknown): void;
}

interface TurnsWorld<L> {
  readonly limits: Pick<StoreLimits, 'turnRequests' | 'turnMs'>;
  /** The store in service, after any recovery under way. Throws while there is none. */
  serving(): Promise<L>;
  /** Takes the turn. Resolves to false if the store in service has changed. Throws if there is no turn. */
  begin(live: L): Promise<boolean>;
  /** Ends the turn; `more` is waiting. */
  end(live: L, more: boolean): Promise<void>;
}

export class Turns<L extends { readonly dead: boolean }> {
  readonly #world: TurnsWorld<L>;
  readonly #waiting: Job<L>[] = [];
  #running: Promise<void> | undefined;

  constructor(world: TurnsWorld<L>) {
    this.#world = world;
  }

  /** Whether no job waits or runs. */
  get isIdle(): boolean {
    return this.#running === undefined;
  }

  add(job: Job<L>): void {
    this.#waiting.push(job);
    // Waits one turn of the event loop, so that everything from one read of the sockets goes into one turn of the log.
    this.#running ??= new Promise((resolve) => setImmediate(resolve)).then(() => this.#run());
  }

  /** Resolves when all jobs so far are done. */
  async idle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      await yieldBeforeRequest();
      try {
        const live = await this.#world.serving();
        if (!(await this.#world.begin(live))) continue;
        await this.#runWaiting(live);
        await this.#world.end(live, this.#waiting.length > 0);
      } catch (error) {
        for (const { refuse } of this.#waiting.splice(0)) refuse(error);
      }
    }
    this.#running = undefined;
  }

  async #runWaiting(live: L): Promise<void> {
    const { turnRequests, turnMs } = this.#world.limits;
    const until = performance.now() + turnMs;
    for (let ran = 0; ran < turnRequests && (ran === 0 || performance.now() < until); ran++) {
      // The store may have failed since the turn began, too.
      const job = live.dead ? undefined : this.#waiting.shift();
      if (!job) return;
      await job.run(live);
    }
  }
}
