// File operations of an upgrade, each repeatable after a cut: the new executable beside the current one and in its
// place, the data copied aside and back. Nothing counts before it is durable.
import { constants } from 'node:fs';
import {
  chmod,
  copyFile,
  type FileHandle,
  lchown,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  statfs,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { toHex } from '../crypto/bytes.ts';
import { runningSha256 } from '../crypto/hash.ts';
import { KmsError, systemCode, systemError } from '../errors.ts';
import { isJsonObject } from '../model/json.ts';
import { inDir, sealFile, socketFile, upgradeCopy, upgradeJournal, upgradeLock } from '../platform/data-dir.ts';
import { inUnits } from '../platform/disk.ts';
import { actingAs } from '../platform/environment.ts';
import { isWithoutLinks } from '../platform/file-system.ts';
import { lockFile, notedPid, pidFile } from '../platform/lock.ts';
import type { Journal } from './journal.ts';

/** Called before each change on disk; tests end the process there. */
export type Reached = (point: string) => Promise<void> | void;

/** Path of the former executable after an upgrade. */
export const previousOf = (executable: string): string => `${executable}.previous`;
const newOf = (executable: string): string => `${executable}.new`;

/**
 * Runs `work` in the data directory as its owner: when root upgrades another user's service, links that the service put
 * there could lead root elsewhere.
 */
export async function asOwner<T>(data: string, work: () => Promise<T>): Promise<T> {
  return actingAs(await stat(data), work);
}

/** Whether this process is root and the data directory belongs to another user. */
async function isAnothers(data: string): Promise<boolean> {
  return process.geteuid?.() === 0 && (await stat(data)).uid !== 0;
}

/** The part of a journal that decides which programs run, and where executables go. */
type Orders = Pick<Journal, 'token' | 'executable' | 'from' | 'to' | 'service'>;

const ordersOf = (executable: string): string => `${executable}.upgrade-orders`;

/**
 * Keeps root's own copy of the orders beside the executable, since the data directory's owner could change the journal.
 */
export async function keepOrders(data: string, journal: Journal): Promise<void> {
  if (!(await isAnothers(data))) return;
  const { token, executable, from, to, service } = journal;
  const path = ordersOf(executable);
  const orders: Orders = { token, executable, from, to, service };
  try {
    await rm(path, { force: true });
    await writeDurably(path, Buffer.from(`${JSON.stringify(orders)}\n`), { mode: 0o600, uid: 0, gid: 0 });
    await syncDir(dirname(path));
  } catch (error) {
    throw systemError(error, path);
  }
}

/**
 * The journal with root's own copy of the orders in place of those in the data directory, which its owner could change.
 * Throws `refused` if root has no copy, and for another user's directory.
 */
export async function underOwnOrders(data: string, journal: Journal): Promise<Journal> {
  const { uid } = await stat(data);
  const me = process.geteuid?.() ?? uid;
  if (uid === me || uid === 0) return journal;
  const orders = me === 0 ? await readOrders(ordersOf(journal.executable)) : undefined;
  if (orders?.token === journal.token) return { ...journal, ...orders };
  const path = inDir(data, upgradeJournal);
  throw new KmsError(
    'refused',
    `${path}: not from an upgrade that this user began, and ${data} belongs to another user`,
    {
      hint: `let the owner of the directory run \`kms upgrade --resume\`; if there was no upgrade, find out who wrote this file, and remove it`,
    },
  );
}

async function readOrders(path: string): Promise<Orders | undefined> {
  let handle: FileHandle;
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const info = await handle.stat();
    if (!info.isFile() || info.uid !== 0 || (info.mode & 0o022) !== 0) return undefined;
    const value: unknown = JSON.parse(await handle.readFile('utf8'));
    // Cast: only root can write it, and atomically.
    return isJsonObject(value) ? (value as unknown as Orders) : undefined;
  } catch {
    return undefined;
  } finally {
    await handle.close();
  }
}

/** SHA-256 in hex; undefined if the file does not exist. */
export async function digestOf(path: string): Promise<string | undefined> {
  let handle: FileHandle;
  try {
    handle = await open(path);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw systemError(error, path);
  }
  try {
    const hash = runningSha256();
    for await (const piece of handle.createReadStream({ autoClose: false, highWaterMark: 1 << 20 })) hash.update(piece);
    return toHex(hash.digest());
  } finally {
    await handle.close();
  }
}

