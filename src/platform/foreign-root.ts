// ForeignRoot is a directory that others may write, as the administrator named it: links in its path are followed once,
// and from then on the path must have none. It is not a data directory of the appliance's own, does not lie in one and
// holds none. A new directory in its place, as after a share was mounted again, is checked like the first one. It may
// be a mount; all beneath it is on the same one, so that a file there with one name has none in a data directory.
import type { BigIntStats } from 'node:fs';
import { lstat, readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { KmsError, systemCode } from '../errors.ts';
import { identityOf, lockedFiles } from './lock.ts';
import { type Guard, isLink, OpenDirectory } from './open-directory.ts';

export interface ForeignPlace {
  readonly path: string;
  /** The directory beneath it that names are relative to; absent: itself. */
  readonly prefix?: string;
  /** Data directories of the appliance's own. */
  readonly own?: readonly string[];
  /** Whether links in the path were followed already. */
  readonly isResolved?: boolean;
  /** Files that another thread of this process has locked, as `lockedFiles` has them. */
  readonly locked?: readonly string[];
  /** A file in it that the administrator named, which may be mounted there by itself, as into a container. */
  readonly file?: string | undefined;
}

/** The most files that are remembered. */
const mostKnown = 100_000;

export class ForeignRoot implements Guard {
  readonly #given: string;
  readonly #own: readonly string[];
  readonly #locked: readonly string[];
  readonly #file: string | undefined;
  #path: string | undefined;
  /** The directory that was last found to be none of the appliance's own. */
  #checked: string | undefined;
  /** Devices that have files of the appliance's own. */
  #devices = new Set<bigint>();
  /** Directories of the appliance's own at that time; a later one is in one of them. */
  #directories = new Set<string>();
  /** Files that had no name but the one here, and those that were made here. */
  readonly #known = new Set<string>();

  constructor({ path, own = [], isResolved = false, locked = [], file }: ForeignPlace) {
    this.#given = resolve(path);
    this.#own = own;
    this.#locked = locked;
    this.#file = file;
    if (isResolved) this.#path = this.#given;
  }

  /** The same directory, for another thread. */
  async place(): Promise<ForeignPlace> {
    const locked = [...this.#locked, ...lockedFiles()];
    return { path: await this.#resolved(), own: this.#own, isResolved: true, locked, file: this.#file };
  }

  /** Fails with code `ENOENT` where there is none. The caller closes it. */
  async open(): Promise<OpenDirectory> {
    const directory = await OpenDirectory.open(await this.#resolved());
    try {
      if ((await directory.realPath()) !== directory.path) throw isLink(directory.path);
      const found = await directory.look();
      if (birthOf(found) !== this.#checked) await this.#check(directory.path, identityOf(found));
      this.#checked = birthOf(found);
      directory.guardWith(this);
      return directory;
    } catch (error) {
      directory.close();
      throw error;
    }
  }

  /** Makes it, and those above it, durable. The caller closes it. */
  async make(): Promise<OpenDirectory> {
    try {
      return await this.open();
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw error;
    }
    const path = await this.#resolved();
    await this.#needOutside(path);
    this.#path = path;
    let above = await OpenDirectory.open('/');
    for (const name of path.split('/').slice(1)) above = await enterMade(above, name);
    above.close();
    return this.open();
  }

  /**
   * Throws `refused` for a file of the appliance's own. One whose name here is removed at this very moment may pass and
   * be read, which does no harm, unless it is a lock: those are compared by identity alone.
   */
  async needForeign(path: string, found: BigIntStats): Promise<void> {
    if ([...this.#locked, ...lockedFiles()].includes(identityOf(found))) throw isLocked(path);
    if (!this.#devices.has(found.dev) || (found.nlink === 1n && !this.mayBeMount(path))) return;
    for (const own of this.#own) {
      for await (const each of treeOf(own, true)) {
        if (identityOf(each) === identityOf(found)) throw isOwn(path, own);
      }
    }
  }

  /** Another mount may have given the directory above it a path apart from the data, so identities are compared. */
  async needForeignDirectory(path: string, found: BigIntStats): Promise<void> {
    // One that was removed meanwhile may have left its inode number to this one.
    if (this.#directories.has(identityOf(found))) await this.#check(path, identityOf(found));
  }

  mayBeMount(path: string): boolean {
    return this.#file !== undefined && path === join(this.#path ?? this.#given, this.#file);
  }

  /** Notes a file that no other directory has a name of. */
  know(found: BigIntStats): void {
    // Where the file system keeps no time of birth, a number that is used again could not be told from this one.
    if (found.birthtimeNs <= 0n) return;
    if (this.#known.size >= mostKnown) this.#known.clear();
    this.#known.add(birthOf(found));
  }

  knows(found: BigIntStats): boolean {
    return this.#known.has(birthOf(found));
  }

  /** The path without links, fixed once there is a directory. */
  async #resolved(): Promise<string> {
    if (this.#path !== undefined) return this.#path;
    const path = await realPath(this.#given);
    if (path.exists) this.#path = path.path;
    return path.path;
  }

  async #check(path: string, identity: string): Promise<void> {
    await this.#needOutside(path);
    const devices = new Set<bigint>();
    const directories = new Set<string>();
    for (const own of this.#own) {
      // A mount can give a directory a second path, so identities are compared too.
      for await (const each of treeOf(own, false)) {
        if (identityOf(each) === identity) throw isOwn(path, own);
        devices.add(each.dev);
        directories.add(identityOf(each));
      }
      for (let above = (await realPath(own)).path; above !== dirname(above); above = dirname(above)) {
        const found = await stat(dirname(above), { bigint: true }).catch(() => undefined);
        if (found && identityOf(found) === identity) throw isOwn(path, own);
      }
    }
    this.#devices = devices;
    this.#directories = directories;
  }

  async #needOutside(path: string): Promise<void> {
    for (const own of this.#own) {
      const { path: ownPath } = await realPath(own);
      if (isWithin(path, ownPath) || isWithin(ownPath, path)) throw isOwn(path, own);
    }
  }
}

/** Enters a directory of `above`, which it closes, and makes it where it isn't there. */
export async function enterMade(above: OpenDirectory, name: string): Promise<OpenDirectory> {
  try {
    return await above.enter(name).catch(async (error: unknown) => {
      if (systemCode(error) !== 'ENOENT') throw error;
      await above.make(name).catch((again: unknown) => {
        // Another process may have made it meanwhile.
        if (systemCode(again) !== 'EEXIST') throw again;
      });
      await above.sync();
      return above.enter(name);
    });
  } finally {
    above.close();
  }
}

/** Tells a file also from a later one with the same inode number. */
function birthOf(found: BigIntStats): string {
  return `${identityOf(found)}:${found.birthtimeNs}`;
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === '/' ? directory : `${directory}/`);
}

/** The path without links; a part that doesn't exist yet is taken as it is. */
async function realPath(path: string): Promise<{ readonly path: string; readonly exists: boolean }> {
  try {
    return { path: await realpath(path), exists: true };
  } catch (error) {
    const above = dirname(path);
    if (systemCode(error) !== 'ENOENT' || above === path) throw error;
    return { path: join((await realPath(above)).path, basename(path)), exists: false };
  }
}

/** The directory and those in it, at any depth; `withFiles`: files as well. Entries that go meanwhile are left out. */
async function* treeOf(path: string, withFiles: boolean): AsyncGenerator<BigIntStats> {
  // An administrator may have made the data directory a link; nothing in it is one.
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  if (!found) return;
  yield found;
  for (const entry of await readdir(path, { withFileTypes: true }).catch(() => [])) {
    const below = join(path, entry.name);
    if (entry.isDirectory()) yield* treeOf(below, withFiles);
    else if (withFiles) {
      const file = await lstat(below, { bigint: true }).catch(() => undefined);
      if (file) yield file;
    }
  }
}

function isOwn(path: string, own: string): KmsError {
  return new KmsError('refused', `${path}: belongs to the data directory ${own}, or holds it`, {
    hint: 'nothing was changed there; name a directory apart from the data, or find out who put it there',
  });
}

function isLocked(path: string): KmsError {
  return new KmsError('refused', `${path}: is another name of the lock of a data directory`, {
    hint: 'nothing was changed; remove this name, and find out who made it',
  });
}
