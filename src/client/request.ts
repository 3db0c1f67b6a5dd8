// A call's input as an HTTP request: what goes into the path, the query and the body.
import { KmsError } from '../errors.ts';
import type { Route } from './routes.ts';

export interface PlainRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  /** JSON. */
  readonly body: string | undefined;
}

/** Throws `invalid` for a value that cannot stand in a path, and for a body that is no JSON. */
export function requestOf([method, path, ...query]: Route, input: Readonly<Record<string, unknown>>): PlainRequest {
  const rest = new Map(Object.entries(input).filter(([, value]) => value !== undefined));
  const take = (name: string): string | undefined => {
    const value = rest.get(name);
    rest.delete(name);
    return value === undefined ? undefined : String(value);
  };
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, take(name)));
  const search = new URLSearchParams();
  for (const name of query) {
    const value = take(name);
    if (value !== undefined) search.set(name, value);
  }
  const hasBody = method !== 'GET' && method !== 'DELETE';
  return {
    method,
    path: search.size > 0 ? `${filled}?${search}` : filled,
    body: hasBody ? json(Object.fromEntries(rest)) : undefined,
  };
}

function json(body: object): string {
  try {
    return JSON.stringify(body);
  } catch (cause) {
    throw new KmsError('invalid', 'the input has something in it that JSON has no form for', { cause });
  }
}

/** A value as one segment of a path. Empty and dot segments cannot be: the URL would be another one. */
function segment(name: string, value: string | undefined): string {
  if (value === undefined || value === '' || /^\.{1,2}$/.test(value)) {
    throw new KmsError('invalid', `${name}: expected a name or an id, got ${value ? `"${value}"` : 'nothing'}`);
  }
  return encodeURIComponent(value.toWellFormed());
}
