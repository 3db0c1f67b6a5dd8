// Logins by OpenID Connect: the authorization code flow with PKCE. Nothing is stored between start and finish, so
// starting logins cannot fill the store: the state carries its expiry and a MAC under a tenant key, which binds it to
// this service and to the browser; nonce and verifier are derived from it again. A state that led to a login is
// remembered until it expires. Requests to the provider go through a client, outside any transaction. The validated
// claims that come back identify a user and give flags.
import type { User } from '../api/users.ts';
import { concatBytes, equalBytes, fromBase64Url, toBase64Url, utf8 } from '../crypto/bytes.ts';
import { hmacSha256, sha256 } from '../crypto/hash.ts';
import { KmsError } from '../errors.ts';
import { changedRights } from '../model/activity-details.ts';
import { flagsOfText, parseFlags } from '../model/flags.ts';
import { sameDomain } from '../model/hosts.ts';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import { activityRecord } from './activity.ts';
import type { PublicContext, Tenant, World } from './context.ts';
import { localCaller } from './credential.ts';
import { type Provider, providerOf } from './identity-provider.ts';
import type { Lifetimes } from './links.ts';
import { logIn } from './logins.ts';
import { noteWayIn } from './persons.ts';
import { addUser, findUser, userThing } from './users.ts';

/** Claims of a validated ID token. */
export type Claims = Readonly<Record<string, unknown>>;

/** Parameters that the provider sent back, unchecked. */
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

/** Client of providers. Throws `unavailable` if the request fails, `invalid` if the answer does not validate. */
export interface OidcClient {
  /** The address of the provider's page. */
  authorizationUrl(
    provider: Provider,
    query: { readonly redirectUri: string; readonly state: string; readonly nonce: string; readonly challenge: string },
  ): Promise<string>;
  /** The claims of the ID token after its signature, issuer, audience, nonce and times were checked. */
  redeem(provider: Provider, exchange: CodeExchange): Promise<Claims>;
}

/** Context of a login at a provider. */
interface OidcPlace {
  readonly tenant: Pick<Tenant, 'id' | 'keys'>;
  readonly provider: Provider;
  readonly redirectUri: string;
  readonly world: Pick<World, 'now' | 'random'>;
  readonly client: OidcClient;
}

/** Maximum length of a claim, in characters. */
const longestText = 1024;
/** Milliseconds between start and finish. */
const begunFor = 600_000;
/** Bytes of a state: random ones, its expiry, and a MAC of both. */
const nonceLength = 32;
const timeLength = 8;
const macLength = 16;

/**
 * HMAC-SHA256 of a state's content, for one purpose. `binding` is the secret that only the browser that began the login
 * has.
 */
function macOf(
  { tenant, provider, redirectUri }: OidcPlace,
  purpose: 'state' | 'nonce' | 'verifier',
  said: Uint8Array,
  binding: string,
): Uint8Array {
  const label = JSON.stringify(['kms/oidc/v1', purpose, tenant.id, provider.changedAt, redirectUri, binding]);
  return hmacSha256(tenant.keys.key('oidc'))(concatBytes(utf8(label), said));
}

function secretsOf(place: OidcPlace, said: Uint8Array, binding: string) {
  return {
    nonce: toBase64Url(macOf(place, 'nonce', said, binding)),
    verifier: toBase64Url(macOf(place, 'verifier', said, binding)),
  };
}

/** Begins a login. Stores nothing. */
export async function startLogin(place: OidcPlace): Promise<{ url: string; binding: string }> {
  const { provider, redirectUri, world, client } = place;
  const binding = toBase64Url(world.random(32));
  const time = new Uint8Array(timeLength);
  new DataView(time.buffer).setFloat64(0, world.now() + begunFor);
  const said = concatBytes(world.random(nonceLength), time);
  const state = toBase64Url(concatBytes(said, macOf(place, 'state', said, binding).subarray(0, macLength)));
  const { nonce, verifier } = secretsOf(place, said, binding);
  const challenge = toBase64Url(sha256(utf8(verifier)));
  return { url: await client.authorizationUrl(provider, { redirectUri, state, nonce, challenge }), binding };
}

