// An appliance of two stores on a simulated disk: the system store and one tenant's, under a real seal. Each write to
// the tenant is a row and an activity record with the same number, so that any copy shows how far it goes.

import type { Collecting } from '../../src/backup/write.ts';
import { looksAt, readInParts } from '../../src/core/pages.ts';
import { SealKeeper, sealInFiles } from '../../src/custody/seal-keeper.ts';
import { sealFile, systemDir, tenantDir } from '../../src/platform/data-dir.ts';
import { openSeal, type Seal, sealFor } from '../../src/seal/seal.ts';
import { makeCustodian } from '../../src/seal/slot.ts';
import { type TenantKeys, tenantKeys } from '../../src/seal/tenant-keys.ts';
import { servedTenant, Tenants } from '../../src/storage/served-tenants.ts';
import { storesIn } from '../../src/storage/stores.ts';
import { createEmbedded } from '../../src/store/file-journal.ts';
import type { Files } from '../../src/store/files.ts';
import type { Store, Tables } from '../../src/store/port.ts';
import { type SystemTables, systemTables, tenantTables } from '../../src/store/tables/databases.ts';
import { type Migration, systemMigrations, tenantMigrations } from '../../src/store/tables/migrations.ts';
import { activityInput } from '../store/contract.ts';
import { openEmbedded } from './embedded-store.ts';
import type { Prng } from './prng.ts';
import type { SimFiles } from './sim-files.ts';
import { sqlWasm } from './wasm.ts';

export const tenantName = '00112233445566aa';
export const segmentRecords = 8;
const limits = { checkpointBytes: 12_000, segmentRecords, recoveryRetry: 1, checkpointRetry: 0 };

/** A constant seal, or one that changes. */
interface SealInUse {
  readonly current: Seal;
  keysFor(dir: string): TenantKeys;
}

