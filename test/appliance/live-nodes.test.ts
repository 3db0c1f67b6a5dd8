// Nodes that serve from one shared store: each announces itself, learns of the others, waits with a schema that they
// don't know, and reports a differing clock.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { Nodes, needSchemasKnown } from '../../src/cluster/live-nodes.ts';
import { version } from '../../src/version.ts';
import { contractMigrations } from '../store/contract.ts';
import { prng } from '../support/prng.ts';
import { openShared, sharedOptions, simShared } from '../support/shared-store.ts';
import { SimDatabase, SimEngine } from '../support/sim-engine.ts';
import { until } from '../support/until.ts';

type World = Parameters<typeof Nodes.join>[0];

function network() {
  const database = new SimDatabase(prng(1));
  database.now = Date.parse('2026-01-01T00:00:00Z');
  const said: string[] = [];
  const join = (id: string, more: Partial<World> = {}): Promise<Nodes> =>
    Nodes.join({
      engine: new SimEngine(database),
      id,
      places: [`https://${id}.example.org`],
      now: () => database.now,
      onEvent: ({ level, message }) => said.push(`${level} ${message}`),
      // No heartbeats but those that a test makes.
      every: 1_000_000,
      ...more,
    });
  return { database, said, join };
}

test('nodes are listed with what they are; one that ends, or is not heard of, does not count', async () => {
  const { database, join } = network();
  const a = await join('a');
  assert.equal(a.count, 1);
  const b = await join('b', { build: '9.9.9' });
  assert.equal(b.count, 2);
  assert.equal(a.count, 1, 'it learns of it with its next sign of life');
  await a.allKnowSchemas();
  assert.equal(a.count, 2);
  database.now += 14_999;
  assert.deepEqual(
    (await a.list()).map(({ id, own, live, build, places, upFor }) => [id, own, live, build, places, upFor]),
    [
      ['a', true, true, version, ['https://a.example.org'], 14_999],
      ['b', false, true, '9.9.9', ['https://b.example.org'], 14_999],
    ],
  );
  database.now += 1;
  await a.allKnowSchemas();
  assert.equal(a.count, 1, 'b was not heard of for 15 s');
  assert.deepEqual(
    (await a.list()).map(({ id, own, live }) => [id, own, live]),
    [
      ['a', true, true],
      ['b', false, false],
    ],
  );
  database.now += 86_400_000;
  await a.allKnowSchemas();
  assert.deepEqual(
    (await a.list()).map(({ id }) => id),
    ['a'],
    'after a day it is forgotten',
  );
  const c = await join('c');
  await c.close();
  await a.allKnowSchemas();
  assert.equal(a.count, 1, 'c has said that it ended');
  for (const node of [a, b]) await node.close();
  assert.deepEqual(await new SimEngine(database).nodes(), []);
});

test('a node says again and again that it is there, also after the database was away', async () => {
  const { database, join } = network();
  const engine = new SimEngine(database);
  const node = await join('a', { engine, every: 5 });
  let isAway = true;
  engine.fault = () => (isAway ? 'request' : undefined);
  database.now += 60_000;
  await wait(40);
  assert.equal((await new SimEngine(database).nodes())[0]?.age, 60_000);
  isAway = false;
  while ((await new SimEngine(database).nodes())[0]?.age !== 0) await wait(5);
  assert.equal((await node.list())[0]?.upFor, 60_000, 'it is still the same run');
  await node.close();
});

test('a schema is changed only once all nodes that are there know it', async () => {
  const { said, join } = network();
  const old = await join('old', { build: '1.0.0', schemas: { system: 4, tenant: 20 } });
  const older = await join('older', { build: '0.9.0', schemas: { system: 3, tenant: 20 } });
  const newer = await join('newer', { build: '1.1.0', schemas: { system: 4, tenant: 21 } });
  let isReady = false;
  const told: string[] = [];
  const ready = newer.allKnowSchemas({ retry: 5, told: (reason) => told.push(reason) }).then(() => {
    isReady = true;
  });
  await until('it tells of both', () => told.length === 1);
  await wait(60);
  assert.equal(isReady, false);
  await older.close();
  await until('it tells of the one that is left', () => told.length === 2);
  assert.equal(isReady, false);
  await old.close();
  await ready;
  const next = await join('next', { schemas: { system: 5, tenant: 22 } });
  await newer.allKnowSchemas({ retry: 5 });
  await next.close();
  const waits = 'the stores wait to be brought up to the schema of this program while older nodes run: ';
  const reasons = [
    `${waits}https://old.example.org (1.0.0); https://older.example.org (0.9.0)`,
    `${waits}https://old.example.org (1.0.0)`,
  ];
  assert.deepEqual(
    said,
    reasons.map((reason) => `warn ${reason}`),
  );
  assert.deepEqual(told, reasons);
  await newer.close();
});

