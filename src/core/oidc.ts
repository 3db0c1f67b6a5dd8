// Logins by OpenID Connect: the authorization code flow with PKCE. What a login needs between its start and its finish
// is kept here, in memory, for ten minutes and for one use; the talk with the provider is a client's, and takes place
// outside of any transaction. What then comes back are validated claims, which lead to a user and give flags.
import type { User } from '../api/users.ts';
import { toBase64Url, utf8 } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { hashSecret } from '../crypto/secrets.ts';
import { KmsError } from '../errors.ts';
import { changedRights } from '../model/deed.ts';
import { flagsOfText, parseFlags } from '../model/flags.ts';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import { activityRecord } from './activity.ts';
import type { PublicContext, Tenant, World } from './context.ts';
import { localCaller } from './credential.ts';
import { type Provider, providerOf } from './identity-provider.ts';
import type { Lifetimes } from './links.ts';
import { networksOf } from './login-backoff.ts';
import { logIn } from './logins.ts';
import { addUser, checkFree, findUser, userThing } from './users.ts';

/** Of a validated ID token. */
export type Claims = Readonly<Record<string, unknown>>;

/** What comes back from the provider, as it goes in. */
interface Returned {
  readonly code: string;
  readonly state: string;
  /** RFC 9207. */
  readonly iss?: string | undefined;
}

export interface CodeExchange extends Returned {
  readonly redirectUri: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** Talks with providers. Throws `unavailable` where that fails, `invalid` where what comes back does not hold. */
export interface OidcClient {
  /** The address of the provider's page. */
  authorizationUrl(
    provider: Provider,
    query: { readonly redirectUri: string; readonly state: string; readonly nonce: string; readonly challenge: string },
  ): Promise<string>;
  /** The claims of the ID token, once signature, issuer, audience, nonce and times are found good. */
  redeem(provider: Provider, exchange: CodeExchange): Promise<Claims>;
}

interface Pending {
  readonly tenant: string;
  /** Of the settings with which it began. */
  readonly changedAt: number;
  readonly redirectUri: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly bindingHash: string;
  /** Where it began. */
  readonly host: string;
  readonly expiresAt: number;
}

/** Characters of a claim. */
const longestText = 1024;
/** Milliseconds between start and finish. */
const pendingFor = 600_000;
/** Logins between start and finish: altogether, and of one address. The oldest gives way. */
const mostPending = 10_000;
const mostOfHost = 50;

interface OidcOrigin {
  readonly tenant: Pick<Tenant, 'id'>;
  readonly provider: Provider;
}

/** Logins between their start and their finish. */
export class OidcLogins {
  readonly #world: Pick<World, 'now' | 'random'>;
  readonly #client: OidcClient;
  /** By the hash of the state, the oldest first. */
  readonly #pending = new Map<string, Pending>();

  constructor(world: Pick<World, 'now' | 'random'>, client: OidcClient) {
    this.#world = world;
    this.#client = client;
  }

  /** Logins that are remembered. */
  get size(): number {
    return this.#pending.size;
  }

  async start(
    { tenant, provider }: OidcOrigin,
    { address, redirectUri }: { readonly address: string; readonly redirectUri: string },
  ): Promise<{ url: string; binding: string }> {
    const [state, nonce, verifier, binding] = [this.#secret(), this.#secret(), this.#secret(), this.#secret()];
    const challenge = toBase64Url(sha256(utf8(verifier)));
    const url = await this.#client.authorizationUrl(provider, { redirectUri, state, nonce, challenge });
    const { host } = networksOf(address);
    this.#makeRoom(host);
    this.#pending.set(hashSecret(state), {
      tenant: tenant.id,
      changedAt: provider.changedAt,
      redirectUri,
      nonce,
      verifier,
      bindingHash: hashSecret(binding),
      host,
      expiresAt: this.#world.now() + pendingFor,
    });
    return { url, binding };
  }

