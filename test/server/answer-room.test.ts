// Answers on their way out: limits on unread bytes, callers that wait or are refused beyond them, slow readers that are
// disconnected, and pipelined requests.
import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { answeredList } from '../../src/http/answer.ts';
import { refused } from '../../src/http/respond.ts';
import { AnswerBudget, type AnswerLimits, ResponseRoom, usualAnswerLimits } from '../../src/server/answer-room.ts';
import { endServer, httpServer, listen } from '../../src/server/http-server.ts';
import { aheadBudget } from '../../src/server/in-turn.ts';
import { replyText, replyWith } from '../support/answering.ts';
import { until } from '../support/until.ts';

const MiB = 1024 * 1024;
/** Reserved for a list before it is made: less than its length. */
const taken = 7 * MiB;
/** Longer than the socket buffers for a client that does not read. */
const length = 8 * MiB;

/** A server whose answers are long lists; the path names the account, as `/caller` or `/caller@tenant`. */
async function server(limits: Partial<AnswerLimits> = {}) {
  const answers = new AnswerBudget({
    ...usualAnswerLimits,
    ofOneTenant: 64 * MiB,
    ofOneCaller: 64 * MiB,
    lookEvery: 20,
    ...limits,
  });
  const ahead = aheadBudget();
  let made = 0;
  let isHeld = false;
  const held: (() => void)[] = [];
  const listening = httpServer(
    async ({ path: asked, room }) => {
      const [, path = '', kind] = asked.split('/');
      const [caller, tenant = 'default'] = path.split('@');
      if (kind === 'short') return replyWith({ made });
      try {
        await room?.take(taken, { tenant, caller });
        made++;
        if (isHeld) await new Promise<void>((resolve) => held.push(resolve));
        if (kind === 'other') {
          room?.left(0);
          room?.takeNow(MiB, { tenant, caller });
          return replyText('x'.repeat(MiB));
        }
        const data = Array.from({ length: length / 65_536 }, () => 'x'.repeat(65_530));
        return { outcome: await answeredList({ data }, room, undefined) };
      } catch (error) {
        return { outcome: refused(error) };
      }
    },
    { origin: () => ({}), answers, ahead },
  );
  await listen(listening, { host: '127.0.0.1', port: 0 });
  const { port } = listening.address() as AddressInfo;
  const sockets: Socket[] = [];

  function send(path: string, count = 1): Sent {
    const socket = connect(port, '127.0.0.1');
    sockets.push(socket);
    const sent = { socket, text: '', closed: new Promise((resolve) => socket.on('close', resolve)) };
    socket.on('error', () => {});
    socket.on('data', (text) => {
      sent.text += text.toString('latin1');
    });
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(count));
    return sent;
  }

  /** A client that reads nothing of the answer. */
  function sendOnly(path: string, count = 1): Sent {
    const sent = send(path, count);
    sent.socket.pause();
    return sent;
  }

  return {
    answers,
    ahead,
    send,
    sendOnly,
    get made() {
      return made;
    },
    /** Suspends the making of lists until the returned function is called. */
    hold() {
      isHeld = true;
      return () => {
        isHeld = false;
        for (const go of held.splice(0)) go();
      };
    },
    end: (grace: number) => endServer(listening, { grace }),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await endServer(listening);
    },
  };
}

interface Sent {
  readonly socket: Socket;
  readonly text: string;
  readonly closed: Promise<unknown>;
}

const isWhole = ({ text }: Sent): boolean => text.length > length && text.endsWith('}');

test('unread answers are counted, and no longer once they are read or broken off', async () => {
  await using s = await server();
  const unread = Array.from({ length: 4 }, () => s.sendOnly('/a'));
  await until('all of them wait', () => s.made === 4);
  // Bytes that the system took no longer count as unread.
  await until('they are counted', () => s.answers.unread > MiB && s.answers.unread <= 4 * (length + 1000));
  unread[0]?.socket.destroy();
  unread[1]?.socket.destroy();
  for (const each of unread.slice(2)) each.socket.resume();
  await until('two are whole', () => unread.filter(isWhole).length === 2);
  await until('nothing waits', () => s.answers.unread === 0);
});

