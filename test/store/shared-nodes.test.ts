// Rules between several nodes on one engine, one per test: see `src/store/shared`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatMark, isFork } from '../../src/model/store-mark.ts';
import type { StoreEvent } from '../../src/store/port.ts';
import type { LogRow } from '../../src/store/shared/engine.ts';
import { createShared } from '../../src/store/shared/row-journal.ts';
import { prng } from '../support/prng.ts';
import { openShared, sharedOptions, sharedUid, simShared } from '../support/shared-store.ts';
import { SimEngine, type SimFault } from '../support/sim-engine.ts';
import { testStoreKeys } from '../support/store-keys.ts';
import { activityInput, contractMigrations } from './contract.ts';

const storeId = Buffer.from(sharedUid).toString('hex');
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Makes the next message of this kind meet the fault. */
function once(engine: SimEngine, kind: 'begin' | 'end', fault: SimFault): void {
  engine.fault = (_number, met) => {
    if (met !== kind) return undefined;
    engine.fault = undefined;
    return fault;
  };
}

test('what one node answered, every other one knows: rows, what is remembered, counts and activity', async () => {
  const { node } = await simShared();
  const [{ store: a }, { store: b }] = [await node(), await node()];
  await a.transaction((tx) => {
    tx.notes.add('key', 1);
    tx.record(activityInput('act_1'));
  });
  const seen = () => b.transaction((tx) => tx.notes.remembered('key')?.value);
  assert.equal(await seen(), 1);
  await a.transaction((tx) => tx.notes.set('key', 0));
  assert.equal(await seen(), 0);
  assert.equal(await b.transaction(({ notes }) => notes.get('key')?.value), 0);
  assert.equal((await b.activity.find('act_1'))?.seq, 1);
  for (const [i, store] of [a, b, b, a, b].entries()) await store.transaction((tx) => tx.notes.countLatest('used', i));
  for (const store of [a, b]) assert.deepEqual(await store.transaction((tx) => tx.notes.latest('used')), [5, 4]);
  assert.deepEqual(a.mark, b.mark);
  assert.equal(a.mark.runs.length, 2);
  await a.close();
  await b.close();
});

test('nodes that open a new store together migrate it once', async () => {
  const { node, database } = await simShared();
  const nodes = await Promise.all([node(), node(), node()]);
  assert.equal(database.rows(storeId).length, 2);
  for (const { store } of nodes) await store.close();
});

test('a store is made once', async () => {
  const { database, generator } = await simShared();
  const { uid, keys } = sharedOptions(new SimEngine(database), generator);
  const again = createShared({ engine: new SimEngine(database), uid, keys, random: (n) => generator.bytes(n) });
  await assert.rejects(again, { code: 'refused' });
});

test('all that waits runs in one turn, of at most so many requests', async () => {
  const { node, database } = await simShared({ limits: { turnRequests: 20, turnMs: 1e9 } });
  const { store } = await node();
  const before = database.rows(storeId).length;
  await Promise.all(Array.from({ length: 50 }, (_, i) => store.transaction((tx) => tx.notes.add(`n${i}`))));
  assert.equal(database.rows(storeId).length - before, 3);
  await store.close();
});

test('nothing is appended where nothing was written', async () => {
  const { node, database } = await simShared();
  const { store } = await node();
  const before = database.rows(storeId).length;
  await store.transaction((tx) => tx.notes.all());
  await store.transaction(({ notes }) => notes.all());
  await store.activity.search({}, { limit: 1 });
  assert.equal(database.rows(storeId).length, before);
  await store.close();
});

for (const [fault, isDone] of [
  ['answer', true],
  ['later', true],
  ['request', false],
  ['retry', false],
  ['full', false],
  ['read-only', false],
] as const) {
  const what = isDone ? 'is found to be done, and answered' : 'is taken back, and the node goes on';
  test(`a commit that meets with "${fault}" ${what}`, async () => {
    const { node } = await simShared();
    const [{ store: a, engine }, { store: b }] = [await node(), await node()];
    once(engine, 'end', fault);
    const write = a.transaction((tx) => tx.notes.add('x'));
    if (isDone) assert.equal(await write, 1);
    else await assert.rejects(write, { code: 'unavailable', message: /^the request was taken back/ });
    for (const store of [a, b]) {
      const names = await store.transaction((tx) => tx.notes.all().map(({ name }) => name));
      assert.deepEqual(names, isDone ? ['x'] : []);
    }
    await a.close();
    await b.close();
  });
}

