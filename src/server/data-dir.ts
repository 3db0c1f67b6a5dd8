// What a data directory is, seen from outside: whether there is one, and in which state. Looks only.
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { KmsError } from '../errors.ts';
import { lockFile, pidFile } from '../store/lock.ts';
import { fileTrouble, systemCode } from './trouble.ts';

export const sealFile = 'kms.seal';
/** There while an `init` is under way: without a seal beside it, everything else in the directory is of no use to anybody. */
export const initMark = 'kms.init';
export const socketFile = 'kms.sock';

/** There while a `restore` is under way. */
export const restoreMark = 'kms.restore';

/** Names that an empty directory may have: a file system of its own brings the first, a start that went no further the others. */
const harmless = ['lost+found', lockFile, pidFile, socketFile, `${initMark}.tmp`, `${restoreMark}.tmp`];

export type DataDirState =
  | 'missing'
  | 'empty'
  /** An `init` did not get to its end. */
  | 'unfinished'
  /** A `restore` did not get to its end. */
  | 'unrestored'
  | 'whole'
  /** Something else is in there. */
  | 'foreign';

export async function dataDirState(data: string): Promise<DataDirState> {
  let names: string[];
  try {
    names = await readdir(data);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return 'missing';
    throw fileTrouble(error, data);
  }
  if (names.includes(sealFile)) return 'whole';
  if (names.includes(restoreMark)) return 'unrestored';
  if (names.includes(initMark)) return 'unfinished';
  return names.every((name) => harmless.includes(name)) ? 'empty' : 'foreign';
}

/** Throws unless an appliance is in the directory. */
export async function needAppliance(data: string): Promise<void> {
  const state = await dataDirState(data);
  if (state === 'whole') return;
  if (state === 'foreign') throw foreign(data);
  if (state === 'unrestored') throw unrestored(data);
  const problem = {
    missing: 'there is no data directory here',
    empty: 'the data directory is empty',
    unfinished: 'the data directory was never finished: an `init` was cut off',
  }[state];
  throw new KmsError('unavailable', `${data}: ${problem}`, {
    hint: 'run `kms init` or `kms serve`, or give another one with --data',
  });
}

export function unrestored(data: string): KmsError {
  return new KmsError('refused', `${data}: a restore into it was cut off`, {
    hint: 'run `kms restore` again, which starts it over',
  });
}

export function foreign(data: string): KmsError {
  return new KmsError('refused', `${data}: holds other files and no ${sealFile}: not a data directory of kms`, {
    hint: 'give an empty or a new directory; if this was a data directory, restore it from a backup',
  });
}

export function inDir(data: string, name: string): string {
  return join(resolve(data), name);
}
