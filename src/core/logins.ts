// Logins by user name and password. A login takes three steps, because checking a password is too slow for a
// transaction: find the stored hash, check the password against it outside, open the session. Every failure gets the
// same answer after the same time. Changing one's own password works the same way.
import type { User } from '../api/users.ts';
import { decoyPasswordHash } from '../crypto/argon2id.ts';
import { isHashable } from '../crypto/password-rules.ts';
import { KmsError } from '../errors.ts';
import type { Tables } from '../store/port.ts';
import type { SecondFactor } from '../store/tables/second-factors.ts';
import type { Caller, Context, PublicContext } from './context.ts';
import type { Lifetimes } from './links.ts';
import type { VerifiedUse } from './passkeys.ts';
import { factorIn, type SecondStep, takeSecondStep, usePasskey } from './second-factors.ts';
import { openSession, sessionOf, userIn } from './sessions.ts';
import { findUser, userThing } from './users.ts';

/** Hashes passwords outside transactions, since it takes long. */
export interface PasswordHasher {
  /** The text to store for a new password. */
  hash(password: string): Promise<string>;
  /** Whether the stored text is a hash of the password. Takes the same time either way. */
  verify(stored: string, password: string): Promise<boolean>;
}

interface LoginName {
  /** A user name; if no user has it and it contains an @, an e-mail address. */
  readonly name: string;
  /** The name is certainly an e-mail address. */
  readonly isEmail: boolean;
}

/** User to log in, and the hash to check the password against; undefined until the invite is completed. */
interface LoginCandidate {
  readonly userId: string;
  readonly passwordHash: string | undefined;
}

/** Undefined if no user has that name. */
export function findCandidate(
  { users }: Pick<Tables, 'users'>,
  { name, isEmail }: LoginName,
): LoginCandidate | undefined {
  const byName = isEmail ? undefined : users.byUsername(name);
  const user = byName ?? (isEmail || name.includes('@') ? users.byEmail(name) : undefined);
  return user && { userId: user.id, passwordHash: users.passwordHash(user.id) };
}

/** Whether the password is the candidate's. Always costs one password check. */
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
  /** Result of checking the second factor; undefined if the password was wrong. */
  readonly step: SecondStep | undefined;
  readonly lifetimes: Lifetimes;
}

/**
 * Opens the session. Throws `invalid` if there is no candidate, the password was wrong or has changed since, or a
 * second factor is missing or wrong; only a caller with the right password learns the latter.
 */
export function login(ctx: PublicContext, input: LoginInput): { user: User; accessToken: string } {
  const { users } = ctx.tx;
  const { candidate, step, lifetimes } = input;
  const secondFactor = step?.is === 'missing' || step?.is === 'wrong' ? step.is : undefined;
  ctx.identify?.(candidate?.userId, secondFactor && { secondFactor });
  const user = candidate && step ? users.byId(candidate.userId) : undefined;
  if (!user || !step || users.passwordHash(user.id) !== candidate?.passwordHash) {
    throw new KmsError('invalid', 'wrong user name or password');
  }
  ctx.note(takeSecondStep(ctx, user.id, step));
  return logIn(ctx, user.id, lifetimes, { factor: factorIn(step) });
}

interface PasskeyLoginInput {
  /** Owner of the passkey; undefined if the passkey is unknown. */
  readonly userId: string | undefined;
  /** Undefined if the passkey was not accepted. */
  readonly use: VerifiedUse | undefined;
  readonly lifetimes: Lifetimes;
}

/** Opens a session for a passkey-only login; the authenticator verified the user. Throws `invalid`. */
export function loginWithPasskey(
  ctx: PublicContext,
  { userId, use, lifetimes }: PasskeyLoginInput,
): { user: User; accessToken: string } {
  ctx.identify?.(userId);
  if (!use) throw new KmsError('invalid', 'the passkey was not accepted');
  ctx.note(usePasskey(ctx, use));
  return logIn(ctx, use.factor.userId, lifetimes, { factor: use.factor });
}

interface HowOpened {
  readonly byProvider?: boolean;
  /** The second factor that was proved. */
  readonly factor?: Pick<SecondFactor, 'id'> | undefined;
}

/** Opens a session for a user who was authenticated here or by an identity provider, and returns the user as of now. */
export function logIn(
  ctx: PublicContext,
  userId: string,
  lifetimes: Lifetimes,
  { byProvider = false, factor }: HowOpened = {},
): { user: User; accessToken: string } {
  const opened = { userId, byProvider, factor: factor && { id: factor.id, at: ctx.world.now() } };
  const accessToken = openSession(ctx, opened, lifetimes);
  ctx.tx.users.noteLogin(userId, ctx.world.now());
  return { user: userIn(ctx.tx, opened), accessToken };
}

/** The caller's own password, to be checked before the change. */
export function ownCandidate(tables: Pick<Tables, 'users'>, { id }: Caller): LoginCandidate {
  return { userId: id, passwordHash: tables.users.passwordHash(id) };
}

interface ChangePasswordInput {
  /** The caller. */
  readonly candidate: LoginCandidate | undefined;
  /** Hash of the new password, made beforehand. Undefined if the current password was wrong. */
  readonly newHash: string | undefined;
}

/**
 * Sets the caller's own password, ends their other sessions and revokes an open reset link. Throws `invalid`, recorded
 * as denied, if the current password was wrong or has changed since the check.
 */
export function changePassword(ctx: Context, { candidate, newHash }: ChangePasswordInput): Record<string, never> {
  const { tx, caller, world } = ctx;
  const current = sessionOf(caller);
  const user = findUser(tx, { text: caller.id, is: 'id' });
  if (newHash === undefined || tx.users.passwordHash(user.id) !== candidate?.passwordHash) {
    throw new KmsError('invalid', 'the current password is wrong', { denies: true });
  }
  const now = world.now();
  tx.users.setPasswordHash(user.id, newHash, now);
  tx.userTokens.erase(user.id, 'reset');
  tx.sessions.endAllOf(user.id, now, current);
  ctx.note({ object: userThing(user), changed: ['password'] });
  return {};
}
