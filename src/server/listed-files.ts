// The file port over a fixed list of files that lie elsewhere, for whoever only reads them.
import { KmsError } from '../errors.ts';
import type { Files } from '../store/files.ts';

export interface ListedFile {
  readonly bytes: number;
}

/** `readers` is given how to find a file by its name, which throws as a missing file does. `refusal`: what is said to whoever writes. */
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
