// A file that is appended to through its descriptor, wherever it lies: bytes wait for the sync that follows, and room
// can be made behind them. Finding and opening the file is for the file ports.
import { fdatasync, fstatSync, ftruncate, readSync, type Stats, statSync, write, writev } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { equalBytes } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';
import { type AppendFile, FileLost, isRefusedWrite } from '../store/files.ts';

/** As many bytes behind the end are looked at before the next ones are written there. */
const firstBytes = 16;

type FileCallback = (error: NodeJS.ErrnoException | null) => void;

/** A file of the appliance's own. */
interface OwnFile {
  /** As errors have it. */
  readonly name: string;
  readonly path: string;
}

/** Writes at its own idea of the end, so that what a failed append left there is written over. */
export class NodeAppendFile implements AppendFile {
  readonly #handle: FileHandle;
  readonly #own: OwnFile | undefined;
  #size: number;
  /** Appended and not written yet. */
  readonly #pending: Uint8Array[] = [];
  /** Stands right before the first of them. */
  #behind: Uint8Array | undefined;
  /** Where the file ends, behind the room. */
  #end: number;
  /** What the next write may make; none on a disk that had too little. */
  #room = 0;
  #hasRoom = true;

  /** `own`: nobody else may write to it, and it is looked at whether somebody did. */
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
   * Kept until the sync that follows: the file is opened so that one write is both, which spares a round through the
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
    // Nothing of its own to write: what an earlier process wrote may not be durable.
    if (pieces.length === 0) return called((done) => fdatasync(this.#handle.fd, done));
    let end = this.#size - pieces.reduce((sum, piece) => sum + piece.length, 0);
    // In a file that was cut they would stand behind a gap, where nothing verifies.
    this.#needWhole(this.#end, true);
    this.#needAround(end, this.#behind);
    for (const [at, piece] of pieces.entries()) {
      const isLast = at === pieces.length - 1;
      await this.#write(piece, end, isLast && this.#room > 0 ? await this.#writeRoom(piece, end, this.#room) : 0);
      end += piece.length;
    }
    this.#end = Math.max(this.#end, end);
    this.#needPlace(this.#needWhole(this.#end));
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
      if (!isRefusedWrite(error)) throw error;
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

  /** `expected` stands right before `end`, and nothing but room follows: a record would begin with more than zeros. */
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

  /** System calls of a microsecond each, these; a group's fsync takes 300. */
  #needWhole(size: number, isUntouched = false): Stats {
    const found = fstatSync(this.#handle.fd);
    if (!this.#own || found.size >= size) return found;
    throw new FileLost(this.#own.name, `the file was cut to ${found.size} bytes while it was open, expected ${size}`, {
      isUntouched,
    });
  }

  /** What the name no longer leads to is lost with the descriptor, however durable it is. */
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
    this.#needAround(this.#size, nothing);
    if (this.#end > this.#size && fstatSync(this.#handle.fd).size === this.#end) await this.truncate(this.#size);
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