/** Writes the new executable beside the current one, with the same owner and mode. */
export async function stageExecutable(executable: string, bytes: Uint8Array): Promise<void> {
  const path = newOf(executable);
  try {
    const { mode, uid, gid } = await stat(executable);
    await rm(path, { force: true });
    await writeDurably(path, bytes, { mode: mode & 0o777, uid, gid });
  } catch (error) {
    await rm(path, { force: true }).catch(() => {});
    throw systemError(error, path);
  }
}

/** Replaces the executable with the staged one; the former stays beside it. */
export async function swapExecutable(executable: string, from: string, reached: Reached): Promise<void> {
  if ((await digestOf(executable)) === from) await linkOver(executable, previousOf(executable), reached);
  await reached('rename the new executable');
  await rename(newOf(executable), executable);
  await syncDir(dirname(executable));
}

/** Restores the former executable. Throws `refused` if it is missing. */
export async function swapExecutableBack(executable: string, from: string, reached: Reached): Promise<void> {
  if ((await digestOf(executable)) !== from) {
    const previous = previousOf(executable);
    if ((await digestOf(previous)) !== from) {
      throw new KmsError(
        'refused',
        `${previous}: expected the executable from before the upgrade, but it is not there`,
        {
          hint: `put the former kms back to ${executable}, then run \`kms upgrade --resume\``,
        },
      );
    }
    await linkOver(previous, executable, reached);
  }
  await forgetStaged(executable);
}

/** Removes leftovers of a cut-off upgrade beside the executable. */
export async function forgetStaged(executable: string): Promise<void> {
  for (const name of [newOf(executable), `${executable}.tmp`, `${previousOf(executable)}.tmp`]) {
    await rm(name, { force: true });
  }
}

/** Makes `name` another name of `path`, atomically; without hard links, the name of a copy. */
async function linkOver(path: string, name: string, reached: Reached): Promise<void> {
  const temporary = `${name}.tmp`;
  await rm(temporary, { force: true });
  await reached('link an executable');
  await link(path, temporary).catch(async (error) => {
    if (!isWithoutLinks(error)) throw error;
    await copyFile(path, temporary, constants.COPYFILE_EXCL);
    await syncFile(temporary);
  });
  await reached('rename an executable');
  await rename(temporary, name);
  // If both names were already of one file, the rename leaves both.
  await rm(temporary, { force: true });
  await syncDir(dirname(name));
}

/** Entries that an upgrade copies: all but a process's own files, finished backups, and the upgrade's own files. */
async function entriesOf(data: string): Promise<string[]> {
  const own = [
    ...[lockFile, pidFile, socketFile, upgradeLock],
    ...[upgradeJournal, `${upgradeJournal}.tmp`, upgradeCopy, `${upgradeCopy}.tmp`],
  ];
  const names = await readdir(data);
  return names.filter((name) => !own.includes(name) && !name.endsWith('.kms-backup')).sort();
}

/** Throws `refused` if the disk has no room for a second copy of the data, or if they cannot be copied. */
export async function needRoomForCopy(data: string): Promise<void> {
  const owner = (await isAnothers(data)) ? (await stat(data)).uid : undefined;
  const sizes = await Promise.all((await entriesOf(data)).map((name) => sizeOf(join(data, name), owner)));
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  const { bsize, bavail } = await statfs(data);
  const spare = 32 * 1024 * 1024;
  if (bavail * bsize >= bytes + spare) return;
  throw new KmsError(
    'refused',
    `${data}: an upgrade copies the data aside, which takes ${inUnits(bytes + spare)}, but only ${inUnits(bavail * bsize)} are free`,
    { hint: 'make room on that disk; nothing was changed' },
  );
}

