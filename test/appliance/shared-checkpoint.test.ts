// Checkpoints of stores in a database run beside the serving thread, with a database connection of their own.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CheckpointThread } from '../../src/platform/threads/checkpoint.ts';
import { writeCheckpoint } from '../../src/store/checkpoint.ts';
import { checkpointRows } from '../../src/store/shared/checkpoint.ts';
import { openPostgres } from '../../src/store/shared/postgres.ts';
import { storeIdOf } from '../../src/store/shared/recovery.ts';
import { activityInput } from '../store/contract.ts';
import { longestGo } from '../support/longest-go.ts';
import { Postgres, postgresPrograms } from '../support/postgres.ts';
import { createStore, storeOptions } from '../support/shared-load.ts';
import { openShared } from '../support/shared-store.ts';
import { testStoreKeys } from '../support/store-keys.ts';
import { sqlWasm } from '../support/wasm.ts';

const programs = postgresPrograms();

/** Longest pause of other work, in milliseconds. */
const longestPause = 30;

if (!programs) {
  test('checkpoints of stores on PostgreSQL', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
} else {
  const postgres = new Postgres(programs);
  const engine = await openPostgres(postgres.address);
  const url = `postgres://kms@/postgres?host=${postgres.dir}`;
  const source = { url, isListed: false, env: () => undefined };
  const thread = CheckpointThread.shared(source, sqlWasm);
  const keys = testStoreKeys();
  after(async () => {
    await thread.end();
    await engine.close();
    postgres.end();
  });

  const large = async (uid: Uint8Array, onThread: boolean) => {
    const world = { wasm: sqlWasm, random: (length: number) => crypto.getRandomValues(new Uint8Array(length)) };
    const journal = checkpointRows({ engine, keys, uid });
    const events: string[] = [];
    const store = await openShared({
      ...storeOptions(engine, uid),
      limits: { checkpointBytes: 1e9, segmentRecords: 4096 },
      onEvent: ({ kind }) => events.push(kind),
      runCheckpoint: (job) => (onThread ? thread.run(storeIdOf(uid), keys, job) : writeCheckpoint(journal, world, job)),
    });
    return { store, events };
  };

  test('a checkpoint of a large store keeps nobody from the event loop', async (context) => {
    const uid = await createStore(engine);
    const { store, events } = await large(uid, true);
    const text = 'x'.repeat(6000);
    for (let from = 0; from < 6000; from += 250) {
      await store.transaction((tx) => {
        for (let i = from; i < from + 250; i++) tx.notes.add(`note ${i}`, text);
        tx.record(activityInput(`act_${from}`));
      });
    }
    // Starts the thread and opens its connection.
    await store.checkpoint();
    await store.transaction((tx) => tx.notes.set('note 0', 'changed'));
    const pause = await longestGo(() => store.checkpoint());
    await store.close();
    assert.deepEqual(events, ['checkpoint', 'checkpoint']);

    const { store: slow } = await large(uid, false);
    assert.equal((await slow.transaction((tx) => tx.notes.get('note 0')))?.value, 'changed');
    await slow.transaction((tx) => tx.notes.set('note 0', 'again'));
    const here = await longestGo(() => slow.checkpoint());
    await slow.close();
    context.diagnostic(`${pause.toFixed(1)} ms at once beside the thread, ${here.toFixed(1)} ms where it runs on it`);
    assert.ok(pause < longestPause, `${pause} ms`);
    assert.ok(here > 2 * pause, `${here} ms: too little to prove anything`);
  });

  test('what fails on the thread says why, and the next checkpoint is made', async () => {
    const uid = await createStore(engine);
    const { store, events } = await large(uid, true);
    await store.transaction((tx) => tx.notes.add('a'));
    const made = await thread.run(storeIdOf(uid), keys, { at: 1, segmentRecords: 2, counted: true });
    assert.deepEqual([made?.generation, made?.tables], [3, { notes: 1, tags: 0 }]);
    const none = '09'.repeat(16);
    await assert.rejects(thread.run(none, keys, { at: 1, segmentRecords: 2, counted: false }), {
      code: 'not-found',
      message: /no store 0909/,
    });
    const wrong = testStoreKeys('other');
    await assert.rejects(thread.run(storeIdOf(uid), wrong, { at: 1, segmentRecords: 2, counted: false }), {
      code: 'corrupt',
    });
    await postgres.cutConnections();
    await store.transaction((tx) => tx.notes.add('b'));
    await store.checkpoint();
    assert.deepEqual(events, ['checkpoint']);
    const elsewhere = CheckpointThread.shared({ ...source, url: `${url}/none` }, sqlWasm);
    await assert.rejects(elsewhere.run(storeIdOf(uid), keys, { at: 1, segmentRecords: 2, counted: false }), {
      code: 'unavailable',
      message: /there is no such socket/,
    });
    await store.close();
  });
}
