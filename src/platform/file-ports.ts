// Two file ports. One is over a data directory that may be removed under a running process: nothing is opened by name
// and nothing counts as durable once the directory has gone or been replaced. The other is read-only, over a fixed list
// of files that are elsewhere.
import { KmsError } from '../errors.ts';
import type { AppendFile, Files } from '../store/files.ts';

/** `needInPlace` throws once the directory has gone or been replaced. */
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

/** `readers` gets a lookup of files by name, which throws like a missing file. `refusal`: the message for writes. */
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
  const reader = readers(fileOf);
  return {
    list: async (dir) =>
      [...listed.keys()]
        .filter((name) => name.startsWith(`${dir}/`) && !name.slice(dir.length + 1).includes('/'))
        .map((name) => name.slice(dir.length + 1)),
    exists: async (name) => listed.has(name),
    size: async (name) => fileOf(name).bytes,
    ...reader,
    async read(name, most) {
      const { bytes } = fileOf(name);
      if (bytes > most) throw new KmsError('corrupt', `${name}: expected at most ${most} bytes, found ${bytes}`);
      return reader.read(name, most);
    },
    openAppend: refuse,
    replace: refuse,
    remove: refuse,
    makeDir: refuse,
    removeDir: refuse,
    syncDir: refuse,
  };
}
