// Node's HTTP servers around the app: limits against slow and oversized clients, errors below the app in the app's own shape, and an
// end that lets requests under way finish.
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { ListenOptions as NodeListenOptions } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import type { RequestEnv } from '../http/deps.ts';
import { isForApp, refuseBelowApp } from './http-refusals.ts';

export type AppFetch = (request: Request, env: RequestEnv) => Response | Promise<Response>;

/** Against clients that are slow, or too many. Times are milliseconds. */
export interface HttpLimits {
  readonly maxHeaderSize: number;
  /** Until the headers, and the whole request, must be in. */
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  /** Between two requests of a connection. */
  readonly keepAliveTimeout: number;
  /** How often connections are looked at. */
  readonly connectionsCheckingInterval: number;
  /** Without a byte in either direction: a client that stopped reading its answer. Longer than any request takes to be answered. */
  readonly silence: number;
  readonly maxConnections: number;
}

const usualLimits: HttpLimits = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 15_000,
  requestTimeout: 60_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 5_000,
  silence: 600_000,
  maxConnections: 8192,
};

export interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** Browsers come back with HTTPS alone for a year. */
const strictTransport = 'max-age=31536000';

/** How long requests under way may take once the server ends, in milliseconds. */
const grace = 15_000;

export interface ServerOptions {
  readonly tls?: Certificate | undefined;
  readonly limits?: Partial<HttpLimits>;
  /** What the app is told of where a request came from. */
  env(incoming: IncomingMessage): RequestEnv;
  /** Looks at a request before the app does. */
  prepare?(incoming: IncomingMessage): void;
}

export function httpServer(fetch: AppFetch, { tls, env, prepare, limits: given }: ServerOptions): Server {
  const { silence, maxConnections, ...limits } = { ...usualLimits, ...given, requireHostHeader: false };
  const listener = getRequestListener((request, { incoming }) => fetch(request, env(incoming as IncomingMessage)), {
    errorHandler: () => problem(400, 'the request is malformed'),
  });
  const handle: RequestListener = (incoming, outgoing) => {
    prepare?.(incoming);
    if (!isForApp(incoming, outgoing)) return;
    if (tls) outgoing.setHeader('Strict-Transport-Security', strictTransport);
    void listener(incoming, outgoing);
  };
  const server = tls ? createTlsServer({ ...limits, ...secure(tls) }, handle) : createServer(limits, handle);
  server.maxConnections = maxConnections;
  server.setTimeout(silence);
  refuseBelowApp(server);
  return server;
}

/** Takes another certificate for the connections to come. `server` is one that was made with TLS. */
export function replaceCertificate(server: Server, certificate: Certificate): void {
  if (server instanceof TlsServer) server.setSecureContext(secure(certificate));
}

function secure({ cert, key }: Certificate) {
  return { cert, key, minVersion: 'TLSv1.2', honorCipherOrder: true } as const;
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
