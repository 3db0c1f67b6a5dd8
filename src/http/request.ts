// ApiRequest is a request as the app looks at it: an immutable value, with its body unread. Sockets, `fetch` and tests
// make it; nothing on its way changes it.
import { getPath, getQueryParam } from 'hono/utils/url';
import type { Bearer } from '../core/credential.ts';
import type { AddressSet } from '../model/addresses.ts';

/** The bytes of a request's body, of which none is read before it is asked for. */
export interface BodySource {
  /**
   * All of them; undefined when there are more than `limit`. `holder` is the id of the sender, absent where no
   * credential was asked for. Throws `unavailable` where too many bytes of bodies wait already, and `invalid` where it
   * could not be read to its end.
   */
  read(limit: number, holder: string | undefined): Promise<Uint8Array | undefined>;
}

/** The tenant and caller that an answer is accounted to. */
export interface Holder {
  /** The tenant's id. */
  readonly tenant: string;
  /** The caller's id; undefined where no credential was asked for. */
  readonly caller: string | undefined;
}

/** Room for an answer among all those that wait to be read. */
export interface AnswerRoom {
  /**
   * Takes room for so many bytes, and waits a while where there is none. Throws `unavailable` where none comes free.
   */
  take(bytes: number, holder: Holder): Promise<void>;
  /** The same without a wait. */
  takeNow(bytes: number, holder: Holder): void;
  /** From now on so many bytes are left to be sent; what was taken beyond them is given back. */
  left(bytes: number): void;
  /** Breaks the connection: what went out is not whole, and must not look so. */
  cut(): void;
}

/** By lower-case name, as Node parses them. */
type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>;

export interface ApiRequest {
  readonly method: string;
  /** The path as sent, with escapes, but without dot segments: normalised as URLs are (WHATWG). */
  readonly path: string;
  /** The query with its question mark; empty without one. */
  readonly search: string;
  readonly headers: RequestHeaders;
  /**
   * Came through the local socket or from within the process: without a credential of its own it acts as the local
   * administrator.
   */
  readonly local?: boolean | undefined;
  /** In the form of `plainAddress`; undefined if unknown. */
  readonly remoteAddress?: string | undefined;
  /** The tenant's name, where it is known by other means than the host. */
  readonly tenant?: string | undefined;
  /** The name of another system's protocol that the listener speaks. Absent: the appliance's own API. */
  readonly surface?: string | undefined;
  /** Addresses that may ask on the surface `tang`. */
  readonly tangClients?: AddressSet | undefined;
  readonly body: BodySource;
  /** Absent where long answers share no room: they take what they need. */
  readonly room?: AnswerRoom | undefined;
}

/** A credential as it came: a token, or the right of the administrator at the machine. */
export type Credential = Bearer | 'local';

export const emptyBody: BodySource = { read: async () => new Uint8Array() };

/** The header's value, undefined where there is none. `name` in lower case. */
export function headerOf({ headers }: Pick<ApiRequest, 'headers'>, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'object' ? value.join(', ') : value;
}

const noQuery: Readonly<Record<string, string>> = Object.freeze({});

/** The first of the query's values for each name. */
export function queryOf({ search }: Pick<ApiRequest, 'search'>): Readonly<Record<string, string>> {
  if (search === '') return noQuery;
  // Cast: without a name it answers all of them.
  return getQueryParam(`http://host/${search}`) as unknown as Record<string, string>;
}

/** With escapes decoded except those of separators, such as `%2F`; invalid ones stay. */
export function decodedPath(path: string): string {
  if (!path.includes('%')) return path;
  // Cast: it reads the address alone.
  return getPath({ url: `http://host${path}` } as Request);
}
