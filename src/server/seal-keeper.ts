// The seal of an open appliance: the one in use, changed one step at a time, each step durable before it counts.
import type { Seal } from '../seal/seal.ts';
import type { Files } from '../store/files.ts';
import { sealFile } from './data-dir.ts';

export class SealKeeper {
  readonly #files: Files;
  #seal: Seal;
  #last: Promise<unknown> = Promise.resolve();

  constructor(seal: Seal, files: Files) {
    this.#seal = seal;
    this.#files = files;
  }

  get current(): Seal {
    return this.#seal;
  }

  /** Puts what `next` makes of the seal into its place. When that fails, the file has the seal of before or the new one, whole. */
  change(next: (seal: Seal) => Seal): Promise<void> {
    const step = this.#last.then(async () => {
      const seal = next(this.#seal);
      await this.#files.replace(sealFile, seal.toBytes());
      this.#seal = seal;
    });
    this.#last = step.catch(() => {});
    return step;
  }

  wipe(): void {
    this.#seal.wipe();
  }
}