test('who finds no room waits for it, and gets it when others have read', async () => {
  await using s = await server({ unread: 3 * taken });
  const unread = Array.from({ length: 3 }, (_, n) => s.sendOnly(`/${n}`));
  await until('they are made', () => s.made >= 2);
  const made = s.made;
  const later = Array.from({ length: 4 }, (_, n) => s.send(`/later${n}`));
  for (const each of unread) each.socket.resume();
  await until('all are whole', () => [...unread, ...later].filter(isWhole).length === 7);
  assert.ok(made <= 3 && s.made === 7, `${made} ${s.made}`);
  await until('nothing waits', () => s.answers.unread === 0);
});

test('who finds none in time gets 503, before anything is made, and short answers go out all the while', async () => {
  await using s = await server({ unread: 2 * taken, patience: 100 });
  const unread = Array.from({ length: 3 }, (_, n) => s.sendOnly(`/${n}`));
  await until('they are made', () => s.answers.unread > taken);
  const { made } = s;
  const late = Array.from({ length: 5 }, (_, n) => s.send(`/late${n}`));
  for (const each of late) await until('an answer', () => each.text.endsWith('}'));
  for (const { text } of late) {
    assert.match(text, /^HTTP\/1\.1 503 [\s\S]*Retry-After: [1-9]\d*\r\n[\s\S]*"message":"too many answers wait/i);
  }
  const short = s.send('/a/short');
  await until('a short answer', () => short.text.endsWith('}'));
  assert.match(short.text, new RegExp(`\\{"made":${made}\\}$`));
  for (const each of unread) each.socket.destroy();
  const again = s.send('/again');
  await until('there is room again', () => isWhole(again));
});

test('who breaks off while a list is made has its room until the list is there', async () => {
  await using s = await server({ unread: 64 * MiB, ofOneCaller: 3 * taken + 3 * MiB });
  const goOn = s.hold();
  for (let round = 0; round < 5; round++) {
    // Some end with an answer of another kind.
    const gone = Array.from({ length: 6 }, (_, n) => s.send(n % 2 === 0 ? '/a' : '/a/other'));
    await until('those that find room are begun', () => s.made >= 3);
    for (const { socket } of gone) socket.destroy();
    await Promise.all(gone.map(({ closed }) => closed));
  }
  const other = s.send('/b');
  await until('somebody else has room', () => s.made === 4);
  assert.equal(s.answers.unread, 4 * taken);
  goOn();
  await until('that one is whole', () => isWhole(other));
  await until('nothing waits', () => s.answers.unread === 0);
  const again = s.send('/a');
  await until('there is room again', () => isWhole(again));
});

test('no more wait for room than may; who breaks off waits no more', async () => {
  await using s = await server({ unread: taken, queued: 4, queuedOfOneTenant: 3, queuedOfOneCaller: 2 });
  s.sendOnly('/first');
  await until('there is no room', () => s.made === 1);
  const one = Array.from({ length: 4 }, () => s.send('/one'));
  await until('two are too many', () => one.filter(({ text }) => text.includes(' 503 ')).length === 2);
  const others = Array.from({ length: 3 }, (_, n) => s.send(`/other${n}`));
  await until('and two of the others', () => others.filter(({ text }) => text.includes(' 503 ')).length === 2);
  const another = Array.from({ length: 3 }, (_, n) => s.send(`/another${n}@two`));
  await until('and two of another tenant', () => another.filter(({ text }) => text.includes(' 503 ')).length === 2);
  for (const { socket, text } of [...one, ...others, ...another]) if (text === '') socket.destroy();
  await until('their places are free', () => {
    const next = s.send('/next');
    return next.text === '';
  });
});

test('nobody holds more than their share, and no tenant', async () => {
  await using s = await server({ unread: 5 * taken, ofOneTenant: 3 * taken, ofOneCaller: 2 * taken, patience: 100 });
  const greedy = Array.from({ length: 6 }, () => s.sendOnly('/greedy'));
  await until('the share is used', () => s.made >= 2);
  const refusedOnes = Array.from({ length: 3 }, () => s.send('/greedy'));
  for (const each of refusedOnes) await until('an answer', () => each.text.endsWith('}'));
  assert.ok(s.made <= 3 && refusedOnes.every(({ text }) => text.startsWith('HTTP/1.1 503')));
  const neighbour = s.send('/neighbour');
  await until('the neighbour is served', () => isWhole(neighbour));
  const colluding = Array.from({ length: 3 }, (_, n) => s.sendOnly(`/colluding${n}`));
  await until('the tenant has its share', () => s.answers.unread > 2 * taken);
  const late = s.send('/late');
  await until('an answer', () => late.text.endsWith('}'));
  assert.match(late.text, /^HTTP\/1\.1 503/);
  const neighbours = s.send('/neighbour@two');
  await until('the neighbour tenant is served', () => isWhole(neighbours));
  for (const { socket } of [...greedy, ...colluding]) socket.destroy();
});

test('who reads nothing is cut off when others wait for the room, and not before', async () => {
  await using s = await server({ unread: 2 * taken, grace: 1500, slowest: 1000 });
  const unread = Array.from({ length: 2 }, (_, n) => s.sendOnly(`/${n}`));
  let cut = 0;
  for (const { closed } of unread) void closed.then(() => cut++);
  await until('they are made', () => s.answers.unread > taken);
  await new Promise((resolve) => setTimeout(resolve, 2000));
  const { unread: before } = s.answers;
  assert.ok(before > taken, 'nobody is cut off while there is nobody else');
  const honest = Array.from({ length: 5 }, (_, n) => s.send(`/honest${n}`));
  await until('the others are served', () => honest.every(isWhole));
  for (const { socket } of unread) socket.resume();
  await until('those are gone', () => cut === 2);
  assert.ok(!unread.some(isWhole));
  assert.equal(s.answers.unread, 0);
});

test('who does not wait for room has the slow cut off too', async () => {
  const answers = new AnswerBudget({ ...usualAnswerLimits, grace: 50 });
  const roomWith = (socket: Socket): ResponseRoom => {
    const outgoing = new ServerResponse(new IncomingMessage(socket));
    outgoing.assignSocket(socket);
    return new ResponseRoom(outgoing, answers);
  };
  const [slow, other] = [new Socket(), new Socket()];
  const holder = { tenant: 'default', caller: 'a' };
  const unread = roomWith(slow);
  unread.takeNow(32 * MiB, holder);
  unread.left(32 * MiB);
  const wanted = roomWith(other);
  const refused = () => assert.throws(() => wanted.takeNow(MiB, holder), /wait to be read/);
  refused();
  assert.ok(!slow.destroyed, 'it may just be reading');
  await until('it is cut off', () => {
    if (!slow.destroyed) refused();
    return slow.destroyed;
  });
});

test('how long somebody has been reading begins with the answer that is sent', async () => {
  const outgoing = new ServerResponse(new IncomingMessage(new Socket()));
  const room = new ResponseRoom(outgoing, new AnswerBudget());
  const holder = { tenant: 'default', caller: 'a' };
  await room.take(MiB, holder);
  room.left(0);
  room.takeNow(2 * MiB, holder);
  const later = performance.now() + usualAnswerLimits.grace + 1;
  assert.ok(!room.isSlow(later, usualAnswerLimits.grace, usualAnswerLimits.slowest));
  room.left(2 * MiB);
  assert.ok(room.isSlow(later + 1000, usualAnswerLimits.grace, usualAnswerLimits.slowest));
});

test('who reads fast enough is not, however many wait', async () => {
  await using s = await server({ unread: taken, grace: 1500, slowest: 1000 });
  const steady = s.sendOnly('/steady');
  steady.socket.on('data', () => steady.socket.pause());
  const began = performance.now();
  const reading = setInterval(() => steady.socket.resume(), 25);
  await until('it is made', () => s.made === 1);
  const others = Array.from({ length: 3 }, (_, n) => s.send(`/other${n}`));
  await until('all are served', () => [steady, ...others].every(isWhole));
  assert.ok(performance.now() - began > 1500, 'it took longer than nothing at all may be read');
  clearInterval(reading);
});

test('requests that are sent ahead are answered one by one, in their order', async () => {
  await using s = await server();
  const ahead = s.sendOnly('/a', 8);
  await until('the first is made', () => s.made === 1);
  const short = s.send('/a/short');
  await until('others are served', () => short.text.endsWith('}'));
  assert.match(short.text, /"made":1\}$/, 'one answer is made for a client that reads none');
  ahead.socket.resume();
  await until('all are made, one after the other', () => s.made === 8 && ahead.text.length > 8 * length);
  assert.equal(ahead.text.split('HTTP/1.1 200').length, 9);
  const order = s.send('/a/short', 20);
  await until('short ones too', () => order.text.split('HTTP/1.1 200').length === 21);
});

