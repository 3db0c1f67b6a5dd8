// ApiRequest of a Node request. A target that is not plain is normalised as a URL (WHATWG). Nothing is accepted that
// the library for streamed answers would refuse, since it parses the target only once all is done and recorded.
import type { IncomingMessage } from 'node:http';
import type { ApiRequest } from '../http/request.ts';

/** A Host that needs no parsing. */
const plainHost = /^[a-z0-9._-]+(?::(?:[1-5]\d{3,4}|[6-9]\d{3}))?$/;
/** A path that needs no parsing: the root, or one without escapes, and without segments `.` or `..`. */
const plainPath = /^(?:\/|(?:\/[\w-][\w.-]*)+)$/;
/** Characters that URLs leave unescaped. */
const keptCharacters = /^\/[!#$&-;=?-[\]_a-z~]*$/;
const dotSegment = /\/\.\.?(?:[/?#]|$)/;

export type RequestTarget = Pick<ApiRequest, 'path' | 'search'>;

/** Undefined for a request whose target or Host cannot be read. */
export function targetOf({ url = '', headers: { host = '' } }: IncomingMessage): RequestTarget | undefined {
  const isPlainHost = plainHost.test(host);
  if (isPlainHost && plainPath.test(url)) return { path: url, search: '' };
  if (hasBackslash(url)) return undefined;
  if (!url.startsWith('/')) return /^https?:\/\//.test(url) ? partsOf(URL.parse(url)) : undefined;
  if (isPlainHost && keptCharacters.test(url) && !dotSegment.test(url)) return partsOf(URL.parse(`http://host${url}`));
  const parsed = URL.parse(`http://${host}${url}`);
  return parsed && (isPlainHost || isHostOf(parsed, host)) ? partsOf(parsed) : undefined;
}

function partsOf(url: URL | null): RequestTarget | undefined {
  return url ? { path: url.pathname, search: url.search } : undefined;
}

/** Some programs read a backslash in a path as a slash. */
function hasBackslash(url: string): boolean {
  const backslash = url.indexOf('\\');
  if (backslash < 0) return false;
  const question = url.indexOf('?');
  return question < 0 || backslash < question;
}

function isHostOf({ hostname }: URL, host: string): boolean {
  return hostname.length === host.length || hostname === host.replace(/:\d+$/, '').toLowerCase();
}
