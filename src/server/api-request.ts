// A request of a socket as the app takes it. The target is normalised as URLs are (WHATWG) where it is not plain; it is
// taken no wider than by the adapter that sends answers in pieces, which looks at it once all is done and recorded.
import type { IncomingMessage } from 'node:http';
import type { ApiRequest } from '../http/request.ts';

/** A Host that stands for itself. */
const plainHost = /^[a-z0-9._-]+(?::(?:[1-5]\d{3,4}|[6-9]\d{3}))?$/;
/** A path that does: nothing in it is escaped, and neither `.` nor `..` leads away. */
const plainPath = /^(?:\/[\w-][\w.-]*)+$/;
/** Characters that URLs keep as they are. */
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

/** A backslash in a path is a slash to some programs. */
function hasBackslash(url: string): boolean {
  const backslash = url.indexOf('\\');
  if (backslash < 0) return false;
  const question = url.indexOf('?');
  return question < 0 || backslash < question;
}

function isHostOf({ hostname }: URL, host: string): boolean {
  return hostname.length === host.length || hostname === host.replace(/:\d+$/, '').toLowerCase();
}
