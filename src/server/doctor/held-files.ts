// The files of a running appliance as they were at one commit each, for whoever only reads: what was written since is not there.
import type { Files } from '../../store/files.ts';
import type { HeldFile } from '../../store/hold.ts';
import { listedFiles } from '../listed-files.ts';

export function heldFiles(files: Files, held: readonly HeldFile[]): Files {
  const byName = new Map(held.map((file) => [file.name, file]));
  return listedFiles(byName, 'who only looks writes nothing', (fileOf) => ({
    read: async (name) => files.readAt(name, 0, fileOf(name).bytes),
    readAt: async (name, offset, length) =>
      files.readAt(name, offset, Math.max(0, Math.min(length, fileOf(name).bytes - offset))),
  }));
}
