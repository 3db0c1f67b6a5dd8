// A data directory seen from outside: names of its files, its state, how it is made. Opens no store.
import { type Dirent, existsSync } from 'node:fs';
import { chmod, lstat, readdir, rm, rmdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { KmsError, systemCode, systemError } from '../errors.ts';
import { trialFile, tryFileSystem, withoutModes } from './file-system.ts';
import { type DirectoryLock, lockDirectory, lockFile, pidFile } from './lock.ts';
import { makeDirs, notFile } from './node-files.ts';
import { needPrivateDirectory, ownership } from './ownership.ts';

/** For commands too, which must not depend on the store. */
export { makeDirs };

export const sealFile = 'kms.seal';
/** In bytes: about 100 for each key of each store. */
export const longestSeal = 16 * 1024 * 1024;
/** Exists while an `init` is under way: without a seal beside it, everything else in the directory is useless. */
export const initMark = 'kms.init';
export const socketFile = 'kms.sock';
/** The log position of each store, for the rollback guard. */
export const witnessFile = 'kms.witness';
/** In bytes: some 250 for each store. */
export const longestWitness = 64 * 1024 * 1024;

/** Marks the directory of a node, whose stores are in a database, and names node and appliance. */
export const nodeFile = 'kms.node';
/** Limit in bytes of a mark that holds a name, a path or a few numbers. */
export const longestMark = 16 * 1024;

/** Exists while the appliance is sealed on purpose. */
export const sealMark = 'kms.stay-sealed';

/** Exists once a standby took over from this appliance, which serves no more. */
export const fencedMark = 'kms.fenced';

/** Exists while the directory is a standby's, which has no seal yet; holds its source and its progress. */
export const standbyMark = 'kms.standby';

/** Exists if the appliance was moved to a database: this copy must not serve beside it. */
export const movedMark = 'kms.moved';

/** Exists while a `restore` is under way. */
export const restoreMark = 'kms.restore';

/** Exists while an upgrade is under way; holds its progress. */
export const upgradeJournal = 'kms.upgrade';
/** Locked by a running upgrade, and removed at its end. */
export const upgradeLock = 'kms.upgrade.lock';
/** The data as they were before an upgrade that is under way. */
export const upgradeCopy = 'kms.before-upgrade';

/** Reserved space, to be given back when the disk is full. */
export const reserveFile = 'kms.reserve';

/**
 * Names that an empty directory may have: a separate file system brings the first, an early end of a start the others.
 */
const harmless = [
  'lost+found',
  ...[lockFile, upgradeLock, pidFile, socketFile, trialFile, `${trialFile}.tmp`],
  ...[initMark, restoreMark, standbyMark].map((name) => `${name}.tmp`),
];

/** Files that are opened in ways that would block on a named pipe. */
const opened = [
  ...[sealFile, lockFile, pidFile, witnessFile, reserveFile, upgradeJournal, nodeFile],
  ...[sealMark, initMark, restoreMark, movedMark, fencedMark, standbyMark],
];

type DataDirState =
  | 'missing'
  | 'empty'
  /** An `init` was cut off. */
  | 'unfinished'
  /** A `restore` was cut off. */
  | 'unrestored'
  /** A standby that has not taken over yet. */
  | 'standby'
  | 'whole'
  /** Whole, and moved to a database. */
  | 'moved'
  /** A node, whose stores are in a database. */
  | 'node'
  /** Holds other files. */
  | 'foreign';

/** Throws `corrupt` if a file that is opened before a store is not a regular file. */
export async function dataDirState(data: string): Promise<DataDirState> {
  let names: string[];
  try {
    names = await readdir(data);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return 'missing';
    throw systemError(error, data);
  }
  for (const name of names.filter((each) => opened.includes(each))) {
    const found = await lstat(inDir(data, name)).catch(() => undefined);
    if (found && !found.isFile()) throw notFile(inDir(data, name), found);
  }
  for (const name of names.filter((each) => /^(?:kms\..*|system|tenants)$/.test(each))) await needNoLinks(data, name);
  if (names.includes(sealFile)) return names.includes(movedMark) ? 'moved' : 'whole';
  if (names.includes(nodeFile)) return 'node';
  if (names.includes(standbyMark)) return 'standby';
  if (names.includes(restoreMark)) return 'unrestored';
  if (names.includes(initMark)) return 'unfinished';
  return names.every((name) => harmless.includes(name)) ? 'empty' : 'foreign';
}

/**
 * Throws `refused` for a symbolic link at `name` or beneath it: the directory's creator could have other files changed
 * or removed through it. The path of the directory itself may contain links.
 */
async function needNoLinks(data: string, name: string): Promise<void> {
  const path = inDir(data, name);
  const found = await lstat(path).catch(() => undefined);
  if (found?.isSymbolicLink()) throw isLinked(path);
  if (!found?.isDirectory()) return;
  let entries: Dirent[];
  try {
    entries = await readdir(path, { recursive: true, withFileTypes: true });
  } catch (error) {
    // It may vanish in the meantime, as an upgrade's leftovers do.
    if (systemCode(error) === 'ENOENT') return;
    throw systemError(error, path);
  }
  const link = entries.find((entry) => entry.isSymbolicLink());
  if (link) throw isLinked(join(link.parentPath, link.name));
}

export function isLinked(path: string): KmsError {
  return new KmsError('refused', `${path}: is a symbolic link, and a data directory has none`, {
    hint: 'nothing was changed; put what it leads to in its place, or move the whole data directory and name it with --data',
  });
}

/** A directory held exclusively by this process, and perhaps created for that. */
export interface DirectoryHold {
  readonly lock: DirectoryLock;
  /**
   * Releases the directory and removes what was created, unless more is in it by now. `made`: absolute paths of what
   * the holder created besides, removed first and in this order, unless there is an appliance by now.
   */
  giveUp(made?: readonly string[]): Promise<void>;
}

/**
 * Makes the directory, if it is missing, and takes hold of it. Throws `in-use` if another process has it, `refused` if
 * its file system cannot hold an appliance; then nothing of it stays.
 */
export async function makeAndHold(data: string): Promise<DirectoryHold> {
  const root = resolve(data);
  let topmost: string | undefined;
  try {
    topmost = await makeDirs(root);
    const isLockNew = !existsSync(inDir(root, lockFile));
    const lock = await holdNew(root);
    return { lock, giveUp: (made) => giveUp({ root, topmost, lock, isLockNew }, made) };
  } catch (error) {
    if (topmost !== undefined) await removeEmptyDirs(root, topmost).catch(() => {});
    throw systemError(error, data);
  }
}

/** Takes hold of a future data directory, whose mode and file system must be suitable. Throws as `makeAndHold` does. */
export async function holdNew(root: string): Promise<DirectoryLock> {
  // A volume may belong to another user, who set its mode.
  const isOurs = await chmod(root, 0o700).then(
    () => true,
    () => false,
  );
  const { mode } = await ownership(root);
  if (isOurs && (mode & 0o077) !== 0) throw withoutModes(root, mode);
  await needPrivateDirectory(root);
  const isLockNew = !existsSync(inDir(root, lockFile));
  let lock: DirectoryLock | undefined;
  try {
    lock = lockDirectory(root);
    await tryFileSystem(root, { isPrivate: true });
    return lock;
  } catch (error) {
    // Another process may have made the lock in the meantime, but then the error is `in-use`.
    if (isLockNew && error instanceof KmsError && error.code === 'refused') await removeLock(root);
    lock?.release();
    throw error;
  }
}

interface Made {
  readonly root: string;
  readonly topmost: string | undefined;
  readonly lock: DirectoryLock;
  readonly isLockNew: boolean;
}

async function giveUp({ root, topmost, lock, isLockNew }: Made, made: readonly string[] = []): Promise<void> {
  const state = () => dataDirState(root).catch(() => 'missing');
  try {
    // Under the lock: another process's files must not be removed.
    const isNone = /^(?:empty|unrestored)$/.test(await state());
    if (isNone) for (const path of made) await rm(path, { recursive: true, force: true });
    if ((await state()) !== 'empty') return;
    if (isLockNew) await removeLock(root);
    if (topmost !== undefined) await removeEmptyDirs(root, topmost).catch(() => {});
  } finally {
    lock.release();
  }
}

async function removeLock(root: string): Promise<void> {
  for (const name of [lockFile, pidFile]) await rm(inDir(root, name), { force: true });
}

/** Removes `dir` and its parents up to `topmost`. Throws if one is not empty. */
async function removeEmptyDirs(dir: string, topmost: string): Promise<void> {
  await rmdir(dir);
  if (dir !== topmost) await removeEmptyDirs(dirname(dir), topmost);
}

/** Throws unless an appliance is in the directory. */
export async function needAppliance(data: string): Promise<void> {
  const state = await dataDirState(data);
  if (state === 'whole') return;
  if (state === 'foreign') throw foreign(data);
  if (state === 'unrestored') throw unrestored(data);
  if (state === 'node') throw ofNode(data);
  if (state === 'standby') throw isStandby(data);
  if (state === 'moved') throw moved(data);
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
  return new KmsError('refused', `${data}: a restore into it, or a move, was cut off`, {
    hint: 'run `kms restore` or `kms move` again, which starts it over',
  });
}

/** The error for serving an appliance that was moved to a database. */
export function moved(data: string): KmsError {
  return new KmsError('refused', `${data}: the appliance was moved to a database; ${movedMark} says when and where`, {
    hint: 'name the database with --store and another directory with --data; `kms move --undo` lets this one serve again',
  });
}

/** The error for using a node's directory as a whole appliance. */
export function ofNode(data: string): KmsError {
  return new KmsError('refused', `${data}: is the directory of a node, whose appliance is in a database`, {
    hint: 'name the database with --store or KMS_STORE, or another directory with --data',
  });
}

export function isStandby(data: string): KmsError {
  return new KmsError('refused', `${data}: is the directory of a standby, which serves no client yet`, {
    hint: 'let it follow with `kms standby --from DIR --data NEWDIR`, or take over with `kms standby promote`',
  });
}

/** The error for naming a database with a directory that is not a node's. */
export function notOfNode(data: string): KmsError {
  return new KmsError('refused', `${data}: holds an appliance of its own, and --store names one in a database`, {
    hint: 'name another directory for this node with --data, or leave --store out',
  });
}

export function foreign(data: string): KmsError {
  return new KmsError('refused', `${data}: holds other files and no ${sealFile}: not a data directory of kms`, {
    hint: 'if this was a data directory, restore it from a backup; otherwise give an empty or a new directory',
  });
}

export function inDir(data: string, name: string): string {
  return join(resolve(data), name);
}

/** The directory of the appliance's own store; also its name in the seal. */
export const systemDir = 'system';

/** Whether a directory below `tenants` may be a tenant's store. */
export function isTenantName(name: string): boolean {
  return /^[0-9a-f]{16}$/.test(name);
}

/** The directory of a tenant's store, by the random name in its record and in the seal. */
export function tenantDir(name: string): string {
  // The name comes from files that the directory's creator may have forged: it must not lead anywhere else.
  if (!isTenantName(name)) {
    throw new KmsError('corrupt', `expected the name of a tenant's directory, got ${JSON.stringify(name)}`, {
      hint: 'nothing was changed; restore the data directory from a backup, or find out who made it',
    });
  }
  return `tenants/${name}`;
}

/** The name under which the seal has the keys of the store in `dir`. */
export function sealName(dir: string): string {
  return dir.startsWith('tenants/') ? dir.slice('tenants/'.length) : dir;
}
