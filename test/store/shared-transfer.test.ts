// A store that moves from files to a shared engine, and back: its content, how clients recognise it, and interrupted
// moves.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHex } from '../../src/crypto/bytes.ts';
import { isFork } from '../../src/model/store-mark.ts';
import { createEmbedded } from '../../src/store/file-journal.ts';
import type { Store } from '../../src/store/port.ts';
import { exportStore, importStore, sendSegments } from '../../src/store/shared/transfer.ts';
import { openEmbedded, testDir, testOptions } from '../support/embedded-store.ts';
import { MemoryFiles } from '../support/memory-files.ts';
import { type Prng, prng } from '../support/prng.ts';
import { logOf } from '../support/shared-judge.ts';
import { openShared, sharedOptions } from '../support/shared-store.ts';
import { SimDatabase, SimEngine, type SimFault } from '../support/sim-engine.ts';
import { testStoreKeys } from '../support/store-keys.ts';
import { sqlWasm } from '../support/wasm.ts';
import { activityInput, contractMigrations, type NoteTables } from './contract.ts';

type Notes = Store<NoteTables>;

const limits = { segmentRecords: 3 };

async function write(store: Notes, from: number, to: number): Promise<void> {
  for (let i = from; i <= to; i++) {
    await store.transaction((tx) => {
      tx.notes.add(`n${i}`, i);
      tx.notes.count(`n${i}`);
      tx.record(activityInput(`act_${i}`));
    });
  }
}

/** Ten notes with as many records, spread over snapshot, segments, a closed log and the last one. */
async function embedded(generator: Prng, drop = 0): Promise<{ files: MemoryFiles; uid: Uint8Array; notes: Notes }> {
  const files = new MemoryFiles();
  const uid = generator.bytes(16);
  const random = (length: number) => generator.bytes(length);
  await createEmbedded({ files, dir: testDir, keys: testStoreKeys(), random, uid, at: 1000 });
  const first = await openEmbedded(testOptions(files, generator, { limits }));
  await write(first, 1, 8);
  await first.checkpoint();
  if (drop > 0) await first.dropActivity(drop);
  await first.close();
  const notes = await openEmbedded(testOptions(files, generator, { limits }));
  await write(notes, 9, 10);
  await notes.close();
  return { files, uid, notes };
}

function worldOf(engine: SimEngine, generator: Prng) {
  const random = (length: number) => generator.bytes(length);
  return { engine, keys: testStoreKeys(), wasm: sqlWasm, migrations: contractMigrations, random, at: 2000 };
}

async function contentOf(store: Notes) {
  const rows = await store.transaction((tx) =>
    tx.notes.all().map(({ seq, name, value }) => [seq, name, value, tx.notes.counted(name)]),
  );
  return { rows, log: (await logOf(store)).head };
}