  /** Throws `invalid` for what was not begun, is over, or was begun elsewhere. */
  async finish(
    { tenant, provider }: OidcOrigin,
    { binding, ...returned }: Returned & { readonly binding: string },
  ): Promise<Claims> {
    const key = hashSecret(returned.state);
    const pending = this.#pending.get(key);
    // It is used up, whatever comes of it.
    if (pending?.tenant === tenant.id) this.#pending.delete(key);
    const isMeant =
      pending?.tenant === tenant.id &&
      pending.changedAt === provider.changedAt &&
      pending.expiresAt > this.#world.now() &&
      pending.bindingHash === hashSecret(binding);
    if (!isMeant) throw new KmsError('invalid', 'this login was not begun here, or is over: begin it again');
    const { redirectUri, nonce, verifier } = pending;
    return this.#client.redeem(provider, { ...returned, redirectUri, nonce, verifier });
  }

  #secret(): string {
    return toBase64Url(this.#world.random(32));
  }

  #makeRoom(host: string): void {
    const now = this.#world.now();
    const ofHost: string[] = [];
    for (const [key, pending] of this.#pending) {
      if (pending.expiresAt <= now) this.#pending.delete(key);
      else if (pending.host === host) ofHost.push(key);
    }
    const [oldest] =
      ofHost.length >= mostOfHost ? ofHost : this.#pending.size >= mostPending ? this.#pending.keys() : [];
    if (oldest !== undefined) this.#pending.delete(oldest);
  }
}

interface ClaimedLogin {
  /** With which the claims were validated. */
  readonly provider: Provider;
  readonly claims: Claims;
  readonly lifetimes: Lifetimes;
}

/**
 * Opens a session for the user whose claims these are. Throws `forbidden` where there is none, or where they are
 * somebody else's.
 */
export async function loginByClaims(
  ctx: PublicContext,
  { provider, claims, lifetimes }: ClaimedLogin,
): Promise<{ user: User; accessToken: string }> {
  const { tx } = ctx;
  // Until it is known whose login it is.
  ctx.identify?.(undefined);
  if ((await providerOf(tx))?.changedAt !== provider.changedAt) {
    throw new KmsError('invalid', 'the identity provider was changed meanwhile: begin the login again');
  }
  const { issuer } = provider;
  const subject = textIn(claims, 'sub');
  if (subject === undefined) throw new KmsError('forbidden', 'the identity provider gives no subject');
  const linked = await tx.oidc.bySubject(issuer, subject);
  const userId =
    linked?.userId ?? (await matchedUser(ctx, provider, claims)) ?? (await madeUser(ctx, provider, claims));
  ctx.identify?.(userId);
  const before = linked ?? (await tx.oidc.byUser(userId));
  if (before?.issuer === issuer && before.subject !== subject) {
    throw new KmsError('forbidden', 'this user belongs to another person at the identity provider');
  }
  const granted = await grantByClaims(ctx, userId, before?.granted ?? [], flagsGiven(provider, claims));
  await tx.oidc.link({ userId, issuer, subject, granted });
  return logIn(ctx, userId, lifetimes, true);
}

/** An address counts once the provider has verified it. */
function verifiedEmail(claims: Claims): string | undefined {
  return claims.email_verified === true ? textIn(claims, 'email') : undefined;
}

/** The user whom the claim names; undefined where there is none. Throws `forbidden` where the claim says nothing. */
async function matchedUser(
  { tx }: PublicContext,
  { userClaim }: Provider,
  claims: Claims,
): Promise<string | undefined> {
  if (userClaim === 'email') {
    const email = verifiedEmail(claims);
    if (email === undefined) throw new KmsError('forbidden', 'the identity provider gives no verified e-mail address');
    return (await tx.users.byEmail(email))?.id;
  }
  const name = textIn(claims, userClaim);
  if (name === undefined) throw new KmsError('forbidden', `the identity provider gives no claim ${userClaim}`);
  return (await tx.users.byUsername(name))?.id;
}

