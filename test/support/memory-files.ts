// A file system in memory for tests without crashes: every write is durable at once. Counts reads, so that a test can
// assert what is not read.
import type { AppendFile, Files } from '../../src/store/files.ts';

function missing(name: string): Error {
  return Object.assign(new Error(`no such file: ${name}`), { code: 'ENOENT' });
}

export class MemoryFiles implements Files {
  readonly contents = new Map<string, Uint8Array>();
  reads = 0;

  #get(name: string): Uint8Array {
    const bytes = this.contents.get(name);
    if (!bytes) throw missing(name);
    return bytes;
  }

  async list(dir: string): Promise<string[]> {
    const prefix = dir === '' || dir === '.' ? '' : `${dir}/`;
    const names = [...this.contents.keys()].filter((name) => name.startsWith(prefix));
    return names.map((name) => name.slice(prefix.length)).filter((name) => !name.includes('/'));
  }

  async exists(name: string): Promise<boolean> {
    return this.contents.has(name);
  }

  async size(name: string): Promise<number> {
    return this.#get(name).length;
  }

  async read(name: string): Promise<Uint8Array> {
    this.reads++;
    return this.#get(name).slice();
  }

  async readAt(name: string, offset: number, length: number): Promise<Uint8Array> {
    this.reads++;
    return this.#get(name).slice(offset, offset + length);
  }

  async openAppend(name: string, create: boolean): Promise<AppendFile> {
    if (create && this.contents.has(name)) throw Object.assign(new Error(`exists: ${name}`), { code: 'EEXIST' });
    if (create) this.contents.set(name, new Uint8Array(0));
    const get = (): Uint8Array => this.#get(name);
    const set = (bytes: Uint8Array): void => void this.contents.set(name, bytes);
    return {
      get size() {
        return get().length;
      },
      append: async (bytes) => set(Buffer.concat([get(), bytes])),
      sync: async () => {},
      trim: async () => {},
      truncate: async (size) => set(get().slice(0, size)),
      close: async () => {},
    };
  }

  async replace(name: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    const parts: Uint8Array[] = [];
    if (bytes instanceof Uint8Array) parts.push(bytes);
    else for await (const part of bytes) parts.push(part);
    this.contents.set(name, Buffer.concat(parts));
  }

  async remove(name: string): Promise<void> {
    if (!this.contents.delete(name)) throw missing(name);
  }

  async makeDir(): Promise<void> {}

  async removeDir(dir: string): Promise<void> {
    for (const name of [...this.contents.keys()]) if (name.startsWith(`${dir}/`)) this.contents.delete(name);
  }

  async syncDir(): Promise<void> {}
}
