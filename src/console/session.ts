// Session is the user who is logged in with their flags, and the client that sends their credential. The token is in a
// cookie that scripts cannot read. The page holds the cookie's key, which all windows of the browser share, so that a
// session survives a reload. An API key is in its page's memory only. When the appliance no longer accepts a
// credential, that is reported once.
import { createContext, useContext } from 'hono/jsx/dom';
import type { User } from '../api/users.ts';
import { type CallOptions, type Client, createClient } from '../client/client.ts';
import { errorOfAnswer, errorOfFailure } from '../client/failure.ts';
import { formatState, parseState, type RollbackEvents, rollbackWatch, type StateMemory } from '../client/rollback.ts';
import { KmsError } from '../errors.ts';
import { type Flags, parseFlags } from '../model/flags.ts';
import { isJsonObject } from '../model/json.ts';
import { consoleHeader, consoleKeyName, enrolFirst } from '../model/names.ts';
import { type KeptNames, keptNames } from './kept-names.ts';
import { baseUrl } from './navigation.ts';

/** Credential of a login: the key of the session's cookie, or a typed API key. */
export type Credential =
  | { readonly key: string; readonly user: User }
  | { readonly bearer: string; readonly user: undefined; readonly flags: User['flags'] };

export interface Session {
  /** Undefined with an API key. */
  readonly user: User | undefined;
  /** Those of an API key are as they were at the login. */
  readonly flags: Readonly<Record<string, unknown>>;
  /** The flags, parsed. */
  readonly may: Flags;
}

export function sessionOf(user: User | undefined, flags: Session['flags'] = user?.flags ?? { '*': true }): Session {
  return { user, flags, may: parseFlags(flags) };
}

export const SessionContext = createContext<Session>(sessionOf(undefined));

/** The current session, for deeply nested components. */
export function useSession(): Session {
  return useContext(SessionContext);
}

interface SessionEvents extends RollbackEvents {
  /** The token was refused. Return false to be called again at the next refusal. */
  readonly onEnded: () => boolean;
  /** The refreshed user. */
  readonly onUser: (user: User) => void;
  /** The user must add a second factor before anything else. */
  readonly onEnrol: () => void;
}

export interface SessionClient {
  readonly api: Client;
  /**
   * The same client for polls: its requests to what may be watched carry the tag of the last answer, and are not
   * recorded each time.
   */
  readonly polls: Client;
  /** Names of all that the session may list. */
  readonly names: KeptNames;
  /** Gets the bytes with which a POST is answered, such as `/system/backup`; throws as `api` does. */
  readonly stream: (path: string, signal: AbortSignal) => Promise<ReadableStream<Uint8Array>>;
  /** Resolves once no request of a page is under way, polls not counted: they come after what the page needs. */
  readonly settled: () => Promise<void>;
  /** To be called on user activity: keeps the session alive. */
  readonly active: () => void;
  /** Ends the session, here and at the appliance; never throws. */
  readonly end: () => Promise<void>;
}

/**
 * Milliseconds between refreshes. A token lives for an hour unless the operator says otherwise, so this is often enough
 * without crowding the activity log.
 */
const refreshAfter = 4 * 60_000;

/** Milliseconds between checks whether the page's requests are answered. */
const settlingTime = 100;

/** Requests other than GET that change no names. */
const looking = /\/(?:search|encrypt|decrypt|validate|files|refresh)\b/;

