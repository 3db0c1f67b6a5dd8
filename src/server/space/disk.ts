// How much room the file system of a directory has, as `df` counts it: what a user without privileges may still take.
import { statfs } from 'node:fs/promises';

export interface DiskSpace {
  /** Bytes. */
  readonly free: number;
  readonly total: number;
  /** Files that can still be made; undefined where the file system sets no limit. */
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

/** 0 to 100, rounded down. */
export function freePercent({ free, total }: DiskSpace): number {
  return total > 0 ? Math.floor((free / total) * 100) : 0;
}

/** `1.5 MiB`, for people. */
export function inUnits(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
