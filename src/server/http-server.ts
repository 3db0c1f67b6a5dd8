// Node's HTTP servers around the app: limits against slow and oversized clients, the headers of a reverse proxy, and a
// shutdown that lets requests under way finish.

import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { Server as NetServer, ListenOptions as NodeListenOptions, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { getRequestListener } from '@hono/node-server';
import { systemCode } from '../errors.ts';
import type { ApiRequest } from '../http/request.ts';
import type { Answer, Reply } from '../http/request-log.ts';
import { headersOf, respond, wholeOf } from '../http/respond.ts';
import { plainAddress } from '../model/addresses.ts';
import { readAuthority } from '../model/hosts.ts';
import { AnswerBudget, ResponseRoom } from './answer-room.ts';
import { type RequestTarget, targetOf } from './api-request.ts';
import { BodyBudget, Incoming, RequestBody } from './body-budget.ts';
import { ClientCertificates } from './client-certificates.ts';
import {
  type Dialect,
  endInTime,
  headerRefusal,
  ownDialect,
  packetOf,
  parserRefusal,
  type Refusal,
  refuseInResponse,
  refuseOnSocket,
  refuseUnreadable,
  targetRefusal,
  tunnel,
} from './http-refusals.ts';
import { afterAnswers, aheadBudget, atOnce, type Handle, oneByOne, together } from './in-turn.ts';
import { Listing, listingOf } from './list-method.ts';
import { sendText } from './short-answer.ts';

/** Limits against slow or too many clients. Times are in milliseconds. */
export interface HttpLimits {
  readonly maxHeaderSize: number;
  /** Limits for receiving the headers, and the whole request; a TLS handshake may take as long as the headers. */
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  /** Limit for the pause between two requests on a connection. */
  readonly keepAliveTimeout: number;
  /** Interval at which connections are checked. */
  readonly connectionsCheckingInterval: number;
  /**
   * Without a byte in either direction, as from a client that stopped reading its answer. Longer than any request
   * takes.
   */
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

/** Browsers use only HTTPS for a year. */
const strictTransport = 'max-age=31536000';

/** Milliseconds that requests under way may take after the shutdown begins. */
const usualGrace = 15_000;

/** Origin of a request: the properties that its bytes do not tell. */
export type RequestOrigin = Pick<ApiRequest, 'local' | 'remoteAddress' | 'surface' | 'tangClients' | 'awsRegion'>;

interface ServerOptions {
  readonly tls?: Certificate | undefined;
  readonly limits?: Partial<HttpLimits>;
  /** Budget of request bodies. Default: one for this server alone. */
  readonly bodies?: BodyBudget;
  /** Budget of unread answers. Default: one for this server alone. */
  readonly answers?: AnswerBudget;
  /** Budget of pipelined requests. Default: one for this server alone. */
  readonly ahead?: BodyBudget;
  origin(incoming: IncomingMessage): RequestOrigin;
  /** Whether clients of new connections are asked for a certificate; only with TLS. Default: never. */
  asksCertificates?(): boolean;
  /** Called with each request before anything else reads it. */
  prepare?(incoming: IncomingMessage): void;
  /** Answers clients that send their request and then end their side, as `nc -N` does. Default: they are cut off. */
  readonly allowHalfOpen?: boolean;
  /** Wording of refusals for requests that never reach the app. Default: the app's. */
  readonly dialect?: Dialect;
}

export function httpServer(answer: Answer, options: ServerOptions): Server {
  const { tls, origin, prepare, limits: given, ahead = aheadBudget(), dialect = ownDialect } = options;
  const certificates = tls && options.asksCertificates && new ClientCertificates(options.asksCertificates);
  const { bodies = new BodyBudget(), answers = new AnswerBudget() } = options;
  // A request without a body needs no readable stream.
  const isLate = (reply: Reply | undefined, socket: Socket) =>
    (reply?.outcome.status === 401 || reply?.outcome.status === 403) && certificates?.isLate(socket) === true;
  const always = { requireHostHeader: false, optimizeEmptyRequests: true, IncomingMessage: Incoming };
  const { silence, maxConnections, ...limits } = { ...usualLimits, ...given, ...always };
  const letGo: LetGo = (incoming, outgoing) => new RequestBody(incoming, outgoing, bodies).letGo();
  const begin = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const target = targetOf(incoming);
    const body = new RequestBody(incoming, outgoing, bodies);
    if (!target) {
      body.letGo();
      refuseUnreadable(outgoing, dialect);
      return;
    }
    const room = new ResponseRoom(outgoing, answers);
    const finish = (reply: Reply | undefined): void => {
      body.letGo();
      body.done();
      room.made();
      // When shutting down, or if another connection would ask for a certificate, ask the client to close this one.
      if (!server.listening || isLate(reply, incoming.socket)) outgoing.shouldKeepAlive = false;
      if (reply) send(incoming, outgoing, reply, limits.keepAliveTimeout);
      else refuseUnreadable(outgoing, dialect);
    };
    const certificate = certificates?.of(incoming.socket);
    const isGone = (): boolean => outgoing.destroyed;
    answer(requestOf(incoming, target, { ...origin(incoming), certificate }, { body, room, isGone })).then(finish, () =>
      finish(undefined),
    );
  };
  const handle: Handle = (incoming, outgoing, atItsTime) => {
    const target = targetRefusal(incoming);
    prepare?.(incoming);
    if (incoming.httpVersion === '1.0' && incoming.headers.host === undefined) nameHost(incoming);
    if (!isForApp(incoming, outgoing, dialect, letGo, target)) return;
    if (tls) outgoing.setHeader('Strict-Transport-Security', strictTransport);
    // Read now: once the connection breaks off, its address is unknown.
    peerAddress(incoming.socket);
    atItsTime(() => begin(incoming, outgoing));
  };
  // Over TLS a request and the end of its connection may come together, and the end would be handled first.
  const inTurn = oneByOne(handle, tls ? atOnce : together, ahead);
  const handshakeTimeout = limits.headersTimeout;
  const server = tls
    ? createTlsServer({ ...limits, handshakeTimeout, ...secure(tls) }, inTurn)
    : createServer(limits, inTurn);
  certificates?.askAt(server);
  server.maxConnections = maxConnections;
  // A switch of Node that its types lack.
  Object.assign(server, { httpAllowHalfOpen: options.allowHalfOpen ?? false });
  // 100 Continue is sent when the body is asked for.
  server.on('checkContinue', inTurn);
  server.on('checkExpectation', inTurn);
  server.setTimeout(silence);
  refuseBelowApp(server, dialect);
  server.on('connection', remember(server));
  return server;
}

/** The header Host as it came, of requests that have another now. */
const sentHosts = new WeakMap<IncomingMessage, string | undefined>();

function requestOf(
  incoming: IncomingMessage,
  { path, search }: RequestTarget,
  { certificate, ...origin }: RequestOrigin & Pick<ApiRequest, 'certificate'>,
  own: Pick<ApiRequest, 'body' | 'room' | 'isGone'>,
): ApiRequest {
  const { method = '', headers } = incoming;
  const { local, remoteAddress, surface, tangClients, awsRegion } = origin;
  const from = { local, remoteAddress, certificate, surface, tangClients, awsRegion };
  const sentHost = sentHosts.get(incoming);
  return { method, path, search, headers, ...from, ...(sentHost !== undefined && { sentHost }), ...own };
}

function send(incoming: IncomingMessage, outgoing: ServerResponse, { outcome, state }: Reply, keptFor: number): void {
  const { status, content, stream } = outcome;
  const whole = wholeOf(outcome);
  if (typeof whole === 'string') {
    sendText(outgoing, outcome, state, whole, keptFor);
    return;
  }
  const isHead = incoming.method === 'HEAD';
  if (whole === undefined && !isHead) {
    // Any failure here, such as a library that cannot be loaded because file descriptors ran out, ends this connection
    // only.
    sendInPieces(incoming, outgoing, { outcome, state }).catch(() => {
      void stream?.cancel().catch(() => {});
      outgoing.destroy();
    });
    return;
  }
  void stream?.cancel();
  const headers = headersOf(outcome, state);
  const length = content instanceof Uint8Array ? { 'Content-Length': content.length } : {};
  outgoing.writeHead(status, { ...headers, ...length });
  outgoing.end(isHead ? undefined : whole);
}

/**
 * The library that streams an answer. Loading it and Node's `Response` takes some 30 ms, so it is left to the first
 * answer that needs them.
 */
let adapter: typeof getRequestListener | undefined;

async function sendInPieces(incoming: IncomingMessage, outgoing: ServerResponse, reply: Reply): Promise<void> {
  adapter ??= (await import('@hono/node-server')).getRequestListener;
  const listener = adapter(() => respond(reply.outcome, reply.state), { autoCleanupIncoming: false });
  await listener(incoming, outgoing);
}

/** Uses another certificate for new connections. `server` must have been made with TLS. */
export function replaceCertificate(server: Server, certificate: Certificate): void {
  if (server instanceof TlsServer) server.setSecureContext(secure(certificate));
}

/** Only AEAD with forward secrecy: the first three are of TLS 1.3, the others of TLS 1.2. */
const ciphers = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
].join(':');

