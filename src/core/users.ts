// Users: create with a generated password, list, get, change, delete.
import type { Body } from '../api/endpoints.ts';
import type { User } from '../api/users.ts';
import { judgePassword } from '../crypto/password-rules.ts';
import { type FieldProblem, fieldsError, KmsError } from '../errors.ts';
import {
  type ActivityDetails,
  changedFields,
  changedRights,
  FlagNames,
  mostNamed,
  mostTouched,
  type ResourceRef,
} from '../model/activity-details.ts';
import { flagsOfText } from '../model/flags.ts';
import type { Tables } from '../store/port.ts';
import type { PageRequest, Slices } from '../store/sql.ts';
import type { User as UserRow, UserTable } from '../store/tables/users.ts';
import { apiKeyThing } from './accounts.ts';
import { noteMade } from './approval-holders.ts';
import { welcomeApprover } from './approvers.ts';
import { grantableFlags, holderNeeded, isSelf, mayTouch, mayTouchAll, missingFlag } from './authorization.ts';
import { type Caller, type Context, needQuota } from './context.ts';
import { looksAt, type Reader, readInParts, type WrittenPage } from './pages.ts';
import { noteWayIn } from './persons.ts';

interface CreateUserInput {
  readonly fields: Body<'createUser'>;
  /** Generated; password and hash are made beforehand, since hashing is too slow for a transaction. */
  readonly password: string;
  readonly passwordHash: string;
}

export function createUser(ctx: Context, input: CreateUserInput): { user: User; password: string } {
  const user = addUser(ctx, input.fields, input.passwordHash);
  noteWayIn(ctx, user.id);
  noteMade(ctx, user.id);
  ctx.note({ object: userThing(user), ...changedRights(undefined, flagsOfText(user.flagsText)) });
  return { user: userAnswer(user), password: input.password };
}

/** Adds a user; without a password hash, an invited one. */
export function addUser(
  ctx: Pick<Context, 'tx' | 'tenant' | 'world' | 'caller'>,
  fields: Body<'createUser'>,
  passwordHash?: string,
): UserRow {
  const { tx, world } = ctx;
  checkUserNames(fields);
  const flagsText = grantableFlags(ctx.caller, fields.flags ?? {});
  checkFree(tx.users, fields);
  needQuota(ctx, 'users', () => tx.users.count());
  const now = world.now();
  const id = world.newId('user');
  tx.users.insert({
    id,
    username: fields.username,
    email: fields.email,
    firstName: fields.firstName,
    lastName: fields.lastName,
    displayName: fields.displayName || `${fields.firstName} ${fields.lastName}`,
    flagsText,
    props: fields.props ?? {},
    passwordHash,
    createdAt: now,
    updatedAt: now,
  });
  return found(tx.users.byId(id));
}

/** Oldest first. */
export function listUsers({ store }: Reader, { page }: { readonly page: PageRequest }): Promise<WrittenPage<User>> {
  return readInParts(looksAt(store), page, ({ users }, part) => users.list(part, userAnswer));
}

/** Reference to a user: a text, and whether it is a user name, an address or an id. */
export interface UserRef {
  readonly text: string;
  readonly is: 'username' | 'email' | 'id';
}

export function getUser({ tx }: Context, input: { readonly user: UserRef }): User {
  return userAnswer(findUser(tx, input.user));
}

interface UpdateUserInput {
  readonly user: UserRef;
  /** Each given field is replaced as a whole. */
  readonly changes: Body<'updateUser'>;
}

export function updateUser(ctx: Context, input: UpdateUserInput): User {
  const { tx, caller, world } = ctx;
  const { changes } = input;
  const user = findUser(tx, input.user);
  mayTouch(caller, user);
  if (changes.flags && !caller.flags.allows('user.update')) throw missingFlag('user.update');
  const flagsText = changes.flags ? grantableFlags(caller, changes.flags) : user.flagsText;
  const email = changes.email ?? user.email;
  checkUserNames({ email });
  checkFree(tx.users, { email }, user.id);
  // A reset link that went to the old address must not open the account.
  if (email !== user.email) {
    tx.userTokens.erase(user.id, 'reset');
    noteWayIn(ctx, user.id);
  }
  const change = {
    email,
    firstName: changes.firstName ?? user.firstName,
    lastName: changes.lastName ?? user.lastName,
    displayName: user.displayName,
    flagsText,
    props: changes.props ?? user.props,
    updatedAt: world.now(),
  };
  const needHolder = holderNeeded(ctx);
  tx.users.update(user.id, change);
  needHolder();
  welcomeApprover(ctx, user.id);
  ctx.note(userDeed(user, change));
  return userAnswer(found(tx.users.byId(user.id)));
}

/**
 * Deletes a user, ends their sessions and disables the API keys they own, none of which may be stronger than the
 * caller.
 */
