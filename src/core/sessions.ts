// Sessions: what comes of a login and lasts through its refreshes, known by an access token of which only the hash is
// stored. Each refresh is a row of its own under the session's id. When and from where one was used is noted once a
// minute, so that using it does not mean to write each time.
import type { Answer } from '../api/endpoints.ts';
import type { User } from '../api/users.ts';
import { hashSecret, isWellFormedToken, newToken } from '../crypto/secrets.ts';
import { KmsError } from '../errors.ts';
import { canonicalBlock } from '../model/addresses.ts';
import type { Thing } from '../model/deed.ts';
import { timestamp } from '../model/timestamp.ts';
import type { Tables } from '../store/port.ts';
import type { Context, PublicContext } from './context.ts';
import type { Lifetimes } from './links.ts';
import { networksOf } from './login-backoff.ts';
import { findUser, userAnswer } from './users.ts';

/** How long an expired or ended session is remembered at most, so that the use of its token is known and recorded. */
const remembered = 7 * 86_400_000;
/** Open sessions of one user; one more ends the oldest. */
export const mostOpen = 1000;
/** Sessions of one user that are remembered at all, open ones aside. */
export const mostRemembered = 2000;
/** Old sessions removed with each new one: more than come, so that they don't pile up. */
const purgedAtOnce = 20;
/** Milliseconds in which the use of a session is noted once. */
const useNoted = 60_000;

/** What an access token stands for. `ended` has expired, was refreshed or logged out, or its user is gone. */
export type TokenVerdict =
  | { readonly kind: 'active'; readonly session: string; readonly userId: string; readonly flagsText: string }
  | { readonly kind: 'ended'; readonly userId: string };

/** Undefined for a token that is not known. */
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
}

/**
 * The flags that count in a session. What the claims of an identity provider gave counts only where the provider said
 * who it is: whoever has a password of that user, or a link to set one, may be another than the person whom the
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

/** What a refresh goes on with: the session, and the login that it goes back to. */
interface Chain {
  readonly id: string;
  readonly chainStartedAt: number;
}

/** Opens a session, or goes on with one under a new token, and answers the access token. */
export function openSession(
  { tx, world, address }: PublicContext,
  { userId, byProvider }: Opened,
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
  });
  tx.sessions.endBeyond(userId, mostOpen, now);
  tx.sessions.purgeBeyond(userId, mostRemembered, now);
  purgeSessions({ tx, world });
  return token;
}

/** No refresh goes on beyond the end of what the login began. */
function expiry(now: number, chainStartedAt: number, { access, session }: Lifetimes): number {
  return Math.min(now + access, chainStartedAt + session);
}

const tokenEnded = new KmsError('unauthenticated', 'the access token has ended');

/** Erases some of those that are forgotten, if there are any. */
export function purgeSessions({ tx, world }: Pick<PublicContext, 'tx' | 'world'>): void {
  tx.sessions.purge(world.now() - remembered, purgedAtOnce);
}

/** Notes that the session of this token's hash is in use, and where from. */
export function noteSessionUse(
  { tx, world, address }: Pick<PublicContext, 'tx' | 'world' | 'address'>,
  tokenHash: string,
): void {
  const now = world.now();
  const session = tx.sessions.byTokenHash(tokenHash);
  // A clock that was set back is followed.
  if (!session || Math.abs(now - session.usedAt) < useNoted) return;
  tx.sessions.noteUse(tokenHash, now, shownAddress(address));
}

/** What counts as one address where logins are slowed down. */
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
 * The same for a token that the browser keeps: it stays as it is and lives longer, so that windows that ask at once,
 * and one that is loaded anew meanwhile, keep the session. There is no new token to answer.
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

/** The caller's own open sessions, the oldest login first. */
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

/** Ends all of the caller's sessions but the one that it calls with. */
export function endOtherSessions(ctx: Context): Record<string, never> {
  const { tx, world, caller } = ctx;
  const now = world.now();
  const own = sessionOf(caller);
  const others = tx.sessions.openOf(caller.id, now).filter(({ tokenHash }) => tokenHash !== own);
  tx.sessions.endAllOf(caller.id, now, own);
  ctx.note({ objects: others.map(sessionThing), objectCount: others.length });
  return {};
}

function sessionThing({ id }: { readonly id: string }): Thing {
  return { type: 'session', id };
}

/** The hash of the caller's access token. Throws `invalid` for an API key and for the administrator at the machine. */
export function sessionOf({ session }: Context['caller']): string {
  if (session === undefined) throw new KmsError('invalid', 'expected an access token, not an API key');
  return session;
}
