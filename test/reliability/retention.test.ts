// Retention of activity on a failing disk: a fault at every step of dropping closed segments leaves a store that opens,
// whose chain runs from the position that the snapshot states to the last record, and that lacks only what was dropped.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifyChain } from '../../src/store/activity/chain.ts';
import type { Store } from '../../src/store/port.ts';
import type { NoteTables } from '../store/contract.ts';
import { reached } from '../support/crash-points.ts';
import { breaking, crashSweep, done, type Fault, mend } from '../support/crash-sweep.ts';
import { createTestStore, openSettling as open, testDir } from '../support/embedded-store.ts';
import type { Prng } from '../support/prng.ts';
import { SimFiles } from '../support/sim-files.ts';
import { writeNote } from '../support/store-sample.ts';

/**
 * Checks that every note has its record, unless that was dropped; returns the number of notes, and of dropped records.
 */
async function look(store: Store<NoteTables>): Promise<{ notes: number; dropped: number }> {
  const notes = await store.transaction((tx) => tx.notes.all());
  const { activityDropped: start } = store.status();
  const dropped = start?.seq ?? 0;
  const ids: string[] = [];
  async function* links() {
    for await (const chained of store.activity.read(1)) {
      ids.push(chained.record.id);
      yield chained;
    }
  }
  const verdict = await verifyChain(links(), start ? { start } : {});
  assert.equal(verdict.broken, undefined);
  assert.deepEqual(ids, notes.map((_, at) => `act_${at}`).slice(dropped));
  const found = await store.activity.search({}, { limit: 1000 });
  assert.deepEqual(found.items.map(({ id }) => id).reverse(), ids);
  assert.deepEqual(store.status().activityFaults, []);
  return { notes: notes.length, dropped };
}

async function prepare(generator: Prng): Promise<SimFiles> {
  const files = new SimFiles({ prng: generator });
  await createTestStore(files, generator);
  const { store } = await open(files, generator);
  for (let i = 0; i < 14; i++) await writeNote(store, i);
  await store.checkpoint();
  await store.dropActivity(3);
  await store.close();
  return files;
}

async function attempt(base: SimFiles, fault: Fault, generator: Prng): Promise<boolean> {
  const files = breaking(base, fault, generator);
  let acknowledged = 14;
  let doubtful = 0;
  let dropped = 3;
  let atMost = 3;
  const drop = async (store: Store<NoteTables>, upTo: number): Promise<void> => {
    const may = store.droppable(Number.POSITIVE_INFINITY, upTo);
    if (!may || files.crashed) return;
    atMost = Math.max(atMost, may.seq);
    if (await done(files, fault, store.dropActivity(may.seq) ?? Promise.resolve())) dropped = may.seq;
  };
  const work = async (): Promise<void> => {
    const { store, settle } = await open(files, generator);
    const write = async (): Promise<void> => {
      if (files.crashed) return;
      if (await done(files, fault, writeNote(store, acknowledged))) acknowledged++;
      else if (files.crashed) doubtful = 1;
    };
    await Promise.all([drop(store, 6), write().then(write)]);
    await drop(store, 11);
    mend(files, fault);
    if (!files.crashed) {
      await settle();
      const found = await look(store);
      assert.equal(found.notes, acknowledged);
      assert.ok(found.dropped >= dropped && found.dropped <= atMost, `${found.dropped}`);
      await write();
    }
    await store.close();
  };
  await done(files, fault, work());
  const came = mend(files, fault);
  const after = files.restart({ prng: generator });
  for (let again = 0; again < 2; again++) {
    const { store } = await open(after, generator);
    const found = await look(store);
    assert.ok(found.notes === acknowledged || found.notes === acknowledged + doubtful);
    assert.ok(found.dropped >= dropped && found.dropped <= atMost, `${found.dropped}, ${dropped} were acknowledged`);
    const left = (await after.list(testDir)).filter((name) => name.startsWith('activity-')).sort();
    const first = `activity-${String(found.dropped + 1).padStart(12, '0')}.kms`;
    assert.ok((left[0] ?? first) >= first, `${left[0]} was dropped and is there`);
    await store.checkpoint();
    await store.close();
  }
  return came;
}

test('a fault at every step of retention', async (context) => {
  reached(context, 'retention', await crashSweep({ file: import.meta.filename, seeds: 2, prepare, attempt }));
});
