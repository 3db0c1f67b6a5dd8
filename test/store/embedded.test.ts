// The embedded store fulfils the store contract, and commits in groups.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readEmbedded } from '../../src/store/file-journal.ts';
import { simStore, testOptions } from '../support/embedded-store.ts';
import { activityInput, contractMigrations, storeContract } from './contract.ts';

const openers = new WeakMap<object, () => ReturnType<Awaited<ReturnType<typeof simStore>>['open']>>();

storeContract(
  'embedded store',
  async () => {
    const { store, open } = await simStore({ limits: { segmentRecords: 2 } });
    openers.set(store, open);
    return store;
  },
  async (store) => {
    await store.close();
    const open = openers.get(store);
    if (!open) throw new Error('not a store of this test');
    const again = await open();
    openers.set(again, open);
    return again;
  },
);

storeContract(
  'embedded store with a checkpoint before each new start',
  async () => {
    const { store, open } = await simStore({ limits: { segmentRecords: 2 } });
    openers.set(store, open);
    return store;
  },
  async (store) => {
    await store.checkpoint();
    await store.close();
    const open = openers.get(store);
    if (!open) throw new Error('not a store of this test');
    const again = await open();
    openers.set(again, open);
    return again;
  },
);

test('a store that cannot be opened lets go of what it was read with, and opens the next time', async () => {
  const { store, files, open, generator } = await simStore();
  await store.transaction((tx) => tx.notes.add('kept'));
  await store.close();
  let closed = 0;
  const onClosed = async (): Promise<void> => void closed++;
  const migrations = [...contractMigrations, { name: 'none', statements: ['no migration'] }];
  for (const more of [{ migrations }, { migrations, beforeMigration: async () => assert.fail('no backup') }]) {
    const read = await readEmbedded(testOptions(files, generator, { ...more, onClosed }));
    await assert.rejects(read.open(), /syntax error|no backup/);
    await read.discard();
  }
  assert.equal(closed, 2);
  const again = await open();
  assert.ok(await again.transaction((tables) => tables.notes.get('kept')));
  await again.close();
});

test('transactions that come while one is being synced share the next fsync', async () => {
  const { store, files } = await simStore();
  // Warms up first: with slow code the event loop would take a turn in between, and the disk with it.
  for (let i = 0; i < 100; i++) await store.transaction((tx) => tx.notes.get('none'));
  const before = { ...files.counts };
  await Promise.all(
    Array.from({ length: 100 }, (_, i) =>
      store.transaction((tx) => {
        tx.notes.add(`n${i}`);
        tx.record(activityInput(`act_${i}`));
      }),
    ),
  );
  assert.equal((files.counts.sync ?? 0) - (before.sync ?? 0), 1);
  assert.equal((files.counts.append ?? 0) - (before.append ?? 0), 1);
  const first = store.transaction((tx) => tx.notes.add('first'));
  while (files.counts.append === (before.append ?? 0) + 1) await new Promise((resolve) => setImmediate(resolve));
  const others = Array.from({ length: 20 }, (_, i) => store.transaction((tx) => tx.notes.add(`m${i}`)));
  await Promise.all([first, ...others]);
  assert.equal((files.counts.sync ?? 0) - (before.sync ?? 0), 3);
  assert.equal(store.status().sequence, 122);
  await store.close();
});

test('a transaction that only reads waits for what it may have seen, and writes nothing', async () => {
  const { store, files } = await simStore();
  const order: string[] = [];
  const write = store.transaction((tx) => tx.notes.add('a')).then(() => order.push('write'));
  const read = store.transaction((tx) => tx.notes.get('a')).then(() => order.push('read'));
  const failed = store
    .transaction((tx) => {
      tx.notes.add('a');
    })
    .catch(() => order.push('failed'));
  await Promise.all([write, read, failed]);
  assert.deepEqual(order, ['write', 'read', 'failed']);
  const { append } = files.counts;
  await store.transaction((tx) => tx.notes.all());
  assert.equal(files.counts.append, append);
  await store.close();
});
