// The seal of an appliance: read and opened with an available custodian, and in an open appliance changed one step at a
// time, each durable before it takes effect, with live keys that follow. Also the mark of an appliance sealed on
// purpose. Both are in a data directory, or shared between nodes.
import { utf8 } from '../crypto/bytes.ts';
import { KmsError, systemError } from '../errors.ts';
import { inDir, longestSeal, sealFile, sealMark } from '../platform/data-dir.ts';
import { readFileWithin } from '../platform/node-files.ts';
import type { KeyEpoch, Seal } from '../seal/seal.ts';
import { type LiveKeys, liveKeys, type TenantKeys } from '../seal/tenant-keys.ts';
import type { Files } from '../store/files.ts';
import { SerialQueue } from '../store/serial-queue.ts';
import type { KeySources } from './key-sources.ts';
import { type OpenedSeal, type SealBytes, unlockSeal } from './unlock.ts';

export interface KeptSeal extends SealBytes {
  /** Counts changes if other nodes make some too; 0 otherwise. */
  readonly version: number;
}

/** Storage of the seal, and of the mark of a seal on purpose. */
export interface SealPlace {
  read(): Promise<KeptSeal>;
  /** Replaces the seal of version `before` by `bytes`; returns false if the version has changed. */
  replace(before: number, bytes: Uint8Array): Promise<boolean>;
  isOnPurpose(): Promise<boolean>;
  /** Resolves once this survives a crash. */
  sealOnPurpose(): Promise<void>;
  /** If this fails, the mark may or may not remain. */
  endOnPurpose(): Promise<void>;
}

/** The storage in a data directory, which no other process changes. */
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
      // Also if an earlier try removed the mark but did not sync.
      await files.syncDir('.');
    },
  };
}

export class SealKeeper {
  readonly #place: Pick<SealPlace, 'read' | 'replace'>;
  readonly #live = new Map<string, LiveKeys>();
  #seal: Seal;
  /** Version of `#seal`; 0 if unknown. */
  #version = 0;
  /** Earlier seals, each with its own keys, to be wiped at the end. */
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

  /** The keys of the store in `dir`: one object shared by all its users, updated as soon as the store gets new keys. */
  keysFor(dir: string): TenantKeys {
    const known = this.#live.get(dir);
    if (known) return known;
    const keys = liveKeys(this.#seal.keysFor(dir));
    this.#live.set(dir, keys);
    return keys;
  }

  /**
   * Replaces the seal by what `next` makes of it. If that fails, either the old or the new seal is in force, whole. If
   * another node was faster, `next` is called again with that node's seal. Throws `RotatedElsewhere` if that has a new
   * master key.
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

  /** Reads changes by other nodes. Throws `RotatedElsewhere`. */
  refresh(): Promise<void> {
    return this.#queue.run(() => this.#read());
  }

  /** Continues with this opened seal; the next refresh learns its version. */
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

/** The seal is under an unknown master key, which its keeper has to find. */
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

/** Each failed attempt means that another node made a change in between. */
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
  const bytes = await readFileWithin(name, longestSeal).catch((error: unknown) => {
    throw systemError(error, name);
  });
  return { bytes, name };
}

/** @param given a key file, or sources of the key. */
export async function openSealFile(data: string, given: KeySources | string | undefined): Promise<OpenedSeal> {
  const sources = typeof given === 'object' ? given : { keyFile: given };
  return unlockSeal(await readSealFile(data), data, sources);
}

/**
 * The mark of a seal on purpose is a file of which only the existence counts, so that torn or damaged content cannot be
 * misread. While it exists, only a deliberate unseal opens the appliance. It guards against a custodian that opens
 * automatically, not against write access to the directory.
 */
const content = utf8(`The appliance was sealed on purpose, and stays sealed until \`kms unseal\`.
`);

export function isSealedOnPurpose(files: Pick<Files, 'exists'>): Promise<boolean> {
  return files.exists(sealMark);
}

export const sealedOnPurpose = new KmsError('sealed', 'the appliance is sealed: somebody sealed it on purpose', {
  hint: 'unseal it with `kms unseal`',
});
