// Closing functions of what was opened in order.

export type End = () => Promise<void> | void;

/** Closing functions of all open parts, run in reverse order. */
export class Ends {
  readonly #ends: End[] = [];
  #isOver = false;

  push(end: End): void {
    this.#ends.push(end);
  }

  /** Starts something once `held` is over, unless everything has ended by then. */
  starting(held: Promise<void> | undefined): (start: () => void) => void {
    if (!held) return (start) => start();
    return (start) => void held.then(() => this.#isOver || start());
  }

  async all(): Promise<void> {
    this.#isOver = true;
    for (let end = this.#ends.pop(); end; end = this.#ends.pop()) await end();
  }
}
