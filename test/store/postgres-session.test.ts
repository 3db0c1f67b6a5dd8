// A database, a user or a server with legal settings meant for other software: none of a node's queries is interpreted
// differently, at the start or on later connections.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Client } from 'pg';
import { openPostgres } from '../../src/store/shared/postgres.ts';
import { createShared, readShared } from '../../src/store/shared/row-journal.ts';
import { Postgres, postgresPrograms } from '../support/postgres.ts';
import { sharedUid } from '../support/shared-store.ts';
import { testStoreKeys } from '../support/store-keys.ts';
import { sqlWasm } from '../support/wasm.ts';
import { contractMigrations, noteTables } from './contract.ts';

const programs = postgresPrograms();

/** Hostile values by setting. The server leaves out settings that it does not know. */
const hostile: Readonly<Record<string, string>> = {
  DateStyle: "'SQL, DMY'",
  IntervalStyle: "'iso_8601'",
  TimeZone: "'Pacific/Chatham'",
  client_encoding: "'LATIN1'",
  bytea_output: "'escape'",
  extra_float_digits: '-15',
  standard_conforming_strings: 'off',
  escape_string_warning: 'on',
  array_nulls: 'off',
  transform_null_equals: 'on',
  client_min_messages: "'debug1'",
  synchronous_commit: 'off',
  default_transaction_isolation: "'serializable'",
  default_transaction_deferrable: 'on',
  statement_timeout: '1',
  lock_timeout: '1',
  idle_in_transaction_session_timeout: '1',
  idle_session_timeout: '250',
  transaction_timeout: '1',
  quote_all_identifiers: 'on',
  lc_time: "'C'",
  row_security: 'off',
  plan_cache_mode: "'force_generic_plan'",
  enable_indexscan: 'off',
  jit: 'on',
  search_path: 'shadow, pg_catalog, public',
};

/** Functions and a type in a schema that precedes `pg_catalog`. */
const shadow = `CREATE SCHEMA shadow;
  CREATE FUNCTION shadow.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS 'SELECT to_timestamp(0)';
  CREATE FUNCTION shadow.statement_timestamp() RETURNS timestamptz LANGUAGE sql AS 'SELECT to_timestamp(0)';
  CREATE FUNCTION shadow.quote_ident(text) RETURNS text LANGUAGE sql AS 'SELECT $$nowhere$$::text';
  CREATE FUNCTION shadow.current_setting(text) RETURNS text LANGUAGE sql AS 'SELECT $$off$$::text';
  CREATE FUNCTION shadow.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT true';
  CREATE FUNCTION shadow.length(bytea) RETURNS integer LANGUAGE sql AS 'SELECT 0';
  GRANT USAGE ON SCHEMA shadow TO PUBLIC;`;

