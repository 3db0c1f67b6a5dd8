// `kms backup verify`: whether a backup restores, found out without restoring it.
import { basename, dirname, resolve } from 'node:path';
import { KmsError } from '../../errors.ts';
import { nodeFiles } from '../../store/node-files.ts';
import { fileTrouble } from '../trouble.ts';
import type { Manifest } from './manifest.ts';
import type { Proof } from './prove.ts';
import { checkDigests, type OpenedBackup, openBackup, sealOf } from './read.ts';
import { tryRestore } from './trial.ts';
import { type KeyOptions, unseal } from './unseal.ts';

export interface Verified {
  readonly manifest: Manifest;
  readonly bytes: number;
  /** Absent where no master key was there: then the digests alone were compared. */
  readonly proof?: Proof;
}

/** Throws `corrupt` where a byte is another, missing or too many, `refused` for a wrong master key. */
export async function verifyBackup(name: string, keys: KeyOptions, cwd = '.'): Promise<Verified> {
  const path = resolve(cwd, name);
  const files = nodeFiles(dirname(path));
  try {
    const backup = await openBackup(files, basename(path));
    const { manifest, bytes } = backup;
    const opened = await unseal(await sealOf(files, backup), `the seal in ${path}`, keys).catch((error: unknown) => {
      if (error instanceof KmsError && error.code === 'sealed' && keys.keys.keyFile === undefined) return undefined;
      throw error;
    });
    if (!opened) {
      await checkDigests(files, backup);
      return { manifest, bytes };
    }
    try {
      return { manifest, bytes, proof: await tryRestore(path, opened.seal) };
    } finally {
      opened.seal.wipe();
    }
  } catch (error) {
    throw fileTrouble(error, path);
  }
}

/** The structure of the backup file alone, whose content is compared as well. */
export async function openBackupFile(path: string): Promise<OpenedBackup> {
  const files = nodeFiles(dirname(resolve(path)));
  const backup = await openBackup(files, basename(path));
  await checkDigests(files, backup);
  return backup;
}
