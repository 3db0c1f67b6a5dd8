// The exclusive hold on a data directory: a real lock of the operating system (taken through SQLite's file locking), so
// that it ends with the process however that dies, and holds between containers that share the directory.
import { randomBytes } from 'node:crypto';
import {
  type BigIntStats,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { KmsError, systemCode } from '../errors.ts';
import { notFile } from './node-files.ts';

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
/** Nothing else may have the name by then. */
const newFile = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;

export const lockFile = 'kms.lock';
/** Who holds it, for the message alone. */
export const pidFile = 'kms.pid';

/**
 * A hold ends when it is released or the process does, not when whoever has it forgets it and its database is
 * collected.
 */
const heldHere = new Map<DatabaseSync, string>();

/**
 * The files that this process has locked, by `identityOf`: closing one of them under any name ends the lock (POSIX).
 */
export function lockedFiles(): readonly string[] {
  return [...heldHere.values()];
}

/** Tells a file from every other one that is there at the time. */
export function identityOf({ dev, ino }: Pick<BigIntStats, 'dev' | 'ino'>): string {
  return `${dev}:${ino}`;
}

export interface DirectoryLock {
  /**
   * Throws `unavailable` when the directory is not in its place any more: what stands there now is somebody else's to
   * hold.
   */
  needInPlace(): void;
  isInPlace(): boolean;
  /** Lets go; may be called twice. */
  release(): void;
}

/**
 * Takes hold of the directory `root`. Throws `in-use` when another process has it. One that only looks says nothing
 * about itself, and changes no file. `name`: of the file that is locked, where it is held for something else. `open`:
 * opens a file with the lock on it.
 */
export function lockDirectory(
  root: string,
  { onlyLooks = false, name = lockFile, open = openLocked } = {},
): DirectoryLock {
  const path = join(root, name);
  const pidPath = join(root, pidFile);
  // Made here for its mode. An existing one is not opened: closing it would end a lock of this very process (POSIX).
  needNoLink(path);
  if (!existsSync(path)) makeLock(path);
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
    // The lock is held; only the other's message is poorer.
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
        // A disk that cannot be written to any more keeps the number; the lock ends all the same.
      } finally {
        database.close();
      }
    },
  };
}

/** Another process may make it at the same moment. */
function makeLock(path: string): void {
  try {
    closeSync(openSync(path, newFile, 0o600));
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
    needNoLink(path);
  }
}

/** SQLite would follow it, and lock or make another file. */
function needNoLink(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found && !found.isFile()) throw notFile(path, found);
}

/** In place of what a process left that was killed, and never through a link. */
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
    // With a journal in memory no second file appears beside this one.
    database.exec('PRAGMA journal_mode = MEMORY');
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.exec('BEGIN EXCLUSIVE');
    return database;
  } catch (cause) {
    database.close();
    throw cause;
  }
}

/** Whether a new file beside `path` can be locked: SQLite calls a lack of locks (ENOLCK) busy too. */
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

/** Tells whether what has the name `path` is still the file that has it now. */
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

/** SQLite's other codes for what became of a lock: SQLITE_PERM, and SQLITE_IOERR with RDLOCK, UNLOCK, LOCK. */
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
    hint: 'where no kms runs, remove this file: nothing is kept in it',
    cause,
  });
}

function inUse(root: string, pidPath: string): KmsError {
  return new KmsError('in-use', `${root}: in use by ${holder(pidPath)}`, {
    hint: 'stop that process, or work with it through its socket or its address',
  });
}

function holder(pidPath: string): string {
  try {
    const text = readFileSync(pidPath, 'utf8').trim();
    return /^[0-9]+$/.test(text) ? `process ${text}` : 'another process';
  } catch {
    return 'another process';
  }
}
