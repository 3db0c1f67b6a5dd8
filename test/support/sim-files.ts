// The file port on a simulated disk. Every step can be the one at which the machine crashes or the disk fails, and
// takes a seeded number of turns of the event loop.
import { type AppendFile, FileLost, type Files } from '../../src/store/files.ts';
import type { Prng } from './prng.ts';
import { Inode, SimDisk, sectorLength } from './sim-disk.ts';

export type Step = 'append' | 'sync' | 'truncate' | 'create' | 'rename' | 'remove' | 'syncDir' | 'read';

export interface SimFilesOptions {
  readonly disk?: SimDisk;
  readonly prng: Prng;
  /** The number of the step at which the machine crashes. */
  readonly crashAt?: number;
  /** The error code with which a step fails, if any. */
  readonly failure?: (step: Step, number: number) => string | undefined;
  /** Total bytes of the disk. */
  readonly capacity?: number;
}

export class SimFiles implements Files {
  readonly disk: SimDisk;
  readonly #prng: Prng;
  readonly #options: SimFilesOptions;
  capacity: number;
  failure: ((step: Step, number: number) => string | undefined) | undefined;
  crashed = false;
  steps = 0;
  readonly counts: Partial<Record<Step, number>> = {};

  constructor(options: SimFilesOptions) {
    this.#options = options;
    this.#prng = options.prng;
    this.disk = options.disk ?? new SimDisk();
    this.capacity = options.capacity ?? Number.POSITIVE_INFINITY;
    this.failure = options.failure;
  }

