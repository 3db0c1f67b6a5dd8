// What a server answers to bytes that are no request, or none that it has a use for: one JSON message each, and the
// connection ends.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, test } from 'node:test';
import { httpServer, listen } from '../../src/server/http-server.ts';

const server = httpServer(async (request) => Response.json({ served: request.method }), { env: () => ({}) });
await listen(server, { port: 0, host: '127.0.0.1' });
after(() => server.close());
const address = server.address();
const port = typeof address === 'object' && address ? address.port : 0;

/** Sends bytes as they are, in as many packets as parts; answers all that comes back until the connection ends. */
function raw(...parts: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => {
      const [first = '', ...rest] = parts;
      socket.write(first, 'latin1', () => rest.forEach((part) => void socket.write(part, 'latin1')));
    });
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', reject);
  });
}

const host = 'Host: kms.example\r\n';
const refusals: readonly (readonly [name: string, request: string, status: number, message: RegExp])[] = [
  ['no Host', 'GET /ks/keyrings HTTP/1.1\r\nAccept: */*\r\n\r\n', 400, /^the header Host is missing$/],
  ['no Host, HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n', 400, /^the header Host is missing$/],
  ['an empty Host', 'GET / HTTP/1.1\r\nHost:\r\n\r\n', 400, /^the header Host is missing$/],
  ['two Hosts', `GET / HTTP/1.1\r\n${host}hOST: b\r\n\r\n`, 400, /^the header Host is there more than once$/],
  ['CONNECT', 'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n', 405, /takes CONNECT/],
  ['an unknown method', `FOO /ks/keyrings HTTP/1.1\r\n${host}\r\n`, 405, /^no path takes this method/],
  ['one that begins like a known one', `GETX / HTTP/1.1\r\n${host}\r\n`, 405, /^no path takes this method/],
  ['one in lower case', `get / HTTP/1.1\r\n${host}\r\n`, 405, /^no path takes this method/],
  ['no method', `\u0000 / HTTP/1.1\r\n${host}\r\n`, 400, /^the request is not well-formed HTTP$/],
  ['TLS', '\x16\x03\x01\x02\x00\x01\x00', 400, /^the request is not well-formed HTTP$/],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, /^the request is not well-formed HTTP$/],
  ['words', 'what is this?\r\n\r\n', 400, /^the request is not well-formed HTTP$/],
  [
    'an expectation',
    `POST / HTTP/1.1\r\n${host}Expect: wonders\r\nContent-Length: 0\r\n\r\n`,
    417,
    /^the header Expect/,
  ],
  [
    'a coding of the transfer',
    `POST / HTTP/1.1\r\n${host}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    501,
    /^the header Transfer-Encoding: only chunked/,
  ],
  [
    'a transfer that is not chunked in the end',
    `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`,
    400,
    /^the request is not well-formed HTTP$/,
  ],
  ['long headers', `GET / HTTP/1.1\r\n${host}X: ${'x'.repeat(20_000)}\r\n\r\n`, 431, /too large/],
];

for (const [name, request, status, message] of refusals) {
  test(`${name}: ${status}`, async () => {
    const answer = await raw(request);
    const [head = '', body = ''] = answer.split('\r\n\r\n', 2);
    assert.ok(head.startsWith(`HTTP/1.1 ${status} `), answer);
    assert.match(head, /^content-type: application\/json$/im);
    assert.match(head, /^connection: close$/im);
    assert.equal(/^content-length: (\d+)$/im.exec(head)?.[1], String(Buffer.byteLength(body)));
    assert.equal(/^allow: .*GET/im.test(head), status === 405, head);
    assert.deepEqual(Object.keys(JSON.parse(body)), ['message']);
    assert.match(JSON.parse(body).message, message);
  });
}

test('OPTIONS * asks about the server itself', async () => {
  const answer = await raw(`OPTIONS * HTTP/1.1\r\n${host}Connection: close\r\n\r\n`);
  assert.match(answer, /^HTTP\/1\.1 204 No Content\r\nAllow: [A-Z, ]+\r\n/);
  assert.ok(answer.endsWith('\r\n\r\n'));
  assert.match(await raw(`GET * HTTP/1.1\r\n${host}Connection: close\r\n\r\n`), /^HTTP\/1\.1 400 /);
});

test('every method that the parser knows goes to the app', async () => {
  for (const method of ['TRACE', 'OPTIONS', 'PROPFIND', 'QUERY']) {
    const answer = await raw(`${method} /x HTTP/1.1\r\n${host}Connection: close\r\n\r\n`);
    assert.match(answer, new RegExp(`"served":"${method}"`));
  }
});

test('what is wrong behind whole requests does not cost them their answers', async () => {
  const body = '{"a":1}';
  const first = `POST /first HTTP/1.1\r\n${host}Content-Length: ${body.length}\r\n\r\n${body}`;
  for (const behind of ['{}\r\n\r\n', '\0\0\0', 'FOO / HTTP/1.1\r\n\r\n']) {
    const answer = await raw(first + behind);
    assert.match(answer, /^HTTP\/1\.1 200 [\s\S]*"served":"POST"/, behind);
    assert.equal(answer.match(/HTTP\/1\.1 40[05] /g)?.length, 1, answer);
  }
  const twoAndAHalf = `${first}${first}POST /third HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\nnonsense\r\n`;
  const answers = await raw(twoAndAHalf);
  assert.equal(answers.match(/HTTP\/1\.1 200 /g)?.length, 2, answers);
  assert.equal(answers.match(/HTTP\/1\.1 400 /g)?.length, 1, answers);
});

test('a request that breaks off is refused at once', async () => {
  const answer = await raw(`POST /x HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\nnonsense\r\n`);
  assert.equal(answer.match(/HTTP\/1\.1 400 /g)?.length, 1, answer);
});