/** `owner`: the required owner of the files, if they are copied as that user. */
async function sizeOf(path: string, owner: number | undefined): Promise<number> {
  const info = await lstat(path).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (!info) return 0;
  if (info.isSymbolicLink()) {
    throw new KmsError('refused', `${path}: is a symbolic link, and what it leads to would not be copied aside`, {
      hint: 'put the files themselves there; nothing was changed',
    });
  }
  if (owner !== undefined && info.uid !== owner) {
    throw new KmsError('refused', `${path}: belongs to user ${info.uid}, and the data directory to user ${owner}`, {
      hint: `run: chown ${owner} ${path}; nothing was changed`,
    });
  }
  if (!info.isDirectory()) return info.size;
  const sizes = (await readdir(path)).map((name) => sizeOf(join(path, name), owner));
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

/** Copies the data aside. The caller holds the lock and acts as the data's owner. Leaves a whole copy, or none. */
export async function copyAside(data: string, reached: Reached): Promise<void> {
  const draft = inDir(data, `${upgradeCopy}.tmp`);
  try {
    await forgetCopy(data);
    await mkdir(draft, { mode: 0o700 });
    await giveTo(await stat(data), draft);
    for (const name of await entriesOf(data)) await copyTree(join(data, name), join(draft, name), reached);
    await syncDir(draft);
    await reached('name the copy');
    await rename(draft, inDir(data, upgradeCopy));
    await syncDir(data);
  } catch (error) {
    // Going back may need the space.
    await forgetCopy(data).catch(() => {});
    throw systemError(error, draft);
  }
}

async function copyTree(from: string, to: string, reached: Reached): Promise<void> {
  const info = await lstat(from);
  if (info.isDirectory()) {
    await mkdir(to, { mode: info.mode & 0o777 });
    for (const name of (await readdir(from)).sort()) await copyTree(join(from, name), join(to, name), reached);
    await syncDir(to);
  } else if (info.isFile()) {
    await reached('copy a file');
    await copyFile(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
    await chmod(to, info.mode & 0o777);
    await syncFile(to);
  } else return;
  await giveTo(info, to);
}

/** Only root can change the owner; other users' new files are already theirs. */
async function giveTo({ uid, gid }: { readonly uid: number; readonly gid: number }, path: string): Promise<void> {
  if (process.geteuid?.() === 0) await lchown(path, uid, gid);
}

/** Whether there is a copy of the data, perhaps one being put back. */
export function hasCopy(data: string): Promise<boolean> {
  return lstat(inDir(data, upgradeCopy)).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

/** Removes the data, the seal first: from then on the rest does not count as an appliance. */
export async function clearData(data: string, reached: Reached): Promise<void> {
  const names = await entriesOf(data);
  for (const name of names.toSorted((a, b) => Number(b === sealFile) - Number(a === sealFile))) {
    await reached('remove an entry');
    await rm(join(data, name), { recursive: true, force: true });
  }
  await syncDir(data);
}

/** Moves the copy back into place, the seal last. */
export async function putBack(data: string, reached: Reached): Promise<void> {
  const copy = inDir(data, upgradeCopy);
  if (!(await hasCopy(data))) throw new KmsError('refused', `${copy}: expected the data from before, in a directory`);
  const names = await readdir(copy);
  for (const name of names.toSorted((a, b) => Number(a === sealFile) - Number(b === sealFile))) {
    await reached('put an entry back');
    await rename(join(copy, name), join(data, name));
  }
  await syncDir(data);
}

export function forgetCopy(data: string): Promise<void> {
  return asOwner(data, async () => {
    for (const name of [upgradeCopy, `${upgradeCopy}.tmp`]) {
      await rm(inDir(data, name), { recursive: true, force: true });
    }
  });
}

/** Writes the journal durably, owned by the data directory's owner. */
export function writeJournal(data: string, journal: Journal): Promise<void> {
  const path = inDir(data, upgradeJournal);
  return asOwner(data, async () => {
    try {
      const { uid, gid } = await stat(data);
      const bytes = Buffer.from(`${JSON.stringify(journal, null, 2)}\n`);
      await rm(`${path}.tmp`, { force: true });
      await writeDurably(`${path}.tmp`, bytes, { mode: 0o600, uid, gid });
      await rename(`${path}.tmp`, path);
      await syncDir(data);
    } catch (error) {
      await rm(`${path}.tmp`, { force: true }).catch(() => {});
      throw systemError(error, path);
    }
  });
}

/** Removes the journal with root's orders; the journal may not exist if even the first write failed. */
export async function removeJournal(data: string, { executable }: Journal): Promise<void> {
  await asOwner(data, async () => {
    await rm(inDir(data, upgradeJournal), { force: true });
    await syncDir(data);
  });
  await rm(ordersOf(executable), { force: true });
}

interface Owned {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

async function writeDurably(path: string, bytes: Uint8Array, { mode, uid, gid }: Owned): Promise<void> {
  const handle = await open(path, 'wx', mode);
  try {
    await handle.writeFile(bytes);
    await handle.chown(uid, gid);
    await handle.chmod(mode);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function syncFile(path: string): Promise<void> {
  const handle = await open(path);
  await handle.sync().finally(() => handle.close());
}

async function syncDir(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  await handle.sync().finally(() => handle.close());
}

/**
 * The process that holds the data directory, by its own note; undefined if there is none, and for a process of another
 * user than the directory's owner, who may have noted a process of anybody, which an upgrade would end.
 */
export async function holderOf(data: string): Promise<number | undefined> {
  const pid = await notedPid(inDir(data, pidFile));
  if (pid === undefined) return undefined;
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const [, uid] = /^Uid:\t([0-9]+)\t/m.exec(status) ?? [];
  return uid === String((await stat(data)).uid) ? pid : undefined;
}
