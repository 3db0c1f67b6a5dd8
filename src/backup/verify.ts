// Verifies that a backup restores without restoring it: on a worker thread it is compared with its digests, restored
// into a temporary directory or read in place, and every store in it is proven.

import { resolve } from 'node:path';
import { unless } from '../client/unless.ts';
import { type KeyOptions, unseal } from '../custody/unsealer.ts';
import { KmsError, systemError } from '../errors.ts';
import { sealName } from '../platform/data-dir.ts';
import { type ForeignFiles, foreignFile, foreignFiles } from '../platform/foreign-files.ts';
import type { ForeignPlace } from '../platform/foreign-root.ts';
import { sqlWasm, startWorker } from '../platform/program-files.ts';
import { endThread } from '../platform/threads/ending.ts';
import {
  answerOf,
  type KeysAsData,
  keysAsData,
  keysFromData,
  resultOf,
  type WorkAnswerOf,
} from '../platform/threads/jobs.ts';
import type { Seal } from '../seal/seal.ts';
import type { Manifest, Summary } from './format.ts';
import { needWhole, type Proof, proveStores } from './prove.ts';
import { backupFiles, checkDigests, filesOf, openBackup, readSummary, sealOf } from './read.ts';
import { copyFiles } from './restore-source.ts';

interface Verified {
  readonly manifest: Manifest;
  readonly bytes: number;
  /** Absent without a master key: then only the digests were compared. */
  readonly proof?: Proof;
}

/**
 * Throws `corrupt` if a byte is changed, missing or surplus, `refused` for a wrong master key. Stops when `signal` is
 * aborted.
 */
export async function verifyBackup(name: string, keys: KeyOptions, signal = unaborted): Promise<Verified> {
  const path = resolve(name);
  try {
    const place = await foreignFile(path);
    const { files } = place;
    const isFile = await files.names(place.name).then(
      () => false,
      () => true,
    );
    if (!isFile) throw isDirectory(path);
    const backup = await openBackup(files, place.name);
    const { manifest, bytes } = backup;
    const sealName = `the seal in ${path}`;
    const sealBytes = await sealOf(files, backup);
    const opened = await unseal(sealBytes, sealName, keys).catch((error: unknown) => {
      if (error instanceof KmsError && error.code === 'sealed' && keys.keys.keyFile === undefined) return undefined;
      throw error;
    });
    if (!opened) {
      await unless(signal, () => checkDigests(files, backup));
      return { manifest, bytes };
    }
    try {
      const proof = await tryRestore(place, opened.seal, { signal });
      needWhole(proof, path);
      return { manifest, bytes, proof };
    } finally {
      opened.seal.wipe();
    }
  } catch (error) {
    throw systemError(error, path);
  }
}

function isDirectory(path: string): KmsError {
  return new KmsError('refused', `${path}: is a directory, and this verifies a backup, which is one file`, {
    hint: 'name a file in it; whether what was shipped restores tells `kms restore DIR --data NEWDIR`, or a standby',
  });
}

/** For callers that never abort. */
const unaborted = new AbortController().signal;

interface Trial {
  /** A temporary directory beside the backup; absent: it is read in place. */
  readonly restoreTo?: string;
  readonly signal?: AbortSignal | undefined;
}

/** A backup file and its directory. */
interface BackupPlace {
  readonly files: ForeignFiles;
  readonly name: string;
}

/** Throws the backup's fault, or an error if `signal` was aborted. `seal` is the backup's, opened. */
export async function tryRestore(
  { files, name }: BackupPlace,
  seal: Seal,
  { restoreTo, signal = unaborted }: Trial = {},
): Promise<Proof> {
  const backup = await openBackup(files, name);
  const summary = readSummary(backup, seal);
  const dirs = backup.manifest.stores.map(({ dir }) => dir);
  for (const dir of dirs) needKeys(seal, dir);
  const keys = dirs.map((dir) => [dir, keysAsData(seal.keysFor(sealName(dir)))] as const);
  if (restoreTo !== undefined) await files.makeNewDir(restoreTo);
  const place = await files.place();
  const work: ProveWork = { kind: 'prove', place, name, keys, summary, wasm: await sqlWasm(), restoreTo };
  const worker = startWorker(work);
  try {
    return resultOf(await unless(signal, () => answerOf<WorkAnswerOf<Proof>>(worker, 'a tried restore')));
  } finally {
    await endThread(worker);
    if (restoreTo !== undefined) await files.removeDir(restoreTo);
  }
}

function needKeys(seal: Seal, dir: string): void {
  if (seal.stores.includes(sealName(dir))) return;
  throw new KmsError('corrupt', `${dir}: the seal in the backup has no key for it`, { hint: 'use another backup' });
}

/** Proves a backup. */
export interface ProveWork {
  readonly kind: 'prove';
  /** The directory of the backup file, and its name there. */
  readonly place: ForeignPlace;
  readonly name: string;
  readonly keys: readonly (readonly [dir: string, keys: KeysAsData])[];
  readonly summary: Summary;
  readonly wasm: Uint8Array;
  /** Restored first into this new directory beside it, if given. */
  readonly restoreTo: string | undefined;
}

/** The thread's part. */
export async function proveBackup({ place, name, keys, summary, wasm, restoreTo }: ProveWork): Promise<Proof> {
  const files = foreignFiles(place);
  const backup = await openBackup(files, name);
  await checkDigests(files, backup);
  const held = new Map(keys.map(([dir, data]) => [dir, keysFromData(data)]));
  const keysOf = (dir: string) => {
    const found = held.get(dir);
    if (!found) throw new KmsError('corrupt', `${dir}: there is no key for it`);
    return found;
  };
  const { stores } = backup.manifest;
  if (restoreTo === undefined) return proveStores({ files: backupFiles(files, backup), wasm, keysOf }, stores, summary);
  const restored = files.beneath(restoreTo);
  try {
    await copyFiles({ files: restored }, { stores: filesOf(files, backup) });
    return await proveStores({ files: restored, wasm, keysOf }, stores, summary);
  } catch (error) {
    throw systemError(error, place.path);
  }
}