/** A login that the provider has answered. */
interface Proven {
  readonly claims: Claims;
  /** Can be consumed once. */
  readonly state: string;
  readonly expiresAt: number;
}

/** Throws `invalid` for a state that was not made here, has expired, or belongs to another browser. */
export async function finishLogin(
  place: OidcPlace,
  { binding, ...returned }: Returned & { readonly binding: string },
): Promise<Proven> {
  const { provider, redirectUri, world, client } = place;
  const { state } = returned;
  const bytes = fromBase64Url(state);
  if (bytes?.length !== nonceLength + timeLength + macLength) throw notBegun();
  const said = bytes.subarray(0, nonceLength + timeLength);
  const mac = macOf(place, 'state', said, binding).subarray(0, macLength);
  if (!equalBytes(bytes.subarray(said.length), mac)) throw notBegun();
  const expiresAt = new DataView(said.buffer, said.byteOffset).getFloat64(nonceLength);
  if (world.now() >= expiresAt) throw notBegun();
  const secrets = secretsOf(place, said, binding);
  return { claims: await client.redeem(provider, { ...returned, redirectUri, ...secrets }), state, expiresAt };
}

function notBegun(): KmsError {
  return refusal('invalid', 'this login was not begun here, or is over: begin it again');
}

/** The person logging in reads the reason and asks the operator about it, so the log has it too. */
function refusal(code: 'invalid' | 'forbidden', message: string): KmsError {
  return new KmsError(code, message, { logReason: message });
}

interface ClaimedLogin {
  /** Provider settings that the claims were validated with. */
  readonly provider: Provider;
  readonly proven: Proven;
  readonly lifetimes: Lifetimes;
}

/**
 * Opens a session for the user whom the claims identify. Throws `forbidden` if there is none, or the user is linked to
 * another subject.
 */
export function loginByClaims(
  ctx: PublicContext,
  { provider, proven, lifetimes }: ClaimedLogin,
): { user: User; accessToken: string } {
  const { tx, world } = ctx;
  const { claims, state, expiresAt } = proven;
  // The user is not known yet.
  ctx.identify?.(undefined);
  if (providerOf(tx)?.changedAt !== provider.changedAt) {
    throw refusal('invalid', 'the identity provider was changed meanwhile: begin the login again');
  }
  if (!tx.secondFactors.useChallenge(state, expiresAt, world.now())) throw notBegun();
  const { issuer } = provider;
  const subject = textIn(claims, 'sub');
  if (subject === undefined) throw refusal('forbidden', 'the identity provider gives no subject');
  const linked = tx.oidc.bySubject(issuer, subject);
  const userId = linked?.userId ?? matchedUser(ctx, provider, claims) ?? madeUser(ctx, provider, claims);
  ctx.identify?.(userId, { operation: 'oidc' });
  const before = linked ?? tx.oidc.byUser(userId);
  if (before?.issuer === issuer && before.subject !== subject) {
    throw refusal('forbidden', 'this user belongs to another person at the identity provider');
  }
  // Without a second factor, those who run the provider could be this User now, and add one of their own.
  if (!tx.secondFactors.has(userId)) noteWayIn({ tx, caller: localCaller }, userId);
  const granted = grantByClaims(ctx, userId, before?.granted ?? [], flagsGiven(provider, claims));
  tx.oidc.link({ userId, issuer, subject, granted });
  return logIn(ctx, userId, lifetimes, { byProvider: true });
}

/**
 * An address counts once the provider has verified it. Some send `email_verified` as text, and some not at all: their
 * addresses count if the administrator trusts them all.
 */
function verifiedEmail({ trustEmail }: Provider, claims: Claims): string | undefined {
  const said = claims.email_verified ?? undefined;
  const isVerified = said === undefined ? trustEmail : said === true || said === 'true';
  return isVerified ? textIn(claims, 'email') : undefined;
}

/**
 * The user whom the claim names; undefined if there is none. Throws `forbidden` if the claim is missing.
 *
 * Compared letter for letter: to the provider `KATE`, `kate` and one with the Kelvin sign may be three people. Only the
 * domain of an address is case-insensitive everywhere.
 */
