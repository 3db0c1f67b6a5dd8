// Endpoints for the administrator at the machine: served on the local socket and in process, unknown to everybody else.
import { KmsError } from '../errors.ts';
import { defaultBodyLimit, readJsonBody } from './body.ts';
import type { AppContext, AppDeps, LocalRoute } from './deps.ts';
import { headerOf } from './header.ts';
import type { Served } from './request-log.ts';
import { answered, refused, streamed } from './respond.ts';
import { tenantHeader } from './tenants.ts';
import { unknownPath } from './unmatched.ts';

/** An answer too long to be held: text or bytes that are made while it is read. A failure on the way breaks the connection off. */
export class LocalStream {
  readonly contentType: string;
  readonly text: AsyncIterable<string | Uint8Array>;

  constructor(contentType: string, text: AsyncIterable<string | Uint8Array>) {
    this.contentType = contentType;
    this.text = text;
  }
}

export function serveLocal(deps: AppDeps, route: LocalRoute): (c: AppContext) => Promise<Served> {
  return async (c) => {
    if (!c.env?.local) return { outcome: refused(unknownPath) };
    try {
      const body = await localBody(deps, c);
      const tenant = headerOf(c, tenantHeader);
      const answer = await route.handle({ params: c.req.param(), query: c.req.query(), body, tenant });
      if (!(answer instanceof LocalStream)) return { outcome: answered(answer) };
      return { outcome: streamed(answer.contentType, reported(deps, route.path, answer.text)) };
    } catch (error) {
      return { outcome: refused(error) };
    }
  };
}

async function localBody(deps: AppDeps, c: AppContext): Promise<Readonly<Record<string, unknown>>> {
  const { method } = c.req;
  if (method === 'GET' || method === 'HEAD' || method === 'DELETE') return {};
  const { value, problem } = { value: undefined, ...(await readJsonBody(c, deps.bodyLimit ?? defaultBodyLimit)) };
  if (problem) throw problem;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new KmsError('invalid', 'body: expected an object');
  }
  return Object.fromEntries(Object.entries(value));
}

/** The status has gone out already when a stream fails: what went wrong is for the log. */
export async function* reported<T>(deps: AppDeps, route: string, pieces: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* pieces;
  } catch (err) {
    deps.logger.error({ err, route }, 'an answer broke off');
    throw err;
  }
}
