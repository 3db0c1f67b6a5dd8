// Node's HTTP servers around the app: limits against slow and oversized clients, what a reverse proxy says of the
// client, and an end that lets requests under way finish.

import { createServer, type IncomingMessage, type RequestListener, type Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { ListenOptions as NodeListenOptions, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { getRequestListener } from '@hono/node-server';
import { systemCode } from '../errors.ts';
import type { Straight } from '../http/app.ts';
import type { RequestEnv } from '../http/request.ts';
import type { Reply } from '../http/request-log.ts';
import { respond, textOf } from '../http/respond.ts';
import { plainAddress } from '../model/addresses.ts';
import { readAuthority } from '../model/hosts.ts';
import { AnswerBudget, ResponseRoom } from './answer-room.ts';
import { BodyBudget, Incoming, RequestBody } from './body-budget.ts';
import {
  type Dialect,
  endInTime,
  headerRefusal,
  ownDialect,
  packetOf,
  parserRefusal,
  type Refusal,
  refusalAnswer,
  refuseInResponse,
  refuseOnSocket,
  targetRefusal,
  tunnel,
  unreadable,
} from './http-refusals.ts';
import { afterAnswers, aheadBudget, atOnce, type Handle, oneByOne, together } from './in-turn.ts';
import { Listing, listingOf } from './list-method.ts';
import { sendText } from './short-answer.ts';

export type AppFetch = (request: Request, env: RequestEnv) => Response | Promise<Response>;

/** Against clients that are slow, or too many. Times are milliseconds. */
export interface HttpLimits {
  readonly maxHeaderSize: number;
  /** Until the headers, and the whole request, must be in; until the handshake of TLS is over, as long as headers. */
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  /** Between two requests of a connection. */
  readonly keepAliveTimeout: number;
  /** How often connections are looked at. */
  readonly connectionsCheckingInterval: number;
  /**
   * Without a byte in either direction: a client that stopped reading its answer. Longer than any request takes to be
   * answered.
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

/**
 * A Host that needs no look at what it says: what has another form goes the long way, which refuses what is none. No
 * wider than what the adapter takes unseen: an answer in pieces goes out through that, once all is done and recorded.
 */
const plainHost = /^[a-z0-9._-]+(?::(?:[1-5]\d{3,4}|[6-9]\d{3}))?$/;

/** Browsers come back with HTTPS alone for a year. */
const strictTransport = 'max-age=31536000';

/** How long requests under way may take once the server ends, in milliseconds. */
const usualGrace = 15_000;

interface ServerOptions {
  readonly tls?: Certificate | undefined;
  readonly limits?: Partial<HttpLimits>;
  /** For the bodies that wait, where it is not this server's own. */
  readonly bodies?: BodyBudget;
  /** The same for the answers that wait. */
  readonly answers?: AnswerBudget;
  /** And for the requests that are sent ahead of their turn. */
  readonly ahead?: BodyBudget;
  /** What the app is told of where a request came from. */
  env(incoming: IncomingMessage): RequestEnv;
  /** What answers requests of that method and target without a Request and a Response, where the app has such a way. */
  straightTo?(target: string): Straight | undefined;
  /** Looks at a request before the app does. */
  prepare?(incoming: IncomingMessage): void;
  /** In which words requests are refused that never get to the app; absent: the app's own. */
  readonly dialect?: Dialect;
  /** What requests have to wait for before anybody can say what answers them; undefined where there is nothing. */
  opening?(): Promise<unknown> | undefined;
}

type Fetching = Parameters<typeof getRequestListener>[0];

/**
 * The library between Node's requests and `fetch`. It and what is behind Node's `Request` take a start some 30 ms,
 * which what goes straight does not need: loaded for the first request that has to have them.
 */
let adapter: typeof getRequestListener | undefined;

async function listenerOf(fetching: Fetching, dialect: Dialect): Promise<ReturnType<typeof getRequestListener>> {
  adapter ??= (await import('@hono/node-server')).getRequestListener;
  return adapter(fetching, {
    errorHandler: () => refusalAnswer(unreadable, dialect),
    autoCleanupIncoming: false,
  });
}

export function httpServer(fetch: AppFetch, options: ServerOptions): Server {
  const {
    tls,
    env,
    prepare,
    opening,
    straightTo,
    limits: given,
    bodies = new BodyBudget(),
    answers = new AnswerBudget(),
    ahead = aheadBudget(),
    dialect = ownDialect,
  } = options;
  // Of a request without a body nothing is to be read: it needs no stream that ends.
  const always = { requireHostHeader: false, optimizeEmptyRequests: true, IncomingMessage: Incoming };
  const { silence, maxConnections, ...limits } = { ...usualLimits, ...given, ...always };
  const letGo: LetGo = (incoming, outgoing) => new RequestBody(incoming, outgoing, bodies).letGo();
  const fetching: Fetching = (request, bindings) => {
    // These are what this server's own listener is called with.
    const { incoming, outgoing } = bindings as { incoming: IncomingMessage; outgoing: ServerResponse };
    const room = new ResponseRoom(outgoing, answers);
    if (incoming.method === 'GET' && !hasBody(incoming))
      return made(fetch(request, { ...env(incoming), room }), outgoing, room);
    const body = new RequestBody(incoming, outgoing, bodies);
    return made(fetch(request, { ...env(incoming), body, room }), outgoing, room, body);
  };
  /** The answer; what the request held until it was there is given back. */
  const made = async (
    answer: Response | Promise<Response>,
    outgoing: ServerResponse,
    room: ResponseRoom,
    body?: RequestBody,
  ): Promise<Response> => {
    try {
      const response = await answer;
      body?.letGo();
      return response;
    } finally {
      body?.done();
      room.made();
      tellEnd(outgoing);
    }
  };
  /** Of a server that ends, the client should use the connection no more. */
  const tellEnd = (outgoing: ServerResponse): void => {
    if (!server.listening) outgoing.shouldKeepAlive = false;
  };
  let listener: RequestListener | undefined;
  const answerInPieces = async ({ outcome, state }: Reply, ...[incoming, outgoing]: Parameters<RequestListener>) => {
    let isAnswered = false;
    const listener = await listenerOf(() => {
      isAnswered = true;
      return respond(outcome, state);
    }, dialect);
    await listener(incoming, outgoing);
    // Refused by the adapter, which knows of nothing that would have to be let go.
    if (!isAnswered) await outcome.stream?.cancel();
  };
  /** What has one text for an answer gets it at once. */
  const answerStraight = (straight: Straight, incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const body = new RequestBody(incoming, outgoing, bodies);
    const room = new ResponseRoom(outgoing, answers);
    void straight({ ...env(incoming), body, room }).then(({ outcome, state }) => {
      body.letGo();
      body.done();
      room.made();
      tellEnd(outgoing);
      const text = textOf(outcome);
      if (text !== undefined) sendText(outgoing, outcome, state, text, limits.keepAliveTimeout);
      else void answerInPieces({ outcome, state }, incoming, outgoing);
    });
  };
  const answerLong: RequestListener = async (incoming, outgoing) => {
    listener ??= await listenerOf(fetching, dialect);
    listener(incoming, outgoing);
  };
  const answer: RequestListener = (incoming, outgoing) => {
    const straight = straightTo?.(`${incoming.method} ${incoming.url}`);
    if (straight && plainHost.test(incoming.headers.host ?? '')) answerStraight(straight, incoming, outgoing);
    else answerLong(incoming, outgoing);
  };
  const handle: Handle = (incoming, outgoing, begin) => {
    const target = targetRefusal(incoming);
    prepare?.(incoming);
    if (incoming.httpVersion === '1.0' && incoming.headers.host === undefined) nameHost(incoming);
    if (!isForApp(incoming, outgoing, dialect, letGo, target)) return;
    if (tls) outgoing.setHeader('Strict-Transport-Security', strictTransport);
    // A connection that breaks off meanwhile knows its address no more.
    peerAddress(incoming.socket);
    const waiting = opening?.();
    if (waiting) void waiting.then(() => answer(incoming, outgoing));
    else begin(() => answer(incoming, outgoing));
  };
  // Over TLS a request and the end of its connection may come as one, and the end would be looked at first.
  const inTurn = oneByOne(handle, tls ? atOnce : together, ahead);
  const handshakeTimeout = limits.headersTimeout;
  const server = tls
    ? createTlsServer({ ...limits, handshakeTimeout, ...secure(tls) }, inTurn)
    : createServer(limits, inTurn);
  server.maxConnections = maxConnections;
  // Whoever waits to be told to send its body is told when the body is asked for.
  server.on('checkContinue', inTurn);
  server.on('checkExpectation', inTurn);
  server.setTimeout(silence);
  refuseBelowApp(server, dialect);
  server.on('connection', remember(server));
  return server;
}

/** Takes another certificate for the connections to come. `server` is one that was made with TLS. */
export function replaceCertificate(server: Server, certificate: Certificate): void {
  if (server instanceof TlsServer) server.setSecureContext(secure(certificate));
}

/** AEAD with forward secrecy alone: the first three are those of TLS 1.3, the others of TLS 1.2. */
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

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
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

/**
 * The connections of a server. Node forgets those that it hands over, as for CONNECT, and waits for them all the same.
 */
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
 * Stops accepting and waits for the requests under way, whose answers say that the connection ends; those that outlast
 * the grace are cut off.
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
 * The client's address: behind a proxy the last one in X-Forwarded-For, which the nearest proxy wrote; the proxy's own
 * where it wrote none that is one.
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

/** Known once for a connection: it stays the same text for all its requests. */
const peers = new WeakMap<Socket, string>();

function peerAddress(socket: Socket): string | undefined {
  const known = peers.get(socket);
  if (known !== undefined) return known;
  const address = plainAddress(socket.remoteAddress ?? '');
  if (address !== undefined) peers.set(socket, address);
  return address;
}

/**
 * A request of HTTP/1.0 need not say whom it is for (RFC 9112 §3.2), and probes of load balancers do not: it is for the
 * address that it came to.
 */
function nameHost({ headers, rawHeaders, socket }: IncomingMessage): void {
  const address = plainAddress(socket.localAddress ?? '') ?? 'localhost';
  headers.host = address.includes(':') ? `[${address}]` : address;
  rawHeaders.push('Host', headers.host);
}

/** Puts X-Forwarded-Host in the place of Host, since a request's tenant goes by that. */
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

/** Sees to the body of a request that is answered without it, before the answer. */
type LetGo = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/** Answers what Node would refuse without a word, or with none that a program can read. */
function refuseBelowApp(server: Server, dialect: Dialect): void {
  const listings = new WeakMap<Duplex, Listing>();
  // Without a handshake there is nobody to answer: an answer would wait for it, and hold the connection and the
  // server's end up for ever. Ahead of Node's own listener, which makes a `clientError` of it.
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
  // Node no longer looks after the socket, nor tells the answers that still go out on it when to go on.
  server.on('connect', ({ socket }, tunnelled) => {
    tunnelled.on('error', () => {});
    endInTime(socket);
    socket.on('drain', () => answerOn(socket)?.emit('drain'));
    afterAnswers(socket, () => refuseOnSocket(socket, tunnel, dialect));
  });
}

/** Node's types leave out where it keeps that. */
function answerOn(socket: Socket): ServerResponse | undefined {
  const answer: unknown = Reflect.get(socket, '_httpMessage');
  return answer instanceof ServerResponse ? answer : undefined;
}

/** Whether the request is one for the app; one that is not is answered. */
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
    // In the form in which the app, and the adapter before it, compare hosts.
    const host = readAuthority(incoming.headers.host ?? '')?.text;
    if (host !== undefined && host !== incoming.headers.host) setHost(incoming, host);
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
