// The file port with a reserve behind it: an append, or a small file, that finds the disk full is tried again once the reserve gave
// something back.
import { type AppendFile, type Files, isFull } from '../../store/files.ts';

/** Told how many bytes found no room; answers whether to try again. */
export type OnFull = (bytes: number) => Promise<boolean>;

export function guardedFiles(files: Files, onFull: OnFull): Files {
  const again = async <R>(bytes: number, step: () => Promise<R>): Promise<R> => {
    for (;;) {
      try {
        return await step();
      } catch (error) {
        if (!isFull(error) || !(await onFull(bytes))) throw error;
      }
    }
  };
  return {
    list: (dir) => files.list(dir),
    exists: (name) => files.exists(name),
    size: (name) => files.size(name),
    read: (name) => files.read(name),
    readAt: (name, offset, length) => files.readAt(name, offset, length),
    openAppend: async (name, create) =>
      new GuardedAppendFile(await again(0, () => files.openAppend(name, create)), onFull),
    replace: (name, bytes) =>
      bytes instanceof Uint8Array ? again(bytes.length, () => files.replace(name, bytes)) : files.replace(name, bytes),
    remove: (name) => files.remove(name),
    makeDir: (dir) => again(0, () => files.makeDir(dir)),
    removeDir: (dir) => files.removeDir(dir),
    syncDir: (dir) => files.syncDir(dir),
  };
}

class GuardedAppendFile implements AppendFile {
  readonly #file: AppendFile;
  readonly #onFull: OnFull;
  /** Bytes that are durable, and what was appended behind them. */
  #synced: number;
  #pieces: Uint8Array[] = [];

  constructor(file: AppendFile, onFull: OnFull) {
    this.#file = file;
    this.#onFull = onFull;
    this.#synced = file.size;
  }

  get size(): number {
    return this.#file.size;
  }

  append(bytes: Uint8Array): Promise<void> {
    this.#pieces.push(bytes);
    return this.#file.append(bytes).catch((error: unknown) => this.#again(error));
  }

  async sync(): Promise<void> {
    for (;;) {
      try {
        await this.#file.sync();
        break;
      } catch (error) {
        await this.#again(error);
      }
    }
    this.#pieces = [];
    this.#synced = this.#file.size;
  }

  async truncate(size: number): Promise<void> {
    this.#pieces = [];
    await this.#file.truncate(size);
    this.#synced = size;
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  /** Everything behind what is durable is written anew, so that nothing rests on what a failed write left. */
  async #again(failure: unknown): Promise<void> {
    for (let error = failure; ; ) {
      const length = this.#pieces.reduce((sum, piece) => sum + piece.length, 0);
      if (!isFull(error) || !(await this.#onFull(length))) throw error;
      try {
        await this.#file.truncate(this.#synced);
        for (const piece of this.#pieces) await this.#file.append(piece);
        return;
      } catch (next) {
        error = next;
      }
    }
  }
}
