// The jobs of a store, one after the other in the order in which they came.
import { KmsError } from '../errors.ts';

export interface Job<W> {
  /** Never rejects. */
  run(world: W): Promise<void>;
  refuse(error: unknown): void;
}

export interface TurnEvents<W> {
  begins(world: W): void;
  ended(world: W): void;
}

export class Turns<W> {
  readonly #queue: Job<W>[] = [];
  readonly #world: () => W | Promise<W>;
  readonly #events: TurnEvents<W>;
  #busy = false;
  #working: Promise<void> | undefined;
  #closed = false;

  /** `world` answers what a job runs on, and throws where there is none; the job is refused then. */
  constructor(world: () => W | Promise<W>, events: TurnEvents<W>) {
    this.#world = world;
    this.#events = events;
  }

  add(job: Job<W>): void {
    if (this.#closed) {
      job.refuse(new KmsError('unavailable', 'the store does not serve: the store is closed'));
      return;
    }
    this.#queue.push(job);
    if (this.#busy) return;
    this.#busy = true;
    this.#working = this.#work();
  }

  /** Refuses new jobs; resolves when those that came before are done. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#working;
  }

  async #work(): Promise<void> {
    for (let job = this.#queue.shift(); job; job = this.#queue.shift()) {
      let world: W;
      try {
        const found = this.#world();
        world = found instanceof Promise ? await found : found;
      } catch (error) {
        job.refuse(error);
        continue;
      }
      this.#events.begins(world);
      await job.run(world);
      this.#events.ended(world);
    }
    this.#busy = false;
  }
}
