// Clients that ask the executable for much and read none of it: their memory in the process is bounded, and other
// clients are served.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { until } from '../support/until.ts';
import { asker, serve, workDirectory } from './kms.ts';

const MiB = 1024 * 1024;
const clients = 60;
/** MiB that they may take all together: at most 64 of unread answers, the rest from making them. */
const mostTaken = 350;

const cwd = workDirectory();
const server = await serve(cwd, ['--log-level', 'silent']);
const { port } = new URL(server.url);
const apiKey = server.apiKey ?? assert.fail();
const ask = asker(apiKey);
const sockets: Socket[] = [];
after(() => {
  for (const socket of sockets) socket.destroy();
});

const pid = Number(readFileSync(join(cwd, 'kms-data', 'kms.pid'), 'utf8'));

/** Memory of the process, in MiB. */
const memory = (): number => {
  const [, kibibytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kibibytes) / 1024;
};

/** Samples for this time and returns the maximum. */
async function mostMemory(milliseconds: number): Promise<number> {
  let most = 0;
  for (const end = Date.now() + milliseconds; Date.now() < end; ) {
    most = Math.max(most, memory());
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return most;
}

/** Sends `count` requests for pages at once, and reads no answer. */
function sendOnly(count: number): Promise<void> {
  const socket = connect(Number(port), '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => {}).pause();
  const head = ['Host: a', `Authorization: Bearer ${apiKey}`, 'Content-Type: application/json', 'Content-Length: 2'];
  const request = `POST /assets/search HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n{}`;
  return new Promise((resolve) => socket.write(request.repeat(count), () => resolve()));
}

test('sixty that read nothing take little, and another key is served beside them', async () => {
  assert.equal((await ask(`${server.url}/ks/keyrings`, 'POST', { name: 'r' })).status, 200);
  for (let n = 0; n < 16; n++) {
    const data = Object.fromEntries(Array.from({ length: 250 }, (_, at) => [`k${at}`, 'x'.repeat(1060)]));
    const made = await ask(`${server.url}/ks/encrypt`, 'POST', { ringname: 'r', asset: { data } });
    assert.equal(made.status, 200);
  }
  const page = await (await ask(`${server.url}/assets/search`, 'POST', {})).text();
  assert.ok(page.length > 4 * MiB, String(page.length));
  const accounts = await (await ask(`${server.url}/auth/accounts`, 'GET')).json();
  const flags = { 'asset.*': true };
  const made = await ask(`${server.url}/auth/apikey`, 'POST', { accountId: accounts.data[0].id, flags });
  const other = asker((await made.json()).key);
  const before = memory();

  for (let n = 0; n < clients; n++) await sendOnly(1);
  const taken = (await mostMemory(5000)) - before;
  assert.ok(taken < mostTaken, `${clients} clients took ${taken} MiB`);
  const beside = await other(`${server.url}/assets/search`, 'POST', {});
  assert.equal(beside.status, 200);
  assert.equal((await beside.text()).length, page.length);
  assert.equal((await fetch(`${server.url}/healthz`)).status, 200);

  // Some of the slow readers are disconnected for a new request with the same key.
  await until('the same key is served again', async () => {
    const again = await ask(`${server.url}/assets/search`, 'POST', {});
    if (again.status !== 503) return (await again.text()).length === page.length;
    assert.ok(Number(again.headers.get('retry-after')) > 0);
    return false;
  });
  for (const socket of sockets.splice(0)) socket.destroy();
});

test('nor do requests by the hundred on a few connections', async () => {
  const before = memory();
  for (let n = 0; n < 4; n++) await sendOnly(30);
  // This many pipelined requests end their connection.
  for (let n = 0; n < 4; n++) await sendOnly(300);
  const taken = (await mostMemory(5000)) - before;
  assert.ok(taken < mostTaken, `they took ${taken} MiB`);
  assert.equal((await ask(`${server.url}/ks/keyrings`, 'GET')).status, 200);
});
