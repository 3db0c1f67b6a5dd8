// Fetch adapts Request and Response to the app, for in-process calls and tests. Properties that a Request cannot carry
// are passed beside it.
import { brokenBody } from './body.ts';
import type { ApiRequest, BodySource } from './request.ts';
import type { Answer } from './request-log.ts';
import { respond } from './respond.ts';

/** Passed with each request to `fetch(request, env)`. */
export interface RequestEnv
  extends Pick<
    ApiRequest,
    | 'local'
    | 'remoteAddress'
    | 'certificate'
    | 'tenant'
    | 'surface'
    | 'tangClients'
    | 'awsRegion'
    | 'sentHost'
    | 'room'
    | 'isGone'
  > {
  /** Default: the headers of the request. */
  readonly headers?: ApiRequest['headers'] | undefined;
}

export type AppFetch = (request: Request, env: RequestEnv) => Promise<Response>;

export function fetchFrom(handle: Answer): AppFetch {
  return async (request, env) => {
    const { outcome, state } = await handle(requestOf(request, env));
    const response = respond(outcome, state);
    if (request.method !== 'HEAD') return response;
    await response.body?.cancel();
    return new Response(null, { status: response.status, headers: response.headers });
  };
}

function requestOf(
  request: Request,
  { headers = Object.fromEntries(request.headers), ...env }: RequestEnv,
): ApiRequest {
  const { host, pathname: path, search } = new URL(request.url);
  const read: BodySource['read'] = (limit) => readStream(request.body, limit);
  const named = headers.host === undefined ? { ...headers, host } : headers;
  return { ...env, method: request.method, path, search, headers: named, body: { read } };
}

/** Undefined if there are more than `limit` bytes. */
async function readStream(body: ReadableStream<Uint8Array> | null, limit: number): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of body ?? []) {
      length += chunk.length;
      if (length > limit) return undefined;
      chunks.push(chunk);
    }
  } catch {
    throw brokenBody();
  }
  return Buffer.concat(chunks);
}
