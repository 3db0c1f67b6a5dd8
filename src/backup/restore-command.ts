// `kms restore`: an appliance from a backup file or from a directory that was shipped to, in a new data directory.
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { equalBytes } from '../crypto/bytes.ts';
import { defaultKeyFile, readKeyFile, writeKeyFile } from '../custody/key-file.ts';
import type { OpenedSeal } from '../custody/unlock.ts';
import { type KeyOptions, unseal } from '../custody/unsealer.ts';
import { KmsError, systemError } from '../errors.ts';
import { dataDirState, inDir, makeAndHold } from '../platform/data-dir.ts';
import { systemWorld } from '../platform/environment.ts';
import { foreignFile } from '../platform/foreign-files.ts';
import { nodeFiles } from '../platform/node-files.ts';
import { sqlWasm } from '../platform/program-files.ts';
import { openBackup, sealOf, sourceOf } from './read.ts';
import { type RestoredAppliance, type RestoreSource, restoredNames, restoreInto } from './restore.ts';
import { shippedSource } from './ship-source.ts';

export interface RestoreOptions extends KeyOptions {
  /** The backup file, or the directory that was shipped to. */
  readonly from: string;
  /** The new data directory: missing, empty, or left by a restore that was cut off. */
  readonly data: string;
  /** Of a shipped directory, as it was at this time (epoch milliseconds); the newest when absent. */
  readonly to?: number | undefined;
}

export interface RestoreResult extends RestoredAppliance {
  readonly data: string;
  /** Of which time the restored data are. */
  readonly madeAt: string;
  readonly applianceId: string;
  /** The key file, where one opened it: at its default place, unless another key's is there. */
  readonly keyFile?: string;
  /** Whether it was copied there. */
  readonly keyFileMade: boolean;
}

export async function restoreAppliance(options: RestoreOptions): Promise<RestoreResult> {
  const data = resolve(options.data);
  await refuseUnlessNew(data);
  const { unsealed, source } = await findSource(options, data);
  try {
    const { lock, giveUp } = await makeAndHold(data);
    const made: string[] = [];
    try {
      const state = await refuseUnlessNew(data);
      // A recovery kit belongs in a safe, not beside the data.
      const key = await placeKey(data, unsealed.slot.kind === 'recovery-kit' ? undefined : unsealed.place);
      if (key.keyFile !== undefined && key.keyFileMade) made.push(key.keyFile);
      // What a restore left that was cut off says so, and stays.
      if (state === 'empty') made.push(...restoredNames.map((name) => inDir(data, name)));
      const stores = { root: data, files: nodeFiles(data), wasm: await sqlWasm() };
      const restored = await restoreInto(stores, unsealed.seal, source, systemWorld());
      lock.release();
      return { ...restored, ...key, applianceId: unsealed.seal.applianceId, data, madeAt: source.origin.madeAt };
    } catch (error) {
      // Why it failed is what has to be said, also where this does.
      await giveUp(made).catch(() => {});
      throw error;
    }
  } catch (error) {
    throw systemError(error, data);
  } finally {
    unsealed.seal.wipe();
  }
}

/** Answers what it is. */
async function refuseUnlessNew(data: string): Promise<'missing' | 'empty' | 'unrestored'> {
  const state = await dataDirState(data);
  if (state === 'missing' || state === 'empty' || state === 'unrestored') return state;
  throw new KmsError('refused', `${data}: is not empty; nothing was changed`, {
    hint: 'restore into a new directory with --data NEWDIR, then serve that one',
  });
}

export async function findSource(
  { from, to, ...keys }: RestoreOptions,
  data: string,
): Promise<{ unsealed: OpenedSeal; source: RestoreSource }> {
  const path = resolve(from);
  try {
    if ((await stat(path)).isDirectory()) return await shippedSource(path, { ...keys, data }, to);
    if (to !== undefined) {
      throw new KmsError('usage', '--to goes with a directory that was shipped to; a backup is of one time', {
        hint: 'leave --to out, or give the directory of `kms serve --ship-to`',
      });
    }
    const { files, name } = await foreignFile(path);
    const backup = await openBackup(files, name);
    const unsealed = await unseal(await sealOf(files, backup), `the seal in ${from}`, { ...keys, data });
    return { unsealed, source: await sourceOf(files, backup, unsealed.seal) };
  } catch (error) {
    throw systemError(error, path);
  }
}

/** The key file at the new directory's default place: a copy, unless one is there. Another key's stays. */
export async function placeKey(
  data: string,
  from: string | undefined,
): Promise<Pick<RestoreResult, 'keyFile' | 'keyFileMade'>> {
  if (from === undefined) return { keyFileMade: false };
  const keyFile = defaultKeyFile(data);
  if (from === keyFile) return { keyFile, keyFileMade: false };
  const secret = await readKeyFile(from);
  if (!secret) throw new KmsError('unavailable', `${from}: the key file is gone`);
  const there = await readKeyFile(keyFile);
  try {
    if (there) return { keyFile: equalBytes(there, secret) ? keyFile : from, keyFileMade: false };
    await writeKeyFile(keyFile, secret);
    return { keyFile, keyFileMade: true };
  } finally {
    secret.fill(0);
    there?.fill(0);
  }
}
