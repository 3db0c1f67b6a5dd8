// The data directory is removed under a running server that ships: the server reports it, never acknowledges unsaved
// changes, and is restored from the shipped directory.
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../support/until.ts';
import { asker, kms, type RunningServer, serve, workDirectory } from './kms.ts';

const shipping = ['--ship-to', 'shipped', '--ship-every', '1s', '--log-level', 'warn'];

interface First {
  readonly cwd: string;
  readonly server: RunningServer;
  ask(path: string, method?: 'GET' | 'POST', body?: object): Promise<Response>;
}

async function shippingServer(): Promise<First> {
  const cwd = workDirectory();
  const server = await serve(cwd, shipping);
  assert.ok(server.apiKey);
  const ask = asker(server.apiKey);
  return { cwd, server, ask: (path, method = 'GET', body = undefined) => ask(server.url + path, method, body) };
}

async function names(cwd: string, data: string): Promise<readonly string[]> {
  const { code, stdout, stderr } = await kms(cwd, ['keyring', 'list', '--json', '--data', data]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout).data.map(({ name }: { name: string }) => name);
}

test('a deleted data directory comes back from where it was shipped to, but for the last interval at most', async () => {
  const { cwd, server, ask } = await shippingServer();
  const answered: { readonly name: string; readonly at: number }[] = [];
  const made = async (name: string): Promise<number> => {
    const { status } = await ask('/ks/keyrings', 'POST', { name });
    if (status === 200) answered.push({ name, at: Date.now() });
    return status;
  };
  for (let i = 0; i < 40; i++) assert.equal(await made(`before-${i}`), 200);
  const shippedBy = Date.now();
  await until('everything so far is shipped', async () => {
    const { shipping } = await (await ask('/readyz')).json();
    return shipping?.ok && Date.now() - (shipping.ageSeconds + 1) * 1000 > shippedBy;
  });
  assert.equal(await made('last'), 200);
  copyFileSync(join(cwd, 'kms-data.master.key'), join(cwd, 'kept.key'));
  // The appliance may be writing into it meanwhile.
  rmSync(join(cwd, 'kms-data'), { recursive: true, maxRetries: 20, retryDelay: 10 });

  // Nothing unsaved is acknowledged, from the first request after the loss.
  const lost: number[] = [];
  for (let i = 0; i < 5; i++) lost.push(await made(`after-${i}`));
  assert.ok(
    lost.every((status) => status === 500 || status === 503),
    `${lost}`,
  );
  assert.equal((await ask('/ks/encrypt', 'POST', { ringname: 'before-1' })).status, 503);
  const refused = await ask('/ks/keyrings');
  assert.equal(refused.status, 503);
  const gone = /the data directory was removed, moved or replaced while it was open/;
  assert.match((await refused.json()).message, gone);
  const ready = await ask('/readyz');
  assert.equal(ready.status, 503);
  assert.match((await ready.json()).message, gone);
  assert.equal((await ask('/healthz')).status, 200);
  await until('the log says it', async () => gone.test(server.output()));
  assert.ok(!existsSync(join(cwd, 'kms-data')), 'the server made nothing in its place');

  const restored = await kms(cwd, ['restore', 'shipped', '--data', 'kms-data', '--key-file', 'kept.key']);
  assert.equal(restored.code, 0, restored.stderr);
  // The old server does not become a second one on the restored directory.
  assert.equal((await ask('/ks/keyrings')).status, 503);
  const next = await serve(cwd, shipping);
  assert.equal((await ask('/ks/keyrings')).status, 503);
  assert.equal(await server.end('SIGTERM'), 0);
  assert.ok(readdirSync(join(cwd, 'kms-data')).includes('kms.sock'), 'its end takes nothing from the new one');
  const found = new Set(await names(cwd, 'kms-data'));
  for (const { name, at } of answered)
    if (at < shippedBy) assert.ok(found.has(name), `${name} was shipped and is gone`);
  for (const name of found) assert.ok(!name.startsWith('after'), name);
  assert.equal(await next.end('SIGTERM'), 0);
  const doctor = await kms(cwd, ['doctor']);
  assert.equal(doctor.code, 0, doctor.stdout);
});

test('a directory that is moved away and back is served again, with all that was answered', async () => {
  const { cwd, server, ask } = await shippingServer();
  assert.equal((await ask('/ks/keyrings', 'POST', { name: 'one' })).status, 200);
  renameSync(join(cwd, 'kms-data'), join(cwd, 'away'));
  assert.notEqual((await ask('/ks/keyrings', 'POST', { name: 'lost' })).status, 200);
  assert.equal((await ask('/readyz')).status, 503);
  renameSync(join(cwd, 'away'), join(cwd, 'kms-data'));
  await until('it serves again', async () => (await ask('/readyz')).status === 200);
  assert.equal((await ask('/ks/keyrings', 'POST', { name: 'two' })).status, 200);
  assert.equal(await server.end('SIGTERM'), 0);
  assert.deepEqual(await names(cwd, 'kms-data'), ['one', 'two']);
});
