// A data directory seen from outside: names of its files, its state, its epoch, how it is made, and who can reach it,
// which must be the owner alone. Opens no store.
import { type Dirent, existsSync, type Stats } from 'node:fs';
import { chmod, lstat, readdir, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { KmsError, systemCode, systemError } from '../errors.ts';
import { isCount, isJsonObject, jsonOf } from '../model/json.ts';
import { parseTimestamp } from '../model/timestamp.ts';
import type { ReadStore } from '../store/read-store.ts';
import type { SettingTable, SystemTables } from '../store/tables/databases.ts';
import { groupIds, userId } from './environment.ts';
import { mayKeepNoModes, mountAlone, trialFile, tryFileSystem, withoutModes } from './file-system.ts';
import { type DirectoryLock, lockDirectory, lockFile, pidFile } from './lock.ts';
import { makeDirs, notFile } from './node-files.ts';

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
    // It may vanish meanwhile, as an upgrade's leftovers do.
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
  const { mode } = await look(root);
  if (isOurs && (mode & 0o077) !== 0) throw withoutModes(root, mode);
  await needPrivateDirectory(root);
  const isLockNew = !existsSync(inDir(root, lockFile));
  let lock: DirectoryLock | undefined;
  try {
    lock = lockDirectory(root);
    await tryFileSystem(root, { isPrivate: true });
    return lock;
  } catch (error) {
    // Another process may have made the lock meanwhile, but then the error is `in-use`.
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
  return new KmsError('refused', `${data}: is the directory of a standby, which serves nobody yet`, {
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

interface Owned {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

interface Identity {
  readonly uid: number | undefined;
  readonly groups: readonly number[];
}

/**
 * `own-group`: it belongs to another user, who grants this process access by its group, as container volumes do; there
 * the group is the owner in all but name.
 */
type Exposure = 'none' | 'own-group' | 'group' | 'others';

export function exposureOf({ mode, uid, gid }: Owned, me: Identity = identity()): Exposure {
  if ((mode & 0o007) !== 0) return 'others';
  if ((mode & 0o070) === 0) return 'none';
  return uid !== me.uid && me.groups.includes(gid) ? 'own-group' : 'group';
}

function identity(): Identity {
  return { uid: userId(), groups: groupIds() };
}

/** Such as `0750`, for `chmod`. */
export function modeText(mode: number): string {
  return `0${(mode & 0o777).toString(8).padStart(3, '0')}`;
}

/** Whether neither this process's user nor root owns the file or directory; false if it does not exist. */
export async function isOfAnother(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found !== undefined && found.uid !== 0 && found.uid !== userId();
}

/** Throws `refused` for a data directory that others can read or write. */
export async function needPrivateDirectory(path: string): Promise<void> {
  const info = await look(path);
  const exposure = exposureOf(info);
  if (exposure === 'none' || exposure === 'own-group') return;
  throw new KmsError('refused', `${path}: ${reached(exposure)} (mode ${modeText(info.mode)})`, {
    hint:
      info.uid === userId()
        ? `run: chmod 0700 ${path}${(await mayKeepNoModes(path)) ? `; where that changes nothing, ${mountAlone()}` : ''}`
        : 'let its owner run chmod 0700 on it, or name a new directory below it with --data, which is made for you alone',
  });
}

/**
 * Throws `refused` if others can read the file `path`, which holds `what` and is readable to this process; `remedy` is
 * the advice in case they did.
 */
export function refuseExposed(path: string, info: Owned, what: string, remedy: string, me = identity()): void {
  const exposure = exposureOf(info, me);
  if (exposure === 'none' || exposure === 'own-group') return;
  // Readable to neither the owner nor a group of this process, so by an access list, as systemd makes for credentials.
  // The group bits are then the list's mask and say nothing about a group.
  const isListed = info.uid !== me.uid && me.uid !== 0 && !me.groups.includes(info.gid);
  if (exposure === 'group' && isListed) return;
  throw new KmsError('refused', `${path}: ${reached(exposure)}, and it holds ${what} (mode ${modeText(info.mode)})`, {
    hint: `run: chmod 0600 ${path}; if anybody else may have read it, ${remedy}`,
  });
}

/** Throws `refused` if others can write to the file `path`, which controls this process. */
export function refuseWritable(path: string, info: Owned, me = identity()): void {
  // Volumes of containers may belong to another user and be shared through a group of this process.
  if (exposureOf(info, me) === 'own-group') return;
  if (info.uid !== 0 && info.uid !== me.uid) {
    throw new KmsError('refused', `${path}: belongs to another user, who could change it`, {
      hint: `see that it says what you mean, then make it your own: chown ${me.uid} ${path}`,
    });
  }
  const exposure = exposureOf({ ...info, mode: info.mode & 0o022 }, me);
  if (exposure === 'none' || exposure === 'own-group') return;
  const who = exposure === 'group' ? 'its group' : 'everybody on this machine';
  throw new KmsError('refused', `${path}: ${who} can write to it (mode ${modeText(info.mode)})`, {
    hint: `see that it says what you mean, then run: chmod go-w ${path}`,
  });
}

/** A pipe of a process started for this one, such as a shell's `<(…)`. */
const ownPipe = /^\/(dev|proc\/self)\/fd\/\d+$|^\/dev\/stdin$/;

/** Whether the path names a descriptor of this process. */
export function isOwnPipe(path: string): boolean {
  return ownPipe.test(path);
}

/**
 * Throws `refused` for a named pipe instead of a file with `what`: opening it would block until it has a writer, with
 * no way to stop. Call this before opening.
 */
export function refusePipe(path: string, info: Pick<Stats, 'isFIFO'>, what: string): void {
  if (!info.isFIFO() || isOwnPipe(path)) return;
  throw new KmsError('refused', `${path}: expected a file with ${what}, found a named pipe`, {
    hint: 'name the file itself; what a command writes is read with <(COMMAND) in its place',
  });
}

function reached(exposure: 'group' | 'others'): string {
  return `${exposure === 'group' ? 'its group' : 'everybody on this machine'} can reach it`;
}

async function look(path: string): Promise<Owned> {
  try {
    return await stat(path);
  } catch (error) {
    throw systemError(error, path);
  }
}

/** The name under which the seal has the keys of the store in `dir`. */
export function sealName(dir: string): string {
  return dir.startsWith('tenants/') ? dir.slice('tenants/'.length) : dir;
}

/**
 * The epoch of a data directory: it starts at 1, and rises with each restore, and with each start that accepts older
 * files. Together with the stores' log positions it only grows, so that a client that remembers the highest one notices
 * when an older copy is back in use.
 */
export interface Epoch {
  readonly number: number;
  /** RFC 3339: when the restore, or the start with older files, began the epoch; and the time of the copy, if any. */
  readonly restoredAt?: string;
  readonly madeAt?: string;
}

const first: Epoch = { number: 1 };

/** Highest number of an epoch: directories that are shipped to have at most 15 digits of it in their names. */
export const latestEpoch = 999_999_999_999_999;

export function currentEpoch(settings: Pick<SettingTable, 'get'>): Epoch {
  const text = settings.get('epoch');
  return text === undefined ? first : readEpoch(text);
}

/** The epoch in a store that was read but is not open. */
export function epochIn(system: Pick<ReadStore<SystemTables>, 'rows'>): number {
  const text = settingIn(system, 'epoch');
  return (text === undefined ? first : readEpoch(text)).number;
}

/** Throws `corrupt` for anything but an epoch: its number becomes part of a directory's name. */
function readEpoch(text: string): Epoch {
  const value = jsonOf(text);
  const { number, restoredAt, madeAt } = isJsonObject(value) ? value : {};
  const isTime = (time: unknown): boolean =>
    time === undefined || (typeof time === 'string' && parseTimestamp(time) !== undefined);
  if (!isCount(number) || number < 1 || number > latestEpoch || !isTime(restoredAt) || !isTime(madeAt)) {
    throw notSetting('epoch');
  }
  return {
    number,
    ...(restoredAt === undefined ? {} : { restoredAt: String(restoredAt) }),
    ...(madeAt === undefined ? {} : { madeAt: String(madeAt) }),
  };
}

/** The error for a setting of the appliance's own store that no appliance writes like that. */
export function notSetting(name: string): KmsError {
  return new KmsError('corrupt', `${systemDir}: the setting ${name} is none that kms writes`, {
    hint: 'nothing was changed; find out who made this directory, or restore from a backup',
  });
}

/** The directory that the appliance last shipped to, empty if none. Throws `corrupt` for anything but a whole path. */
export function shipToIn(system: Pick<ReadStore<SystemTables>, 'rows'>): string {
  const path = settingIn(system, 'ship-to') ?? '';
  if (path === '' || (isAbsolute(path) && !path.includes('\0'))) return path;
  throw notSetting('ship-to');
}

function settingIn(system: Pick<ReadStore<SystemTables>, 'rows'>, name: 'epoch' | 'ship-to'): string | undefined {
  const [row] = system.rows<{ value: string }>((schema) =>
    schema === 0 ? `SELECT '' AS value WHERE 0` : `SELECT value FROM settings WHERE name = '${name}'`,
  );
  return row?.value;
}

/** In epoch milliseconds, so that of two restores of one copy the later has the higher epoch. */
export function nextEpoch(settings: SettingTable, now: number, origin?: { readonly madeAt: string }): Epoch {
  const before = currentEpoch(settings);
  const number = Math.max(before.number + 1, Math.floor(now));
  if (number > latestEpoch) {
    throw new KmsError('refused', `the next epoch would be ${number}, expected at most ${latestEpoch}`, {
      hint: 'nothing was changed; no clock leads there: set the clock right, or restore a backup from before it',
    });
  }
  const epoch: Epoch = { number, restoredAt: new Date(now).toISOString(), ...(origin && { madeAt: origin.madeAt }) };
  settings.set('epoch', JSON.stringify(epoch));
  return epoch;
}