test('an unknown outcome that stays unknown is said to be so, and the node serves again', async () => {
  const { node, database } = await simShared({
    limits: { poll: 1e9, doubtMs: 100 },
    later: (milliseconds, run) => {
      if (milliseconds === 1e9) return;
      database.now += milliseconds;
      setImmediate(run);
    },
  });
  const { store, engine } = await node();
  let isCut = false;
  engine.fault = (_number, kind) => {
    if (kind !== 'end') return isCut ? 'request' : undefined;
    isCut = true;
    return 'answer';
  };
  await assert.rejects(
    store.transaction((tx) => tx.notes.add('x')),
    { code: 'unavailable', message: /^it is not known whether the request was done/ },
  );
  assert.equal(store.status().writable, false);
  engine.fault = undefined;
  while (!store.status().writable) await turn();
  assert.equal((await store.transaction((tx) => tx.notes.get('x')))?.name, 'x');
  await store.close();
});

test('a node that cannot reach the engine refuses, keeps its state, and serves once it can', async () => {
  const { node } = await simShared();
  const { store, engine } = await node();
  engine.fault = () => 'request';
  await assert.rejects(
    store.transaction((tx) => tx.notes.add('x')),
    { code: 'unavailable', message: /cannot be reached/ },
  );
  assert.equal(store.status().writable, false);
  engine.fault = undefined;
  assert.equal(await store.transaction((tx) => tx.notes.add('x')), 1);
  assert.equal(store.status().writable, true);
  await store.close();
});

test('a node that stood still while the log was trimmed recovers, and acknowledges nothing from before', async () => {
  const events: StoreEvent[] = [];
  const { node, database } = await simShared({
    limits: { keepRows: 100 },
    onEvent: (event) => void events.push(event),
  });
  const [{ store: a, engine }, { store: b }] = [await node(), await node()];
  await a.transaction((tx) => tx.notes.add('first'));
  const resume = engine.stall();
  const late = a.transaction((tx) => tx.notes.add('late'));
  const refused = assert.rejects(late, { code: 'unavailable' });
  for (let turns = 0; turns < 50; turns++) await turn();
  for (const connection of engine.connections) connection.expire();
  for (let i = 0; i < 5; i++) await b.transaction((tx) => tx.notes.add(`b${i}`));
  database.now += 1000;
  await b.checkpoint();
  assert.equal(database.rows(storeId).length, 1);
  resume();
  await Promise.race([refused, late.catch(() => {})]);
  const names = (store: typeof a) => store.transaction((tx) => tx.notes.all().map(({ name }) => name));
  assert.deepEqual(await names(a), await names(b));
  // Nothing was lost, and no write failed.
  const kinds = events.map(({ kind }) => kind).filter((kind) => !kind.startsWith('checkpoint'));
  assert.deepEqual(kinds, ['log-moved', 'recovered']);
  await a.close();
  await b.close();
});

test('trimming keeps the newest row, the snapshot and what is younger than the grace', async () => {
  const { node, database } = await simShared({ limits: { keepRows: 100 } });
  const { store } = await node();
  await store.transaction((tx) => tx.notes.add('old'));
  await store.checkpoint();
  assert.equal(database.rows(storeId).length, 3, 'all are young');
  database.now += 1000;
  await store.transaction((tx) => tx.notes.add('new'));
  await store.checkpoint();
  assert.deepEqual(
    database.rows(storeId).map(({ seq }) => seq),
    [4],
  );
  assert.deepEqual([...database.contents.files.keys()], [`${storeId}/snapshot-0000000004.kms`]);
  await store.close();
});

test('a snapshot of a branch that a failover cut off is passed over', async () => {
  const { node, database, generator } = await simShared();
  const { store } = await node();
  await store.transaction((tx) => tx.notes.add('kept'));
  await store.transaction((tx) => tx.notes.add('lost'));
  const before = database.commits;
  await store.checkpoint();
  const [[name = '', bytes] = []] = database.contents.files;
  assert.ok(bytes);
  await store.close();
  database.failover(database.commits - before + 1);
  const { store: b } = await node();
  await b.transaction((tx) => tx.notes.add('other'));
  database.commit({ files: new Map([[name, bytes]]) });
  const { store: c } = await node();
  const names = await c.transaction((tx) => tx.notes.all().map((note) => note.name));
  assert.deepEqual(names, ['kept', 'other']);
  assert.ok(generator);
  await b.close();
  await c.close();
});

