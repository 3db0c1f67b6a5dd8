// Sessions: opened by a login, known by an access token of which only the hash is stored, refreshed for a while, ended.
import { hashSecret } from '../crypto/api-key.ts';
import { isWellFormedToken, newToken } from '../crypto/token.ts';
import { KmsError } from '../errors.ts';
import type { Tables } from '../store/port.ts';
import type { Lifetimes } from './access-settings.ts';
import type { Context, PublicContext } from './context.ts';
import { type User, userOf } from './user-wire.ts';

/** How long an expired or ended session is remembered, so that the use of its token is known and recorded. */
const remembered = 7 * 86_400_000;
/** Old sessions removed with each new one: more than come, so that they don't pile up. */
const purgedAtOnce = 20;

/** What an access token stands for. `ended` has expired, was refreshed or logged out, or its user is gone. */
export type TokenVerdict =
  | { readonly kind: 'active'; readonly session: string; readonly userId: string; readonly flagsText: string }
  | { readonly kind: 'ended'; readonly userId: string };

/** Undefined for a token that is not known. */
export async function authenticateToken(
  { sessions, users }: Pick<Tables, 'sessions' | 'users'>,
  token: string,
  now: number,
): Promise<TokenVerdict | undefined> {
  if (!isWellFormedToken('session', token)) return undefined;
  const session = await sessions.byTokenHash(hashSecret(token));
  if (!session) return undefined;
  const { tokenHash, userId, endedAt, expiresAt } = session;
  const flagsText = await users.flagsText(userId);
  if (endedAt !== undefined || now >= expiresAt || flagsText === undefined) return { kind: 'ended', userId };
  return { kind: 'active', session: tokenHash, userId, flagsText };
}

/** Opens a session and answers its access token. `chainStartedAt` is the login that a refresh goes back to. */
export async function openSession(
  { tx, world }: PublicContext,
  userId: string,
  lifetimes: Lifetimes,
  chainStartedAt = world.now(),
): Promise<string> {
  const now = world.now();
  const token = newToken('session', world.random);
  await tx.sessions.insert({
    tokenHash: hashSecret(token),
    userId,
    chainStartedAt,
    expiresAt: Math.min(now + lifetimes.access, chainStartedAt + lifetimes.session),
  });
  await tx.sessions.purge(now - remembered, purgedAtOnce);
  return token;
}

/** Exchanges the caller's access token for a new one; the old one ends at once. */
export async function refreshSession(
  ctx: Context,
  input: { readonly lifetimes: Lifetimes },
): Promise<{ user: User; accessToken: string }> {
  const { tx, world } = ctx;
  const session = await tx.sessions.byTokenHash(sessionOf(ctx));
  const user = session && (await tx.users.byId(session.userId));
  if (!session || !user) throw new KmsError('unauthenticated', 'the access token has ended');
  await tx.sessions.end(session.tokenHash, world.now());
  const accessToken = await openSession(ctx, user.id, input.lifetimes, session.chainStartedAt);
  return { user: userOf(user), accessToken };
}

/** Ends the session of the caller's access token. */
export async function logout(ctx: Context): Promise<Record<string, never>> {
  await ctx.tx.sessions.end(sessionOf(ctx), ctx.world.now());
  return {};
}

function sessionOf({ caller }: Context): string {
  if (caller.session === undefined) throw new KmsError('invalid', 'expected an access token, not an API key');
  return caller.session;
}
