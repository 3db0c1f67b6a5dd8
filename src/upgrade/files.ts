// What an upgrade does to files, so that each step can be cut off and done again: the new executable beside the one in
// use and in its place, the data aside and back. Nothing counts before it is on the disk.
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
import { lockFile, pidFile } from '../platform/lock.ts';
import type { Journal } from './journal.ts';

/** Told before each change on the disk; for tests, which end the process there. */
export type Reached = (point: string) => Promise<void> | void;

/** Where the executable that was in use before stays after an upgrade. */
export const previousOf = (executable: string): string => `${executable}.previous`;
const newOf = (executable: string): string => `${executable}.new`;

/**
 * Does `work` in the data directory as the user whom it belongs to: root, who upgrades the service of another, could be
 * led elsewhere by links that the service puts there.
 */
export async function asOwner<T>(data: string, work: () => Promise<T>): Promise<T> {
  return actingAs(await stat(data), work);
}

/** Whether this is root, and the data directory belongs to another. */
async function isAnothers(data: string): Promise<boolean> {
  return process.geteuid?.() === 0 && (await stat(data)).uid !== 0;
}

/** Of a journal: what decides which programs are run, and where executables go. */
type Orders = Pick<Journal, 'token' | 'executable' | 'from' | 'to' | 'service'>;

const ordersOf = (executable: string): string => `${executable}.upgrade-orders`;

/** What root keeps for itself of a journal that lies where another user can change it: beside the executable. */
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
 * The journal, with what root kept of it in place of what stands in it. Throws `refused` where root kept nothing, and
 * for a directory of another user.
 */
export async function underOwnOrders(data: string, journal: Journal): Promise<Journal> {
  const { uid } = await stat(data);
  const me = process.geteuid?.() ?? uid;
  if (uid === me || uid === 0) return journal;
  const orders = me === 0 ? await readOrders(ordersOf(journal.executable)) : undefined;
  if (orders?.token === journal.token) return { ...journal, ...orders };
  const path = inDir(data, upgradeJournal);
  throw new KmsError('refused', `${path}: this user began no such upgrade, and ${data} belongs to another`, {
    hint: `let its owner run \`kms upgrade --resume\`; where nobody began an upgrade, find out who wrote it, and remove it`,
  });
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
    // Cast: root alone could write it, and wrote it whole.
    return isJsonObject(value) ? (value as unknown as Orders) : undefined;
  } catch {
    return undefined;
  } finally {
    await handle.close();
  }
}

/** SHA-256 in hex; undefined where there is no such file. */
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

/** Writes the new executable beside the one in use, with its owner and mode. */
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

/** The staged executable takes the place of the one in use, which stays beside it. */
export async function swapExecutable(executable: string, from: string, reached: Reached): Promise<void> {
  if ((await digestOf(executable)) === from) await linkOver(executable, previousOf(executable), reached);
  await reached('rename the new executable');
  await rename(newOf(executable), executable);
  await syncDir(dirname(executable));
}

/** The former executable takes its place again. Throws `refused` where it is nowhere. */
export async function swapExecutableBack(executable: string, from: string, reached: Reached): Promise<void> {
  if ((await digestOf(executable)) !== from) {
    const previous = previousOf(executable);
    if ((await digestOf(previous)) !== from) {
      throw new KmsError('refused', `${previous}: expected the executable of before the upgrade, and it is not there`, {
        hint: `put the former kms back to ${executable}, then run \`kms upgrade --resume\``,
      });
    }
    await linkOver(previous, executable, reached);
  }
  await forgetStaged(executable);
}

/** What a cut off upgrade may have left beside the executable. */
export async function forgetStaged(executable: string): Promise<void> {
  for (const name of [newOf(executable), `${executable}.tmp`, `${previousOf(executable)}.tmp`]) {
    await rm(name, { force: true });
  }
}

/** `name` becomes another name of `path`, at once; where there are no hard links, that of a copy. */
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
  // Where both were names of one file already, the system leaves both.
  await rm(temporary, { force: true });
  await syncDir(dirname(name));
}

/** What an upgrade copies: everything but what belongs to a process, copies that do not change, and its own. */
async function entriesOf(data: string): Promise<string[]> {
  const own = [
    ...[lockFile, pidFile, socketFile, upgradeLock],
    ...[upgradeJournal, `${upgradeJournal}.tmp`, upgradeCopy, `${upgradeCopy}.tmp`],
  ];
  const names = await readdir(data);
  return names.filter((name) => !own.includes(name) && !name.endsWith('.kms-backup')).sort();
}

/** Throws `refused` where the disk has no room for a second copy of the data, or one cannot be made. */
export async function needRoomForCopy(data: string): Promise<void> {
  const owner = (await isAnothers(data)) ? (await stat(data)).uid : undefined;
  const sizes = await Promise.all((await entriesOf(data)).map((name) => sizeOf(join(data, name), owner)));
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  const { bsize, bavail } = await statfs(data);
  const spare = 32 * 1024 * 1024;
  if (bavail * bsize >= bytes + spare) return;
  throw new KmsError(
    'refused',
    `${data}: an upgrade copies the data aside, which takes ${inUnits(bytes + spare)}, and ${inUnits(bavail * bsize)} are free`,
    { hint: 'make room on that disk; nothing was changed' },
  );
}

/** `owner`: whose it has to be, where it is copied as that user. */
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

/** Copies the data aside. The caller has the lock, as the owner of the data. There is a whole copy, or none. */
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
    // The room may be needed to go back.
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

/** Whoever is not root has what it makes already, and can give it to nobody. */
async function giveTo({ uid, gid }: { readonly uid: number; readonly gid: number }, path: string): Promise<void> {
  if (process.geteuid?.() === 0) await lchown(path, uid, gid);
}

/** Whether the data were copied aside, or are being put back. */
export function hasCopy(data: string): Promise<boolean> {
  return lstat(inDir(data, upgradeCopy)).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

/** Removes the data, the seal first: from then on nobody takes what is left for an appliance. */
export async function clearData(data: string, reached: Reached): Promise<void> {
  const names = await entriesOf(data);
  for (const name of names.toSorted((a, b) => Number(b === sealFile) - Number(a === sealFile))) {
    await reached('remove an entry');
    await rm(join(data, name), { recursive: true, force: true });
  }
  await syncDir(data);
}

/** Moves the copy to where the data was, the seal last. */
export async function putBack(data: string, reached: Reached): Promise<void> {
  const copy = inDir(data, upgradeCopy);
  if (!(await hasCopy(data))) throw new KmsError('refused', `${copy}: expected the data of before, in a directory`);
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

/** So that it is there after a crash as it is here, for whoever owns the data directory. */
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

/** And what root kept of it. Where even the first note could not be made there is none. */
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

/** The process that holds the data directory, as it noted itself; undefined where none did. */
export async function holderOf(data: string): Promise<number | undefined> {
  const text = await readFile(inDir(data, pidFile), 'utf8').catch(() => '');
  return /^[0-9]+\s*$/.test(text) ? Number(text) : undefined;
}
