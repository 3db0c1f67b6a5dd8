// The file port over the operating system's files, below one root directory. Everything runs off the event loop; files
// are created with mode 0600, directories with 0700.
import { type BigIntStats, constants, fstatSync, type Stats } from 'node:fs';
import { type FileHandle, lchown, lstat, mkdir, open, readdir, rename, rm, stat, unlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { KmsError, systemCode } from '../errors.ts';
import type { Files } from '../store/files.ts';
import { NodeAppendFile } from './append-file.ts';

const { O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_DSYNC, O_NONBLOCK, O_NOFOLLOW } = constants;

/**
 * The name itself if it leads to an entry of the directory: none that is absolute, climbs by `..` or has an empty
 * component. `.` is the directory itself. Throws `corrupt`: such a name came from a file that somebody else wrote.
 */
export function nameWithin(name: string): string {
  const isWithin = name === '.' || name.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (isWithin && !name.includes('\0')) return name;
  throw new KmsError('corrupt', `${JSON.stringify(name)}: expected the name of a file within the directory`, {
    hint: 'nothing was changed; no kms writes such a name: find out who made what names it',
  });
}

/**
 * The files below `root`. No name leads out of it. `ofItsOwner`: files that root creates there belong to the
 * directory's owner, who could not open them otherwise, as after a command typed while the service was stopped.
 */
export function nodeFiles(root: string, { ofItsOwner = false } = {}): Files {
  const path = (name: string) => join(root, nameWithin(name));

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
        // A pipe or the like is listed: reading it gives an error that says so.
        return entries.filter((entry) => !entry.isDirectory() && !entry.isSymbolicLink()).map(({ name }) => name);
      } catch (error) {
        if (systemCode(error) === 'ENOENT') return [];
        throw error;
      }
    },
    async exists(name) {
      try {
        await lstat(path(name));
        return true;
      } catch (error) {
        if (systemCode(error) === 'ENOENT') return false;
        throw error;
      }
    },
    async size(name) {
      const found = await lstat(path(name));
      if (!found.isFile()) throw notFile(path(name), found);
      return found.size;
    },
    async read(name, most) {
      const handle = await openFile(path(name), O_RDONLY);
      try {
        return await readBounded(handle, path(name), most);
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
        return new NodeAppendFile(handle, (await handle.stat()).size, { name, path: path(name) });
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
    async remove(name) {
      await unlink(path(name));
    },
    async makeDir(dir) {
      const whole = resolve(path(dir));
      const first = await makeDirs(whole);
      if (first === undefined) return;
      // A new directory is an entry in its parent, so the parent needs the sync.
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

/** Opens a file without blocking on a pipe or following a link. Throws `corrupt` for anything but a regular file. */
export async function openFile(path: string, flags: number): Promise<FileHandle> {
  let handle: FileHandle;
  try {
    handle = await open(path, flags | O_NONBLOCK | O_NOFOLLOW, 0o600);
  } catch (error) {
    // A socket, a link, or a pipe without a reader.
    if (['ENXIO', 'ELOOP'].includes(systemCode(error) ?? '')) throw notFile(path, await lstat(path));
    throw error;
  }
  const found = fstatSync(handle.fd);
  if (found.isFile()) return handle;
  await handle.close();
  throw notFile(path, found);
}

/** The error for a wrong kind of file, in words. */
export function notFile(path: string, found: Stats | BigIntStats): KmsError {
  const kinds = [
    ['a directory', found.isDirectory()],
    ['a named pipe', found.isFIFO()],
    ['a socket', found.isSocket()],
    ['a symbolic link', found.isSymbolicLink()],
    ['a device', found.isCharacterDevice() || found.isBlockDevice()],
  ] as const;
  const kind = kinds.find(([, is]) => is)?.[0] ?? 'something else';
  return new KmsError('corrupt', `${path}: expected a file, found ${kind}`, {
    hint: 'nothing was changed; find out who put it there, and restore the file from a backup',
  });
}

/**
 * Makes the directory with mode 0700, and its parents level by level: Node's recursive mkdir never ends on a file
 * system that answers ENOENT to it, as /proc does. Returns the topmost one created, undefined if all existed.
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
  // The parent exists now: a second ENOENT comes from the file system itself.
  await mkdir(whole, { mode: 0o700 }).catch((error) => {
    // Another process may have made it in the meantime.
    if (systemCode(error) !== 'EEXIST') throw error;
  });
  return above ?? whole;
}

/** Does not follow a link of that name, which would lead elsewhere. */
async function writeNew(
  path: string,
  bytes: Uint8Array | AsyncIterable<Uint8Array>,
  give: (handle: FileHandle) => Promise<void>,
): Promise<void> {
  const handle = await openFile(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  try {
    await give(handle);
  } catch (error) {
    await handle.close();
    throw error;
  }
  await writeAll(handle, bytes);
}

/** Writes durably, then closes the handle. */
export async function writeAll(handle: FileHandle, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
  try {
    if (bytes instanceof Uint8Array) await handle.writeFile(bytes);
    else for await (const piece of bytes) await handle.writeFile(piece);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Reads from `offset`; returns fewer than `length` bytes at the end of the file. */
export async function readFully(handle: FileHandle, offset: number, length: number): Promise<Uint8Array> {
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

/** Throws `corrupt` for more than `most` bytes, without reading them. */
export async function readBounded(handle: FileHandle, path: string, most: number): Promise<Uint8Array> {
  const { size } = await handle.stat();
  if (size <= most) return readFully(handle, 0, size);
  throw tooLong(path, most, String(size));
}

/** The bytes of a file at any path, of at most `most`; links are followed. Throws `corrupt` for more. */
export async function readFileWithin(path: string, most: number): Promise<Buffer> {
  const handle = await open(path, O_RDONLY);
  try {
    const read: Buffer[] = [];
    // A device has no size, and no end.
    for (let length = 0; length <= most; ) {
      const piece = Buffer.alloc(Math.min(pieceLength, most + 1 - length));
      const { bytesRead } = await handle.read(piece, 0, piece.length, null);
      if (bytesRead === 0) return Buffer.concat(read);
      read.push(piece.subarray(0, bytesRead));
      length += bytesRead;
    }
  } finally {
    await handle.close();
  }
  throw tooLong(path, most, 'more');
}

const pieceLength = 64 * 1024;

function tooLong(path: string, most: number, found: string): KmsError {
  return new KmsError('corrupt', `${path}: expected at most ${most} bytes, found ${found}`, {
    hint: 'it is longer than any such file of kms: find out who wrote it; nothing was changed',
  });
}
