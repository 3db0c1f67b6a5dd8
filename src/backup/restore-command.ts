// `kms restore`: restores an appliance from a backup file or a shipped directory into a new data directory.
import { realpath, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { equalBytes } from '../crypto/bytes.ts';
import { defaultKeyFile, readKeyFile, writeKeyFile } from '../custody/key-file.ts';
import type { OpenedSeal } from '../custody/unlock.ts';
import { type KeyOptions, unseal } from '../custody/unsealer.ts';
import { KmsError, systemError } from '../errors.ts';
import { dataDirState, inDir, makeAndHold } from '../platform/data-dir.ts';
import { systemWorld } from '../platform/environment.ts';
import { foreignFile } from '../platform/foreign-files.ts';
import { nodeFiles } from '../platform/node-files.ts';
import { isOfAnother } from '../platform/ownership.ts';
import { sqlWasm } from '../platform/program-files.ts';
import { openBackup, sealOf, sourceOf } from './read.ts';
import { type RestoredAppliance, restoredNames, restoreInto } from './restore.ts';
import { needRoomFor, type RestoreSource } from './restore-source.ts';
import { shippedSource } from './ship-source.ts';

export interface RestoreOptions extends KeyOptions {
  /** The backup file, or the shipped directory. */
  readonly from: string;
  /** The new data directory: missing, empty, or left over from a restore that was cut off. */
  readonly data: string;
  /** For a shipped directory: the time to restore, in epoch milliseconds. Default: the newest state. */
  readonly to?: number | undefined;
}

export interface RestoreResult extends RestoredAppliance {
  readonly data: string;
  /** Time of the restored data. */
  readonly madeAt: string;
  readonly applianceId: string;
  /** The key file, if one opened the seal: at its default path, unless another key's is there. */
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
      // Leftovers of an earlier restore are marked as such, and stay.
      if (state === 'empty') made.push(...restoredNames.map((name) => inDir(data, name)));
      await needRoomFor(source, data);
      const stores = { root: data, files: nodeFiles(data), wasm: await sqlWasm() };
      const restored = await restoreInto(stores, unsealed.seal, source, systemWorld());
      lock.release();
      return { ...restored, ...key, applianceId: unsealed.seal.applianceId, data, madeAt: source.origin.madeAt };
    } catch (error) {
      // The original error matters more than a failed cleanup.
      await giveUp(made).catch(() => {});
      throw error;
    }
  } catch (error) {
    throw systemError(error, data);
  } finally {
    unsealed.seal.wipe();
  }
}

/** Returns the state of the directory. */
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
      throw new KmsError('usage', '--to goes with a shipped directory; a backup holds one point in time', {
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

/**
 * Copies the key file to the new directory's default path, unless one is there, or another user owns that place.
 * Another key's file stays.
 */
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
    if (await isOfAnother(await realpath(dirname(keyFile)))) return { keyFile: from, keyFileMade: false };
    await writeKeyFile(keyFile, secret);
    return { keyFile, keyFileMade: true };
  } finally {
    secret.fill(0);
    there?.fill(0);
  }
}
