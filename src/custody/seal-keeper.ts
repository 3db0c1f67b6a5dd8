// The seal of an appliance: read, and opened with the custodian that can be had; in an open appliance changed one step
// at a time, each durable before it counts, with keys that follow its changes. And the mark of an appliance that was
// sealed on purpose. Both are in a data directory, or where several nodes share them.
import { readFile } from 'node:fs/promises';
import { utf8 } from '../crypto/bytes.ts';
import { KmsError, systemError } from '../errors.ts';
import { inDir, sealFile, sealMark } from '../platform/data-dir.ts';
import type { KeyEpoch, Seal } from '../seal/seal.ts';
import { type LiveKeys, liveKeys, type TenantKeys } from '../seal/tenant-keys.ts';
import type { Files } from '../store/files.ts';
import { SerialQueue } from '../store/serial-queue.ts';
import type { KeySources } from './key-sources.ts';
import { type OpenedSeal, type SealBytes, unlockSeal } from './unlock.ts';

export interface KeptSeal extends SealBytes {
  /** Counts its changes, where others make some too. */
  readonly version: number;
}

/** Where the seal is kept, and the mark of a seal on purpose. */
export interface SealPlace {
  read(): Promise<KeptSeal>;
  /** Puts `bytes` into the place of the seal of version `before`; answers false where another one is there now. */
  replace(before: number, bytes: Uint8Array): Promise<boolean>;
  isOnPurpose(): Promise<boolean>;
  /** Resolves when it would outlast a crash. */
  sealOnPurpose(): Promise<void>;
  /** When that fails the mark may be there or not. */
  endOnPurpose(): Promise<void>;
}

/** That of a data directory, which nobody else changes. */
export function sealInFiles(files: Files, root: string): SealPlace {
  return {
    read: async () => ({ ...(await readSealFile(root)), version: 0 }),
    async replace(_before, bytes) {
      await files.replace(sealFile, bytes);
      return true;
    },
    isOnPurpose: () => isSealedOnPurpose(files),
    sealOnPurpose: () => files.replace(sealMark, content),
    async endOnPurpose() {
      if (await files.exists(sealMark)) await files.remove(sealMark);
      // Also where an earlier try got as far as that.
      await files.syncDir('.');
    },
  };
}

export class SealKeeper {
  readonly #place: Pick<SealPlace, 'read' | 'replace'>;
  readonly #live = new Map<string, LiveKeys>();
  #seal: Seal;
  /** Of `#seal`; 0 where that is not known. */
  #version = 0;
  /** What was replaced by a seal that was read, whose keys are its own. */
  readonly #before: Seal[] = [];
  readonly #queue = new SerialQueue();

  constructor(seal: Seal, place: Pick<SealPlace, 'read' | 'replace'>) {
    this.#seal = seal;
    this.#place = place;
  }

  get version(): number {
    return this.#version;
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
   * Puts what `next` makes of the seal into its place. When that fails, the seal of before is in force or the new one,
   * whole. Where another node was faster, `next` is asked again, of what that made of it. Throws `RotatedElsewhere`
   * where that was a new master key.
   */
  change(next: (seal: Seal) => Seal): Promise<void> {
    return this.#queue.run(async () => {
      for (let attempt = 1; attempt <= mostAttempts; attempt++) {
        const seal = next(this.#seal);
        if (await this.#place.replace(this.#version, seal.toBytes())) {
          if (this.#version > 0) this.#version++;
          return this.#use(seal);
        }
        await this.#read();
      }
      throw new KmsError('unavailable', 'other nodes keep changing the seal: try again', { retryAfter: 1 });
    });
  }

  /** Learns what others made of the seal. Throws `RotatedElsewhere`. */
  refresh(): Promise<void> {
    return this.#queue.run(() => this.#read());
  }

  /** Goes on with this one, which somebody opened; the next refresh tells how new it is. */
  adopt(seal: Seal): Promise<void> {
    return this.#queue.run(async () => {
      this.#version = 0;
      this.#before.push(this.#seal);
      this.#use(seal);
    });
  }

  async #read(): Promise<void> {
    const { bytes, name, version } = await this.#place.read();
    if (version !== 0 && version === this.#version) return;
    const seal = openedBy(this.#seal, bytes, name);
    this.#before.push(this.#seal);
    this.#version = version;
    this.#use(seal);
  }

  #use(seal: Seal): void {
    const before = this.#seal;
    this.#seal = seal;
    for (const [dir, keys] of this.#live) {
      if (!seal.stores.includes(dir)) this.#live.delete(dir);
      else if (!before.stores.includes(dir) || !sameEpochs(before.epochsOf(dir), seal.epochsOf(dir))) {
        keys.replace(seal.keysFor(dir));
      }
    }
  }

  wipe(): void {
    for (const keys of this.#live.values()) keys.wipe();
    for (const seal of [...this.#before, this.#seal]) seal.wipe();
  }
}

/** The seal is under a master key that is not known here. Whoever keeps it looks for that one. */
export class RotatedElsewhere extends KmsError {
  constructor(cause: KmsError) {
    super('unavailable', 'the master key was rotated on another node meanwhile: try again', {
      hint: 'this node looks for the new one by itself',
      retryAfter: 1,
      cause,
    });
  }
}

function openedBy(seal: Seal, bytes: Uint8Array, name: string): Seal {
  try {
    return seal.openOther(bytes, name);
  } catch (cause) {
    throw cause instanceof KmsError && cause.code === 'refused' ? new RotatedElsewhere(cause) : cause;
  }
}

/** Each means that another node changed it in the moment between. */
const mostAttempts = 20;

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

export const sealedOnPurpose = new KmsError('sealed', 'the appliance is sealed: somebody sealed it on purpose', {
  hint: 'unseal it with `kms unseal`',
});
