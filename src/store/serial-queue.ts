// A serial queue: jobs run one after the other, in the order in which they came; one that finds none before it runs at
// once. However many come together, they don't keep others from the event loop.
import type { Soon } from './sql.ts';
import { queuesTurn } from './turns.ts';

export class SerialQueue {
  readonly #waiting: (() => Soon<void>)[] = [];
  #busy = false;
  #working: Promise<void> | undefined;

  /** `job` must not fail. */
  add(job: () => Soon<void>): void {
    this.#waiting.push(job);
    if (this.#busy) return;
    this.#busy = true;
    this.#working = this.#work();
  }

  /** Answers what `job` does. Its failure is the caller's alone: the next one runs all the same. */
  run<R>(job: () => Promise<R>): Promise<R> {
    return new Promise((resolve, reject) => this.add(() => job().then(resolve, reject)));
  }

  /** Resolves when all that came before is done. */
  async idle(): Promise<void> {
    await this.#working;
  }

  async #work(): Promise<void> {
    for (let job = this.#waiting.shift(); job; job = this.#waiting.shift()) {
      const rest = queuesTurn();
      if (rest) await rest;
      const working = job();
      if (working) await working;
    }
    this.#busy = false;
  }
}
