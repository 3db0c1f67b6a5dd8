// The files in a backup as if they lay in a data directory, for whoever only reads them.
import { KmsError } from '../../errors.ts';
import type { Files } from '../../store/files.ts';
import type { BackupPart } from './read.ts';
import { pieceLength } from './write.ts';

export function backupFiles(
  files: Pick<Files, 'readAt'>,
  { name: backup, parts }: { readonly name: string; readonly parts: ReadonlyMap<string, BackupPart> },
): Files {
  const partOf = (name: string): BackupPart => {
    const part = parts.get(name);
    if (!part) throw Object.assign(new Error(`ENOENT: ${name}`), { code: 'ENOENT' });
    return part;
  };
  const readAt = async (name: string, offset: number, length: number): Promise<Uint8Array> => {
    const part = partOf(name);
    const most = Math.max(0, Math.min(length, part.bytes - offset));
    return files.readAt(backup, part.offset + offset, most);
  };
  const refuse = async (): Promise<never> => {
    throw new KmsError('internal', 'a backup is not written to');
  };
  return {
    list: async (dir) =>
      [...parts.keys()]
        .filter((name) => name.startsWith(`${dir}/`) && !name.slice(dir.length + 1).includes('/'))
        .map((name) => name.slice(dir.length + 1)),
    exists: async (name) => parts.has(name),
    size: async (name) => partOf(name).bytes,
    async read(name) {
      const { bytes } = partOf(name);
      const whole = new Uint8Array(bytes);
      for (let at = 0; at < bytes; at += pieceLength) whole.set(await readAt(name, at, pieceLength), at);
      return whole;
    },
    readAt,
    openAppend: refuse,
    replace: refuse,
    remove: refuse,
    makeDir: refuse,
    removeDir: refuse,
    syncDir: refuse,
  };
}
