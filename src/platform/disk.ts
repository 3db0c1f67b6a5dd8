// Disk space as `df` counts it, that is what an unprivileged user may still take; and the reserve, a file that occupies
// space to be given back piece by piece when the disk is full. Its content is random, so that no file system compresses
// it.

import { randomFillSync } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../errors.ts';
import { reserveFile } from './data-dir.ts';
import { openFile } from './node-files.ts';

const { O_RDWR, O_CREAT, O_TRUNC } = constants;

export interface DiskSpace {
  /** In bytes. */
  readonly free: number;
  readonly total: number;
  /** Files that can still be created; undefined if the file system has no limit. */
  readonly freeFiles: number | undefined;
}

export async function diskSpace(path: string): Promise<DiskSpace> {
  const { bsize, blocks, bfree, bavail, files, ffree } = await statfs(path);
  return {
    free: bavail * bsize,
    total: (blocks - bfree + bavail) * bsize,
    freeFiles: files > 0 ? ffree : undefined,
  };
}

/** From 0 to 100, rounded down. */
export function freePercent({ free, total }: DiskSpace): number {
  return total > 0 ? Math.floor((free / total) * 100) : 0;
}

/** For people, such as `1.5 MiB`. */
export function inUnits(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

const piece = 1024 * 1024;

export class Reserve {
  readonly #path: string;
  #size: number;

  private constructor(path: string, size: number) {
    this.#path = path;
    this.#size = size;
  }

  /** Creates no file: without one the reserve has size 0. */
  static async open(data: string): Promise<Reserve> {
    const path = join(data, reserveFile);
    return new Reserve(path, await sizeOf(path));
  }

  get size(): number {
    return this.#size;
  }

  /** Gives back up to this many bytes; returns how many. */
  async release(bytes: number): Promise<number> {
    const size = Math.max(0, this.#size - bytes);
    const released = this.#size - size;
    if (released > 0) await this.#resize(size);
    return released;
  }

  /** Grows to `size` bytes, durably. If that fails, the size stays as it was. */
  async fill(size: number): Promise<void> {
    const before = this.#size;
    if (size <= before) return;
    const handle = await openFile(this.#path, O_RDWR | (before === 0 ? O_CREAT | O_TRUNC : 0));
    try {
      const bytes = randomFillSync(new Uint8Array(Math.min(piece, size - before)));
      for (let at = before; at < size; ) at += await writeAll(handle, bytes.subarray(0, size - at), at);
      await handle.sync();
      this.#size = size;
    } catch (error) {
      await handle.truncate(before).catch(() => {});
      throw error;
    } finally {
      await handle.close();
    }
  }

  async #resize(size: number): Promise<void> {
    const handle = await openFile(this.#path, O_RDWR);
    try {
      await handle.truncate(size);
      this.#size = size;
      // Some file systems free the space only at the sync.
      await handle.sync().catch(() => {});
    } finally {
      await handle.close();
    }
  }
}

async function writeAll(handle: FileHandle, bytes: Uint8Array, at: number): Promise<number> {
  for (let from = 0; from < bytes.length; ) {
    from += (await handle.write(bytes, from, bytes.length - from, at + from)).bytesWritten;
  }
  return bytes.length;
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await lstat(path)).size;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return 0;
    throw error;
  }
}
