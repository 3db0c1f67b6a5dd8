// Sessions: opened by a login and extended by refreshes, known by an access token whose hash alone is stored. Each
// refresh is a row of its own under the session's id. Time and address of use are noted once a minute, so that not
// every request writes.
import type { Answer } from '../api/endpoints.ts';
import type { User } from '../api/users.ts';
import { hashSecret, isWellFormedToken, newToken } from '../crypto/secrets.ts';
import { KmsError } from '../errors.ts';
import type { ResourceRef } from '../model/activity-details.ts';
import { canonicalBlock, networksOf } from '../model/addresses.ts';
import { timestamp } from '../model/timestamp.ts';
import type { Tables } from '../store/port.ts';
import type { Context, PublicContext } from './context.ts';
import type { Lifetimes } from './links.ts';
import { findUser, userAnswer } from './users.ts';

/** Milliseconds for which an ended session is remembered, so that use of its token is recognized and recorded. */
const remembered = 7 * 86_400_000;
/** Open sessions per user; one more ends the oldest. */
export const mostOpen = 1000;
/** Remembered sessions per user, not counting open ones. */
export const mostRemembered = 2000;
/** Old sessions purged with each new one: more than are added, so that they don't pile up. */
const purgedAtOnce = 20;
/** Milliseconds between notes of a session's use. */
const useNoted = 60_000;

/** Meaning of an access token. `ended`: expired, refreshed, logged out, or its user is gone. */
export type TokenVerdict =
  | { readonly kind: 'active'; readonly session: string; readonly userId: string; readonly flagsText: string }
  | { readonly kind: 'ended'; readonly userId: string };

/** Undefined for an unknown token. */
export function authenticateToken(
  { sessions, users }: Pick<Tables, 'sessions' | 'users'>,
  token: string,
  now: number,
): TokenVerdict | undefined {
  if (!isWellFormedToken('session', token)) return undefined;
  const session = sessions.byTokenHash(hashSecret(token));
  if (!session) return undefined;
  const { tokenHash, userId, endedAt, expiresAt } = session;
  const flagsText = flagsTextIn({ users }, session);
  if (endedAt !== undefined || now >= expiresAt || flagsText === undefined) return { kind: 'ended', userId };
  return { kind: 'active', session: tokenHash, userId, flagsText };
}

interface Opened {
  readonly userId: string;
  readonly byProvider: boolean;
  /** The second factor that was last proved, and when. */
  readonly factor?: { readonly id: string; readonly at: number } | undefined;
}

/**
 * The flags that count in a session. Flags given by an identity provider's claims count only in a session that the
 * provider authenticated: somebody with that user's password, or a link to set one, may not be the person whom the
 * provider knows.
 */
function flagsTextIn({ users }: Pick<Tables, 'users'>, { userId, byProvider }: Opened): string | undefined {
  return byProvider ? users.flagsText(userId) : users.ownFlagsText(userId);
}

/** The user as a session shows it. */
export function userIn(tables: Pick<Tables, 'users'>, opened: Opened): User {
  const user = findUser(tables, { text: opened.userId, is: 'id' });
  return userAnswer({ ...user, flagsText: flagsTextIn(tables, opened) ?? user.flagsText });
}

/** The session and original login that a refresh continues. */
interface Chain {
  readonly id: string;
  readonly chainStartedAt: number;
}

/** Opens a session, or continues one under a new token, and returns the access token. */
export function openSession(
  { tx, world, address }: PublicContext,
  { userId, byProvider, factor }: Opened,
  lifetimes: Lifetimes,
  { id, chainStartedAt }: Chain = { id: world.newId('sess'), chainStartedAt: world.now() },
): string {
  const now = world.now();
  const token = newToken('session', world.random);
  tx.sessions.insert({
    tokenHash: hashSecret(token),
    id,
    userId,
    byProvider,
    chainStartedAt,
    expiresAt: expiry(now, chainStartedAt, lifetimes),
    usedAt: now,
    address: shownAddress(address),
    factor,
  });
  tx.sessions.endBeyond(userId, mostOpen, now);
  tx.sessions.purgeBeyond(userId, mostRemembered, now);
  purgeSessions({ tx, world });
  return token;
}

