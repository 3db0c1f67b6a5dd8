// ForeignRoot is a directory that others may write, as named by the administrator: links in its path are followed once,
// and from then on the path must have none. It is not a data directory of the appliance, is not inside one and contains
// none. A new directory in its place, as after remounting a share, is checked like the first. It may be a mount; all
// beneath it is on the same mount, so a file with one name there has none in a data directory.
import type { BigIntStats } from 'node:fs';
import { lstat, readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { KmsError, systemCode } from '../errors.ts';
import { identityOf, lockedFiles } from './lock.ts';
import { type Guard, isLink, OpenDirectory } from './open-directory.ts';

export interface ForeignPlace {
  readonly path: string;
  /** The subdirectory that names are relative to. Default: itself. */
  readonly prefix?: string;
  /** Data directories of the appliance. */
  readonly own?: readonly string[];
  /** Whether links in the path were already followed. */
  readonly isResolved?: boolean;
  /** Files locked by another thread of this process, from `lockedFiles`. */
  readonly locked?: readonly string[];
  /** A file in it that the administrator named; it may itself be a mount, as in a container. */
  readonly file?: string | undefined;
}

/** Limit of remembered files. */
const mostKnown = 100_000;

export class ForeignRoot implements Guard {
  readonly #given: string;
  readonly #own: readonly string[];
  readonly #locked: readonly string[];
  readonly #file: string | undefined;
  #path: string | undefined;
  /** The directory that last passed the check. */
  #checked: string | undefined;
  /** Devices that hold files of the appliance. */
  #devices = new Set<bigint>();
  /** The appliance's directories at that time; a later one is inside one of them. */
  #directories = new Set<string>();
  /** Files with no name but the one here, and files created here. */
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

  /** Fails with code `ENOENT` if it does not exist. The caller closes it. */
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

  /** Makes the directory and its parents, durably, if missing. The caller closes it. */
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
   * Throws `refused` for a file of the appliance. A file whose name here is being removed may pass and be read, which
   * does no harm, unless it is a lock: locks are compared by identity alone.
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

  /** Compares identities, since another mount may give the directory above a path outside the data. */
  async needForeignDirectory(path: string, found: BigIntStats): Promise<void> {
    // A directory removed in the meantime may have left its inode number to this one.
    if (this.#directories.has(identityOf(found))) await this.#check(path, identityOf(found));
  }

  mayBeMount(path: string): boolean {
    return this.#file !== undefined && path === join(this.#path ?? this.#given, this.#file);
  }

  /** Remembers a file that has no name in another directory. */
  know(found: BigIntStats): void {
    // Without a birth time, a reused inode number could not be told from this file.
    if (found.birthtimeNs <= 0n) return;
    if (this.#known.size >= mostKnown) this.#known.clear();
    this.#known.add(birthOf(found));
  }

  knows(found: BigIntStats): boolean {
    return this.#known.has(birthOf(found));
  }

  /** The path without links, fixed once the directory exists. */
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

/** Enters a directory of `above`, creating it if missing; closes `above`. */
export async function enterMade(above: OpenDirectory, name: string): Promise<OpenDirectory> {
  try {
    return await above.enter(name).catch(async (error: unknown) => {
      if (systemCode(error) !== 'ENOENT') throw error;
      await above.make(name).catch((again: unknown) => {
        // Another process may have made it in the meantime.
        if (systemCode(again) !== 'EEXIST') throw again;
      });
      await above.sync();
      return above.enter(name);
    });
  } finally {
    above.close();
  }
}

/** Distinguishes a file also from a later one with the same inode number. */
function birthOf(found: BigIntStats): string {
  return `${identityOf(found)}:${found.birthtimeNs}`;
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === '/' ? directory : `${directory}/`);
}

/** The path without links; a part that does not exist yet stays as it is. */
async function realPath(path: string): Promise<{ readonly path: string; readonly exists: boolean }> {
  try {
    return { path: await realpath(path), exists: true };
  } catch (error) {
    const above = dirname(path);
    if (systemCode(error) !== 'ENOENT' || above === path) throw error;
    return { path: join((await realPath(above)).path, basename(path)), exists: false };
  }
}

/**
 * The directory and those inside it, at any depth; `withFiles`: files as well. Entries that vanish in the meantime are
 * left out.
 */
async function* treeOf(path: string, withFiles: boolean): AsyncGenerator<BigIntStats> {
  // An administrator may have made the data directory a link; nothing inside it is one.
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
