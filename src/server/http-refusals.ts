// Answers to bytes that are not HTTP, and to HTTP that no path can serve: in the format of the server's clients, after
// which most connections are closed.
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { systemCode } from '../errors.ts';
import { readAuthority } from '../model/hosts.ts';

/** The conventions of a server's clients. */
export interface Dialect {
  /** The methods that its paths accept. */
  readonly methods: string;
  /** Whether it accepts LIST, which means GET with `list=true`; Node's parser does not know that method. */
  readonly lists?: boolean;
  /** Makes the error body. */
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

export const awsDialect: Dialect = {
  methods: 'POST',
  problem: (message) => ({ __type: 'SerializationException', message }),
};

export const tangDialect: Dialect = { ...ownDialect, methods: 'GET, POST' };

export interface Refusal {
  readonly status: number;
  readonly message: string;
  /** Whether the list of accepted methods is appended. */
  readonly isAboutMethod?: boolean;
}

export const tunnel: Refusal = {
  status: 405,
  message: 'this is not a proxy: no path takes CONNECT; there are',
  isAboutMethod: true,
};
const expectation: Refusal = { status: 417, message: 'the header Expect: only 100-continue is understood' };
const unreadable: Refusal = { status: 400, message: 'the request is malformed' };
const malformed: Refusal = { status: 400, message: 'the request is not well-formed HTTP' };
const unknownMethod: Refusal = { status: 405, message: 'no path takes this method; there are', isAboutMethod: true };
const late: Refusal = { status: 408, message: 'the request took too long to arrive' };
const tooLarge: Refusal = { status: 431, message: 'the headers of the request are too large' };
const noHost: Refusal = { status: 400, message: 'the header Host is missing' };
const coded: Refusal = { status: 501, message: 'the header Transfer-Encoding: only chunked is understood' };
const wrongHost: Refusal = { status: 400, message: 'the header Host: expected a host, and perhaps a port' };
const otherHost: Refusal = {
  status: 400,
  message: 'the target of the request names another host than the header Host',
};

/** Headers that name the caller, the target or the purpose: with two of one, two programs could read two requests. */
const single = [
  ...['Host', 'Authorization', 'Content-Type', 'Origin', 'Sec-Fetch-Site', 'Kms-Tenant', 'Kms-Console'],
  ...['X-Vault-Token', 'X-Vault-Namespace', 'X-Vault-Wrap-TTL'],
];
const singleByName = new Map(single.map((name, index) => [name.toLowerCase(), { name, bit: 1 << index }]));
const singleLengths = new Set(single.map(({ length }) => length));

/** Why the request is refused before the app; undefined if it is not. */
export function headerRefusal(incoming: IncomingMessage): Refusal | undefined {
  return hostRefusal(incoming) ?? repeatRefusal(incoming) ?? expectationRefusal(incoming) ?? codingRefusal(incoming);
}

/**
 * Why a target that names a host is refused (RFC 9112 §3.2.2): proxies differ in whether they follow it or the Host
 * header.
 */
export function targetRefusal({ url = '', headers }: IncomingMessage): Refusal | undefined {
  const first = url.charAt(0);
  if (first === '/' || first === '*' || headers.host === undefined) return undefined;
  const named = URL.canParse(url) ? readAuthority(new URL(url).host)?.host : undefined;
  return named !== undefined && named === readAuthority(headers.host)?.host ? undefined : otherHost;
}

/** Expectations do not exist in HTTP/1.0 (RFC 9110 §10.1.1). */
function expectationRefusal({ headers: { expect }, httpVersionMinor }: IncomingMessage): Refusal | undefined {
  return expect === undefined || httpVersionMinor === 0 || continues.test(expect) ? undefined : expectation;
}

/** The same pattern as Node's. */
const continues = /(?:^|\W)100-continue(?:$|\W)/i;

/** The parser too refuses a body whose last coding is not chunked (RFC 9112 §6.1). */
function codingRefusal({ headers }: IncomingMessage): Refusal | undefined {
  const coding = headers['transfer-encoding'];
  return coding === undefined || coding.trim().toLowerCase() === 'chunked' ? undefined : coded;
}

/** The Host decides the tenant, so it is required. */
function hostRefusal({ headers: { host } }: IncomingMessage): Refusal | undefined {
  if (!host) return noHost;
  return readAuthority(host) ? undefined : wrongHost;
}

/** Node takes the first value of some headers, and joins those of others. */
function repeatRefusal({ rawHeaders }: IncomingMessage): Refusal | undefined {
  let seen = 0;
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const given = rawHeaders[n] ?? '';
    const known = singleLengths.has(given.length) ? singleByName.get(given.toLowerCase()) : undefined;
    if (!known) continue;
    if (seen & known.bit) return { status: 400, message: `the header ${known.name} is there more than once` };
    seen |= known.bit;
  }
  return undefined;
}

/** The refusal for an error of Node's parser. */
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

/** The bytes that the parser failed on; undefined if it failed because none came. */
export function packetOf(error: Error): Buffer | undefined {
  return 'rawPacket' in error && Buffer.isBuffer(error.rawPacket) ? error.rawPacket : undefined;
}

const inMethod = /[!#$%&'*+.^_`|~0-9A-Za-z-]/;
const requestLine = new RegExp(`^${inMethod.source}+ [!-~]+ HTTP/1\\.[01]\\r?\\n`);

/** The offset in those bytes at which it failed. */
export function failedAt(error: Error): number {
  return 'bytesParsed' in error && typeof error.bytesParsed === 'number' ? error.bytesParsed : 0;
}

/**
 * Whether the parser failed within the method of an otherwise well-formed request line (RFC 9112 §3). The method may
 * begin right after a body, or in an earlier packet.
 */
function beginsRequest(error: Error): boolean {
  const packet = (packetOf(error) ?? Buffer.alloc(0)).toString('latin1');
  let start = failedAt(error);
  while (start > 0 && inMethod.test(packet.charAt(start - 1))) start--;
  return requestLine.test(packet.slice(start, start + 8192));
}

function textOf({ message, isAboutMethod }: Refusal, { methods, problem }: Dialect): string {
  return JSON.stringify(problem(isAboutMethod ? `${message}: ${methods}` : message));
}

/** Refuses an unreadable request; the connection stays open. */
export function refuseUnreadable(outgoing: ServerResponse, dialect: Dialect): void {
  const body = textOf(unreadable, dialect);
  outgoing.writeHead(unreadable.status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
  });
  outgoing.end(body);
}

/** Milliseconds that a client has to read a refusal on the socket, and the answers ahead of it. */
const patience = 60_000;

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
  endInTime(socket);
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}

/** Cuts a socket from which nothing more is read after a minute, whatever its client does. */
export function endInTime(socket: Duplex): void {
  const cut = setTimeout(() => socket.destroy(), patience);
  cut.unref();
  socket.once('close', () => clearTimeout(cut));
  socket.on('error', () => socket.destroy());
}

export function refuseInResponse(outgoing: ServerResponse, refusal: Refusal, dialect: Dialect): void {
  const body = textOf(refusal, dialect);
  const length = Buffer.byteLength(body);
  const headers = { 'Content-Type': 'application/json', 'Content-Length': length, Connection: 'close' };
  outgoing.writeHead(refusal.status, headers);
  outgoing.end(body);
}
