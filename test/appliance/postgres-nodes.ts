// Nodes of one appliance on a PostgreSQL, if the system has one, each with its own directory.
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { type Initialised, initAppliance } from '../../src/appliance/init.ts';
import type { StoreSource } from '../../src/platform/store-url.ts';
import { type Serving, serve } from '../../src/server/serve.ts';
import { Postgres, postgresPrograms } from '../support/postgres.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
export type AnyJson = any;

const programs = postgresPrograms();
export const base = mkdtempSync(join(tmpdir(), 'kms-nodes-'));
export const postgres = programs === undefined ? undefined : new Postgres(programs);
after(() => {
  postgres?.end();
  rmSync(base, { recursive: true, force: true });
});

let databases = 0;

interface Nodes {
  readonly store: StoreSource;
  readonly made: Initialised;
  /** Contents of the key file. */
  readonly key: string;
  /** Starts a further node, with a directory of its own and a copy of the key file. */
  serve(name: string): Promise<Served>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface Served {
  readonly data: string;
  readonly serving: Serving;
  ask(method: string, path: string, body?: object, key?: string): Promise<Answer>;
  /** Sends a request as if a client had addressed this host. */
  at(host: string, method: string, path: string, key: string): Promise<Answer>;
  local(method: string, path: string, body?: object): Promise<Answer>;
}

interface Answer {
  readonly status: number;
  readonly body: AnyJson;
}

export async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
}

export function emptyDatabase(): StoreSource {
  assert.ok(postgres);
  databases++;
  return { url: postgres.newDatabase(), isListed: false, env: () => undefined };
}

export async function nodes(): Promise<Nodes> {
  const store = emptyDatabase();
  const database = `nodes-${databases}`;
  const data = join(base, database, 'first');
  const made = await initAppliance({ data, store });
  const open: Serving[] = [];
  return {
    store,
    made,
    key: readFileSync(made.keyFile, 'utf8'),
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
        at: async (host, method, path, key) => {
          const headers = { host, authorization: `Bearer ${key}` };
          const request = new Request(`http://kms.local${path}`, { method, headers });
          return answerOf(await serving.appliance.app.fetch(request, {}));
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
