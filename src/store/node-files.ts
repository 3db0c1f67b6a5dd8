// The file port over the operating system's files, below one root directory. Everything runs off the event loop; files
// are made with mode 0600, directories with 0700.
import { constants, fdatasync, fstatSync, ftruncate, type Stats, write, writev } from 'node:fs';
import { type FileHandle, lchown, mkdir, open, readdir, rename, rm, stat, unlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { KmsError, systemCode } from '../errors.ts';
import { type AppendFile, type Files, isFull } from './files.ts';

const { O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_DSYNC, O_NONBLOCK, O_NOFOLLOW } = constants;

type FileCallback = (error: NodeJS.ErrnoException | null) => void;

/**
 * The files below `root`. `ofItsOwner`: what root makes there belongs to whoever the directory belongs to, who could
 * not open it otherwise, as after a command that was typed while the service was stopped.
 */
export function nodeFiles(root: string, { ofItsOwner = false } = {}): Files {
  const path = (name: string) => join(root, name);

  async function give(change: (uid: number, gid: number) => Promise<void>): Promise<void> {
    if (!ofItsOwner || process.geteuid?.() !== 0) return;
    const { uid, gid } = await stat(root);
    if (uid !== 0) await change(uid, gid);
  }

  async function syncDir(dir: string): Promise<void> {
    const handle = await open(path(dir), 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  }

  return {
    syncDir,
    async list(dir) {
      try {
        const entries = await readdir(path(dir), { withFileTypes: true });
        // A pipe or the like is listed: whoever reads it is told what it is.
        return entries.filter((entry) => !entry.isDirectory() && !entry.isSymbolicLink()).map(({ name }) => name);
      } catch (error) {
        if (systemCode(error) === 'ENOENT') return [];
        throw error;
      }
    },
    async exists(name) {
      try {
        await stat(path(name));
        return true;
      } catch (error) {
        if (systemCode(error) === 'ENOENT') return false;
        throw error;
      }
    },
    size: async (name) => (await stat(path(name))).size,
    async read(name) {
      const handle = await openFile(path(name), O_RDONLY);
      try {
        // A plain array: a Buffer may be a view of a pool that others use.
        return plain(await handle.readFile());
      } finally {
        await handle.close();
      }
    },
    async readAt(name, offset, length) {
      const handle = await openFile(path(name), O_RDONLY);
      try {
        return await readFully(handle, offset, length);
      } finally {
        await handle.close();
      }
    },
    async openAppend(name, create) {
      const handle = await openFile(path(name), O_RDWR | O_DSYNC | (create ? O_CREAT | O_EXCL : 0));
      try {
        if (create) await give((uid, gid) => handle.chown(uid, gid));
        return new NodeAppendFile(handle, (await handle.stat()).size);
      } catch (error) {
        await handle.close();
        throw error;
      }
    },
    async replace(name, bytes) {
      const temporary = path(`${name}.tmp`);
      try {
        await writeNew(temporary, bytes, (handle) => give((uid, gid) => handle.chown(uid, gid)));
        await rename(temporary, path(name));
      } catch (error) {
        await unlink(temporary).catch(() => {});
        throw error;
      }
      await syncDir(dirname(name));
    },
    remove: (name) => unlink(path(name)),
    async makeDir(dir) {
      const whole = resolve(path(dir));
      const first = await makeDirs(whole);
      if (first === undefined) return;
      // Each new directory is an entry of the one above it.
      for (let made = whole; made.length >= first.length; made = dirname(made)) {
        await give((uid, gid) => lchown(made, uid, gid));
        await syncPath(dirname(made));
      }
    },
    async removeDir(dir) {
      await rm(path(dir), { recursive: true, force: true });
      await syncDir(dirname(dir));
    },
  };
}

/** Writes at its own idea of the end, so that what a failed append left there is written over. */
class NodeAppendFile implements AppendFile {
  readonly #handle: FileHandle;
  #size: number;
  /** Appended and not written yet. */
  readonly #pending: Uint8Array[] = [];
  /** Where the file ends, behind the room. */
  #end: number;
  /** What the next write may make; none on a disk that had too little. */
  #room = 0;
  #hasRoom = true;

  constructor(handle: FileHandle, size: number) {
    this.#handle = handle;
    this.#size = size;
    this.#end = size;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Kept until the sync that follows: the file is opened so that one write is both, which spares a round through the
   * thread pool.
   */
  async append(bytes: Uint8Array, room = 0): Promise<void> {
    this.#pending.push(bytes);
    this.#size += bytes.length;
    this.#room = this.#hasRoom && this.#size > this.#end ? room : 0;
  }

  async sync(): Promise<void> {
    const pieces = this.#pending.splice(0);
    // Nothing of its own to write: what an earlier process wrote may not be durable.
    if (pieces.length === 0) return called((done) => fdatasync(this.#handle.fd, done));
    let end = this.#size - pieces.reduce((sum, piece) => sum + piece.length, 0);
    for (const [at, piece] of pieces.entries()) {
      const isLast = at === pieces.length - 1;
      await this.#write(piece, end, isLast && this.#room > 0 ? await this.#writeRoom(piece, end, this.#room) : 0);
      end += piece.length;
    }
    this.#end = Math.max(this.#end, end);
    this.#needName();
  }

  /** Answers how many of the bytes were written, which may be none. */
  async #writeRoom(bytes: Uint8Array, position: number, room: number): Promise<number> {
    const { fd } = this.#handle;
    this.#room = 0;
    let written = 0;
    try {
      written = await new Promise<number>((resolve, reject) => {
        const done = (error: Error | null, length = 0): void => (error ? reject(error) : resolve(length));
        writev(fd, [bytes, ...zeros(room)], position, done);
      });
    } catch (error) {
      if (!isFull(error)) throw error;
    }
    if (written === bytes.length + room) {
      this.#end = position + written;
      return bytes.length;
    }
    // Others need what is left of the disk.
    this.#hasRoom = false;
    const own = Math.min(written, bytes.length);
    await called((done) => ftruncate(fd, position + own, done));
    return own;
  }

  /** What has no name any more is lost with the descriptor, however durable it is. */
  #needName(): void {
    if (fstatSync(this.#handle.fd).nlink > 0) return;
    throw new KmsError('unavailable', 'a file was removed while it was being written', {
      hint: 'restore the data directory',
    });
  }

  /** All behind the first `written` bytes. */
  async #write(bytes: Uint8Array, position: number, written: number): Promise<void> {
    if (written === bytes.length) return;
    // The callback API on the descriptor takes about half the time of the handle's methods.
    const { fd } = this.#handle;
    return new Promise((resolve, reject) => {
      const step = (from: number): void => {
        write(fd, bytes, from, bytes.length - from, position + from, (error, written) => {
          if (error) reject(error);
          else if (from + written < bytes.length) step(from + written);
          else resolve();
        });
      };
      step(written);
    });
  }

  async trim(): Promise<void> {
    if (this.#pending.length > 0) await this.sync();
    if (this.#end > this.#size && fstatSync(this.#handle.fd).size === this.#end) await this.truncate(this.#size);
  }

  async truncate(size: number): Promise<void> {
    this.#pending.length = 0;
    await called((done) => ftruncate(this.#handle.fd, size, done));
    this.#end = size;
    await called((done) => fdatasync(this.#handle.fd, done));
    this.#size = size;
  }

  async close(): Promise<void> {
    try {
      if (this.#pending.length > 0) await this.sync();
    } finally {
      await this.#handle.close();
    }
  }
}

/** A pipe that somebody put in a file's place keeps nobody waiting. Throws `corrupt` for all but a file. */
async function openFile(path: string, flags: number): Promise<FileHandle> {
  let handle: FileHandle;
  try {
    handle = await open(path, flags | O_NONBLOCK, 0o600);
  } catch (error) {
    // A socket, or a pipe without a reader.
    if (systemCode(error) === 'ENXIO') throw notFile(path, await stat(path));
    throw error;
  }
  const found = fstatSync(handle.fd);
  if (found.isFile()) return handle;
  await handle.close();
  throw notFile(path, found);
}

/** What stands where a file should be, in words. */
export function notFile(path: string, found: Stats): KmsError {
  const kinds = [
    ['a directory', found.isDirectory()],
    ['a named pipe', found.isFIFO()],
    ['a socket', found.isSocket()],
    ['a device', found.isCharacterDevice() || found.isBlockDevice()],
  ] as const;
  const kind = kinds.find(([, is]) => is)?.[0] ?? 'something else';
  return new KmsError('corrupt', `${path}: expected a file, found ${kind}`, {
    hint: 'nothing was changed; find out who put it there, and restore the file from a backup',
  });
}

/**
 * Makes the directory with mode 0700 and those above it, level by level: Node's own recursive mkdir never ends below a
 * file system that answers ENOENT to it, as /proc does. Answers the topmost one that it had to make, undefined when all
 * were there.
 */
export async function makeDirs(path: string): Promise<string | undefined> {
  const whole = resolve(path);
  try {
    await mkdir(whole, { mode: 0o700 });
    return whole;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return undefined;
    if (systemCode(error) !== 'ENOENT' || dirname(whole) === whole) throw error;
  }
  const above = await makeDirs(dirname(whole));
  // What is above was there or is now: a second ENOENT is the file system's own.
  await mkdir(whole, { mode: 0o700 }).catch((error) => {
    // Another process may have made it meanwhile.
    if (systemCode(error) !== 'EEXIST') throw error;
  });
  return above ?? whole;
}

const someZeros = new Uint8Array(64 * 1024);

/** As many, in pieces. */
function zeros(length: number): Uint8Array[] {
  const whole = Array.from({ length: Math.floor(length / someZeros.length) }, () => someZeros);
  return [...whole, someZeros.subarray(0, length % someZeros.length)];
}

function called(run: (done: FileCallback) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    run((error) => (error ? reject(error) : resolve()));
  });
}

/** A link in its place would lead elsewhere. */
async function writeNew(
  path: string,
  bytes: Uint8Array | AsyncIterable<Uint8Array>,
  give: (handle: FileHandle) => Promise<void>,
): Promise<void> {
  const handle = await openFile(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  try {
    await give(handle);
    if (bytes instanceof Uint8Array) await handle.writeFile(bytes);
    else for await (const piece of bytes) await handle.writeFile(piece);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function readFully(handle: FileHandle, offset: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await handle.read(bytes, filled, length - filled, offset + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}

async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function plain(buffer: Buffer): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
}