test('a node that saw what a failover lost serves nothing of the rest, nor of another history of the same length', async () => {
  for (const lost of [1, 2, 3]) {
    for (const written of [0, lost, lost + 3]) {
      const events: StoreEvent[] = [];
      const later: (() => void)[] = [];
      const { node, database } = await simShared({
        onEvent: (event) => void events.push(event),
        later: (_milliseconds, run) => void later.push(run),
      });
      const { store } = await node();
      for (const name of ['kept', 'a', 'b', 'c']) await store.transaction((tx) => tx.notes.add(name));
      const mark = formatMark(store.mark);
      const before = database.contents;
      database.failover(lost);
      // A node that never saw them continues; its writes take their places.
      if (written > 0) {
        const other = await node();
        for (let n = 0; n < written; n++) await other.store.transaction((tx) => tx.notes.add(`other${n}`));
        await other.store.close();
      }
      for (let tries = 0; tries < 3; tries++) {
        await assert.rejects(
          store.transaction((tx) => tx.notes.all()),
          { code: 'unavailable', hint: /revoked credentials would be alive again/ },
        );
        assert.equal(store.status().writable, false);
        assert.match(store.status().reason ?? '', /the database has lost answered requests/);
        for (const run of later.splice(0)) run();
        await turn();
      }
      assert.equal(formatMark(store.mark), mark, 'it still knows how far it was');
      assert.deepEqual(
        events.map(({ kind }) => kind).filter((kind) => !kind.startsWith('turn') && kind !== 'no-turn'),
        ['log-moved', 'commits-lost'],
      );

      // The server that has them all serves again.
      database.commit(before);
      const names = async (): Promise<string[]> =>
        store.transaction((tx) => tx.notes.all().map(({ name }) => name)).catch(() => []);
      for (let tries = 0; tries < 20 && !store.status().writable; tries++) {
        for (const run of later.splice(0)) run();
        await turn();
      }
      assert.deepEqual(await names(), ['kept', 'a', 'b', 'c']);
      await store.close();
    }
  }
});

for (const lost of [0, 2]) {
  const what = lost > 0 ? 'lost rows that only others saw is a fork for whoever was answered' : 'lost nothing is none';
  test(`a failover that ${what}`, async () => {
    const { node, database } = await simShared();
    const [a, b] = [await node(), await node()];
    for (const { store } of [a, b]) await store.transaction((tx) => tx.notes.count('n'));
    await a.store.transaction((tx) => tx.notes.add('kept'));
    await b.store.transaction(() => {});
    const before = b.store.mark;
    for (const name of ['one', 'two']) await a.store.transaction((tx) => tx.notes.add(name));
    const seen = a.store.mark;
    a.engine.kill();
    database.failover(lost);
    assert.deepEqual(before, b.store.mark, 'it saw none of that');
    for (const name of ['x', 'y', 'z']) await b.store.transaction((tx) => tx.notes.add(name));
    assert.ok(b.store.mark.sequence > seen.sequence);
    assert.equal(isFork(seen, b.store.mark), lost > 0);
    assert.equal(isFork(before, b.store.mark), false);
    assert.equal(b.store.mark.runs.length, before.runs.length + 1, 'one more run, not one for each turn');
    await b.store.close();
  });
}

