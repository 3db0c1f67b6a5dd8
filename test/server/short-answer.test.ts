// The head of a short answer equals the one that Node would make of the same headers, line by line, whether or not the
// connection stays open.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, test } from 'node:test';
import type { Outcome } from '../../src/http/respond.ts';
import { httpServer, listen } from '../../src/server/http-server.ts';

interface Answered {
  readonly outcome: Outcome;
  readonly state?: string;
}

let answered: Answered;
let asked = 0;
const server = httpServer(
  async () => {
    asked++;
    return answered;
  },
  { origin: () => ({}) },
);
await listen(server, { port: 0, host: '127.0.0.1' });
after(() => server.close());
const address = server.address();
const port = typeof address === 'object' && address ? address.port : 0;

/** Everything that comes back until there are `answers` answers, or the connection ends. */
function raw(request: string, answers: number): Promise<{ text: string; ended: boolean }> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => void socket.write(request));
    socket.setEncoding('utf8');
    socket.on('data', (chunk) => {
      text += chunk;
      if (text.split(/(?<=end)HTTP|end$/).length <= answers) return;
      // If the connection is to end, it does so soon after the last answer.
      setTimeout(() => socket.destroy(), 100).unref();
    });
    let ended = false;
    socket.on('end', () => {
      ended = true;
    });
    socket.on('close', () => resolve({ text, ended }));
    socket.on('error', reject);
  });
}

test('a target that an answer in pieces could not be sent for is refused before anything is done', async () => {
  const before = asked;
  const { text } = await raw('GET /a\\b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 1);
  assert.match(text, /^HTTP\/1\.1 400 /);
  assert.equal(asked, before);
});

test('who asks for the head alone of an answer in pieces gets it, and the pieces are let go of', async () => {
  const { promise: isCancelled, resolve } = Promise.withResolvers<void>();
  const stream = new ReadableStream<Uint8Array>({ cancel: () => resolve() }, { highWaterMark: 0 });
  answered = { outcome: { status: 200, body: {}, stream } };
  const { text } = await raw('HEAD /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 1);
  assert.match(text, /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\n$/);
  await isCancelled;
});

const dated = /^Date: (.*)$/gm;

const requests: readonly (readonly [name: string, head: string, ends: boolean])[] = [
  ['a usual one', 'POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n', false],
  ['one without a body', 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n', false],
  ['the last one', 'GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', true],
  ['HTTP/1.0', 'GET /a HTTP/1.0\r\nHost: a\r\n\r\n', true],
  ['HTTP/1.0 that stays', 'GET /a HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n', false],
  ['a body that nobody reads', 'POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc', false],
  [
    'one in chunks that nobody reads, and that is there',
    'POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
    false,
  ],
  [
    'one in chunks that nobody reads',
    'POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n',
    true,
  ],
  [
    'a body that is never told to come',
    'POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n',
    true,
  ],
];

for (const [name, request, ends] of requests) {
  test(name, async () => {
    for (const content of ['{"a":1}end', '{"name":"Zoë ✓ \u{1f511}"}end']) {
      for (const state of ['appl_1.tenant_1.1.5-abc', undefined]) {
        const told = { ...(state !== undefined && { state }) };
        answered = { outcome: { status: 200, body: {}, content }, ...told };
        const short = await raw(request, 1);
        // With headers of its own, even an empty object, Node makes the head.
        answered = { outcome: { status: 200, body: {}, content, headers: {} }, ...told };
        const made = await raw(request, 1);
        assert.equal(short.text.replaceAll(dated, 'Date'), made.text.replaceAll(dated, 'Date'));
        assert.equal(short.ended, ends);
        assert.equal(made.ended, ends);
        const [, body] = short.text.split('\r\n\r\n');
        assert.equal(body, content);
        const [[, date = ''] = []] = short.text.matchAll(dated);
        assert.ok(Math.abs(Date.parse(date) - Date.now()) < 10_000, date);
      }
    }
  });
}

test('several on one connection, sent ahead', async () => {
  answered = { outcome: { status: 200, body: {}, content: '{"b":2}end' } };
  const { text, ended } = await raw('GET /a HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(5), 5);
  assert.equal(text.split('HTTP/1.1 200 OK\r\n').length, 6);
  assert.equal(text.match(/Content-Length: 10\r\n/g)?.length, 5);
  assert.equal(ended, false);
});

test('what says that a connection ends, or anything else, is kept', async () => {
  answered = { outcome: { status: 404, body: {}, content: '{}end' } };
  assert.match((await raw('GET /a HTTP/1.1\r\nHost: a\r\n\r\n', 1)).text, /^HTTP\/1\.1 404 Not Found\r\n/);
  answered = { outcome: { status: 200, body: {}, content: '{}end', headers: { 'Content-Type': 'text/plain' } } };
  assert.match((await raw('GET /a HTTP/1.1\r\nHost: a\r\n\r\n', 1)).text, /\r\nContent-Type: text\/plain\r\n/);
});

test('nobody who asks for the head alone gets a body', async () => {
  answered = { outcome: { status: 200, body: {}, content: '{"c":3}end' } };
  const { text } = await raw('HEAD /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 1);
  assert.match(text, /^HTTP\/1\.1 200 OK\r\n[\s\S]*Content-Length: 10\r\n[\s\S]*\r\n\r\n$/);
  const kept = await raw('HEAD /a HTTP/1.1\r\nHost: a\r\n\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n', 1);
  assert.equal(kept.text.split('{"c":3}end').length, 2);
});

test('who sends several and ends its side gets all that can be told at once', async () => {
  answered = { outcome: { status: 200, body: {}, content: '{"d":4}end' } };
  let text = '';
  const socket = connect(port, '127.0.0.1', () => void socket.end('GET /a HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(5)));
  for await (const chunk of socket) text += chunk;
  assert.equal(text.split('{"d":4}end').length, 6);
});
