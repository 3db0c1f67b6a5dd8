// The app behind a real socket: what the Node adapter makes of bodies that are too large, cut, encoded in pieces or not read.
import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { endServer, httpServer, listen } from '../../src/server/http-server.ts';
import { type Appliance, testAppliance } from '../support/appliance.ts';

let a: Appliance;
let port: number;
let server: ReturnType<typeof httpServer>;

before(async () => {
  a = await testAppliance({ bodyLimit: 1000 });
  server = httpServer(a.app.fetch, { env: () => ({}) });
  await listen(server, { port: 0, host: '127.0.0.1' });
  port = (server.address() as AddressInfo).port;
});

after(() => endServer(server));

/** Sends bytes as they are; answers everything that comes until the other side closes. */
function exchange(...parts: readonly (string | Uint8Array)[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      for (const part of parts) socket.write(part);
    });
    let answer = '';
    socket.setEncoding('utf8');
    socket.on('data', (text) => {
      answer += text;
    });
    socket.on('end', () => resolve(answer));
    socket.on('error', reject);
  });
}

const head = (line: string, ...headers: string[]) =>
  `${[line, 'Host: kms.test', 'Connection: close', ...headers].join('\r\n')}\r\n\r\n`;
const json = 'Content-Type: application/json';
const bearer = () => `Authorization: Bearer ${a.root.key}`;

test('a body in one piece and in chunks', async () => {
  const body = JSON.stringify({ name: 'ring-ä' }).replace('ä', 'x');
  const whole = await exchange(
    head('POST /ks/keyrings HTTP/1.1', bearer(), json, `Content-Length: ${body.length}`),
    body,
  );
  assert.match(whole, /^HTTP\/1\.1 200 /);
  const chunk = JSON.stringify({ name: 'other' });
  const chunks = await exchange(
    head('POST /ks/keyrings HTTP/1.1', bearer(), json, 'Transfer-Encoding: chunked'),
    `${chunk.length.toString(16)}\r\n${chunk}\r\n0\r\n\r\n`,
  );
  assert.match(chunks, /^HTTP\/1\.1 200 /);
});

test('too large is 413, declared or not', async () => {
  const body = JSON.stringify({ name: 'x'.repeat(1000) });
  for (const framing of [
    [`Content-Length: ${body.length}`, body],
    ['Transfer-Encoding: chunked', `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`],
  ]) {
    const answer = await exchange(
      head('POST /ks/keyrings HTTP/1.1', bearer(), json, framing[0] ?? ''),
      framing[1] ?? '',
    );
    assert.match(answer, /^HTTP\/1\.1 413 /);
    assert.match(answer, /"message":/);
  }
});

test('a body that nobody reads does not hold up the answer', async () => {
  const body = '{"name":"x"}';
  const answer = await exchange(head('POST /ks/keyrings HTTP/1.1', json, `Content-Length: ${body.length}`), body);
  assert.match(answer, /^HTTP\/1\.1 401 /);
  assert.match(answer, /www-authenticate: Bearer/i);
});

test('bytes that are no UTF-8, and paths that are no path', async () => {
  const bytes = Uint8Array.of(0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d);
  const answer = await exchange(
    head('POST /ks/keyrings HTTP/1.1', bearer(), json, `Content-Length: ${bytes.length}`),
    bytes,
  );
  assert.match(answer, /^HTTP\/1\.1 400 /);
  for (const path of ['/ks/keyrings/%', '/ks/keyrings/%ff', '/ks/keyrings/%00', '/%2e%2e/x', '//ks/keyrings']) {
    assert.match(await exchange(head(`GET ${path} HTTP/1.1`, bearer())), /^HTTP\/1\.1 40[04] /, path);
  }
});

test('a request that ends before its body leaves nothing behind', async () => {
  const before = (await a.activity()).length;
  await new Promise<void>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(head('POST /ks/keyrings HTTP/1.1', bearer(), json, 'Content-Length: 100'));
      socket.write('{"name":"cut"');
      setTimeout(() => socket.destroy(), 20);
    });
    socket.on('close', () => resolve());
  });
  const health = await exchange(head('GET /healthz HTTP/1.1'));
  assert.match(health, /^HTTP\/1\.1 200 /);
  assert.equal((await a.call('GET', '/ks/keyrings/cut')).status, 404);
  assert.ok((await a.activity()).length <= before + 2);
});
