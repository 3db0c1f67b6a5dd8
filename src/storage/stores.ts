// Opens and makes the stores of an appliance, all in the same way: over the data directory's files, with checkpoints on
// a thread, or in the database that several nodes share.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { utf8 } from '../crypto/bytes.ts';
import { systemRandom } from '../crypto/random.ts';
import { systemCode } from '../errors.ts';
import { isTenantName, systemDir, tenantDir } from '../platform/data-dir.ts';
import { CheckpointThread } from '../platform/threads/checkpoint.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import { createEmbedded, readEmbedded } from '../store/file-journal.ts';
import type { Files } from '../store/files.ts';
import type { Commit } from '../store/journal.ts';
import type { Store, StoreEvent, Tables } from '../store/port.ts';
import type { ReadStore } from '../store/read-store.ts';
import type { TurnMeter } from '../store/shared/row-turns.ts';
import type { Sql } from '../store/sql.ts';
import type { StoreKeys } from '../store/store-files.ts';
import { listStoreFiles, logName, snapshotName } from '../store/store-files.ts';
import { type SystemTables, systemTables, tenantTables } from '../store/tables/databases.ts';
import { type Migration, systemMigrations, tenantMigrations } from '../store/tables/migrations.ts';

export type SystemStore = Store<SystemTables>;

export interface StoreWorld {
  /** The data directory. */
  readonly root: string;
  readonly files: Files;
  readonly wasm: Uint8Array;
  /** Replaces the files if several nodes share the stores. */
  readonly shared?: SharedPlace | undefined;
  /** Throws unless a file of that many bytes fits without using the last space on the disk. */
  needFreeSpace?(bytes: number): Promise<void>;
  onEvent?(dir: string, event: StoreEvent): void;
  /** Meter for the store in a directory. */
  meter?(dir: string): StoreMeter;
  /** Called before a store of an older program is changed. */
  beforeMigration?(): Promise<void>;
}

/** Meter for the work of one store. */
interface StoreMeter {
  commit(commit: Commit): void;
  event(event: StoreEvent): void;
  /** Times a checkpoint. */
  checkpoint<R>(run: () => Promise<R>): Promise<R>;
  /** For a store that several nodes share. */
  turnMeter(): TurnMeter;
}

/** One store of an appliance. */
export interface StoreOf {
  readonly dir: string;
  readonly keys: StoreKeys;
}

export interface ListedStore {
  /** The store's name in the seal. */
  readonly name: string;
  /** `unfinished`: left by an interruption; `under way`: being made now. */
  readonly state: 'whole' | 'unfinished' | 'under way';
}

/** The place where stores of tenants are made and removed. `dir` names a store even if it is no directory. */
interface StorePlace {
  /** Marks a store as unfinished until `finish`. Must be called before there are keys for it. */
  begin(dir: string): Promise<void>;
  /** Called when its tenant's record is durable. */
  finish(dir: string): Promise<void>;
  /** Removes all of a store. If interrupted, the store is left unfinished. */
  remove(dir: string): Promise<void>;
  list(): Promise<readonly ListedStore[]>;
}

/** Options that every driver takes. */
export interface StoreOptions<T extends object> {
  readonly wasm: Uint8Array;
  readonly migrations: readonly Migration[];
  tables(sql: Sql): T;
  onCommit(commit: Commit): void;
  onEvent(event: StoreEvent): void;
  beforeMigration(): Promise<void>;
}

/** Metering of a store that several nodes share. */
export interface SharedCounting {
  /** Its turns. */
  readonly meter: TurnMeter | undefined;
  /** Times a checkpoint. */
  timed<R>(checkpoint: () => Promise<R>): Promise<R>;
}

/** Stores that several nodes share. */
export interface SharedPlace extends StorePlace {
  /** Makes an empty store. */
  create(dir: string, keys: TenantKeys): Promise<void>;
  read<T extends object>(
    dir: string,
    keys: TenantKeys,
    options: StoreOptions<T> & SharedCounting,
  ): Promise<ReadStore<T>>;
}

