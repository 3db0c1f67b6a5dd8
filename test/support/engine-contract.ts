// The contract of a shared engine, as one suite that every implementation runs.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { type LogRow, rowsInTurn, type SharedEngine } from '../../src/store/shared/engine.ts';

const newStore = (): string => randomBytes(16).toString('hex');

function rowOf(seq: number, text = `row ${seq}`): LogRow {
  const sealed = new Uint8Array(Buffer.from(`${text} and a tag of 16 b`));
  return { seq, epoch: 1, tag: sealed.slice(-16), sealed };
}

const seqs = (rows: readonly LogRow[]): number[] => rows.map(({ seq }) => seq);

/** `open` connects another node to the same database. */
export function engineContract(name: string, open: () => Promise<SharedEngine>): void {
  test(`${name}: a store is made once, with its first row`, async () => {
    const engine = await open();
    const store = newStore();
    await engine.create(store, 1, rowOf(1));
    await assert.rejects(engine.create(store, 1, rowOf(1, 'other')), { code: 'refused' });
    const [row, ...more] = await engine.rows(store, 1, 10);
    assert.ok(row && more.length === 0);
    assert.deepEqual({ ...row, tag: new Uint8Array(row.tag), sealed: new Uint8Array(row.sealed) }, rowOf(1));
    assert.deepEqual(await engine.rows(newStore(), 1, 10), []);
  });

  test(`${name}: a turn shows what is there and appends; the next may be asked for with its end`, async () => {
    const engine = await open();
    const store = newStore();
    await engine.create(store, 7, rowOf(1));
    const connection = engine.logConnection(store);
    const first = await connection.begin(1);
    assert.deepEqual([first.protocol, first.behind.length], [7, 0]);
    assert.deepEqual(new Uint8Array(first.tag ?? []), rowOf(1).tag);
    const { committed, next } = connection.end(rowOf(2), 2);
    await committed;
    const second = await next;
    assert.deepEqual(new Uint8Array(second?.tag ?? []), rowOf(2).tag);
    await connection.end(undefined, undefined).committed;
    const third = await connection.begin(0);
    assert.equal(third.tag, undefined);
    assert.deepEqual(seqs(third.behind), [1, 2]);
    await connection.abandon();
    assert.deepEqual(seqs(await engine.rows(store, 2, 10)), [2]);
    assert.deepEqual(seqs(await engine.rows(store, 1, 1)), [1]);
    await connection.close();
  });

  test(`${name}: one node has the turn of a store; another waits for it, and sees what that appended`, async () => {
    const [a, b] = [await open(), await open()];
    const [store, other] = [newStore(), newStore()];
    for (const each of [store, other]) await a.create(each, 1, rowOf(1));
    const [mine, theirs, elsewhere] = [a.logConnection(store), b.logConnection(store), b.logConnection(other)];
    await mine.begin(1);
    let isTheirs = false;
    const waiting = theirs.begin(1).then((start) => {
      isTheirs = true;
      return start;
    });
    await elsewhere.begin(1);
    await elsewhere.abandon();
    assert.equal(isTheirs, false);
    await mine.end(rowOf(2), undefined).committed;
    assert.deepEqual(seqs((await waiting).behind), [2]);
    await theirs.abandon();
    for (const connection of [mine, theirs, elsewhere]) await connection.close();
  });

  test(`${name}: a turn shows so many rows at most, and says that there are more`, async () => {
    const engine = await open();
    const store = newStore();
    await engine.create(store, 1, rowOf(1));
    const connection = engine.logConnection(store, true);
    for (let seq = 1; seq <= rowsInTurn + 1; seq++) {
      const { behind, hasMore } = await connection.begin(1);
      assert.deepEqual([behind.length, hasMore], [seq - 1, false]);
      await connection.end(rowOf(seq + 1), undefined).committed;
    }
    const { behind, hasMore } = await connection.begin(1);
    assert.deepEqual([seqs(behind).at(-1), behind.length, hasMore], [rowsInTurn + 1, rowsInTurn, true]);
    await connection.close();
  });

  test(`${name}: more stores than connections have their turns, and one with its own never waits for theirs`, async () => {
    const engine = await open();
    const stores = Array.from({ length: 12 }, newStore);
    for (const store of stores) await engine.create(store, 1, rowOf(1));
    const [first = '', ...others] = stores;
    const own = engine.logConnection(first, true);
    const connections = others.map((store) => engine.logConnection(store));
    const turns = connections.map((connection) => connection.begin(1));
    await Promise.all(turns.slice(0, 8));
    await own.begin(1);
    await own.abandon();
    for (const [i, connection] of connections.entries()) {
      assert.equal((await turns[i])?.behind.length, 0);
      await connection.end(rowOf(2), undefined).committed;
    }
    for (const connection of [own, ...connections]) await connection.close();
  });

  test(`${name}: a turn that is abandoned leaves nothing, and so does one whose connection is closed`, async () => {
    const engine = await open();
    const store = newStore();
    await engine.create(store, 1, rowOf(1));
    const [connection, next] = [engine.logConnection(store), engine.logConnection(store)];
    await connection.begin(1);
    await connection.abandon();
    await connection.begin(1);
    await connection.close();
    assert.deepEqual((await next.begin(1)).behind, []);
    await next.close();
    await connection.abandon();
  });

  test(`${name}: nodes say that they are there, and are listed until they end`, async () => {
    const [a, b] = [await open(), await open()];
    const entry = (id: string, build = '1.0.0') => ({
      id,
      build,
      schemas: { system: 4, tenant: 20 },
      appendRule: 1,
      places: ['https://kms.example.org'],
    });
    const [one, two] = [newStore(), newStore()];
    const first = await a.noteNode(entry(one), true);
    assert.ok(first.now > 0);
    assert.deepEqual(
      first.nodes.filter(({ id }) => id === one).map(({ upFor, age, ...told }) => told),
      [entry(one)],
    );
    await b.noteNode(entry(two), true);
    const { nodes } = await a.noteNode(entry(one, '1.0.1'), false);
    assert.deepEqual(
      nodes.filter(({ id }) => id === one || id === two).map(({ id, build }) => [id, build]),
      [
        [one, '1.0.1'],
        [two, '1.0.0'],
      ],
    );
    for (const { upFor, age } of nodes) assert.ok(upFor >= age && age >= 0, `${upFor} ${age}`);
    await b.forgetNode(two);
    await b.forgetNode(two);
    const left = (await a.nodes()).map(({ id }) => id);
    assert.deepEqual([left.includes(one), left.includes(two)], [true, false]);
    await a.forgetNode(one);
  });

  test(`${name}: one job at a time for a store`, async () => {
    const [a, b] = [await open(), await open()];
    const [store, other] = [newStore(), newStore()];
    for (const each of [store, other]) await a.create(each, 1, rowOf(1));
    const ran: string[] = [];
    const first = await a.alone(store, async () => {
      assert.equal(await b.alone(store, async () => void ran.push('second')), false);
      assert.equal(await b.alone(other, async () => void ran.push('other')), true);
      ran.push('first');
    });
    assert.equal(first, true);
    assert.deepEqual(ran, ['other', 'first']);
    await assert.rejects(
      a.alone(store, async () => {
        throw new Error('it failed');
      }),
    );
  });

  test(`${name}: a file that is made behind a row needs it`, async () => {
    const engine = await open();
    const store = newStore();
    await engine.create(store, 1, rowOf(1));
    const name = `${store}/x`;
    const content = new Uint8Array([1, 2, 3]);
    for (const row of [rowOf(2), { ...rowOf(1), tag: rowOf(2).tag.fill(0) }]) {
      await assert.rejects(engine.replaceBehind(store, row, name, content), { code: 'unavailable', fault: 'retry' });
    }
    assert.equal(await engine.files.exists(name), false);
    await engine.replaceBehind(store, rowOf(1), name, content);
    assert.deepEqual(new Uint8Array(await engine.files.read(name, 2 ** 20)), content);
  });

  test(`${name}: rows go only behind a row and files that are there`, async () => {
    const engine = await open();
    const store = newStore();
    await engine.create(store, 1, rowOf(1));
    const connection = engine.logConnection(store);
    for (let seq = 2; seq <= 4; seq++) {
      await connection.begin(seq - 1);
      await connection.end(rowOf(seq), undefined).committed;
    }
    await connection.close();
    const [kept, old] = [`${store}/kept`, `${store}/old`];
    for (const name of [kept, old]) await engine.files.replace(name, new Uint8Array([1]));
    const { seq, tag } = rowOf(3);
    const wrong = [
      { files: [kept, `${store}/none`], seq, tag },
      { files: [kept], seq: 5, tag },
      { files: [kept], seq, tag: rowOf(2, 'other, with another').tag.fill(9) },
    ];
    for (const covered of wrong) assert.equal(await engine.trim(store, covered, -1000, [old]), false);
    assert.equal(await engine.trim(store, { files: [kept], seq, tag }, 3_600_000, []), true);
    assert.deepEqual(seqs(await engine.rows(store, 1, 10)), [1, 2, 3, 4], 'all are young');
    assert.equal(await engine.files.exists(old), true);
    assert.equal(await engine.trim(store, { files: [kept], seq, tag }, -1000, [old]), true);
    assert.deepEqual(seqs(await engine.rows(store, 1, 10)), [3, 4]);
    assert.deepEqual(await engine.files.list(store), ['kept']);
  });

  test(`${name}: stores have names, of which each is one store's, and are whole once that is said`, async () => {
    const engine = await open();
    const [store, other] = [newStore(), newStore()];
    const called = newStore().slice(0, 8);
    await engine.create(store, 1, rowOf(1), called);
    await assert.rejects(engine.create(other, 1, rowOf(1), called), { code: 'refused' });
    const listed = async () => (await engine.stores()).find((each) => each.name === called);
    const { age = -1, ...made } = (await listed()) ?? {};
    assert.deepEqual(made, { name: called, store, isWhole: false });
    assert.ok(age >= 0 && age < 60_000);
    await engine.finish(store);
    assert.equal((await listed())?.isWhole, true);
    await engine.files.replace(`${store}/x`, new Uint8Array([1]));
    await engine.create(other, 1, rowOf(1));
    for (let times = 0; times < 2; times++) await engine.erase(store);
    assert.equal(await listed(), undefined);
    assert.deepEqual([await engine.rows(store, 1, 10), await engine.files.list(store)], [[], []]);
    assert.deepEqual(seqs(await engine.rows(other, 1, 10)), [1]);
    await engine.create(newStore(), 1, rowOf(1), called);
  });

  test(`${name}: the seal is replaced by who saw the last one, and each turn tells of it and of the system store`, async () => {
    const [a, b] = [await open(), await open()];
    const [store, system] = [newStore(), newStore()];
    await a.create(store, 1, rowOf(1));
    const connection = b.logConnection(store);
    const control = async () => {
      const start = await connection.begin(1);
      await connection.abandon();
      return start.control;
    };
    assert.deepEqual(await control(), { sealVersion: 0, isSealed: false, systemSeq: 0 });
    assert.equal(await a.readSeal(), undefined);
    await a.create(system, 1, rowOf(1), 'system');
    assert.equal(await a.replaceSeal(1, new Uint8Array([1])), false);
    assert.equal(await a.replaceSeal(0, new Uint8Array([1])), true);
    assert.equal(await b.replaceSeal(0, new Uint8Array([2])), false);
    assert.deepEqual(await control(), { sealVersion: 1, isSealed: false, systemSeq: 1 });
    await a.markSealed(true);
    assert.equal(await b.replaceSeal(1, new Uint8Array([2])), true);
    assert.equal(await a.replaceSeal(1, new Uint8Array([3])), false);
    assert.deepEqual(await a.readSeal(), { version: 2, bytes: new Uint8Array([2]), isSealed: true });
    const systemLane = a.logConnection(system);
    await systemLane.begin(1);
    await systemLane.end(rowOf(2), undefined).committed;
    await systemLane.close();
    assert.deepEqual(await control(), { sealVersion: 2, isSealed: true, systemSeq: 2 });
    await b.markSealed(false);
    assert.equal((await control()).isSealed, false);
    await connection.close();
  });

  test(`${name}: files that somebody holds stay; a hold runs out by itself, and is not begun twice`, async () => {
    const engine = await open();
    const [store, other] = [newStore(), newStore()];
    for (const each of [store, other]) await engine.create(each, 1, rowOf(1));
    const { seq, tag } = rowOf(1);
    const [kept, old] = [`${store}/kept`, `${store}/old`];
    for (const file of [kept, old]) await engine.files.replace(file, new Uint8Array([1]));
    assert.equal(await engine.hold(store, 'late', 0, true), true);
    assert.equal(await engine.isHeld(store), false);
    assert.equal(await engine.hold(store, 'late', 60_000, false), false, 'it had run out');
    assert.equal(await engine.hold(store, 'a', 60_000, true), true);
    assert.equal(await engine.hold(store, 'b', 60_000, true), true);
    assert.equal(await engine.hold(store, 'a', 60_000, false), true);
    assert.deepEqual([await engine.isHeld(store), await engine.isHeld(other)], [true, false]);
    await engine.letGo(store, 'a');
    assert.equal(await engine.trim(store, { files: [kept], seq, tag }, -1000, [old]), true);
    assert.equal(await engine.files.exists(old), true);
    await engine.letGo(store, 'b');
    await engine.letGo(store, 'b');
    assert.equal(await engine.trim(store, { files: [kept], seq, tag }, -1000, [old]), true);
    assert.equal(await engine.files.exists(old), false);
  });
}
