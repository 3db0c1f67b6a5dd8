// Connection is one of three ways to an appliance: over the network with an API key, through the socket of a server on
// this machine, or by opening the data directory in this process. All three reach the same app and get the same
// answers.
import { stat } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import type { AnswerOf } from '../api/endpoints.ts';
import type { LocalArguments, LocalId, LocalOf } from '../api/local-endpoints.ts';
import { localPaths } from '../api/paths.ts';
import type { SealStatus } from '../api/system.ts';
import { boundedJson, longestAnswer } from '../client/bounded.ts';
import { type Client, type ClientOptions, createClient } from '../client/client.ts';
import { errorOfAnswer, errorOfFailure, notOurs, timedOut, unexpected } from '../client/failure.ts';
import { KmsError, reasonOf } from '../errors.ts';
import { tenantHeader } from '../model/names.ts';
import { withAskedMoments } from './asked-moments.ts';
import type { Cli } from './command.ts';
import { localTenant } from './default-tenants.ts';
import { withoutKey } from './exit.ts';
import { remoteFetch } from './fetch.ts';
import { say } from './io.ts';
import { isServing, socketFetch } from './local-socket.ts';
import { keySources } from './master-key.ts';
import { withNearName } from './near-names.ts';
import { inOwnWords } from './own-words.ts';
import { withReason } from './reason.ts';
import { type Watched, watched } from './seen-states.ts';
import { dataDirectory, isOpenToOthers, namedRemote, type Remote, remoteOf, sharedStore } from './target.ts';
import { visible } from './text.ts';

type Way = 'network' | 'socket' | 'in-process';

export interface Connection {
  readonly way: Way;
  readonly client: Client;
  /** The same client, which passes each answer to `see` before it is read. */
  clientThatShows(see: (response: Response) => void): Client;
  readonly baseUrl: string;
  /** Sends a request like the client, but without the API key; for endpoints outside the API. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** The same, which the signal to stop leaves to its end. */
  readonly steadyFetch: (request: Request) => Promise<Response>;
  /** The appliance's id, as `kms status` shows it; undefined if it does not reveal it. Throws `sealed`. */
  applianceId(): Promise<string | undefined>;
  /** They name the tenant to the appliance of this machine. */
  readonly tenantHeaders: Record<string, string>;
  /** The id of the tenant; undefined if the appliance does not reveal it. */
  tenantId(): Promise<string | undefined>;
  /** Headers with the credential; empty on this machine. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether a client certificate stands for a credential. */
  readonly hasCertificate?: boolean;
  close(): Promise<void>;
}

/** Placeholder host of local requests; a header names the tenant. */
export const localUrl = 'http://kms.local';

/** Timeout for a data directory that another command holds, and the polling interval, in milliseconds. */
const lockTimeout = 5000;
const pause = 50;

/** Over the network `networkFetch` has a timeout; on this machine a person ends the command with Ctrl-C. */
const unlimited = Number.POSITIVE_INFINITY;

/**
 * Runs `use` with a client, over the connection that the options and the data directory select, and closes it
 * afterwards.
 */
export async function withClient<T>(
  cli: Cli,
  use: (client: Client, connection: Connection) => Promise<T>,
  open = openConnection,
): Promise<T> {
  const connection = await open(cli);
  try {
    return await use(connection.client, connection);
  } catch (error) {
    const answered = asAnswered(connection, error);
    const worded = inOwnWords(answered);
    throw asTyped(await withNearName(cli, connection.client, worded, () => allTenants(cli, connection)));
  } finally {
    await connection.close();
  }
}

async function allTenants(cli: Cli, connection: Connection) {
  if (connection.way === 'network') return [];
  return (await localOf(cli, connection).ask('listTenants', { query: { deleted: 'true' } })).data;
}

/** Translates an error about the tenant header, which is internal, to the option that people type. */
export function asTyped(error: unknown): unknown {
  const choice = error instanceof KmsError ? error.fields?.[tenantHeader] : undefined;
  if (choice === undefined) return error;
  const hint = '`kms tenant use NAME` makes one the default for later commands';
  return new KmsError('usage', `name a tenant with --tenant, ${choice}`, { hint });
}

function isOfReading(error: unknown): error is Error {
  return error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
}

/**
 * Anything may answer over the network, or at a socket in a directory that somebody else made, so an answer that does
 * not fit is not a defect of this program. Hints from the appliance of this machine are shown.
 */
