// The machine under an appliance. Its disk: space, whether it is writable, access to the data directory, and foreign
// owners or files in it. And the ways in which memory gets onto a disk.
import type { Dirent } from 'node:fs';
import { access, constants, readdir, readFile, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { drillPrefix } from '../backup/keeper.ts';
import { copiesDir } from '../backup/take-over.ts';
import { reasonOf } from '../errors.ts';
import {
  fencedMark,
  initMark,
  movedMark,
  nodeFile,
  reserveFile,
  restoreMark,
  sealFile,
  sealMark,
  socketFile,
  standbyMark,
  upgradeCopy,
  upgradeJournal,
  upgradeLock,
  witnessFile,
} from '../platform/data-dir.ts';
import { type DiskSpace, freePercent, inUnits } from '../platform/disk.ts';
import { userId } from '../platform/environment.ts';
import type { Find } from '../platform/finding.ts';
import { lockFile, pidFile } from '../platform/lock.ts';
import { exposureOf, modeText } from '../platform/ownership.ts';

export interface Host {
  /** The file's text; undefined if there is none. */
  read(path: string): Promise<string | undefined>;
  space(path: string): Promise<DiskSpace>;
}

export const readText: Host['read'] = (path) => readFile(path, 'utf8').catch(() => undefined);

export async function examineSpace(host: Host, data: string, find: Find): Promise<void> {
  const space = await host.space(data).catch(() => undefined);
  if (!space) return;
  const percent = freePercent(space);
  const severity = percent < 5 ? 'error' : percent < 10 ? 'warning' : percent < 20 ? 'advice' : undefined;
  if (severity) {
    const message = `${percent} percent are free, ${inUnits(space.free)} of ${inUnits(space.total)}`;
    find(severity, 'disk-low', data, message, 'free space on its file system, or give it more');
  }
  if (space.freeFiles !== undefined && space.freeFiles < 1000) {
    const message = `${space.freeFiles} more files can be made on its file system`;
    find('error', 'files-low', data, message, 'remove files that nobody needs');
  }
}

/** `pid` is the running server's; without one the limits of this process stand in for the next server's. */
export async function examineMemory(host: Host, pid: number | undefined, find: Find): Promise<void> {
  await examineSwap(host, find);
  const who = pid === undefined ? 'self' : String(pid);
  const limits = await host.read(`/proc/${who}/limits`);
  const [, soft] = /^Max core file size +(\S+)/m.exec(limits ?? '') ?? [];
  const filter = await host.read(`/proc/${who}/coredump_filter`);
  // A server excludes its memory from core dumps; if that worked, they are harmless.
  const harmless = pid !== undefined && filter !== undefined && Number.parseInt(filter, 16) === 0;
  if (soft !== undefined && soft !== '0' && !harmless) {
    const advice = 'start the server with core dumps off: `ulimit -c 0`, or LimitCORE=0 in its unit';
    find('advice', 'core-dumps', `/proc/${who}/limits`, 'a crash may write a core dump', advice);
  }
}

async function examineSwap(host: Host, find: Find): Promise<void> {
  const lines = ((await host.read('/proc/swaps')) ?? '').split('\n').slice(1);
  for (const line of lines) {
    const [device] = line.split(/\s+/);
    if (!device || (await isKeptSecret(host, device))) continue;
    const message = 'memory, and with it keys, may be written to it in clear';
    const advice =
      'encrypt it, or turn it off (swapoff); Node cannot lock its memory: MemorySwapMax=0 in the unit keeps the server out of it';
    find('advice', 'swap', device, message, advice);
  }
}

/** Whether the swap is in memory or on an encrypted device. */
async function isKeptSecret(host: Host, device: string): Promise<boolean> {
  const name = basename(device);
  if (name.startsWith('zram')) return true;
  return (await host.read(`/sys/block/${name}/dm/uuid`))?.startsWith('CRYPT-') ?? false;
}

const known = [
  sealFile,
  sealMark,
  witnessFile,
  lockFile,
  pidFile,
  socketFile,
  reserveFile,
  initMark,
  restoreMark,
  movedMark,
  standbyMark,
  fencedMark,
  upgradeLock,
  nodeFile,
  'lost+found',
];
const storeFile = /^(snapshot|log)-[0-9]{10,12}\.kms$|^activity-[0-9]{12}\.kms$/;

const logFile = /^log-[0-9]{10,12}\.kms$/;

interface LooksAt {
  /** An absolute path. */
  readonly data: string;
  /** Whether a process has the directory open. */
  readonly inUse: boolean;
}

export async function examineFiles({ data, inUse }: LooksAt, find: Find): Promise<void> {
  const info = await stat(data);
  const exposure = exposureOf(info);
  if (exposure === 'group' || exposure === 'others') {
    const who = exposure === 'group' ? 'its group' : 'everybody on this machine';
    const advice = `run: chmod 0700 ${data}; without it the appliance does not start`;
    find('error', 'data-exposed', data, `${who} can reach the data directory (mode ${modeText(info.mode)})`, advice);
  }
  if (info.uid !== userId() && userId() !== 0) {
    find(
      'warning',
      'wrong-owner',
      data,
      `it belongs to user ${info.uid}, this is user ${userId()}`,
      'run as its owner',
    );
  }
  await examineParents(data, find);
  const isWritable = await examineWriting(data, find);
  const entries = await readdir(data, { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    const found = await stat(path).catch(() => undefined);
    if (!found) continue;
    if ((found.mode & 0o077) !== 0 && entry.name !== 'lost+found' && exposureOf(found) !== 'own-group') {
      const mode = entry.isDirectory() ? '0700' : '0600';
      find('warning', 'file-exposed', path, `its mode is ${modeText(found.mode)}`, `run: chmod ${mode} ${path}`);
    }
    if (found.uid !== info.uid) {
      const message = `it belongs to user ${found.uid}, the data directory to user ${info.uid}`;
      find('warning', 'wrong-owner', path, message, `run: chown ${info.uid} ${path}`);
    }
    if (isWritable && isWrittenTo(entry)) await examineWriting(path, find);
    if (entry.isFile()) examineName(data, path, inUse, find);
  }
  if (inUse) return;
  for (const [name, what] of [
    [socketFile, 'a socket that nobody listens to'],
    [pidFile, 'the number of a process that is gone'],
  ] as const) {
    if (!entries.some((entry) => entry.name === name && entry.parentPath === data)) continue;
    const advice = 'a server was killed; the next start clears it away';
    find('warning', `stale-${name === socketFile ? 'socket' : 'pid'}`, join(data, name), what, advice);
  }
}

/** All other files are replaced whole, which requires a writable directory. */
function isWrittenTo(entry: Dirent): boolean {
  if (entry.isDirectory()) return entry.name !== 'lost+found';
  return entry.name === lockFile || logFile.test(entry.name);
}

/** Returns whether this process may write there. If not, an appliance does not start. */
async function examineWriting(path: string, find: Find): Promise<boolean> {
  try {
    await access(path, constants.W_OK);
    return true;
  } catch (error) {
    const advice =
      'mount its file system writable, or see to its owner and mode; without it the appliance does not start';
    find('error', 'not-writable', path, `it cannot be written to: ${reasonOf(error)}`, advice);
    return false;
  }
}

/** Write access above the directory is enough to replace it. */
async function examineParents(data: string, find: Find): Promise<void> {
  for (let path = dirname(data); ; path = dirname(path)) {
    const info = await stat(path).catch(() => undefined);
    const sticky = info !== undefined && (info.mode & 0o1000) !== 0;
    if (info && (info.mode & 0o002) !== 0 && !sticky) {
      const message = `everybody may rename what is in it (mode ${modeText(info.mode)}), and the data is below it`;
      find('warning', 'parent-writable', path, message, `run: chmod o-w ${path}`);
    }
    if (path === dirname(path)) return;
  }
}

function examineName(data: string, path: string, inUse: boolean, find: Find): void {
  const name = path.slice(data.length + 1);
  const last = name.slice(name.lastIndexOf('/') + 1);
  if (name === upgradeJournal) {
    const advice = '`kms upgrade --status` says how far it is, and `kms upgrade --resume` finishes it';
    find('warning', 'leftover', path, 'an upgrade is under way, or was cut off', advice);
    return;
  }
  // A standby takes care of its copies itself.
  if (name.startsWith(upgradeCopy) || name.startsWith(`${copiesDir}/`)) return;
  // A running server may be writing them.
  if (last.endsWith('.tmp') || name.startsWith(drillPrefix)) {
    const advice = 'the next start clears it away';
    if (!inUse) find('warning', 'leftover', path, 'left over from something that was cut off', advice);
  } else if (name.includes('/') ? !storeFile.test(last) : !known.includes(name) && !name.endsWith('.kms-backup')) {
    find('warning', 'unknown-file', path, 'it is not a file of the appliance', 'move it away');
  }
}