/** Requests with short answers; each body is read only when its turn comes. */
const withBodies = (count: number, bytes: number): string =>
  `POST /a/short HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`.repeat(count);

/** A request whose answer is being worked on until `goOn`. */
async function held(s: Awaited<ReturnType<typeof server>>) {
  const goOn = s.hold();
  const sent = s.send('/a');
  await until('it is worked on', () => s.made === 1);
  return { sent, goOn };
}

test('a connection on which too many are sent ahead ends', async () => {
  await using s = await server();
  const flood = s.sendOnly('/a', 1000);
  await flood.closed;
  assert.ok(s.made <= 1);
});

test('so does one on which too much is', async () => {
  await using s = await server();
  const { sent: flood, goOn } = await held(s);
  flood.socket.write(withBodies(13, 60_000));
  await until('they wait', () => s.ahead.waiting > 13 * 60_000);
  assert.ok(!flood.socket.destroyed);
  flood.socket.write(withBodies(6, 60_000));
  await flood.closed;
  await until('nothing of it is kept', () => s.ahead.waiting === 0);
  goOn();
});

test('so does one on which requests are sent ahead that would be refused', async () => {
  for (const head of ['Expect: wonders\r\n', '', 'Host: b\r\n']) {
    await using s = await server();
    const { sent, goOn } = await held(s);
    sent.socket.write(`GET /a HTTP/1.1\r\nHost: a\r\n${head}\r\n`.repeat(1000));
    await sent.closed;
    await until('nothing of it is kept', () => s.ahead.waiting === 0);
    goOn();
  }
});

