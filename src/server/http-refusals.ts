// Requests that never get to the app: bytes that are no HTTP, and HTTP that the app has no use for. They are answered in the app's
// own shape, and the connection ends.
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { systemCode } from './trouble.ts';

interface Refusal {
  readonly status: number;
  readonly message: string;
  /** Which methods there are, where that is what it is about. */
  readonly allow?: string;
}

const allow = 'DELETE, GET, HEAD, PATCH, POST, PUT';
const malformed: Refusal = { status: 400, message: 'the request is not well-formed HTTP' };
const unknownMethod: Refusal = { status: 405, message: `no path takes this method; there are: ${allow}`, allow };
const tunnel: Refusal = { status: 405, message: `this is no proxy: no path takes CONNECT; there are: ${allow}`, allow };
const expectation: Refusal = { status: 417, message: 'the header Expect: only 100-continue is understood' };
const late: Refusal = { status: 408, message: 'the request took too long to arrive' };
const tooLarge: Refusal = { status: 431, message: 'the headers of the request are too large' };
const noHost: Refusal = { status: 400, message: 'the header Host is missing' };
const severalHosts: Refusal = { status: 400, message: 'the header Host is there more than once' };

/** Answers what Node would refuse without a word, or with none that a program can read. */
export function refuseBelowApp(server: Server): void {
  server.on('clientError', (error, socket) => {
    if (!socket.writable || systemCode(error) === 'ECONNRESET') return void socket.destroy();
    onSocket(socket, refusalOf(error));
  });
  server.on('connect', (_incoming, socket) => onSocket(socket, tunnel));
  server.on('checkExpectation', (_incoming, outgoing) => onResponse(outgoing, expectation));
}

/** Whether the request is one for the app; one that is not is answered. */
export function isForApp(incoming: IncomingMessage, outgoing: ServerResponse): boolean {
  const refusal = hostRefusal(incoming);
  if (refusal) onResponse(outgoing, refusal);
  return refusal === undefined;
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

function refusalOf(error: Error): Refusal {
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

/** Whether what arrived begins as a request does, in all but its method (RFC 9112 §3). */
function beginsRequest(error: Error): boolean {
  const packet = 'rawPacket' in error && error.rawPacket instanceof Uint8Array ? error.rawPacket : new Uint8Array();
  const start = Buffer.from(packet.subarray(0, 8192)).toString('latin1');
  return /^(?:\r?\n)*[!#$%&'*+.^_`|~0-9A-Za-z-]+ [!-~]+ HTTP\/1\.[01]\r?\n/.test(start);
}

function onSocket(socket: Duplex, { status, message, allow }: Refusal): void {
  const body = JSON.stringify({ message });
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(allow === undefined ? [] : [`Allow: ${allow}`]),
  ];
  socket.on('error', () => socket.destroy());
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}

function onResponse(outgoing: ServerResponse, { status, message }: Refusal): void {
  const body = JSON.stringify({ message });
  const length = Buffer.byteLength(body);
  outgoing.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': length, Connection: 'close' });
  outgoing.end(body);
}