test('a row that was changed, moved, left out or taken from another store is refused', async () => {
  const other = await simShared({}, 2);
  await (await other.node()).store.close();
  const { node, database, generator } = await simShared();
  const { store } = await node();
  for (let i = 0; i < 3; i++) await store.transaction((tx) => tx.notes.add(`n${i}`));
  await store.close();
  const good = database.rows(storeId);
  const put = (rows: readonly LogRow[]): void =>
    database.setRows(storeId, new Map(rows.map((row) => [row.seq, { row, at: 0 }])));
  const wrong: [string, LogRow[]][] = [
    ['left out', good.filter(({ seq }) => seq !== 3)],
    ['the first left out', good.slice(1)],
    ['moved', good.map((row) => (row.seq === 3 ? { ...row, seq: 4 } : row.seq === 4 ? { ...row, seq: 3 } : row))],
    ['another epoch', good.map((row) => ({ ...row, epoch: 2 }))],
    ['another tag', good.map((row) => (row.seq === 4 ? { ...row, tag: new Uint8Array(16) } : row))],
    ['another store', other.database.rows(storeId).slice()],
  ];
  for (const row of good) {
    const sealed = row.sealed.slice();
    const at = generator.int(sealed.length);
    sealed[at] = (sealed[at] ?? 0) ^ (1 << generator.int(8));
    const tag = sealed.slice(-16);
    wrong.push([`a bit of row ${row.seq}`, good.map((each) => (each === row ? { ...row, sealed, tag } : each))]);
  }
  for (const [what, rows] of wrong) {
    if (what === 'another store') {
      const uid = new Uint8Array(16).fill(8);
      const engine = new SimEngine(database);
      const [first] = rows;
      assert.ok(first);
      await engine.create(Buffer.from(uid).toString('hex'), 1, first);
      await assert.rejects(openShared({ ...sharedOptions(engine, generator), uid }), { code: 'corrupt' }, what);
      continue;
    }
    put(rows);
    await assert.rejects(node(), { code: 'corrupt' }, what);
  }
  put(good);
  await (await node()).store.close();
});

test('a node leaves service when a newer program has changed the schema', async () => {
  const { node, database, generator } = await simShared();
  const { store: old } = await node();
  const migrations = [...contractMigrations, { name: 'more', statements: ['CREATE TABLE more (id TEXT)'] }];
  const newer = await openShared(sharedOptions(new SimEngine(database), generator, { migrations }));
  await newer.transaction((tx) => tx.notes.add('x'));
  await assert.rejects(
    old.transaction((tx) => tx.notes.all()),
    { code: 'unavailable', message: /schema version 2, this program knows versions up to 1/ },
  );
  assert.equal(old.status().writable, false);
  assert.equal(await newer.transaction((tx) => tx.notes.add('y')), 1);
  await old.close();
  await newer.close();
});

test('a node refuses a store that is appended to by another rule', async () => {
  const { generator, database } = await simShared();
  const uid = new Uint8Array(16).fill(9);
  const engine = new SimEngine(database);
  // The same store with the next protocol number.
  const create = engine.create.bind(engine);
  engine.create = (store, protocol, first) => create(store, protocol + 1, first);
  await createShared({ engine, uid, keys: testStoreKeys(), random: (length) => generator.bytes(length) });
  const opened = openShared({ ...sharedOptions(new SimEngine(database), generator), uid });
  await assert.rejects(opened, { code: 'unavailable', message: /appended to by rule 2, this program knows 1/ });
  assert.equal(database.rows(Buffer.from(uid).toString('hex')).length, 1);
});

test('a node whose clock is far from that of the database leaves service, says so once, and comes back by itself', async () => {
  const events: StoreEvent[] = [];
  let apart = 0;
  const { node, database } = await simShared({ onEvent: (event) => void events.push(event) });
  const { store } = await node();
  const engine = new SimEngine(database);
  const other = await openShared({
    ...sharedOptions(engine, prng(3)),
    now: () => database.now + apart,
    onEvent: (event) => void events.push(event),
  });
  for (const [by, serves] of [
    [29_999, true],
    [-29_999, true],
    [30_000, false],
    [-86_400_000, false],
    [0, true],
  ] as const) {
    apart = by;
    const adds = other.transaction((tx) => tx.notes.add(`at ${by}`));
    if (serves) await adds;
    else {
      const seconds = Math.abs(by) / 1000;
      await assert.rejects(adds, { code: 'unavailable', message: new RegExp(`database are ${seconds} seconds apart`) });
      await assert.rejects(
        other.transaction((tables) => tables.notes.all()),
        { code: 'unavailable' },
      );
    }
    assert.equal(other.status().writable, serves);
    await store.transaction((tx) => tx.notes.add(`beside ${by}`));
  }
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ['no-turn', 'turn-again'],
  );
  const names = await store.transaction((tables) => tables.notes.all().map(({ name }) => name));
  assert.equal(names.length, 8);
  await store.close();
  await other.close();
});

