// The file port over a directory that others may write: a network share, another machine's disk, the target of backups,
// shipped copies and streamed activity. Names are resolved one component at a time, each in the open directory above
// it, and no link is followed. It opens no file of the appliance's own, under whatever name, writes in place to no file
// with a second name, and uses nothing mounted beneath it.
import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, realpath } from 'node:fs/promises';
import { basename, dirname, join, normalize } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { KmsError, systemCode } from '../errors.ts';
import type { AppendFile, Files } from '../store/files.ts';
import { NodeAppendFile } from './append-file.ts';
import { enterMade, type ForeignPlace, ForeignRoot } from './foreign-root.ts';
import { identityOf } from './lock.ts';
import { nameWithin, readBounded, readFully, writeAll } from './node-files.ts';
import { isLink, type OpenDirectory } from './open-directory.ts';

const { O_RDONLY, O_RDWR, O_DSYNC } = constants;

export interface ForeignFiles extends Files {
  /** Names of all entries directly in `dir`. Fails with code `ENOENT` if it does not exist. */
  names(dir: string): Promise<string[]>;
  /** Makes a new directory (mode 0700), durably. Fails with code `EEXIST` if the name is taken. */
  makeNewDir(dir: string): Promise<void>;
  /** Text that changes whenever the file does. Fails with code `ENOENT` if there is none. */
  stamp(name: string): Promise<string>;
  /** Renames a file within its directory, durably; replaces an existing one. */
  rename(from: string, to: string): Promise<void>;
  /** The files in a directory, which may be created later. */
  beneath(dir: string): ForeignFiles;
  /** The place of the files, to open them in another thread. */
  place(): Promise<ForeignPlace>;
}

/** Links in the administrator's path are followed at the first use. */
export function foreignFiles(place: ForeignPlace): ForeignFiles {
  return new FilesBeneath(new ForeignRoot(place), place.prefix ?? '.');
}

/** A file named by the administrator, with the files beside it. A link of that name is followed once. */
export async function foreignFile(
  named: string,
  own: readonly string[] = [],
): Promise<{ readonly files: ForeignFiles; readonly name: string }> {
  const real = await realpath(named);
  const [path, file] = [dirname(real), basename(real)];
  return { files: foreignFiles({ path, own, isResolved: true, file }), name: file };
}

/** Two changes within this many milliseconds may leave a file the same ctime; Linux needs up to 10. */
const clockTick = 25;
/** Tries on a file that is being changed. */
const mostTries = 8;
/** Limit of nested directories that are removed; this program makes three. */
const deepest = 32;

class FilesBeneath implements ForeignFiles {
  readonly #root: ForeignRoot;
  readonly #prefix: string;

  constructor(root: ForeignRoot, prefix: string) {
    this.#root = root;
    this.#prefix = prefix;
  }

  beneath(dir: string): ForeignFiles {
    return new FilesBeneath(this.#root, join(this.#prefix, nameWithin(dir)));
  }

  async place(): Promise<ForeignPlace> {
    return { ...(await this.#root.place()), prefix: this.#prefix };
  }

  names(dir: string): Promise<string[]> {
    return this.#in(dir, (directory) => directory.names());
  }

  async list(dir: string): Promise<string[]> {
    return (await unlessMissing(this.#in(dir, (directory) => directory.plainNames()))) ?? [];
  }

  async exists(name: string): Promise<boolean> {
    return (await unlessMissing(this.#look(name))) !== undefined;
  }

  async size(name: string): Promise<number> {
    return Number((await this.#look(name)).size);
  }

  async stamp(name: string): Promise<string> {
    const { dev, ino, size, mtimeNs, ctimeNs } = await this.#look(name);
    return [dev, ino, size, mtimeNs, ctimeNs].join();
  }

  read(name: string, most: number): Promise<Uint8Array> {
    return this.#reading(name, (handle) => readBounded(handle, join(this.#prefix, name), most));
  }

  readAt(name: string, offset: number, length: number): Promise<Uint8Array> {
    return this.#reading(name, (handle) => readFully(handle, offset, length));
  }

  openAppend(name: string, create: boolean): Promise<AppendFile> {
    return this.#at(name, async (directory, entry) => {
      const handle = create
        ? await this.#openNew(directory, entry, O_DSYNC)
        : await directory.openFile(entry, O_RDWR | O_DSYNC, (found, again) =>
            this.#needAlone(directory, entry, found, again),
          );
      try {
        return new NodeAppendFile(handle, (await handle.stat()).size);
      } catch (error) {
        await handle.close();
        throw error;
      }
    });
  }

  replace(name: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    return this.#at(name, async (directory, entry) => {
      const draft = `${entry}.tmp`;
      const handle = await this.#openNew(directory, draft).catch(async (error: unknown) => {
        if (systemCode(error) !== 'EEXIST') throw error;
        // A crash may have left the draft, or another user made it: the name is removed, never written through.
        await directory.remove(draft);
        return this.#openNew(directory, draft);
      });
      try {
        await writeAll(handle, bytes);
        await directory.rename(draft, entry);
      } catch (error) {
        await directory.remove(draft).catch(() => {});
        throw error;
      }
      await directory.sync();
    });
  }

  remove(name: string): Promise<void> {
    return this.#at(name, (directory, entry) => directory.remove(entry));
  }

  rename(from: string, to: string): Promise<void> {
    if (dirname(from) !== dirname(to)) throw new KmsError('internal', `${from} is to be renamed to ${to} elsewhere`);
    return this.#at(from, async (directory, entry) => {
      await directory.rename(entry, basename(to));
      await directory.sync();
    });
  }

  async makeDir(dir: string): Promise<void> {
    let directory = await this.#root.make();
    for (const name of this.#partsOf(dir)) directory = await enterMade(directory, name);
    directory.close();
  }

  makeNewDir(dir: string): Promise<void> {
    return this.#at(dir, async (directory, entry) => {
      await directory.make(entry);
      await directory.sync();
    });
  }

