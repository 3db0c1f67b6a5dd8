// A syslog server for tests, over TCP or TLS: it reads octet-counted messages (RFC 6587 §3.4.1) and closes a connection
// when it has read all of it, as real ones do. It can be killed: then unread messages are lost, and the sender finds
// the connection broken.
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { freePort } from './free-port.ts';
import { certificate, privateKey } from './localhost-certificate.ts';

export interface SyslogServerOptions {
  readonly tls?: boolean;
  readonly host?: string;
  /** Default: a free port, which stays free for it after it was killed. */
  readonly port?: number;
  /** Stops reading a connection after this many bytes. */
  readonly deafAfter?: number;
  /** How it ends each connection after its first read. */
  readonly hangUp?: 'close' | 'reset';
}

/** Takes complete messages from the front of the bytes; returns them and the rest. */
export function takeMessages(bytes: Buffer): { readonly messages: string[]; readonly rest: Buffer } {
  const messages: string[] = [];
  let rest = bytes;
  for (;;) {
    const space = rest.indexOf(0x20);
    if (space < 0) break;
    const count = rest.toString('latin1', 0, space);
    if (!/^[1-9][0-9]*$/.test(count)) throw new Error(`no octet count: ${count.slice(0, 40)}`);
    const end = space + 1 + Number(count);
    if (rest.length < end) break;
    messages.push(rest.toString('utf8', space + 1, end));
    rest = rest.subarray(end);
  }
  return { messages, rest };
}

export class SyslogServer {
  readonly messages: string[] = [];
  connections = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  readonly #tls: boolean;

  private constructor(server: Server, tls: boolean) {
    this.#server = server;
    this.#tls = tls;
  }

  static async listen(options: SyslogServerOptions = {}): Promise<SyslogServer> {
    const { tls = false, host = '127.0.0.1', port = await freePort() } = options;
    const take = (socket: Socket): void => self.#take(socket, options);
    const server = tls
      ? createTlsServer({ cert: certificate, key: privateKey }, take)
      : createServer({ allowHalfOpen: true }, take);
    const self = new SyslogServer(server, tls);
    server.on('error', () => {});
    server.on('tlsClientError', () => {});
    server.on('connection', (socket: Socket) => self.#know(socket));
    server.listen(port, host);
    await once(server, 'listening');
    return self;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address ? address.port : 0;
  }

  /** The JSON at the end of each message. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into records of every shape
  get records(): any[] {
    return this.messages.map(jsonOf);
  }

  /** Stops listening, and breaks off all connections, read or not. */
  async kill(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) {
      // Under TLS the system itself discards unread data like this.
      if (this.#tls) socket.destroy();
      else socket.resetAndDestroy();
    }
    await closed;
  }

  #take(socket: Socket, { deafAfter = Number.POSITIVE_INFINITY, hangUp }: SyslogServerOptions): void {
    this.connections++;
    this.#know(socket);
    let rest: Buffer = Buffer.alloc(0);
    let read = 0;
    socket.on('data', (piece: Buffer) => {
      try {
        const taken = takeMessages(Buffer.concat([rest, piece]));
        this.messages.push(...taken.messages);
        rest = taken.rest;
      } catch {
        socket.destroy();
      }
      read += piece.length;
      if (hangUp === 'close') socket.end();
      if (hangUp === 'reset') socket.resetAndDestroy();
      if (read > deafAfter) socket.pause();
    });
    socket.on('end', () => socket.end());
  }

  #know(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
  }
}

/** A message's JSON, after its structured data. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into records of every shape
export function jsonOf(message: string): any {
  return JSON.parse(message.slice(message.indexOf('] {') + 2));
}
