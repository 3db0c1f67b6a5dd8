// Nodes of one appliance on a PostgreSQL, if the system has one, each with its own directory: a change on one node
// holds on the others from their next answer.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFileSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client } from 'pg';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { initAppliance } from '../../src/appliance/init.ts';
import { sentSlot } from '../../src/appliance/master-handlers.ts';
import { socketFetch } from '../../src/cli/local-socket.ts';
import { newCustodian } from '../../src/custody/new-custodian.ts';
import { postgresConfig, type StoreSource } from '../../src/platform/store-url.ts';
import { type Serving, serve } from '../../src/server/serve.ts';
import { openPostgres } from '../../src/store/shared/postgres.ts';
import { createShared } from '../../src/store/shared/row-journal.ts';
import { until } from '../support/until.ts';
import {
  type AnyJson,
  answerOf,
  base,
  emptyDatabase,
  nodes,
  type Served,
  postgres as started,
} from './postgres-nodes.ts';
import { deletedMeanwhile } from './tenant-appliance.ts';

const postgres = started;

/** Changes that nodes learn of by themselves take a second or two. */
const comes = (holds: () => Promise<boolean>) => until('the nodes learn of it', holds);

/** The status as `kms status` reads it, also from a sealed node. */
async function statusAt(data: string): Promise<AnyJson> {
  const fetch = socketFetch(data);
  return (await answerOf(await fetch(new Request('http://kms.local/local/status')))).body;
}

