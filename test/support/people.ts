// Users for tests of the core: made, invited and logged in in a line each. Password hashes are cheap, so that tests of
// rules need not wait for argon2.

import type { Body } from '../../src/api/endpoints.ts';
import type { User } from '../../src/api/users.ts';
import type { Caller, PublicContext } from '../../src/core/context.ts';
import { inviteUser } from '../../src/core/invites.ts';
import { defaultLifetimes, type LinkSettings } from '../../src/core/links.ts';
import { authenticateToken, openSession } from '../../src/core/sessions.ts';
import { createUser } from '../../src/core/users.ts';
import { flagsOfText } from '../../src/model/flags.ts';
import type { TestTenant } from './context.ts';

export const links: LinkSettings = { lifetimes: defaultLifetimes, baseUrl: 'https://kms.example.org' };
export const lifetimes = defaultLifetimes;

export function fieldsOf(username: string, more: Partial<Body<'createUser'>> = {}): Body<'createUser'> {
  return { username, email: `${username}@example.org`, firstName: 'Ada', lastName: 'Lovelace', ...more };
}

export async function addedUser(
  tenant: TestTenant,
  username: string,
  flags: Record<string, boolean> = {},
): Promise<User> {
  const fields = fieldsOf(username, { flags });
  const { user } = await tenant.call(createUser, { fields, password: 'x', passwordHash: `hash of ${username}` });
  return user;
}

export async function inviteToken(tenant: TestTenant, username: string): Promise<string> {
  const { loginUrl } = await tenant.call(inviteUser, { fields: fieldsOf(username), links });
  return tokenIn(loginUrl);
}

export function tokenIn(url: string): string {
  return new URL(url).searchParams.get('token') ?? '';
}

/** An access token for the user, without asking for a password. */
export function tokenFor(tenant: TestTenant, userId: string): Promise<string> {
  return tenant.run((ctx: PublicContext) => openSession(ctx, { userId, byProvider: false }, lifetimes));
}

/** The caller that an access token stands for. */
export async function callerOf(tenant: TestTenant, token: string): Promise<Caller> {
  const verdict = await tenant.store.transaction((tables) => authenticateToken(tables, token, tenant.world.now()));
  if (verdict?.kind !== 'active') throw new Error(`the token is ${verdict?.kind ?? 'unknown'}`);
  const { userId, session, flagsText } = verdict;
  return { kind: 'user', id: userId, userId, session, flags: flagsOfText(flagsText) };
}

export async function selfOf(tenant: TestTenant, user: User): Promise<Caller> {
  return callerOf(tenant, await tokenFor(tenant, user.id));
}
