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
import { type Flags, outsideOperator, parseFlags } from '../model/flags.ts';
import { isJsonObject } from '../model/json.ts';
import { consoleHeader, consoleKeyName, enrolFirst } from '../model/names.ts';
import { baseUrl } from './navigation.ts';

/** Credential of a login: the key of the session's cookie, or a typed API key. */
export type Credential =
  | { readonly key: string; readonly user: User }
  | { readonly bearer: string; readonly user: undefined };

export interface Session {
  /** Undefined with an API key. */
  readonly user: User | undefined;
  /** The flags of an API key are unknown: all are assumed, and the appliance refuses what is not granted. */
  readonly flags: Readonly<Record<string, unknown>>;
  /** The flags, parsed. */
  readonly may: Flags;
}

export function sessionOf(user: User | undefined): Session {
  const flags = user ? user.flags : { '*': true };
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
  /** Gets a text, such as `/metrics`; throws as `api` does. */
  readonly text: (path: string, signal: AbortSignal) => Promise<string>;
  /** Gets the bytes with which a POST is answered, such as `/system/backup`; throws as `api` does. */
  readonly stream: (path: string, signal: AbortSignal) => Promise<ReadableStream<Uint8Array>>;
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

export function sessionClient(credential: Credential, events: SessionEvents): SessionClient {
  const headers = headersOf(credential);
  const key = 'key' in credential ? credential.key : undefined;
  let since = Date.now();
  let isOver = false;
  /** Refusals of paths that this tenant may not see, whatever the flags; each is requested only once. */
  const outside = new Map<string, KmsError>();
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
    return response;
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

  return {
    api: createClient({ baseUrl, fetch: send, watch }),
    async text(path, signal) {
      const refusal = outside.get(path);
      if (refusal) throw refusal;
      try {
        return await (await answerTo(path, { signal })).text();
      } catch (error) {
        if (error instanceof KmsError && error.message.endsWith(outsideOperator)) outside.set(path, error);
        throw error;
      }
    },
    stream: async (path, signal) => (await answerTo(path, { method: 'POST', signal })).body ?? new Blob().stream(),
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
