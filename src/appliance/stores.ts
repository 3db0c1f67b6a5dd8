// The stores of an appliance, opened and made the one way: over the data directory's files, with checkpoints on a
// thread.
import { systemRandom } from '../crypto/random.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import { createEmbedded, type ReadStore, readEmbedded } from '../store/embedded.ts';
import type { Files } from '../store/files.ts';
import type { Store, StoreEvent, Tables } from '../store/port.ts';
import type { Sql } from '../store/sql.ts';
import { listStoreFiles, logName, snapshotName } from '../store/store-files.ts';
import { type SystemTables, systemTables, tenantTables } from '../store/tables/databases.ts';
import { type Migration, systemMigrations, tenantMigrations } from '../store/tables/migrations.ts';
import { systemDir } from './data-dir.ts';
import { StoreCounts } from './metrics/counts.ts';
import { CheckpointThread } from './threads/checkpoint.ts';

export type SystemStore = Store<SystemTables>;

export interface StoreWorld {
  /** The data directory. */
  readonly root: string;
  readonly files: Files;
  readonly wasm: Uint8Array;
  /** Throws unless a file of that many bytes can be made without taking the last room on the disk. */
  needFreeSpace?(bytes: number): Promise<void>;
  onEvent?(dir: string, event: StoreEvent): void;
  /** Counts what the store in a directory does. */
  counts?(dir: string): StoreCounts;
  /** Called before a store that an older program made is changed. */
  beforeMigration?(): Promise<void>;
}

export function createStore({ files }: StoreWorld, dir: string, keys: TenantKeys, now: number): Promise<void> {
  return createEmbedded({ files, dir, keys, random: systemRandom, at: now });
}

/** Into memory alone, as `readTenantStore` does. */
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
  { root, files, wasm, needFreeSpace, onEvent, counts: countsOf, beforeMigration }: StoreWorld,
  dir: string,
  keys: TenantKeys,
  migrations: readonly Migration[],
  tables: (sql: Sql) => T,
): Promise<ReadStore<T>> {
  const thread = new CheckpointThread(root, keys, wasm);
  const counts = countsOf?.(dir) ?? new StoreCounts();
  return readEmbedded({
    files,
    dir,
    keys,
    wasm,
    migrations,
    tables,
    async runCheckpoint(job) {
      await needFreeSpace?.(await bytesOf(files, dir));
      return counts.checkpoint(() => thread.run(job));
    },
    onClosed: () => thread.end(),
    onCommit: (commit) => counts.commit(commit),
    onEvent: (event) => {
      counts.event(event);
      onEvent?.(dir, event);
    },
    beforeMigration: async () => beforeMigration?.(),
  });
}

/** More than a new snapshot takes. */
async function bytesOf(files: Files, dir: string): Promise<number> {
  const { snapshots, logs } = await listStoreFiles(files, dir);
  const names = [
    ...snapshots.map((number) => snapshotName(dir, number)),
    ...logs.map((number) => logName(dir, number)),
  ];
  const sizes = await Promise.all(names.map((name) => files.size(name)));
  return sizes.reduce((sum, size) => sum + size, 0);
}
