// Answers to bytes that are no HTTP request, or none that the server serves: one JSON message each, in the shape that
// its clients know, and the connection closes. Also LIST, which Node can't parse.
import assert from 'node:assert/strict';
import type { IncomingMessage, Server } from 'node:http';
import { connect } from 'node:net';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import type { Reply } from '../../src/http/request-log.ts';
import { selfSigned } from '../../src/platform/self-signed.ts';
import { type Dialect, ownDialect, tangDialect, vaultDialect } from '../../src/server/http-refusals.ts';
import {
  type Certificate,
  clientAddress,
  httpServer,
  listen,
  takeForwardedHost,
} from '../../src/server/http-server.ts';
import { portOf } from '../../src/server/listen.ts';
import { replyWith } from '../support/answering.ts';

const longLength = 8 * 1024 * 1024;

/** In pieces, some of which wait until others have been sent. */
const long = (): Reply => {
  let sent = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (sent === longLength) return controller.close();
      sent += 65_536;
      controller.enqueue(new Uint8Array(65_536).fill(97));
    },
  });
  return { outcome: { status: 200, body: {}, stream } };
};

/** A server that reports the requests it got. */
async function serving(
  dialect: Dialect,
  tls?: Certificate,
  prepare?: (incoming: IncomingMessage) => void,
): Promise<Server> {
  const origin = (incoming: IncomingMessage) => {
    const remoteAddress = clientAddress(incoming, false);
    return remoteAddress === undefined ? {} : { remoteAddress };
  };
  const made = httpServer(
    async ({ method, path, search, remoteAddress, headers }) => {
      if (path === '/long') return long();
      const { hostname: host } = new URL(`http://${headers.host}`);
      return replyWith({ served: method, target: path + search, remoteAddress, host });
    },
    { origin, dialect, tls, ...(prepare && { prepare }) },
  );
  await listen(made, { port: 0, host: '127.0.0.1' });
  after(() => made.close());
  return made;
}

const server = await serving(ownDialect);
const vault = await serving(vaultDialect);
const tang = await serving(tangDialect);
const proxied = await serving(ownDialect, undefined, takeForwardedHost);

/** Sends raw bytes, one packet a part; returns everything that comes until the connection ends. */
function raw(...parts: readonly string[]): Promise<string> {
  return rawAt(server, parts);
}

function rawAt(at: Server, parts: readonly string[], isTls = false): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const begin = async (): Promise<void> => {
      for (const part of parts) {
        socket.write(part, 'latin1');
        // One packet each.
        if (parts.length > 1) await sleep(20);
      }
    };
    const place = { port: portOf(at), host: '127.0.0.1' };
    const socket = isTls ? connectTls({ ...place, rejectUnauthorized: false }, begin) : connect(place, begin);
    socket.setNoDelay(true);
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', reject);
  });
}

const host = 'Host: kms.example\r\n';
/** Refused even if both agree, since two programs may disagree about their order. */
const twice = (name: string) =>
  [
    `two of ${name}`,
    `GET / HTTP/1.1\r\n${host}${name}: a\r\nX: 1\r\n${name.toUpperCase()}: a\r\n\r\n`,
    400,
    new RegExp(`^the header ${name} is there more than once$`),
  ] as const;
