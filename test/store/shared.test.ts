// The shared store fulfils the store contract, alone and beside another serving node.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeCheckpoint } from '../../src/store/checkpoint.ts';
import { checkpointRows } from '../../src/store/shared/checkpoint.ts';
import { engineContract } from '../support/engine-contract.ts';
import { prng } from '../support/prng.ts';
import { sharedOptions, simShared } from '../support/shared-store.ts';
import { SimDatabase, SimEngine } from '../support/sim-engine.ts';
import { storeContract } from './contract.ts';

type Sim = Awaited<ReturnType<typeof simShared>>;
const sims = new WeakMap<object, Sim>();

function simOf(store: object): Sim {
  const sim = sims.get(store);
  if (!sim) throw new Error('not a store of this test');
  return sim;
}

async function open() {
  const sim = await simShared({ limits: { segmentRecords: 2 } });
  const { store } = await sim.node();
  sims.set(store, sim);
  return store;
}

async function reopen(store: object) {
  const sim = simOf(store);
  const again = (await sim.node()).store;
  sims.set(again, sim);
  return again;
}

storeContract('shared store', open, async (store) => {
  await store.close();
  return reopen(store);
});

storeContract('shared store with a checkpoint before each new start', open, async (store) => {
  await store.checkpoint();
  await store.close();
  return reopen(store);
});

storeContract('shared store, continued on a node beside it', open, reopen);

const database = new SimDatabase(prng(1));

engineContract('the simulated engine', async () => new SimEngine(database));

test('a checkpoint up to a row that a failover cut off meanwhile can be tried again, and is no damage', async () => {
  const { database, generator, node } = await simShared();
  const { store } = await node();
  await store.transaction((tx) => tx.notes.add('one'));
  const random = (length: number) => generator.bytes(length);
  const world = { ...sharedOptions(new SimEngine(database), generator), random };
  const journal = checkpointRows(world);
  const job = { at: 1, segmentRecords: 10, counted: false };
  const upTo = (through: number) => writeCheckpoint(journal, world, { ...job, through });
  await assert.rejects(upTo(99), { code: 'unavailable', fault: 'retry', message: /the log ends with row [0-9]+/ });
  const made = await writeCheckpoint(journal, world, job);
  assert.ok(made && made.generation < 99);
  await store.close();
});
