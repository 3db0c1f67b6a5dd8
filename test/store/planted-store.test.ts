// A store whose maker has its keys, as in an appliance of their own: what is run again from its log is bounded, and a
// snapshot with tables that no kms makes is refused before anything runs on it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GroupReplayer, type ReplayedActivity } from '../../src/store/group-replay.ts';
import { isLoggable } from '../../src/store/loggable.ts';
import { openState, type State } from '../../src/store/state.ts';
import { type Migration, needSchema, systemMigrations, tenantMigrations } from '../../src/store/tables/migrations.ts';
import { sqlWasm } from '../support/wasm.ts';

const endless = 'WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)';

const planted = [
  `${endless} INSERT INTO settings (name, value) SELECT 'x', max(x) FROM n`,
  `${endless} SELECT max(x) FROM n`,
  `INSERT INTO settings (name, value) SELECT 'x', count(*) FROM (${endless} SELECT x FROM n)`,
  `UPDATE settings SET value = (${endless} SELECT max(x) FROM n)`,
  `DELETE FROM settings WHERE seq IN (${endless} SELECT x FROM n)`,
  `DELETE FROM settings WHERE EXISTS (SELECT 1 FROM settings a, settings b, settings c, settings d)`,
  'UPDATE settings SET value = a.value FROM settings a, settings b, settings c',
  'UPDATE settings SET value = randomblob(1000000000)',
  'UPDATE settings SET value = zeroblob(1000000000)',
  'UPDATE settings SET value = "zeroblob"(1000000000)',
  'UPDATE settings SET value = [zeroblob](1000000000)',
  'UPDATE settings SET value = `zeroblob`(1000000000)',
  "UPDATE settings SET value = printf('%.*c', 1000000000, 'x')",
  'UPDATE settings SET value = value || value',
  "DELETE FROM settings WHERE value LIKE '%a%a%a%a%a%a%b'",
  "DELETE FROM settings WHERE value GLOB '*a*a*a*a*a*a*b'",
  "DELETE FROM settings WHERE value IN json_each('[]')",
  'DELETE FROM settings WHERE value IN marks',
  'INSERT INTO settings (name, value) TABLE marks',
  'INSERT OR ROLLBACK INTO settings (name, value) VALUES (1, 2)',
  'CREATE TRIGGER t AFTER INSERT ON settings BEGIN DELETE FROM marks; END',
  'CREATE TEMP TABLE x (a)',
  'CREATE TABLE x AS SELECT 1',
  'CREATE TABLE x (a, b GENERATED ALWAYS AS (a * 2))',
  'CREATE TABLE x (a, b AS (a * 2))',
  'CREATE TABLE x (a DEFAULT (zeroblob(1000000000)))',
  'CREATE TABLE x (a CHECK (zeroblob(1000000000)))',
  'CREATE INDEX x ON settings (zeroblob(1000000000))',
  'CREATE VIEW x AS SELECT 1',
  'CREATE VIRTUAL TABLE x USING fts5(a)',
  'PRAGMA journal_mode = DELETE',
  'PRAGMA user_version = 1; DELETE FROM marks',
  "ATTACH 'x' AS y",
  'VACUUM',
  'REINDEX',
  'BEGIN',
  'EXPLAIN DELETE FROM marks',
  `UPDATE settings SET value = '${'x'.repeat(20_000)}'`,
  // Each turn doubles the value.
  "UPDATE settings SET value = json_extract(json_extract(value, '$', '$'), '$', '$')",
  "UPDATE settings SET value = json_extract(value, '$', '$')",
  "CREATE INDEX x ON settings (json_extract(value, '$', '$'))",
  `UPDATE settings SET value = 1 WHERE name IN (${Array.from({ length: 200 }, (_, i) => i).join()})`,
  `INSERT INTO settings (name, value) VALUES ${'(1, 2),'.repeat(60)}(1, 2)`,
  'INSERT INTO settings DEFAULT VALUES',
  'CREATE TABLE x (i INTEGER PRIMARY KEY, a REFERENCES x (i), b REFERENCES x (i))',
  'DELETE FROM settings WHERE name = ?32766',
  `INSERT INTO settings (name, value) VALUES (1, '${'x'.repeat(100)}')`,
  `CREATE TABLE x (a TEXT DEFAULT '${'x'.repeat(17)}')`,
  `ALTER TABLE settings ADD COLUMN a TEXT DEFAULT '${'x'.repeat(1000)}'`,
  `INSERT INTO settings (name, value) VALUES ${'(?1, ?1),'.repeat(5)}(?1, ?2)`,
  "UPDATE sqlite_master SET sql = ''",
  'DELETE FROM sqlite_sequence',
  'DELETE FROM json_each',
  'DELETE FROM pragma_table_info',
  '/* */ SELECT 1',
  '',
];

