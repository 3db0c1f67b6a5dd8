// The files in a backup as if they lay in a data directory, for whoever only reads them.
import type { Files } from '../../store/files.ts';
import { listedFiles } from '../listed-files.ts';
import type { BackupPart } from './read.ts';
import { pieceLength } from './write.ts';

export function backupFiles(
  files: Pick<Files, 'readAt'>,
  { name: backup, parts }: { readonly name: string; readonly parts: ReadonlyMap<string, BackupPart> },
): Files {
  return listedFiles(parts, 'a backup is not written to', (partOf) => {
    const readAt = async (name: string, offset: number, length: number): Promise<Uint8Array> => {
      const part = partOf(name);
      const most = Math.max(0, Math.min(length, part.bytes - offset));
      return files.readAt(backup, part.offset + offset, most);
    };
    return {
      async read(name) {
        const { bytes } = partOf(name);
        const whole = new Uint8Array(bytes);
        for (let at = 0; at < bytes; at += pieceLength) whole.set(await readAt(name, at, pieceLength), at);
        return whole;
      },
      readAt,
    };
  });
}
