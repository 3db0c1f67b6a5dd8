// The stores of an appliance, opened and made the one way: over the data directory's files, with checkpoints on a thread.
import { systemRandom } from '../crypto/random.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import { createEmbedded } from '../store/create-embedded.ts';
import { openEmbedded } from '../store/embedded.ts';
import type { Files } from '../store/files.ts';
import { type Migration, systemMigrations, tenantMigrations } from '../store/migrations.ts';
import type { StoreNotice } from '../store/notice.ts';
import type { Store, Tables } from '../store/port.ts';
import type { Sql } from '../store/sql.ts';
import { type SystemTables, systemTables } from '../store/tables/system-tables.ts';
import { tenantTables } from '../store/tables/tenant-tables.ts';
import { checkpointThread } from './checkpoint-thread.ts';

/** The directory of the appliance's own store, which is its name in the seal too. */
export const systemDir = 'system';

export type SystemStore = Store<SystemTables>;

export interface StoreWorld {
  /** The data directory. */
  readonly root: string;
  readonly files: Files;
  readonly wasm: Uint8Array;
  onNotice?(dir: string, notice: StoreNotice): void;
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
  { root, files, wasm, onNotice, beforeMigration }: StoreWorld,
  dir: string,
  keys: TenantKeys,
  migrations: readonly Migration[],
  tables: (sql: Sql) => T,
): Promise<Store<T>> {
  return openEmbedded({
    files,
    dir,
    keys,
    wasm,
    migrations,
    tables,
    runCheckpoint: checkpointThread(root, keys, wasm),
    onNotice: (notice) => onNotice?.(dir, notice),
    beforeMigration: async () => beforeMigration?.(),
  });
}
