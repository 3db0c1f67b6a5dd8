// Request is what comes in, as whoever received it hands it on: its headers, its origin, and its body, unread.
import type { AddressSet } from '../model/addresses.ts';
import type { JsonObject } from '../model/json.ts';

/** The bytes of a request's body, of which none is read before it is asked for. */
export interface BodySource {
  /**
   * All of them; undefined when there are more than `limit`. `holder` is the id of who sends them, absent where no
   * credential was asked for. Throws `unavailable` where too many bytes of bodies wait already, and `invalid` where it
   * could not be read to its end.
   */
  read(limit: number, holder: string | undefined): Promise<Uint8Array | undefined>;
  /** The same as the JSON value of the body, where whoever calls makes one of what came. */
  value?(limit: number, holder: string | undefined): Promise<unknown>;
}

/** Whose an answer is. */
export interface Holder {
  /** The tenant's id. */
  readonly tenant: string;
  /** The id of who asks; undefined where no credential was asked for. */
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

/** Given with each request to `app.fetch(request, env)`. */
export interface RequestEnv {
  /**
   * Came through the local socket or from within the process: without a credential of its own it acts as the local
   * administrator.
   */
  readonly local?: boolean;
  /** Came to the listener for software that speaks Vault transit. */
  readonly transit?: boolean;
  /** Came to the listener for clients of Tang: the addresses that may ask there. */
  readonly tang?: AddressSet;
  /** Whose the request is, by the tenant's name, where whoever calls found out. */
  readonly tenant?: string;
  /** As `plainAddress` has it. */
  readonly remoteAddress?: string | undefined;
  /** The request's body, where whoever calls keeps it back until it is asked for; all else is read from the request. */
  readonly body?: BodySource | undefined;
  /** Where long answers have to share it; else they take what they need. */
  readonly room?: AnswerRoom | undefined;
  /** Makes what is sent of the body of an answer of status 200, where whoever calls wants another. */
  readonly answer?: ((body: JsonObject) => object) | undefined;
  /**
   * The request's headers by lower-case name, where whoever calls has them parsed; all else is read from the request.
   */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
}

/** A request as the app looks at it: what is read of Hono's context, and all that a path without parameters needs. */
export interface AppContext {
  readonly env: RequestEnv | undefined;
  readonly req: {
    readonly method: string;
    readonly path: string;
    readonly url: string;
    /** Where `env` has no body. */
    readonly raw: { readonly body: ReadableStream<Uint8Array> | null };
    /** The first of the query's values for each name. */
    query(): Record<string, string>;
    /** The values of the path's parameters. */
    param(): Readonly<Record<string, string>>;
    header(name: string): string | undefined;
  };
}

/**
 * The header's value, undefined where there is none. `name` in lower case. Node has parsed them all; a Headers object
 * made of them costs as much as the rest of the way in.
 */
export function headerOf(c: AppContext, name: string): string | undefined {
  const parsed = c.env?.headers;
  if (!parsed) return c.req.header(name);
  const value = parsed[name];
  return typeof value === 'object' ? value.join(', ') : value;
}