  async removeDir(dir: string): Promise<void> {
    await unlessMissing(
      this.#at(dir, async (directory, entry) => {
        await removeTree(directory, entry, deepest);
        await directory.sync();
      }),
    );
  }

  syncDir(dir: string): Promise<void> {
    return this.#in(dir, (directory) => directory.sync());
  }

  /** Throws `refused` for a link. */
  async #look(name: string): Promise<BigIntStats> {
    return this.#at(name, async (directory, entry) => {
      const found = await directory.lookAt(entry);
      if (found.isSymbolicLink()) throw isLink(join(directory.path, entry));
      return found;
    });
  }

  async #openNew(directory: OpenDirectory, entry: string, flags = 0): Promise<FileHandle> {
    const handle = await directory.openNew(entry, flags);
    try {
      this.#root.know(await handle.stat({ bigint: true }));
      return handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /**
   * Throws unless the file to be written in place has only this name. The link count is not enough: an attacker can
   * remove the other name just before the check, and restore it just after. Each change updates the ctime.
   */
  async #needAlone(
    directory: OpenDirectory,
    entry: string,
    found: BigIntStats,
    again: () => Promise<BigIntStats>,
  ): Promise<void> {
    const path = join(directory.path, entry);
    await this.#root.needForeign(path, found);
    needOneName(path, found);
    if (this.#root.knows(found)) return;
    for (let tries = 0; tries < mostTries; tries++) {
      const before = await again();
      const age = Date.now() - Number(before.ctimeMs);
      if (age >= 0 && age < clockTick) {
        await setTimeout(clockTick);
        continue;
      }
      const named = await directory.lookAt(entry);
      const after = await again();
      needOneName(path, before);
      needOneName(path, after);
      if (identityOf(named) === identityOf(found) && before.ctimeNs === after.ctimeNs) return this.#root.know(found);
    }
    throw changing(path);
  }

  async #reading<T>(name: string, work: (handle: FileHandle) => Promise<T>): Promise<T> {
    const handle = await this.#at(name, (directory, entry) =>
      directory.openFile(entry, O_RDONLY, (found) => this.#root.needForeign(join(directory.path, entry), found)),
    );
    return work(handle).finally(() => handle.close());
  }

  #at<T>(name: string, work: (directory: OpenDirectory, entry: string) => Promise<T>): Promise<T> {
    return this.#in(dirname(name), (directory) => work(directory, basename(name)));
  }

  async #in<T>(dir: string, work: (directory: OpenDirectory) => Promise<T>): Promise<T> {
    let directory = await this.#root.open();
    try {
      for (const name of this.#partsOf(dir)) {
        const below = await directory.enter(name);
        directory.close();
        directory = below;
      }
      return await work(directory);
    } finally {
      directory.close();
    }
  }

  #partsOf(dir: string): string[] {
    return normalize(join(this.#prefix, nameWithin(dir)))
      .split('/')
      .filter((name) => name !== '' && name !== '.');
  }
}

async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** A link itself is removed, never followed. */
async function removeTree(above: OpenDirectory, name: string, levels: number): Promise<void> {
  try {
    return await above.remove(name);
  } catch (error) {
    if (systemCode(error) !== 'EISDIR') throw error;
  }
  if (levels === 0) {
    throw new KmsError('refused', `${join(above.path, name)}: more than ${deepest} directories inside one another`, {
      hint: 'find out who made them, and remove them by hand',
    });
  }
  const directory = await above.enter(name);
  try {
    for (const each of await directory.names()) {
      await unlessMissing(removeTree(directory, each, levels - 1));
    }
  } finally {
    directory.close();
  }
  await above.removeDir(name);
}

/** Throws `refused` for a file with hard links, as a write would change it under each of its names. */
function needOneName(path: string, { nlink }: BigIntStats): void {
  if (nlink <= 1n) return;
  throw new KmsError('refused', `${path}: has ${nlink} names (hard links), and would be changed under all of them`, {
    hint: `nothing was written; remove the others, or put a copy in its place: cp ${path} ${path}.copy && mv ${path}.copy ${path}`,
  });
}

function changing(path: string): KmsError {
  return new KmsError('unavailable', `${path}: somebody is changing it right now`, {
    hint: 'nothing was written; find out who writes there, and try again',
  });
}
