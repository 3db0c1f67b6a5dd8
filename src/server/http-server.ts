// Node's HTTP servers around the app: limits against slow and oversized clients, errors below the app in the app's own shape, and an
// end that lets requests under way finish.
import { createServer, type IncomingMessage, type RequestListener, type Server, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { ListenOptions as NodeListenOptions } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import type { RequestEnv } from '../http/deps.ts';
import { systemCode } from './trouble.ts';

export type AppFetch = (request: Request, env: RequestEnv) => Response | Promise<Response>;

const limits = {
  maxHeaderSize: 16 * 1024,
  /** Milliseconds until the headers, and the whole request, must be in. */
  headersTimeout: 15_000,
  requestTimeout: 60_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 5_000,
};

/** How long requests under way may take once the server ends, in milliseconds. */
const grace = 15_000;

export interface ServerOptions {
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  /** What the app is told of where a request came from. */
  env(incoming: IncomingMessage): RequestEnv;
  /** Looks at a request before the app does. */
  prepare?(incoming: IncomingMessage): void;
}

export function httpServer(fetch: AppFetch, { tls, env, prepare }: ServerOptions): Server {
  const listener = getRequestListener((request, { incoming }) => fetch(request, env(incoming as IncomingMessage)), {
    errorHandler: () => problem(400, 'the request is malformed'),
  });
  const handle: RequestListener = (incoming, outgoing) => {
    prepare?.(incoming);
    void listener(incoming, outgoing);
  };
  const server = tls
    ? createTlsServer({ ...limits, cert: tls.cert, key: tls.key, minVersion: 'TLSv1.2' }, handle)
    : createServer(limits, handle);
  server.on('clientError', (error, socket) => {
    if (!socket.writable || systemCode(error) === 'ECONNRESET') return void socket.destroy();
    const status = statusOf(systemCode(error));
    const body = JSON.stringify({ message: clientErrors[status] });
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
  });
  return server;
}

const clientErrors = {
  400: 'the request is not well-formed HTTP',
  408: 'the request took too long to arrive',
  431: 'the headers of the request are too large',
} as const;

function statusOf(code: string | undefined): keyof typeof clientErrors {
  if (code === 'HPE_HEADER_OVERFLOW') return 431;
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
}

function problem(status: number, message: string): Response {
  return Response.json({ message }, { status });
}

export function listen(server: Server, options: NodeListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Stops accepting and waits for the requests under way; those that outlast the grace are cut off. */
export async function endServer(server: Server): Promise<void> {
  if (!server.listening) return;
  const ended = new Promise<void>((resolve) => server.close(() => resolve()));
  const idle = setInterval(() => server.closeIdleConnections(), 50);
  const cut = setTimeout(() => server.closeAllConnections(), grace);
  await ended;
  clearInterval(idle);
  clearTimeout(cut);
}
