// OpenDirectory is a directory held by its descriptor, and what is done to the entries in it: openat, mkdirat, renameat
// and unlinkat, which Node doesn't have, by way of /proc/self/fd. No entry is followed where it is a symbolic link, and
// a file is opened by the descriptor that it was looked at through, so that nothing else can stand there by then.
import { type BigIntStats, closeSync, constants, fstat, open as openDescriptor } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readdir, readlink, rename, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { KmsError, systemCode } from '../errors.ts';
import { notFile } from './node-files.ts';

const { O_RDONLY, O_RDWR, O_CREAT, O_EXCL, O_DIRECTORY, O_NOFOLLOW } = constants;
/**
 * Names a file without opening it: no pipe is waited for, no device is touched, and closing it ends no lock of this
 * process, as closing any other descriptor of the file does (POSIX). Node has no name for it; the number is that of
 * Linux on x86-64 and arm64.
 */
const O_PATH = 0o10_000_000;

const openPath: (path: string, flags: number) => Promise<number> = promisify(openDescriptor);
const look: (fd: number, options: { bigint: true }) => Promise<BigIntStats> = promisify(fstat);

const byDescriptor = (fd: number): string => `/proc/self/fd/${fd}`;

/** Throws for a file that is not to be opened; `again` looks at the same file once more. */
type FileCheck = (found: BigIntStats, again: () => Promise<BigIntStats>) => Promise<void>;

export class OpenDirectory {
  /** Its absolute path when it was opened, for messages. */
  readonly path: string;
  readonly #fd: number;

  /** `fd` is its own from then on. */
  constructor(path: string, fd: number) {
    this.path = path;
    this.#fd = fd;
  }

  /** Links in `path` are followed but at its end. Throws `refused` for a link there. */
  static open(path: string): Promise<OpenDirectory> {
    return openDirectory(path, path);
  }

  /** Throws `refused` for a link. */
  enter(name: string): Promise<OpenDirectory> {
    return openDirectory(this.#entry(name), join(this.path, name));
  }

  /** The path at which it is now, without links. Throws `unavailable` without /proc. */
  async realPath(): Promise<string> {
    try {
      return await readlink(byDescriptor(this.#fd));
    } catch (cause) {
      throw new KmsError('unavailable', `${this.path}: cannot be opened safely without /proc`, {
        hint: 'mount /proc: without it links in directories that others may write cannot be kept from being followed',
        cause,
      });
    }
  }

  look(): Promise<BigIntStats> {
    return this.#named('', () => look(this.#fd, { bigint: true }));
  }

  /** Looks at the entry itself, also at a link. */
  lookAt(name: string): Promise<BigIntStats> {
    return this.#named(name, () => lstat(this.#entry(name), { bigint: true }));
  }

  names(): Promise<string[]> {
    return this.#named('', () => readdir(byDescriptor(this.#fd)));
  }

  /** Names of all but directories and links. */
  async plainNames(): Promise<string[]> {
    const entries = await this.#named('', () => readdir(byDescriptor(this.#fd), { withFileTypes: true }));
    return entries.filter((entry) => !entry.isDirectory() && !entry.isSymbolicLink()).map(({ name }) => name);
  }

  /** Opens the file that `check` let pass. Throws `refused` for a link, `corrupt` for all else but a file. */
  async openFile(name: string, flags: number, check: FileCheck): Promise<FileHandle> {
    const path = join(this.path, name);
    const fd = await this.#named(name, () => openPath(this.#entry(name), O_PATH | O_NOFOLLOW));
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

  /** Makes a file (mode 0600). Fails with code `EEXIST` for whatever is there, also for a link that leads nowhere. */
  openNew(name: string, flags = 0): Promise<FileHandle> {
    const allFlags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | flags;
    return this.#named(name, () => open(this.#entry(name), allFlags, 0o600));
  }

  /** Makes a directory (mode 0700). Fails with code `EEXIST` for whatever is there. */
  async make(name: string): Promise<void> {
    await this.#named(name, () => mkdir(this.#entry(name), { mode: 0o700 }));
  }

  /** Replaces what has the name `to`. */
  rename(from: string, to: string): Promise<void> {
    return this.#named(to, () => rename(this.#entry(from), this.#entry(to)));
  }

  /** Removes a file, or a link itself. */
  remove(name: string): Promise<void> {
    return this.#named(name, () => unlink(this.#entry(name)));
  }

  /** Removes an empty directory. */
  removeDir(name: string): Promise<void> {
    return this.#named(name, () => rmdir(this.#entry(name)));
  }

  async sync(): Promise<void> {
    const handle = await this.#named('', () => open(byDescriptor(this.#fd), O_RDONLY | O_DIRECTORY));
    await handle.sync().finally(() => handle.close());
  }

  close(): void {
    closeSync(this.#fd);
  }

  #entry(name: string): string {
    return `${byDescriptor(this.#fd)}/${needName(name)}`;
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

/** An entry's name leads nowhere else. */
function needName(name: string): string {
  if (name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name)) return name;
  throw new KmsError('internal', `expected a name in a directory, got ${JSON.stringify(name)}`);
}

/** The system's errors name the path by which the file is known, not that of a descriptor. */
async function named<T>(path: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (cause) {
    const code = systemCode(cause);
    throw code === undefined ? cause : Object.assign(new Error(`${code}: ${path}`, { cause }), { code });
  }
}

export function isLink(path: string): KmsError {
  return new KmsError('refused', `${path}: is a symbolic link, and others may write there: it is not followed`, {
    hint: 'nothing was read or written through it; find out who put it there, and put what belongs there in its place',
  });
}
