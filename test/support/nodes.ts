// Two nodes of one appliance on a simulated engine. The second remembers a moment of its own choice for ever: what it
// reads without a transaction is of then, so that its data are as old as another node's can ever be.
import type { Store, Tables } from '../../src/store/port.ts';
import { createShared } from '../../src/store/shared/row-journal.ts';
import { tenantTables } from '../../src/store/tables/databases.ts';
import { tenantMigrations } from '../../src/store/tables/migrations.ts';
import { type Appliance, type ApplianceOptions, testAppliance } from './appliance.ts';
import { prng } from './prng.ts';
import { openShared, sharedOptions } from './shared-store.ts';
import { SimDatabase, SimEngine } from './sim-engine.ts';

interface Nodes {
  readonly a: Appliance;
  /** At first it remembers the appliance as it was made. */
  readonly b: Appliance;
  /** Lets the second node remember the present. */
  remember(): Promise<void>;
  /** Transactions of the second node in the first tenant's store. */
  transactions(): number;
}

export async function twoNodes(options: Pick<ApplianceOptions, 'tenants'> = {}): Promise<Nodes> {
  const places = await Promise.all((options.tenants ?? ['default']).map((_, n) => newPlace(n)));
  const a = await testAppliance({ ...options, stores: await Promise.all(places.map(openStore)) });
  const stores = await Promise.all(places.map(openStore));
  let remembered: readonly Store[] = [];
  let ran = 0;
  for (const [n, store] of stores.entries()) {
    const { transaction } = store;
    store.read = (look) => (remembered[n] ?? store).read(look);
    store.transaction = (work) => {
      if (n === 0) ran++;
      return transaction.call(store, work) as never;
    };
  }
  const remember = async () => {
    remembered = await Promise.all(places.map(openStore));
  };
  await remember();
  return { a, b: await testAppliance({ ...options, stores, like: a }), remember, transactions: () => ran };
}

interface Place {
  readonly database: SimDatabase;
  readonly uid: Uint8Array;
}

async function newPlace(n: number): Promise<Place> {
  const generator = prng(n + 1);
  const database = new SimDatabase(generator);
  const uid = new Uint8Array(16).fill(n + 7);
  const { keys } = sharedOptions(new SimEngine(database), generator);
  await createShared({ engine: new SimEngine(database), uid, keys, random: (length) => generator.bytes(length) });
  return { database, uid };
}

function openStore({ database, uid }: Place): Promise<Store> {
  const options = sharedOptions(new SimEngine(database), database.prng);
  return openShared<Tables>({ ...options, uid, migrations: tenantMigrations, tables: tenantTables });
}
