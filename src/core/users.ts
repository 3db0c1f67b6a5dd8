// Users: create with a generated password, list, get, change, delete.
import { KmsError } from '../errors.ts';
import type { Tables } from '../store/port.ts';
import type { Page, PageRequest } from '../store/sql.ts';
import type { User as UserRow } from '../store/tables/users.ts';
import { missingFlag } from './authorize.ts';
import type { Caller, Context } from './context.ts';
import type { JsonObject } from './json.ts';
import { mapPage } from './pages.ts';
import { needRoom } from './quotas.ts';
import { checkFree, checkUserNames } from './user-fields.ts';
import { grantableFlags, isSelf, mustNotBeStronger } from './user-grants.ts';
import { type User, userOf } from './user-wire.ts';

export interface NewUserFields {
  readonly username: string;
  readonly email: string;
  readonly firstName: string;
  readonly lastName: string;
  readonly displayName?: string;
  readonly flags?: JsonObject;
  readonly props?: JsonObject;
}

export interface CreateUserInput {
  readonly fields: NewUserFields;
  /** Generated, and its hash, both made beforehand: hashing is too slow for a transaction. */
  readonly password: string;
  readonly passwordHash: string;
}

export async function createUser(ctx: Context, input: CreateUserInput): Promise<{ user: User; password: string }> {
  const user = await addUser(ctx, input.fields, input.passwordHash);
  return { user: userOf(user), password: input.password };
}

/** Adds a user, without a password hash one who is invited. */
export async function addUser(ctx: Context, fields: NewUserFields, passwordHash?: string): Promise<UserRow> {
  const { tx, world } = ctx;
  checkUserNames(fields);
  const flagsText = grantableFlags(ctx.caller, fields.flags ?? {});
  await checkFree(tx.users, fields);
  await needRoom(ctx, 'users', () => tx.users.count());
  const now = world.now();
  const id = world.newId('user');
  await tx.users.insert({
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
  return found(await tx.users.byId(id));
}

/** The oldest first. */
export async function listUsers({ tx }: Context, input: { readonly page: PageRequest }): Promise<Page<User>> {
  return mapPage(await tx.users.list(input.page), userOf);
}

/** A user by name, or by what else the request says the text is. */
export interface UserRef {
  readonly text: string;
  readonly is: 'username' | 'email' | 'id';
}

export async function getUser({ tx }: Context, input: { readonly user: UserRef }): Promise<User> {
  return userOf(await findUser(tx, input.user));
}

/** Each field that is named is replaced whole. */
export type UserChanges = Partial<Pick<NewUserFields, 'email' | 'firstName' | 'lastName' | 'flags' | 'props'>>;

export interface UpdateUserInput {
  readonly user: UserRef;
  readonly changes: UserChanges;
}

export async function updateUser({ tx, caller, world }: Context, input: UpdateUserInput): Promise<User> {
  const { changes } = input;
  const user = await findUser(tx, input.user);
  mustNotBeStronger(caller, user);
  if (changes.flags && !caller.flags.allows('user.update')) throw missingFlag('user.update');
  const flagsText = changes.flags ? grantableFlags(caller, changes.flags) : user.flagsText;
  const email = changes.email ?? user.email;
  checkUserNames({ email });
  await checkFree(tx.users, { email }, user.id);
  // A reset link that went to the old address must not open the account.
  if (email !== user.email) await tx.userTokens.erase(user.id, 'reset');
  await tx.users.update(user.id, {
    email,
    firstName: changes.firstName ?? user.firstName,
    lastName: changes.lastName ?? user.lastName,
    displayName: user.displayName,
    flagsText,
    props: changes.props ?? user.props,
    updatedAt: world.now(),
  });
  return userOf(found(await tx.users.byId(user.id)));
}

/** Deletes a user, ends its sessions and disables the API keys that it owns. */
export async function deleteUser(
  { tx, caller, world }: Context,
  input: { readonly user: UserRef },
): Promise<{ message: string }> {
  const user = await findUser(tx, input.user);
  mustNotBeStronger(caller, user);
  await tx.sessions.endAllOf(user.id, world.now());
  await tx.users.disableKeys(user.id, world.now());
  await tx.users.erase(user.id);
  return { message: `the user ${user.username} is deleted` };
}

/** Whether the reference stands for the caller itself: reading and changing oneself needs no flag. */
export async function refersToSelf(tables: Pick<Tables, 'users'>, caller: Caller, ref: UserRef): Promise<boolean> {
  if (caller.kind !== 'user') return false;
  const user = await lookUp(tables, ref);
  return user !== undefined && isSelf(caller, user);
}

/** Throws `not-found` where there is no such user. */
export async function findUser(tables: Pick<Tables, 'users'>, ref: UserRef): Promise<UserRow> {
  return found(await lookUp(tables, ref));
}

function lookUp({ users }: Pick<Tables, 'users'>, { text, is }: UserRef): Promise<UserRow | undefined> {
  if (is === 'id') return users.byId(text);
  return is === 'email' ? users.byEmail(text) : users.byUsername(text);
}

function found(user: UserRow | undefined): UserRow {
  if (!user) throw new KmsError('not-found', 'there is no such user');
  return user;
}
