// A serial queue: jobs run one after the other, in the order in which they came; one that finds none before it runs at
// once.
export class SerialQueue {
  /** Resolves when all that came before is done; undefined when it is. */
  #last: Promise<void> | undefined;

  /** Answers what `job` does. Its failure is the caller's alone: the next one runs all the same. */
  run<R>(job: () => Promise<R>): Promise<R> {
    const mine = this.#last ? this.#last.then(job) : job();
    const ended: Promise<void> = mine.then(
      () => this.#forget(ended),
      () => this.#forget(ended),
    );
    this.#last = ended;
    return mine;
  }

  /** Resolves when all that came before is done. */
  async idle(): Promise<void> {
    await this.#last;
  }

  #forget(job: Promise<void>): void {
    if (this.#last === job) this.#last = undefined;
  }
}
