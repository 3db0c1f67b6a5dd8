// Who is logged in and what their flags let them do. The appliance decides each time; this says beforehand what it would say.
import { createContext, useContext } from 'hono/jsx/dom';
import type { User } from '../api/user.ts';
import { type Coverage, coverageOf } from './flags/coverage.ts';

export interface Session {
  /** Undefined with an API key. */
  readonly user: User | undefined;
  /** With an API key nobody knows its flags beforehand: all are taken to be there, and the appliance refuses what is not. */
  readonly flags: Readonly<Record<string, unknown>>;
  /** What `flags` cover. */
  readonly may: Coverage;
}

export function sessionOf(user: User | undefined): Session {
  const flags = user ? user.flags : { '*': true };
  return { user, flags, may: coverageOf(flags) };
}

export const SessionContext = createContext<Session>(sessionOf(undefined));

/** The session of whoever looks at the room, for parts that stand deep in it. */
export function useSession(): Session {
  return useContext(SessionContext);
}
