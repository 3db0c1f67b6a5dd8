// Opens the stores of an appliance, all in the same way, wherever they lie.
import { systemDir } from '../platform/data-dir.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type { Files } from '../store/files.ts';
import type { Commit } from '../store/journal.ts';
import type { ReadStore, Store, StoreEvent, Tables } from '../store/port.ts';
import type { TurnMeter } from '../store/shared/row-turns.ts';
import type { Sql } from '../store/sql.ts';
import type { StoreKeys } from '../store/store-files.ts';
import { type SystemTables, systemTables, tenantTables } from '../store/tables/databases.ts';
import { type Migration, systemMigrations, tenantMigrations } from '../store/tables/migrations.ts';
import { type DataDirectory, StoreDirectories, type StorePlace } from './store-place.ts';

export type SystemStore = Store<SystemTables>;

export interface StoreWorld {
  readonly place: StorePlace;
  /** The data directory's files, or a node's own. */
  readonly files: Files;
  readonly wasm: Uint8Array;
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
  /** Made only for a store that takes turns. */
  turnMeter(): TurnMeter;
}

/** One store of an appliance. */
export interface StoreOf {
  readonly dir: string;
  readonly keys: StoreKeys;
}

/** The stores in a data directory. */
export function storesIn(directory: DataDirectory): StoreWorld {
  const { files, wasm } = directory;
  return { place: new StoreDirectories(directory), files, wasm };
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
  { place, wasm, onEvent, meter: meterOf, beforeMigration }: StoreWorld,
  dir: string,
  keys: TenantKeys,
  migrations: readonly Migration[],
  tables: (sql: Sql) => T,
): Promise<ReadStore<T>> {
  const meter = meterOf?.(dir);
  return place.read(dir, keys, {
    wasm,
    migrations,
    tables,
    onCommit: (commit) => meter?.commit(commit),
    onEvent: (event) => {
      meter?.event(event);
      onEvent?.(dir, event);
    },
    beforeMigration: async () => beforeMigration?.(),
    timed: (run) => (meter ? meter.checkpoint(run) : run()),
    turnMeter: () => meter?.turnMeter(),
  });
}