export function sessionClient(credential: Credential, events: SessionEvents): SessionClient {
  const headers = headersOf(credential);
  const key = 'key' in credential ? credential.key : undefined;
  let since = Date.now();
  let isOver = false;
  /** Counts the changes that this console made. */
  let changes = 0;
  /** Requests of pages, without polls. */
  let underWay = 0;
  /** The last answer of each address that may be watched. */
  const known = new Map<string, { readonly tag: string; readonly text: string }>();
  const watch = rollbackWatch(localStates, events);

  const over = (): void => {
    if (key !== undefined) forget(key);
    isOver ||= events.onEnded();
  };

  const send = async (request: Request): Promise<Response> => {
    for (const [name, value] of Object.entries(headers)) request.headers.set(name, value);
    const response = await fetch(request);
    if (response.status === 403)
      void response
        .clone()
        .json()
        .then(lookAtRefusal, () => {});
    if (response.status === 401) over();
    if (request.method !== 'GET' && !looking.test(request.url)) changes++;
    const tag = response.headers.get('etag');
    if (response.status === 200 && tag !== null) known.set(request.url, { tag, text: await response.clone().text() });
    return response;
  };

  const sendOfPage = async (request: Request): Promise<Response> => {
    underWay++;
    try {
      return await send(request);
    } finally {
      underWay--;
    }
  };

  const poll = async (request: Request): Promise<Response> => {
    const last = known.get(request.url);
    request.headers.set('if-none-match', last?.tag ?? '"none"');
    const response = await send(request);
    return response.status === 304 && last ? new Response(last.text, { headers: response.headers }) : response;
  };

  const lookAtRefusal = (answer: unknown): void => {
    if (isJsonObject(answer) && answer.message === enrolFirst && !isOver) events.onEnrol();
  };

  const refresh = async (): Promise<void> => {
    since = Date.now();
    try {
      events.onUser((await appliance(credential).refreshSession({}, withTimeout())).user);
    } catch (error) {
      if (error instanceof KmsError && error.code === 'unauthenticated') over();
    }
  };

  const answerTo = async (path: string, init: RequestInit & { readonly signal: AbortSignal }): Promise<Response> => {
    let response: Response;
    try {
      response = await send(new Request(baseUrl + path, init));
    } catch (cause) {
      throw errorOfFailure(cause, baseUrl, init.signal);
    }
    if (response.ok) return response;
    throw errorOfAnswer(response, await response.json().catch(() => undefined), baseUrl);
  };

  const polls = createClient({ baseUrl, fetch: poll, watch });
  return {
    api: createClient({ baseUrl, fetch: sendOfPage, watch }),
    polls,
    names: keptNames(polls, () => changes),
    stream: async (path, signal) => (await answerTo(path, { method: 'POST', signal })).body ?? new Blob().stream(),
    async settled() {
      // A page's first requests are sent a moment after it is shown.
      do await new Promise((resolve) => setTimeout(resolve, settlingTime));
      while (underWay > 0);
    },
    active() {
      if (key !== undefined && !isOver && Date.now() - since >= refreshAfter) void refresh();
    },
    async end() {
      const wasOver = isOver;
      isOver = true;
      if (key === undefined || wasOver) return;
      await appliance(credential)
        .logout({}, withTimeout())
        .catch(() => {});
      forget(key);
    },
  };
}

type Carried = { readonly key: string } | { readonly bearer: string };

/** A client for the appliance; without a credential, for public endpoints only. */
export function appliance(credential?: Carried): Client {
  return createClient({ baseUrl, ...(credential && { headers: headersOf(credential) }) });
}

function headersOf(credential: Carried): Readonly<Record<string, string>> {
  return 'key' in credential ? { [consoleHeader]: credential.key } : { authorization: `Bearer ${credential.bearer}` };
}

/** Limits a request to 30 seconds, so that no page waits for ever. */
export function withTimeout(): CallOptions {
  return { signal: AbortSignal.timeout(30_000) };
}

const keyName = consoleKeyName(new URL(baseUrl).pathname.replace(/\/$/, ''));

/** Logs in through `ask`. All windows of this browser then have the session. */
export async function signIn(ask: (api: Client) => Promise<{ readonly user: User }>): Promise<Credential> {
  const key = newKey();
  const { user } = await ask(appliance({ key }));
  localStorage.setItem(keyName, key);
  return { key, user };
}

/** A new cookie key, which is useless until a session is bound to it. */
export function newKey(): string {
  const bytes = String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32)));
  return btoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** The key of the session that this browser's windows share. */
export function sharedKey(): string | undefined {
  return localStorage.getItem(keyName) ?? undefined;
}

/** The session that this browser has, refreshed; undefined if there is none any more. Throws the appliance's error. */
export async function resume(): Promise<Credential | undefined> {
  const key = sharedKey();
  if (key === undefined) return undefined;
  try {
    const { user } = await appliance({ key }).refreshSession({}, withTimeout());
    return { key, user };
  } catch (error) {
    if (!(error instanceof KmsError) || error.code !== 'unauthenticated') throw error;
    forget(key);
    return undefined;
  }
}

/** Forgets the key, unless another window has logged in since. */
function forget(key: string): void {
  if (sharedKey() === key) localStorage.removeItem(keyName);
}

/** Listens for logins and logouts in other windows, until the returned function is called. */
export function onOtherWindow(listener: () => void): () => void {
  const hear = ({ key }: StorageEvent): void => {
    if (key === keyName || key === null) listener();
  };
  window.addEventListener('storage', hear);
  return () => window.removeEventListener('storage', hear);
}

const stateNames = 'kms-state.';

/**
 * The latest appliance states that this browser saw, so that a rollback is noticed. They are not secret, and kept in
 * `localStorage`, which outlives the window.
 */
const localStates: StateMemory = {
  async load() {
    const names = Object.keys(localStorage).filter((name) => name.startsWith(stateNames));
    return names.map((name) => parseState(localStorage.getItem(name))).filter((state) => state !== undefined);
  },
  async save(state) {
    localStorage.setItem(`${stateNames}${state.appliance}.${state.tenant}`, formatState(state));
  },
};
