// Files that people name: read whole, with a word on their expected content, or written so that nothing is overwritten
// and nothing half-written stays.
import { randomBytes } from 'node:crypto';
import {
  constants,
  type FileHandle,
  lstat,
  open,
  readFile,
  readlink,
  realpath,
  rename,
  stat,
  symlink,
  unlink,
} from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { type ErrorCode, KmsError, reasonOf, systemCode } from '../errors.ts';

/** The error "cannot `deed` `path`: why". */
export function fileError(
  deed: string,
  path: string,
  cause: unknown,
  hint?: string,
  code: ErrorCode = 'refused',
): KmsError {
  if (cause instanceof KmsError) return cause;
  return new KmsError(
    code,
    `cannot ${deed} ${path}: ${reasonOf(cause)}`,
    hint === undefined ? { cause } : { cause, hint },
  );
}

/** Whether a path is a directory or below it, after following links; a missing path counts by its parent. */
export async function isWithin(path: string, directory: string): Promise<boolean> {
  return `${await realPath(path)}/`.startsWith(`${await realPath(directory)}/`);
}

async function realPath(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(await realPath(parent), basename(path));
  }
}

/** Whether this path is, or leads through, something other than a directory. */
export async function isNoDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => !found.isDirectory(),
    (error) => systemCode(error) === 'ENOTDIR',
  );
}

/**
 * The text of a small file, of at most `most` bytes; `what` names its expected content. Throws like `readSmallFile`.
 */
export async function readSmallText(path: string, what: string, most?: number): Promise<string> {
  return textIn(await readSmallFile(path, what, undefined, most), path, what);
}

/** The text of bytes from a file. Throws `invalid` unless it is UTF-8. */
export function textIn(bytes: Uint8Array, path: string, what: string): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new KmsError('invalid', `${path}: expected ${what} in UTF-8, found bytes that are not`, {
      hint: 'save it as UTF-8',
    });
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The text of a small PEM file. PEM itself is ASCII; text around the blocks may be in any encoding. `read` replaces the
 * reader for a file with a secret. Throws like `readSmallFile`.
 */
export async function readPem(
  path: string,
  what: string,
  read: (path: string, what: string) => Promise<Uint8Array> = readSmallFile,
): Promise<string> {
  return Buffer.from(await read(path, what)).toString('utf8');
}

/**
 * The bytes of a small file, of at most `most` bytes; `what` names its expected content. `check` sees the file before
 * anything is read. Throws `refused` for a named pipe, `invalid` for a larger file.
 */
export async function readSmallFile(
  path: string,
  what: string,
  check?: (file: FileHandle) => Promise<void>,
  most = 65_536,
): Promise<Uint8Array> {
  let file: FileHandle | undefined;
  try {
    const info = await stat(path);
    if (info.isFIFO()) (await import('../platform/ownership.ts')).refusePipe(path, info, what);
    file = await open(path, constants.O_RDONLY);
    await check?.(file);
    const buffer = Buffer.alloc(most + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length);
      length += bytesRead;
      if (bytesRead === 0 || length > most) break;
    }
    if (length > most) throw new KmsError('invalid', `${path} is too large to hold ${what}`);
    return buffer.subarray(0, length);
  } catch (error) {
    throw fileError(`read ${what} from`, path, error);
  } finally {
    await file?.close();
  }
}

/** A new file that gets its name only once it is complete. */
export interface NewFile {
  readonly handle: FileHandle;
  /** Path of the file until then. */
  readonly temporary: string;
  /**
   * Makes it durable and gives it its name, or the given one. Fails if that name was taken in the meantime; the
   * temporary file then stays, and another name may be tried.
   */
  commit(name?: string): Promise<void>;
  /** Deletes the temporary file. */
  discard(): Promise<void>;
}

const nameAnother = 'name another file or move that one away';

function draftStart(path: string): string {
  return `.${basename(path).slice(0, 100)}.`;
}

/** Whether a new file has this name until it is complete. */
export function isDraft(name: string): boolean {
  return /^\..+\.[0-9a-f]{12}\.tmp$/.test(name);
}

/** Whether the new file `path` has this name until it is complete. */
export function isDraftOf(name: string, path: string): boolean {
  return isDraft(name) && name.slice(0, -'0123456789ab.tmp'.length) === draftStart(path);
}

/** Begins the file `path` in its own directory. Throws `refused` with `hint` if the name is taken. */
export async function newFile(path: string, mode: number, hint = nameAnother): Promise<NewFile> {
  if (await exists(path)) throw alreadyThere(path, hint);
  const temporary = join(dirname(path), `${draftStart(path)}${randomBytes(6).toString('hex')}.tmp`);
  let handle: FileHandle;
  try {
    handle = await open(temporary, 'wx', mode);
  } catch (error) {
    throw fileError('write', path, error);
  }
  if ((mode & 0o077) === 0) await needPrivate(handle, temporary, path);
  let isDurable = false;
  return {
    handle,
    temporary,
    async commit(name = path) {
      if (!isDurable) {
        await handle.sync();
        await handle.close();
        isDurable = true;
      }
      await nameIt(temporary, name, hint);
      await syncDirectory(dirname(name));
    },
    async discard() {
      await handle.close().catch(() => undefined);
      await unlink(temporary).catch(() => undefined);
    },
  };
}

/** Throws `refused`, and deletes the file, if the file system lets other users read a private file. */
async function needPrivate(handle: FileHandle, temporary: string, path: string): Promise<void> {
  const { mode } = await handle.stat();
  if ((mode & 0o077) === 0) return;
  await handle.close();
  await unlink(temporary);
  throw (await import('../platform/file-system.ts')).withoutModes(path, mode);
}