/** A new user without a password. Throws `forbidden` where none is to be made of these claims. */
async function madeUser(ctx: PublicContext, { userClaim, createUsers }: Provider, claims: Claims): Promise<string> {
  if (!createUsers) throw new KmsError('forbidden', 'no user here belongs to this login: ask an administrator');
  const email = verifiedEmail(claims);
  if (email === undefined) throw new KmsError('forbidden', 'the identity provider gives no verified e-mail address');
  const username = userClaim === 'email' ? (textIn(claims, 'preferred_username') ?? email) : textIn(claims, userClaim);
  const names = { username: username ?? email, email };
  await checkFree(ctx.tx.users, names);
  const full = textIn(claims, 'name') ?? names.username;
  const fields = {
    ...names,
    firstName: textIn(claims, 'given_name') ?? full,
    lastName: textIn(claims, 'family_name') ?? '',
    displayName: full,
  };
  const { world } = ctx;
  const user = await addUser({ ...ctx, caller: localCaller }, fields);
  const deed = { object: userThing(user) };
  ctx.tx.record(activityRecord(world, { ...made, keyid: user.id, action: 'user.create', deed, address: ctx.address }));
  return user.id;
}

const made = { props: { operation: 'oidc' } } as const;

/** In lower case, none twice. */
function flagsGiven({ flagsClaim, claimFlags }: Provider, claims: Claims): readonly string[] {
  const claimed = flagsClaim === undefined ? undefined : claimOf(claims, flagsClaim);
  const values = new Set(Array.isArray(claimed) ? claimed : [claimed]);
  const given = Object.entries(claimFlags).filter(([value]) => values.has(value));
  return [...new Set(given.flatMap(([, flags]) => flags))].sort();
}

/**
 * Takes back what the claims gave at the login before, gives what they give now, and answers which flags the user has
 * by them alone. What an administrator gave stays.
 */
async function grantByClaims(
  ctx: PublicContext,
  userId: string,
  before: readonly string[],
  given: readonly string[],
): Promise<readonly string[]> {
  const { tx, world } = ctx;
  const user = await findUser(tx, { text: userId, is: 'id' });
  const flags: JsonObject = JSON.parse(user.flagsText);
  const kept = Object.entries(flags).filter(
    ([name, value]) => !(value === true && before.includes(name.toLowerCase())),
  );
  const own = new Set(parseFlags(Object.fromEntries(kept)).names);
  const granted = given.filter((flag) => !own.has(flag));
  const after = Object.fromEntries([
    ...kept.filter(([name]) => !granted.includes(name.toLowerCase())),
    ...granted.map((flag) => [flag, true] as const),
  ]);
  const flagsText = JSON.stringify(after);
  const rights = changedRights(flagsOfText(user.flagsText), flagsOfText(flagsText));
  if (!rights.granted?.length && !rights.revoked?.length) return granted;
  await tx.users.update(userId, { ...user, flagsText, updatedAt: world.now() });
  const deed = { object: userThing(user), changed: ['flags'], ...rights };
  tx.record(activityRecord(world, { ...made, keyid: userId, action: 'user.update', deed, address: ctx.address }));
  return granted;
}

/** By its name, or step by step where a dot leads into objects. */
function claimOf(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let value: unknown = claims;
  for (const part of name.split('.')) {
    if (!isJsonObject(value) || !Object.hasOwn(value, part)) return undefined;
    value = value[part];
  }
  return value;
}

/** A text that says something and can be stored. */
function textIn(claims: Claims, name: string): string | undefined {
  const value = claimOf(claims, name);
  if (typeof value !== 'string' || value.trim() === '' || value.length > longestText) return undefined;
  return value.isWellFormed() && !/\p{Cc}/u.test(value) ? value : undefined;
}
