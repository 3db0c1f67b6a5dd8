// Files that people name: read whole with a word on what they should be, or written so that nothing is overwritten and
// nothing half-written stays.
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

/**
 * Whether a path is a directory's or below it, once links are followed; what is not there yet is where its parent is.
 */
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

/** Whether something other than a directory has this path. */
export async function isNoDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => !found.isDirectory(),
    (error) => systemCode(error) === 'ENOTDIR',
  );
}

/** The text of a small file, of `most` bytes; `what` says what it should hold. Throws as `readSmallFile` does. */
export async function readSmallText(path: string, what: string, most?: number): Promise<string> {
  return textIn(await readSmallFile(path, what, undefined, most), path, what);
}

/** The text of bytes from a file. Throws `invalid` for what is no UTF-8. */
export function textIn(bytes: Uint8Array, path: string, what: string): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new KmsError('invalid', `${path}: expected ${what} in UTF-8, found bytes that are none`, {
      hint: 'save it as UTF-8',
    });
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The text of a small file in PEM, which is ASCII: what stands around its blocks, for people alone, may be in another
 * encoding. `read` is for one that holds a secret. Throws as `readSmallFile` does.
 */
export async function readPem(
  path: string,
  what: string,
  read: (path: string, what: string) => Promise<Uint8Array> = readSmallFile,
): Promise<string> {
  return Buffer.from(await read(path, what)).toString('utf8');
}

/**
 * The bytes of a small file, of `most` bytes; `what` says what it should hold. `check` sees the file before anything is
 * read of it. Throws `refused` for a pipe that has a name, `invalid` for a large file.
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
    if (info.isFIFO()) (await import('../platform/data-dir.ts')).refusePipe(path, info, what);
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

/** A file that gets its name only once it is whole. */
export interface NewFile {
  readonly handle: FileHandle;
  /** Where the bytes are until then. */
  readonly temporary: string;
  /**
   * Makes it durable and gives it its name, or this other one. Fails where meanwhile something has that name; then the
   * temporary file stays, and may be given another.
   */
  commit(name?: string): Promise<void>;
  /** Removes what was written. */
  discard(): Promise<void>;
}

const nameAnother = 'name another file or move that one away';

/**
 * Begins the file `path` in its own directory. Throws `refused` with `hint` where there is something of that name
 * already.
 */
export async function newFile(path: string, mode: number, hint = nameAnother): Promise<NewFile> {
  if (await exists(path)) throw alreadyThere(path, hint);
  const temporary = join(dirname(path), `.${basename(path).slice(0, 100)}.${randomBytes(6).toString('hex')}.tmp`);
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

/** Throws `refused` where the file system lets others read what is for its owner alone; nothing is left then. */
async function needPrivate(handle: FileHandle, temporary: string, path: string): Promise<void> {
  const { mode } = await handle.stat();
  if ((mode & 0o077) === 0) return;
  await handle.close();
  await unlink(temporary);
  throw (await import('../platform/file-system.ts')).withoutModes(path, mode);
}

/**
 * Puts another text in the place of a file of this user's own, as a whole; `make` gets the one that is there, as `read`
 * reads it. Whoever does the same at that moment is refused, so that nobody's text is lost; one that was cut off leaves
 * nothing that the next one has to mind. Answers what `make` answers.
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

/** The file may be writable where its directory is not. */
function notReplaced(path: string, target: string, error: unknown): KmsError {
  const isDenied = ['EACCES', 'EPERM', 'EROFS'].includes(systemCode(error) ?? '');
  const hint = `nothing was changed; a whole new file takes its place, so the directory ${dirname(target)} must be writable`;
  return fileError('write', path, error, isDenied ? hint : undefined);
}

/**
 * A link that leads to who holds it, so that it never is without: from a process that has ended it is taken. Where
 * there are no links, it is a file.
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
    // Another command may have taken it from there by now: that one finds so before it writes.
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

/** The machine, the process, when that began, and the draft. */
const holderForm = /^(\S+) ([0-9]+) (\S+) ([0-9a-f]{12})$/;

/**
 * When the process began, in ticks of this machine's run, which is named too: another process that has its number later
 * began at another time. `-` where the system does not tell.
 */
async function beginningOf(pid: number): Promise<string> {
  try {
    const [run, about] = await Promise.all([
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
      readFile(`/proc/${pid}/stat`, 'utf8'),
    ]);
    // Behind the command's name, which stands in brackets and may have blanks in it, the twentieth (proc(5)).
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
  return readlink(lock).catch(() => readFile(lock, 'utf8').catch(() => ''));
}

/** Of a process elsewhere, and where it is not said whose it is, nobody here knows. */
async function isGone(holder: string): Promise<boolean> {
  const [, host, pid, beginning] = holderForm.exec(holder) ?? [];
  if (host !== hostname()) return false;
  try {
    process.kill(Number(pid), 0);
  } catch (error) {
    // Another user's process lives.
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

/** A link to nowhere is there, too. */
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

/** So that the name survives a loss of power; not every file system lets one ask. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY).catch(() => undefined);
  await directory?.sync().catch(() => undefined);
  await directory?.close();
}
