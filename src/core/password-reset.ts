// Password resets: a one-time link, sent by mail or made by the operator, that sets a new password and ends every
// session; and the limit on mails per user, since asking for a link needs no credential.
import { judgePassword } from '../crypto/password-rules.ts';
import { hashSecret, isWellFormedToken, newToken } from '../crypto/secrets.ts';
import { KmsError } from '../errors.ts';
import { noMailMessage } from '../model/names.ts';
import { timestamp } from '../model/timestamp.ts';
import type { Tables } from '../store/port.ts';
import type { User as UserRow } from '../store/tables/users.ts';
import { mayTouch } from './authorization.ts';
import type { Context, PublicContext } from './context.ts';
import { localCaller } from './credential.ts';
import { type LinkSettings, linkTo, type Mail, resetMail } from './links.ts';
import { noteWayIn } from './persons.ts';
import { findUser, type UserRef, userThing } from './users.ts';

/** The same answer to every request for a reset, before anything is looked up. */
export function resetStarted(sendsMail: boolean): { readonly message: string } {
  return {
    message: sendsMail ? 'if there is such a user, a link to reset the password is on its way' : noMailMessage,
  };
}

/** The mail with a new link; undefined if no user has that address, or the user has no password yet. */
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
  ctx: Omit<Context, 'handsOut' | 'did' | 'touches'>,
  input: { readonly user: UserRef; readonly links: LinkSettings },
): ResetLink {
  const user = findUser(ctx.tx, input.user);
  mayTouch(ctx.caller, user);
  if (!user.hasPassword) {
    throw new KmsError('conflict', `the user ${user.username} has not completed the invite: invite them again`);
  }
  const { url, expiresAt } = newLink(ctx, user, input.links);
  noteWayIn(ctx, user.id);
  ctx.note({ object: userThing(user) });
  return { username: user.username, resetUrl: url, expiresAt: timestamp(expiresAt) };
}

function newLink({ tx, world }: Pick<PublicContext, 'tx' | 'world'>, user: UserRow, links: LinkSettings) {
  const token = newToken('reset', world.random);
  const expiresAt = world.now() + links.lifetimes.reset;
  tx.userTokens.replace({ kind: 'reset', tokenHash: hashSecret(token), userId: user.id, expiresAt });
  return { url: linkTo('reset', token, links), expiresAt };
}

/** The user whose password may be reset. Throws `invalid` with an empty body for every failure. */
export function checkReset(tables: Tables, token: string, now: number): UserRow {
  const reset = isWellFormedToken('reset', token) ? tables.userTokens.byHash('reset', hashSecret(token)) : undefined;
  const user = reset && tables.users.byId(reset.userId);
  if (!user || now >= reset.expiresAt) throw refusedReset('the reset link is invalid or expired');
  return user;
}

/** Throws `invalid` with an empty body if the password does not meet the rules. */
export function checkResetPassword(password: string): void {
  if (!judgePassword(password).isValid) throw refusedReset('the password does not meet the rules');
}

function refusedReset(message: string): KmsError {
  return new KmsError('invalid', message, { body: {} });
}

/** Consumes the link, sets the password and ends every session of the user. */
export function completeReset(
  ctx: PublicContext,
  input: { readonly token: string; readonly passwordHash: string },
): Record<string, never> {
  const { tx, world } = ctx;
  const now = world.now();
  const user = checkReset(tx, input.token, now);
  tx.users.setPasswordHash(user.id, input.passwordHash, now);
  tx.userTokens.erase(user.id, 'reset');
  // Without a second factor, those who run the mail could be this User now, and add one of their own.
  if (!tx.secondFactors.has(user.id)) noteWayIn({ tx, caller: localCaller }, user.id);
  tx.sessions.endAllOf(user.id, now);
  ctx.identify?.(user.id);
  ctx.note({ object: userThing(user), changed: ['password'] });
  return {};
}

export interface MailLimit {
  /** Whether one more may be sent; if so, it is counted. */
  allows(user: string): boolean;
  /** Number of users remembered. */
  readonly size: number;
}

interface MailLimitOptions {
  /** Monotonic clock in milliseconds. */
  elapsed(): number;
  readonly most?: number;
  readonly within?: number;
  /** Processes that count side by side and share the limit; each may send at least one. */
  readonly sharers?: (() => number) | undefined;
}

/**
 * Ask only about users that exist: it remembers those who got a mail within the last hour and forgets none of them
 * earlier, so that asking for others cannot push out a user's limit.
 */
export function mailLimit({ elapsed, most = 5, within = 3_600_000, sharers = () => 1 }: MailLimitOptions): MailLimit {
  /** Ordered by last mail, oldest first. */
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
