// The files of a running appliance as they were at one commit each, for whoever only reads: what was written since is not there.
import { KmsError } from '../../errors.ts';
import type { Files } from '../../store/files.ts';
import type { HeldFile } from '../../store/hold.ts';

export function heldFiles(files: Files, held: readonly HeldFile[]): Files {
  const sizes = new Map(held.map(({ name, bytes }) => [name, bytes]));
  const sizeOf = (name: string): number => {
    const size = sizes.get(name);
    if (size === undefined) throw Object.assign(new Error(`ENOENT: ${name}`), { code: 'ENOENT' });
    return size;
  };
  const refuse = async (): Promise<never> => {
    throw new KmsError('internal', 'who only looks writes nothing');
  };
  return {
    list: async (dir) =>
      [...sizes.keys()]
        .filter((name) => name.startsWith(`${dir}/`) && !name.slice(dir.length + 1).includes('/'))
        .map((name) => name.slice(dir.length + 1)),
    exists: async (name) => sizes.has(name),
    size: async (name) => sizeOf(name),
    read: async (name) => files.readAt(name, 0, sizeOf(name)),
    readAt: async (name, offset, length) =>
      files.readAt(name, offset, Math.max(0, Math.min(length, sizeOf(name) - offset))),
    openAppend: refuse,
    replace: refuse,
    remove: refuse,
    makeDir: refuse,
    removeDir: refuse,
    syncDir: refuse,
  };
}