function matchedUser({ tx }: PublicContext, provider: Provider, claims: Claims): string | undefined {
  const { userClaim } = provider;
  if (userClaim === 'email') {
    const email = verifiedEmail(provider, claims);
    if (email === undefined) throw refusal('forbidden', noVerifiedEmail);
    const user = tx.users.byEmail(email);
    return user && sameDomain(user.email) === sameDomain(email) ? user.id : undefined;
  }
  const name = textIn(claims, userClaim);
  if (name === undefined) throw refusal('forbidden', `the identity provider gives no claim ${userClaim}`);
  const user = tx.users.byUsername(name);
  return user?.username === name ? user.id : undefined;
}

const noVerifiedEmail = 'the identity provider gives no verified e-mail address';

/** A new user without a password. Throws `forbidden` if none can be made of these claims. */
function madeUser(ctx: PublicContext, provider: Provider, claims: Claims): string {
  const { userClaim, createUsers } = provider;
  if (!createUsers) throw refusal('forbidden', 'no user here belongs to this login: ask an administrator');
  const email = verifiedEmail(provider, claims);
  if (email === undefined) throw refusal('forbidden', noVerifiedEmail);
  const username = userClaim === 'email' ? (textIn(claims, 'preferred_username') ?? email) : textIn(claims, userClaim);
  const names = { username: username ?? email, email };
  const full = textIn(claims, 'name') ?? names.username;
  const fields = {
    ...names,
    firstName: textIn(claims, 'given_name') ?? full,
    lastName: textIn(claims, 'family_name') ?? '',
    displayName: full,
  };
  const { world } = ctx;
  const user = newUser(ctx, fields);
  const deed = { object: userThing(user) };
  ctx.tx.record(activityRecord(world, { ...made, keyid: user.id, action: 'user.create', deed, address: ctx.address }));
  return user.id;
}

/** A taken name or a reached limit is the operator's to fix, so the reason goes to the log. */
function newUser(ctx: PublicContext, fields: Parameters<typeof addUser>[1]): ReturnType<typeof addUser> {
  const { tx, tenant, world } = ctx;
  try {
    return addUser({ tx, tenant, world, caller: localCaller }, fields);
  } catch (error) {
    if (!(error instanceof KmsError) || error.code === 'internal') throw error;
    const { code, message, fields } = error;
    throw new KmsError(code, message, { ...(fields && { fields }), logReason: message });
  }
}

const made = { props: { operation: 'oidc' } } as const;

/** Flags given by the claims, in lower case, without duplicates. */
function flagsGiven({ flagsClaim, claimFlags }: Provider, claims: Claims): readonly string[] {
  const claimed = flagsClaim === undefined ? undefined : claimOf(claims, flagsClaim);
  const values = new Set(Array.isArray(claimed) ? claimed : [claimed]);
  const given = Object.entries(claimFlags).filter(([value]) => values.has(value));
  return [...new Set(given.flatMap(([, flags]) => flags))].sort();
}

/**
 * Takes back what the claims gave at the previous login, gives what they give now, and returns the flags that the user
 * has through claims alone. Flags given by an administrator stay.
 */
function grantByClaims(
  ctx: PublicContext,
  userId: string,
  before: readonly string[],
  given: readonly string[],
): readonly string[] {
  const { tx, world } = ctx;
  const user = findUser(tx, { text: userId, is: 'id' });
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
  tx.users.update(userId, { ...user, flagsText, updatedAt: world.now() });
  const deed = { object: userThing(user), changed: ['flags'], ...rights };
  tx.record(activityRecord(world, { ...made, keyid: userId, action: 'user.update', deed, address: ctx.address }));
  return granted;
}

/** Looks a claim up by its name, or through nested objects along the dots. */
function claimOf(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let value: unknown = claims;
  for (const part of name.split('.')) {
    if (!isJsonObject(value) || !Object.hasOwn(value, part)) return undefined;
    value = value[part];
  }
  return value;
}

/** A claim as non-empty, storable text. */
function textIn(claims: Claims, name: string): string | undefined {
  const value = claimOf(claims, name);
  if (typeof value !== 'string' || value.trim() === '' || value.length > longestText) return undefined;
  return value.isWellFormed() && !/\p{Cc}/u.test(value) ? value : undefined;
}