test('what becomes of turns is counted', async () => {
  const counts = { turns: 0, rows: 0, lost: 0, branches: 0 };
  const { node, database } = await simShared();
  const { store } = await node();
  const engine = new SimEngine(database);
  const meter = {
    turn: (_waited: number, rows: number) => {
      counts.turns++;
      counts.rows += rows;
    },
    lost: () => void counts.lost++,
    lostBranch: () => void counts.branches++,
  };
  const counted = await openShared({ ...sharedOptions(engine, prng(3)), meter });
  const before = counts.turns;
  for (let i = 0; i < 3; i++) await store.transaction((tx) => tx.notes.add(`n${i}`));
  await counted.transaction((tx) => tx.notes.add('own'));
  assert.deepEqual([counts.turns - before, counts.rows, counts.lost, counts.branches], [1, 3, 0, 0]);
  let isCut = true;
  engine.fault = (_number, kind) => (kind === 'begin' && isCut ? 'request' : undefined);
  await assert.rejects(
    counted.transaction((tx) => tx.notes.add('cut')),
    { code: 'unavailable' },
  );
  assert.equal(counts.lost, 2);
  isCut = false;
  database.failover(1);
  await assert.rejects(
    counted.transaction((tx) => tx.notes.add('after')),
    { code: 'unavailable' },
  );
  assert.equal(counts.branches, 1);
  await store.close();
  await counted.close();
});

test('the engine has no word of what is stored in clear', async () => {
  const { node, database } = await simShared({ limits: { segmentRecords: 2 } });
  const { store } = await node();
  const words = ['payroll', 'apik_planted', '203.0.113.7', 'notes', 'INSERT'];
  for (let i = 0; i < 5; i++) {
    await store.transaction((tx) => {
      tx.notes.add(`payroll${i}`, 'apik_planted');
      tx.record(activityInput(`act_${i}`, { keyid: 'apik_planted', address: '203.0.113.7' }));
    });
  }
  const rows = database.rows(storeId);
  await store.checkpoint();
  const bytes = [...rows.map(({ sealed }) => sealed), ...database.contents.files.values()];
  assert.ok(rows.length > 5 && database.contents.files.size > 2);
  const text = Buffer.concat(bytes).toString('latin1') + [...database.contents.files.keys()].join();
  for (const word of words) assert.ok(!text.includes(word), word);
  await store.close();
});

test('retention on one node: the others read from what is kept', async () => {
  const { node } = await simShared({ limits: { segmentRecords: 2 } });
  const [{ store: a }, { store: b }] = [await node(), await node()];
  for (let i = 1; i <= 7; i++) {
    await (i % 2 ? a : b).transaction((tx) => tx.record(activityInput(`act_${i}`)));
  }
  await a.checkpoint();
  await b.checkpoint();
  const droppable = a.droppable(1e9, 4);
  assert.equal(droppable?.seq, 4);
  await a.dropActivity(4);
  for (const store of [a, b]) {
    const { items } = await store.activity.search({}, { limit: 10 });
    assert.deepEqual(
      items.map(({ seq }) => seq),
      [7, 6, 5],
    );
    assert.equal(store.status().activityDropped?.seq, 4);
  }
  await a.checkpoint();
  await a.close();
  await b.close();
});

test('a node that is far behind catches up without a turn, and a turn never shows more than so many rows', async () => {
  const { node, database } = await simShared();
  database.rowsInTurn = 3;
  const [{ store: a }, { store: b, engine }] = [await node(), await node()];
  const resume = engine.stall();
  const late = b.transaction((tx) => tx.notes.add('late'));
  for (let turns = 0; turns < 20; turns++) await turn();
  for (const connection of engine.connections) connection.expire();
  for (let i = 0; i < 40; i++) await a.transaction((tx) => tx.notes.add(`a${i}`));
  let most = 0;
  let messages: string[] = [];
  engine.fault = (_number, kind) => {
    messages.push(kind);
    return undefined;
  };
  resume();
  await late.catch(() => {});
  messages = [];
  for (let i = 0; i < 40; i++) await a.transaction((tx) => tx.notes.add(`more${i}`));
  const names = (store: typeof a) => store.transaction((tx) => tx.notes.all().length);
  const found = await names(b);
  most = messages.filter((kind) => kind === 'read').length;
  assert.ok(most >= 1 && found >= 80, `${most} pages, ${found} notes`);
  assert.equal(await names(a), found);
  await a.close();
  await b.close();
});
