// `fetch` over a Unix socket: as much of it as the commands need. Requests and JSON are held whole, other answers streamed.
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { KmsError } from '../errors.ts';

/** A function like `fetch` that asks the server behind the socket, whatever host the URL names. */
export function unixFetch(socketPath: string): (request: Request) => Promise<Response> {
  return async (request) => {
    const url = new URL(request.url);
    const body = Buffer.from(await request.arrayBuffer());
    const headers: Record<string, string> = Object.fromEntries(request.headers);
    headers.host = url.host;
    if (request.body) headers['content-length'] = String(body.length);
    return new Promise<Response>((resolve, reject) => {
      const options = {
        socketPath,
        path: url.pathname + url.search,
        method: request.method,
        headers,
        signal: request.signal,
        agent: false,
      };
      const outgoing = httpRequest(options, (answer) => void readAnswer(answer).then(resolve, reject));
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  };
}

async function readAnswer(answer: IncomingMessage): Promise<Response> {
  const status = answer.statusCode ?? 500;
  const headers = new Headers();
  for (let n = 0; n + 1 < answer.rawHeaders.length; n += 2) {
    headers.append(answer.rawHeaders[n] ?? '', answer.rawHeaders[n + 1] ?? '');
  }
  const isJson = /^application\/json\s*(?:;|$)/.test(headers.get('content-type') ?? '');
  if (status === 200 && !isJson) return new Response(streamOf(answer), { status, headers });
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk);
  const empty = status === 204 || status === 304;
  return new Response(empty ? null : Buffer.concat(chunks), { status, headers });
}

function streamOf(answer: IncomingMessage): ReadableStream<Uint8Array> {
  const chunks = answer[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: () => void answer.destroy(),
  });
}

/** Whether a server answers behind the socket. One that nobody may open is an error: another user's server is running. */
export function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EACCES' && error.code !== 'EPERM') return resolve(false);
      reject(
        new KmsError('refused', `cannot open ${socketPath}: permission denied`, {
          hint: 'run this as the user that the server runs as, or use --server with an API key',
        }),
      );
    });
  });
}
