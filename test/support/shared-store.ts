// Opens a shared store for a test, on a simulated engine, with the tables of the contract suite.
import type { Store } from '../../src/store/port.ts';
import { createShared, readShared, type SharedOptions } from '../../src/store/shared/row-journal.ts';
import { contractMigrations, type NoteTables, noteTables } from '../store/contract.ts';
import { type Prng, prng } from './prng.ts';
import { SimDatabase, SimEngine, type SimEngineOptions } from './sim-engine.ts';
import { testStoreKeys } from './store-keys.ts';
import { sqlWasm } from './wasm.ts';

export const sharedUid = new Uint8Array(16).fill(7);

type More = Partial<SharedOptions<NoteTables>>;

export function sharedOptions(engine: SimEngine, generator: Prng, more: More = {}): SharedOptions<NoteTables> {
  return {
    engine,
    uid: sharedUid,
    dir: 'notes',
    keys: testStoreKeys(),
    wasm: sqlWasm,
    migrations: contractMigrations,
    tables: noteTables,
    random: (length) => generator.bytes(length),
    now: () => engine.database.now,
    elapsed: () => engine.database.now,
    later: () => {},
    ...more,
  };
}

/** Reads and opens it in one go. */
export async function openShared<T extends object>(options: SharedOptions<T>): Promise<Store<T>> {
  return (await readShared(options)).open();
}

/** A new store in a simulated database, and everything needed to open it on another node. */
export async function simShared(more: More = {}, seed = 1) {
  const generator = prng(seed);
  const database = new SimDatabase(generator);
  const { uid, keys, random } = {
    random: () => generator.bytes(24),
    ...sharedOptions(new SimEngine(database), generator),
  };
  await createShared({ engine: new SimEngine(database), uid, keys, random: (length) => random(length) });
  const node = async (options: SimEngineOptions = {}): Promise<{ engine: SimEngine; store: Store<NoteTables> }> => {
    const engine = new SimEngine(database, options);
    return { engine, store: await openShared(sharedOptions(engine, generator, more)) };
  };
  return { database, generator, node };
}
