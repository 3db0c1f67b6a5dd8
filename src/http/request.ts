// ApiRequest is a request as the app sees it: an immutable value whose body is not read yet. Sockets, `fetch` and tests
// make it.
import { getPath, getQueryParam } from 'hono/utils/url';
import type { Bearer, Proven } from '../core/credential.ts';
import type { PresentedCertificate } from '../core/proofs/client-certificates.ts';
import { invalidField } from '../errors.ts';
import type { AddressSet } from '../model/addresses.ts';
import { isHex } from '../model/json.ts';
import { consoleHeader, planHeader } from '../model/names.ts';

/** The bytes of a request's body, read only on demand. */
export interface BodySource {
  /**
   * All bytes; undefined if there are more than `limit`. `holder` is the sender's id, absent if no credential is
   * needed. Throws `unavailable` if too many bytes of bodies are held already, `invalid` if the body breaks off.
   */
  read(limit: number, holder: string | undefined): Promise<Uint8Array | undefined>;
  /** Gives back the room that the body takes while its request waits for people; absent where none is counted. */
  release?(): void;
  /** Takes that room again. Throws `unavailable` if there is none. */
  reclaim?(): void;
}

/** The tenant and caller that an answer is accounted to. */
export interface Holder {
  /** The tenant's id. */
  readonly tenant: string;
  /** The caller's id; undefined if no credential is needed. */
  readonly caller: string | undefined;
}

/** A share of the memory for answers that clients have not read yet. */
export interface AnswerRoom {
  /** Reserves room for this many bytes, waiting a while if needed. Throws `unavailable` if none comes free. */
  take(bytes: number, holder: Holder): Promise<void>;
  /** Reserves room without waiting; throws `unavailable`. */
  takeNow(bytes: number, holder: Holder): void;
  /** Sets how many bytes are still to be sent, and gives back what was reserved beyond them. */
  left(bytes: number): void;
  /** Gives back all that was reserved: there will be another answer. */
  release(): void;
  /** Breaks the connection, so that an incomplete answer does not look whole. */
  cut(): void;
}

/** Keyed by lower-case name, as Node parses them. */
type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>;

export interface ApiRequest {
  readonly method: string;
  /** The path as sent, with escapes but without dot segments: normalised as in URLs (WHATWG). */
  readonly path: string;
  /** The query with its question mark; empty if there is none. */
  readonly search: string;
  readonly headers: RequestHeaders;
  /** Came through the local socket or in process: without a credential it acts as the local administrator. */
  readonly local?: boolean | undefined;
  /** In the form of `plainAddress`; undefined if unknown. */
  readonly remoteAddress?: string | undefined;
  /** The client's certificate, of which TLS has shown that it has the key; no header stands for one. */
  readonly certificate?: PresentedCertificate | undefined;
  /** The tenant's name, if it is known by other means than the host. */
  readonly tenant?: string | undefined;
  /** The name of another system's protocol that the listener speaks. Absent: the appliance's own API. */
  readonly surface?: string | undefined;
  /** Addresses that may use the surface `tang`. */
  readonly tangClients?: AddressSet | undefined;
  /** The header Host as it was sent, if `headers` has it in canonical form: signatures are over that. */
  readonly sentHost?: string | undefined;
  /** The id that the surface tells its client; absent: the log makes one. */
  readonly requestId?: string | undefined;
  /** The region that the surface `aws` answers for. */
  readonly awsRegion?: string | undefined;
  readonly body: BodySource;
  /** Whether the client has ended its connection; absent where that is not known. */
  readonly isGone?: (() => boolean) | undefined;
  /** Absent if long answers share no budget: each takes the memory it needs. */
  readonly room?: AnswerRoom | undefined;
}

/**
 * A credential as sent: a token, a checked proof, the request's certificate, or the right of the administrator at the
 * machine.
 */
export type Credential = Bearer | Proven | 'certificate' | 'local';

export const emptyBody: BodySource = { read: async () => new Uint8Array() };

/** A header's value; undefined if it is absent. `name` is in lower case. */
export function headerOf({ headers }: Pick<ApiRequest, 'headers'>, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'object' ? value.join(', ') : value;
}

/** The digest of the plan that the request belongs to; undefined if it names none. Throws `invalid`. */
export function planOf(request: Pick<ApiRequest, 'headers'>): string | undefined {
  const digest = headerOf(request, planHeader);
  if (digest === undefined || isHex(digest, 64)) return digest;
  throw invalidField(planHeader, 'expected the digest of a plan: SHA-256, 64 hex digits in lower case');
}

/** Headers of requests that pages make. Browsers add their certificates to these, whatever page it is. */
const pageHeaders = ['sec-fetch-site', 'origin', consoleHeader];

/** The client's certificate; undefined for a request that a page made. */
export function programsCertificate(request: ApiRequest): PresentedCertificate | undefined {
  const { certificate, local } = request;
  if (!certificate || local) return undefined;
  return pageHeaders.some((name) => headerOf(request, name) !== undefined) ? undefined : certificate;
}

const noQuery: Readonly<Record<string, string>> = Object.freeze({});

/** The query's values by name, the first of each. */
export function queryOf({ search }: Pick<ApiRequest, 'search'>): Readonly<Record<string, string>> {
  if (search === '') return noQuery;
  // Cast: without a name it returns all of them.
  return getQueryParam(`http://host/${search}`) as unknown as Record<string, string>;
}

/** The path with escapes decoded except those of separators, such as `%2F`; invalid ones stay. */
export function decodedPath(path: string): string {
  if (!path.includes('%')) return path;
  // Cast: it reads only the URL.
  return getPath({ url: `http://host${path}` } as Request);
}
