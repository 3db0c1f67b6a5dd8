// Bodies on their way in: limits on buffered bytes, refusals beyond them, and odd bodies.
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { refused } from '../../src/http/respond.ts';
import { BodyBudget, type BodyLimits, usualBodyLimits } from '../../src/server/body-budget.ts';
import { endServer, httpServer, listen } from '../../src/server/http-server.ts';
import { replyText, replyWith } from '../support/answering.ts';
import { until } from '../support/until.ts';

const bodyLimit = 100_000;

/** A server that returns a body's length; the path names the account it counts for, `/` none. */
async function server(limits: Partial<BodyLimits> = {}, worked: () => Promise<void> = async () => {}) {
  const bodies = new BodyBudget({ ...usualBodyLimits, ...limits });
  const made = httpServer(
    async ({ path, body }) => {
      const holder = path.slice(1) || undefined;
      try {
        const bytes = await body.read(bodyLimit, holder);
        await worked();
        return replyWith({ length: bytes?.length ?? 'too long' });
      } catch (error) {
        return { outcome: refused(error) };
      }
    },
    { origin: () => ({}), bodies },
  );
  await listen(made, { host: '127.0.0.1', port: 0 });
  const { port } = made.address() as AddressInfo;
  const sockets: Socket[] = [];

  function send(holder: string, ...parts: readonly string[]): Sent {
    const socket = connect(port, '127.0.0.1');
    sockets.push(socket);
    const sent = { socket, answer: '', closed: new Promise((resolve) => socket.on('close', resolve)) };
    socket.on('error', () => {});
    socket.on('data', (text) => {
      sent.answer += text;
    });
    socket.write(`POST /${holder} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n`);
    for (const part of parts) socket.write(part);
    return sent;
  }

  return {
    bodies,
    send,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await endServer(made);
    },
  };
}

interface Sent {
  readonly socket: Socket;
  readonly answer: string;
  readonly closed: Promise<unknown>;
}

const begun = (length: number, sent: number) => `Content-Length: ${length}\r\n\r\n${'x'.repeat(sent)}`;

test('unfinished bodies are counted, and no longer once they end or break off', async () => {
  await using s = await server();
  const unfinished = Array.from({ length: 40 }, () => s.send('', begun(10_000, 9_000)));
  await until('all of them wait', () => s.bodies.waiting >= 40 * 9_000);
  assert.ok(s.bodies.waiting <= 40 * 10_000, String(s.bodies.waiting));
  for (const { socket } of unfinished.slice(0, 20)) socket.destroy();
  for (const { socket } of unfinished.slice(20)) socket.write('x'.repeat(1_000));
  for (const { closed } of unfinished) await closed;
  for (const { answer } of unfinished.slice(20)) assert.match(answer, /\{"length":10000\}$/);
  await until('nothing waits', () => s.bodies.waiting === 0);
});

test('finished bodies are counted until their requests are answered', async () => {
  const work = Promise.withResolvers<void>();
  let begun = 0;
  await using s = await server({ waiting: 50_000 }, () => {
    begun++;
    return work.promise;
  });
  const sent = Array.from({ length: 4 }, () => s.send('', 'Content-Length: 12000\r\n\r\n', 'x'.repeat(6000)));
  await until('the halves wait', () => s.bodies.waiting === 24_000);
  for (const { socket } of sent) socket.write('x'.repeat(6000));
  await until('all are worked on', () => begun === 4);
  assert.equal(s.bodies.waiting, 48_000);
  const another = s.send('', 'Content-Length: 12000\r\n\r\n', 'x'.repeat(6000));
  await until('one more is refused', () => another.answer.includes(' 503 '));
  work.resolve();
  for (const each of sent) {
    await each.closed;
    assert.match(each.answer, /\{"length":12000\}$/);
  }
  await until('nothing is counted', () => s.bodies.waiting === 0);
});

test('when too many bytes wait, who needs no credential gets 503, and who has one is served', async () => {
  await using s = await server({ waiting: 100_000 });
  const strangers = Array.from({ length: 30 }, () => s.send('', begun(10_000, 9_000)));
  await until('some are refused', () => strangers.filter(({ answer }) => answer !== '').length >= 18);
  assert.ok(s.bodies.waiting <= 100_000);
  for (const { answer } of strangers) {
    if (answer !== '')
      assert.match(answer, /^HTTP\/1\.1 503 [\s\S]*Retry-After: [1-9]\d*\r\n[\s\S]*"message":"too many/i);
  }
  const known = s.send('apik_1', begun(10_000, 9_000));
  await until('the known one waits too', () => s.bodies.waiting > 100_000);
  const small = s.send('', begun(10, 10));
  await small.closed;
  assert.match(small.answer, /\{"length":10\}$/, 'one that comes whole waits for nothing');
  known.socket.write('x'.repeat(1_000));
  await known.closed;
  assert.match(known.answer, /\{"length":10000\}$/);
});

test('nobody holds more than their share, whatever credential they have', async () => {
  await using s = await server({ waiting: 10_000, waitingAtMost: 200_000, ofOneHolder: 50_000 });
  const greedy = Array.from({ length: 20 }, () => s.send('apik_1', begun(10_000, 9_000)));
  await until('most are refused', () => greedy.filter(({ answer }) => answer.includes(' 503 ')).length >= 15);
  const others = Array.from({ length: 30 }, (_, n) => s.send(`apik_2${n}`, begun(10_000, 9_000)));
  await until('all together hold no more', () => others.filter(({ answer }) => answer.includes(' 503 ')).length >= 13);
  assert.ok(s.bodies.waiting <= 200_000);
  const neighbour = others.find(({ answer }) => answer === '') ?? assert.fail();
  neighbour.socket.write('x'.repeat(1_000));
  await neighbour.closed;
  assert.match(neighbour.answer, /\{"length":10000\}$/);
});

test('a body of many small chunks takes no more room than its bytes; one of too many is refused', async () => {
  await using s = await server();
  const chunks = (count: number) => `Transfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(count)}`;
  const small = s.send('', chunks(4_000));
  await until('it is there', () => s.bodies.waiting > 0);
  assert.ok(s.bodies.waiting <= 8_192, String(s.bodies.waiting));
  small.socket.write('0\r\n\r\n');
  await small.closed;
  assert.match(small.answer, /"length":4000\}/);
  const many = s.send('', chunks(20_000), '0\r\n\r\n');
  await many.closed;
  assert.match(many.answer, /^HTTP\/1\.1 400 [\s\S]*too many pieces/);
  assert.equal(s.bodies.waiting, 0);
});

