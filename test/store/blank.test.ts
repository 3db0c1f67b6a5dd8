// Databases that start from an image instead of the statements that made it: indistinguishable, on disk and in memory.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { afterEach, test } from 'node:test';
import { createEmbedded } from '../../src/store/embedded.ts';
import type { EmbeddedOptions } from '../../src/store/embedded-options.ts';
import type { Sql } from '../../src/store/sql.ts';
import { openState, type State } from '../../src/store/state.ts';
import {
  blankAfter,
  blankImage,
  type Migration,
  offerBlanks,
  systemMigrations,
  tenantMigrations,
} from '../../src/store/tables/migrations.ts';
import { openEmbedded } from '../support/embedded-store.ts';
import { prng } from '../support/prng.ts';
import { SimFiles } from '../support/sim-files.ts';
import { testStoreKeys } from '../support/store-keys.ts';
import { sqlWasm } from '../support/wasm.ts';

const tenant = await blankImage(sqlWasm, tenantMigrations);
const system = await blankImage(sqlWasm, systemMigrations);
const images = { tenant, system };

afterEach(() => offerBlanks(images));
offerBlanks(images);

function textsOf(migrations: readonly Migration[]): string[] {
  const texts = migrations.flatMap(({ statements }) => statements);
  return [...texts, `PRAGMA user_version = ${migrations.length}`];
}

function dump(state: State): unknown {
  const schema = state.all(state.statement('SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema'), []);
  const names = Object.keys(state.countRows());
  const rows = names.map((name) => [name, state.all(state.statement(`SELECT * FROM "${name}"`), [])]);
  return { schema, rows, version: state.schemaVersion };
}

interface Bare {
  readonly sql: Sql;
}

/** `seed` determines all randomness, so that the same writes make the same files. */
function storeOn(files: SimFiles, migrations: readonly Migration[], seed: number): EmbeddedOptions<Bare> {
  const generator = prng(seed);
  return {
    files,
    dir: 'tenants/a',
    keys: testStoreKeys(),
    wasm: sqlWasm,
    migrations,
    tables: (sql) => ({ sql }),
    random: (length) => generator.bytes(length),
    now: () => 1000,
    later: () => {},
  };
}

const insert = `INSERT INTO counts (name, n) VALUES (?, ?)`;

/** Makes a store, writes to it, and closes it; opens it again, writes, and closes it. */
async function written(migrations: readonly Migration[], isOffered: readonly [boolean, boolean]): Promise<SimFiles> {
  const files = new SimFiles({ prng: prng(1) });
  const random = prng(2);
  await createEmbedded({ ...storeOn(files, migrations, 3), random: (length) => random.bytes(length), at: 1000 });
  for (const [at, offered] of isOffered.entries()) {
    offerBlanks(offered ? images : undefined);
    const store = await openEmbedded(storeOn(files, migrations, 4 + at));
    await store.transaction(({ sql }) => sql.run(insert, `counted ${at}`, at));
    const rows = await store.transaction(({ sql }) => sql.all(`SELECT name, n FROM counts WHERE name LIKE 'counted%'`));
    assert.equal(rows.length, at + 1);
    await store.close();
  }
  return files;
}

/** Length and digest of each file. */
async function bytesOf(files: SimFiles): Promise<ReadonlyMap<string, string>> {
  const digests = new Map<string, string>();
  for (const name of await files.list('tenants/a')) {
    const bytes = await files.read(`tenants/a/${name}`);
    digests.set(name, `${bytes.length} ${createHash('sha256').update(bytes).digest('hex')}`);
  }
  return digests;
}

for (const [name, migrations, image] of [
  ['tenant', tenantMigrations, tenant],
  ['system', systemMigrations, system],
] as const) {
  test(`the image of a ${name}'s database is what its steps make, sound, and the same each time`, async () => {
    const run = await openState(sqlWasm);
    for (const text of textsOf(migrations)) run.run(run.statement(text), []);
    const opened = await openState(sqlWasm, image);
    assert.deepEqual(dump(opened), dump(run));
    assert.deepEqual(opened.faults(), []);
    assert.deepEqual(await blankImage(sqlWasm, migrations), image);
    run.close();
    opened.close();
  });
}

test('a store that begins with an image writes the same bytes as one that runs the steps, and each opens the other', async () => {
  const plain = await bytesOf(await written(tenantMigrations, [false, false]));
  for (const isOffered of [
    [true, true],
    [true, false],
    [false, true],
  ] as const) {
    assert.deepEqual(await bytesOf(await written(tenantMigrations, isOffered)), plain);
  }
});

test('an image stands for all of its statements and nothing else', () => {
  const texts = textsOf(tenantMigrations);
  assert.equal(blankAfter(texts), tenant);
  assert.equal(blankAfter(textsOf(systemMigrations)), system);
  for (const other of [[], texts.slice(1), texts.slice(0, -1), [...texts, 'SELECT 1'], texts.toReversed()]) {
    assert.equal(blankAfter(other), undefined);
  }
});

test('a store of an earlier program runs its own steps, and then those that it misses', async () => {
  const files = new SimFiles({ prng: prng(1) });
  const earlier = tenantMigrations.slice(0, -2);
  await createEmbedded({ ...storeOn(files, earlier, 3), random: (length) => new Uint8Array(length), at: 1000 });
  const before = await openEmbedded(storeOn(files, earlier, 4));
  await before.transaction(({ sql }) => sql.run(insert, 'kept', 7));
  await before.close();
  for (const seed of [5, 6]) {
    const store = await openEmbedded(storeOn(files, tenantMigrations, seed));
    const kept = await store.transaction(({ sql }) => sql.get(`SELECT n FROM counts WHERE name = 'kept'`));
    assert.deepEqual(kept, { n: 7 });
    const version = await store.transaction(({ sql }) => sql.get(`SELECT count(*) AS n FROM earlier_wrappings`));
    assert.deepEqual(version, { n: 0 });
    await store.close();
  }
});

test('a database in which something was written becomes no other one', async () => {
  const state = await openState(sqlWasm);
  assert.equal(state.isBlank, true);
  assert.equal(state.schemaVersion, 0);
  assert.equal(state.isBlank, true, 'to look at its version writes nothing');
  state.run(state.statement('CREATE TABLE notes (seq INTEGER PRIMARY KEY)'), []);
  assert.equal(state.isBlank, false);
  assert.throws(() => state.become(tenant), { code: 'internal' });
  assert.deepEqual(state.countRows(), { notes: 0 });
  state.close();
  const opened = await openState(sqlWasm, tenant);
  assert.throws(() => opened.become(tenant), { code: 'internal' });
  opened.close();
});

test('a blank database that became one takes statements, transactions and foreign keys as the other does', async () => {
  const state = await openState(sqlWasm);
  state.become(tenant);
  assert.equal(state.isBlank, false);
  assert.equal(state.schemaVersion, tenantMigrations.length);
  state.control('BEGIN');
  state.run(state.statement(insert), ['one', 1]);
  state.control('COMMIT');
  assert.throws(
    () => state.run(state.statement(`INSERT INTO key_uses VALUES (1, 'e', 1, 'nobody')`), []),
    /FOREIGN KEY/i,
  );
  assert.deepEqual(state.faults(), []);
  state.close();
});