if (!postgres) {
  test('nodes on PostgreSQL', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
} else {
  test('a key that is made on one node is good on the other at once, and one that is revoked is not', async () => {
    await using all = await nodes();
    const [a, b] = [await all.serve('first'), await all.serve('second')];
    assert.equal((await a.ask('POST', '/ks/keyrings', { name: 'r' })).status, 200);
    assert.equal((await b.ask('GET', '/ks/keyrings')).body.data[0].name, 'r');
    for (let round = 0; round < 5; round++) {
      const flags = { 'keyring.r.encrypt': true };
      const made = await a.ask('POST', '/auth/apikey', { accountId: all.made.accountId, flags });
      assert.equal(made.status, 200, JSON.stringify(made.body));
      const { key } = made.body;
      const encrypted = await b.ask('POST', '/ks/encrypt', { ringname: 'r' }, key);
      assert.equal(encrypted.status, 200, JSON.stringify(encrypted.body));
      const gone = await b.ask('DELETE', `/auth/apikey/${key}`);
      assert.equal(gone.status, 200, JSON.stringify(gone.body));
      assert.equal((await a.ask('POST', '/ks/encrypt', { ringname: 'r' }, key)).status, 401);
    }
    for (const { ask } of [a, b]) {
      assert.equal((await ask('GET', '/ks/keyrings', undefined, 'no-such-key')).status, 401);
    }
  });

  test('what is done to a tenant on one node counts on the other', async () => {
    await using all = await nodes();
    const [a, b] = [await all.serve('first'), await all.serve('second')];
    await a.ask('POST', '/ks/keyrings', { name: 'r1' });
    assert.equal((await a.local('PUT', '/local/tenants/default/limits', { keyrings: 1 })).status, 200);
    assert.equal((await b.ask('POST', '/ks/keyrings', { name: 'r2' })).status, 403);
    assert.equal((await b.local('PUT', '/local/tenants/default/limits', { keyrings: 2 })).status, 200);
    assert.equal((await a.ask('POST', '/ks/keyrings', { name: 'r2' })).status, 200);

    const blue = await a.local('POST', '/local/tenants', { name: 'blue', hosts: ['blue.example'] });
    assert.equal(blue.status, 200, JSON.stringify(blue.body));
    const { key } = blue.body.apiKey;
    assert.equal((await b.local('PUT', '/local/tenants/blue/limits', { users: 3 })).status, 200, 'not served here yet');
    const asked = (node: Served, host: string) => node.at(host, 'GET', '/auth/accounts/admin?uid=true', key);
    await comes(async () => (await asked(b, 'blue.example')).status === 200);
    // The same name and host from two nodes at once: one of them is refused.
    const twice = await Promise.all(
      [a, b].map(({ local }) => local('POST', '/local/tenants', { name: 'red', hosts: ['red.example'] })),
    );
    assert.deepEqual(twice.map(({ status }) => status).sort(), [200, 400]);
    const engine = await openPostgres(await postgresConfig(all.store));
    const kept = await engine.stores();
    await engine.close();
    assert.equal(kept.length, 4, 'system, default, blue and red: nothing is left of the one that was refused');
    assert.equal((await b.local('PATCH', '/local/tenants/blue', { hosts: ['navy.example'] })).status, 200);
    await comes(async () => (await asked(a, 'navy.example')).status === 200);
    assert.equal((await asked(a, 'blue.example')).status, 401, 'it is for the tenant of all other hosts now');
    const { id } = (await a.local('GET', '/local/tenants/blue')).body;
    assert.equal((await a.local('DELETE', '/local/tenants/blue')).status, 200);
    const next = await Promise.all(Array.from({ length: 8 }, () => asked(b, 'navy.example')));
    for (const { status } of next) assert.equal(status, 401, 'with the next request');
    assert.equal((await asked(b, 'navy.example')).status, 401);
    assert.equal((await b.local('POST', `/local/tenants/${id}/restore`, {})).status, 200);
    await comes(async () => (await asked(a, 'navy.example')).status === 200);
    assert.equal((await asked(b, 'navy.example')).status, 200);
    const listed = async ({ local }: Served) =>
      (await local('GET', '/local/tenants')).body.data.map(({ name }: { name: string }) => name);
    assert.deepEqual(await listed(a), await listed(b));
  });

  test('a request that is on its way when its tenant is deleted on another node is told what the next one is', async () => {
    await using all = await nodes();
    const [a, b] = [await all.serve('first'), await all.serve('second')];
    const blue = await a.local('POST', '/local/tenants', { name: 'blue', hosts: ['blue.example'] });
    const { key } = blue.body.apiKey;
    await comes(async () => (await b.at('blue.example', 'GET', '/ks/keyrings', key)).status === 200);
    for (const { status, body } of await deletedMeanwhile(
      (request) => b.serving.appliance.app.fetch(request, {}),
      { host: 'blue.example', key },
      async () => assert.equal((await a.local('DELETE', '/local/tenants/blue')).status, 200),
    )) {
      assert.deepEqual([status, /credential is not known/.test(body.message)], [401, true], body.message);
    }
  });

  test('a seal on one node seals all, and unsealing one opens those whose key comes by itself', async () => {
    await using all = await nodes();
    const [a, b] = [await all.serve('first'), await all.serve('second')];
    const sealed = async ({ ask }: Served): Promise<boolean> => (await ask('GET', '/system/seal-status')).body.sealed;
    for (const [one, other] of [
      [a, b],
      [b, a],
    ] as const) {
      assert.equal((await one.ask('POST', '/system/seal', {})).status, 200);
      const { status, body } = await other.ask('GET', '/ks/keyrings');
      assert.deepEqual([status, /sealed/.test(body.message)], [503, true]);
      await comes(() => sealed(other));
      assert.equal(await sealed(one), true);
      const seen = await statusAt(other.data);
      assert.deepEqual(
        seen.shared.nodes.map(({ live, places }: AnyJson) => [live, places]),
        [a, b].map(({ serving }) => [true, [serving.url]]),
        'who is there is told while sealed, too',
      );
      const late = await all.serve('late');
      assert.match(late.serving.sealed?.message ?? '', /on purpose/);
      await assert.rejects(openAppliance({ data: join(late.data, '..', 'command'), store: all.store }), {
        code: 'sealed',
      });
      await comes(async () => (await other.ask('POST', '/system/unseal', { key: all.key })).status === 200);
      for (const each of [one, late]) await comes(async () => !(await sealed(each)));
      for (const each of [one, other, late]) assert.equal((await each.ask('GET', '/ks/keyrings')).status, 200);
      await late.serving.close();
    }
    const acts = await a.ask('POST', '/auth/search/activity', { action: 'system.unseal' });
    assert.equal(acts.body.data.length, 2);
  });

  test('the master key and its custodians are changed on any node', async () => {
    await using all = await nodes();
    const [a, b] = [await all.serve('first'), await all.serve('second')];
    const master = async ({ local }: Served) => (await local('GET', '/local/master')).body;
    const before = await master(b);
    assert.equal((await a.local('POST', '/local/master/rotate', {})).status, 200);
    await comes(async () => (await b.ask('GET', '/ks/keyrings')).status === 200);
    await comes(async () => (await master(b)).fingerprint !== before.fingerprint);
    assert.deepEqual(await master(b), await master(a));
    const slots = await Promise.all(
      [a, b].map(async ({ local }) => {
        const { custodian } = await newCustodian({ kind: 'recovery-kit' });
        const { body: known } = await local('GET', '/local/master');
        const { status, body } = await local('POST', '/local/master/custodians', sentSlot(custodian, known));
        assert.equal(status, 200, JSON.stringify(body));
        return custodian.id;
      }),
    );
    await a.ask('GET', '/ks/keyrings');
    await b.ask('GET', '/ks/keyrings');
    for (const each of [a, b]) {
      const { custodians } = await master(each);
      const ids = custodians.map(({ id }: { id: string }) => id);
      assert.deepEqual(
        slots.filter((id) => !ids.includes(id)),
        [],
      );
    }
  });

  test('of several rotations of the master key at once each is done, or told to be tried again', async () => {
    await using all = await nodes();
    const [a, b] = [await all.serve('first'), await all.serve('second')];
    const rotate = ({ local }: Served) => local('POST', '/local/master/rotate', {});
    const said: string[] = [];
    for (let round = 0; round < 4; round++) {
      const answers = await Promise.all([a, b, a, b].map(rotate));
      assert.ok(answers.some(({ status }) => status === 200));
      for (const { status, body } of answers.filter((each) => each.status !== 200)) {
        assert.deepEqual([status, /rotated on another node meanwhile: try again/.test(body.message)], [503, true]);
        said.push(body.message);
      }
      for (const each of [a, b]) await comes(async () => (await each.ask('GET', '/ks/keyrings')).status === 200);
    }
    assert.ok(said.length > 0, 'none of them met another');
    await comes(async () => (await rotate(b)).status === 200);
    const master = async ({ local }: Served) => (await local('GET', '/local/master')).body;
    await comes(async () => (await master(a)).fingerprint === (await master(b)).fingerprint);
  });

  test('a node whose key was away when another was unsealed says so, and opens when the key is back', async () => {
    await using all = await nodes();
    const [a, b] = [await all.serve('first'), await all.serve('second')];
    const keyFile = `${b.data}.master.key`;
    const away = `${keyFile}.away`;
    renameSync(keyFile, away);
    // The path at which the appliance's first key was made is searched too.
    rmSync(`${a.data}.master.key`);
    assert.equal((await a.ask('POST', '/system/seal', {})).status, 200);
    await comes(async () => (await b.ask('GET', '/system/seal-status')).body.sealed);
    assert.deepEqual([(await statusAt(b.data)).onPurpose, (await statusAt(b.data)).reason], [true, undefined]);
    await comes(async () => (await a.ask('POST', '/system/unseal', { key: all.key })).status === 200);
    const { onPurpose, reason } = await until('it says why', async () => {
      const status = await statusAt(b.data);
      return status.reason === undefined ? undefined : status;
    });
    assert.deepEqual([onPurpose, /the master key file is missing/.test(reason)], [false, true], reason);
    assert.equal('reason' in (await b.ask('GET', '/system/seal-status')).body, false, 'strangers learn no places');
    assert.equal((await b.ask('GET', '/ks/keyrings')).status, 503);
    renameSync(away, keyFile);
    await comes(async () => (await b.ask('GET', '/ks/keyrings')).status === 200);
    assert.equal((await statusAt(b.data)).reason, undefined);
  });

  test('a node that cannot get a new master key by itself is sealed, until somebody brings it', async () => {
    await using all = await nodes();
    const [a, b] = [await all.serve('first'), await all.serve('second')];
    for (const { data } of [a, b]) rmSync(`${data}.master.key`);
    assert.equal((await a.local('POST', '/local/master/rotate', {})).status, 200);
    const sealed = async ({ ask }: Served): Promise<boolean> => (await ask('GET', '/system/seal-status')).body.sealed;
    await comes(() => sealed(b));
    assert.equal((await b.ask('GET', '/ks/keyrings')).status, 503);
    assert.equal((await a.ask('GET', '/ks/keyrings')).status, 200);
    assert.equal((await b.ask('POST', '/system/unseal', { key: all.key })).body.sealed, false);
    assert.equal((await b.ask('GET', '/ks/keyrings')).status, 200);
    assert.equal(await sealed(a), false);
  });

  test('under load each request is served whole or refused, whatever is done to the appliance meanwhile', async () => {
    await using all = await nodes();
    const [a, b] = [await all.serve('first'), await all.serve('second')];
    let going = true;
    let count = 0;
    const kept: string[] = [];
    const statuses = new Map<number, string>();
    const client = async ({ ask }: Served): Promise<void> => {
      while (going) {
        const name = `ring-${++count}`;
        const { status, body } = await ask('POST', '/ks/keyrings', { name });
        statuses.set(status, JSON.stringify(body));
        if (status === 200) kept.push(name);
      }
    };
    const clients = Promise.allSettled([a, b, a, b, a, b].map(client));
    const answered = async (): Promise<void> => {
      const before = kept.length;
      await comes(async () => kept.length >= before + 20);
    };
    // A node that has not found the new master key yet refuses what changes the seal.
    const done = ({ local }: Served, method: string, path: string, body?: object): Promise<void> =>
      comes(async () => {
        const answer = await local(method, path, body);
        assert.ok([200, 503].includes(answer.status), JSON.stringify(answer));
        return answer.status === 200;
      }).then(() => {});
    try {
      for (const [one, other] of [
        [a, b],
        [b, a],
      ] as const) {
        await answered();
        await done(one, 'POST', '/local/master/rotate', {});
        await answered();
        const name = `tenant-${count}`;
        await done(other, 'POST', '/local/tenants', { name, hosts: [`${name}.example`] });
        await comes(async () => (await one.local('GET', `/local/tenants/${name}`)).status === 200);
        await done(one, 'DELETE', `/local/tenants/${name}`);
        await answered();
        assert.equal((await other.ask('POST', '/system/seal', {})).status, 200);
        assert.equal((await one.ask('POST', '/system/unseal', { key: all.key })).body.sealed, false);
        await comes(async () => (await other.ask('GET', '/readyz')).status === 200);
      }
    } finally {
      // Requests that meet a closed server would hide what failed.
      going = false;
      await clients;
    }
    for (const each of await clients) if (each.status === 'rejected') throw each.reason;
    statuses.delete(200);
    statuses.delete(503);
    assert.deepEqual([...statuses], []);
    const { body } = await a.ask('GET', '/ks/keyrings?limit=10000');
    const names = new Set(body.data.map(({ name }: { name: string }) => name));
    assert.deepEqual(
      kept.filter((name) => !names.has(name)),
      [],
    );
    const rings = async ({ ask }: Served) => (await ask('GET', '/ks/keyrings?limit=10000')).body;
    assert.deepEqual(await rings(a), await rings(b));
  });

  test('a command opens the appliance beside the nodes that serve it', async () => {
    await using all = await nodes();
    const a = await all.serve('first');
    const data = join(a.data, '..', 'command');
    copyFileSync(all.made.keyFile, `${data}.master.key`);
    const opened = await openAppliance({ data, store: all.store });
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ name: 'by-command' });
    const request = new Request('http://kms.local/ks/keyrings', { method: 'POST', headers, body });
    assert.equal((await opened.fetchLocal(request)).status, 200);
    assert.equal((await a.ask('GET', '/ks/keyrings/by-command')).status, 200);
    await assert.rejects(openAppliance({ data, store: all.store }), { code: 'in-use' });
    await opened.close();
    await (await openAppliance({ data, store: all.store })).close();
  });

  test('a directory is a node of one appliance, or an appliance itself, or neither', async () => {
    await using all = await nodes();
    await using others = await nodes();
    const first = all.made.data;
    const embedded = join(base, 'embedded');
    await initAppliance({ data: embedded });
    const serveAt = (data: string, store?: StoreSource): Promise<Serving> =>
      serve({ data, listen: '127.0.0.1:0', logLevel: 'silent', ...(store && { store }) });
    const refused: readonly [() => Promise<unknown>, RegExp][] = [
      [() => serveAt(embedded, all.store), /holds an appliance of its own/],
      [() => initAppliance({ data: embedded, store: all.store }), /holds an appliance of its own/],
      [() => openAppliance({ data: first }), /is the directory of a node/],
      [() => serveAt(first), /is the directory of a node/],
      [() => initAppliance({ data: first }), /is the directory of a node/],
      [() => initAppliance({ data: first, store: all.store }), /is the directory of a node/],
      [() => serveAt(first, others.store), /and the database has/],
      [() => initAppliance({ data: join(base, 'second'), store: all.store }), /has an appliance already/],
      [() => serveAt(base, all.store), /holds other files/],
    ];
    for (const [act, message] of refused) await assert.rejects(act(), { code: 'refused', message });
    assert.deepEqual(readdirSync(embedded).sort(), ['kms.lock', 'kms.seal', 'system', 'tenants']);
    const mark = readFileSync(join(first, 'kms.node'), 'utf8');
    for (const damaged of ['', mark.slice(0, -5), '{"node":1}', '[]']) {
      writeFileSync(join(first, 'kms.node'), damaged);
      await assert.rejects(serveAt(first, all.store), {
        code: 'corrupt',
        message: /kms\.node: expected the ids of a node/,
      });
    }
    writeFileSync(join(first, 'kms.node'), mark);
    await (await serveAt(first, all.store)).close();
    const store = emptyDatabase();
    await assert.rejects(serveAt(join(base, 'third'), store), { code: 'unavailable', message: /no appliance in the/ });
    const half = await openPostgres(await postgresConfig(store));
    const keys = { epoch: 1, epochs: [1], key: () => new Uint8Array(32), opened: () => undefined, wipe: () => {} };
    const random = (length: number): Uint8Array => new Uint8Array(randomBytes(length));
    await createShared({ engine: half, uid: random(16), keys, random, name: 'system' });
    await assert.rejects(initAppliance({ data: join(base, 'fourth'), store }), {
      code: 'refused',
      message: /under way/,
    });
    await half.close();
  });

  test('what it takes to reach a database is not loaded for an appliance in a data directory', async () => {
    await using all = await nodes();
    const program = `
      import { createRequire } from 'node:module';
      const { initAppliance } = await import('./src/appliance/init.ts');
      const { openAppliance } = await import('./src/appliance/command-appliance.ts');
      const [data, url] = process.argv.slice(1);
      const store = url && { url, isListed: false, env: () => undefined };
      if (!store) await initAppliance({ data });
      const opened = await openAppliance({ data, ...(store && { store }) });
      const loaded = Object.keys(createRequire(import.meta.url).cache);
      await opened.close();
      console.log(loaded.some((path) => path.includes('/node_modules/pg')));
    `;
    const loads = (...args: string[]): string =>
      execFileSync(process.execPath, ['--input-type=module', '--eval', program, ...args], { encoding: 'utf8' });
    assert.equal(loads(join(base, 'embedded-alone')), 'false\n');
    assert.equal(loads(all.made.data, all.store.url), 'true\n');
  });

  test('while somebody holds a lock in the database, requests are refused in time, with the reason', async () => {
    await using all = await nodes();
    const [a, b] = [await all.serve('first'), await all.serve('second')];
    const { database } = await postgresConfig(all.store);
    const holder = new Client({ ...postgres.config, database });
    await holder.connect();
    await holder.query('BEGIN; LOCK TABLE kms_log IN ACCESS EXCLUSIVE MODE');
    const since = performance.now();
    const refused = await Promise.all([a, b].map(({ ask }) => ask('GET', '/ks/keyrings')));
    const waited = performance.now() - since;
    await holder.end();
    for (const { status, body } of refused) {
      assert.deepEqual([status, /it did not answer in time|it does not answer/.test(body.message)], [503, true]);
    }
    assert.ok(waited < 15_000, `${waited} ms`);
    await comes(async () => (await a.ask('GET', '/ks/keyrings')).status === 200);
    assert.equal((await b.ask('GET', '/ks/keyrings')).status, 200);
  });

  test('without its database a node answers 503 and says why, and goes on by itself', async () => {
    await using all = await nodes();
    const a = await all.serve('first');
    await a.ask('POST', '/ks/keyrings', { name: 'r' });
    assert.equal((await a.ask('GET', '/readyz')).status, 200);
    postgres.stop();
    const away = await fetch(`${a.serving.url}/ks/keyrings`, {
      headers: { authorization: `Bearer ${all.made.apiKey.key}` },
    });
    assert.equal(away.status, 503);
    assert.ok(Number(away.headers.get('retry-after')) > 0, String(away.headers.get('retry-after')));
    const ready = await a.ask('GET', '/readyz');
    assert.equal(ready.status, 503);
    assert.match(JSON.stringify(ready.body), /database/);
    for (const path of ['/ks/keyrings', '/auth/activity/head', '/metrics', '/system/seal-status']) {
      const { status } = await a.ask('GET', path);
      assert.ok(status === 503 || status === 200, `${path}: ${status}`);
    }
    await assert.rejects(serve({ data: join(base, 'away'), store: all.store, listen: '127.0.0.1:0' }), {
      code: 'unavailable',
    });
    postgres.start();
    await comes(async () => (await a.ask('GET', '/ks/keyrings/r')).status === 200);
    await comes(async () => (await a.ask('GET', '/readyz')).status === 200);
  });
}