export interface SimAppliance extends Collecting {
  readonly seal: { readonly current: Seal };
  readonly tenant: Store<Tables>;
  /** Writes the next number; resolves with it once it is durable. */
  write(): Promise<number>;
  /** Resolves when both stores are writable again, after a fault has ended. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

export interface SealedAppliance extends SimAppliance {
  readonly seal: SealKeeper;
}

/** The same for each seed, so that one run's data open in another. */
export function simSeal(generator: Prng): Seal {
  const secret = generator.bytes(32);
  return sealFor([makeCustodian('keyfile', secret)], (length) => generator.bytes(length))
    .withStore(systemDir)
    .withStore(tenantName);
}

export async function createSimAppliance(files: Files, seal: Seal, generator: Prng): Promise<void> {
  const random = (length: number): Uint8Array => generator.bytes(length);
  for (const [dir, name] of [
    [systemDir, systemDir],
    [tenantDir(tenantName), tenantName],
  ] as const) {
    await createEmbedded({ files, dir, keys: seal.keysFor(name), random, at: 1000 });
  }
  const appliance = await openSimAppliance(files, seal, generator);
  await appliance.system.transaction((tx) =>
    tx.tenants.insert({
      id: 'tenant_1',
      name: 'default',
      hosts: ['*'],
      dir: tenantName,
      limits: {},
      createdAt: 1,
      updatedAt: 1,
    }),
  );
  await appliance.close();
}

/**
 * An appliance with its seal in a file beside the stores, as in a data directory. Runs checkpoints, so that it opens
 * quickly.
 */
export async function createSealedAppliance(files: SimFiles, secret: Uint8Array, generator: Prng): Promise<void> {
  const seal = sealFor([makeCustodian('keyfile', secret)], (length) => generator.bytes(length))
    .withStore(systemDir)
    .withStore(tenantName);
  await createSimAppliance(files, seal, generator);
  await files.replace(sealFile, seal.toBytes());
  const appliance = await openSimAppliance(files, seal, generator);
  await appliance.system.checkpoint();
  await appliance.tenant.checkpoint();
  await appliance.close();
}

/** A program with other migrations. */
export interface OtherProgram {
  readonly system: readonly Migration[];
  readonly tenant: readonly Migration[];
  beforeMigration(): Promise<void>;
}

/** Opens only the seal. */
export async function openSealKeeper(files: SimFiles, secret: Uint8Array, generator: Prng): Promise<SealKeeper> {
  return new SealKeeper(
    openSeal(await files.read(sealFile), secret, (length) => generator.bytes(length)),
    sealInFiles(files, '/nowhere'),
  );
}

export async function openSealedAppliance(
  files: SimFiles,
  secret: Uint8Array,
  generator: Prng,
  program?: (seal: SealKeeper) => OtherProgram,
): Promise<SealedAppliance> {
  const seal = await openSealKeeper(files, secret, generator);
  return { ...(await openSimAppliance(files, seal, generator, program?.(seal))), seal };
}

export async function openSimAppliance(
  files: Files,
  given: Seal | SealInUse,
  generator: Prng,
  program?: OtherProgram,
): Promise<SimAppliance> {
  const seal = 'current' in given ? given : { current: given, keysFor: given.keysFor };
  let later: (() => void)[] = [];
  const common = {
    files,
    wasm: sqlWasm,
    random: (length: number) => generator.bytes(length),
    now: () => 1000,
    later: (_milliseconds: number, run: () => void) => void later.push(run),
    limits,
    ...(program && { beforeMigration: program.beforeMigration }),
  };
  const system = await openEmbedded<SystemTables>({
    ...common,
    dir: systemDir,
    keys: seal.keysFor(systemDir),
    migrations: program?.system ?? systemMigrations,
    tables: systemTables,
  });
  const tenant = await openEmbedded<Tables>({
    ...common,
    dir: tenantDir(tenantName),
    keys: seal.keysFor(tenantName),
    migrations: program?.tenant ?? tenantMigrations,
    tables: tenantTables,
  }).catch(async (error: unknown) => {
    await system.close();
    throw error;
  });
  const tenants = new Tenants();
  const records = await system.transaction((tables) => tables.tenants.all());
  for (const record of records) {
    tenants.put(servedTenant(record, tenantKeys(new Map([[1, new Uint8Array(32)]])), tenant, () => 'http://kms.test'));
  }
  const admin = { list: async () => records, exclusively: <R>(run: () => Promise<R>) => run() };
  let next = (await numbersIn(tenant)).length + 1;
  return {
    files,
    place: storesIn({ root: '/nowhere', files, wasm: sqlWasm }).place,
    system,
    tenants,
    tenant,
    admin,
    seal,
    async write() {
      const number = next++;
      const written = tenant.transaction((tx) => {
        tx.accounts.insert({
          id: `acct_${number}`,
          uid: `u${number}`,
          notes: 'n'.repeat(generator.int(200)),
          props: {},
          createdAt: number,
          updatedAt: number,
        });
        tx.record(activityInput(`act_${number}`));
      });
      await written.catch((error: unknown) => {
        next = Math.min(next, number);
        throw error;
      });
      return number;
    },
    async settle() {
      while (!system.status().writable || !tenant.status().writable) {
        const due = later;
        later = [];
        for (const run of due) run();
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    async close() {
      await tenant.close();
      await system.close();
    },
  };
}

/**
 * The numbers written, in order. Throws unless the rows match the records, of which retention may have dropped the
 * first.
 */
export async function numbersIn(tenant: Store<Tables>): Promise<number[]> {
  const accounts = await readInParts(looksAt(tenant), { limit: 100_000 }, (tables, part) =>
    tables.accounts.list(part, ({ uid }) => uid),
  );
  const numbers = accounts.items.parsed().map((uid) => Number(String(uid).slice(1)));
  const recorded: string[] = [];
  for await (const { record } of tenant.activity.read(1)) if (record.id.startsWith('act_')) recorded.push(record.id);
  const dropped = tenant.status().activityDropped?.seq ?? 0;
  const expected = numbers.slice(dropped).map((number) => `act_${number}`);
  const own = recorded.filter((id) => /^act_[0-9]+$/.test(id));
  if (own.join() !== expected.join()) throw new Error(`rows ${expected.join()} and records ${own.join()} differ`);
  if (numbers.some((number, at) => number !== at + 1)) throw new Error(`not one run from 1: ${numbers.join()}`);
  return numbers;
}