test('what is too long is known before it ends, declared or not', async () => {
  await using s = await server();
  const long = s.send('', `Transfer-Encoding: chunked\r\n\r\n30d40\r\n${'x'.repeat(150_000)}`);
  await until('it is refused', () => long.answer.includes('too long'));
  await until('nothing waits', () => s.bodies.waiting === 0);
  const none = s.send('', 'Content-Length: 0\r\n\r\n');
  await none.closed;
  assert.match(none.answer, /\{"length":0\}$/);
});

/** One connection to a server with these answers: its output, and its newest request as Node sees it. */
async function oneConnection(answer: (path: string, incoming: IncomingMessage) => Promise<string>) {
  let answers = '';
  let newest: IncomingMessage | undefined;
  const made = httpServer(
    async ({ path }) => {
      if (!newest) throw new Error('a request has a message of Node');
      return replyText(await answer(path, newest));
    },
    {
      origin: (incoming) => {
        newest = incoming;
        return {};
      },
    },
  );
  await listen(made, { host: '127.0.0.1', port: 0 });
  const socket = connect((made.address() as AddressInfo).port, '127.0.0.1');
  socket.on('data', (text) => {
    answers += text;
  });
  return {
    socket,
    answers: () => answers,
    newest: () => newest,
    async [Symbol.asyncDispose]() {
      socket.destroy();
      await endServer(made);
    },
  };
}

test('a body in one piece is there for who reads it as a stream, and for nobody', async () => {
  await using one = await oneConnection(async (path, incoming) => (path === '/read' ? text(incoming) : '-'));
  const { socket, answers } = one;
  const ask = (path: string, body: string): string =>
    `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  socket.write(ask('/read', '<one>') + ask('/', '<two>') + ask('/read', '<three>'));
  await until('all three are answered', () => answers().includes('<three>'));
  socket.write(ask('/', '<four>'));
  await until('the fourth is', () => answers().split('HTTP/1.1 200 OK').length === 5);
  socket.write(ask('/read', '<five>'));
  await until('the fifth is', () => answers().includes('<five>'));
  assert.deepEqual(answers().match(/<\w+>/g), ['<one>', '<three>', '<five>']);
});

test('what nobody reads yet is gathered, however small its pieces are', async () => {
  const read = Promise.withResolvers<void>();
  await using one = await oneConnection(async (_path, incoming) => {
    await read.promise;
    return `read ${(await text(incoming)).length}`;
  });
  const pieces = '1\r\nx\r\n'.repeat(5000);
  one.socket.write(`POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${pieces}0\r\n\r\n`);
  await until('all of it came', () => one.newest()?.complete === true);
  assert.equal(one.newest()?.readableLength, 0);
  read.resolve();
  await until('it is answered', () => one.answers().includes('read 5000'));
});

test('a body that nobody read is let go of with the answer, where nobody could say so either', async () => {
  await using one = await oneConnection(() => Promise.reject(new Error('not to be answered')));
  one.socket.write('POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc');
  await until('it is answered', () => one.answers().includes('HTTP/1.1 '));
  await until('Node lets go of it', () => one.newest()?.readableEnded === true);
});

test('a body gives back its room while its request waits for people, and takes it again', async () => {
  const work = Promise.withResolvers<void>();
  const seen: number[] = [];
  const bodies = new BodyBudget();
  const made = httpServer(
    async ({ body }) => {
      await body.read(bodyLimit, 'one');
      seen.push(bodies.waiting);
      body.release?.();
      seen.push(bodies.waiting);
      await work.promise;
      body.reclaim?.();
      seen.push(bodies.waiting);
      return replyText('done');
    },
    { origin: () => ({}), bodies },
  );
  await listen(made, { host: '127.0.0.1', port: 0 });
  const socket = connect((made.address() as AddressInfo).port, '127.0.0.1');
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.resume();
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 90000\r\n\r\n');
  socket.write('x'.repeat(45_000));
  await until('a part has come', () => bodies.waiting > 0);
  socket.write('x'.repeat(45_000));
  await until('it waits', () => seen.length === 2);
  work.resolve();
  await closed;
  const [whole = 0, held, again] = seen;
  assert.ok(whole > 0);
  assert.deepEqual([held, again, bodies.waiting], [0, whole, 0]);
  await endServer(made);
});