/**
 * Replaces the text of one of this user's own files atomically; `make` gets the present text as `read` returns it, and
 * its `result` is returned. Fails while another command is replacing the file, so that no change is lost; an
 * interrupted one leaves nothing that blocks the next.
 */
export async function replaceText<T>(
  path: string,
  read: (path: string) => Promise<string>,
  make: (text: string) => { readonly text: string; readonly result: T },
): Promise<T> {
  const target = await realPath(path);
  const lock = `${target}.new`;
  const holder = `${hostname()} ${process.pid} ${await beginningOf(process.pid)} ${randomBytes(6).toString('hex')}`;
  const draft = draftOf(lock, holder);
  await takeLock(lock, holder, path);
  const isHeld = async (): Promise<boolean> => (await holderOf(lock)) === holder;
  try {
    const before = await read(path);
    const { text, result } = make(before);
    if (text !== before) {
      await writeWhole(draft, text);
      if (!(await isHeld())) throw beingWritten(path, lock);
      await rename(draft, target);
      await syncDirectory(dirname(target));
    }
    return result;
  } catch (error) {
    throw notReplaced(path, target, error);
  } finally {
    await unlink(draft).catch(() => undefined);
    if (await isHeld()) await unlink(lock).catch(() => undefined);
  }
}

/** The file may be writable although its directory is not. */
function notReplaced(path: string, target: string, error: unknown): KmsError {
  const isDenied = ['EACCES', 'EPERM', 'EROFS'].includes(systemCode(error) ?? '');
  const hint = `nothing was changed; a whole new file takes its place, so the directory ${dirname(target)} must be writable`;
  return fileError('write', path, error, isDenied ? hint : undefined);
}

/**
 * Takes a lock: a symbolic link whose target names the holder, so that it is never without one. The lock of a process
 * that has ended is taken over. On file systems without links it is a file.
 */
async function takeLock(lock: string, holder: string, path: string): Promise<void> {
  for (;;) {
    try {
      return await symlink(holder, lock).catch(async (error) => {
        const { isWithoutLinks } = await import('../platform/file-system.ts');
        if (!isWithoutLinks(error)) throw error;
        await writeWhole(lock, holder);
      });
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw notReplaced(path, lock, error);
    }
    const other = await holderOf(lock);
    if (!(await isGone(other))) throw beingWritten(path, lock);
    // Another command may have taken the lock over in the meantime: it notices that before it writes.
    const away = `${lock}.${randomBytes(6).toString('hex')}`;
    if (!(await rename(lock, away).then(() => true, isNotThere))) continue;
    const taken = await holderOf(away);
    await unlink(away).catch(() => undefined);
    if (taken !== other) throw beingWritten(path, lock);
    await unlink(draftOf(lock, other)).catch(() => undefined);
  }
}

async function writeWhole(path: string, text: string): Promise<void> {
  const handle = await open(path, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Host, process id, start of the process, and the draft's random name. */
const holderForm = /^(\S+) ([0-9]+) (\S+) ([0-9a-f]{12})$/;

/**
 * Start of the process: boot id and clock ticks since boot, so that a later process with the same number differs. `-`
 * if the system does not tell.
 */
async function beginningOf(pid: number): Promise<string> {
  try {
    const [run, about] = await Promise.all([
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
      readFile(`/proc/${pid}/stat`, 'utf8'),
    ]);
    // The twentieth field after the command's name, which is in brackets and may contain blanks (proc(5)).
    const ticks = about.slice(about.lastIndexOf(')') + 2).split(' ')[19];
    return ticks === undefined ? '-' : `${run.trim()}.${ticks}`;
  } catch {
    return '-';
  }
}

function draftOf(lock: string, holder: string): string {
  return `${lock}.${holderForm.exec(holder)?.[4]}.tmp`;
}

async function holderOf(lock: string): Promise<string> {
  return readlink(lock).catch(() => readSmallText(lock, 'a lock').catch(() => ''));
}

/** Whether the holder has ended. Unknown, so false, for a process on another machine or a malformed holder. */
async function isGone(holder: string): Promise<boolean> {
  const [, host, pid, beginning] = holderForm.exec(holder) ?? [];
  if (host !== hostname()) return false;
  try {
    process.kill(Number(pid), 0);
  } catch (error) {
    // EPERM: another user's process, which lives.
    if (systemCode(error) === 'ESRCH') return true;
  }
  const now = await beginningOf(Number(pid));
  return now !== '-' && beginning !== '-' && now !== beginning;
}

function isNotThere(error: unknown): boolean {
  if (systemCode(error) === 'ENOENT') return false;
  throw error;
}

function beingWritten(path: string, lock: string): KmsError {
  return new KmsError('refused', `${path} is being written to: there is a file ${lock}`, {
    hint: 'wait for the other command; if there is none, it was cut off: then remove that file',
  });
}

async function nameIt(temporary: string, path: string, hint: string): Promise<void> {
  const { giveName } = await import('../platform/file-system.ts');
  await giveName(temporary, path).catch((error) => {
    throw systemCode(error) === 'EEXIST' ? alreadyThere(path, hint) : error;
  });
}

/** Counts dangling links too. */
async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false;
    throw fileError('write', path, error);
  }
}

function alreadyThere(path: string, hint: string): KmsError {
  return new KmsError('refused', `${path} exists already and is not overwritten`, { hint });
}

/** Makes the name survive a power failure, on file systems that allow it. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY).catch(() => undefined);
  await directory?.sync().catch(() => undefined);
  await directory?.close();
}
