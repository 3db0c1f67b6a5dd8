// A fault at every step of a start, of writes, and of checkpoints with segments of the activity log.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Store } from '../../src/store/port.ts';
import type { NoteTables } from '../store/contract.ts';
import { reached } from '../support/crash-points.ts';
import { breaking, crashSweep, done, type Fault, mend } from '../support/crash-sweep.ts';
import { createTestStore, openSettling as open } from '../support/embedded-store.ts';
import type { Prng } from '../support/prng.ts';
import { SimFiles } from '../support/sim-files.ts';
import { writeNote } from '../support/store-sample.ts';

/** The number of notes; checks that they are n0 and so on without a gap, each with its record. */
async function count(store: Store<NoteTables>): Promise<number> {
  const notes = await store.transaction((tx) => tx.notes.all());
  assert.deepEqual(
    notes.map(({ name }) => name),
    notes.map((_, at) => `n${at}`),
  );
  const ids: string[] = [];
  for await (const { record } of store.activity.read(1)) ids.push(record.id);
  assert.deepEqual(
    ids,
    notes.map((_, at) => `act_${at}`),
  );
  return notes.length;
}

async function prepare(generator: Prng): Promise<SimFiles> {
  const files = new SimFiles({ prng: generator });
  await createTestStore(files, generator);
  const { store } = await open(files, generator);
  for (let i = 0; i < 8; i++) await writeNote(store, i);
  await store.checkpoint();
  for (let i = 8; i < 10; i++) await writeNote(store, i);
  await store.close();
  return files;
}

async function attempt(base: SimFiles, fault: Fault, generator: Prng): Promise<boolean> {
  const files = breaking(base, fault, generator);
  let acknowledged = 10;
  let doubtful = 0;
  const work = async (): Promise<void> => {
    const { store, settle } = await open(files, generator);
    const write = async (): Promise<void> => {
      if (files.crashed) return;
      if (await done(files, fault, writeNote(store, acknowledged, 'x'.repeat(generator.int(700))))) acknowledged++;
      else if (files.crashed) doubtful = 1;
    };
    for (let round = 0; round < 2 && !files.crashed; round++) {
      await Promise.all([done(files, fault, store.checkpoint()), write().then(write)]);
      await write();
    }
    mend(files, fault);
    if (!files.crashed) {
      await settle();
      assert.equal(await count(store), acknowledged, 'before the crash');
      await write();
    }
    await store.close();
  };
  await done(files, fault, work());
  const came = mend(files, fault);
  const after = files.restart({ prng: generator });
  for (let again = 0; again < 2; again++) {
    const { store } = await open(after, generator);
    const found = await count(store);
    assert.ok(found === acknowledged || found === acknowledged + doubtful, `${found}, ${acknowledged} acknowledged`);
    if (again === 0) await store.checkpoint();
    await store.close();
  }
  return came;
}

test('a fault at every step of checkpoints', async (context) => {
  reached(context, 'checkpoint', await crashSweep({ file: import.meta.filename, seeds: 4, prepare, attempt }));
});
