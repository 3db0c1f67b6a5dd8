// Nodes of one appliance in a PostgreSQL, where the system has one, each with its own directory: what is done on one
// counts on the others with their next answer.
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type Initialised, initAppliance } from '../../src/appliance/init.ts';
import type { StoreSource } from '../../src/appliance/store-url.ts';
import { type Serving, serve } from '../../src/server/serve.ts';
import { Postgres, postgresPrograms } from '../support/postgres.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
type AnyJson = any;

const programs = postgresPrograms();
const base = mkdtempSync(join(tmpdir(), 'kms-nodes-'));
const postgres = programs === undefined ? undefined : new Postgres(programs);
after(() => {
  postgres?.end();
  rmSync(base, { recursive: true, force: true });
});

let databases = 0;

interface Nodes {
  readonly store: StoreSource;
  readonly made: Initialised;
  /** A further node, with a directory of its own and a copy of the key file. */
  serve(name: string): Promise<Served>;
  [Symbol.asyncDispose](): Promise<void>;
}

interface Served {
  readonly data: string;
  readonly serving: Serving;
  ask(method: string, path: string, body?: object, key?: string, host?: string): Promise<Answer>;
  local(method: string, path: string, body?: object): Promise<Answer>;
}

interface Answer {
  readonly status: number;
  readonly body: AnyJson;
}

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
}

async function nodes(): Promise<Nodes> {
  assert.ok(postgres);
  const database = `kms${++databases}`;
  postgres.createDatabase(database);
  const url = `postgres://kms@/${database}?host=${encodeURIComponent(postgres.dir)}`;
  const store: StoreSource = { url, isListed: false, env: () => undefined };
  const data = join(base, database, 'first');
  const made = await initAppliance({ data, store });
  const open: Serving[] = [];
  return {
    store,
    made,
    async serve(name) {
      const own = join(base, database, name);
      if (own !== data && !existsSync(`${own}.master.key`)) copyFileSync(made.keyFile, `${own}.master.key`);
      const serving = await serve({ data: own, store, listen: '127.0.0.1:0', logLevel: 'silent' });
      open.push(serving);
      return {
        data: own,
        serving,
        async ask(method, path, body, key = made.apiKey.key) {
          const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
          const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
          return answerOf(await fetch(serving.url + path, init));
        },
        async local(method, path, body) {
          const headers = { 'content-type': 'application/json' };
          const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
          return answerOf(await serving.appliance.fetchLocal(new Request(`http://kms.local${path}`, init)));
        },
      };
    },
    async [Symbol.asyncDispose]() {
      for (const serving of open) await serving.close();
    },
  };
}

if (!postgres) {
  test('nodes on PostgreSQL', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
} else {
  test('a key that is made on one node is good on the other at once, and one that is revoked is not', async () => {
    await using all = await nodes();
    const [a, b] = [await all.serve('first'), await all.serve('second')];
    const ring = await a.ask('POST', '/ks/keyrings', { name: 'r' });
    assert.equal(ring.status, 200);
    assert.equal((await b.ask('GET', '/ks/keyrings')).body.data[0].name, 'r');
  });
}