function secure({ cert, key }: Certificate) {
  return { cert, key, ciphers, minVersion: 'TLSv1.2', honorCipherOrder: true } as const;
}

/** Without forward secrecy, or with CBC: TLS 1.2 of appliances that have nothing else. */
const oldCiphers = [
  'ECDHE-RSA-AES256-SHA384',
  'ECDHE-RSA-AES128-SHA256',
  'AES256-GCM-SHA384',
  'AES128-GCM-SHA256',
  'AES256-SHA256',
  'AES128-SHA256',
];

/** The same for a listener that is not of HTTP. */
export function tlsOptions(certificate: Certificate, withOldCiphers: boolean) {
  const own = secure(certificate);
  return withOldCiphers ? { ...own, ciphers: [own.ciphers, ...oldCiphers].join(':') } : own;
}

export function listen(server: NetServer, options: NodeListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Open connections by server. Node forgets those that it hands over, as for CONNECT, yet waits for them to close. */
const connections = new WeakMap<Server, Set<Duplex>>();

function remember(server: Server): (socket: Duplex) => void {
  const open = new Set<Duplex>();
  connections.set(server, open);
  return (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  };
}

/**
 * Stops accepting and waits for the requests under way, whose answers ask the client to close; any that outlast the
 * grace are cut off.
 */
export async function endServer(server: Server, { grace = usualGrace }: { grace?: number } = {}): Promise<void> {
  if (!server.listening) return;
  const ended = new Promise<void>((resolve) => server.close(() => resolve()));
  const idle = setInterval(() => server.closeIdleConnections(), 50);
  const cut = setTimeout(() => {
    for (const socket of connections.get(server) ?? []) socket.destroy();
  }, grace);
  await ended;
  clearInterval(idle);
  clearTimeout(cut);
}

/**
 * The client's address: behind a proxy the last one in X-Forwarded-For, which the nearest proxy wrote; the peer's own
 * if that is missing or malformed.
 */
export function clientAddress(incoming: IncomingMessage, behindProxy: boolean): string | undefined {
  const forwarded = behindProxy ? lastOf(incoming.headers['x-forwarded-for']) : undefined;
  return (forwarded === undefined ? undefined : forwardedAddress(forwarded)) ?? peerAddress(incoming.socket);
}

/** Some proxies add the port. */
function forwardedAddress(text: string): string | undefined {
  const [, bracketed, plain] = /^"?(?:\[([^\]]*)\]|(\d[\d.]*))(?::\d+)?"?$/.exec(text) ?? [];
  return plainAddress(bracketed ?? plain ?? text);
}

/** Cached by connection, so that all its requests share one string. */
const peers = new WeakMap<Socket, string>();

function peerAddress(socket: Socket): string | undefined {
  const known = peers.get(socket);
  if (known !== undefined) return known;
  const address = plainAddress(socket.remoteAddress ?? '');
  if (address !== undefined) peers.set(socket, address);
  return address;
}

/**
 * A request of HTTP/1.0 need not send a Host (RFC 9112 §3.2), and load balancers' probes do not: the address that it
 * came to is used.
 */
function nameHost({ headers, rawHeaders, socket }: IncomingMessage): void {
  const address = plainAddress(socket.localAddress ?? '') ?? 'localhost';
  headers.host = address.includes(':') ? `[${address}]` : address;
  rawHeaders.push('Host', headers.host);
}

/** Replaces Host with X-Forwarded-Host, since the Host decides the tenant. */
export function takeForwardedHost(incoming: IncomingMessage): void {
  const host = lastOf(incoming.headers['x-forwarded-host']);
  if (host !== undefined) setHost(incoming, host);
}

function setHost(incoming: IncomingMessage, host: string): void {
  incoming.headers.host = host;
  for (let i = 0; i < incoming.rawHeaders.length; i += 2) {
    if (incoming.rawHeaders[i]?.toLowerCase() === 'host') incoming.rawHeaders[i + 1] = host;
  }
}

function lastOf(header: string | string[] | undefined): string | undefined {
  const last = header?.toString().split(',').at(-1)?.trim();
  return last ? last : undefined;
}

/** Discards the body of a request that is answered without it; called before the answer. */
type LetGo = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/** Answers where Node would send nothing, or nothing that a program can read. */
function refuseBelowApp(server: Server, dialect: Dialect): void {
  const listings = new WeakMap<Duplex, Listing>();
  // Without a handshake nothing can be sent: an answer would wait for it, and keep the connection and the shutdown
  // waiting for ever. Before Node's own listener, which turns this into a `clientError`.
  server.prependListener('tlsClientError', (_error, socket: Duplex) => socket.destroy());
  server.on('clientError', (error, socket) => {
    const listing = listings.get(socket);
    if (listing) return listing.more(packetOf(error));
    if (!socket.writable || systemCode(error) === 'ECONNRESET') return void socket.destroy();
    const first = dialect.lists ? listingOf(error) : undefined;
    if (!first) return afterAnswers(socket, () => refuseOnSocket(socket, parserRefusal(error), dialect));
    const made = new Listing(socket, first);
    listings.set(socket, made);
    afterAnswers(socket, () => server.emit(server instanceof TlsServer ? 'secureConnection' : 'connection', made));
  });
  // Node no longer handles this socket, nor tells the answers still being sent when it has drained.
  server.on('connect', ({ socket }, tunnelled) => {
    tunnelled.on('error', () => {});
    endInTime(socket);
    socket.on('drain', () => answerOn(socket)?.emit('drain'));
    afterAnswers(socket, () => refuseOnSocket(socket, tunnel, dialect));
  });
}

/** Node's types leave this property out. */
function answerOn(socket: Socket): ServerResponse | undefined {
  const answer: unknown = Reflect.get(socket, '_httpMessage');
  return answer instanceof ServerResponse ? answer : undefined;
}

/** Whether the request is for the app; if not, it is answered here. */
function isForApp(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  dialect: Dialect,
  letGo: LetGo,
  target: Refusal | undefined,
): boolean {
  const refusal = target ?? headerRefusal(incoming);
  const isAboutServer = incoming.url === '*' && incoming.method === 'OPTIONS';
  if (!refusal && !isAboutServer) {
    // In the form in which the app and the streaming library compare hosts.
    const host = readAuthority(incoming.headers.host ?? '')?.text;
    if (host !== undefined && host !== incoming.headers.host) {
      sentHosts.set(incoming, incoming.headers.host);
      setHost(incoming, host);
    }
    return true;
  }
  letGo(incoming, outgoing);
  if (refusal) refuseInResponse(outgoing, refusal, dialect);
  else onServerItself(outgoing, dialect);
  return false;
}

/** `OPTIONS *` asks about the server, not about a path (RFC 9110 §9.3.7). */
function onServerItself(outgoing: ServerResponse, { methods }: Dialect): void {
  outgoing.writeHead(204, { Allow: methods });
  outgoing.end();
}
