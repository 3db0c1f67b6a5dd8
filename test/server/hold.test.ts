// A server started on trial by an upgrade: it answers only the upgrade, and nothing leaves the data directory, until
// the upgrade releases it.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { initAppliance } from '../../src/appliance/init.ts';
import { socketFetch } from '../../src/cli/local-socket.ts';
import { lockDirectory } from '../../src/platform/lock.ts';
import { serve } from '../../src/server/serve.ts';
import { alone } from '../../src/upgrade/upgrade.ts';
import { until } from '../support/until.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-hold-'));
after(() => rmSync(base, { recursive: true, force: true }));

const env = (): undefined => undefined;
const journal = (step: string): string =>
  JSON.stringify({
    ...{ format: 1, step, token: 'the token', executable: '/kms', probes: [] },
    ...{ from: {}, to: {}, service: { kind: 'none' } },
  });

/** Writes an upgrade's journal atomically, as an upgrade does: a server never reads half of it. */
function note(path: string, step: string): void {
  writeFileSync(`${path}-new`, journal(step), { mode: 0o600 });
  renameSync(`${path}-new`, path);
}

/** A signal, and a promise that resolves when someone first listens to it. */
function heeded(stopping = new AbortController().signal) {
  const { promise: isHeeded, resolve } = Promise.withResolvers<void>();
  const listen = stopping.addEventListener.bind(stopping);
  stopping.addEventListener = (...given: Parameters<typeof listen>) => {
    listen(...given);
    resolve();
  };
  return { stopping, isHeeded };
}

test('held, then free', async () => {
  const data = join(base, 'data');
  const path = join(data, 'kms.upgrade');
  await initAppliance({ data, env });
  note(path, 'trying');
  const [shipped, streamed] = [join(base, 'shipped'), join(base, 'streamed')];
  for (const dir of [shipped, streamed]) mkdirSync(dir, { mode: 0o700 });
  const serving = await serve({
    data,
    listen: '127.0.0.1:0',
    logLevel: 'silent',
    sources: { env },
    copies: { shipping: { to: shipped, every: 50, window: 1000 } },
    streaming: { targets: [{ kind: 'directory', name: streamed, path: streamed }], from: 'start' },
  });
  after(() => serving.close());
  assert.match(serving.held?.message ?? '', /^an upgrade is under way \(trying\)/);

  const status = async (path: string): Promise<number> => (await fetch(serving.url + path)).status;
  const socket = socketFetch(data);
  const locally = async (path: string, headers: Record<string, string> = {}): Promise<number> =>
    (await socket(new Request(`http://kms.local${path}`, { headers }))).status;

  const refused = await fetch(`${serving.url}/readyz`);
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '2']);
  assert.match((await refused.json()).message, /no client is served until it is done/);
  for (const each of [
    '/ks/keyrings',
    '/console',
    '/openapi.json',
    '/nothing',
    '//healthz',
    '/local/status/../tenants',
  ]) {
    assert.equal(await status(each), 503, each);
  }
  assert.deepEqual([await status('/healthz'), await status('/system/seal-status')], [200, 200]);
  // Local endpoints are not served to the network.
  assert.equal(await status('/local/status'), 404);
  const shown = await fetch(`${serving.url}/ks/keyrings`, { headers: { 'kms-upgrade': 'the token' } });
  assert.equal(shown.status, 503, 'the token is for the local socket');
  assert.equal(await locally('/local/status'), 200);
  for (const headers of [{}, { 'kms-upgrade': '' }, { 'kms-upgrade': 'the toke' }, { 'kms-upgrade': 'the tokem' }]) {
    assert.equal(await locally('/ks/keyrings', headers), 503);
  }
  assert.equal(await locally('/ks/keyrings', { 'kms-upgrade': 'the token' }), 200);
  await delay(300);
  assert.deepEqual([readdirSync(shipped), readdirSync(streamed)], [[], []]);

  note(path, 'passed');
  await until('clients are let in', async () => (await status('/readyz')) === 200);
  assert.equal(await locally('/ks/keyrings'), 200);
  for (const dir of [shipped, streamed]) await until(`${dir} is written`, () => readdirSync(dir).length > 0);
  // Once released it stays so: it was not started for a trial.
  note(path, 'stopping');
  await delay(300);
  assert.equal(await status('/readyz'), 200);
  rmSync(path);
});

