// Opens the seal of a data directory with the key file that belongs to it. Changes nothing.
import { readFile } from 'node:fs/promises';
import { systemRandom } from '../crypto/random.ts';
import { parseHeader } from '../seal/header.ts';
import { openSeal, type Seal } from '../seal/seal.ts';
import { inDir, sealFile } from './data-dir.ts';
import { findKeyFile, keyPlaces } from './key-place.ts';
import { fileTrouble } from './trouble.ts';

export async function openSealFile(data: string, keyFile: string | undefined): Promise<{ seal: Seal; place: string }> {
  const name = inDir(data, sealFile);
  const bytes = await readFile(name).catch((error: unknown) => {
    throw fileTrouble(error, name);
  });
  const { header } = parseHeader(bytes, name);
  const { secret, place } = await findKeyFile(keyPlaces(data, keyFile, header.slots));
  try {
    return { seal: openSeal(bytes, secret, systemRandom, name), place };
  } finally {
    secret.fill(0);
  }
}