export function storePlace(stores: StoreWorld): StorePlace {
  return stores.shared ?? new StoreDirectories(stores);
}

/** Mark in a tenant's directory until its record exists. */
function markOf(dir: string): string {
  return `${dir}/tenant.new`;
}

class StoreDirectories implements StorePlace {
  readonly #root: string;
  readonly #files: Files;

  constructor({ root, files }: StoreWorld) {
    this.#root = root;
    this.#files = files;
  }

  async begin(dir: string): Promise<void> {
    await this.#files.makeDir(dir);
    const text = 'a tenant is being made; without its record the next start removes this\n';
    await this.#files.replace(markOf(dir), utf8(text));
  }

  async finish(dir: string): Promise<void> {
    if (await this.#files.exists(markOf(dir))) await this.#files.remove(markOf(dir));
  }

  /** Removes the mark last, so that after a crash it is still there beside the remaining files. */
  async remove(dir: string): Promise<void> {
    const mark = markOf(dir);
    for (const name of await this.#files.list(dir)) {
      if (`${dir}/${name}` !== mark) await this.#files.remove(`${dir}/${name}`);
    }
    await this.#files.removeDir(dir);
  }

  async list(): Promise<readonly ListedStore[]> {
    const names = await directories(join(this.#root, 'tenants'));
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

export function createStore({ files, shared }: StoreWorld, dir: string, keys: TenantKeys, now: number): Promise<void> {
  return shared ? shared.create(dir, keys) : createEmbedded({ files, dir, keys, random: systemRandom, at: now });
}

/** Reads only into memory, as does `readTenantStore`. */
export function readSystemStore(world: StoreWorld, keys: TenantKeys): Promise<ReadStore<SystemTables>> {
  return read(world, systemDir, keys, systemMigrations, systemTables);
}

export function readTenantStore(world: StoreWorld, dir: string, keys: TenantKeys): Promise<ReadStore<Tables>> {
  return read(world, dir, keys, tenantMigrations, tenantTables);
}

export async function openSystemStore(world: StoreWorld, keys: TenantKeys): Promise<SystemStore> {
  return (await readSystemStore(world, keys)).open();
}

export async function openTenantStore(world: StoreWorld, dir: string, keys: TenantKeys): Promise<Store<Tables>> {
  return (await readTenantStore(world, dir, keys)).open();
}

function read<T extends object>(
  { root, files, wasm, shared, needFreeSpace, onEvent, meter: meterOf, beforeMigration }: StoreWorld,
  dir: string,
  keys: TenantKeys,
  migrations: readonly Migration[],
  tables: (sql: Sql) => T,
): Promise<ReadStore<T>> {
  const meter = meterOf?.(dir);
  const common: StoreOptions<T> = {
    wasm,
    migrations,
    tables,
    onCommit: (commit) => meter?.commit(commit),
    onEvent: (event) => {
      meter?.event(event);
      onEvent?.(dir, event);
    },
    beforeMigration: async () => beforeMigration?.(),
  };
  const timed = <R>(run: () => Promise<R>): Promise<R> => (meter ? meter.checkpoint(run) : run());
  if (shared) return shared.read(dir, keys, { ...common, timed, meter: meter?.turnMeter() });
  const thread = CheckpointThread.embedded(root, wasm);
  return readEmbedded({
    ...common,
    files,
    dir,
    keys,
    async runCheckpoint(job) {
      await needFreeSpace?.(await bytesOf(files, dir));
      return timed(() => thread.run(dir, keys, job));
    },
    onClosed: () => thread.end(),
  });
}

/** Upper limit for the size of a new snapshot. */
async function bytesOf(files: Files, dir: string): Promise<number> {
  const { snapshots, logs } = await listStoreFiles(files, dir);
  const names = [
    ...snapshots.map((number) => snapshotName(dir, number)),
    ...logs.map((number) => logName(dir, number)),
  ];
  const sizes = await Promise.all(names.map((name) => files.size(name)));
  return sizes.reduce((sum, size) => sum + size, 0);
}