function asAnswered({ way, ...more }: Pick<Connection, 'way'> & Partial<Connection>, error: unknown): unknown {
  if (way !== 'in-process' && isOfReading(error)) {
    const { code, message, hint, cause } = unexpected(error.message, error);
    const local = 'is it a kms of this version that serves the data directory? its log says which';
    return new KmsError(code, message, { hint: way === 'socket' ? local : hint, cause });
  }
  const { headers, hasCertificate } = more;
  if (way === 'network') return headers?.authorization === undefined ? withoutKey(error, hasCertificate) : error;
  const { hint } = Object(error instanceof KmsError ? error.body : undefined);
  if (!(error instanceof KmsError) || typeof hint !== 'string') return error;
  return new KmsError(error.code, error.message, { ...error, hint, cause: error.cause });
}

/** Runs `use`, which reads answers of the server on this machine elsewhere than in `withLocal`. */
export async function readingServed<T>(use: () => Promise<T>): Promise<T> {
  try {
    return await use();
  } catch (error) {
    throw asAnswered({ way: 'socket' }, error);
  }
}

export async function openConnection(cli: Cli, later?: boolean): Promise<Connection> {
  const remote = await remoteOf(cli);
  return remote === undefined ? openHere(cli, later) : overNetwork(cli, remote);
}

/**
 * The appliance of this machine, whatever else is configured; `later`: only its server, which may not be running yet.
 */
async function openHere(cli: Cli, later = false): Promise<Connection> {
  for (const option of ['--api-key-file', '--ca-file', '--client-cert', '--client-key'] as const) {
    if (cli.globals.isTyped(option)) throw cli.wrong(`${option} goes with --server`);
  }
  const data = await dataDirectory(cli);
  for (const until = performance.now() + lockTimeout; ; ) {
    const isRunning = await isServed(cli);
    if (!isRunning && (later || !sharedStore(cli))) await mustBeThere(data);
    if (isRunning || later) {
      return locally(cli, 'socket', { fetch: servedFetch(cli, data), close: async () => undefined });
    }
    try {
      return await inProcess(cli, data);
    } catch (error) {
      // Another command holds it, or a server that is starting or stopping: both are done soon.
      if (!(error instanceof KmsError) || error.code !== 'in-use' || performance.now() > until) throw error;
      await setTimeout(pause, undefined, { signal: cli.io.signal });
    }
  }
}

/** Asks the server of a data directory, which may stop in the meantime. */
function servedFetch({ io }: Cli, data: string): Connection['fetch'] {
  const send = socketFetch(data);
  return async (request) => {
    try {
      return await send(request);
    } catch (cause) {
      if (cause instanceof KmsError || io.signal.aborted || request.signal.aborted) throw cause;
      throw new KmsError('unavailable', `the server of ${data} does not answer: ${reasonOf(cause)}`, {
        hint: 'see whether it still runs, and what its log says',
        cause,
      });
    }
  };
}

/**
 * Whether a server runs on the data directory. Throws `refused` if that appliance has its own store while the command
 * is for one in a database: the request would reach the wrong appliance.
 */
export async function isServed(cli: Cli): Promise<boolean> {
  const data = await dataDirectory(cli);
  const store = sharedStore(cli);
  if (store !== undefined) (await import('../platform/store-url.ts')).checkedUrl(store);
  if (!(await isServing(data))) return false;
  const isTyped = cli.globals.isTyped('--store') || !cli.globals.isTyped('--data');
  if (store !== undefined && isTyped) {
    const { dataDirState, notOfNode } = await import('../platform/data-dir.ts');
    if ((await dataDirState(data)) !== 'node') throw notOfNode(data);
  }
  return true;
}

async function inProcess(cli: Cli, data: string): Promise<Connection> {
  const { openAppliance } = await import('../appliance/command-appliance.ts');
  const appliance = await openAppliance({
    data,
    store: sharedStore(cli),
    keyFile: cli.globals.get('--key-file'),
    sources: await keySources(cli),
    onEvent: ({ level, message }) => {
      if (level !== 'info') void say(cli.io, `${level === 'warn' ? 'warning' : level}: ${visible(message)}`);
    },
  });
  const fetch: Connection['fetch'] = (request) => appliance.fetchLocal(request);
  return locally(cli, 'in-process', { fetch, close: () => appliance.close() });
}

/** Reported before the server's code is loaded, with all three ways in the hint. */
async function mustBeThere(data: string): Promise<void> {
  const found = await stat(data).then(Boolean, () => false);
  if (found) return;
  throw new KmsError('unavailable', `nothing to talk to: the data directory ${data} does not exist`, {
    hint: 'make one with `kms init`, name another with --data DIR, or a server with --server URL',
  });
}

