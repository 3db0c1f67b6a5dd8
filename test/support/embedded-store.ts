// Opens an embedded store for a test, on any files, with the tables of the contract suite.

import type { EmbeddedOptions } from '../../src/store/file-journal.ts';
import { createEmbedded, readEmbedded } from '../../src/store/file-journal.ts';
import type { Files } from '../../src/store/files.ts';
import type { Store } from '../../src/store/port.ts';
import { contractMigrations, type NoteTables, noteTables } from '../store/contract.ts';
import { type Prng, prng } from './prng.ts';
import { SimFiles } from './sim-files.ts';
import { testStoreKeys } from './store-keys.ts';
import { sqlWasm } from './wasm.ts';

export const testDir = 'tenants/a';

type More = Partial<EmbeddedOptions<NoteTables>>;

export function testOptions(files: Files, generator: Prng, more: More = {}): EmbeddedOptions<NoteTables> {
  return {
    files,
    dir: testDir,
    keys: testStoreKeys(),
    wasm: sqlWasm,
    migrations: contractMigrations,
    tables: noteTables,
    random: (length) => generator.bytes(length),
    now: () => 1000,
    later: () => {},
    ...more,
  };
}

/** Reads and opens it in one go. */
export async function openEmbedded<T extends object>(options: EmbeddedOptions<T>): Promise<Store<T>> {
  return (await readEmbedded(options)).open();
}

export async function createTestStore(files: Files, generator: Prng, more: More = {}): Promise<void> {
  const { dir, keys } = testOptions(files, generator, more);
  await createEmbedded({ files, dir, keys, random: (length) => generator.bytes(length), at: 1000 });
}

/** A new store on a simulated disk without faults, and everything needed to open it again. */
export async function simStore(more: More = {}, seed = 1) {
  const generator = prng(seed);
  const files = new SimFiles({ prng: generator });
  await createTestStore(files, generator, more);
  const open = (): Promise<Store<NoteTables>> => openEmbedded(testOptions(files, generator, more));
  return { files, open, store: await open(), generator };
}

/** A store of notes whose repairs wait for `settle`, which runs them until the store is writable. */
export interface Settling {
  readonly store: Store<NoteTables>;
  settle(): Promise<void>;
}

export async function openSettling(files: SimFiles, generator: Prng): Promise<Settling> {
  let later: (() => void)[] = [];
  const store = await openEmbedded(
    testOptions(files, generator, {
      limits: { segmentRecords: 3, checkpointBytes: 1e6 },
      later: (_milliseconds, run) => void later.push(run),
    }),
  );
  return {
    store,
    async settle() {
      while (!store.status().writable) {
        const due = later;
        later = [];
        for (const run of due) run();
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}
