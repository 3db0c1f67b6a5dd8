// The requirements on a file system for an appliance or copies of one: they are tried before anything else is written
// there, and failures are explained in words. Also how to name a new file on file systems without hard links.
import { link, open, rename, stat, statfs, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { toHex } from '../crypto/bytes.ts';
import { systemRandom } from '../crypto/random.ts';
import { KmsError, systemCode, systemRefusal } from '../errors.ts';
import type { AppendFile, Files } from '../store/files.ts';
import { userId } from './environment.ts';
import { nodeFiles } from './node-files.ts';

/** The file of a trial in a data directory; a trial that was cut off may leave it. */
export const trialFile = 'kms.trial';

/**
 * A data directory must keep its contents to its owner; other directories may be shared, and are reached by a port that
 * leads nowhere else.
 */
type Trial = (
  | { readonly isPrivate: true; readonly files?: Files }
  | { readonly isPrivate: false; readonly files: Files }
) & { readonly modeOf?: (path: string) => Promise<number> };

/**
 * Throws `refused` with what the file system of `dir`, which must exist, cannot do. In a shared directory the trial
 * file has a random name.
 */
export async function tryFileSystem(dir: string, trial: Trial): Promise<void> {
  const { isPrivate, files = nodeFiles(dir), modeOf = modeOfPath } = trial;
  const name = isPrivate ? trialFile : `.kms-trial-${toHex(systemRandom(6))}`;
  const clear = async (): Promise<void> => {
    for (const each of [name, `${name}.tmp`]) await files.remove(each).catch(() => {});
  };
  await clear();
  try {
    for (const [deed, run] of steps(files, name)) {
      await run().catch((cause) => {
        throw cannot(dir, deed, cause);
      });
      if (!isPrivate || !(await files.exists(name))) continue;
      const mode = await modeOf(join(dir, name));
      if ((mode & 0o077) !== 0) throw withoutModes(dir, mode);
    }
  } finally {
    await clear();
  }
}

/** Sizes of a log's header, and of more than a page behind it, with room. */
const few = new Uint8Array(100);
const some = new Uint8Array(10_000);
const room = 8192;

/** Uses of files by stores, in their order: each step relies on the file that the step before it left. */
function steps(files: Files, name: string): readonly (readonly [deed: string, run: () => Promise<void>])[] {
  const open = async (create: boolean, use: (file: AppendFile) => Promise<void>): Promise<void> => {
    const file = await files.openAppend(name, create);
    await use(file).finally(() => file.close());
  };
  return [
    ['make a file', () => open(true, async () => {})],
    ['sync a directory', () => files.syncDir('.')],
    ['replace a file by another', () => files.replace(name, few)],
    [
      'write to a file and sync it',
      () =>
        open(false, async (file) => {
          await file.append(some, room);
          await file.sync();
          await file.append(some);
          await file.sync();
        }),
    ],
    ['shorten a file', () => open(false, (file) => file.truncate(1))],
    ['remove a file', () => files.remove(name)],
  ];
}

function cannot(dir: string, deed: string, cause: unknown): unknown {
  if (cause instanceof KmsError) return cause;
  const [reason, hint] = systemRefusal(cause) ?? [];
  if (reason === undefined) return cause;
  const isUnable = unsupported.has(systemCode(cause) ?? '');
  return new KmsError('refused', `${dir}: cannot ${deed} there: ${reason}`, {
    hint: isUnable ? 'choose a directory on another file system; nothing was made' : hint,
    cause,
  });
}

/** Error codes of calls that a file system does not support. */
const unsupported: ReadonlySet<string> = new Set(['EINVAL', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP', 'ENOTSUPP', 'ENOTTY']);

async function modeOfPath(path: string): Promise<number> {
  return (await stat(path)).mode;
}

/** The error for a path whose mode is fixed by the mount and lets others in. */
export function withoutModes(path: string, mode: number): KmsError {
  const shown = (mode & 0o777).toString(8).padStart(4, '0');
  return new KmsError('refused', `${path}: its file system keeps no modes, and lets others read it (mode ${shown})`, {
    hint: `${mountAlone()}, or choose a place on another file system`,
  });
}

/** How to mount a file system without modes for one user. */
export function mountAlone(): string {
  const user = `uid=${userId() ?? 0}`;
  return `mount it for this user alone: ${user},umask=077 (vfat, exFAT, NTFS), ${user},file_mode=0600,dir_mode=0700 (CIFS)`;
}

/** Types from statfs(2) of file systems that may ignore modes: vfat, exFAT, NTFS (two), SMB (three), FUSE. */
const modeless: readonly number[] = [
  ...[0x4d44, 0x2011bab0, 0x5346544e, 0x7366746e],
  ...[0xff534d42, 0xfe534d42, 0x517b, 0x65735546],
];

/** Whether chmod may have no effect at `path`. */
export async function mayKeepNoModes(path: string): Promise<boolean> {
  const type = await statfs(path).then(
    (found) => found.type,
    () => 0,
  );
  return modeless.includes(type >>> 0);
}

/**
 * Renames the file `draft` to `path` in the same directory; fails with `EEXIST` if that name is taken. A hard link
 * never replaces anything; without links, the name is first taken with an empty file, which the draft replaces.
 * `linked`: makes a link.
 */
export async function giveName(draft: string, path: string, linked = link): Promise<void> {
  try {
    await linked(draft, path);
  } catch (error) {
    if (!isWithoutLinks(error)) throw error;
    await (await open(path, 'wx', 0o600)).close();
    return rename(draft, path).catch(async (failure) => {
      await unlink(path);
      throw failure;
    });
  }
  await unlink(draft);
}

export function isWithoutLinks(error: unknown): boolean {
  const code = systemCode(error) ?? '';
  return unsupported.has(code) || code === 'EPERM' || code === 'EMLINK';
}