export async function localHeaders(cli: Cli): Promise<Record<string, string>> {
  const tenant = await localTenant(cli);
  return tenant === undefined ? {} : { [tenantHeader]: tenant };
}

async function locally(cli: Cli, way: Way, { fetch, close }: Pick<Connection, 'fetch' | 'close'>): Promise<Connection> {
  const headers = await localHeaders(cli);
  const { fetches, save, applianceId, seen } = watched(
    cli,
    withAskedMoments(cli, withReason(cli, fetch), localUrl),
    localUrl,
  );
  const made = clients({ baseUrl: localUrl, fetch: fetches.fetch, headers, retries: 0, timeout: unlimited });
  return {
    way,
    ...made,
    baseUrl: localUrl,
    ...fetches,
    headers: {},
    tenantHeaders: headers,
    applianceId,
    tenantId: () => tenantId(made.client, seen),
    close: () => save().finally(close),
  };
}

async function overNetwork(cli: Cli, remote: Remote): Promise<Connection> {
  const { baseUrl, apiKey, certificate, profile } = remote;
  if (cli.globals.isTyped('--tenant')) {
    throw new KmsError('usage', '--tenant is for the local appliance; over the network the host name decides', {
      hint: `use the tenant's own address ${profile === undefined ? 'with --server' : 'in a profile'}`,
    });
  }
  const url = new URL(baseUrl);
  if (apiKey !== undefined && isOpenToOthers(url)) {
    await say(cli.io, `warning: the API key goes to ${url.host} unencrypted; use an https address`);
  }
  const reach = withAskedMoments(cli, withReason(cli, remoteFetch(remote), 'remote'), baseUrl);
  const watch = watched(cli, reach, baseUrl);
  const { fetches, save, applianceId, seen } = watch;
  const made = clients({
    baseUrl,
    fetch: fetches.fetch,
    timeout: unlimited,
    ...(apiKey === undefined ? {} : { apiKey }),
  });
  const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  return {
    way: 'network',
    ...made,
    baseUrl,
    ...fetches,
    headers,
    hasCertificate: certificate !== undefined,
    tenantHeaders: {},
    applianceId,
    tenantId: () => tenantId(made.client, seen),
    close: save,
  };
}

/**
 * Every answer to a known caller names the tenant. If there was none yet, this sends a request that any caller may
 * make.
 */
async function tenantId(client: Client, seen: Watched['seen']): Promise<string | undefined> {
  if (!seen()) {
    await client.listSessions().catch((error) => {
      // An API key has no sessions. A request that fits several tenants belongs to none.
      const isCaller = error instanceof KmsError && error.code === 'invalid';
      if (!isCaller || error.fields?.[tenantHeader] !== undefined) throw error;
    });
  }
  return seen()?.tenant;
}

function clients(options: ClientOptions & Pick<Connection, 'fetch'>): Pick<Connection, 'client' | 'clientThatShows'> {
  return {
    client: createClient(options),
    clientThatShows(see) {
      const fetch = async (request: Request): Promise<Response> => {
        const response = await options.fetch(request);
        see(response);
        return response;
      };
      return createClient({ ...options, fetch });
    },
  };
}

/** Timeout for an appliance that a program waits for, in milliseconds: no person sees the wait. */
const patience = 30_000;

/**
 * Runs `ask` with a timeout: `ms`, or the default for programs. Throws `unavailable` on timeout, even if `ask` ignores
 * the signal.
 */
export async function inTime<T>(
  { baseUrl }: Connection,
  ask: (signal: AbortSignal) => Promise<T>,
  ms = patience,
): Promise<T> {
  const [late, over] = [new AbortController(), new AbortController()];
  const { promise: ended, reject } = Promise.withResolvers<never>();
  setTimeout(ms, undefined, { signal: over.signal }).then(
    () => {
      const error = timedOut(baseUrl, ms);
      late.abort(error);
      reject(error);
    },
    () => undefined,
  );
  try {
    return await Promise.race([ask(late.signal), ended]);
  } finally {
    over.abort();
  }
}

