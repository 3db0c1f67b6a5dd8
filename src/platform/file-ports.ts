// File ports over a data directory that may be taken away from under a running process, where nothing is opened by its
// name and nothing counts as durable once another directory, or none, stands in its place; and over a fixed list of
// files that lie elsewhere, for whoever only reads them.
import { KmsError } from '../errors.ts';
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
    read: (name, most) => first(() => files.read(name, most)),
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

  append(bytes: Uint8Array, room?: number, behind?: Uint8Array): Promise<void> {
    return this.#file.append(bytes, room, behind);
  }

  async sync(): Promise<void> {
    await this.#file.sync();
    this.#needInPlace();
  }

  async trim(): Promise<void> {
    this.#needInPlace();
    await this.#file.trim();
  }

  truncate(size: number): Promise<void> {
    return this.#file.truncate(size);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

interface ListedFile {
  readonly bytes: number;
}

/**
 * `readers` is given how to find a file by its name, which throws as a missing file does. `refusal`: what is said to
 * whoever writes.
 */
export function listedFiles<F extends ListedFile>(
  listed: ReadonlyMap<string, F>,
  refusal: string,
  readers: (fileOf: (name: string) => F) => Pick<Files, 'read' | 'readAt'>,
): Files {
  const fileOf = (name: string): F => {
    const file = listed.get(name);
    if (!file) throw Object.assign(new Error(`ENOENT: ${name}`), { code: 'ENOENT' });
    return file;
  };
  const refuse = async (): Promise<never> => {
    throw new KmsError('internal', refusal);
  };
  return {
    list: async (dir) =>
      [...listed.keys()]
        .filter((name) => name.startsWith(`${dir}/`) && !name.slice(dir.length + 1).includes('/'))
        .map((name) => name.slice(dir.length + 1)),
    exists: async (name) => listed.has(name),
    size: async (name) => fileOf(name).bytes,
    ...readers(fileOf),
    openAppend: refuse,
    replace: refuse,
    remove: refuse,
    makeDir: refuse,
    removeDir: refuse,
    syncDir: refuse,
  };
}
