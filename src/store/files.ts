// The port to the file system that the store needs. `node-files.ts` implements it; the tests have one on a simulated
// disk that loses unsynced data, tears writes and fills up. Names are relative to the data directory.
import { KmsError, systemCode } from '../errors.ts';

/** The stored history is shorter than this process knows, or another one: nothing of it may be put in service. */
export class HistoryLost extends KmsError {
  constructor(message: string) {
    super('unavailable', message, {
      hint:
        'with what is left, deleted keys and revoked credentials would be alive again; to go on with it all the same, ' +
        'stop the server and start it once as the error of that start says (--accept-older)',
    });
  }
}

/** A file that this process is writing, or whose content it knows, was removed, replaced or cut by another process. */
export class FileLost extends HistoryLost {
  /** Whether this was noticed before anything was written: then the bytes in the file are another process's. */
  readonly isUntouched: boolean;

  constructor(name: string, what: string, { isUntouched = false } = {}) {
    super(`${name}: ${what}; put the newer file back, or stop the server and restore a backup`);
    this.isUntouched = isUntouched;
  }
}

export interface AppendFile {
  /** Bytes in the file, without the preallocated room after them. */
  readonly size: number;
  /**
   * Appends all of `bytes`; on failure an unknown part of them may be in the file. If the file grows, it may grow by
   * another `room` bytes of zeros, which later appends overwrite: they sync faster, since the file system has no
   * metadata to write. Room that does not fit on the disk is left out. Throws `FileLost`, here or at the sync, unless
   * `behind` stands directly before the bytes and only room after them.
   */
  append(bytes: Uint8Array, room?: number, behind?: Uint8Array): Promise<void>;
  /**
   * Resolves once everything appended so far survives a power loss. Throws `FileLost` if the file was removed, replaced
   * or cut.
   */
  sync(): Promise<void>;
  /** Removes the room after the appended bytes, durably, unless another process has changed the file's size. */
  trim(): Promise<void>;
  /** Also removes the room after `size`. Throws `FileLost` if the file is shorter. */
  truncate(size: number): Promise<void>;
  close(): Promise<void>;
}

export interface Files {
  /** Names of the entries directly in `dir`, without directories and links; empty if `dir` does not exist. */
  list(dir: string): Promise<string[]>;
  exists(name: string): Promise<boolean>;
  size(name: string): Promise<number>;
  /**
   * Returns the whole file. Fails with code `ENOENT` if there is none; throws `corrupt` if it is not a regular file or
   * is larger than `most` bytes: a sparse file is as long as its maker likes, and costs them nothing.
   */
  read(name: string, most: number): Promise<Uint8Array>;
  /** `length` bytes from `offset`, fewer at the end of the file. */
  readAt(name: string, offset: number, length: number): Promise<Uint8Array>;
  /** Opens for appending. With `create`, makes the file (mode 0600) and fails if it exists. */
  openAppend(name: string, create: boolean): Promise<AppendFile>;
  /**
   * Replaces or makes a file so that a crash leaves either the old one or the new one, whole: temporary file (named
   * with `.tmp` appended, which a crash may leave), fsync, rename, fsync of the directory.
   */
  replace(name: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void>;
  remove(name: string): Promise<void>;
  /** Makes a directory (mode 0700) and its parents durable. */
  makeDir(dir: string): Promise<void>;
  /** Removes a directory, if it exists, with all its contents. */
  removeDir(dir: string): Promise<void>;
  syncDir(dir: string): Promise<void>;
}

/** The part that reading and atomically replacing whole files needs; databases can implement it as well as disks. */
export type WholeFiles = Pick<Files, 'list' | 'exists' | 'size' | 'read' | 'readAt' | 'replace' | 'remove'>;

/** Whether an operation failed because the disk or a quota is full. */
export function isFull(error: unknown): boolean {
  const code = systemCode(error);
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/** Whether a write was refused before anything was written: no space, or a limit on the file size. */
export function isRefusedWrite(error: unknown): boolean {
  return isFull(error) || systemCode(error) === 'EFBIG';
}