const refusals: readonly (readonly [name: string, request: string, status: number, message: RegExp])[] = [
  ['no Host', 'GET /ks/keyrings HTTP/1.1\r\nAccept: */*\r\n\r\n', 400, /^the header Host is missing$/],
  ['an empty Host, HTTP/1.0', 'GET / HTTP/1.0\r\nHost:\r\n\r\n', 400, /^the header Host is missing$/],
  ['an empty Host', 'GET / HTTP/1.1\r\nHost:\r\n\r\n', 400, /^the header Host is missing$/],
  ['two Hosts', `GET / HTTP/1.1\r\n${host}hOST: b\r\n\r\n`, 400, /^the header Host is there more than once$/],
  ...['Authorization', 'Content-Type', 'Origin', 'Sec-Fetch-Site', 'Kms-Tenant', 'Kms-Console'].map(twice),
  ...['X-Vault-Token', 'X-Vault-Namespace', 'X-Vault-Wrap-TTL'].map(twice),
  ...[
    ['another host', 'http://other.example/', 'kms.example'],
    ['another host with the port', 'http://other.example:80/', 'kms.example:80'],
    ['another address', 'http://[::2]/', '[::1]'],
    ['a host that the Host ends with', 'http://kms.example.evil.example/', 'kms.example'],
    ['a user ahead of another host', 'http://kms.example@other.example/', 'kms.example'],
    ['no host that is one', 'http://256.1.1.1/', 'kms.example'],
  ].map(
    ([what, target, host]) =>
      [
        `a target with ${what}`,
        `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
        400,
        /^the target of the request names another host/,
      ] as const,
  ),
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
  ['two lengths', `POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`, 400, /not well-formed/],
  [
    'a length beside chunks',
    `POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
    /not well-formed/,
  ],
  ['another coding alone', `POST / HTTP/1.1\r\n${host}Transfer-Encoding: gzip\r\n\r\n`, 501, /only chunked/],
  [
    'a Host that is none',
    'GET / HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n',
    400,
    /^the header Host: expected a host/,
  ],
  ['long headers', `GET / HTTP/1.1\r\n${host}X: ${'x'.repeat(20_000)}\r\n\r\n`, 431, /too large/],
];

const dialects = [
  {
    at: server,
    methods: 'DELETE, GET, HEAD, PATCH, POST, PUT',
    messageOf: (body: { message: string }) => body.message,
  },
  { at: tang, methods: 'GET, POST', messageOf: (body: { message: string }) => body.message },
  {
    at: vault,
    methods: 'DELETE, GET, HEAD, LIST, POST, PUT',
    messageOf: ({ errors }: { errors: string[] }) => (errors.length === 1 ? errors[0] : undefined),
  },
] as const;

for (const [name, request, status, message] of refusals) {
  test(`${name}: ${status}`, async () => {
    for (const { at, methods, messageOf } of dialects) {
      const answer = await rawAt(at, [request]);
      const [head = '', body = '', ...more] = answer.split('\r\n\r\n');
      assert.ok(head.startsWith(`HTTP/1.1 ${status} `), answer);
      assert.deepEqual(more, [], 'one answer');
      assert.match(head, /^content-type: application\/json$/im);
      assert.match(head, /^connection: close$/im);
      assert.equal(/^content-length: (\d+)$/im.exec(head)?.[1], String(Buffer.byteLength(body)));
      assert.equal(/^allow: (.*)$/im.exec(head)?.[1], status === 405 ? methods : undefined, head);
      const said = JSON.parse(body);
      assert.equal(Object.keys(said).length, 1);
      const text = messageOf(said) ?? '';
      assert.match(text, message);
      assert.equal(text.endsWith(methods), status === 405);
    }
  });
}

test('HTTP/1.0 without a Host is for the address that it came to, at each listener', async () => {
  for (const at of [server, vault, tang]) {
    const answer = await rawAt(at, ['GET /healthz HTTP/1.0\r\n\r\n']);
    assert.match(answer, /^HTTP\/1\.1 200 /);
    assert.match(answer, /"served":"GET","target":"\/healthz","remoteAddress":"127\.0\.0\.1","host":"127\.0\.0\.1"/);
  }
});

test('a host has one form, however it is written, at each listener', async () => {
  const forms: Readonly<Record<string, readonly string[]>> = {
    'kms.example': ['kms.example', 'KMS.example', 'kms.example.', 'kms.example:', 'kms.example.:', 'kms.example:80'],
    '[::1]': ['[::1]', '[::1]:', '[0:0:0:0:0:0:0:1]:8080', '[::1%25lo]', '[::1%lo]:1', '[0::0001]:65535'],
    '127.0.0.1': ['127.0.0.1', '127.0.0.1.', '[::ffff:127.0.0.1]', '[::FFFF:7F00:1]:8080', '127.0.0.1:'],
  };
  for (const at of [server, vault, tang, proxied]) {
    for (const [expected, given] of Object.entries(forms)) {
      for (const form of given) {
        const value = at === proxied ? `Host: inner\r\nX-Forwarded-Host: first.example, ${form}` : `Host: ${form}`;
        const answer = await rawAt(at, [`GET /x HTTP/1.1\r\n${value}\r\nConnection: close\r\n\r\n`]);
        assert.match(answer, /^HTTP\/1\.1 200 /, form);
        assert.ok(answer.includes(`"host":"${expected}"`), `${form}: ${answer}`);
      }
    }
    // The host of an absolute target takes the place of Host (RFC 9112 §3.2.2), in every form.
    if (at === proxied) continue;
    for (const [target, host] of [
      ['http://kms.example/x', 'kms.example'],
      ['http://KMS.example./x', 'kms.example:80'],
      ['http://[0:0::1]:8080/x', '[::1]:8080'],
      ['http://127.0.0.1/x', '[::ffff:127.0.0.1]'],
    ]) {
      const answer = await rawAt(at, [`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`]);
      assert.match(answer, /^HTTP\/1\.1 200 /, `${target} ${host} ${answer}`);
    }
  }
});

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

test('a request that breaks off once its answer has begun gets no second one', async () => {
  const answer = await raw(`POST /x HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`, 'nonsense\r\n');
  assert.match(answer, /^HTTP\/1\.1 200 /);
  assert.equal(answer.match(/HTTP\/1\.1 /g)?.length, 1, answer);
});

const list = (target: string, more = '') => `LIST ${target} HTTP/1.1\r\n${host}${more}\r\n`;
const post = `POST /first HTTP/1.1\r\n${host}Content-Length: 3\r\n\r\nabc`;

test('LIST is GET with list=true where clients send it, on a connection that ends with the answer', async () => {
  const rows: readonly (readonly [parts: readonly string[], targets: readonly string[]])[] = [
    [[list('/v1/transit/keys')], ['/v1/transit/keys?list=true']],
    [[list('/v1/transit/keys?a=b&list=false')], ['/v1/transit/keys?list=true&a=b&list=false']],
    [['LIST /v1/transit/keys HTTP/1.1\r\n', host, 'X: 1\r\n', '\r\n'], ['/v1/transit/keys?list=true']],
    [['LIST /v1/tran', 'sit/keys HTT', `P/1.1\r`, `\n${host}\r\n`], ['/v1/transit/keys?list=true']],
    [[post + list('/a')], ['/first', '/a?list=true']],
    [
      [post + post, list('/a')],
      ['/first', '/first', '/a?list=true'],
    ],
    // Later requests find the connection closed, as after any last request.
    [[list('/a') + list('/b')], ['/a?list=true']],
    [[list('/a') + post], ['/a?list=true']],
    [[list('/a', 'Connection: keep-alive\r\n')], ['/a?list=true']],
    [[list('/a', 'Content-Length: 5\r\n'), 'ab'], ['/a?list=true']],
    [[list('/a', 'Transfer-Encoding: chunked\r\n'), 'nonsense'], ['/a?list=true']],
    [[list('/a', 'Expect: 100-continue\r\nContent-Length: 5\r\n')], ['/a?list=true']],
  ];
  for (const [parts, targets] of rows) {
    const answer = await rawAt(vault, parts);
    const bodies = [...answer.matchAll(/\{.*?\}/g)].map(([text]) => JSON.parse(text));
    const served = targets.map((target) => ({
      served: target.startsWith('/first') ? 'POST' : 'GET',
      target,
      remoteAddress: '127.0.0.1',
      host: 'kms.example',
    }));
    assert.deepEqual(bodies, served, JSON.stringify(parts));
    assert.equal(answer.match(/HTTP\/1\.1 200 /g)?.length, targets.length);
    assert.equal(answer.match(/^connection: close\r$/gim)?.length, 1, answer);
  }
});

test('what is wrong with a LIST is refused as with any other', async () => {
  const rows: readonly (readonly [parts: readonly string[], status: number])[] = [
    [['LIST /a HTTP/1.1\r\n\r\n'], 400],
    [[list('/a', host)], 400],
    [[list('/a', 'no header\r\n')], 400],
    [[list('a')], 400],
    [['LIST /a HTTP/2.0\r\n\r\n'], 400],
    [['LIST /a HT', 'TP/2.0\r\n', `${host}\r\n`], 400],
    [['LIST /a\r', '\n\r\n'], 400],
    [[`LISTEN /a HTTP/1.1\r\n${host}\r\n`], 405],
    [['LI', `ST /a HTTP/1.1\r\n${host}\r\n`], 405],
    [[list('/a', 'Expect: wonders\r\n')], 417],
    [[list('/a', `X: ${'x'.repeat(20_000)}\r\n`)], 431],
  ];
  for (const [parts, status] of rows) {
    const answer = await rawAt(vault, parts);
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    assert.match(head, new RegExp(`^HTTP/1\\.1 ${status} `), JSON.stringify(parts));
    assert.deepEqual(Object.keys(JSON.parse(body)), ['errors']);
    assert.equal(answer.match(/HTTP\/1\.1 /g)?.length, 1, answer);
  }
  for (const at of [server, tang]) assert.match(await rawAt(at, [list('/a')]), /^HTTP\/1\.1 405 /);
  const endless = await rawAt(vault, [`LIST /a HTTP/1.1\r\n${host}X: `, ...Array<string>(4).fill('y'.repeat(60_000))]);
  assert.match(endless, /^(?:HTTP\/1\.1 431 |$)/);
});

test('LIST within TLS', async () => {
  const { cert, key } = await selfSigned(['kms.example'], 1, new Date());
  const within = await serving(vaultDialect, { cert: Buffer.from(cert), key: Buffer.from(key) });
  const answer = await rawAt(within, [post + list('/a')], true);
  assert.match(answer, /"target":"\/first"[\s\S]*"target":"\/a\?list=true","remoteAddress":"127\.0\.0\.1"/);
  assert.equal(answer.match(/strict-transport-security/gi)?.length, 2);
});

test('a request that breaks off is refused at once', async () => {
  const answer = await raw(`POST /x HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\nnonsense\r\n`);
  assert.equal(answer.match(/HTTP\/1\.1 400 /g)?.length, 1, answer);
});

const request = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\n${host}${more}\r\n`;
const statusesOf = (answer: string): number[] =>
  [...answer.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status));
const connectAhead = 'CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n';

test('what is refused has its turn: the requests ahead of it are answered first', async () => {
  const ahead = request('/a') + request('/b');
  const behind = [
    [connectAhead, 405],
    [request('/c', 'Expect: wonders\r\n'), 417],
    ['\0\0\0', 400],
    ['BREW / HTTP/1.1\r\n\r\n', 405],
    ['GET / HTTP/1.1\r\n\r\n', 400],
  ] as const;
  const { cert, key } = await selfSigned(['kms.example'], 1, new Date());
  const secure = await serving(ownDialect, { cert: Buffer.from(cert), key: Buffer.from(key) });
  const longOnes = request('/long').repeat(2);
  for (const [at, isTls] of [
    [server, false],
    [secure, true],
  ] as const) {
    for (const [refused, last] of behind) {
      assert.deepEqual(statusesOf(await rawAt(at, [ahead + refused], isTls)), [200, 200, last], refused);
      assert.deepEqual(statusesOf(await rawAt(at, [ahead, refused], isTls)), [200, 200, last], refused);
      const behindLong = await rawAt(at, [longOnes + refused], isTls);
      assert.deepEqual(statusesOf(behindLong), [200, 200, last], refused);
      assert.ok(behindLong.length > 2 * longLength);
    }
  }
});

test('CONNECT whose body or whose client breaks off ends its connection alone', async () => {
  const place = { port: portOf(server), host: '127.0.0.1' };
  for (const text of [
    'CONNECT a HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc',
    `${request('/a')}CONNECT a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab`,
  ]) {
    const socket = connect(place);
    socket.on('error', () => {});
    socket.write(text);
    await sleep(50);
    socket.resetAndDestroy();
  }
  await sleep(50);
  assert.deepEqual(statusesOf(await raw(request('/a', 'Connection: close\r\n'))), [200]);
});

test('the app gets the host in canonical form, and as it was sent where that is another', async () => {
  const seen: [string | undefined, string | undefined][] = [];
  const made = httpServer(
    async ({ headers, sentHost }) => {
      seen.push([String(headers.host), sentHost]);
      return replyWith({});
    },
    { origin: () => ({}), dialect: ownDialect },
  );
  await listen(made, { port: 0, host: '127.0.0.1' });
  after(() => made.close());
  for (const host of ['kms.test', 'KMS.test', 'kms.ns.svc.cluster.local.']) {
    const socket = connect(portOf(made) ?? 0, '127.0.0.1');
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    await new Promise((resolve) => socket.on('close', resolve).resume());
  }
  assert.deepEqual(seen, [
    ['kms.test', undefined],
    ['kms.test', 'KMS.test'],
    ['kms.ns.svc.cluster.local', 'kms.ns.svc.cluster.local.'],
  ]);
});
