// Set-up: the first account and root API key of a new tenant, and a link with which its first administrator makes one
// user with all permissions. The link is valid until any user is made, and is not stored: its token carries the time it
// was made and a MAC, under a tenant key, that includes the number of users ever made. So it works once, and not again
// when all users are deleted.
import type { Account } from '../api/accounts.ts';
import type { FullApiKey } from '../api/apikeys.ts';
import type { Body } from '../api/endpoints.ts';
import type { User } from '../api/users.ts';
import { equalBytes, fromBase64Url, toBase64Url, utf8 } from '../crypto/bytes.ts';
import { hmacSha256 } from '../crypto/hash.ts';
import { KmsError } from '../errors.ts';
import { timestamp } from '../model/timestamp.ts';
import type { Tables } from '../store/port.ts';
import { accountAnswer, makeAccount } from './accounts.ts';
import { makeApiKey } from './api-keys.ts';
import type { Context, PublicContext, Tenant } from './context.ts';
import { localCaller } from './credential.ts';
import { type Lifetimes, type LinkSettings, linkTo } from './links.ts';
import { logIn } from './logins.ts';
import { noteWayIn } from './persons.ts';
import { addUser, userThing } from './users.ts';

const prefix = 'kmssu_';
const form = /^([0-9]{1,15})_([A-Za-z0-9_-]{43})$/;

interface SetUpLink {
  readonly url: string;
  readonly expiresAt: string;
}

/** Throws `conflict` if there is already a user, who can invite others. */
export function setUpLink(
  { tx, world, tenant }: Omit<PublicContext, 'note'>,
  { links }: { readonly links: LinkSettings },
): SetUpLink {
  if (tx.users.any()) {
    throw new KmsError('conflict', 'there is a user already, who can invite others if their permissions allow it', {
      hint: "to give one all permissions: `kms user update NAME --flag '*'`",
    });
  }
  const now = world.now();
  const token = `${prefix}${now}_${toBase64Url(macOf(tenant, now, tx.users.everMade()))}`;
  return { url: linkTo('set-up', token, links), expiresAt: timestamp(now + links.lifetimes.invite) };
}

interface SetUpToken {
  readonly tenant: Tenant;
  readonly token: string;
  readonly lifetimes: Lifetimes;
}

/** Throws `unauthenticated` with the state, like an invite. */
export function checkSetUp(tables: Pick<Tables, 'users'>, given: SetUpToken, now: number): void {
  const { tenant, token, lifetimes } = given;
  const [, text = '', mac = ''] = (token.startsWith(prefix) && form.exec(token.slice(prefix.length))) || [];
  const bytes = fromBase64Url(mac);
  const madeAt = Number(text);
  const expected = macOf(tenant, madeAt, tables.users.everMade());
  if (!bytes || String(madeAt) !== text || !equalBytes(bytes, expected)) throw refusedSetUp('invalid');
  if (now >= madeAt + lifetimes.invite) throw refusedSetUp('expired');
}

interface CompleteSetUpInput extends Omit<SetUpToken, 'tenant'> {
  readonly fields: Body<'createUser'>;
  /** Hash of a password that was checked before. */
  readonly passwordHash: string;
}

/** Makes the first user and logs them in. If several try at once, one wins and the link is invalid for the others. */
export function completeSetUp(
  ctx: PublicContext,
  { token, fields, passwordHash, lifetimes }: CompleteSetUpInput,
): { user: User; accesstoken: string } {
  const { tx, world, tenant } = ctx;
  checkSetUp(tx, { tenant, token, lifetimes }, world.now());
  const user = addUser({ tx, tenant, world, caller: localCaller }, { ...fields, flags: { '*': true } }, passwordHash);
  noteWayIn({ tx, caller: localCaller }, user.id);
  // The request had no credential, but from now on this user can do everything.
  ctx.identify?.(user.id);
  ctx.note({ object: userThing(user), granted: ['*'] });
  const { accessToken, ...loggedIn } = logIn(ctx, user.id, lifetimes);
  return { ...loggedIn, accesstoken: accessToken };
}

function macOf({ id, keys }: Tenant, madeAt: number, usersEverMade: number): Uint8Array {
  return hmacSha256(keys.key('set-up'))(utf8(`kms/set-up/v1 ${id} ${madeAt} ${usersEverMade}`));
}

function refusedSetUp(state: 'invalid' | 'expired'): KmsError {
  return new KmsError('unauthenticated', `the set-up link is ${state}`, { body: { state } });
}

export function bootstrap(ctx: Pick<Context, 'tx' | 'world'>): { account: Account; apiKey: FullApiKey } {
  const account = makeAccount(ctx, { uid: 'admin' });
  const apiKey = makeApiKey(ctx, {
    accountId: account.id,
    name: 'root',
    flags: { '*': true },
    props: {},
    createdBy: localCaller.id,
  });
  return { account: accountAnswer(account), apiKey };
}
