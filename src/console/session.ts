// Session is who is logged in and what their flags let them do, and the client that carries their credential. The token
// is in memory alone, and is exchanged for a new one while somebody is at the screen; when the appliance takes it no
// longer, that is told once.
import { createContext, useContext } from 'hono/jsx/dom';
import type { User } from '../api/users.ts';
import { type CallOptions, type Client, createClient } from '../client/client.ts';
import { errorOfAnswer, errorOfFailure } from '../client/failure.ts';
import { formatState, parseState, type RollbackEvents, rollbackWatch, type StateMemory } from '../client/rollback.ts';
import { KmsError } from '../errors.ts';
import { type Flags, outsideOperator, parseFlags } from '../model/flags.ts';
import { isJsonObject } from '../model/json.ts';
import { enrolFirst } from '../model/names.ts';
import { baseUrl } from './navigation.ts';

/** What somebody came with. */
export interface Credential {
  /** An access token or an API key. */
  readonly token: string;
  /** Undefined with an API key. */
  readonly user: User | undefined;
}

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
  /** The token was refused. */
  readonly onEnded: () => void;
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

/** `isKey`: the credential is an API key, which is neither refreshed nor ended. */
export function sessionClient(credential: string, isKey: boolean, events: SessionEvents): SessionClient {
  let token = credential;
  let since = Date.now();
  let refreshing: Promise<void> | undefined;
  let isOver = false;
  /** What is not this tenant's to see, whatever the flags: asked for once. */
  const outside = new Map<string, KmsError>();
  const watch = rollbackWatch(localStates, events);

  const over = (): void => {
    if (!isOver) events.onEnded();
    isOver = true;
  };

  const send = async (request: Request): Promise<Response> => {
    await refreshing;
    const used = token;
    const spare = request.clone();
    const response = await fetch(withToken(request, used));
    if (response.status === 403)
      void response
        .clone()
        .json()
        .then(lookAtRefusal, () => {});
    if (response.status !== 401) return response;
    // The token may have been exchanged while this was under way; what was refused for it had no effect.
    await refreshing;
    if (token !== used) return fetch(withToken(spare, token));
    over();
    return response;
  };

  const lookAtRefusal = (answer: unknown): void => {
    if (isJsonObject(answer) && answer.message === enrolFirst && !isOver) events.onEnrol();
  };

  const refresh = async (): Promise<void> => {
    since = Date.now();
    try {
      const { accessToken, user } = await appliance(token).refreshSession({}, withTimeout());
      token = accessToken;
      events.onUser(user);
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
    api: createClient({
      baseUrl,
      fetch: send,
      watch: async (response) => {
        await watch.see(response);
        await watch.save();
      },
    }),
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
      if (isKey || isOver || refreshing || Date.now() - since < refreshAfter) return;
      refreshing = refresh().finally(() => {
        refreshing = undefined;
      });
    },
    async end() {
      await refreshing;
      const wasOver = isOver;
      isOver = true;
      if (isKey || wasOver) return;
      await appliance(token)
        .logout({}, withTimeout())
        .catch(() => {});
    },
  };
}

function withToken(request: Request, token: string): Request {
  request.headers.set('authorization', `Bearer ${token}`);
  return request;
}

/** The appliance for those who are not logged in. Without a token: the endpoints that everybody may call. */
export function appliance(accessToken?: string): Client {
  return createClient({ baseUrl, ...(accessToken !== undefined && { apiKey: accessToken }) });
}

/** Nobody should look at a page that waits for ever. */
export function withTimeout(): CallOptions {
  return { signal: AbortSignal.timeout(30_000) };
}

const nameOf = (appliance: string, tenant: string): string => `kms-state.${appliance}.${tenant}`;

/**
 * How far the appliance was when this browser last saw it, so that one that was set back is noticed. Nothing of it is
 * secret: it is kept where it outlives the window.
 */
const localStates: StateMemory = {
  async load(appliance, tenant) {
    return parseState(localStorage.getItem(nameOf(appliance, tenant)));
  },
  async save(state) {
    localStorage.setItem(nameOf(state.appliance, state.tenant), formatState(state));
  },
};