if (!programs) {
  test('settings of PostgreSQL', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
} else {
  const postgres = new Postgres(programs);
  after(() => postgres.end());
  const admin = async (database: string, text: string): Promise<void> => {
    const client = new Client({ ...postgres.config, database });
    await client.connect();
    await client.query(text).finally(() => client.end());
  };
  await admin('postgres', 'CREATE ROLE kmsuser LOGIN');
  let databases = 0;

  /** Runs every query that a node sends to a database. */
  const use = async (database: string, isNew: boolean): Promise<void> => {
    const config = { ...postgres.address, user: 'kmsuser', database };
    const engine = await openPostgres(config);
    const random = (length: number) => crypto.getRandomValues(new Uint8Array(length));
    const keys = testStoreKeys();
    if (isNew) await createShared({ engine, uid: sharedUid, keys, random });
    const options = { engine, uid: sharedUid, dir: 'notes', keys, wasm: sqlWasm };
    const events: string[] = [];
    const onEvent = ({ message }: { message: string }) => void events.push(message);
    const read = await readShared({ ...options, migrations: contractMigrations, tables: noteTables, onEvent });
    const store = await read.open();
    const name = `Grüße ${isNew} \\ ' NULL 鍵`;
    await Promise.all(['a', 'b'].map((each) => store.transaction((tx) => tx.notes.add(`${name} ${each}`))));
    await store.checkpoint();
    const hold = await store.hold(true);
    hold?.release();
    const notes = await store.transaction((tx) => tx.notes.all());
    assert.equal(notes.filter((note) => note.name.startsWith(name)).length, 2, events.join('; '));
    const facts = await engine.facts();
    assert.ok(Math.abs(facts.now - Date.now()) < 5000, `${facts.now}`);
    assert.equal(facts.fsync, true);
    const node = {
      id: 'n',
      build: '1',
      schemas: { system: 1, tenant: 1 },
      appendRule: 1,
      places: ['https://Grüße.example'],
    };
    const noted = await engine.noteNode(node, true);
    assert.ok(Math.abs(noted.now - Date.now()) < 5000, `${noted.now}`);
    const [listed] = await engine.nodes();
    assert.deepEqual(listed?.places, node.places);
    assert.ok(listed && listed.age >= 0 && listed.age < 5000, `${listed?.age}`);
    const [found] = await engine.stores();
    assert.ok(found && found.age >= 0 && found.age < 120_000, `${found?.age}`);
    const bytes = new Uint8Array(600_000).map((_, at) => at % 256);
    await engine.files.replace('files/one', bytes);
    assert.deepEqual(await engine.files.read('files/one', 2 ** 20), bytes);
    assert.equal(await engine.files.size('files/one'), bytes.length);
    assert.ok(await engine.replaceSeal(isNew ? 0 : 1, bytes.slice(0, 300)));
    assert.deepEqual((await engine.readSeal())?.bytes, bytes.slice(0, 300));
    await store.close();
    await engine.close();
  };

  for (const [setting, value] of Object.entries(hostile)) {
    for (const [whose, of] of [
      ['the database', (database: string) => `DATABASE ${database}`],
      ['the user', () => 'ROLE kmsuser'],
    ] as const) {
      test(`${setting} = ${value} of ${whose}, set before and after the tables are made`, async (context) => {
        for (const isFirst of [true, false]) {
          const database = `settings${++databases}`;
          await admin('postgres', `CREATE DATABASE ${database} OWNER kmsuser`);
          await admin(database, shadow);
          if (!isFirst) await use(database, true);
          const target = of(database);
          const known = await admin('postgres', `ALTER ${target} SET ${setting} = ${value}`).then(
            () => true,
            () => false,
          );
          if (!known) return context.diagnostic(`this PostgreSQL does not know ${setting}`);
          try {
            await use(database, isFirst);
          } finally {
            await admin('postgres', `ALTER ${target} RESET ${setting}`);
          }
          // Without the setting everything is as before.
          await admin('postgres', 'SELECT 1');
        }
        return undefined;
      });
    }
  }

  test('a database that shall take no writes is not written to', async () => {
    const database = `settings${++databases}`;
    await admin('postgres', `CREATE DATABASE ${database} OWNER kmsuser`);
    await admin('postgres', `ALTER DATABASE ${database} SET default_transaction_read_only = on`);
    await assert.rejects(use(database, true), { code: 'unavailable', message: /takes no writes/ });
  });

  test('a path without a schema, or with the one of the user made later, leads to the same tables', async () => {
    const database = `settings${++databases}`;
    await admin('postgres', `CREATE DATABASE ${database} OWNER kmsuser`);
    await admin('postgres', `ALTER ROLE kmsuser SET search_path = ''`);
    try {
      await use(database, true);
    } finally {
      await admin('postgres', 'ALTER ROLE kmsuser RESET search_path');
    }
    await admin(database, 'CREATE SCHEMA kmsuser AUTHORIZATION kmsuser');
    await use(database, false);
  });
}
