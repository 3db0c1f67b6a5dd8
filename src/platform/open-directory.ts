// OpenDirectory is a directory held by its descriptor, with the operations on its entries: openat, mkdirat, renameat
// and unlinkat, which Node lacks, by way of /proc/self/fd. Symbolic links are not followed, and a file is opened
// through the descriptor by which it was checked, so that it cannot be swapped in between. A guarded directory refuses
// anything mounted on an entry.
import { type BigIntStats, closeSync, constants, fstat, open as openDescriptor, readFileSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readdir, readlink, rename, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { KmsError, systemCode } from '../errors.ts';
import { notFile } from './node-files.ts';

const { O_RDONLY, O_RDWR, O_CREAT, O_EXCL, O_DIRECTORY, O_NOFOLLOW } = constants;
/**
 * Names a file without opening it: no blocking on a pipe, no access to a device, and closing it does not end a lock of
 * this process, as closing any other descriptor of the file does (POSIX). Node does not name this flag; the value is
 * Linux's on x86-64 and arm64.
 */
const O_PATH = 0o10_000_000;

/** Bytes of a directory that is listed: on most file systems some 200,000 entries, a third of a second. */
const mostListed = 8n * 1024n * 1024n;

const openPath: (path: string, flags: number) => Promise<number> = promisify(openDescriptor);
const look: (fd: number, options: { bigint: true }) => Promise<BigIntStats> = promisify(fstat);

const byDescriptor = (fd: number): string => `/proc/self/fd/${fd}`;

/** Throws if the file must not be opened; `again` stats the same file once more. */
type FileCheck = (found: BigIntStats, again: () => Promise<BigIntStats>) => Promise<void>;

export interface Guard {
  /** Throws if the directory must not be entered. */
  needForeignDirectory(path: string, found: BigIntStats): Promise<void>;
  /** Whether something may be mounted on this path. */
  mayBeMount(path: string): boolean;
}

export class OpenDirectory {
  /** Its absolute path at opening, for messages. */
  readonly path: string;
  readonly #fd: number;
  #guard: Guard | undefined;

  /** Takes ownership of `fd`. */
  constructor(path: string, fd: number) {
    this.path = path;
    this.#fd = fd;
  }

  /** From now on it and its subdirectories must be on one mount, and each is checked when entered. */
  guardWith(guard: Guard): void {
    this.#guard = guard;
  }

  /** Follows links in `path` except at its end. Throws `refused` for a link there. */
  static open(path: string): Promise<OpenDirectory> {
    return openDirectory(path, path);
  }

  /** Throws `refused` for a link. */
  async enter(name: string): Promise<OpenDirectory> {
    const below = await openDirectory(this.#entry(name), join(this.path, name));
    const guard = this.#guard;
    if (!guard) return below;
    try {
      this.#needSameMount(below.#fd, below.path);
      await guard.needForeignDirectory(below.path, await below.look());
      below.guardWith(guard);
      return below;
    } catch (error) {
      below.close();
      throw error;
    }
  }

  /** Its current path without links. Throws `unavailable` without /proc. */
  async realPath(): Promise<string> {
    try {
      return await readlink(byDescriptor(this.#fd));
    } catch (cause) {
      throw new KmsError('unavailable', `${this.path}: cannot be opened safely without /proc`, {
        hint: 'mount /proc: without it there is no way to avoid following links in directories that others may write to',
        cause,
      });
    }
  }

  look(): Promise<BigIntStats> {
    return this.#named('', () => look(this.#fd, { bigint: true }));
  }

  /** Stats the entry itself, even a link. */
  async lookAt(name: string): Promise<BigIntStats> {
    const fd = await this.#openPath(name);
    try {
      return await look(fd, { bigint: true });
    } finally {
      closeSync(fd);
    }
  }

  async names(): Promise<string[]> {
    await this.#needListable();
    return this.#named('', () => readdir(byDescriptor(this.#fd)));
  }

  /** Names of all but directories and links. */
  async plainNames(): Promise<string[]> {
    await this.#needListable();
    const entries = await this.#named('', () => readdir(byDescriptor(this.#fd), { withFileTypes: true }));
    return entries.filter((entry) => !entry.isDirectory() && !entry.isSymbolicLink()).map(({ name }) => name);
  }

  /** Opens the file if `check` accepts it. Throws `refused` for a link, `corrupt` for anything but a regular file. */
  async openFile(name: string, flags: number, check: FileCheck): Promise<FileHandle> {
    const path = join(this.path, name);
    const fd = await this.#openPath(name);
    try {
      const found = await look(fd, { bigint: true });
      if (found.isSymbolicLink()) throw isLink(path);
      if (!found.isFile()) throw notFile(path, found);
      await check(found, () => look(fd, { bigint: true }));
      return await this.#named(name, () => open(byDescriptor(fd), flags));
    } finally {
      closeSync(fd);
    }
  }

  /** Creates a file (mode 0600). Fails with code `EEXIST` if the name is taken, even by a dangling link. */
  openNew(name: string, flags = 0): Promise<FileHandle> {
    const allFlags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | flags;
    return this.#named(name, () => open(this.#entry(name), allFlags, 0o600));
  }

  /** Makes a directory (mode 0700). Fails with code `EEXIST` if the name is taken. */
  async make(name: string): Promise<void> {
    await this.#named(name, () => mkdir(this.#entry(name), { mode: 0o700 }));
  }

  /** Replaces an entry with the name `to`. */
  rename(from: string, to: string): Promise<void> {
    return this.#changing([to, from], () => rename(this.#entry(from), this.#entry(to)));
  }

  /** Removes a file, or a link itself. */
  remove(name: string): Promise<void> {
    return this.#changing([name], () => unlink(this.#entry(name)));
  }

  /** Removes an empty directory. */
  removeDir(name: string): Promise<void> {
    return this.#changing([name], () => rmdir(this.#entry(name)));
  }

  async sync(): Promise<void> {
    const handle = await this.#named('', () => open(byDescriptor(this.#fd), O_RDONLY | O_DIRECTORY));
    await handle.sync().finally(() => handle.close());
  }

  close(): void {
    closeSync(this.#fd);
  }

  /**
   * Throws `refused` for a directory with very many entries: all names are in memory at once. Most file systems tell by
   * its size; counting while reading would have Node look up entries on the main thread, where the system does not say
   * what they are.
   */
  async #needListable(): Promise<void> {
    const { size, blocks } = await this.look();
    const bytes = [size, blocks * 512n].reduce((a, b) => (a > b ? a : b));
    if (bytes > mostListed) throw tooMany(this.path, bytes);
  }

  #entry(name: string): string {
    return `${byDescriptor(this.#fd)}/${needName(name)}`;
  }

  /** Opens the entry by name only. Throws `refused` if something is mounted on it. */
  async #openPath(name: string): Promise<number> {
    const fd = await this.#named(name, () => openPath(this.#entry(name), O_PATH | O_NOFOLLOW));
    try {
      this.#needSameMount(fd, join(this.path, name));
      return fd;
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  /** Comparing devices is not enough: a bind mount is on the same device, and a live file under it has one name. */
  #needSameMount(fd: number, path: string): void {
    if (!this.#guard || this.#guard.mayBeMount(path)) return;
    if (mountOf(fd, path) !== mountOf(this.#fd, this.path)) throw isMount(path);
  }

  /** The system refuses to change a mount point (EBUSY). */
  async #changing(names: readonly [string, ...string[]], step: () => Promise<void>): Promise<void> {
    try {
      await this.#named(names[0], step);
    } catch (error) {
      if (systemCode(error) !== 'EBUSY') throw error;
      for (const name of names) {
        await this.lookAt(name).catch((found: unknown) => {
          if (systemCode(found) !== 'ENOENT') throw found;
        });
      }
      throw error;
    }
  }

  #named<T>(name: string, step: () => Promise<T>): Promise<T> {
    return named(join(this.path, name), step);
  }
}

async function openDirectory(from: string, path: string): Promise<OpenDirectory> {
  try {
    const fd = await named(path, () => openPath(from, O_PATH | O_DIRECTORY | O_NOFOLLOW));
    return new OpenDirectory(path, fd);
  } catch (error) {
    const found = await lstat(from).catch(() => undefined);
    throw found?.isSymbolicLink() ? isLink(path) : error;
  }
}

/** The id of the mount that an open file was reached on; unique while the file is open. */
function mountOf(fd: number, path: string): string {
  let cause: unknown;
  try {
    // Synchronous, since the kernel answers from memory whatever the file system.
    const found = /^mnt_id:\s*([0-9]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1];
    if (found !== undefined) return found;
  } catch (error) {
    cause = error;
  }
  throw new KmsError('unavailable', `${path}: /proc/self/fdinfo does not tell which mount it is on`, {
    hint: 'mount /proc, of Linux itself: without it, mounts inside directories that others may write to go unseen',
    cause,
  });
}

/** Ensures that the name is a plain entry, without slashes or dots. */
function needName(name: string): string {
  if (name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name)) return name;
  throw new KmsError('internal', `expected a name in a directory, got ${JSON.stringify(name)}`);
}

/** Errors name the file's path, not that of a descriptor. */
async function named<T>(path: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (cause) {
    const code = systemCode(cause);
    throw code === undefined ? cause : Object.assign(new Error(`${code}: ${path}`, { cause }), { code });
  }
}

function tooMany(path: string, bytes: bigint): KmsError {
  return new KmsError('refused', `${path}: this directory takes ${bytes} bytes, so it has, or had, very many entries`, {
    hint:
      'it is not listed; find out who made them, and put a new directory in its place with what belongs there: many ' +
      'file systems never make one smaller',
  });
}

function isMount(path: string): KmsError {
  return new KmsError('refused', `${path}: something is mounted there, beneath the directory that was named`, {
    hint: `nothing was read or written in it; unmount it (umount ${path}), or name a directory within one mount`,
  });
}

export function isLink(path: string): KmsError {
  return new KmsError('refused', `${path}: is a symbolic link, and others may write there: it is not followed`, {
    hint: 'nothing was read or written through it; find out who put it there, and put what belongs there in its place',
  });
}
