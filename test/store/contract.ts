// The contract of the store port, as one suite that every implementation runs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { ActivityInput, Store } from '../../src/store/port.ts';
import type { Row, Sql } from '../../src/store/sql.ts';
import type { Migration } from '../../src/store/tables/migrations.ts';

export const contractMigrations: readonly Migration[] = [
  {
    name: 'notes',
    statements: [
      'CREATE TABLE notes (seq INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, value, size REAL)',
      'CREATE TABLE tags (note TEXT NOT NULL REFERENCES notes (name) ON DELETE CASCADE, tag TEXT NOT NULL)',
    ],
  },
];

interface NoteRow extends Row {
  seq: number;
  name: string;
  value: string | number | null;
  size: number | null;
}

const countLatest = `INSERT INTO notes (name, value, size) VALUES (?2, ?3, ?1)
  ON CONFLICT (name) DO UPDATE SET value = excluded.value, size = size + excluded.size`;
const countSize = 'UPDATE notes SET size = coalesce(size, 0) + ? WHERE name = ?';

export function noteTables(sql: Sql) {
  const remembered = (name: string) =>
    sql.remember('notes', name, () => sql.get<NoteRow>('SELECT * FROM notes WHERE name = ?', name));
  return {
    notes: {
      remembered,
      count(name: string): void {
        sql.count(countSize, name);
      },
      countLatest(name: string, value: number): void {
        sql.count(countLatest, name, value);
      },
      latest: (name: string) => {
        const row = remembered(name);
        const counted = sql.counted(countLatest, name);
        return [(row?.size ?? 0) + (counted?.sum ?? 0), counted ? counted.latest[0] : (row?.value ?? null)];
      },
      counted: (name: string) => (remembered(name)?.size ?? 0) + (sql.counted(countSize, name)?.sum ?? 0),
      add: (name: string, value: string | number | null = null, size: number | null = null) =>
        sql.run('INSERT INTO notes (name, value, size) VALUES (?, ?, ?)', name, value, size),
      set: (name: string, value: string | number | null) =>
        sql.run('UPDATE notes SET value = ? WHERE name = ?', value, name),
      remove: (name: string) => sql.run('DELETE FROM notes WHERE name = ?', name),
      get: (name: string) => sql.get<NoteRow>('SELECT * FROM notes WHERE name = ?', name),
      all: () => sql.all<NoteRow>('SELECT * FROM notes ORDER BY seq'),
      returning: (name: string) => sql.get<{ seq: number }>('INSERT INTO notes (name) VALUES (?) RETURNING seq', name),
      tag: (note: string, tag: string) => sql.run('INSERT INTO tags (note, tag) VALUES (?, ?)', note, tag),
      tags: () => sql.all<{ note: string; tag: string }>('SELECT note, tag FROM tags ORDER BY note, tag'),
    },
  };
}

export type NoteTables = ReturnType<typeof noteTables>;

export function activityInput(id: string, more: Partial<ActivityInput> = {}): ActivityInput {
  return {
    id,
    createdAt: 1000,
    keyid: 'apik_1',
    action: 'keyring.encrypt',
    ringname: 'payroll',
    validAction: true,
    status: 200,
    props: {},
    ...more,
  };
}