test('a held server ends as any other, and the next one is free', async () => {
  const data = join(base, 'ended');
  await initAppliance({ data, env });
  note(join(data, 'kms.upgrade'), 'starting-again');
  const options = { data, listen: '127.0.0.1:0', logLevel: 'silent', sources: { env } };
  const to = join(base, 'not-shipped');
  mkdirSync(to);
  const held = await serve({ ...options, copies: { shipping: { to, every: 50, window: 1000 } } });
  await held.close();
  assert.deepEqual(readdirSync(to), []);
  assert.match(readFileSync(join(data, 'kms.upgrade'), 'utf8'), /starting-again/);
  rmSync(join(data, 'kms.upgrade'));
  const free = await serve(options);
  assert.equal(free.held, undefined);
  assert.equal((await fetch(`${free.url}/readyz`)).status, 200);
  await free.close();
});

test('while an upgrade that runs works on the directory a server stays out, and has to be started again afterwards', async () => {
  const data = join(base, 'busy');
  await initAppliance({ data, env });
  const path = join(data, 'kms.upgrade');
  const options = { data, listen: '127.0.0.1:0', logLevel: 'silent', sources: { env } };
  for (const [busy, next] of [
    ['stopping', 'trying'],
    ['copying', 'trying'],
    ['swapping', 'trying'],
    ['ending-trial', 'starting-again'],
    ['clearing', 'starting-again'],
    ['putting-back', 'starting-again'],
    ['swapping-back', 'starting-again'],
  ] as const) {
    note(path, busy);
    await alone(data, async () => {
      const { stopping, isHeeded } = heeded();
      const started = serve({ ...options, stopping });
      const refused = assert.rejects(started, { code: 'unavailable', hint: /start it again/ }, busy);
      await isHeeded;
      // It holds nothing of the directory.
      lockDirectory(data).release();
      assert.ok(!readdirSync(data).includes('kms.sock'), busy);
      note(path, next);
      await refused;
      const serving = await serve(options);
      assert.match(serving.held?.message ?? '', /an upgrade is under way/);
      await serving.close();
    });
  }
  // It does not wait for the end of an interrupted upgrade.
  note(path, 'swapping');
  writeFileSync(join(data, 'kms.upgrade.lock'), '', { mode: 0o600 });
  const serving = await serve(options);
  assert.match(serving.held?.message ?? '', /an upgrade is under way/);
  await serving.close();
  const stop = new AbortController();
  await alone(data, async () => {
    const { stopping, isHeeded } = heeded(stop.signal);
    const started = serve({ ...options, stopping });
    void isHeeded.then(() => stop.abort());
    await assert.rejects(started, { name: 'AbortError' });
  });
  rmSync(path);
});

test('a server that had begun to start before an upgrade began does not serve', async () => {
  const data = join(base, 'began');
  await initAppliance({ data, env });
  const path = join(data, 'kms.upgrade');
  const options = { data, listen: '127.0.0.1:0', logLevel: 'silent', sources: { env } };
  const seen = new Set<string>();
  for (let wait = 0; wait < 40; wait++) {
    const starting = serve(options).then(
      (serving) => ({ serving }),
      (error) => ({ error }),
    );
    await delay(wait);
    // Like an upgrade: first the journal, then ending the process that holds the directory.
    note(path, 'stopping');
    const isHeld = (() => {
      try {
        lockDirectory(data, { onlyLooks: true }).release();
        return false;
      } catch {
        return true;
      }
    })();
    const ended = await starting;
    if ('serving' in ended) {
      // Either the upgrade ended it, as it held the directory, or it holds clients off.
      assert.ok(isHeld || ended.serving.held, `served after ${wait} ms`);
      seen.add('served');
      await ended.serving.close();
    } else {
      assert.match(String(ended.error), /an upgrade is under way|in use by/);
      seen.add('refused');
    }
    rmSync(path);
  }
  assert.ok(seen.size > 0);
});
