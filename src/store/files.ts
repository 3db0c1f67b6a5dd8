// The port to the file system that the store stands on. `node-files.ts` is the real one; the tests have one on a
// simulated disk that loses what was not synced, tears writes and fills up. Names are relative to the data directory.
import { KmsError, systemCode } from '../errors.ts';

/** Less is left than this process knows, or another history: nothing of it may be taken into service. */
export class HistoryLost extends KmsError {
  constructor(message: string) {
    super('unavailable', message, {
      hint:
        'with what is left, deleted keys and revoked credentials would be alive again; to go on with it all the same, ' +
        'stop the server and start it once as the error of that start says (--accept-older)',
    });
  }
}

/** A file that is being written, or whose content this process knows, was removed, replaced or cut by somebody else. */
export class FileLost extends HistoryLost {
  /** Whether it was seen before anything was written: what stands in the file is then somebody else's. */
  readonly isUntouched: boolean;

  constructor(name: string, what: string, { isUntouched = false } = {}) {
    super(`${name}: ${what}; put the newer file back, or stop the server and restore a backup`);
    this.isUntouched = isUntouched;
  }
}

export interface AppendFile {
  /** Bytes in the file, without the room behind them. */
  readonly size: number;
  /**
   * Appends all of `bytes`; on failure an unknown part of them may be in the file. Where they make it longer, it may
   * become longer by `room` bytes more, zeros that the next ones are written over: that is synced in less time,
   * since the file system has nothing to note then. What a disk has no room for is left out. Throws `FileLost`, here
   * or at the sync, unless `behind` is what stands right before them and nothing but room follows.
   */
  append(bytes: Uint8Array, room?: number, behind?: Uint8Array): Promise<void>;
  /**
   * Resolves once everything appended so far survives a loss of power. Throws `FileLost` where the file was removed,
   * replaced or cut.
   */
  sync(): Promise<void>;
  /** Takes away the room behind what was appended, durably, unless somebody else has changed the file's size. */
  trim(): Promise<void>;
  /** The room behind `size` goes as well. Throws `FileLost` where the file is shorter. */
  truncate(size: number): Promise<void>;
  close(): Promise<void>;
}

export interface Files {
  /** Names of what is directly in `dir` but directories and links; empty when `dir` does not exist. */
  list(dir: string): Promise<string[]>;
  exists(name: string): Promise<boolean>;
  size(name: string): Promise<number>;
  /**
   * The whole file. Fails with code `ENOENT` where there is none; throws `corrupt` for what is no file, and for one of
   * more than `most` bytes. Where others may write, `most` is 1 MiB unless it is given.
   */
  read(name: string, most?: number): Promise<Uint8Array>;
  /** `length` bytes from `offset`, fewer at the end of the file. */
  readAt(name: string, offset: number, length: number): Promise<Uint8Array>;
  /** Opens for appending; makes the file (mode 0600) when `create`, and then fails where it exists. */
  openAppend(name: string, create: boolean): Promise<AppendFile>;
  /** Replaces or makes a file so that after a crash there is the old one or the new one, whole: temporary file (the
   * name with `.tmp` behind it, which a crash may leave), fsync, rename, fsync of the directory. */
  replace(name: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void>;
  remove(name: string): Promise<void>;
  /** Makes a directory (mode 0700) and its parents durable. */
  makeDir(dir: string): Promise<void>;
  /** Removes a directory, if it is there, with all that is in it. */
  removeDir(dir: string): Promise<void>;
  syncDir(dir: string): Promise<void>;
}

/** What those need who make files whole and read them: of any place that keeps such files, a disk or not. */
export type WholeFiles = Pick<Files, 'list' | 'exists' | 'size' | 'read' | 'readAt' | 'replace' | 'remove'>;

/** Whether it failed for want of room, on the disk or in a quota. */
export function isFull(error: unknown): boolean {
  const code = systemCode(error);
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/** Whether a write was refused before anything was written: for want of room, or by a limit on the length of files. */
export function isRefusedWrite(error: unknown): boolean {
  return isFull(error) || systemCode(error) === 'EFBIG';
}
