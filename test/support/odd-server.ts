// A TCP server that answers each connection with bytes of the test's choice: whole answers, endless ones and drips.
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** Says something on a connection. */
export type Say = (socket: Socket) => void;

export interface OddServer {
  readonly port: number;
  /** Answers the next connections. */
  say: Say;
  /** Bytes written to all connections. */
  readonly sent: () => number;
  /** Connections that are open. */
  readonly open: () => number;
  close(): void;
}

/** Listens at `path`, or on some port of this machine. `atOnce`: it speaks before it is spoken to. */
export async function oddServer({
  atOnce = false,
  path,
}: {
  atOnce?: boolean;
  path?: string;
} = {}): Promise<OddServer> {
  const sockets = new Set<Socket>();
  let gone = 0;
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      sockets.delete(socket);
      gone += socket.bytesWritten;
    });
    socket.resume();
    if (atOnce) odd.say(socket);
    else socket.once('data', () => odd.say(socket));
  });
  if (path === undefined) server.listen(0, '127.0.0.1');
  else server.listen(path);
  await once(server, 'listening');
  // Cast: a server that listens on a port has such an address; one at a path has no port.
  const { port } = server.address() as AddressInfo;
  const odd: OddServer = {
    port,
    say: () => {},
    sent: () => [...sockets].reduce((sum, { bytesWritten }) => sum + bytesWritten, gone),
    open: () => sockets.size,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
  return odd;
}

/** Says `first`, then `piece` for ever, as fast as it is read. */
export const flood =
  (first: string, piece: string): Say =>
  (socket) => {
    socket.write(first);
    const many = Buffer.from(piece.repeat(Math.ceil(65_536 / piece.length)));
    const go = (): void => {
      if (socket.destroyed) return;
      socket.write(many, () => setImmediate(go));
    };
    go();
  };

/** Says `first`, then `piece` every few milliseconds, for ever. */
export const drip =
  (first: string, piece: string, every = 20): Say =>
  (socket) => {
    socket.write(first);
    const timer = setInterval(() => socket.write(piece), every);
    socket.once('close', () => clearInterval(timer));
  };

/** HTTP's first lines, for a JSON answer. */
export const jsonHead = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';

const body = (text: string): string => `${jsonHead}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;

/** HTTP answers that never end, or that the request did not ask for. */
export const oddHttp: Readonly<Record<string, Say>> = {
  'nothing at all': () => {},
  'the end of the connection': (socket) => socket.end(),
  'no HTTP': (socket) => socket.end('hello\r\n\r\n'),
  'another protocol': (socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
  'another protocol, by a list': (socket) => socket.write('HTTP/1.1 101 x\r\nupgrade: h2c, x\r\n\r\n'),
  'a status that there is not': (socket) => socket.end('HTTP/1.1 999 x\r\ncontent-length: 2\r\n\r\n{}'),
  'hints without an end': flood('', 'HTTP/1.1 103 Early Hints\r\n\r\n'),
  '100 without an end': flood('', 'HTTP/1.1 100 Continue\r\n\r\n'),
  'headers without an end': flood('HTTP/1.1 200 OK\r\n', 'a: b\r\n'),
  'headers that drip': drip('HTTP/1.1 200 OK\r\n', 'a: b\r\n'),
  'a body without an end': flood(`${jsonHead}\r\n`, ' '),
  'a body that drips': drip(`${jsonHead}\r\n`, ' '),
  'chunks that drip': drip(`${jsonHead}transfer-encoding: chunked\r\n\r\n`, '1\r\n \r\n'),
  'a chunk with a long extension': flood(`${jsonHead}transfer-encoding: chunked\r\n\r\n1;`, 'a'),
  'a body that stops': (socket) => socket.write(`${jsonHead}content-length: 1000\r\n\r\n{`),
  'a body that is cut': (socket) => socket.end(`${jsonHead}content-length: 1000\r\n\r\n{`),
  'a redirect': (socket) =>
    socket.end('HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n'),
  'deep JSON': (socket) => socket.end(body('['.repeat(100_000) + ']'.repeat(100_000))),
  'deep objects': (socket) => socket.end(body('{"a":'.repeat(40_000))),
  'no JSON': (socket) => socket.end(body('hello')),
  'a list': (socket) => socket.end(body('[]')),
};
