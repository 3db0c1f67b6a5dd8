// A serial queue runs jobs one after the other, in the order in which they came; a job that comes to an empty queue
// runs at once.
export class SerialQueue {
  /** Resolves when all jobs so far are done; undefined if they are. */
  #last: Promise<void> | undefined;

  /** Returns the result of `job`. A failure reaches only its caller; the next job runs all the same. */
  run<R>(job: () => Promise<R>): Promise<R> {
    const mine = this.#last ? this.#last.then(job) : job();
    const ended: Promise<void> = mine.then(
      () => this.#forget(ended),
      () => this.#forget(ended),
    );
    this.#last = ended;
    return mine;
  }

  /** Resolves when all jobs so far are done. */
  async idle(): Promise<void> {
    await this.#last;
  }

  #forget(job: Promise<void>): void {
    if (this.#last === job) this.#last = undefined;
  }
}
