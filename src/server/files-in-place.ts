// The file port of a data directory that may be taken away from under a running process: nothing is opened by its name, and nothing
// counts as durable, once another directory, or none, stands in its place.
import type { AppendFile, Files } from '../store/files.ts';

/** `needInPlace` throws when the directory is gone. */
export function filesInPlace(files: Files, needInPlace: () => void): Files {
  const first = async <R>(step: () => Promise<R>): Promise<R> => {
    needInPlace();
    return step();
  };
  return {
    list: (dir) => first(() => files.list(dir)),
    exists: (name) => first(() => files.exists(name)),
    size: (name) => first(() => files.size(name)),
    read: (name) => first(() => files.read(name)),
    readAt: (name, offset, length) => first(() => files.readAt(name, offset, length)),
    openAppend: (name, create) =>
      first(async () => new AppendFileInPlace(await files.openAppend(name, create), needInPlace)),
    replace: (name, bytes) => first(() => files.replace(name, bytes)),
    remove: (name) => first(() => files.remove(name)),
    makeDir: (dir) => first(() => files.makeDir(dir)),
    removeDir: (dir) => first(() => files.removeDir(dir)),
    syncDir: (dir) => first(() => files.syncDir(dir)),
  };
}

class AppendFileInPlace implements AppendFile {
  readonly #file: AppendFile;
  readonly #needInPlace: () => void;

  constructor(file: AppendFile, needInPlace: () => void) {
    this.#file = file;
    this.#needInPlace = needInPlace;
  }

  get size(): number {
    return this.#file.size;
  }

  append(bytes: Uint8Array): Promise<void> {
    return this.#file.append(bytes);
  }

  async sync(): Promise<void> {
    await this.#file.sync();
    this.#needInPlace();
  }

  truncate(size: number): Promise<void> {
    return this.#file.truncate(size);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
