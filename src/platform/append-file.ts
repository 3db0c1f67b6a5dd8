// A file that is appended to through its descriptor, wherever it is: bytes wait for the next sync, and room can be
// preallocated behind them. Finding and opening the file is left to the file ports.
import { fdatasync, fstatSync, ftruncate, readSync, type Stats, statSync, write, writev } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { equalBytes } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';
import { type AppendFile, FileLost, isRefusedWrite } from '../store/files.ts';

/** Bytes after the end that are checked to be zeros before the next append. */
const firstBytes = 16;

type FileCallback = (error: NodeJS.ErrnoException | null) => void;

/** A file that only this process may write. */
interface OwnFile {
  /** The name for errors. */
  readonly name: string;
  readonly path: string;
}

/** Writes at its own notion of the end, so that leftovers of a failed append are overwritten. */
export class NodeAppendFile implements AppendFile {
  readonly #handle: FileHandle;
  readonly #own: OwnFile | undefined;
  #size: number;
  /** Appended, but not written yet. */
  readonly #pending: Uint8Array[] = [];
  /** The bytes expected right before the first of them. */
  #behind: Uint8Array | undefined;
  /** End of the file, including the room. */
  #end: number;
  /** Room that the next write may add; none once the disk had too little. */
  #room = 0;
  #hasRoom = true;

  /** `own`: no other process may write to the file, and this is checked. */
  constructor(handle: FileHandle, size: number, own?: OwnFile) {
    this.#handle = handle;
    this.#own = own;
    this.#size = size;
    this.#end = size;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Holds the bytes until the next sync: the file is opened so that writing syncs too, which spares a round through the
   * thread pool.
   */
  async append(bytes: Uint8Array, room = 0, behind: Uint8Array | undefined = undefined): Promise<void> {
    if (this.#pending.length === 0) this.#behind = behind;
    this.#pending.push(bytes);
    this.#size += bytes.length;
    this.#room = this.#hasRoom && this.#size > this.#end ? room : 0;
  }

  async sync(): Promise<void> {
    const pieces = this.#pending.splice(0);
    // With nothing to write it still syncs: an earlier process's writes may not be durable.
    if (pieces.length === 0) return called((done) => fdatasync(this.#handle.fd, done));
    let end = this.#size - pieces.reduce((sum, piece) => sum + piece.length, 0);
    // In a file that was cut short, the bytes would follow a gap, where nothing verifies.
    this.#needWhole(this.#end, true);
    this.#needAround(end, this.#behind);
    for (const [at, piece] of pieces.entries()) {
      const isLast = at === pieces.length - 1;
      await this.#write(piece, end, isLast && this.#room > 0 ? await this.#writeRoom(piece, end, this.#room) : 0);
      end += piece.length;
    }
    this.#end = Math.max(this.#end, end);
    this.#needPlace(this.#needWhole(this.#end) ?? (await this.#handle.stat()));
  }

  /** Returns how many of the bytes were written, perhaps none. */
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
      if (!isRefusedWrite(error)) throw error;
    }
    if (written === bytes.length + room) {
      this.#end = position + written;
      return bytes.length;
    }
    // The rest of the disk is left to others.
    this.#hasRoom = false;
    const own = Math.min(written, bytes.length);
    await called((done) => ftruncate(fd, position + own, done));
    return own;
  }

  /**
   * Checks that `expected` is right before `end` and that only room follows: a record would not begin with zeros alone.
   */
  #needAround(end: number, expected: Uint8Array | undefined): void {
    if (!this.#own || !expected) return;
    const found = new Uint8Array(expected.length + firstBytes);
    const length = readSync(this.#handle.fd, found, 0, found.length, end - expected.length);
    const isBefore = equalBytes(found.subarray(0, expected.length), expected);
    const follows = found.subarray(expected.length, Math.max(length, expected.length));
    if (isBefore && follows.every((byte) => byte === 0)) return;
    const where = isBefore ? 'behind' : 'before';
    const what = `somebody else wrote to the file ${where} offset ${end} while it was open`;
    throw new FileLost(this.#own.name, what, { isUntouched: true });
  }

  /**
   * These system calls take a microsecond each; a group's fsync takes 300. Undefined for a file of others, which is
   * never asked here: where it lies somebody may let the main thread wait for ever.
   */
  #needWhole(size: number, isUntouched = false): Stats | undefined {
    if (!this.#own) return undefined;
    const found = fstatSync(this.#handle.fd);
    if (found.size >= size) return found;
    throw new FileLost(this.#own.name, `the file was cut to ${found.size} bytes while it was open, expected ${size}`, {
      isUntouched,
    });
  }

  /** If the name no longer leads to this file, its contents are lost with the descriptor, however durable. */
  #needPlace({ dev, ino, nlink }: Stats): void {
    if (!this.#own) {
      if (nlink > 0) return;
      throw new KmsError('unavailable', 'a file was removed while it was being written', {
        hint: 'restore the directory that it was in',
      });
    }
    const { name, path } = this.#own;
    const named = statSync(path, { throwIfNoEntry: false });
    if (named?.ino === ino && named.dev === dev) return;
    const what = named ? 'replaced by another' : 'removed or moved away';
    throw new FileLost(name, `the file was ${what} while it was open`);
  }

  /** Writes all but the first `written` bytes. */
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
    this.#needAround(this.#size, nothing);
    if (this.#end > this.#size && (await this.#handle.stat()).size === this.#end) await this.truncate(this.#size);
  }

  async truncate(size: number): Promise<void> {
    this.#pending.length = 0;
    this.#needWhole(size);
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

const nothing = new Uint8Array();
const someZeros = new Uint8Array(64 * 1024);

/** This many zero bytes, in pieces. */
function zeros(length: number): Uint8Array[] {
  const whole = Array.from({ length: Math.floor(length / someZeros.length) }, () => someZeros);
  return [...whole, someZeros.subarray(0, length % someZeros.length)];
}

function called(run: (done: FileCallback) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    run((error) => (error ? reject(error) : resolve()));
  });
}
