// One header of a request. Node has parsed them all; a Headers object made of them costs as much as the rest of the way in.
import type { AppContext } from './deps.ts';

/** The header's value, undefined where there is none. `name` in lower case. */
export function headerOf(c: AppContext, name: string): string | undefined {
  const parsed = c.env?.headers;
  if (!parsed) return c.req.header(name);
  const value = parsed[name];
  return typeof value === 'object' ? value.join(', ') : value;
}
