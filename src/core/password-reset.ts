// Password resets: a one-time link, sent by mail or made by the operator, that sets a new password and ends every
// session; and how many mails one user can be made to get, since asking for a link needs no credential.
import { judgePassword } from '../crypto/password-rules.ts';
import { hashSecret, isWellFormedToken, newToken } from '../crypto/secrets.ts';
import { KmsError } from '../errors.ts';
import { noMailMessage } from '../model/names.ts';
import { timestamp } from '../model/timestamp.ts';
import type { Tables } from '../store/port.ts';
import type { User as UserRow } from '../store/tables/users.ts';
import { mayTouch } from './authorization.ts';
import type { Context, PublicContext } from './context.ts';
import { type LinkSettings, linkTo, type Mail, resetMail } from './links.ts';
import { findUser, type UserRef, userThing } from './users.ts';

/** What everybody is answered who asks for a reset, before anything is looked up. */
export function resetStarted(sendsMail: boolean): { readonly message: string } {
  return {
    message: sendsMail ? 'if there is such a user, a link to reset the password is on its way' : noMailMessage,
  };
}

/** The mail with a new link; undefined where nobody has that address, or one who has no password yet to reset. */
export function startReset(
  ctx: Omit<PublicContext, 'note'>,
  input: { readonly email: string; readonly links: LinkSettings },
): Mail | undefined {
  const user = ctx.tx.users.byEmail(input.email);
  if (!user?.hasPassword) return undefined;
  const { url, expiresAt } = newLink(ctx, user, input.links);
  return resetMail(user, url, expiresAt);
}

interface ResetLink {
  readonly username: string;
  readonly resetUrl: string;
  readonly expiresAt: string;
}

/** A new link for the operator to hand over. */
export function resetLink(
  ctx: Omit<Context, 'handsOut' | 'did'>,
  input: { readonly user: UserRef; readonly links: LinkSettings },
): ResetLink {
  const user = findUser(ctx.tx, input.user);
  mayTouch(ctx.caller, user);
  if (!user.hasPassword) {
    throw new KmsError('conflict', `the user ${user.username} has not completed the invite: invite them again`);
  }
  const { url, expiresAt } = newLink(ctx, user, input.links);
  ctx.note({ object: userThing(user) });
  return { username: user.username, resetUrl: url, expiresAt: timestamp(expiresAt) };
}

function newLink({ tx, world }: Pick<PublicContext, 'tx' | 'world'>, user: UserRow, links: LinkSettings) {
  const token = newToken('reset', world.random);
  const expiresAt = world.now() + links.lifetimes.reset;
  tx.userTokens.replace({ kind: 'reset', tokenHash: hashSecret(token), userId: user.id, expiresAt });
  return { url: linkTo('reset', token, links), expiresAt };
}

/** The user whose password may be reset. Throws `invalid` with an empty body, whatever is wrong. */
export function checkReset(tables: Tables, token: string, now: number): UserRow {
  const reset = isWellFormedToken('reset', token) ? tables.userTokens.byHash('reset', hashSecret(token)) : undefined;
  const user = reset && tables.users.byId(reset.userId);
  if (!user || now >= reset.expiresAt) throw refusedReset('the reset link is invalid or expired');
  return user;
}

/** Throws `invalid` with an empty body where the password does not meet the rules. */
export function checkResetPassword(password: string): void {
  if (!judgePassword(password).isValid) throw refusedReset('the password does not meet the rules');
}

function refusedReset(message: string): KmsError {
  return new KmsError('invalid', message, { body: {} });
}

/** Uses the link up, sets the password and ends every session of the user. */
export function completeReset(
  ctx: PublicContext,
  input: { readonly token: string; readonly passwordHash: string },
): Record<string, never> {
  const { tx, world } = ctx;
  const now = world.now();
  const user = checkReset(tx, input.token, now);
  tx.users.setPasswordHash(user.id, input.passwordHash, now);
  tx.userTokens.erase(user.id, 'reset');
  tx.sessions.endAllOf(user.id, now);
  ctx.identify?.(user.id);
  ctx.note({ object: userThing(user), changed: ['password'] });
  return {};
}

export interface MailLimit {
  /** Whether one more may be sent; counts it when so. */
  allows(user: string): boolean;
  /** Users that are remembered. */
  readonly size: number;
}

interface MailLimitOptions {
  /** Milliseconds by a clock that nobody sets. */
  elapsed(): number;
  readonly most?: number;
  readonly within?: number;
  /** Processes that count beside each other, among which the mails are divided: each may send one. */
  readonly sharers?: (() => number) | undefined;
}

/**
 * To be asked of users who exist alone: it remembers those who got a mail within the last hour, and forgets none of
 * them before, so that nobody's limit can be pushed out by asking for others.
 */
export function mailLimit({ elapsed, most = 5, within = 3_600_000, sharers = () => 1 }: MailLimitOptions): MailLimit {
  /** Whose last mail is the oldest comes first. */
  const sent = new Map<string, readonly number[]>();
  return {
    allows(user) {
      const since = elapsed() - within;
      for (const [each, times] of sent) {
        if ((times.at(-1) ?? 0) > since) break;
        sent.delete(each);
      }
      const recent = (sent.get(user) ?? []).filter((time) => time > since);
      if (recent.length >= Math.max(1, Math.floor(most / sharers()))) return false;
      sent.delete(user);
      sent.set(user, [...recent, elapsed()]);
      return true;
    },
    get size() {
      return sent.size;
    },
  };
}
