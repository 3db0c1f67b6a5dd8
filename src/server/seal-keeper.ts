// The seal of an open appliance: the one in use, changed one step at a time, each step durable before it counts. The keys that it
// gives out follow its changes.
import { type LiveKeys, liveKeys } from '../seal/live-keys.ts';
import type { KeyEpoch, Seal } from '../seal/seal.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type { Files } from '../store/files.ts';
import { sealFile } from './data-dir.ts';

export class SealKeeper {
  readonly #files: Files;
  readonly #live = new Map<string, LiveKeys>();
  #seal: Seal;
  #last: Promise<unknown> = Promise.resolve();

  constructor(seal: Seal, files: Files) {
    this.#seal = seal;
    this.#files = files;
  }

  get current(): Seal {
    return this.#seal;
  }

  /** The keys of the store in `dir`: one object for all who use them, which has the store's new keys as soon as it gets some. */
  keysFor(dir: string): TenantKeys {
    const known = this.#live.get(dir);
    if (known) return known;
    const keys = liveKeys(this.#seal.keysFor(dir));
    this.#live.set(dir, keys);
    return keys;
  }

  /** Puts what `next` makes of the seal into its place. When that fails, the file has the seal of before or the new one, whole. */
  change(next: (seal: Seal) => Seal): Promise<void> {
    const step = this.#last.then(async () => {
      const before = this.#seal;
      const seal = next(before);
      await this.#files.replace(sealFile, seal.toBytes());
      this.#seal = seal;
      for (const [dir, keys] of this.#live) {
        if (!seal.stores.includes(dir)) this.#live.delete(dir);
        else if (!sameEpochs(before.epochsOf(dir), seal.epochsOf(dir))) keys.replace(seal.keysFor(dir));
      }
    });
    this.#last = step.catch(() => {});
    return step;
  }

  wipe(): void {
    for (const keys of this.#live.values()) keys.wipe();
    this.#seal.wipe();
  }
}

function sameEpochs(before: readonly KeyEpoch[], after: readonly KeyEpoch[]): boolean {
  return (
    before.length === after.length &&
    before.every(({ epoch, retired }, at) => {
      const now = after[at];
      return now?.epoch === epoch && now.retired === retired;
    })
  );
}