for (const drop of [0, 3]) {
  const what = drop > 0 ? 'a store without its first records' : 'a store';
  test(`${what} goes over to an engine and back: the same rows, chain, mark and segments`, async () => {
    const generator = prng(3);
    const { files, uid, notes } = await embedded(generator, drop);
    const before = new Map(files.contents);
    const engine = new SimEngine(new SimDatabase(generator));
    const held = await importStore(worldOf(engine, generator), { files, dir: testDir }, 'tenant');
    assert.deepEqual([...files.contents], [...before], 'the source is as it was');
    assert.deepEqual(held.mark, notes.mark);
    assert.deepEqual([held.activity.seq, held.tables.notes, held.dropped?.seq ?? 0], [10, 10, drop]);
    const segments = [...before.keys()].filter((name) => name.includes('activity-'));
    assert.ok(segments.length >= 1);
    const dir = toHex(uid);
    for (const name of segments) {
      const there = engine.database.contents.files.get(name.replace(testDir, dir));
      assert.deepEqual(there, new Uint8Array(before.get(name) ?? []), name);
    }
    const [listed] = await engine.stores();
    assert.deepEqual([listed?.name, listed?.store, listed?.isWhole], ['tenant', dir, false]);

    const options = { ...sharedOptions(engine, generator, { limits }), uid };
    const shared = await openShared(options);
    assert.deepEqual(shared.mark, notes.mark);
    if (drop === 0) await logOf(shared);
    await write(shared, 11, 13);
    assert.equal(isFork(shared.mark, notes.mark), false, 'clients know it again');
    await shared.checkpoint();
    await write(shared, 14, 14);
    await shared.close();

    const back = new MemoryFiles();
    const returned = await exportStore(worldOf(engine, generator), uid, { files: back, dir: testDir });
    assert.deepEqual(returned.mark, shared.mark);
    const again = await openEmbedded(testOptions(back, generator, { limits }));
    const other = await openShared(options);
    if (drop === 0) assert.deepEqual(await contentOf(again), await contentOf(other));
    assert.equal((await other.activity.search({}, { limit: 20 })).items.length, 14 - drop);
    await write(again, 15, 15);
    assert.equal(isFork(again.mark, shared.mark), false);
    assert.equal(isFork(again.mark, notes.mark), false);
    await again.close();
    await other.close();
    const third = new SimEngine(new SimDatabase(generator));
    const fourth = await importStore(worldOf(third, generator), { files: back, dir: testDir }, 'tenant');
    assert.deepEqual(fourth.mark, again.mark);
  });
}

test('a store that is there already is not written over', async () => {
  const generator = prng(4);
  const { files } = await embedded(generator);
  const engine = new SimEngine(new SimDatabase(generator));
  const from = { files, dir: testDir };
  await importStore(worldOf(engine, generator), from, 'tenant');
  const { contents } = engine.database;
  await assert.rejects(importStore(worldOf(engine, generator), from, 'tenant'), { code: 'refused' });
  await assert.rejects(importStore(worldOf(engine, generator), from, 'other'), { code: 'refused' });
  assert.equal(engine.database.contents, contents);
});

test('what does not verify goes nowhere, and a segment that is missing is named', async () => {
  const generator = prng(5);
  const { files } = await embedded(generator);
  const engine = new SimEngine(new SimDatabase(generator));
  const from = { files, dir: testDir };
  const damaged = async (name: RegExp, message: RegExp): Promise<void> => {
    const [path = '', bytes] = [...files.contents].find(([each]) => name.test(each)) ?? [];
    assert.ok(bytes);
    files.contents.delete(path);
    await assert.rejects(importStore(worldOf(engine, generator), from, 'tenant'), { code: 'corrupt', message });
    files.contents.set(path, bytes);
  };
  await damaged(/activity-000000000001/, /activity-000000000001\.kms is missing/);
  await damaged(/log-/, /is missing/);
  assert.deepEqual(await engine.stores(), []);
  assert.equal(engine.database.contents.files.size, 0);
});

test('an import that is cut off at any message is not whole, and is done over once it was erased', async () => {
  const generator = prng(6);
  const { files, uid } = await embedded(generator);
  const from = { files, dir: testDir };
  const database = new SimDatabase(generator);
  const clean = new SimEngine(database);
  let cuts = 0;
  for (let at = 1; ; at++) {
    const fault: SimFault = at % 2 ? 'request' : 'answer';
    const engine = new SimEngine(database, { fault: (number) => (number === at ? fault : undefined) });
    try {
      await importStore(worldOf(engine, generator), from, 'tenant');
      if (engine.messages < at) break;
      // A snapshot is read once more after a failure.
    } catch (error) {
      assert.ok(error instanceof Error && 'code' in error && error.code === 'unavailable', String(error));
    }
    cuts++;
    assert.ok((await clean.stores()).every(({ isWhole }) => !isWhole));
    await clean.erase(toHex(uid));
    assert.equal(database.contents.files.size, 0);
  }
  assert.ok(cuts > 10, 'too little happened to prove anything');
  const store = await openShared({ ...sharedOptions(clean, generator, { limits }), uid });
  assert.equal((await logOf(store)).entries.length, 10);
  await store.close();
});

