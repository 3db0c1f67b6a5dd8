// The stores of an appliance, opened and made the one way: over the data directory's files, with checkpoints on a thread.
import { systemRandom } from '../crypto/random.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import { createEmbedded } from '../store/create-embedded.ts';
import { openEmbedded } from '../store/embedded.ts';
import { listStoreFiles, logName, snapshotName } from '../store/file-names.ts';
import type { Files } from '../store/files.ts';
import { type Migration, systemMigrations, tenantMigrations } from '../store/migrations.ts';
import type { StoreNotice } from '../store/notice.ts';
import type { Store, Tables } from '../store/port.ts';
import type { Sql } from '../store/sql.ts';
import { type SystemTables, systemTables } from '../store/tables/system-tables.ts';
import { tenantTables } from '../store/tables/tenant-tables.ts';
import { CheckpointThread } from './checkpoint-thread.ts';
import { StoreCounts } from './metrics/store-counts.ts';

/** The directory of the appliance's own store, which is its name in the seal too. */
export const systemDir = 'system';

export type SystemStore = Store<SystemTables>;

export interface StoreWorld {
  /** The data directory. */
  readonly root: string;
  readonly files: Files;
  readonly wasm: Uint8Array;
  /** Throws unless a file of that many bytes can be made without taking the last room on the disk. */
  needRoom?(bytes: number): Promise<void>;
  onNotice?(dir: string, notice: StoreNotice): void;
  /** Counts what the store in a directory does. */
  counts?(dir: string): StoreCounts;
  /** Called before a store that an older program made is changed. */
  beforeMigration?(): Promise<void>;
}

export function createStore({ files }: StoreWorld, dir: string, keys: TenantKeys, now: number): Promise<void> {
  return createEmbedded({ files, dir, keys, random: systemRandom, at: now });
}

export function openSystemStore(world: StoreWorld, keys: TenantKeys): Promise<SystemStore> {
  return open(world, systemDir, keys, systemMigrations, systemTables);
}

export function openTenantStore(world: StoreWorld, dir: string, keys: TenantKeys): Promise<Store<Tables>> {
  return open(world, dir, keys, tenantMigrations, tenantTables);
}

function open<T extends object>(
  { root, files, wasm, needRoom, onNotice, counts: countsOf, beforeMigration }: StoreWorld,
  dir: string,
  keys: TenantKeys,
  migrations: readonly Migration[],
  tables: (sql: Sql) => T,
): Promise<Store<T>> {
  const thread = new CheckpointThread(root, keys, wasm);
  const counts = countsOf?.(dir) ?? new StoreCounts();
  return openEmbedded({
    files,
    dir,
    keys,
    wasm,
    migrations,
    tables,
    async runCheckpoint(job) {
      await needRoom?.(await bytesOf(files, dir));
      return counts.checkpoint(() => thread.run(job));
    },
    onClosed: () => thread.end(),
    onCommit: (commit) => counts.commit(commit),
    onNotice: (notice) => {
      counts.notice(notice);
      onNotice?.(dir, notice);
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
