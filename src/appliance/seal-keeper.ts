// The seal of a data directory: read, and opened with the custodian that can be had; in an open appliance changed one
// step at a time, each durable before it counts, with keys that follow its changes. And the mark of an appliance that
// was sealed on purpose.
import { readFile } from 'node:fs/promises';
import { utf8 } from '../crypto/bytes.ts';
import { KmsError, systemError } from '../errors.ts';
import type { KeyEpoch, Seal } from '../seal/seal.ts';
import { type LiveKeys, liveKeys, type TenantKeys } from '../seal/tenant-keys.ts';
import type { Files } from '../store/files.ts';
import { SerialQueue } from '../store/serial-queue.ts';
import type { KeySources } from './custody/key-sources.ts';
import { type OpenedSeal, type SealBytes, unlockSeal } from './custody/unlock.ts';
import { inDir, sealFile, sealMark } from './data-dir.ts';

export class SealKeeper {
  readonly #files: Files;
  readonly #live = new Map<string, LiveKeys>();
  #seal: Seal;
  readonly #queue = new SerialQueue();

  constructor(seal: Seal, files: Files) {
    this.#seal = seal;
    this.#files = files;
  }

  get current(): Seal {
    return this.#seal;
  }

  /**
   * The keys of the store in `dir`: one object for all who use them, which has the store's new keys as soon as it gets
   * some.
   */
  keysFor(dir: string): TenantKeys {
    const known = this.#live.get(dir);
    if (known) return known;
    const keys = liveKeys(this.#seal.keysFor(dir));
    this.#live.set(dir, keys);
    return keys;
  }

  /**
   * Puts what `next` makes of the seal into its place. When that fails, the file has the seal of before or the new one,
   * whole.
   */
  change(next: (seal: Seal) => Seal): Promise<void> {
    return this.#queue.run(async () => {
      const before = this.#seal;
      const seal = next(before);
      await this.#files.replace(sealFile, seal.toBytes());
      this.#seal = seal;
      for (const [dir, keys] of this.#live) {
        if (!seal.stores.includes(dir)) this.#live.delete(dir);
        else if (!sameEpochs(before.epochsOf(dir), seal.epochsOf(dir))) keys.replace(seal.keysFor(dir));
      }
    });
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

export async function readSealFile(data: string): Promise<SealBytes> {
  const name = inDir(data, sealFile);
  const bytes = await readFile(name).catch((error: unknown) => {
    throw systemError(error, name);
  });
  return { bytes, name };
}

/** `given` is a key file, or all that may give the key. */
export async function openSealFile(data: string, given: KeySources | string | undefined): Promise<OpenedSeal> {
  const sources = typeof given === 'object' ? given : { keyFile: given };
  return unlockSeal(await readSealFile(data), data, sources);
}

/**
 * The mark of a seal on purpose is a file whose name is all that counts, so that no torn or damaged content can be
 * mistaken for anything else. While it is there the appliance opens for nobody but who unseals it on purpose. It guards
 * against a custodian that opens by itself, not against who can write to the directory.
 */
const content = utf8(`The appliance was sealed on purpose, and stays sealed until \`kms unseal\`.
`);

export function isSealedOnPurpose(files: Pick<Files, 'exists'>): Promise<boolean> {
  return files.exists(sealMark);
}

/** Resolves when it would outlast a crash. */
export function sealOnPurpose(files: Pick<Files, 'replace'>): Promise<void> {
  return files.replace(sealMark, content);
}

/** Takes the mark away, if it is there. When that fails it may be there or not. */
export async function endSealOnPurpose(files: Pick<Files, 'exists' | 'remove' | 'syncDir'>): Promise<void> {
  if (await files.exists(sealMark)) await files.remove(sealMark);
  // Also where an earlier try got as far as that.
  await files.syncDir('.');
}

export const sealedOnPurpose = new KmsError('sealed', 'the appliance is sealed: somebody sealed it on purpose', {
  hint: 'unseal it with `kms unseal`',
});
