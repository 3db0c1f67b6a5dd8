// StorePlace is where an appliance's stores lie: directories of the data directory, or the database that several nodes
// share. `dir` names a store in either.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { utf8 } from '../crypto/bytes.ts';
import { systemRandom } from '../crypto/random.ts';
import { systemCode } from '../errors.ts';
import { isTenantName, tenantDir } from '../platform/data-dir.ts';
import { CheckpointThread } from '../platform/threads/checkpoint.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import { createEmbedded, readEmbedded } from '../store/file-journal.ts';
import type { Files } from '../store/files.ts';
import type { StoreOptions } from '../store/journal.ts';
import type { HeldFile, ReadStore, StoreHold } from '../store/port.ts';
import type { TurnMeter } from '../store/shared/row-turns.ts';
import { listStoreFiles, logName, snapshotName } from '../store/store-files.ts';

export interface ListedStore {
  /** The store's name in the seal. */
  readonly name: string;
  /** `unfinished`: left by an interruption; `under way`: being made now. */
  readonly state: 'whole' | 'unfinished' | 'under way';
}

/** A store that is not open: all files that a recovery reads. */
export interface StoreAtRest extends Pick<StoreHold, 'uid' | 'files'> {
  /** Absent if the files stay by themselves, since no process has the store open. */
  readonly hold?: StoreHold;
}

/** Options of a store, and its metering. */
export interface PlacedOptions<T extends object>
  extends Pick<StoreOptions<T>, 'wasm' | 'migrations' | 'tables' | 'onCommit' | 'onEvent' | 'beforeMigration'> {
  /** Made only for a store that takes turns. */
  turnMeter(): TurnMeter | undefined;
  /** Times a checkpoint. */
  timed<R>(checkpoint: () => Promise<R>): Promise<R>;
}

export interface StorePlace {
  /** Why a store may be older than it was, and what to do. */
  readonly whyOlder: string;
  /** Whether every start but the first has notes of how far the stores were. */
  readonly hasNotes: boolean;
  /** Marks a store as unfinished until `finish`. Must be called before there are keys for it. */
  begin(dir: string): Promise<void>;
  /** Makes an empty store. `now`: epoch milliseconds. */
  create(dir: string, keys: TenantKeys, now: number): Promise<void>;
  /** Called when its tenant's record is durable. */
  finish(dir: string): Promise<void>;
  /** Recovers a store into memory. */
  read<T extends object>(dir: string, keys: TenantKeys, options: PlacedOptions<T>): Promise<ReadStore<T>>;
  /** The files of a store that is not open here; undefined if there is none. */
  atRest(dir: string, counted: boolean): Promise<StoreAtRest | undefined>;
  /** Removes all of a store. If interrupted, the store is left unfinished. */
  remove(dir: string): Promise<void>;
  list(): Promise<readonly ListedStore[]>;
  readonly elsewhere: Elsewhere | undefined;
  /** From now on notices changes to tenants by other nodes, if there are any. */
  follow(tenants: TenantsHere): void;
}

/** Stores whose files are not in the data directory. */
export interface Elsewhere {
  /** The store's name in the seal, by the directory of its files. */
  nameOf(dir: string): string | undefined;
  read(path: string, most: number): Promise<Uint8Array>;
}

/** The tenants as this process knows them from the appliance's own store. */
export interface TenantsHere {
  /** Reads them again. */
  refresh(): Promise<void>;
  /** Whether another node deleted the tenant whose store has this name. */
  isDeleted(name: string): boolean;
}

/** A data directory, and what it takes to open stores in it. */
export interface DataDirectory {
  readonly root: string;
  readonly files: Files;
  readonly wasm: Uint8Array;
  /** Throws unless a file of that many bytes fits without using the last space on the disk. */
  needFreeSpace?(bytes: number): Promise<void>;
}

/** Mark in a tenant's directory until its record exists. */
function markOf(dir: string): string {
  return `${dir}/tenant.new`;
}