/** `open` makes an empty store with the tables above; `reopen` is given if data survive a close. */
export function storeContract(
  name: string,
  open: () => Promise<Store<NoteTables>>,
  reopen?: (store: Store<NoteTables>) => Promise<Store<NoteTables>>,
): void {
  const names = (store: Store<NoteTables>) => store.transaction((tx) => tx.notes.all().map((note) => note.name));

  test(`${name}: what is remembered is what a look-up would find`, async () => {
    const store = await open();
    await store.transaction((tx) => {
      tx.notes.add('a', 1);
      assert.equal(tx.notes.remembered('a')?.value, 1);
      tx.notes.set('a', 2);
      assert.equal(tx.notes.remembered('a')?.value, 2);
      assert.equal(tx.notes.remembered('b'), undefined);
      tx.notes.add('b', 'new');
      assert.equal(tx.notes.remembered('b')?.value, 'new');
      const taken = () =>
        tx.savepoint(() => {
          tx.notes.set('a', 3);
          assert.equal(tx.notes.remembered('a')?.value, 3);
          throw new Error('taken back');
        });
      assert.throws(taken, /taken back/);
      assert.equal(tx.notes.remembered('a')?.value, 2);
    });
    const failed = store.transaction((tx) => {
      tx.notes.remove('b');
      assert.equal(tx.notes.remembered('b'), undefined);
      tx.notes.set('a', 4);
      tx.notes.remembered('a');
      throw new Error('taken back');
    });
    await assert.rejects(failed, /taken back/);
    await store.transaction((tx) => {
      assert.equal(tx.notes.remembered('a')?.value, 2);
      assert.equal(tx.notes.remembered('b')?.value, 'new');
    });
    await store.close();
  });

  test(`${name}: what is counted counts once for each transaction that was kept`, async () => {
    let store = await open();
    const count = (times: number, kept = true) =>
      store.transaction((tx) => {
        for (let i = 0; i < times; i++) tx.notes.count('a');
        if (!kept) throw new Error('taken back');
      });
    const counted = () => store.transaction((tx) => tx.notes.counted('a'));
    await store.transaction((tx) => tx.notes.add('a', 'x', 5));
    await count(2);
    assert.equal(await counted(), 7);
    await assert.rejects(count(3, false), /taken back/);
    assert.equal(await counted(), 7);
    await store.transaction((tx) => {
      tx.notes.count('a');
      assert.throws(() =>
        tx.savepoint(() => {
          tx.notes.count('a');
          throw new Error('taken back');
        }),
      );
      tx.notes.set('a', 'y');
      assert.equal(tx.notes.counted('a'), 8);
    });
    if (reopen) store = await reopen(store);
    assert.equal(await counted(), 8);
    await count(1);
    assert.equal(await counted(), 9);
    await store.close();
  });

  test(`${name}: a count keeps the further parameters of the latest one that was kept`, async () => {
    let store = await open();
    const count = (value: number, kept = true) =>
      store.transaction((tx) => {
        tx.notes.countLatest('a', value);
        if (!kept) throw new Error('taken back');
      });
    const latest = () => store.transaction((tx) => tx.notes.latest('a'));
    await assert.rejects(count(1, false), /taken back/);
    assert.deepEqual(await latest(), [0, null]);
    await count(7);
    await count(3);
    await assert.rejects(count(9, false), /taken back/);
    assert.deepEqual(await latest(), [2, 3]);
    if (reopen) store = await reopen(store);
    assert.deepEqual(await latest(), [2, 3]);
    await count(5);
    assert.deepEqual(await latest(), [3, 5]);
    await store.close();
  });

  test(`${name}: of ever more that is counted, nothing is lost`, async () => {
    let store = await open();
    const many = 20_000;
    await store.transaction((tx) => {
      for (let i = 0; i < many; i++) tx.notes.countLatest(`n${i}`, i);
    });
    for (let round = 0; round < 8; round++) await store.transaction((tx) => tx.notes.countLatest(`n${round}`, -1));
    if (reopen) store = await reopen(store);
    await store.transaction((tx) => {
      for (let i = 0; i < many; i += 7) assert.deepEqual(tx.notes.latest(`n${i}`), i < 8 ? [2, -1] : [1, i]);
    });
    await store.close();
  });

  test(`${name}: a transaction answers what its function does, and keeps what it wrote`, async () => {
    const store = await open();
    const answer = await store.transaction((tx) => {
      assert.equal(tx.notes.add('a', 'x'), 1);
      return tx.notes.get('a')?.value;
    });
    assert.equal(answer, 'x');
    assert.deepEqual(await names(store), ['a']);
    await store.close();
  });

  test(`${name}: values come back as they went in`, async () => {
    let store = await open();
    const values = [
      '',
      'ü€😀',
      'a\u0000b',
      '"\\\n',
      0,
      -1,
      1.5,
      2 ** 31,
      2 ** 40,
      Number.MAX_SAFE_INTEGER,
      -(2 ** 53) + 1,
      null,
    ];
    await store.transaction((tx) => {
      for (const [i, value] of values.entries()) tx.notes.add(`n${i}`, value, 0.1);
    });
    const read = () => store.transaction((tx) => tx.notes.all().map((note) => [note.value, note.size]));
    const wanted = values.map((value) => [value, 0.1]);
    assert.deepEqual(await read(), wanted);
    if (reopen) {
      store = await reopen(store);
      assert.deepEqual(await read(), wanted);
    }
    await store.close();
  });

  test(`${name}: a transaction that throws leaves nothing, neither rows nor activity`, async () => {
    const store = await open();
    await assert.rejects(
      store.transaction((tx) => {
        tx.notes.add('a');
        tx.record(activityInput('act_1'));
        throw new Error('no');
      }),
      /^Error: no$/,
    );
    assert.deepEqual(await names(store), []);
    assert.equal(await store.activity.find('act_1'), undefined);
    assert.equal(store.status().activityCount, 0);
    await store.close();
  });

  test(`${name}: a savepoint that throws takes back its own part only`, async () => {
    let store = await open();
    await store.transaction((tx) => {
      tx.notes.add('before');
      tx.record(activityInput('act_1'));
      const failing = () =>
        tx.savepoint(() => {
          tx.notes.add('inside');
          tx.record(activityInput('act_2'));
          tx.savepoint(() => tx.notes.add('nested'));
          throw new Error('no');
        });
      assert.throws(failing, /^Error: no$/);
      assert.equal(tx.notes.get('inside'), undefined);
      tx.savepoint(() => tx.notes.add('kept'));
      tx.notes.add('after');
      tx.record(activityInput('act_3'));
    });
    for (let round = 0; round < 2; round++) {
      assert.deepEqual(await names(store), ['before', 'kept', 'after']);
      const { items } = await store.activity.search({}, { limit: 10 });
      assert.deepEqual(
        items.map((record) => [record.id, record.seq]),
        [
          ['act_3', 2],
          ['act_1', 1],
        ],
      );
      if (reopen && round === 0) store = await reopen(store);
    }
    await store.close();
  });

  test(`${name}: a transaction in slices is one, and others wait for it while the event loop turns`, async () => {
    let store = await open();
    let turns = 0;
    const seen: string[] = [];
    const sliced = store.transactionInSlices(function* (tx) {
      for (const name of ['a', 'b', 'c']) {
        tx.notes.add(name);
        seen.push(name);
        yield;
      }
      yield* tx.savepointInSlices(function* () {
        tx.notes.add('d');
        yield;
      });
      try {
        yield* tx.savepointInSlices(function* () {
          tx.notes.add('lost');
          yield;
          throw new Error('taken back');
        });
      } catch {
        tx.notes.add('e');
      }
      return turns;
    });
    const behind = store.transaction((tx) => {
      seen.push('behind');
      return tx.notes.all().map(({ name }) => name);
    });
    const all = Promise.all([sliced, behind]);
    for (let over = false; !over; turns++) {
      over = await Promise.race([all.then(() => true), setImmediate(false)]);
    }
    assert.deepEqual(seen, ['a', 'b', 'c', 'behind']);
    assert.deepEqual(await behind, ['a', 'b', 'c', 'd', 'e']);
    if (reopen) store = await reopen(store);
    assert.deepEqual(await names(store), ['a', 'b', 'c', 'd', 'e']);
    await store.close();
  });

  test(`${name}: of a transaction in slices that fails nothing remains`, async () => {
    let store = await open();
    await store.transaction((tx) => tx.notes.add('before'));
    const failed = store.transactionInSlices(function* (tx) {
      tx.notes.add('a');
      tx.record(activityInput('act_lost'));
      yield;
      tx.notes.count('before');
      yield;
      throw new Error('no');
    });
    const behind = store.transaction((tx) => tx.notes.add('behind'));
    await assert.rejects(failed, /no/);
    await behind;
    if (reopen) store = await reopen(store);
    assert.deepEqual(await names(store), ['before', 'behind']);
    assert.equal(await store.activity.find('act_lost'), undefined);
    await store.close();
  });

  test(`${name}: a statement that fails can be caught, and the transaction goes on without it`, async () => {
    let store = await open();
    await store.transaction((tx) => {
      tx.notes.add('a');
      assert.throws(() => tx.notes.add('a'), { code: 'conflict' });
      tx.notes.add('b');
    });
    assert.deepEqual(await names(store), ['a', 'b']);
    if (reopen) {
      store = await reopen(store);
      assert.deepEqual(await names(store), ['a', 'b']);
    }
    await store.close();
  });

  test(`${name}: rows that a write answers are kept like any write`, async () => {
    let store = await open();
    assert.equal((await store.transaction((tx) => tx.notes.returning('a')))?.seq, 1);
    if (reopen) store = await reopen(store);
    assert.equal((await store.transaction((tx) => tx.notes.returning('b')))?.seq, 2);
    assert.deepEqual(await names(store), ['a', 'b']);
    await store.close();
  });

  test(`${name}: references hold and cascade; numbers of deleted rows are not given again`, async () => {
    let store = await open();
    await store.transaction((tx) => {
      tx.notes.add('a');
      tx.notes.tag('a', 'red');
      assert.throws(() => tx.notes.tag('none', 'red'), { code: 'internal' });
    });
    if (reopen) store = await reopen(store);
    await store.transaction((tx) => {
      tx.notes.remove('a');
      tx.notes.add('b');
    });
    const [tags, notes] = await store.transaction((tx) => [tx.notes.tags(), tx.notes.all()]);
    assert.deepEqual(tags, []);
    assert.deepEqual(
      notes.map((note) => note.seq),
      [2],
    );
    await store.close();
  });

  test(`${name}: transactions run one after the other and see what was written before them`, async () => {
    const store = await open();
    await store.transaction((tx) => tx.notes.add('count', 0));
    await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        store
          .transaction((tx) => {
            const value = Number(tx.notes.get('count')?.value);
            tx.notes.set('count', value + 1);
            if (i % 10 === 9) throw new Error('no');
          })
          .catch((error: Error) => assert.equal(error.message, 'no')),
      ),
    );
    assert.equal((await store.transaction((tx) => tx.notes.get('count')))?.value, 45);
    await store.close();
  });

  test(`${name}: a read sees the state at once and cannot write`, async () => {
    const store = await open();
    const added = store.transaction((tx) => tx.notes.add('a'));
    await added;
    assert.equal(store.read((tables) => tables.notes.get('a'))?.name, 'a');
    assert.throws(() => store.read((tables) => tables.notes.add('b')), { code: 'internal' });
    assert.throws(() => store.read((tables) => tables.notes.returning('b')), { code: 'internal' });
    assert.deepEqual(await names(store), ['a']);
    await store.close();
  });

  test(`${name}: a write after its transaction has ended is refused`, async () => {
    const store = await open();
    const late = await store.transaction((tx) => tx);
    assert.throws(() => late.notes.add('late'), { code: 'internal' });
    assert.throws(() => late.record(activityInput('act_1')), { code: 'internal' });
    assert.deepEqual(await names(store), []);
    await store.close();
  });

  test(`${name}: activity is found, paged newest first, and chained`, async () => {
    let store = await open();
    for (let i = 1; i <= 7; i++) {
      await store.transaction((tx) =>
        tx.record(activityInput(`act_${i}`, { keyid: i % 2 ? 'odd' : 'even', props: { n: { i } } })),
      );
    }
    if (reopen) store = await reopen(store);
    assert.equal((await store.activity.find('act_4'))?.seq, 4);
    assert.equal(await store.activity.find('act_9'), undefined);
    const first = await store.activity.search({ keyids: ['odd'] }, { limit: 2 });
    assert.deepEqual(
      first.items.map((record) => record.seq),
      [7, 5],
    );
    assert.ok(first.next !== undefined);
    const second = await store.activity.search({ keyids: ['odd'] }, { limit: 2, after: first.next });
    assert.deepEqual(
      second.items.map((record) => record.seq),
      [3, 1],
    );
    assert.equal(second.next, undefined);
    const byProps = await store.activity.search({ props: { n: { i: 6 } } }, { limit: 2 });
    assert.deepEqual(
      byProps.items.map((record) => record.id),
      ['act_6'],
    );
    const hashes: string[] = [];
    for await (const { hash } of store.activity.read(1)) hashes.push(hash);
    assert.equal(new Set(hashes).size, 7);
    assert.equal(store.status().activityCount, 7);
    await store.close();
  });

  test(`${name}: after close nothing is served`, async () => {
    const store = await open();
    const last = store.transaction((tx) => tx.notes.add('a'));
    await store.close();
    assert.equal(await last, 1);
    await assert.rejects(names(store), { code: 'unavailable' });
    assert.equal(store.status().writable, false);
  });
}
