// A gRPC server for unary calls on a Unix socket: Node's HTTP/2, message framing, and the status trailers
// (grpc.github.io: "gRPC over HTTP2"). Streams are only kept open for clients that insist on some; nothing is sent on
// them.
import { chmod, lstat, stat, unlink } from 'node:fs/promises';
import {
  createSecureServer,
  createServer,
  type IncomingHttpHeaders,
  type SecureServerOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { type ErrorCode, KmsError } from '../errors.ts';
import { sentenceOf } from './exit.ts';
import { fileError } from './files.ts';

/** Handlers by path. A thrown error becomes the status. */
export type Calls = Readonly<Record<string, (message: Uint8Array, caller: Caller) => Promise<Uint8Array>>>;

export interface Caller {
  /** One object per connection. */
  readonly connection: object;
  /** Milliseconds that the caller waits for the answer; undefined if it did not say. */
  readonly patience: number | undefined;
}

/** gRPC status numbers by error code; 13, internal, for all others. */
const statusOf: Readonly<Partial<Record<ErrorCode, number>>> = {
  invalid: 3,
  usage: 3,
  'not-found': 5,
  forbidden: 7,
  'too-large': 8,
  quota: 8,
  'rate-limited': 8,
  refused: 9,
  'method-not-allowed': 12,
  sealed: 14,
  unavailable: 14,
  'in-use': 14,
  corrupt: 15,
  unauthenticated: 16,
};

interface GrpcOptions {
  readonly signal: AbortSignal;
  /** Called once it listens. */
  readonly ready: () => void;
  /** Called with the error of each failed call. */
  readonly failed: (error: unknown) => void;
  /** Called with the number of connections each time it changes. */
  readonly connected?: (count: number) => void;
  /** Maximum bytes of a request message. */
  readonly longest?: number;
  /** Without it, connections are not encrypted. */
  readonly tls?: SecureServerOptions;
  /** Paths of streaming calls, which are kept open until the client or the server ends. */
  readonly keptOpen?: ReadonlySet<string>;
}

const usualLongest = 65_536;

/** Serves on the socket until the signal is aborted, then lets calls in progress finish. */
export async function serveGrpc(path: string, calls: Calls, options: GrpcOptions): Promise<void> {
  const { signal, ready, failed, connected, longest = usualLongest, tls, keptOpen } = options;
  await freePath(path);
  const sessions = new Set<ServerHttp2Session>();
  const waiting = new Set<ServerHttp2Stream>();
  const server = tls === undefined ? createServer() : createSecureServer(tls);
  server.on('session', (session) => {
    sessions.add(session);
    connected?.(sessions.size);
    session.once('close', () => {
      sessions.delete(session);
      connected?.(sessions.size);
    });
    // A protocol violation closes the session.
    session.on('error', () => session.destroy());
  });
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    if (keptOpen?.has(String(headers[':path']))) keepOpen(stream, waiting);
    else void respond(stream, headers, { calls, failed, longest });
  });
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', (error) => reject(fileError('listen on', path, error)));
  server.once('close', resolve);
  // Private from the first moment on.
  const mask = process.umask(0o177);
  server.listen(path, () => {
    process.umask(mask);
    chmod(path, 0o600).then(ready, reject);
  });
  const stop = (): void => {
    server.close();
    for (const stream of waiting) stream.end();
    for (const session of sessions) session.close();
  };
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  try {
    await ended;
  } finally {
    process.umask(mask);
    stop();
  }
}

/** Removes a stale socket, left by a server that crashed. */
async function freePath(path: string): Promise<void> {
  // Otherwise listening would fail with a misleading "permission denied".
  await stat(dirname(path)).catch((error) => {
    throw fileError('listen on', path, error);
  });
  const found = await lstat(path).catch(() => undefined);
  if (!found) return;
  if (!found.isSocket()) {
    const hint = 'choose another path with --listen, or move it away';
    throw new KmsError('refused', `cannot listen on ${path}: it is there already, and is not a socket`, { hint });
  }
  if (await answers(path)) {
    throw new KmsError('in-use', `another program listens on ${path}`, {
      hint: 'stop that one, or choose another path with --listen',
    });
  }
  await unlink(path).catch((error) => {
    throw fileError('remove', path, error);
  });
}

/** Whether a program listens on the socket. Throws `refused` if access is denied: it is another user's. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EACCES' && error.code !== 'EPERM') return resolve(false);
      reject(
        new KmsError('refused', `cannot open ${path}: permission denied`, {
          hint: 'run this as the user whose socket it is, or choose another path with --listen',
        }),
      );
    });
  });
}

/** Answers with headers, and with the status once the stream ends. */
function keepOpen(stream: ServerHttp2Stream, waiting: Set<ServerHttp2Stream>): void {
  stream.on('error', () => stream.destroy());
  stream.once('close', () => waiting.delete(stream));
  waiting.add(stream);
  stream.resume();
  begin(stream, { 'grpc-status': '0' });
}

function begin(stream: ServerHttp2Stream, trailers: Readonly<Record<string, string>>): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.once('wantTrailers', () => stream.sendTrailers(trailers));
}

async function respond(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  { calls, failed, longest }: { calls: Calls; failed: (error: unknown) => void; longest: number },
): Promise<void> {
  stream.on('error', () => stream.destroy());
  // A stream that has ended has no session.
  const { session: connection = stream } = stream;
  let [status, said] = [0, ''];
  let answer: Uint8Array | undefined;
  try {
    const { ':path': path = '' } = headers;
    const call = Object.hasOwn(calls, path) ? calls[path] : undefined;
    if (call === undefined) throw new KmsError('method-not-allowed', 'no such call here');
    const patience = timeoutOf(headers['grpc-timeout']);
    answer = await call(await readMessage(stream, longest), { connection, patience });
  } catch (error) {
    status = (error instanceof KmsError && statusOf[error.code]) || 13;
    said = sentenceOf(error);
    failed(error);
  }
  if (stream.destroyed) return;
  const trailers = { 'grpc-status': String(status), ...(said !== '' && { 'grpc-message': encodeURIComponent(said) }) };
  begin(stream, trailers);
  stream.end(answer === undefined ? undefined : framed(answer));
}

/** Milliseconds in each unit of a timeout. */
const units: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/** Milliseconds. A malformed header is ignored. */
function timeoutOf(header: string | string[] | undefined): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(String(header)) ?? [];
  return amount === undefined ? undefined : Number(amount) * (units[unit] ?? 0);
}

/** Message frame: one byte for compression, four for the length, the message. */
async function readMessage(stream: ServerHttp2Stream, longest: number): Promise<Uint8Array> {
  const bytes = await readAll(stream, longest);
  if (bytes.length < 5 || bytes.readUInt32BE(1) !== bytes.length - 5) {
    throw new KmsError('invalid', 'expected one message');
  }
  if (bytes[0] !== 0) throw new KmsError('method-not-allowed', 'expected a message that is not compressed');
  return bytes.subarray(5);
}

/** Excess bytes are discarded: iterating would end the stream, and with it the answer. */
function readAll(stream: ServerHttp2Stream, longest: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const pieces: Buffer[] = [];
  let length = 0;
  stream.on('data', (piece: Buffer) => {
    length += piece.length;
    if (length <= longest) pieces.push(piece);
    else reject(new KmsError('too-large', `expected a message of at most ${longest} bytes`));
  });
  stream.once('end', () => resolve(Buffer.concat(pieces)));
  stream.once('close', () => reject(new KmsError('invalid', 'the client went away before it had sent its message')));
  return promise;
}

function framed(message: Uint8Array): Buffer {
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  return frame;
}
