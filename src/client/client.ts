// The typed client: one method per endpoint, named as in the API description. It takes one object and returns the body
// of status 200, or throws a `KmsError` with the server's message. Runs wherever there is `fetch`.

import { type ClientEndpointId, clientPaths, type Path } from '../api/paths.ts';
import { KmsError } from '../errors.ts';
import { checkedAnswer } from './answers.ts';
import { boundedJson, longestAnswer, longestList, plainEncoding, refuseInflated } from './bounded.ts';
import { errorOfAnswer, errorOfFailure, notOurs, timedOut } from './failure.ts';
import type { CallOptions, Client } from './methods.ts';
import { againAfter, isUnchanging, type Outcome, systemTiming, type Timing, withRetries } from './retry.ts';
import type { RollbackWatch } from './rollback.ts';
import { unless } from './unless.ts';

export type { AnswerTo, CallOptions, Client, InputOf } from './methods.ts';

export interface ClientOptions {
  /** Address of the appliance, such as `https://kms.example`. */
  readonly baseUrl: string;
  /** An API key or an access token. Not needed for the few public endpoints. */
  readonly apiKey?: string | undefined;
  /** Milliseconds that a request may take, including reading its answer; `Infinity` for no limit. Default: 30,000. */
  readonly timeout?: number;
  /** Maximum of retries of a failed request, if retrying is safe; 0 for none. Default: 2. */
  readonly retries?: number;
  /** Ends every call of this client: they reject with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Default: the platform's. */
  readonly fetch?: (request: Request) => Promise<Response>;
  /** Notices a rollback of the appliance from its answers: see `rollbackWatch`. */
  readonly watch?: RollbackWatch;
  /** Additional headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** For tests: the clock of timeouts and pauses, and the randomness of pauses. */
  readonly timing?: Timing;
}

const defaultTimeout = 30_000;
const defaultRetries = 2;
/** Longest timer; a longer timeout means none. */
const longestTimer = 2 ** 31 - 1;

/**
 * A client of the appliance at `baseUrl`. It is stateless: one serves a whole program. Throws `invalid` for an invalid
 * option.
 */
export function createClient(options: ClientOptions): Client {
  const { timeout = defaultTimeout, retries = defaultRetries, timing = systemTiming } = options;
  if (!(timeout > 0)) throw new KmsError('invalid', 'timeout: expected milliseconds above 0, or Infinity');
  if (!Number.isInteger(retries) || retries < 0) throw new KmsError('invalid', 'retries: expected 0 or more');
  const base = checkedBase(options.baseUrl);
  const send = options.fetch ?? ((request: Request) => fetch(request));
  const headers = headersOf(options.apiKey, options.headers);
  const never = new AbortController().signal;

  function call(id: ClientEndpointId, route: Path, input: Record<string, unknown>, own?: AbortSignal) {
    const signal = both(options.signal, own) ?? never;
    const request = requestOf(id, route, input);
    const unchanging = isUnchanging(id, route, input);
    return withRetries(() => once(request, signal), { retries, unchanging, timing, signal });
  }

  /** Sends the request once, within the timeout. */
  async function once(request: PlainRequest, signal: AbortSignal): Promise<Outcome> {
    const [late, over] = [new AbortController(), new AbortController()];
    if (timeout <= longestTimer) {
      timing.sleep(timeout, over.signal).then(
        () => late.abort(timedOut(base, timeout)),
        () => undefined,
      );
    }
    try {
      return await unless(AbortSignal.any([signal, late.signal]), (ended) => exchange(request, ended));
    } catch (cause) {
      if (signal.aborted) return { error: signal.reason, again: 'never' };
      const final = cause instanceof KmsError || isAbort(cause);
      return { error: errorOfFailure(cause, base, signal), again: final ? 'never' : 'unchanging' };
    } finally {
      over.abort();
    }
  }

  /** Throws what `fetch` throws. */
  async function exchange({ id, method, path, body, most }: PlainRequest, signal: AbortSignal): Promise<Outcome> {
    const request = new Request(base + path, { method, headers, redirect: 'manual', signal, body: body ?? null });
    if (body !== undefined) request.headers.set('content-type', 'application/json');
    await options.watch?.ready;
    const response = await send(request);
    await options.watch?.see(response);
    await options.watch?.save();
    refuseInflated(request, response, base);
    const answer = await boundedJson(response, most, base);
    const isObject = typeof answer === 'object' && answer !== null && !Array.isArray(answer);
    if (response.status === 200) {
      return isObject ? { answer: checkedAnswer(id, answer) } : { error: notOurs(base), again: 'never' };
    }
    const error = errorOfAnswer(response, answer, base);
    const told = isObject && 'message' in answer;
    return { error, again: againAfter(response.status, told), retryAfter: error.retryAfter };
  }

  const methods = Object.entries(clientPaths).map(([id, route]) => [
    id,
    async (input: Record<string, unknown> = {}, { signal }: CallOptions = {}) =>
      call(id as ClientEndpointId, route, input, signal), // a key of `clientPaths`
  ]);
  // Cast: the methods are built from the same table of paths that declares the endpoints.
  return Object.fromEntries(methods) as Client;
}

