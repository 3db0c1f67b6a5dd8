// Owner, group and mode of files and directories: who else can reach them, and which are refused for that.
import type { Stats } from 'node:fs';
import { lstat, stat } from 'node:fs/promises';
import { KmsError, systemError } from '../errors.ts';
import { groupIds, userId } from './environment.ts';
import { mayKeepNoModes, mountAlone } from './file-system.ts';

interface Owned {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

interface Identity {
  readonly uid: number | undefined;
  readonly groups: readonly number[];
}

/**
 * `own-group`: it belongs to another user, who grants this process access by its group, as container volumes do; there
 * the group is the owner in all but name.
 */
type Exposure = 'none' | 'own-group' | 'group' | 'others';

export function exposureOf({ mode, uid, gid }: Owned, me: Identity = identity()): Exposure {
  if ((mode & 0o007) !== 0) return 'others';
  if ((mode & 0o070) === 0) return 'none';
  return uid !== me.uid && me.groups.includes(gid) ? 'own-group' : 'group';
}

function identity(): Identity {
  return { uid: userId(), groups: groupIds() };
}

/** Such as `0750`, for `chmod`. */
export function modeText(mode: number): string {
  return `0${(mode & 0o777).toString(8).padStart(3, '0')}`;
}

/** Whether neither this process's user nor root owns the file or directory; false if it does not exist. */
export async function isOfAnother(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found !== undefined && found.uid !== 0 && found.uid !== userId();
}

/** Throws `refused` for a data directory that others can read or write. */
export async function needPrivateDirectory(path: string): Promise<void> {
  const info = await ownership(path);
  const exposure = exposureOf(info);
  if (exposure === 'none' || exposure === 'own-group') return;
  throw new KmsError('refused', `${path}: ${reached(exposure)} (mode ${modeText(info.mode)})`, {
    hint:
      info.uid === userId()
        ? `run: chmod 0700 ${path}${(await mayKeepNoModes(path)) ? `; where that changes nothing, ${mountAlone()}` : ''}`
        : 'let its owner run chmod 0700 on it, or name a new directory below it with --data, which is made for you alone',
  });
}

/**
 * Throws `refused` if others can read the file `path`, which holds `what` and is readable to this process; `remedy` is
 * the advice in case they did.
 */
export function refuseExposed(path: string, info: Owned, what: string, remedy: string, me = identity()): void {
  const exposure = exposureOf(info, me);
  if (exposure === 'none' || exposure === 'own-group') return;
  // Readable to neither the owner nor a group of this process, so by an access list, as systemd makes for credentials.
  // The group bits are then the list's mask and say nothing about a group.
  const isListed = info.uid !== me.uid && me.uid !== 0 && !me.groups.includes(info.gid);
  if (exposure === 'group' && isListed) return;
  const who = exposure === 'group' ? 'its group' : 'other users';
  const bits = exposure === 'group' ? info.mode >> 3 : info.mode;
  const may = (bits & 4) !== 0 ? 'read' : (bits & 2) !== 0 ? 'write to' : 'reach';
  throw new KmsError('refused', `${path}: ${who} can ${may} it, and it holds ${what} (mode ${modeText(info.mode)})`, {
    hint: `run: chmod 0600 ${path}; if anybody else may have read it, ${remedy}`,
  });
}

/** Throws `refused` if others can write to the file `path`, which controls this process. */
export function refuseWritable(path: string, info: Owned, me = identity()): void {
  // Volumes of containers may belong to another user and be shared through a group of this process.
  if (exposureOf(info, me) === 'own-group') return;
  if (info.uid !== 0 && info.uid !== me.uid) {
    throw new KmsError('refused', `${path}: belongs to another user, who could change it`, {
      hint: `see that it says what you mean, then make it your own: chown ${me.uid} ${path}`,
    });
  }
  const exposure = exposureOf({ ...info, mode: info.mode & 0o022 }, me);
  if (exposure === 'none' || exposure === 'own-group') return;
  const who = exposure === 'group' ? 'its group' : 'everybody on this machine';
  throw new KmsError('refused', `${path}: ${who} can write to it (mode ${modeText(info.mode)})`, {
    hint: `see that it says what you mean, then run: chmod go-w ${path}`,
  });
}

/** A pipe of a process started for this one, such as a shell's `<(…)`. */
const ownPipe = /^\/(dev|proc\/self)\/fd\/\d+$|^\/dev\/stdin$/;

/** Whether the path names a descriptor of this process. */
export function isOwnPipe(path: string): boolean {
  return ownPipe.test(path);
}

/**
 * Throws `refused` for a named pipe instead of a file with `what`: opening it would block until it has a writer, with
 * no way to stop. Call this before opening.
 */
export function refusePipe(path: string, info: Pick<Stats, 'isFIFO'>, what: string): void {
  if (!info.isFIFO() || isOwnPipe(path)) return;
  throw new KmsError('refused', `${path}: expected a file with ${what}, found a named pipe`, {
    hint: 'name the file itself; what a command writes is read with <(COMMAND) in its place',
  });
}

function reached(exposure: 'group' | 'others'): string {
  return `${exposure === 'group' ? 'its group' : 'everybody on this machine'} can reach it`;
}

/** Owner, group and mode of what the path leads to. */
export async function ownership(path: string): Promise<Owned> {
  try {
    return await stat(path);
  } catch (error) {
    throw systemError(error, path);
  }
}
