// The typed client: a method for each endpoint, named as in the API description, taking one object and answering the body of
// status 200 or throwing a `KmsError` with the server's message. Runs wherever there is `fetch`.
import type { AnswerOf, BodyOf, ParamsOf, QueryOf } from '../api/endpoints.ts';
import { KmsError } from '../errors.ts';
import { errorOfAnswer, errorOfFailure, notJson } from './failure.ts';
import { type ClientEndpoint, type ClientEndpointId, type Route, routes } from './routes.ts';

export interface ClientOptions {
  /** Where the appliance answers, such as `https://kms.example`. */
  readonly baseUrl: string;
  /** An API key or an access token. Not needed for the few public endpoints. */
  readonly apiKey?: string;
  /** Default: the platform's. */
  readonly fetch?: (request: Request) => Promise<Response>;
  /** Told of every answer before it is read: see rollback.ts. */
  readonly watch?: (response: Response) => Promise<void>;
  /** Further headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
}

/** Switches such as `id: true` may be given as what they are; everything is sent as text. */
type QueryInput<Q> = { readonly [Name in keyof Q]: string extends Q[Name] ? string | boolean : Q[Name] };

type Inputs = {
  readonly [E in ClientEndpoint as E['id']]: ParamsOf<E> & QueryInput<QueryOf<E>> & BodyOf<E>;
};
type Answers = { readonly [E in ClientEndpoint as E['id']]: AnswerOf<E> };

/** What the method `Id` takes: path parameters, query parameters and fields of the body in one object. */
export type InputOf<Id extends ClientEndpointId> = Inputs[Id];
/** What the method `Id` answers. */
export type AnswerTo<Id extends ClientEndpointId> = Answers[Id];

type Method<Input, Answer> =
  Record<never, never> extends Input
    ? (input?: Input, options?: CallOptions) => Promise<Answer>
    : (input: Input, options?: CallOptions) => Promise<Answer>;

export type Client = { readonly [Id in ClientEndpointId]: Method<Inputs[Id], Answers[Id]> };

/** A client of the appliance at `baseUrl`. It keeps no state: one serves a whole program. */
export function createClient(options: ClientOptions): Client {
  const base = options.baseUrl.replace(/\/+$/, '');
  const send = options.fetch ?? ((request: Request) => fetch(request));
  const headers: Record<string, string> = { accept: 'application/json', ...options.headers };
  if (options.apiKey !== undefined) headers.authorization = `Bearer ${options.apiKey}`;

  async function call(route: Route, input: Record<string, unknown>, signal?: AbortSignal): Promise<unknown> {
    const { method, path, body } = requestOf(route, input);
    const init: RequestInit = { method, headers, redirect: 'manual' };
    if (signal) init.signal = signal;
    if (body !== undefined) {
      init.body = JSON.stringify(body);
      init.headers = { ...headers, 'content-type': 'application/json' };
    }
    let response: Response;
    let text: string;
    try {
      response = await send(new Request(base + path, init));
      await options.watch?.(response);
      text = await response.text();
    } catch (cause) {
      throw errorOfFailure(cause, base, signal);
    }
    const answer = parse(text);
    if (response.status !== 200) throw errorOfAnswer(response, answer, base);
    if (typeof answer !== 'object' || answer === null) throw notJson(base);
    return answer;
  }

  const methods = Object.entries(routes).map(([id, route]) => [
    id,
    (input: Record<string, unknown> = {}, { signal }: CallOptions = {}) => call(route, input, signal),
  ]);
  // Each method is made from its route; that the routes are those of the declarations is checked where they stand.
  return Object.fromEntries(methods) as Client;
}

function requestOf([method, path, ...query]: Route, input: Record<string, unknown>) {
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
    body: hasBody ? Object.fromEntries(rest) : undefined,
  };
}

/** A value as one segment of a path. Empty and dot segments cannot be: the URL would be another one. */
function segment(name: string, value: string | undefined): string {
  if (value === undefined || value === '' || /^\.{1,2}$/.test(value)) {
    throw new KmsError('invalid', `${name}: expected a name or an id, got ${value ? `"${value}"` : 'nothing'}`);
  }
  return encodeURIComponent(value.toWellFormed());
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
