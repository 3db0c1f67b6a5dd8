// Session is who is logged in and what their flags let them do, and the client that carries their credential. The token
// is in a cookie that no script reads; what this page has is the key of that cookie, which all windows of the browser
// share, so that a page that is loaded anew goes on. An API key is in the memory of its page alone. When the appliance
// takes a credential no longer, that is told once.
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

/** What somebody came with: the key of the cookie that has their session, or what they typed. */
export type Credential =
  | { readonly key: string; readonly user: User }
  | { readonly bearer: string; readonly user: undefined };

export interface Session {
  /** Undefined with an API key. */
  readonly user: User | undefined;
  /** Nobody knows those of an API key: all are taken to be there, and the appliance refuses what is not. */
  readonly flags: Readonly<Record<string, unknown>>;
  /** What `flags` cover. */
  readonly may: Flags;
}

export function sessionOf(user: User | undefined): Session {
  const flags = user ? user.flags : { '*': true };
  return { user, flags, may: parseFlags(flags) };
}

export const SessionContext = createContext<Session>(sessionOf(undefined));

/** The session of whoever looks at the page, for parts that stand deep in it. */
export function useSession(): Session {
  return useContext(SessionContext);
}

interface SessionEvents extends RollbackEvents {
  /** The token was refused. False: not now, to be told again when it is refused again. */
  readonly onEnded: () => boolean;
  /** The user as they are now. */
  readonly onUser: (user: User) => void;
  /** The user has to add a second factor before anything else. */
  readonly onEnrol: () => void;
}

export interface SessionClient {
  readonly api: Client;
  /** Of what answers text, such as `/metrics`; throws as `api` does. */
  readonly text: (path: string, signal: AbortSignal) => Promise<string>;
  /** Of what answers a POST with bytes, such as `/system/backup`; throws as `api` does. */
  readonly stream: (path: string, signal: AbortSignal) => Promise<ReadableStream<Uint8Array>>;
  /** To be called when somebody does something: keeps the session alive. */
  readonly active: () => void;
  /** Ends the session, here and at the appliance; never throws. */
  readonly end: () => Promise<void>;
}

/**
 * A token lives for an hour unless the operator says otherwise: this is often enough, and seldom enough for the
 * activity log.
 */
const refreshAfter = 4 * 60_000;

export function sessionClient(credential: Credential, events: SessionEvents): SessionClient {
  const headers = headersOf(credential);
  const key = 'key' in credential ? credential.key : undefined;
  let since = Date.now();
  let isOver = false;
  /** What is not this tenant's to see, whatever the flags: asked for once. */
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

/** The appliance for those who are not logged in: without a credential, the endpoints that everybody may call. */
export function appliance(credential?: Carried): Client {
  return createClient({ baseUrl, ...(credential && { headers: headersOf(credential) }) });
}

function headersOf(credential: Carried): Readonly<Record<string, string>> {
  return 'key' in credential ? { [consoleHeader]: credential.key } : { authorization: `Bearer ${credential.bearer}` };
}

/** Nobody should look at a page that waits for ever. */
export function withTimeout(): CallOptions {
  return { signal: AbortSignal.timeout(30_000) };
}

const keyName = consoleKeyName(new URL(baseUrl).pathname.replace(/\/$/, ''));

/** Has `ask` log somebody in. All windows of this browser then have the session. */
export async function signIn(ask: (api: Client) => Promise<{ readonly user: User }>): Promise<Credential> {
  const key = newKey();
  const { user } = await ask(appliance({ key }));
  localStorage.setItem(keyName, key);
  return { key, user };
}

/** The key of a cookie, which is good for nothing before a session is put into that. */
export function newKey(): string {
  const bytes = String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32)));
  return btoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** The key of the session that the windows of this browser share. */
export function sharedKey(): string | undefined {
  return localStorage.getItem(keyName) ?? undefined;
}

/** The session that this browser has; undefined where it has none any more. Throws what the appliance answered. */
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

/** Unless another window has logged in since. */
function forget(key: string): void {
  if (sharedKey() === key) localStorage.removeItem(keyName);
}

/** Listens for another window that logs in or out, until what it answers is called. */
export function onOtherWindow(listener: () => void): () => void {
  const hear = ({ key }: StorageEvent): void => {
    if (key === keyName || key === null) listener();
  };
  window.addEventListener('storage', hear);
  return () => window.removeEventListener('storage', hear);
}

const stateNames = 'kms-state.';

/**
 * How far the appliance was when this browser last saw it, so that one that was set back is noticed. Nothing of it is
 * secret: it is kept where it outlives the window.
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