  /** The same disk after a power failure now. */
  restart(options: Omit<SimFilesOptions, 'disk'>): SimFiles {
    this.crashed = true;
    return new SimFiles({ ...options, disk: this.disk.afterCrash(this.#prng) });
  }

  /** Runs the step, or fails before it, or crashes partway. `partly` makes the state that a failure midway leaves. */
  async #step<R>(step: Step, run: () => R, partly?: () => void): Promise<R> {
    for (let turns = this.#prng.int(step === 'sync' ? 4 : 2); turns > 0; turns--) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (this.crashed) throw new Error('the machine crashed');
    this.steps++;
    this.counts[step] = (this.counts[step] ?? 0) + 1;
    if (this.steps === this.#options.crashAt) {
      if (this.#prng.chance(0.5)) run();
      else partly?.();
      this.crashed = true;
      throw new Error('the machine crashed');
    }
    const code = this.failure?.(step, this.steps);
    if (code) {
      partly?.();
      throw Object.assign(new Error(`${code}: simulated`), { code });
    }
    return run();
  }

  #inode(name: string): Inode {
    const inode = this.disk.names.get(name);
    if (!inode) throw Object.assign(new Error(`ENOENT: ${name}`), { code: 'ENOENT' });
    return inode;
  }

  list(dir: string): Promise<string[]> {
    return this.#step('read', () =>
      [...this.disk.names.keys()]
        .filter((name) => dirOf(name) === dir)
        .map((name) => name.slice(name.lastIndexOf('/') + 1))
        .sort(),
    );
  }

  exists(name: string): Promise<boolean> {
    return this.#step('read', () => this.disk.names.has(name));
  }

  size(name: string): Promise<number> {
    return this.#step('read', () => this.#inode(name).data.length);
  }

  read(name: string): Promise<Uint8Array> {
    return this.#step('read', () => this.#inode(name).data.slice());
  }

  readAt(name: string, offset: number, length: number): Promise<Uint8Array> {
    return this.#step('read', () => this.#inode(name).data.slice(offset, offset + length));
  }

  async openAppend(name: string, create: boolean): Promise<AppendFile> {
    if (create) {
      await this.#step('create', () => {
        if (this.disk.names.has(name)) throw Object.assign(new Error(`EEXIST: ${name}`), { code: 'EEXIST' });
        const inode = new Inode();
        this.disk.change(dirOf(name), (names) => names.set(name, inode));
      });
    }
    const inode = await this.#step('read', () => this.#inode(name));
    let end = inode.data.length;
    const needInPlace = (): void => {
      if (this.disk.names.get(name) !== inode) throw new FileLost(name, 'the file was removed or replaced');
      if (inode.data.length < end) throw new FileLost(name, 'the file was cut');
    };
    const truncate = (size: number): Promise<void> =>
      this.#step('truncate', () => {
        if (inode.data.length < size) throw new FileLost(name, 'the file was cut');
        inode.truncate(size);
        end = size;
      });
    return {
      get size() {
        return end;
      },
      append: async (bytes, room = 0, behind = new Uint8Array()) => {
        needInPlace();
        const before = inode.data.subarray(end - behind.length, end);
        const after = inode.data.subarray(end, end + 16);
        if (Buffer.compare(before, behind) !== 0 || after.some((byte) => byte !== 0))
          throw new FileLost(name, 'somebody else wrote to the file', { isUntouched: true });
        await this.#write(inode, end, bytes, room);
        end += bytes.length;
      },
      sync: async () => {
        await this.#sync(inode);
        needInPlace();
      },
      trim: async () => {
        if (inode.data.length === end) return;
        await truncate(end);
        await this.#sync(inode);
      },
      truncate,
      close: async () => {},
    };
  }

  async #append(inode: Inode, bytes: Uint8Array): Promise<void> {
    await this.#write(inode, inode.data.length, bytes, 0);
  }

  /**
   * Writes bytes at an offset, and zeros after them as preallocation if the file grows and the disk has space for all
   * of them.
   */
  async #write(inode: Inode, at: number, bytes: Uint8Array, room: number): Promise<void> {
    const longer = at + bytes.length - inode.data.length;
    const free = this.capacity - this.disk.used;
    const zeros = longer > 0 && longer + room <= free ? room : 0;
    const whole = new Uint8Array(bytes.length + zeros);
    whole.set(bytes);
    const part = () => {
      const end = at + this.#prng.int(whole.length + 1);
      // Within the existing file, a sector is written completely or not at all.
      const isInside = end < inode.data.length;
      const cut = isInside ? Math.max(at, Math.floor(end / sectorLength) * sectorLength) : end;
      inode.write(at, whole.subarray(0, cut - at));
    };
    await this.#step(
      'append',
      () => {
        const fits = Math.min(whole.length, whole.length - Math.max(0, longer) - zeros + Math.max(0, free));
        inode.write(at, whole.subarray(0, fits));
        if (fits < bytes.length) throw Object.assign(new Error('ENOSPC: simulated'), { code: 'ENOSPC' });
      },
      part,
    );
  }

  #sync(inode: Inode): Promise<void> {
    return this.#step(
      'sync',
      () => inode.sync(),
      () => inode.failedSync(this.#prng),
    );
  }

  async replace(name: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    const temporary = `${name}.tmp`;
    const inode = new Inode();
    try {
      await this.#step('create', () => this.disk.change(dirOf(name), (names) => names.set(temporary, inode)));
      if (bytes instanceof Uint8Array) await this.#append(inode, bytes);
      else for await (const piece of bytes) await this.#append(inode, piece);
      await this.#sync(inode);
      await this.#step('rename', () =>
        this.disk.change(dirOf(name), (names) => {
          names.set(name, inode);
          names.delete(temporary);
        }),
      );
    } catch (error) {
      if (!this.crashed) this.disk.change(dirOf(name), (names) => names.delete(temporary));
      throw error;
    }
    await this.syncDir(dirOf(name));
  }

  remove(name: string): Promise<void> {
    return this.#step('remove', () => {
      this.#inode(name);
      this.disk.change(dirOf(name), (names) => names.delete(name));
    });
  }

  async makeDir(_dir: string): Promise<void> {}

  /** Removes its names one by one; the removal is durable at the end. */
  async removeDir(dir: string): Promise<void> {
    const inside = [...this.disk.names.keys()].filter((name) => name.startsWith(`${dir}/`));
    for (const name of inside) await this.remove(name);
    for (const each of new Set([dir, ...inside.map(dirOf)])) await this.syncDir(each);
  }

  syncDir(dir: string): Promise<void> {
    return this.#step('syncDir', () => this.disk.syncNames(dir));
  }
}

function dirOf(name: string): string {
  const end = name.lastIndexOf('/');
  return end < 0 ? '.' : name.slice(0, end);
}
