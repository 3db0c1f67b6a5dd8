// Invites: the user is created at once and gets in by completing the invite with a password. The token works once;
// inviting again replaces it.

import type { Body } from '../api/endpoints.ts';
import type { User } from '../api/users.ts';
import { judgePassword } from '../crypto/password-rules.ts';
import { hashSecret, isWellFormedToken, newToken } from '../crypto/secrets.ts';
import { KmsError } from '../errors.ts';
import { changedRights } from '../model/activity-details.ts';
import { flagsOfText } from '../model/flags.ts';
import type { Tables } from '../store/port.ts';
import type { User as UserRow } from '../store/tables/users.ts';
import { noteMade } from './approval-holders.ts';
import { grantableFlags, mayTouch } from './authorization.ts';
import type { Context, PublicContext } from './context.ts';
import { type Lifetimes, type LinkSettings, linkTo } from './links.ts';
import { logIn } from './logins.ts';
import { noteWayIn } from './persons.ts';
import { addUser, checkFree, checkUserNames, userAnswer, userDeed, userThing } from './users.ts';

interface Invitation {
  readonly loginUrl: string;
  readonly user: User;
  readonly expiresAt: number;
}

export function inviteUser(
  ctx: Context,
  input: { readonly fields: Body<'inviteUser'>; readonly links: LinkSettings },
): Invitation {
  const { tx, world } = ctx;
  const { fields, links } = input;
  const known = tx.users.byUsername(fields.username);
  const isAgain = known && !known.hasPassword && !fields.unique;
  const user = isAgain ? inviteAgain(ctx, known, fields) : invite(ctx, fields);
  const token = newToken('invite', world.random);
  const expiresAt = world.now() + links.lifetimes.invite;
  tx.userTokens.replace({ kind: 'invite', tokenHash: hashSecret(token), userId: user.id, expiresAt });
  return { loginUrl: linkTo('invite', token, links), user: userAnswer(user), expiresAt };
}

function invite(ctx: Context, fields: Body<'inviteUser'>): UserRow {
  const user = addUser(ctx, fields);
  noteWayIn(ctx, user.id);
  noteMade(ctx, user.id);
  ctx.note({ object: userThing(user), ...changedRights(undefined, flagsOfText(user.flagsText)) });
  return user;
}

/** The new invite's fields replace those of the earlier one. */
function inviteAgain(ctx: Context, user: UserRow, fields: Body<'inviteUser'>): UserRow {
  const { tx, caller, world } = ctx;
  checkUserNames(fields);
  mayTouch(caller, user);
  const flagsText = fields.flags ? grantableFlags(caller, fields.flags) : user.flagsText;
  checkFree(tx.users, { email: fields.email }, user.id);
  const change = {
    email: fields.email,
    firstName: fields.firstName,
    lastName: fields.lastName,
    displayName: `${fields.firstName} ${fields.lastName}`,
    flagsText,
    props: fields.props ?? user.props,
    updatedAt: world.now(),
  };
  tx.users.update(user.id, change);
  noteWayIn(ctx, user.id);
  ctx.note(userDeed(user, change));
  return { ...user, ...change };
}

/** The user of an invite. Throws `unauthenticated` with the state that the interface expects. */
export function checkInvite(tables: Tables, token: string, now: number): UserRow {
  const invite = isWellFormedToken('invite', token) ? tables.userTokens.byHash('invite', hashSecret(token)) : undefined;
  const user = invite && tables.users.byId(invite.userId);
  if (!user || user.hasPassword) throw refusedInvite('invalid');
  if (now >= invite.expiresAt) throw refusedInvite('expired');
  return user;
}

function refusedInvite(state: 'invalid' | 'expired'): KmsError {
  return new KmsError('unauthenticated', `the invite is ${state}`, { body: { state } });
}

export function validateInvite(
  { tx, world }: PublicContext,
  input: { readonly token: string },
): { state: 'success'; user: User } {
  return { state: 'success', user: userAnswer(checkInvite(tx, input.token, world.now())) };
}

const weakPassword = 'the password does not meet the rules';

/** Throws `invalid` with the counts if a new password does not meet the rules. */
export function checkNewPassword(password: string): void {
  judgeNewPassword(password, { message: weakPassword });
}

/** The same for completing an invite, where the refusal carries a state instead of a message. */
export function checkInvitePassword(password: string): void {
  judgeNewPassword(password, {});
}

function judgeNewPassword(password: string, told: { readonly message?: string }): void {
  const results = judgePassword(password);
  if (results.isValid) return;
  throw new KmsError('invalid', weakPassword, { body: { ...told, state: 'malformed-password', results } });
}

interface CompleteInviteInput {
  readonly token: string;
  /** Hash of a password that was checked before. */
  readonly passwordHash: string;
  readonly lifetimes: Lifetimes;
}

/** Consumes the invite and logs its user in. If several try at once, one wins and the others get an invalid invite. */
export function completeInvite(
  ctx: PublicContext,
  { token, passwordHash, lifetimes }: CompleteInviteInput,
): { user: User; accesstoken: string } {
  const { tx, world } = ctx;
  const user = checkInvite(tx, token, world.now());
  tx.users.setPasswordHash(user.id, passwordHash, world.now());
  tx.userTokens.erase(user.id, 'invite');
  ctx.identify?.(user.id);
  ctx.note({ object: userThing(user), changed: ['password'] });
  const { accessToken, ...loggedIn } = logIn(ctx, user.id, lifetimes);
  return { ...loggedIn, accesstoken: accessToken };
}
