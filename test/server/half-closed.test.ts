// Clients that send whole requests and then end their side of the connection, as `nc -N` and socat do: each request is
// answered, then the connection ends. A request that the end cuts off is not.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { httpServer, listen } from '../../src/server/http-server.ts';
import { bodyText, replyWith } from '../support/answering.ts';

let finished = 0;
const server = httpServer(
  async (request) => {
    const text = await bodyText(request);
    await sleep(20);
    finished++;
    return replyWith({ length: text.length });
  },
  { origin: () => ({}), allowHalfOpen: true },
);
await listen(server, { host: '127.0.0.1', port: 0 });
after(() => server.close());
const { port } = server.address() as AddressInfo;

async function answersTo(bytes: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  let got = '';
  socket.setEncoding('utf8').on('data', (chunk) => {
    got += chunk;
  });
  socket.end(bytes);
  await once(socket, 'close');
  return got;
}

const post = (body: string) => `POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

test('a whole request is answered, then the connection ends', async () => {
  const answer = await answersTo(post('hello'));
  assert.match(answer, /^HTTP\/1\.1 200 /);
  assert.match(answer, /\{"length":5\}$/);
});

test('pipelined requests are all answered in their order', async () => {
  const lengths = [1, 2, 3, 4, 5];
  const answers = await answersTo(lengths.map((length) => post('x'.repeat(length))).join(''));
  assert.deepEqual(
    [...answers.matchAll(/"length":(\d)/g)].map(([, length]) => Number(length)),
    lengths,
  );
});

test('a request that the end cuts off is not served', async () => {
  const before = finished;
  const answer = await answersTo('POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhel');
  assert.match(answer, /^(?:HTTP\/1\.1 400 |$)/);
  assert.equal(finished, before);
});