const records: ReplayedActivity = { replay: () => undefined, replayAlike: () => undefined };
const payload = (sql: string): Uint8Array => Buffer.from(JSON.stringify({ from: 0, sql: [sql], tx: [[[0]]] }));

function migrated(state: State, migrations: readonly Migration[]): void {
  for (const { statements } of migrations) for (const text of statements) state.run(state.statement(text), []);
  state.run(state.statement(`PRAGMA user_version = ${migrations.length}`), []);
}

for (const text of planted) {
  test(`a log that holds it is refused, and nothing of it is run: ${text.slice(0, 90)}`, async () => {
    const state = await openState(sqlWasm);
    migrated(state, systemMigrations);
    const replayer = () => new GroupReplayer(state, records);
    const counts = Buffer.from(JSON.stringify({ from: 0, sql: [text], tx: [], counts: [[0, 1, 'x']] }));
    for (const each of [payload(text), counts]) {
      assert.throws(() => replayer().apply(each, 'log', 64), { code: 'corrupt', message: /that no log may hold/ });
    }
    state.close();
  });
}

test('what the tables and the migrations write may stand in a log', () => {
  for (const { statements } of [...systemMigrations, ...tenantMigrations]) {
    for (const text of statements) assert.ok(isLoggable(text), text);
  }
  for (const text of [
    'PRAGMA user_version = 2',
    "INSERT INTO n VALUES ('it''s --', -1, 1.5), (?1, NULL, '/* (')",
    'INSERT INTO t (a, b) VALUES (?, ?) ON CONFLICT (a) DO UPDATE SET b = excluded.b RETURNING a',
    'UPDATE t SET a = coalesce(?, a), b = b + 1 WHERE (c = ? OR c IS NULL) AND d IN (?, ?) AND e <> 7',
    'DELETE FROM t',
    'ALTER TABLE t ADD COLUMN a TEXT NOT NULL DEFAULT 0',
    'DROP INDEX i',
  ]) {
    assert.ok(isLoggable(text), text);
  }
});

/** Changes of a schema, each with the words of its refusal. */
const foreign: Readonly<Record<string, RegExp>> = {
  'CREATE TRIGGER t AFTER INSERT ON marks BEGIN DELETE FROM settings; END': /has the trigger "t"/,
  'CREATE VIEW v AS SELECT 1': /has the view "v"/,
  'CREATE TABLE more (a)': /has the table "more"/,
  'CREATE VIRTUAL TABLE f USING fts3(a)': /has the (?:table|index) "(?:f|sqlite_autoindex_f)/,
  'CREATE TABLE g (a, b AS (a * 2))': /has the table "g"/,
  'CREATE INDEX i ON settings (length(value))': /has the index "i"/,
  'DROP INDEX tenants_by_name': /lacks the index "tenants_by_name"/,
  'ALTER TABLE settings ADD COLUMN more': /has the table "settings"/,
};

for (const [text, refusal] of Object.entries(foreign)) {
  test(`a database is refused with another schema: ${text}`, async () => {
    const made = await openState(sqlWasm);
    migrated(made, systemMigrations);
    made.run(made.statement(text), []);
    const state = await openState(sqlWasm, made.image());
    await assert.rejects(needSchema(state, systemMigrations, sqlWasm, 'system'), { code: 'corrupt', message: refusal });
    state.close();
  });
}

test('a database is taken with the schema of each number of steps, and as no other', async () => {
  for (const migrations of [systemMigrations, tenantMigrations]) {
    const state = await openState(sqlWasm);
    await needSchema(state, migrations, sqlWasm, 'empty');
    migrated(state, migrations);
    await needSchema(state, migrations, sqlWasm, 'whole');
    const other = migrations === systemMigrations ? tenantMigrations : systemMigrations;
    await assert.rejects(needSchema(state, other, sqlWasm, 'other'), { code: 'corrupt' });
    state.close();
  }
});