test('an import that somebody erased in the middle does not come to an end', async () => {
  const generator = prng(8);
  const { files, uid } = await embedded(generator);
  const from = { files, dir: testDir };
  const database = new SimDatabase(generator);
  const other = new SimEngine(database);
  let writes = 0;
  const engine = new SimEngine(database, {
    fault: (_number, kind) => {
      if (kind === 'write' && ++writes === 2) {
        const stores = new Map(database.contents.stores);
        stores.delete(toHex(uid));
        database.commit({ stores, files: new Map() });
      }
      return undefined;
    },
  });
  await assert.rejects(importStore(worldOf(engine, generator), from, 'tenant'), { code: 'unavailable' });
  await importStore(worldOf(other, generator), from, 'tenant');
});

test('what does not change is sent ahead while the store is served, and then only the rest goes over', async () => {
  const generator = prng(9);
  const { files } = await embedded(generator);
  const from = { files, dir: testDir };
  const engine = new SimEngine(new SimDatabase(generator), { fault: () => undefined });
  const world = worldOf(engine, generator);
  const first = await sendSegments(world, from);
  assert.ok(first.upTo && first.upTo.seq >= 6, 'segments of three records each');
  assert.deepEqual(await engine.stores(), [], 'there is no store yet');
  const sent = [...engine.database.contents.files.keys()];
  const served = await openEmbedded(testOptions(files, generator, { limits }));
  await write(served, 11, 19);
  await served.checkpoint();
  await write(served, 20, 20);
  await served.close();
  const second = await sendSegments(world, from, first);
  assert.ok((second.upTo?.seq ?? 0) >= 15);
  assert.ok(engine.database.contents.files.size > sent.length);
  const before = engine.messages;
  const held = await importStore(world, from, 'tenant', second);
  const withSent = engine.messages - before;
  const whole = new SimEngine(new SimDatabase(generator), { fault: () => undefined });
  const { activity, tables, mark } = await importStore(worldOf(whole, generator), from, 'tenant');
  assert.deepEqual([held.activity, held.tables, held.mark], [activity, tables, mark]);
  assert.ok(withSent < whole.messages, `${withSent} messages of ${whole.messages}`);
  const contents = (each: SimEngine) =>
    [...each.database.contents.files].filter(([name]) => name.includes('activity-')).sort();
  assert.deepEqual(contents(engine), contents(whole));
});

test('what was sent ahead and is gone again, or is of something else, goes over once more', async () => {
  const generator = prng(10);
  const { files, uid } = await embedded(generator);
  const from = { files, dir: testDir };
  for (const spoil of ['gone', 'other', 'rekeyed'] as const) {
    const engine = new SimEngine(new SimDatabase(generator));
    const world = worldOf(engine, generator);
    const sent = await sendSegments(world, from);
    assert.ok(sent.upTo);
    if (spoil === 'gone') await engine.erase(toHex(uid));
    const told = {
      ...sent,
      ...(spoil === 'other' && { upTo: { ...sent.upTo, hash: 'A'.repeat(43) } }),
      ...(spoil === 'rekeyed' && { epoch: sent.epoch - 1 }),
    };
    const { activity } = await importStore(world, from, 'tenant', told);
    assert.equal(activity.seq, 10, spoil);
    const store = await openShared({ ...sharedOptions(engine, generator, { limits }), uid });
    assert.equal((await logOf(store)).entries.length, 10, spoil);
    await store.close();
  }
});

test('what arrives damaged when it is sent ahead is not believed', async () => {
  const generator = prng(11);
  const { files } = await embedded(generator);
  const engine = new SimEngine(new SimDatabase(generator));
  const [name = ''] = [...files.contents.keys()].filter((each) => each.includes('activity-'));
  const bytes = new Uint8Array(files.contents.get(name) ?? []);
  bytes[bytes.length - 20] = (bytes[bytes.length - 20] ?? 0) ^ 1;
  files.contents.set(name, bytes);
  await assert.rejects(sendSegments(worldOf(engine, generator), { files, dir: testDir }), { code: 'corrupt' });
});
