// Login in three steps, because checking a password is too slow for a transaction: find the stored hash, check the password
// against it outside, open the session. Whatever is wrong, the answer is one and takes one time.
import { decoyPasswordHash } from '../crypto/password.ts';
import { isHashable } from '../crypto/password-rules.ts';
import { KmsError } from '../errors.ts';
import type { Tables } from '../store/port.ts';
import type { Lifetimes } from './access-settings.ts';
import type { PublicContext } from './context.ts';
import type { PasswordHasher } from './password-hasher.ts';
import { openSession } from './sessions.ts';
import { type User, userOf } from './user-wire.ts';

export interface LoginName {
  /** A user name; where no user has it and it has an @, an e-mail address. */
  readonly name: string;
  /** Says that it is an e-mail address. */
  readonly isEmail: boolean;
}

/** Whose password it must be, and the hash that it was checked against. */
export interface LoginCandidate {
  readonly userId: string;
  readonly passwordHash: string;
}

/** Undefined where nobody has that name, or one who has not completed the invite. */
export async function findCandidate(
  { users }: Pick<Tables, 'users'>,
  { name, isEmail }: LoginName,
): Promise<LoginCandidate | undefined> {
  const byName = isEmail ? undefined : await users.byUsername(name);
  const user = byName ?? (isEmail || name.includes('@') ? await users.byEmail(name) : undefined);
  const passwordHash = user && (await users.passwordHash(user.id));
  return user && passwordHash !== undefined ? { userId: user.id, passwordHash } : undefined;
}

/** The candidate if the password is theirs. Costs one check of a password in any case. */
export async function checkCandidate(
  hasher: PasswordHasher,
  candidate: LoginCandidate | undefined,
  password: string,
): Promise<LoginCandidate | undefined> {
  const fits = isHashable(password);
  const matches = await hasher.verify(candidate?.passwordHash ?? decoyPasswordHash, fits ? password : '');
  return matches && fits ? candidate : undefined;
}

export interface LoginInput {
  /** Who passed the check; undefined for nobody. */
  readonly checked: LoginCandidate | undefined;
  readonly lifetimes: Lifetimes;
}

/** Opens the session. Throws `invalid` when nobody passed, or when the password has changed since. */
export async function login(ctx: PublicContext, input: LoginInput): Promise<{ user: User; accessToken: string }> {
  const { users } = ctx.tx;
  const { checked, lifetimes } = input;
  const user = checked && (await users.byId(checked.userId));
  if (!user || (await users.passwordHash(user.id)) !== checked.passwordHash) {
    throw new KmsError('invalid', 'wrong user name or password');
  }
  const accessToken = await openSession(ctx, user.id, lifetimes);
  return { user: userOf(user), accessToken };
}