interface Question {
  readonly method: string;
  readonly path: string;
  readonly body?: object | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request that the client has no method for; resolves to an answer with status 200. */
export async function send(cli: Cli, connection: Connection, question: Question): Promise<Response> {
  const { baseUrl, fetch } = connection;
  const { method, path, body, headers } = question;
  const init: RequestInit =
    body === undefined
      ? { method, headers: { ...headers } }
      : { method, headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) };
  let response: Response;
  try {
    response = await fetch(new Request(baseUrl + path, init));
  } catch (cause) {
    throw errorOfFailure(cause, baseUrl, cli.io.signal);
  }
  if (response.status !== 200) throw errorOfAnswer(response, await json(response, connection), baseUrl);
  return response;
}

/**
 * The same for a JSON answer. Its shape is trusted: the server is from the same executable, or the answer is only
 * shown.
 */
export async function ask<T>(cli: Cli, connection: Connection, question: Question): Promise<T> {
  const headers = { accept: 'application/json', ...question.headers };
  const answer = await json(await send(cli, connection, { ...question, headers }), connection);
  if (typeof answer !== 'object' || answer === null) throw notOurs(connection.baseUrl);
  return answer as T;
}

/** Bytes of an answer of this machine about the whole appliance: some hundred for each of very many tenants. */
const longestLocal = 4 * longestAnswer;

/** Undefined if it is not JSON. Throws `unavailable` if it is too long or too deep. */
async function json(response: Response, { way, baseUrl }: Pick<Connection, 'way' | 'baseUrl'>): Promise<unknown> {
  try {
    return await boundedJson(response, way === 'network' ? longestAnswer : longestLocal, baseUrl);
  } catch (error) {
    if (error instanceof KmsError) throw error;
    return undefined;
  }
}

/** Requests of the operator, on the appliance's machine. */
export interface Local {
  ask<Id extends LocalId>(id: Id, ...input: LocalArguments<Id>): Promise<AnswerOf<LocalOf<Id>>>;
  /** For an answer other than JSON. */
  stream<Id extends LocalId>(id: Id, ...input: LocalArguments<Id>): Promise<ReadableStream<Uint8Array>>;
}

/** Uses the running server's socket or opens the data directory, never the network. */
export async function withLocal<T>(cli: Cli, use: (local: Local) => Promise<T>): Promise<T> {
  const named = namedRemote(cli);
  if (named !== undefined) {
    const option = named.server === undefined ? '--profile' : '--server';
    throw cli.wrong(`this works on the machine of the appliance only, not with ${option}`);
  }
  return withClient(cli, (_client, connection) => use(localOf(cli, connection)), openHere);
}

/** The same over an open local connection. */
export function localOf(cli: Cli, connection: Connection): Local {
  const headers = connection.tenantHeaders;
  return {
    ask: (id, ...[input]) => ask(cli, connection, { ...localQuestion(id, input), headers }),
    stream: async (id, ...[input]) =>
      (await send(cli, connection, { ...localQuestion(id, input), headers })).body ?? new ReadableStream(),
  };
}

function localQuestion(
  id: LocalId,
  { params = {}, query = {}, body }: { params?: object; query?: object; body?: object } = {},
): Question {
  const [method, pattern] = localPaths[id];
  const values = new Map(Object.entries(params));
  const path = pattern.replace(/\{(\w+)\}/g, (_, name) => segment(String(values.get(name))));
  const search = String(new URLSearchParams(Object.entries(query)));
  return {
    method,
    path: search === '' ? path : `${path}?${search}`,
    body: body ?? (method === 'POST' ? {} : undefined),
  };
}

/** Escapes dot segments, which would change the URL. */
function segment(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(/^\.+$/, '-');
}

/**
 * For requests to a server, which may be sealed. Opening the data directory in this process is no substitute, since the
 * keys would be gone with it; except with `orNode`, as another node, where the effect is on the other nodes. `later`: a
 * server that is not running yet is asked once it is.
 */
export async function withServer<T>(
  cli: Cli,
  use: (connection: Connection) => Promise<T>,
  { orNode = false, later = false } = {},
): Promise<T> {
  const isEnough = later || (orNode && sharedStore(cli) !== undefined);
  if (!isEnough && (await remoteOf(cli)) === undefined && !(await isServed(cli))) {
    throw new KmsError('unavailable', `no server is running on ${await dataDirectory(cli)}`, {
      hint: 'start one with `kms serve`, or name one with --server URL',
    });
  }
  const connection = await openConnection(cli, later);
  try {
    return await use(connection);
  } catch (error) {
    throw asTyped(asAnswered(connection, error));
  } finally {
    await connection.close();
  }
}

export async function sealStatus(cli: Cli, connection: Connection): Promise<SealStatus> {
  return ask<SealStatus>(cli, connection, { method: 'GET', path: '/system/seal-status' });
}
