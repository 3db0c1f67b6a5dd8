// The data directory as the file system has it: who can reach what is in it, who owns it, and what does not belong there.
import { readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { lockFile, pidFile } from '../../store/lock.ts';
import { drillPrefix } from '../backup/keeper.ts';
import { initMark, restoreMark, sealFile, socketFile } from '../data-dir.ts';
import { userId } from '../env.ts';
import { exposureOf, modeText } from '../exposure.ts';
import { reserveFile } from '../space/reserve.ts';
import type { Find } from './finding.ts';

const known = [sealFile, lockFile, pidFile, socketFile, reserveFile, initMark, restoreMark, 'lost+found'];
const storeFile = /^(snapshot|log)-[0-9]{10}\.kms$|^activity-[0-9]{12}\.kms$/;

export interface LooksAt {
  /** Absolute. */
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

/** Whoever may write above it can put another directory in its place. */
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
  // Of a server that runs they may be under way.
  if (last.endsWith('.tmp') || name.startsWith(drillPrefix)) {
    const advice = 'the next start clears it away';
    if (!inUse) find('warning', 'leftover', path, 'left of something that was cut off', advice);
  } else if (name.includes('/') ? !storeFile.test(last) : !known.includes(name) && !name.endsWith('.kms-backup')) {
    find('warning', 'unknown-file', path, 'it is no file of the appliance', 'move it away');
  }
}
