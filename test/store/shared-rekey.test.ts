// Rekeying a shared store while its nodes serve: nothing is left that needs the old key, and every node continues.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHex } from '../../src/crypto/bytes.ts';
import { decodeHeader } from '../../src/store/activity/segment.ts';
import type { Store, StoreEvent } from '../../src/store/port.ts';
import { decodeFileHeader } from '../../src/store/store-files.ts';
import { logOf } from '../support/shared-judge.ts';
import { openShared, sharedOptions, sharedUid, simShared } from '../support/shared-store.ts';
import { type SimDatabase, SimEngine } from '../support/sim-engine.ts';
import { ChangingKeys } from '../support/store-keys.ts';
import { activityInput, type NoteTables } from './contract.ts';

type Notes = Store<NoteTables>;

const storeId = toHex(sharedUid);
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

async function write(store: Notes, from: number, to: number): Promise<void> {
  for (let i = from; i <= to; i++) {
    await store.transaction((tx) => {
      tx.notes.add(`n${i}`, i);
      tx.record(activityInput(`act_${i}`));
    });
  }
}

/** Key epochs of rows, snapshots and segments. */
function epochsIn(database: SimDatabase): readonly number[] {
  const found = new Set(database.rows(storeId).map(({ epoch }) => epoch));
  for (const [name, bytes] of database.contents.files) {
    if (name.includes('snapshot')) found.add(decodeFileHeader('snapshot', name, bytes).epoch);
    const segment = name.includes('activity') ? decodeHeader(bytes) : undefined;
    if (typeof segment === 'object') found.add(segment.epoch);
  }
  return [...found].sort();
}

/** Two nodes, each with keys of its own; the second learns of a new key by the seal's version. */
async function twoNodes(more: { onEvent?: (event: StoreEvent) => void } = {}) {
  const sim = await simShared();
  const limits = { segmentRecords: 2 };
  const node = async () => {
    const keys = new ChangingKeys();
    const engine = new SimEngine(sim.database);
    const onTurnStart = ({ sealVersion }: { sealVersion: number }): undefined => {
      keys.epoch = Math.max(keys.epoch, sealVersion);
    };
    const beforeRecovery = async () => {
      onTurnStart({ sealVersion: (await engine.readSeal())?.version ?? 0 });
    };
    // Runs timers, such as the end of a hold.
    const later = (_milliseconds: number, run: () => void) => void setTimeout(run, 1).unref();
    await beforeRecovery();
    const options = { ...more, keys, onTurnStart, beforeRecovery, limits, later };
    return { keys, engine, store: await openShared(sharedOptions(engine, sim.generator, options)) };
  };
  const [a, b] = [await node(), await node()];
  const seal = async (version: number) => {
    assert.equal(await a.engine.replaceSeal(version - 1, new Uint8Array([version])), true);
  };
  await seal(1);
  return { ...sim, a, b, node, seal };
}

test('nothing is left under the old key, and all nodes read and write on', async () => {
  const events: StoreEvent[] = [];
  const { a, b, node, seal, database } = await twoNodes({ onEvent: (event) => void events.push(event) });
  await write(a.store, 1, 5);
  await write(b.store, 6, 7);
  await a.store.checkpoint();
  await b.store.activity.search({}, { limit: 10 });
  await write(b.store, 8, 9);
  await seal(2);
  const busy = write(b.store, 10, 14);
  assert.deepEqual(await a.store.reseal(), [2]);
  await busy;
  assert.deepEqual(epochsIn(database), [2]);
  for (const { keys } of [a, b]) keys.retired = 1;
  const c = await node();
  c.keys.retired = 1;
  await write(c.store, 15, 15);
  const logs = await Promise.all([a, b, c].map(({ store }) => logOf(store)));
  for (const { entries, head } of logs) assert.deepEqual([entries.length, head], [15, logs[0]?.head]);
  for (const { store } of [a, b, c]) await store.segments.look();
  assert.deepEqual(
    events.filter(({ kind }) => kind.startsWith('segment')),
    [],
  );
  for (const { store } of [a, b, c]) {
    assert.deepEqual(store.status().activityFaults, []);
    await store.close();
  }
});

test('a node whose place went with the rows recovers, and loses nothing that it answered', async () => {
  const { a, b, seal, database } = await twoNodes();
  await write(a.store, 1, 3);
  await write(b.store, 4, 4);
  const resume = b.engine.stall();
  await write(a.store, 5, 6);
  await seal(2);
  assert.deepEqual(await a.store.reseal(), [2]);
  assert.equal(database.rows(storeId).length, 1);
  a.keys.retired = 1;
  resume();
  await write(b.store, 7, 7);
  const names = async ({ store }: typeof a) =>
    (await store.transaction((tx) => tx.notes.all())).map(({ name }) => name);
  assert.deepEqual(await names(b), ['n1', 'n2', 'n3', 'n4', 'n5', 'n6', 'n7']);
  assert.deepEqual(await names(a), await names(b));
  for (const { store } of [a, b]) await store.close();
});

test('another node may replace the snapshot in the middle of it', async () => {
  const { a, b, seal } = await twoNodes();
  await write(a.store, 1, 6);
  await a.store.checkpoint();
  await seal(2);
  const replace = a.engine.replaceBehind.bind(a.engine);
  let isReplaced = false;
  a.engine.replaceBehind = async (store, row, name, bytes) => {
    await replace(store, row, name, bytes);
    if (isReplaced || !name.includes('activity')) return;
    isReplaced = true;
    await write(b.store, 7, 7);
    await b.store.checkpoint();
  };
  assert.deepEqual(await a.store.reseal(), [2]);
  assert.ok(isReplaced);
  for (const { store } of [a, b]) await store.close();
});

test('it waits for whoever copies the files, and is done after it', async () => {
  const { a, b, seal, database } = await twoNodes();
  await write(a.store, 1, 4);
  const hold = await b.store.hold(false);
  assert.ok(hold);
  await seal(2);
  let isDone = false;
  const resealing = a.store.reseal().then((epochs) => {
    isDone = true;
    return epochs;
  });
  for (let turns = 0; turns < 200; turns++) await turn();
  assert.equal(isDone, false);
  for (const { name, bytes } of hold.files) {
    assert.equal((await hold.source.readAt(name, 0, bytes)).length, bytes);
  }
  hold.release();
  assert.deepEqual(await resealing, [2]);
  assert.deepEqual(epochsIn(database), [2]);
  for (const { store } of [a, b]) await store.close();
});

test('a store that is closed ends it, and the next one goes on', async () => {
  const { a, b, seal } = await twoNodes();
  await write(a.store, 1, 4);
  const hold = await b.store.hold(false);
  await seal(2);
  const resealing = a.store.reseal();
  const refused = assert.rejects(resealing ?? Promise.resolve(), { code: 'unavailable' });
  for (let turns = 0; turns < 50; turns++) await turn();
  await a.store.close();
  await refused;
  hold?.release();
  assert.deepEqual(await b.store.reseal(), [2]);
  await b.store.close();
});
