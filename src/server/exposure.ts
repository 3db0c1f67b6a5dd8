// Who besides its owner can reach a file or a directory, and the refusal of what must be nobody else's.
import { stat } from 'node:fs/promises';
import { KmsError } from '../errors.ts';
import { groupIds, userId } from './env.ts';
import { fileTrouble } from './trouble.ts';

export interface Owned {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

export interface Identity {
  readonly uid: number | undefined;
  readonly groups: readonly number[];
}

/**
 * `own-group`: it belongs to somebody else, who lets this process in by its group, as volumes of containers do; there the group is the
 * owner in all but name.
 */
export type Exposure = 'none' | 'own-group' | 'group' | 'others';

export function exposureOf({ mode, uid, gid }: Owned, me: Identity = identity()): Exposure {
  if ((mode & 0o007) !== 0) return 'others';
  if ((mode & 0o070) === 0) return 'none';
  return uid !== me.uid && me.groups.includes(gid) ? 'own-group' : 'group';
}

export function identity(): Identity {
  return { uid: userId(), groups: groupIds() };
}

/** `0750`, as `chmod` takes it. */
export function modeText(mode: number): string {
  return `0${(mode & 0o777).toString(8).padStart(3, '0')}`;
}

/** Throws `refused` for a data directory that others can read or write. */
export async function needPrivateDirectory(path: string): Promise<void> {
  const info = await look(path);
  const exposure = exposureOf(info);
  if (exposure === 'none' || exposure === 'own-group') return;
  throw new KmsError('refused', `${path}: ${reached(exposure)} (mode ${modeText(info.mode)})`, {
    hint:
      info.uid === userId()
        ? `run: chmod 0700 ${path}`
        : 'let its owner run chmod 0700 on it, or name a new directory below it with --data, which is made for you alone',
  });
}

/** Throws `refused` for a key file that others can read. */
export async function needPrivateKey(path: string): Promise<void> {
  const info = await look(path);
  const exposure = exposureOf(info);
  if (exposure === 'none' || exposure === 'own-group') return;
  throw new KmsError('refused', `${path}: ${reached(exposure)}, and it holds a key (mode ${modeText(info.mode)})`, {
    hint: `run: chmod 0600 ${path}; if anybody else may have read it, rotate the master key`,
  });
}

function reached(exposure: 'group' | 'others'): string {
  return `${exposure === 'group' ? 'its group' : 'everybody on this machine'} can reach it`;
}

async function look(path: string): Promise<Owned> {
  try {
    return await stat(path);
  } catch (error) {
    throw fileTrouble(error, path);
  }
}