function both(one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined {
  return one && other ? AbortSignal.any([one, other]) : (one ?? other);
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}

/**
 * The address without trailing slashes. Throws `invalid` unless it is http or https, and if it has a user, query or
 * fragment.
 */
function checkedBase(baseUrl: string): string {
  const base = typeof baseUrl === 'string' ? baseUrl.replace(/\/+$/, '') : undefined;
  if (base === undefined || !isAddress(base)) {
    throw new KmsError('invalid', 'baseUrl: expected an http or https address, such as https://kms.example');
  }
  return base;
}

/**
 * Headers of every request. `further` can replace the defaults, but neither the credential nor the type of a body.
 * Throws `invalid`.
 */
function headersOf(apiKey: string | undefined, further: Readonly<Record<string, string>> = {}): Headers {
  const headers = new Headers([['accept', 'application/json'], [...plainEncoding]]);
  for (const [name, value] of Object.entries(further)) {
    try {
      headers.set(name, value);
    } catch {
      throw new KmsError('invalid', 'headers: expected names and values that can stand in an HTTP header');
    }
  }
  if (apiKey === undefined) return headers;
  const key = typeof apiKey === 'string' ? apiKey.trim() : '';
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new KmsError('invalid', 'apiKey: expected one word', {
      hint: 'an API key looks like kms_ and 49 letters and digits',
    });
  }
  headers.set('authorization', `Bearer ${key}`);
  return headers;
}

/** In a web page the address may be relative, even empty. */
function isAddress(base: string): boolean {
  try {
    return /^https?:/.test(new Request(`${base}/`).url) && !/[?#]/.test(base);
  } catch {
    return false;
  }
}

interface PlainRequest {
  readonly id: ClientEndpointId;
  readonly method: string;
  /** Path with the query. */
  readonly path: string;
  /** JSON. */
  readonly body: string | undefined;
  /** Maximum of the answer in bytes. */
  readonly most: number;
}

/** Throws `invalid` for a value that cannot go into a path, and for a body that cannot be JSON. */
function requestOf(
  id: ClientEndpointId,
  [method, path, ...query]: Path,
  input: Readonly<Record<string, unknown>>,
): PlainRequest {
  const rest = new Map(Object.entries(input).filter(([, value]) => value !== undefined));
  const take = (name: string): string | undefined => {
    const value = rest.get(name);
    rest.delete(name);
    return value === undefined ? undefined : String(value);
  };
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, take(name)));
  if (filled !== path && isOwnPath(filled)) throw noneOfName(path);
  const search = new URLSearchParams();
  for (const name of query) {
    const value = take(name);
    if (value !== undefined) search.set(name, value);
  }
  // With DELETE, only what is given: most have nothing to say.
  const hasBody = method !== 'GET' && (method !== 'DELETE' || rest.size > 0);
  return {
    id,
    method,
    path: search.size > 0 ? `${filled}?${search}` : filled,
    body: hasBody ? json(Object.fromEntries(rest)) : undefined,
    most: query.includes('cursor') ? longestList : longestAnswer,
  };
}

/** Whether the path is one without parameters. */
function isOwnPath(filled: string): boolean {
  return Object.values(clientPaths).some(([, path]) => path === filled);
}

/** The refusal of a name that would lead to another endpoint: no thing has such a name. */
function noneOfName(path: string): KmsError {
  const thing = path.startsWith('/managed-keys/') ? 'no such managed key' : 'nothing of this name';
  return new KmsError('not-found', `there is ${thing}`);
}

function json(body: object): string {
  try {
    return JSON.stringify(body);
  } catch (cause) {
    throw new KmsError('invalid', 'the input has something in it that JSON has no form for', { cause });
  }
}

/** Encodes a value as one path segment. Throws `invalid` for empty and dot segments, which would change the URL. */
function segment(name: string, value: string | undefined): string {
  if (value === undefined || value === '' || /^\.{1,2}$/.test(value)) {
    throw new KmsError('invalid', `${name}: expected a name or an id, got ${value ? `"${value}"` : 'nothing'}`);
  }
  return encodeURIComponent(value.toWellFormed());
}
