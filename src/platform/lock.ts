// The exclusive hold on a data directory: a real lock of the operating system (through SQLite's file locking), so that
// it ends with the process however that dies, and works between containers that share the directory.
import { randomBytes } from 'node:crypto';
import {
  type BigIntStats,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { KmsError, systemCode } from '../errors.ts';
import { notFile, readFileWithin } from './node-files.ts';

const { O_RDONLY, O_NONBLOCK, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
/** For creating a file only if its name is free. */
const newFile = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;

export const lockFile = 'kms.lock';
/** The holder's process id, for the message alone. */
export const pidFile = 'kms.pid';
/** In bytes. */
const longestPid = 32;

/**
 * Keeps the locked databases from garbage collection: a hold ends when it is released or the process ends, not when its
 * owner forgets it.
 */
const heldHere = new Map<DatabaseSync, string>();

/** Files that this process has locked, by `identityOf`: closing any descriptor of such a file ends the lock (POSIX). */
export function lockedFiles(): readonly string[] {
  return [...heldHere.values()];
}

/** Distinguishes a file from all others that exist at the time. */
export function identityOf({ dev, ino }: Pick<BigIntStats, 'dev' | 'ino'>): string {
  return `${dev}:${ino}`;
}

export interface DirectoryLock {
  /** Throws `unavailable` if the directory is no longer at its path: a replacement is not held. */
  needInPlace(): void;
  isInPlace(): boolean;
  /** Releases the hold; may be called twice. */
  release(): void;
}

/**
 * Takes hold of the directory `root`. Throws `in-use` if another process has it. With `onlyLooks` it leaves no process
 * id and changes no file. `name`: the lock file for another purpose. `open`: opens a file with the lock on it.
 */
export function lockDirectory(
  root: string,
  { onlyLooks = false, name = lockFile, open = openLocked } = {},
): DirectoryLock {
  const path = join(root, name);
  const pidPath = join(root, pidFile);
  // Created here for its mode. An existing one is not opened: closing it would end this process's own lock (POSIX).
  needNoLink(path);
  if (!existsSync(path)) makeLock(path);
  needOwnLock(root, name);
  let database: DatabaseSync;
  try {
    database = open(path);
  } catch (cause) {
    const isHeld = isBusy(cause) && (onlyLooks || canLock(path, open));
    throw isHeld ? inUse(root, pidPath) : noLock(path, cause);
  }
  try {
    if (!onlyLooks) writePid(pidPath);
  } catch {
    // The lock is held; only the other process's message is poorer.
  }
  const locked = statSync(path, { bigint: true, throwIfNoEntry: false });
  heldHere.set(database, locked ? identityOf(locked) : '');
  const isInPlace = sameFileAs(path);
  let held = true;
  return {
    isInPlace,
    needInPlace() {
      if (!isInPlace()) throw outOfPlace();
    },
    release() {
      if (!held) return;
      held = false;
      heldHere.delete(database);
      try {
        if (!onlyLooks && isInPlace()) rmSync(pidPath, { force: true });
      } catch {
        // A read-only disk keeps the file with the process id; the lock is released anyway.
      } finally {
        database.close();
      }
    },
  };
}

/** Another process may create it at the same moment. */
function makeLock(path: string): void {
  try {
    closeSync(openSync(path, newFile, 0o600));
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
    needNoLink(path);
  }
}

/** SQLite would follow a link, and lock or create another file. */
function needNoLink(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found && !found.isFile()) throw notFile(path, found);
}

/**
 * Throws `corrupt` unless the lock is as SQLite leaves it here: empty, and alone. A planted journal would be played
 * back into it, and name other files to be deleted; SQLite only discards one beside an empty file.
 */
function needOwnLock(root: string, name: string): void {
  const path = join(root, name);
  const beside = readdirSync(root).find((each) => each.startsWith(`${name}-`));
  const size = lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (beside === undefined && size === 0) return;
  const [odd, what] = beside === undefined ? [path, `${size} bytes`] : [join(root, beside), 'a file beside the lock'];
  throw new KmsError('corrupt', `${odd}: expected an empty lock and nothing beside it, found ${what}`, {
    hint: 'kms writes no such file: find out who did; where no kms runs, remove it: nothing is kept in it',
  });
}

/** Replaces the file of a killed process, and never writes through a link. */
function writePid(path: string): void {
  rmSync(path, { force: true });
  const fd = openSync(path, newFile, 0o600);
  try {
    writeSync(fd, `${process.pid}\n`);
  } finally {
    closeSync(fd);
  }
}

function openLocked(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // With an in-memory journal no second file appears beside this one.
    database.exec('PRAGMA journal_mode = MEMORY');
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.exec('BEGIN EXCLUSIVE');
    return database;
  } catch (cause) {
    database.close();
    throw cause;
  }
}

