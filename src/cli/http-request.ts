// One HTTP request as Node makes it, for ways that `fetch` does not have: the socket of a server on this machine, and a
// client certificate.
import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { RequestOptions } from 'node:https';
import { failOnOddAnswers } from '../client/odd-answers.ts';

/** Sends the request by these options; `send` is the function of `node:http` or `node:https`. */
export async function exchange(
  request: Request,
  options: RequestOptions,
  send: typeof httpRequest = httpRequest,
): Promise<Response> {
  const { method, signal } = request;
  const { host, pathname, search } = new URL(request.url);
  const body = Buffer.from(await request.arrayBuffer());
  const headers: Record<string, string> = { ...Object.fromEntries(request.headers), host };
  if (request.body) headers['content-length'] = String(body.length);
  return new Promise<Response>((resolve, reject) => {
    const outgoing = send({ ...options, path: pathname + search, method, headers, signal }, (answer) => {
      const { statusCode: status = 0 } = answer;
      if (status >= 200 && status <= 599) return resolve(responseOf(answer));
      answer.destroy();
      reject(new Error(`it answered ${status}`));
    });
    outgoing.on('error', reject);
    failOnOddAnswers(outgoing, reject);
    outgoing.end(body);
  });
}

/** The answer is not read here: a server that never ends it must not fill the memory. */
function responseOf(answer: IncomingMessage): Response {
  const status = answer.statusCode ?? 500;
  const headers = new Headers();
  for (let n = 0; n + 1 < answer.rawHeaders.length; n += 2) {
    headers.append(answer.rawHeaders[n] ?? '', answer.rawHeaders[n + 1] ?? '');
  }
  const isEmpty = status === 204 || status === 304;
  if (isEmpty) answer.resume();
  return new Response(isEmpty ? null : streamOf(answer), { status, headers });
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
