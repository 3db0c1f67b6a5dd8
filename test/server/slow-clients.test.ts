// Clients that send slowly, never, or don't read: each is disconnected while others are served.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import type { ApiRequest } from '../../src/http/request.ts';
import type { Reply } from '../../src/http/request-log.ts';
import { type Certificate, endServer, type HttpLimits, httpServer, listen } from '../../src/server/http-server.ts';
import { bodyText, replyWith } from '../support/answering.ts';
import { certificate, privateKey } from '../support/localhost-certificate.ts';

const short: Partial<HttpLimits> = {
  headersTimeout: 150,
  requestTimeout: 300,
  keepAliveTimeout: 150,
  connectionsCheckingInterval: 30,
  silence: 400,
};

async function server(limits: Partial<HttpLimits>, tls?: Certificate) {
  const answer = async (request: ApiRequest): Promise<Reply> => {
    if (request.path === '/endless') {
      const chunk = new Uint8Array(65_536);
      const stream = new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(chunk) });
      return { outcome: { status: 200, body: {}, stream } };
    }
    return replyWith({ length: (await bodyText(request)).length });
  };
  const made = httpServer(answer, { origin: () => ({}), limits, tls });
  await listen(made, { host: '127.0.0.1', port: 0 });
  after(() => {
    made.closeAllConnections();
    return endServer(made);
  });
  const { port } = made.address() as AddressInfo;
  return { made, port, url: `http://127.0.0.1:${port}` };
}

/** Everything that comes back until the server disconnects. */
async function until(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  socket.on('error', () => {});
  await new Promise((resolve) => socket.on('close', resolve));
  return text;
}

/** Sends `pieces` one by one for as long as the server listens. */
function drip(socket: Socket, pieces: () => string): void {
  const timer = setInterval(() => socket.writable && socket.write(pieces()), 20);
  socket.on('close', () => clearInterval(timer));
}

test('many who never finish their headers are let go with 408, and others are served meanwhile', async () => {
  const { port, url } = await server(short);
  const slow = Array.from({ length: 50 }, (_, index) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: a\r\n'));
    let sent = 0;
    // Every second one falls silent; bytes that the others still send can cut the answer off.
    if (index % 2 === 0) drip(socket, () => `X-${sent++}: y\r\n`);
    return until(socket);
  });
  assert.equal((await fetch(url)).status, 200);
  for (const [index, answer] of (await Promise.all(slow)).entries()) {
    if (index % 2 === 1) assert.match(answer, /^HTTP\/1\.1 408 .*took too long to arrive/s);
    else assert.doesNotMatch(answer, /^HTTP\/1\.1 200/);
  }
});

test('a body that trickles in is given up', async () => {
  const { port } = await server(short);
  const socket = connect(port, '127.0.0.1', () =>
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n'),
  );
  drip(socket, () => 'x');
  assert.doesNotMatch(await until(socket), /^HTTP\/1\.1 200/);
});

test('who says nothing at all, or nothing more, is let go', async () => {
  const { port } = await server(short);
  assert.match(await until(connect(port, '127.0.0.1')), /^(HTTP\/1\.1 408 .*)?$/s);
  const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'));
  assert.match(await until(socket), /^HTTP\/1\.1 200 OK/);
});

/** The first bytes of a TLS handshake, as a client sends them. */
const hello = Buffer.from('1603010200010001fc0303', 'hex');
const secure = { cert: Buffer.from(certificate), key: Buffer.from(privateKey) };

test('a handshake of TLS that is not begun, left hanging, or trickles in is cut, and others are served meanwhile', async () => {
  const { port } = await server(short, secure);
  const silent = Array.from({ length: 50 }, () => until(connect(port, '127.0.0.1')));
  const half = Array.from({ length: 50 }, () => {
    const socket = connect(port, '127.0.0.1', () => socket.write(hello));
    return until(socket);
  });
  const slow = Array.from({ length: 10 }, () => {
    const socket = connect(port, '127.0.0.1', () => socket.write(hello));
    drip(socket, () => 'x');
    return until(socket);
  });
  const other = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }, () =>
    other.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'),
  );
  assert.match(await until(other), /^HTTP\/1\.1 200 OK/);
  for (const said of await Promise.all([...silent, ...half, ...slow])) assert.equal(said, '');
});

test('handshakes that hang do not hold the end of a server up', async () => {
  const { made, port } = await server(short, secure);
  const gone = [];
  for (const bytes of ['', hello]) {
    const accepted = once(made, 'connection');
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    gone.push(until(socket));
    await accepted;
  }
  await endServer(made);
  assert.deepEqual(await Promise.all(gone), ['', '']);
});

test('what is no TLS is cut at once', async () => {
  const { port } = await server({}, secure);
  for (const bytes of ['GET / HTTP/1.1\r\nHost: a\r\n\r\n', 'SSH-2.0-a\r\n', Buffer.alloc(5000, 0xff)]) {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    assert.doesNotMatch(await until(socket), /HTTP/);
  }
});

test('who does not read the answer is let go', async () => {
  const { port, made } = await server(short);
  const taken = once(made, 'connection');
  const socket = connect(port, '127.0.0.1', () => {
    socket.write('GET /endless HTTP/1.1\r\nHost: a\r\n\r\n');
    socket.pause();
  });
  socket.on('error', () => {});
  // Observed on the server's side, since a client that does not read is not notified.
  const [accepted] = await taken;
  await once(accepted, 'close');
  socket.destroy();
});

test('no more connections than there may be', async () => {
  const { port } = await server({ maxConnections: 3 });
  const open = Array.from({ length: 3 }, () => connect(port, '127.0.0.1'));
  await Promise.all(open.map((socket) => once(socket, 'connect')));
  assert.equal(await until(connect(port, '127.0.0.1')), '');
  for (const socket of open) socket.destroy();
});
