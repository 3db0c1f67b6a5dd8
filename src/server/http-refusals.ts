// What a server answers to bytes that are no HTTP, and to HTTP that it has no use for: in the shape that its clients
// know, and the connection ends.
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { systemCode } from '../errors.ts';

/** What the clients of a server understand. */
export interface Dialect {
  /** The methods that its paths take. */
  readonly methods: string;
  /** Whether LIST is one of them, which Node does not read: it stands for GET with `list=true`. */
  readonly lists?: boolean;
  /** The body that says what is wrong. */
  problem(message: string): object;
}

export const ownDialect: Dialect = {
  methods: 'DELETE, GET, HEAD, PATCH, POST, PUT',
  problem: (message) => ({ message }),
};

export const vaultDialect: Dialect = {
  methods: 'DELETE, GET, HEAD, LIST, POST, PUT',
  lists: true,
  problem: (message) => ({ errors: [message] }),
};

export const tangDialect: Dialect = { ...ownDialect, methods: 'GET, POST' };

interface Refusal {
  readonly status: number;
  readonly message: string;
  /** Whether it is about methods: those that there are stand behind it. */
  readonly isAboutMethod?: boolean;
}

export const tunnel: Refusal = {
  status: 405,
  message: 'this is no proxy: no path takes CONNECT; there are',
  isAboutMethod: true,
};
export const expectation: Refusal = { status: 417, message: 'the header Expect: only 100-continue is understood' };
export const unreadable: Refusal = { status: 400, message: 'the request is malformed' };
const malformed: Refusal = { status: 400, message: 'the request is not well-formed HTTP' };
const unknownMethod: Refusal = { status: 405, message: 'no path takes this method; there are', isAboutMethod: true };
const late: Refusal = { status: 408, message: 'the request took too long to arrive' };
const tooLarge: Refusal = { status: 431, message: 'the headers of the request are too large' };
const noHost: Refusal = { status: 400, message: 'the header Host is missing' };
const coded: Refusal = { status: 501, message: 'the header Transfer-Encoding: only chunked is understood' };
const severalHosts: Refusal = { status: 400, message: 'the header Host is there more than once' };

/** Why the app is not asked; undefined where it is. */
export function headerRefusal(incoming: IncomingMessage): Refusal | undefined {
  return hostRefusal(incoming) ?? codingRefusal(incoming);
}

/** What is not chunked last is refused by the parser too (RFC 9112 §6.1). */
function codingRefusal({ headers }: IncomingMessage): Refusal | undefined {
  const coding = headers['transfer-encoding'];
  return coding === undefined || coding.trim().toLowerCase() === 'chunked' ? undefined : coded;
}

/** A tenant is found by its Host, so there must be one, and two would be two tenants to two programs. */
function hostRefusal({ headers, rawHeaders }: IncomingMessage): Refusal | undefined {
  if (!headers.host) return noHost;
  let hosts = 0;
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const name = rawHeaders[n];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts++;
  }
  return hosts > 1 ? severalHosts : undefined;
}

/** Of what Node's parser could not read. */
export function parserRefusal(error: Error): Refusal {
  switch (systemCode(error)) {
    case 'HPE_HEADER_OVERFLOW':
      return tooLarge;
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return late;
    case 'HPE_INVALID_METHOD':
      return beginsRequest(error) ? unknownMethod : malformed;
    default:
      return malformed;
  }
}

/** The bytes that the parser was given when it failed; undefined where it failed for want of them. */
export function packetOf(error: Error): Buffer | undefined {
  return 'rawPacket' in error && Buffer.isBuffer(error.rawPacket) ? error.rawPacket : undefined;
}

/** Whether what arrived begins as a request does, in all but its method (RFC 9112 §3). */
function beginsRequest(error: Error): boolean {
  const start = (packetOf(error) ?? Buffer.alloc(0)).toString('latin1', 0, 8192);
  return /^(?:\r?\n)*[!#$%&'*+.^_`|~0-9A-Za-z-]+ [!-~]+ HTTP\/1\.[01]\r?\n/.test(start);
}

function textOf({ message, isAboutMethod }: Refusal, { methods, problem }: Dialect): string {
  return JSON.stringify(problem(isAboutMethod ? `${message}: ${methods}` : message));
}

/** As the app would answer it. */
export function refusalAnswer(refusal: Refusal, dialect: Dialect): Response {
  const headers = { 'Content-Type': 'application/json' };
  return new Response(textOf(refusal, dialect), { status: refusal.status, headers });
}

export function refuseOnSocket(socket: Duplex, refusal: Refusal, dialect: Dialect): void {
  const { status, isAboutMethod } = refusal;
  const body = textOf(refusal, dialect);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(isAboutMethod ? [`Allow: ${dialect.methods}`] : []),
  ];
  socket.on('error', () => socket.destroy());
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}

export function refuseInResponse(outgoing: ServerResponse, refusal: Refusal, dialect: Dialect): void {
  const body = textOf(refusal, dialect);
  const length = Buffer.byteLength(body);
  const headers = { 'Content-Type': 'application/json', 'Content-Length': length, Connection: 'close' };
  outgoing.writeHead(refusal.status, headers);
  outgoing.end(body);
}
