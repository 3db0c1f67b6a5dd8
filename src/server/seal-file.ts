// The seal of a data directory: read, and opened with the custodian that can be had. Changes nothing.
import { readFile } from 'node:fs/promises';
import type { KeySources } from './custody/key-sources.ts';
import { type OpenedSeal, type SealBytes, unlockSeal } from './custody/unlock.ts';
import { inDir, sealFile } from './data-dir.ts';
import { fileTrouble } from './trouble.ts';

export async function readSealFile(data: string): Promise<SealBytes> {
  const name = inDir(data, sealFile);
  const bytes = await readFile(name).catch((error: unknown) => {
    throw fileTrouble(error, name);
  });
  return { bytes, name };
}

/** `given` is a key file, or all that may give the key. */
export async function openSealFile(data: string, given: KeySources | string | undefined): Promise<OpenedSeal> {
  const sources = typeof given === 'object' ? given : { keyFile: given };
  return unlockSeal(await readSealFile(data), data, sources);
}
