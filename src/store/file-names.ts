// The names of the files in a store's directory. A snapshot's number is that of the last log file that it covers.
import type { Files } from './files.ts';

export interface StoreFiles {
  /** Generations, ascending. */
  readonly snapshots: readonly number[];
  readonly logs: readonly number[];
  /** What a crash left of files that were being replaced. */
  readonly leftovers: readonly string[];
}

const pattern = /^(snapshot|log)-([0-9]{10})\.kms$/;

export function snapshotName(dir: string, generation: number): string {
  return `${dir}/snapshot-${String(generation).padStart(10, '0')}.kms`;
}

export function logName(dir: string, generation: number): string {
  return `${dir}/log-${String(generation).padStart(10, '0')}.kms`;
}

/** The snapshots and logs in `dir`; files of other names are not the store's and are left alone. */
export async function listStoreFiles(files: Files, dir: string): Promise<StoreFiles> {
  const snapshots: number[] = [];
  const logs: number[] = [];
  const leftovers: string[] = [];
  for (const name of await files.list(dir)) {
    const match = pattern.exec(name);
    if (match) (match[1] === 'log' ? logs : snapshots).push(Number(match[2]));
    else if (name.endsWith('.tmp')) leftovers.push(`${dir}/${name}`);
  }
  const ascending = (a: number, b: number) => a - b;
  return { snapshots: snapshots.sort(ascending), logs: logs.sort(ascending), leftovers };
}
