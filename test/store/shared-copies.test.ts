// Copies of a shared store: the held files are those that an embedded store would have, whatever other nodes do
// meanwhile.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHex } from '../../src/crypto/bytes.ts';
import { checkStore } from '../../src/store/check.ts';
import type { Store, StoreHold } from '../../src/store/port.ts';
import { MemoryFiles } from '../support/memory-files.ts';
import { prng } from '../support/prng.ts';
import { sharedUid, simShared } from '../support/shared-store.ts';
import { testStoreKeys } from '../support/store-keys.ts';
import { sqlWasm } from '../support/wasm.ts';
import { activityInput, contractMigrations, type NoteTables } from './contract.ts';

type Notes = Store<NoteTables>;

const storeId = toHex(sharedUid);

async function write(store: Notes, from: number, to: number): Promise<void> {
  for (let i = from; i <= to; i++) {
    await store.transaction((tx) => {
      tx.notes.add(`n${i}`, i);
      tx.record(activityInput(`act_${i}`));
    });
  }
}

async function held(store: Notes): Promise<StoreHold> {
  const hold = await store.hold(true);
  assert.ok(hold);
  return hold;
}

/** Copies piece by piece, and runs `between` after each. */
async function copy(hold: StoreHold, between: () => Promise<void> = async () => {}): Promise<MemoryFiles> {
  const files = new MemoryFiles();
  for (const { name, bytes } of hold.files) {
    assert.equal(await hold.source.size(name), bytes);
    const pieces: Uint8Array[] = [];
    for (let offset = 0; offset < bytes; offset += 100) {
      pieces.push(await hold.source.readAt(name, offset, Math.min(100, bytes - offset)));
      if (offset === 0) await between();
    }
    await files.replace(name, new Uint8Array(Buffer.concat(pieces)));
  }
  return files;
}

const check = (files: MemoryFiles) =>
  checkStore({ files, dir: 'notes', keys: testStoreKeys(), wasm: sqlWasm, migrations: contractMigrations });

const limits = { segmentRecords: 2, keepRows: 0 };

test('a copy of a shared store is one of an embedded store, at the commit of the hold', async () => {
  const { node } = await simShared({ limits });
  const [{ store: a }, { store: b }] = [await node(), await node()];
  await write(a, 1, 5);
  const hold = await held(b);
  await write(a, 6, 6);
  const files = await copy(hold);
  hold.release();
  const { uid, mark, tables, activity, faults } = await check(files);
  assert.deepEqual([uid, mark.sequence, faults], [storeId, hold.sequence, []]);
  assert.deepEqual([tables, activity], [hold.tables, hold.activity]);
  assert.deepEqual([tables.notes, activity.seq], [5, 5]);
  assert.ok(mark.runs.length > 0);
  await a.close();
  await b.close();
});

test('a store of which nothing was written since the last snapshot is held too', async () => {
  const { node } = await simShared({ limits });
  const { store } = await node();
  await store.checkpoint();
  for (let i = 0; i < 2; i++) {
    const hold = await held(store);
    assert.equal((await check(await copy(hold))).mark.sequence, hold.sequence);
    hold.release();
  }
  await store.close();
});

test('files that are held stay while other nodes write snapshots, trim and drop activity', async () => {
  const { node, database } = await simShared({ limits });
  const [{ store: a }, { store: b }] = [await node(), await node()];
  await write(a, 1, 8);
  const hold = await held(a);
  let next = 9;
  const files = await copy(hold, async () => {
    await write(b, next, next + 1);
    next += 2;
    await b.checkpoint();
    await b.dropActivity(6);
    await b.checkpoint();
  });
  const { tables, activity } = await check(files);
  assert.deepEqual([tables, activity], [hold.tables, hold.activity]);
  hold.release();
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
  await write(b, next, next);
  await b.checkpoint();
  const names = [...database.contents.files.keys()];
  assert.equal(names.filter((name) => name.includes('snapshot')).length, 1);
  assert.ok(!names.includes(`${storeId}/activity-000000000001.kms`));
  await a.close();
  await b.close();
});

test('whoever copies under a hold that ran out is told to try again, and not that records are lost', async () => {
  const { node, database } = await simShared({ limits });
  const [{ store: a }, { store: b }] = [await node(), await node()];
  await write(a, 1, 4);
  const hold = await held(a);
  database.now += 100_000;
  await write(b, 5, 6);
  await b.checkpoint();
  const [snapshot] = hold.files;
  await assert.rejects(hold.source.readAt(snapshot?.name ?? '', 0, 100), { code: 'unavailable', hint: 'try again' });
  hold.release();
  await a.close();
  await b.close();
});

test('a file that another took the name of is not copied with its second half', async () => {
  const { node, database } = await simShared({ limits });
  const { store, engine } = await node();
  await write(store, 1, 4);
  const hold = await held(store);
  const [snapshot] = hold.files;
  const { name = '', bytes = 0 } = snapshot ?? {};
  await hold.source.readAt(name, 0, 100);
  const other = prng(7).bytes(bytes);
  await engine.files.replace(`${storeId}${name.slice('notes'.length)}`, other);
  await assert.rejects(hold.source.readAt(name, 100, 100), { code: 'unavailable', message: /was replaced/ });
  assert.ok(database.commits > 0);
  hold.release();
  await store.close();
});
