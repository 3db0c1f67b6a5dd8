// Sealing and unsealing a server under load: each request is either served completely or told that the appliance is
// sealed, and everything answered with 200 is there afterwards.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addAbortSignal } from 'node:stream';
import { after, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { HeldAppliance } from '../../src/appliance/appliance.ts';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { initAppliance } from '../../src/appliance/init.ts';
import { serve } from '../../src/server/serve.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-sealable-'));
after(() => rmSync(base, { recursive: true, force: true }));

test('seal and unseal under load', async () => {
  const data = join(base, 'data');
  const made = await initAppliance({ data });
  const serving = await serve({ data, listen: '127.0.0.1:0', logLevel: 'silent' });
  const key = readFileSync(made.keyFile, 'utf8');
  const headers = { authorization: `Bearer ${made.apiKey.key}`, 'content-type': 'application/json' };
  const post = (path: string, body: object): Promise<Response> =>
    fetch(serving.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  let going = true;
  let count = 0;
  const kept: string[] = [];
  const statuses = new Map<number, number>();
  const client = async (): Promise<void> => {
    while (going) {
      const name = `ring-${++count}`;
      const answer = await post('/ks/keyrings', { name });
      const body = (await answer.json()) as { message?: string };
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      if (answer.status === 200) kept.push(name);
      else assert.match(body.message ?? '', /sealed|the store is closed|could not/, JSON.stringify(body));
    }
  };
  const clients = Promise.all(Array.from({ length: 6 }, client));
  for (let round = 0; round < 4; round++) {
    const before = kept.length;
    while (kept.length < before + 10) await setTimeout(5);
    const sealed = await post('/system/seal', {});
    assert.deepEqual([sealed.status, await sealed.json()], [200, { sealed: true, kinds: ['keyfile'] }]);
    assert.equal((await post('/system/seal', {})).status, 503);
    // Two at once: the second finds it open.
    const opened = await Promise.all([post('/system/unseal', { key }), post('/system/unseal', { key })]);
    for (const answer of opened) {
      assert.deepEqual([answer.status, await answer.json()], [200, { sealed: false, kinds: ['keyfile'] }]);
    }
  }
  going = false;
  await clients;
  assert.deepEqual(
    [...statuses.keys()].filter((status) => status !== 200 && status !== 503),
    [],
  );
  const listed = (await (await fetch(`${serving.url}/ks/keyrings?limit=10000`, { headers })).json()) as {
    data: { name: string }[];
  };
  const names = new Set(listed.data.map(({ name }) => name));
  assert.deepEqual(
    kept.filter((name) => !names.has(name)),
    [],
  );
  await serving.close();
  await serving.close();
});

test('a server ends while it is sealed, and while it is being sealed', async () => {
  for (const wait of [0, 200]) {
    const data = join(base, `ending-${wait}`);
    const { apiKey } = await initAppliance({ data });
    const headers = { authorization: `Bearer ${apiKey.key}`, 'content-type': 'application/json' };
    const serving = await serve({ data, listen: '127.0.0.1:0', logLevel: 'silent' });
    assert.equal((await fetch(`${serving.url}/system/seal`, { method: 'POST', headers })).status, 200);
    await setTimeout(wait);
    assert.throws(() => serving.appliance, { code: 'sealed' });
    await serving.close();
  }
});

test('an act that is held for approval is answered before the appliance is sealed, and before it ends', async () => {
  const data = join(base, 'held');
  const { apiKey, keyFile } = await initAppliance({ data });
  const serving = await serve({ data, listen: '127.0.0.1:0', logLevel: 'silent' });
  const headers = { authorization: `Bearer ${apiKey.key}`, 'content-type': 'application/json' };
  const call = async (method: string, path: string, body?: object) => {
    const answer = await fetch(serving.url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    // Cast: each caller knows what it asks for.
    return { status: answer.status, body: (await answer.json()) as Record<string, never> & { requests: unknown[] } };
  };
  const ada = { username: 'ada', email: 'ada@example.com', firstName: 'Ada', lastName: 'L' };
  await call('POST', '/auth/users', ada);
  const rule = { name: 'rings', actions: ['keyring.create'], approvers: { users: ['ada'] }, mode: 'hold' };
  assert.equal((await call('POST', '/approvals/rules', rule)).status, 200);
  const held = async (asked: number) => {
    const answer = call('POST', '/ks/keyrings', { name: `ring-${asked}` });
    while ((await call('GET', '/approvals/requests')).body.requests.length < asked) await setTimeout(20);
    return { answer };
  };
  const sealed = await held(1);
  assert.equal((await call('POST', '/system/seal', {})).status, 200);
  assert.match((await sealed.answer).body.message ?? '', /request appr_\w+ is pending/);
  assert.equal((await call('POST', '/system/unseal', { key: readFileSync(keyFile, 'utf8') })).status, 200);
  const ended = await held(2);
  await serving.close();
  assert.match((await ended.answer).body.message ?? '', /request appr_\w+ is pending/);
});

test('one app serves an appliance open, sealed and open again, also in process', async () => {
  const data = join(base, 'in-process');
  const { apiKey, keyFile } = await initAppliance({ data });
  const appliance = await openAppliance({ data });
  const headers = { authorization: `Bearer ${apiKey.key}`, 'content-type': 'application/json' };
  const ask = async (method: string, path: string, body?: object) => {
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const answer = await appliance.fetchLocal(new Request(`http://kms.local${path}`, init));
    return { status: answer.status, body: JSON.parse(await answer.text()) };
  };
  const { app } = appliance;
  assert.equal((await ask('POST', '/ks/keyrings', { name: 'r' })).status, 200);
  assert.equal((await ask('GET', '/local/copies')).status, 200);
  assert.deepEqual(await ask('POST', '/local/seal'), { status: 200, body: { sealed: true, kinds: ['keyfile'] } });
  for (const path of ['/ks/keyrings', '/metrics', '/docs', '/local/copies', '/auth/activity/head', '/readyz']) {
    const { status, body } = await ask('GET', path);
    assert.equal(status, 503, path);
    assert.match(body.message, /sealed/);
  }
  assert.equal((await ask('GET', '/healthz')).status, 200);
  assert.equal((await ask('GET', '/local/status')).body.onPurpose, true);
  assert.equal((await ask('PUT', '/local/status')).status, 503);
  for (const path of ['/local/none', '/none']) assert.equal((await ask('GET', path)).status, 404);
  const key = readFileSync(keyFile, 'utf8');
  assert.equal((await ask('POST', '/system/unseal', { key })).body.sealed, false);
  const { body } = await ask('GET', '/ks/keyrings');
  assert.deepEqual(
    body.data.map(({ name }: { name: string }) => name),
    ['r'],
  );
  assert.equal(appliance.app, app);
  await appliance.close();
});

test('sealing does not wait for a step to open it again, which waits for the sealing', async () => {
  const data = join(base, 'at-once');
  const { apiKey, keyFile } = await initAppliance({ data });
  const serving = await serve({ data, listen: '127.0.0.1:0', logLevel: 'silent' });
  after(() => serving.close());
  const headers = { authorization: `Bearer ${apiKey.key}`, 'content-type': 'application/json' };
  const key = JSON.stringify({ key: readFileSync(keyFile, 'utf8') });
  const { port, hostname } = new URL(serving.url);
  // The longest that sealing waits for requests.
  const signal = AbortSignal.timeout(8000);
  for (let round = 0; round < 3; round++) {
    const socket = connect(Number(port), hostname);
    const head = ['POST /system/unseal HTTP/1.1', `Host: ${hostname}:${port}`, 'Content-Type: application/json'];
    socket.write(`${[...head, `Content-Length: ${key.length}`, 'Connection: close'].join('\r\n')}\r\n\r\n`);
    // It is connected before the request that seals.
    await once(socket, 'connect');
    assert.equal((await fetch(`${serving.url}/healthz`)).status, 200);
    const seal = () => fetch(`${serving.url}/system/seal`, { method: 'POST', headers, signal });
    const sealed = await Promise.all([seal(), seal(), seal()]);
    assert.ok(sealed.every(({ status }) => status === 200 || status === 503));
    socket.write(key);
    const answered: Buffer[] = [];
    for await (const piece of addAbortSignal(signal, socket)) answered.push(piece);
    assert.match(Buffer.concat(answered).toString(), /^HTTP\/1.1 200 .*"sealed":false/s);
  }
});

test('who seals an appliance that closes already does not wait for those that close it waits for', async () => {
  const data = join(base, 'twice');
  await initAppliance({ data });
  const held = await HeldAppliance.hold({ data }, { serves: true });
  await held.start();
  let end = (): void => {};
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      end = () => controller.close();
    },
  });
  const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body, duplex: 'half' } as const;
  const underWay = held.requests.fetch(new Request('http://kms.local/auth/basic/login', request), {});
  await held.seal();
  await setTimeout(20);
  const waited = await Promise.race([held.seal(), held.seal(), setTimeout(5000, 'for as long as it takes')]);
  end();
  assert.equal(waited, undefined);
  assert.equal((await underWay).status, 400);
  await held.close();
  await assert.rejects(openAppliance({ data }), /on purpose/);
});
