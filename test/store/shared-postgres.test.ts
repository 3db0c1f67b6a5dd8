// The shared store on a real PostgreSQL, if the system has one: the store's contract, and the engine's.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { Client } from 'pg';
import { toHex } from '../../src/crypto/bytes.ts';
import { createEmbedded } from '../../src/store/file-journal.ts';
import { openPostgres } from '../../src/store/shared/postgres.ts';
import { exportStore, importStore } from '../../src/store/shared/transfer.ts';
import { openEmbedded, testDir, testOptions } from '../support/embedded-store.ts';
import { engineContract } from '../support/engine-contract.ts';
import { MemoryFiles } from '../support/memory-files.ts';
import { Postgres, postgresPrograms } from '../support/postgres.ts';
import { prng } from '../support/prng.ts';
import { logOf } from '../support/shared-judge.ts';
import { createStore, storeOptions } from '../support/shared-load.ts';
import { openShared } from '../support/shared-store.ts';
import { testStoreKeys } from '../support/store-keys.ts';
import { sqlWasm } from '../support/wasm.ts';
import { activityInput, contractMigrations, storeContract } from './contract.ts';

const programs = postgresPrograms();

if (!programs) {
  test('a shared store on PostgreSQL', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
} else {
  const postgres = new Postgres(programs);
  const engine = await openPostgres(postgres.address);
  after(async () => {
    await engine.close();
    postgres.end();
  });

  const uids = new WeakMap<object, Uint8Array>();
  const openAgain = async (uid: Uint8Array) => {
    const store = await openShared(storeOptions(engine, uid));
    uids.set(store, uid);
    return store;
  };
  storeContract(
    'shared store on PostgreSQL',
    async () => openAgain(await createStore(engine)),
    async (store) => {
      await store.checkpoint();
      await store.close();
      return openAgain(uids.get(store) ?? new Uint8Array());
    },
  );

  engineContract('PostgreSQL as a shared engine', async () => engine);

  test('nodes that start at the same time make the tables once', async () => {
    const admin = new Client(postgres.config);
    await admin.connect();
    await admin.query('CREATE DATABASE anew');
    await admin.end();
    const engines = await Promise.all([1, 2, 3, 4].map(() => openPostgres({ ...postgres.address, database: 'anew' })));
    for (const each of engines) {
      assert.deepEqual(await each.stores(), []);
      await each.close();
    }
  });

  test('what makes no sense in the list of nodes is passed over', async () => {
    const admin = new Client(postgres.config);
    await admin.connect();
    const whole = { build: '9', schemas: { system: 1, tenant: 1 }, appendRule: 1, places: ['x'], later: true };
    const told = [
      'no JSON',
      'null',
      '{}',
      JSON.stringify({ ...whole, places: 'x' }),
      JSON.stringify({ ...whole, schemas: { system: '1', tenant: 1 } }),
      JSON.stringify({ ...whole, build: 1 }),
      JSON.stringify(whole),
    ];
    for (const [i, text] of told.entries()) {
      await admin.query('INSERT INTO kms_node VALUES ($1, $2, now(), now())', [`odd${i}`, text]);
    }
    const odd = (await engine.nodes()).filter(({ id }) => id.startsWith('odd'));
    assert.deepEqual(
      odd.map(({ id, build }) => [id, build]),
      [['odd6', '9']],
    );
    await admin.query(`DELETE FROM kms_node WHERE node LIKE 'odd%'`);
    await admin.end();
  });

  test('a turn tells of the clock as it is when the turn is there, not when it was asked for', async () => {
    const uid = await createStore(engine);
    const id = Buffer.from(uid).toString('hex');
    const [first, second] = [engine.logConnection(id), engine.logConnection(id)];
    await first.begin(1);
    const waiting = second.begin(1);
    await wait(400);
    const ended = Date.now();
    await first.abandon();
    const { now = 0 } = await waiting;
    assert.ok(now >= ended - 5 && now <= Date.now() + 5, `${now - ended}`);
    await second.abandon();
    for (const connection of [first, second]) await connection.close();
  });

  test('of many checkpoints that are asked for at once few hold a lock, and a connection', async () => {
    const stores = await Promise.all(Array.from({ length: 12 }, async () => toHex(await createStore(engine))));
    let running = 0;
    let most = 0;
    const four = Promise.withResolvers<void>();
    const job = async (): Promise<void> => {
      most = Math.max(most, ++running);
      if (running === 4) four.resolve();
      // However slow the machine is, the first ones meet.
      await Promise.race([four.promise, wait(10_000, undefined, { ref: false })]);
      await wait(20);
      running--;
    };
    const ran = await Promise.all(stores.map((store) => engine.alone(store, job)));
    assert.deepEqual(new Set(ran), new Set([true]));
    assert.equal(most, 4);
    const failed = stores.map((store) => engine.alone(store, () => Promise.reject(new Error('it failed'))));
    assert.equal((await Promise.allSettled(failed)).filter(({ status }) => status === 'rejected').length, 12);
    assert.equal(await engine.alone(stores[0] ?? '', job), true, 'none is kept by those that failed');
  });

  test('files of a shared database: whole, in parts, replaced, removed', async () => {
    const { files } = engine;
    const big = new Uint8Array(randomBytes(700_000));
    for (const bytes of [new Uint8Array(0), big.subarray(0, 1), big.subarray(0, 256 * 1024), big]) {
      await files.replace('d/x', bytes);
      assert.equal(await files.size('d/x'), bytes.length);
      assert.deepEqual(await files.read('d/x', 2 ** 20), new Uint8Array(bytes));
    }
    assert.deepEqual(await files.readAt('d/x', 262_000, 300_000), big.slice(262_000, 562_000));
    assert.deepEqual(await files.readAt('d/x', 699_999, 10), big.slice(699_999));
    assert.deepEqual(await files.list('d'), ['x']);
    await files.remove('d/x');
    assert.equal(await files.exists('d/x'), false);
    for (const gone of [() => files.read('d/x', 2 ** 20), () => files.size('d/x'), () => files.remove('d/x')]) {
      await assert.rejects(gone, { code: 'ENOENT' });
    }
  });

  test('a store goes over from files to the database, and back', async () => {
    const generator = prng(2);
    const files = new MemoryFiles();
    const uid = new Uint8Array(randomBytes(16));
    const random = (length: number) => new Uint8Array(randomBytes(length));
    await createEmbedded({ files, dir: testDir, keys: testStoreKeys(), random, uid, at: 1 });
    const notes = await openEmbedded(testOptions(files, generator, { limits: { segmentRecords: 2 } }));
    const note = (store: typeof notes, name: string) =>
      store.transaction((tx) => {
        tx.notes.add(name);
        tx.record(activityInput(`act_${name}`));
      });
    for (const name of ['a', 'b', 'c']) await note(notes, name);
    await notes.checkpoint();
    await note(notes, 'd');
    await notes.close();
    const world = { engine, keys: testStoreKeys(), wasm: sqlWasm, migrations: contractMigrations, random, at: 2 };
    const held = await importStore(world, { files, dir: testDir }, toHex(uid));
    await engine.finish(toHex(uid));
    assert.deepEqual([held.mark, held.activity.seq], [notes.mark, 4]);
    const shared = await openAgain(uid);
    await note(shared, 'e');
    await shared.close();
    const back = new MemoryFiles();
    assert.equal((await exportStore(world, uid, { files: back, dir: testDir })).activity.seq, 5);
    const again = await openEmbedded(testOptions(back, generator));
    assert.equal((await logOf(again)).entries.length, 5);
    await again.close();
  });

  test('a node that stands still in its turn does not hold up the others', async () => {
    const uid = await createStore(engine);
    const store = await openShared(storeOptions(engine, uid));
    const connection = engine.logConnection(Buffer.from(uid).toString('hex'));
    await connection.begin(1);
    const began = performance.now();
    await store.transaction((tx) => tx.notes.add('x'));
    assert.ok(performance.now() - began > 500, 'it waited for the turn');
    await connection.close();
    await store.close();
  });
}
