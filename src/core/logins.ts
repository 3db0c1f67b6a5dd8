// Logins by user name and password, and the sessions that come of them. A login takes three steps, because checking a
// password is too slow for a transaction: find the stored hash, check the password against it outside, open the
// session; whatever is wrong, the answer is one and takes one time. A session is known by an access token of which only
// the hash is stored.
import type { User } from '../api/users.ts';
import { decoyPasswordHash } from '../crypto/argon2id.ts';
import { isHashable } from '../crypto/password-rules.ts';
import { hashSecret, isWellFormedToken, newToken } from '../crypto/secrets.ts';
import { KmsError } from '../errors.ts';
import type { Tables } from '../store/port.ts';
import type { Context, PublicContext } from './context.ts';
import type { Lifetimes } from './links.ts';
import { userAnswer } from './users.ts';

/** Hashing takes long, and is done elsewhere. */
export interface PasswordHasher {
  /** The text to store for a new password. */
  hash(password: string): Promise<string>;
  /** Whether the password made that stored text. Takes the same time either way. */
  verify(stored: string, password: string): Promise<boolean>;
}

interface LoginName {
  /** A user name; where no user has it and it has an @, an e-mail address. */
  readonly name: string;
  /** Says that it is an e-mail address. */
  readonly isEmail: boolean;
}

/** Whose password it must be, and the hash to check it against; none of one who has not completed the invite. */
export interface LoginCandidate {
  readonly userId: string;
  readonly passwordHash: string | undefined;
}

/** Undefined where nobody has that name. */
export async function findCandidate(
  { users }: Pick<Tables, 'users'>,
  { name, isEmail }: LoginName,
): Promise<LoginCandidate | undefined> {
  const byName = isEmail ? undefined : await users.byUsername(name);
  const user = byName ?? (isEmail || name.includes('@') ? await users.byEmail(name) : undefined);
  return user && { userId: user.id, passwordHash: await users.passwordHash(user.id) };
}

/** Whether the password is the candidate's. Costs one check of a password in any case. */
export async function checkCandidate(
  hasher: PasswordHasher,
  candidate: LoginCandidate | undefined,
  password: string,
): Promise<boolean> {
  const fits = isHashable(password);
  const matches = await hasher.verify(candidate?.passwordHash ?? decoyPasswordHash, fits ? password : '');
  return matches && fits && candidate?.passwordHash !== undefined;
}

interface LoginInput {
  readonly candidate: LoginCandidate | undefined;
  /** Whether the candidate passed the check. */
  readonly passed: boolean;
  readonly lifetimes: Lifetimes;
}

/** Opens the session. Throws `invalid` when nobody passed, or when the password has changed since. */
export async function login(ctx: PublicContext, input: LoginInput): Promise<{ user: User; accessToken: string }> {
  const { users } = ctx.tx;
  const { candidate, passed, lifetimes } = input;
  ctx.identify?.(candidate?.userId);
  const user = candidate && passed ? await users.byId(candidate.userId) : undefined;
  if (!user || (await users.passwordHash(user.id)) !== candidate?.passwordHash) {
    throw new KmsError('invalid', 'wrong user name or password');
  }
  const accessToken = await openSession(ctx, user.id, lifetimes);
  return { user: userAnswer(user), accessToken };
}

/** How long an expired or ended session is remembered at most, so that the use of its token is known and recorded. */
const remembered = 7 * 86_400_000;
/** Open sessions of one user; one more ends the oldest. */
export const mostOpen = 1000;
/** Sessions of one user that are remembered at all, open ones aside. */
export const mostRemembered = 2000;
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
  await tx.sessions.endBeyond(userId, mostOpen, now);
  await tx.sessions.purgeBeyond(userId, mostRemembered, now);
  await purgeSessions({ tx, world });
  return token;
}

/** Erases some of those that are forgotten, if there are any. */
export async function purgeSessions({ tx, world }: Pick<PublicContext, 'tx' | 'world'>): Promise<void> {
  await tx.sessions.purge(world.now() - remembered, purgedAtOnce);
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
  return { user: userAnswer(user), accessToken };
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