export class StoreDirectories implements StorePlace {
  readonly whyOlder =
    'the files were cut, or put back from an older copy: deleted keys and revoked credentials would be alive again; ' +
    'find the newer files, or restore a backup';
  readonly hasNotes = true;
  readonly elsewhere = undefined;
  readonly #directory: DataDirectory;
  readonly #files: Files;

  constructor(directory: DataDirectory) {
    this.#directory = directory;
    this.#files = directory.files;
  }

  async begin(dir: string): Promise<void> {
    await this.#files.makeDir(dir);
    const text = 'a tenant is being made; without its record the next start removes this\n';
    await this.#files.replace(markOf(dir), utf8(text));
  }

  create(dir: string, keys: TenantKeys, now: number): Promise<void> {
    return createEmbedded({ files: this.#files, dir, keys, random: systemRandom, at: now });
  }

  async finish(dir: string): Promise<void> {
    if (await this.#files.exists(markOf(dir))) await this.#files.remove(markOf(dir));
  }

  read<T extends object>(
    dir: string,
    keys: TenantKeys,
    { timed, turnMeter: _, ...options }: PlacedOptions<T>,
  ): Promise<ReadStore<T>> {
    const { root, wasm } = this.#directory;
    const thread = CheckpointThread.embedded(root, wasm);
    return readEmbedded({
      ...options,
      tables: (sql) => options.tables(sql),
      files: this.#files,
      dir,
      keys,
      runCheckpoint: async (job) => {
        await this.#directory.needFreeSpace?.(await this.#bytesOf(dir));
        return timed(() => thread.run(dir, keys, job));
      },
      onClosed: () => thread.end(),
    });
  }

  /** Upper limit for the size of a new snapshot. */
  async #bytesOf(dir: string): Promise<number> {
    const { snapshots, logs } = await listStoreFiles(this.#files, dir);
    const names = [
      ...snapshots.map((number) => snapshotName(dir, number)),
      ...logs.map((number) => logName(dir, number)),
    ];
    const sizes = await Promise.all(names.map((name) => this.#files.size(name)));
    return sizes.reduce((sum, size) => sum + size, 0);
  }

  async atRest(dir: string): Promise<StoreAtRest | undefined> {
    const files = this.#files;
    const { snapshots, logs } = await listStoreFiles(files, dir);
    const generation = snapshots.at(-1);
    if (generation === undefined) return undefined;
    const snapshot = snapshotName(dir, generation);
    const segments = (await files.list(dir)).filter((name) => /^activity-[0-9]+\.kms$/.test(name)).sort();
    const names = [
      snapshot,
      ...segments.map((name) => `${dir}/${name}`),
      ...logs.filter((number) => number > generation).map((number) => logName(dir, number)),
    ];
    const held: HeldFile[] = [];
    for (const name of names) held.push({ name, bytes: await files.size(name) });
    return { uid: await files.readAt(snapshot, 16, 16), files: held };
  }

  follow(): void {}

  /** Removes the mark last, so that after a crash it is still there beside the remaining files. */
  async remove(dir: string): Promise<void> {
    const mark = markOf(dir);
    for (const name of await this.#files.list(dir)) {
      if (`${dir}/${name}` !== mark) await this.#files.remove(`${dir}/${name}`);
    }
    await this.#files.removeDir(dir);
  }

  async list(): Promise<readonly ListedStore[]> {
    const names = await directories(join(this.#directory.root, 'tenants'));
    return Promise.all(
      names.map(async (name) => ({
        name,
        state: (await this.#isUnfinished(name)) ? ('unfinished' as const) : ('whole' as const),
      })),
    );
  }

  /** Whether the directory is marked, or is empty because a crash came before the mark. */
  async #isUnfinished(name: string): Promise<boolean> {
    // This program's directories all have such names.
    if (!isTenantName(name)) return false;
    const dir = tenantDir(name);
    const names = await this.#files.list(dir);
    return names.every((name) => name.endsWith('.tmp')) || (await this.#files.exists(markOf(dir)));
  }
}

async function directories(path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  }
}