/** No refresh extends beyond the session lifetime that began with the login. */
function expiry(now: number, chainStartedAt: number, { access, session }: Lifetimes): number {
  return Math.min(now + access, chainStartedAt + session);
}

const tokenEnded = new KmsError('unauthenticated', 'the access token has ended');

/** Erases some of the sessions that are old enough to forget. */
export function purgeSessions({ tx, world }: Pick<PublicContext, 'tx' | 'world'>): void {
  tx.sessions.purge(world.now() - remembered, purgedAtOnce);
}

/** Notes that the session with this token hash is in use, and from which address. */
export function noteSessionUse(
  { tx, world, address }: Pick<PublicContext, 'tx' | 'world' | 'address'>,
  tokenHash: string,
): void {
  const now = world.now();
  const session = tx.sessions.byTokenHash(tokenHash);
  // A clock that was set back counts too.
  if (!session || Math.abs(now - session.usedAt) < useNoted) return;
  tx.sessions.noteUse(tokenHash, now, shownAddress(address));
}

/** The address as login backoff counts it. */
function shownAddress(address: string | undefined): string | undefined {
  if (address === undefined) return undefined;
  const { host } = networksOf(address);
  return canonicalBlock(host) ?? host;
}

/** Exchanges the caller's access token for a new one; the old one ends at once. */
export function refreshSession(
  ctx: Context,
  input: { readonly lifetimes: Lifetimes },
): { user: User; accessToken: string } {
  const { tx, world } = ctx;
  const session = tx.sessions.byTokenHash(sessionOf(ctx.caller));
  if (!session) throw tokenEnded;
  tx.sessions.end(session.tokenHash, world.now());
  const accessToken = openSession(ctx, session, input.lifetimes, session);
  return { user: userIn(tx, session), accessToken };
}

/**
 * Refresh for a token that the browser keeps: the token stays and lives longer, so that windows that refresh at once,
 * or reload in the meantime, keep the session. There is no new token to return.
 */
export function extendSession(
  { tx, world, caller }: Context,
  { lifetimes }: { readonly lifetimes: Lifetimes },
): { user: User; accessToken: '' } {
  const session = tx.sessions.byTokenHash(sessionOf(caller));
  if (!session) throw tokenEnded;
  tx.sessions.extend(session.tokenHash, expiry(world.now(), session.chainStartedAt, lifetimes));
  return { user: userIn(tx, session), accessToken: '' };
}

/** Ends the session of the caller's access token. */
export function logout({ tx, world, caller }: Context): Record<string, never> {
  tx.sessions.end(sessionOf(caller), world.now());
  return {};
}

/** The caller's own open sessions, oldest login first. */
export function listSessions({ tx, world, caller }: Context): Answer<'listSessions'> {
  const own = sessionOf(caller);
  const open = tx.sessions.openOf(caller.id, world.now());
  return {
    sessions: open.map(({ tokenHash, id, chainStartedAt, usedAt, address }) => ({
      id,
      createdAt: timestamp(chainStartedAt),
      lastUsedAt: usedAt,
      address: address ?? null,
      current: tokenHash === own,
    })),
  };
}

/** Ends one of the caller's own sessions. */
export function endSession(ctx: Context, { id }: { readonly id: string }): Record<string, never> {
  const { tx, world, caller } = ctx;
  sessionOf(caller);
  if (!tx.sessions.endById(caller.id, id, world.now())) {
    throw new KmsError('not-found', 'there is no such session');
  }
  ctx.note({ object: sessionThing({ id }) });
  return {};
}

/** Ends all of the caller's sessions except the current one. */
export function endOtherSessions(ctx: Context): Record<string, never> {
  const { tx, world, caller } = ctx;
  const now = world.now();
  const own = sessionOf(caller);
  const others = tx.sessions.openOf(caller.id, now).filter(({ tokenHash }) => tokenHash !== own);
  tx.sessions.endAllOf(caller.id, now, own);
  ctx.note({ objects: others.map(sessionThing), objectCount: others.length });
  return {};
}

function sessionThing({ id }: { readonly id: string }): ResourceRef {
  return { type: 'session', id };
}

/** The hash of the caller's access token. Throws `invalid` for an API key and for the administrator at the machine. */
export function sessionOf({ session }: Context['caller']): string {
  if (session === undefined) throw new KmsError('invalid', 'expected an access token, not an API key');
  return session;
}