export function* deleteUser(ctx: Context, input: { readonly user: UserRef }): Slices<{ message: string }> {
  const { tx, caller, world } = ctx;
  const user = findUser(tx, input.user);
  mayTouch(caller, user);
  yield* mayTouchAll(caller, (look) => tx.apiKeys.lookAtActiveOfUser(user.id, caller.id, look));
  const revoked = new FlagNames();
  revoked.add(flagsOfText(user.flagsText));
  yield* tx.apiKeys.lookAtActiveOfUser(user.id, undefined, (text) => revoked.add(flagsOfText(text)));
  const keys = (yield* tx.apiKeys.activeOfUser(user.id, mostTouched)).map(apiKeyThing);
  if (keys.length > 0) ctx.touches({ actions: ['apikey.update'], objects: keys });
  const needHolder = holderNeeded(ctx);
  tx.sessions.endAllOf(user.id, world.now());
  const objectCount = yield* tx.apiKeys.disableOfUser(user.id, world.now());
  tx.users.erase(user.id);
  needHolder();
  ctx.note({ object: userThing(user), revoked: revoked.list, objects: keys.slice(0, mostNamed), objectCount });
  return { message: `the user ${user.username} is deleted` };
}

/** Whether the reference means the caller itself: reading and changing oneself needs no flag. */
export function refersToSelf(tables: Pick<Tables, 'users'>, caller: Caller, ref: UserRef): boolean {
  if (caller.kind !== 'user') return false;
  const user = lookUp(tables, ref);
  return user !== undefined && isSelf(caller, user);
}

/** Throws `not-found` if there is no such user. */
export function findUser(tables: Pick<Tables, 'users'>, ref: UserRef): UserRow {
  return found(lookUp(tables, ref));
}

function lookUp({ users }: Pick<Tables, 'users'>, { text, is }: UserRef): UserRow | undefined {
  if (is === 'id') return users.byId(text);
  return is === 'email' ? users.byEmail(text) : users.byUsername(text);
}

function found(user: UserRow | undefined): UserRow {
  if (!user) throw new KmsError('not-found', 'there is no such user');
  return user;
}

export function userThing({ id, username }: Pick<UserRow, 'id' | 'username'>): ResourceRef {
  return { type: 'user', id, name: username };
}

/** The activity record's content for a change of a user. */
export function userDeed(user: UserRow, change: Partial<UserRow>): ActivityDetails {
  const { flagsText = user.flagsText, updatedAt: _, ...fields } = change;
  const rights = changedRights(flagsOfText(user.flagsText), flagsOfText(flagsText));
  const before = { ...user, flags: JSON.parse(user.flagsText) };
  const changed = changedFields(before, { ...fields, flags: JSON.parse(flagsText) });
  return { object: userThing(user), changed, ...rights };
}

export function userAnswer(row: UserRow): User {
  return {
    id: row.id,
    username: row.username,
    firstName: row.firstName,
    lastName: row.lastName,
    displayName: row.displayName,
    keys: [...row.keys],
    email: row.email,
    flags: JSON.parse(row.flagsText),
    props: row.props,
    // A user who logs in through an identity provider may have no password.
    state: row.hasPassword || row.lastLoginAt !== undefined ? 'active' : 'invited',
    lastLoginAt: row.lastLoginAt ?? null,
  };
}

const maxUsername = 256;
const maxEmail = 254;
/** Loose on purpose: one @ between two parts without spaces or the characters that address lists use. */
const email = /^[^\s@<>()[\]\\,;:"\p{Cc}]+@[^\s@<>()[\]\\,;:"\p{Cc}]+$/u;

interface UserNames {
  readonly username?: string;
  readonly email?: string;
}

/** Throws `invalid`, naming each wrong field. */
export function checkUserNames({ username, email: address }: UserNames): void {
  const problems: FieldProblem[] = [];
  const wrongName = username === undefined ? undefined : usernameProblem(username);
  if (wrongName !== undefined) problems.push({ field: 'username', message: wrongName });
  if (address !== undefined && (address.length > maxEmail || !email.test(address))) {
    problems.push({ field: 'email', message: 'expected an e-mail address' });
  }
  if (problems.length > 0) throw fieldsError('invalid', problems);
}

function usernameProblem(username: string): string | undefined {
  if ([...username].length > maxUsername) return `expected at most ${maxUsername} characters`;
  if (username.trim() !== username || /\p{Cc}/u.test(username))
    return 'expected no control characters, nor spaces around it';
  // Such a user could not be requested: in a path these names mean something else.
  if (username === '' || username === '.' || username === '..') return 'expected a name';
  return undefined;
}

/**
 * Throws `conflict`, naming each field taken by a user other than `exceptId`. A name equal to another user's address,
 * or the other way round, is taken too: a login accepts either.
 */
export function checkFree(users: UserTable, { username, email: address }: UserNames, exceptId?: string): void {
  const problems: FieldProblem[] = [];
  const isTaken = (text: string): boolean => {
    const found = [users.byUsername(text), users.byEmail(text)];
    return found.some((user) => user !== undefined && user.id !== exceptId);
  };
  if (username !== undefined && isTaken(username)) problems.push({ field: 'username', message: 'is taken' });
  if (address !== undefined && isTaken(address)) problems.push({ field: 'email', message: 'is taken' });
  if (problems.length > 0) throw fieldsError('conflict', problems);
}

/** 64 characters, none easily mistaken for another (0 O, 1 l I): 6 bits each. */
const alphabet = '23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz-_.+!%=';
const generatedLength = 20;

/** A random password that meets the rules, about 119 bits. */
export function generatePassword(random: (length: number) => Uint8Array): string {
  for (;;) {
    const password = Array.from(random(generatedLength), (byte) => alphabet.charAt(byte & 63)).join('');
    if (judgePassword(password).isValid) return password;
  }
}
