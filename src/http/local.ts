// Endpoints for the administrator at the machine: served on the local socket and in process, unknown to everybody else.
import { KmsError } from '../errors.ts';
import { defaultBodyLimit, readJsonBody } from './body.ts';
import type { AppContext, AppDeps, LocalRoute } from './deps.ts';
import type { Served } from './request-log.ts';
import { answered, refused } from './respond.ts';
import { unknownPath } from './unmatched.ts';

export function serveLocal(deps: AppDeps, route: LocalRoute): (c: AppContext) => Promise<Served> {
  return async (c) => {
    if (!c.env?.local) return { outcome: refused(unknownPath) };
    try {
      const body = await localBody(deps, c);
      return { outcome: answered(await route.handle({ params: c.req.param(), query: c.req.query(), body })) };
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
