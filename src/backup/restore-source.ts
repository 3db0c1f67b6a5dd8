// The copies of files from which an appliance, or a trial of one, is restored.
import type { Files } from '../store/files.ts';
import type { Summary } from './format.ts';
import type { ExpectedStore } from './prove.ts';

export interface RestoredFile {
  /** Path within the data directory. */
  readonly name: string;
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
