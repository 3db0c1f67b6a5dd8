// The database in memory: the statements that it accepts, and its handling of values.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openState } from '../../src/store/state.ts';
import { sqlWasm } from '../support/wasm.ts';

async function opened() {
  const state = await openState(sqlWasm);
  const run = (text: string, ...params: (string | number | null)[]) => state.run(state.statement(text), params);
  run('CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT, b UNIQUE, c)');
  return { state, run };
}

test('statements that a log could not repeat are refused', async () => {
  const { state } = await opened();
  for (const text of [
    'INSERT INTO t (b) VALUES (random())',
    'INSERT INTO t (b) VALUES (hex(randomblob(8)))',
    "UPDATE t SET b = datetime('now')",
    'UPDATE t SET b = CURRENT_TIMESTAMP',
    'INSERT INTO t (b) VALUES (last_insert_rowid())',
    'INSERT OR FAIL INTO t (b) VALUES (1)',
    'INSERT OR ROLLBACK INTO t (b) VALUES (1)',
    'WITH x AS (SELECT random() AS r) INSERT INTO t (b) SELECT r FROM x',
  ]) {
    assert.throws(() => state.statement(text), { code: 'internal', message: /not repeatable/ }, text);
  }
  assert.equal(state.statement('SELECT random()').reads, true);
  assert.equal(state.statement('WITH x AS (SELECT 1 AS r) SELECT r FROM x').reads, true);
  assert.equal(state.statement('WITH x AS (SELECT 1 AS r) INSERT INTO t (b) SELECT r FROM x').reads, false);
  state.close();
});

test('statements that belong to the driver are refused to tables', async () => {
  const { state } = await opened();
  for (const text of [
    'BEGIN',
    'commit',
    ' ROLLBACK',
    'SAVEPOINT a',
    'PRAGMA foreign_keys = OFF',
    'VACUUM',
    "ATTACH 'x' AS y",
  ]) {
    assert.throws(() => state.statement(text), { code: 'internal' }, text);
  }
  state.close();
});

test('one text is one statement', async () => {
  const { state, run } = await opened();
  for (const text of ['DELETE FROM t; DELETE FROM t', 'SELECT 1;;SELECT 2']) {
    assert.throws(() => state.statement(text), { code: 'internal', message: /more than one/ });
  }
  assert.equal(run('DELETE FROM t ; '), 0);
  assert.throws(() => state.statement('SELEC 1'), { code: 'internal' });
  state.close();
});

test('statements are prepared once', async () => {
  const { state } = await opened();
  const text = 'SELECT * FROM t';
  assert.equal(state.statement(text), state.statement(text));
  state.close();
});

test('numbers that JSON cannot say are refused before anything is written', async () => {
  const { state, run } = await opened();
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    assert.throws(() => run('INSERT INTO t (b) VALUES (?)', value), { code: 'internal' });
  }
  assert.deepEqual(state.all(state.statement('SELECT * FROM t'), []), []);
  state.close();
});

test('a broken rule says which, without the value', async () => {
  const { state, run } = await opened();
  run('INSERT INTO t (b) VALUES (?)', 'secret');
  assert.throws(
    () => run('INSERT INTO t (b) VALUES (?)', 'secret'),
    (error: Error & { code?: string }) =>
      error.code === 'conflict' && /t\.b/.test(error.message) && !/secret/.test(error.message),
  );
  state.close();
});

test('an image holds everything, and opens again', async () => {
  const { state, run } = await opened();
  for (let i = 0; i < 1000; i++) run('INSERT INTO t (b, c) VALUES (?, ?)', i, 'x'.repeat(i));
  const image = state.image();
  state.close();
  state.close();
  const again = await openState(sqlWasm, image);
  assert.deepEqual(again.get(again.statement('SELECT count(*) AS n, sum(length(c)) AS l FROM t'), []), {
    n: 1000,
    l: 499_500,
  });
  again.close();
});
