// The copies of files from which an appliance, or a trial of one, is restored.
import { KmsError } from '../errors.ts';
import { diskSpace, inUnits } from '../platform/disk.ts';
import type { Files } from '../store/files.ts';
import type { Summary } from './format.ts';
import type { ExpectedStore } from './prove.ts';

export interface RestoredFile {
  /** Path within the data directory. */
  readonly name: string;
  readonly bytes: number;
  read(): AsyncIterable<Uint8Array>;
}

/** The data to restore. */
export interface RestoreSource {
  /** The seal file. */
  readonly seal: Uint8Array;
  readonly stores: readonly (ExpectedStore & { readonly files: readonly RestoredFile[] })[];
  readonly summary: Summary;
  /** For the activity log: the kind of source, and the time of its data. */
  readonly origin: { readonly kind: 'backup' | 'shipped'; readonly madeAt: string };
}

/** Copies only the files, for a trial beside their appliance. */
export async function copyFiles(
  { files }: { readonly files: Files },
  { stores }: Pick<RestoreSource, 'stores'>,
): Promise<void> {
  for (const { dir, files: copied } of stores) {
    await files.makeDir(dir);
    for (const { name, read } of copied) await files.replace(name, read());
  }
}

/** Part of the free bytes that a restore leaves for the others who use the disk, and the most that it leaves. */
const leftFree = { part: 1 / 20, most: 64 * 1024 * 1024 };

/**
 * Throws `refused` unless all of it fits on the disk of `root`: files in a shipped directory are as long as others made
 * them, and nothing proves them before they are here.
 */
export async function needRoomFor(
  { stores }: Pick<RestoreSource, 'stores'>,
  root: string,
  freeBytes = async () => (await diskSpace(root)).free,
): Promise<void> {
  const bytes = stores.flatMap(({ files }) => files).reduce((sum, file) => sum + file.bytes, 0);
  const free = await freeBytes();
  if (bytes <= free - Math.min(free * leftFree.part, leftFree.most)) return;
  throw new KmsError('refused', `${root}: ${inUnits(bytes)} are to be restored, and ${inUnits(free)} are free there`, {
    hint: 'give a directory on a larger disk; if the appliance never had as much, find out who changed what is restored',
  });
}
