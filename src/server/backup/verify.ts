// `kms backup verify`: whether a backup restores, found out without restoring it.
import { basename, dirname, resolve } from 'node:path';
import { KmsError } from '../../errors.ts';
import { nodeFiles } from '../../store/node-files.ts';
import { fileTrouble } from '../trouble.ts';
import type { Manifest } from './manifest.ts';
import type { Proof } from './prove.ts';
import { checkDigests, openBackup, sealOf } from './read.ts';
import { tryRestore } from './trial.ts';
import { type KeyOptions, unseal } from './unseal.ts';

export interface Verified {
  readonly manifest: Manifest;
  readonly bytes: number;
  /** Absent where no master key was there: then the digests alone were compared. */
  readonly proof?: Proof;
}

/** Throws `corrupt` where a byte is another, missing or too many, `refused` for a wrong master key. */
export async function verifyBackup(path: string, keys: KeyOptions): Promise<Verified> {
  const files = nodeFiles(dirname(resolve(path)));
  const name = basename(path);
  try {
    const backup = await openBackup(files, name);
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
      return { manifest, bytes, proof: await tryRestore(resolve(path), opened.seal) };
    } finally {
      opened.seal.wipe();
    }
  } catch (error) {
    throw fileTrouble(error, path);
  }
}