test('a request that is sent ahead counts as what it takes, by its headers too', async () => {
  const usual = `GET /a/short HTTP/1.1\r\nHost: localhost:8080\r\nAuthorization: Bearer ${'x'.repeat(60)}\r\n\r\n`;
  const many = Array.from({ length: 900 }, (_, n) => `${n}:b\r\n`).join('');
  for (const [request, most, tooMany] of [
    [usual, 250, 350],
    [`GET /a/short HTTP/1.1\r\nHost: a\r\n${many}\r\n`, 15, 25],
  ] as const) {
    await using s = await server();
    const { sent, goOn } = await held(s);
    sent.socket.write(request.repeat(most));
    await until('they wait', () => s.ahead.waiting > 600_000);
    goOn();
    await until('all are answered', () => sent.text.split('HTTP/1.1 200').length === most + 2);
    assert.equal(s.ahead.waiting, 0);
    s.hold();
    const flood = s.send('/b');
    await until('it is worked on', () => s.made === 2);
    flood.socket.write(request.repeat(tooMany));
    await flood.closed;
  }
});

test('bodies that are sent ahead come whole', async () => {
  await using s = await server();
  const { sent, goOn } = await held(s);
  sent.socket.write(withBodies(10, 60_000));
  await until('they wait', () => s.ahead.waiting > 600_000);
  sent.socket.write(withBodies(3, 200_000));
  goOn();
  await until('all are answered', () => sent.text.split('HTTP/1.1 200').length === 15);
  assert.equal(s.ahead.waiting, 0);
});

test('what is sent ahead is bounded over all connections, and who ends leaves room', async () => {
  await using s = await server({ unread: 640 * MiB, ofOneTenant: 640 * MiB, ofOneCaller: 640 * MiB });
  const goOn = s.hold();
  const floods = Array.from({ length: 80 }, () => s.send('/a'));
  await until('all are worked on', () => s.made === floods.length);
  for (const { socket } of floods) socket.write(withBodies(15, 60_000));
  await until('some are cut off', () => floods.some(({ socket }) => socket.destroyed));
  assert.ok(s.ahead.waiting <= 64 * MiB);
  const one = s.send('/b/short');
  await until('others are served', () => one.text.includes('HTTP/1.1 200'));
  for (const { socket } of floods) socket.destroy();
  await until('there is room again', () => s.ahead.waiting === 0);
  goOn();
});

test('a server that ends tells those who use their connections so, and cuts off who reads nothing', async () => {
  const s = await server();
  const { sent, goOn } = await held(s);
  const unread = s.sendOnly('/b', 3);
  await until('its first is made', () => s.made === 2);
  // From then on Node no longer tracks the connection.
  unread.socket.write('CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n');
  await sleep(50);
  const begun = performance.now();
  const ended = s.end(1000);
  goOn();
  await sent.closed;
  assert.match(sent.text, /^connection: close$/im);
  await ended;
  assert.ok(performance.now() - begun < 10_000);
  await s[Symbol.asyncDispose]();
});