test('upgrade node by node: the schema is brought up when the last older node ends, which one that comes back is told', async () => {
  const { database, node, generator } = await simShared();
  const join = (id: string, tenant: number) =>
    Nodes.join({
      engine: new SimEngine(database),
      id,
      places: [id],
      now: () => database.now,
      schemas: { system: 1, tenant },
      every: 1_000_000,
    });
  const older = contractMigrations.length;
  const newer = [...contractMigrations, { name: 'more', statements: ['CREATE TABLE more (id TEXT)'] }];
  const { store: old } = await node();
  const oldNode = await join('old', older);
  await old.transaction((tx) => tx.notes.add('before'));
  const newNode = await join('new', newer.length);
  const engine = new SimEngine(database);
  const opening = openShared({
    ...sharedOptions(engine, generator, { migrations: newer }),
    beforeMigration: () => newNode.allKnowSchemas({ retry: 5 }),
  });
  opening.catch(() => {});
  await wait(30);
  // The old node keeps serving.
  await old.transaction((tx) => tx.notes.add('meanwhile'));
  assert.equal(old.status().writable, true);
  await oldNode.close();
  const store = await opening;
  const names = await store.transaction((tables) => tables.notes.all().map(({ name }) => name));
  assert.deepEqual(names, ['before', 'meanwhile']);
  await store.transaction((tx) => tx.notes.add('after'));
  const wrong = { code: 'unavailable', message: /schema version \d+, this program knows versions up to/ };
  await assert.rejects(
    old.transaction((tx) => tx.notes.add('too late')),
    wrong,
  );
  const { writable, reason } = old.status();
  assert.equal(writable, false);
  assert.match(reason ?? '', /has schema version \d+, this program knows versions up to \d+/);
  await assert.rejects(node(), { code: 'refused', message: /schema version/ });
  await newNode.close();
  await store.close();
  await old.close();
});

test('a node that is to stop while it waits does not go on', async () => {
  const { join } = network();
  const old = await join('old', { schemas: { system: 1, tenant: 0 } });
  const newer = await join('newer');
  const stopping = new AbortController();
  const ready = newer.allKnowSchemas({ retry: 5, stopping: stopping.signal });
  ready.catch(() => {});
  await wait(20);
  stopping.abort();
  await assert.rejects(ready, { code: 'unavailable' });
  await newer.close();
  await old.close();
});

test('a command that is no node leaves the schema as it is while nodes run that do not know its own', async () => {
  const { database, join } = network();
  const engine = new SimEngine(database);
  await needSchemasKnown(engine);
  const old = await join('old', { build: '1.0.0', schemas: { system: 1, tenant: 0 } });
  await assert.rejects(needSchemasKnown(engine), {
    code: 'refused',
    message: /while older nodes run: https:\/\/old\.example\.org \(1\.0\.0\)$/,
  });
  await old.close();
  await needSchemasKnown(engine);
});

test('a clock that is another than that of the database is said once, and that it is right again', async () => {
  const { database, said, join } = network();
  let apart = 999;
  const node = await join('a', { now: () => database.now + apart });
  for (const each of [1_500, 40_000, 1_000, 0]) {
    apart = each;
    await node.allKnowSchemas();
  }
  assert.deepEqual(said, [
    'warn of the database: its clock and that of this machine are 1.5 seconds apart; set the clock that is wrong; from 30 s on a node does not serve',
    'info the clock of the database and that of this machine agree again',
  ]);
  await node.close();
});
