// The app behind a real socket: how the Node adapter handles bodies that are too large, cut off, chunked or left
// unread.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { BodyBudget, usualBodyLimits } from '../../src/server/body-budget.ts';
import { endServer, httpServer, listen } from '../../src/server/http-server.ts';
import { type Appliance, testAppliance } from '../support/appliance.ts';

let a: Appliance;
let port: number;
let server: ReturnType<typeof httpServer>;

before(async () => {
  a = await testAppliance({ bodyLimit: 1000 });
  server = httpServer(a.app.handle, { origin: () => ({}) });
  await listen(server, { port: 0, host: '127.0.0.1' });
  port = (server.address() as AddressInfo).port;
});

after(() => endServer(server));

/** Sends raw bytes; returns everything that comes until the other side closes. */
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

// Answers that are decided by the headers alone, to clients that send a body.

const megabyte = `{"name":"${'x'.repeat(1024 * 1024 - 20)}"}`;
const strangers: readonly (readonly [name: string, status: number, line: string, ...headers: string[]])[] = [
  ['no credential', 401, 'POST /ks/keyrings HTTP/1.1'],
  ['an unknown credential', 401, 'POST /ks/keyrings HTTP/1.1', `Authorization: Bearer ${'x'.repeat(53)}`],
  ['a body that is too long for everybody', 413, 'POST /auth/basic/login HTTP/1.1'],
  ['an unknown path', 404, 'POST /no/such HTTP/1.1'],
  ['another method', 405, 'PUT /ks/keyrings HTTP/1.1'],
];

for (const [name, status, line, ...headers] of strangers) {
  const answer = new RegExp(`^HTTP/1\\.1 ${status} `);

  test(`${name}: ${status} before a byte of the body, and no 100 Continue`, async () => {
    const length = `Content-Length: ${megabyte.length}`;
    assert.match(await exchange(head(line, ...headers, json, length)), answer);
    assert.match(await exchange(head(line, ...headers, json, length, 'Expect: 100-continue')), answer);
  });

  test(`${name}: ${status} to whoever sends all of a body first, however it is framed, and on a connection that goes on`, async () => {
    const length = `Content-Length: ${megabyte.length}`;
    const chunk = `${megabyte.length.toString(16)}\r\n${megabyte}\r\n`;
    const chunked = [head(line, ...headers, json, 'Transfer-Encoding: chunked'), chunk] as const;
    for (let n = 0; n < 3; n++) {
      assert.match(await exchange(head(line, ...headers, json, length), megabyte), answer);
      // The connection is closed because of the length or the framing; the answer must arrive whole nevertheless.
      const longer = `Content-Length: ${megabyte.length * 6}`;
      assert.match(await exchange(head(line, ...headers, json, longer), ...Array(6).fill(megabyte)), answer);
      // The length of a chunked body is not known in advance.
      if (status !== 413) assert.match(await exchange(...chunked, '0\r\n\r\n'), answer);
    }
    const going = [line, 'Host: kms.test', ...headers, json, length, '', ''].join('\r\n');
    const both = await exchange(going, megabyte, head('GET /healthz HTTP/1.1'));
    assert.match(both, answer);
    assert.match(both, /HTTP\/1\.1 200 OK/);
  });
}

test('whoever has a credential is told to go on, and is asked for no body where a flag is missing', async () => {
  const body = '{"name":"continued"}';
  const ask = (key: string) =>
    head(
      'POST /ks/keyrings HTTP/1.1',
      `Authorization: Bearer ${key}`,
      json,
      `Content-Length: ${body.length}`,
      'Expect: 100-continue',
    );
  assert.match(await exchange(ask(a.root.key), body), /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/);
  const { key, keyid } = await a.keyWith('keyring.list');
  assert.match(await exchange(ask(key)), /^HTTP\/1\.1 403 /);
  const [last] = await a.activity();
  assert.deepEqual([last?.keyid, last?.action, last?.status], [keyid, 'keyring.create', 403]);
});

/** Invalid hosts, some that only an address parser recognises, and hosts for each end of a port's range. */
const hosts = [
  ...['a', 'A', 'a.b', 'a_b', '-', 'a..b', '1.2.3.4.5', '999.1.1.1', '0x7f.1', '[::1]', '[::1', 'a b', 'a/b', 'ä'],
  ...['a:', 'a:0', 'a:1', 'a:80', 'a:999', 'a:1000', 'a:9999', 'a:59999', 'a:60000', 'a:65535', 'a:65536', 'a:99999'],
  ...['a:080', 'a:00080', 'a:123456', '1.2.3.4.5:80', '999.1.1.1:60001', '0x7f.1:70', '[::1]:60000', '[::1]:99999'],
];

test('whatever its Host is, a request is refused before anything is done, or answered with what was done', async () => {
  const auditor = await a.keyWith('activity.read');
  const doing = ['POST /auth/activity/export HTTP/1.1', 'GET /auth/activity/head HTTP/1.1'];
  for (const host of hosts) {
    for (const line of [...doing, ...doing, ...doing]) {
      const headers = [line, `Host: ${host}`, 'Connection: close', `Authorization: Bearer ${auditor.key}`];
      const body = line.startsWith('POST') ? '{}' : '';
      if (body !== '') headers.push(json, `Content-Length: ${body.length}`);
      const before = (await a.activity()).length;
      const answer = await exchange(`${headers.join('\r\n')}\r\n\r\n${body}`);
      const [, status = ''] = /^HTTP\/1\.1 (\d+) /.exec(answer) ?? [];
      assert.match(status, /^(200|400)$/, `${line} ${host}: ${answer.slice(0, 300)}`);
      assert.equal((await a.activity()).length - before, status === '200' ? 1 : 0, `${line} ${host}: ${status}`);
    }
  }
});

test('an endless body that nobody wants is cut off', async () => {
  const small = new BodyBudget({ ...usualBodyLimits, unwanted: 200_000 });
  const other = httpServer(a.app.handle, { origin: () => ({}), bodies: small });
  await listen(other, { port: 0, host: '127.0.0.1' });
  const socket = connect((other.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => {});
  let answer = '';
  socket.on('data', (chunk) => {
    answer += chunk;
  });
  socket.write(head('POST /ks/keyrings HTTP/1.1', json, 'Transfer-Encoding: chunked'));
  const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
  const pump = setInterval(() => socket.writable && socket.write(chunk), 1);
  await once(socket, 'close');
  clearInterval(pump);
  assert.match(answer, /^HTTP\/1\.1 401 /);
  await endServer(other);
});