/** Whether a new file beside `path` can be locked: SQLite reports missing lock support (ENOLCK) as busy too. */
function canLock(path: string, open: (path: string) => DatabaseSync): boolean {
  const other = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    closeSync(openSync(other, 'wx', 0o600));
    open(other).close();
    return true;
  } catch (cause) {
    return !isBusy(cause);
  } finally {
    rmSync(other, { force: true });
  }
}

/** Returns a check whether `path` is still the same file as now. */
function sameFileAs(path: string): () => boolean {
  const look = () => statSync(path, { bigint: true, throwIfNoEntry: false });
  const mine = look();
  return () => {
    const found = look();
    return found !== undefined && found.ino === mine?.ino && found.dev === mine.dev;
  };
}

function outOfPlace(): KmsError {
  return new KmsError('unavailable', 'the data directory was removed, moved or replaced while it was open', {
    hint: 'stop this server; put the directory back or restore it, and start a new one',
  });
}

/** SQLITE_BUSY, also as the low byte of an extended code. */
function isBusy(cause: unknown): boolean {
  return (codeOf(cause) & 0xff) === 5;
}

/** SQLite's other codes for a failed lock: SQLITE_PERM, and SQLITE_IOERR with RDLOCK, UNLOCK, LOCK. */
const lockless: ReadonlySet<number> = new Set([3, 2314, 2058, 3850]);

function codeOf(cause: unknown): number {
  return cause instanceof Error && 'errcode' in cause ? Number(cause.errcode) : 0;
}

function noLock(path: string, cause: unknown): KmsError {
  if (isBusy(cause) || lockless.has(codeOf(cause))) {
    return new KmsError('refused', `${path}: cannot be locked: the file system has no locks`, {
      hint: 'choose a directory on another file system, or mount this one with locks (NFS: without nolock, lockd running)',
      cause,
    });
  }
  const what = cause instanceof Error ? cause.message : String(cause);
  return new KmsError('corrupt', `${path}: cannot be locked: ${what}`, {
    hint: 'if no kms is running, remove this file: nothing is kept in it',
    cause,
  });
}

function inUse(root: string, pidPath: string): KmsError {
  return new KmsError('in-use', `${root}: in use by ${holder(pidPath)}`, {
    hint: 'stop that process, or work with it through its socket or its address',
  });
}

/** The process id that the holder noted in a data directory, which may be anyone's. */
export async function notedPid(path: string): Promise<number | undefined> {
  const text = await readFileWithin(path, longestPid).then(String, () => '');
  return /^[0-9]+\s*$/.test(text) ? Number(text) : undefined;
}

function holder(pidPath: string): string {
  try {
    const bytes = Buffer.alloc(longestPid + 1);
    const fd = openSync(pidPath, O_RDONLY | O_NONBLOCK);
    const text = bytes.toString('latin1', 0, readSync(fd, bytes, 0, bytes.length, null)).trim();
    closeSync(fd);
    return /^[0-9]+$/.test(text) ? `process ${text}` : 'another process';
  } catch {
    return 'another process';
  }
}
