// The identity provider of a tenant: OpenID Connect settings, how its claims identify users, and which flags they give.
// Only the machine's administrator can set it.
import { fieldsError, invalidField, KmsError } from '../errors.ts';
import { type ActivityDetails, changedRights, type ResourceRef } from '../model/activity-details.ts';
import { flagsOfText, isLongFlag, maxFlagLength } from '../model/flags.ts';
import { isLoopbackHost } from '../model/hosts.ts';
import { isJsonObject } from '../model/json.ts';
import { timestamp } from '../model/timestamp.ts';
import type { Tables, Transaction } from '../store/port.ts';
import { activityRecord } from './activity.ts';
import type { World } from './context.ts';
import { localCaller } from './credential.ts';
import { findUser, userThing } from './users.ts';

/** Provider settings as stored. */
interface ProviderSettings {
  /** https, or http on this machine; exactly as the provider names itself. */
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Label of the login button. */
  readonly name?: string;
  /** Separated by spaces, with `openid` among them. */
  readonly scope: string;
  /** Claim that finds the user at the first login: `email` by the address, any other by the user name. */
  readonly userClaim: string;
  /** Whether a person without a user gets one. */
  readonly createUsers: boolean;
  /** Whether an address is trusted if the provider sends no claim `email_verified`. */
  readonly trustEmail: boolean;
  /** Claim whose values give flags; a dot leads into an object. */
  readonly flagsClaim?: string;
  /** The flags that each value gives. */
  readonly claimFlags: Readonly<Record<string, readonly string[]>>;
  /** PEM of the authorities to trust instead of the public ones. */
  readonly ca?: string;
}

export interface Provider extends ProviderSettings {
  /** Epoch milliseconds. */
  readonly changedAt: number;
}

/** Undefined if none is set. */
export function providerOf({ oidc }: Pick<Tables, 'oidc'>): Provider | undefined {
  const stored = oidc.provider();
  // Cast: the column holds what `setProvider` wrote into it.
  return stored && { ...(stored.settings as unknown as ProviderSettings), changedAt: stored.changedAt };
}

export function noProvider(): KmsError {
  return new KmsError('not-found', 'no identity provider is set up here');
}

/** Name shown on the login page: the provider's name, or its host. */
export function shownName({ name, issuer }: Pick<ProviderSettings, 'name' | 'issuer'>): string {
  return name ?? new URL(issuer).host;
}

/** All settings but the secret. */
type ShownProvider = Omit<ProviderSettings, 'clientSecret' | 'name' | 'ca'> & {
  readonly name: string;
  readonly hasCa: boolean;
  readonly changedAt: string;
};

interface AdminContext {
  readonly tx: Transaction;
  readonly tenant: ResourceRef;
  readonly world: World;
}

const action = 'system.tenant';

interface SetProvider extends Partial<ProviderSettings> {
  /** Confirms that `*` and `system.*` are intended. */
  readonly allowRoot?: boolean | undefined;
}

/** Replaces the previous settings. */
export function setProvider(ctx: AdminContext, given: SetProvider): ShownProvider {
  const settings = checkedSettings(given);
  const before = providerOf(ctx.tx);
  const after = { ...settings };
  const changed = Object.keys({ ...before, ...after }).filter(
    (name) =>
      name !== 'changedAt' &&
      JSON.stringify(before?.[name as keyof Provider]) !== JSON.stringify(after[name as keyof ProviderSettings]),
  );
  ctx.tx.oidc.setProvider({ settings: after, changedAt: ctx.world.now() });
  note(ctx, 'oidc-set', { issuer: settings.issuer }, { object: ctx.tenant, changed });
  return getProvider(ctx);
}

/** Throws `not-found` if none is set. */
export function getProvider({ tx }: Pick<AdminContext, 'tx'>): ShownProvider {
  const provider = providerOf(tx);
  if (!provider) throw noProvider();
  const { clientSecret: _, ca, changedAt, ...rest } = provider;
  return { ...rest, name: shownName(provider), hasCa: ca !== undefined, changedAt: timestamp(changedAt) };
}

/** Users keep their flags and their links to the provider, in case it is set again. */
export function removeProvider(ctx: AdminContext): ShownProvider {
  const removed = getProvider(ctx);
  ctx.tx.oidc.setProvider(undefined);
  note(ctx, 'oidc-remove', { issuer: removed.issuer }, { object: ctx.tenant });
  return removed;
}

/**
 * Forgets a user's identity at the provider, so that the next login finds the user by the claim again, and takes back
 * the flags given by claims.
 */
export function unlinkUser(ctx: AdminContext, username: string): { readonly username: string } {
  const { tx, world } = ctx;
  const user = findUser(tx, { text: username, is: 'username' });
  const flagsText = tx.users.ownFlagsText(user.id) ?? user.flagsText;
  if (!tx.oidc.unlink(user.id)) {
    throw new KmsError('not-found', 'this user has not logged in with an identity provider');
  }
  if (flagsText !== user.flagsText) tx.users.update(user.id, { ...user, flagsText, updatedAt: world.now() });
  const rights = changedRights(flagsOfText(user.flagsText), flagsOfText(flagsText));
  note(ctx, 'oidc-unlink', {}, { object: userThing(user), ...rights });
  return { username: user.username };
}

function note({ tx, world }: AdminContext, operation: string, props: object, deed: ActivityDetails): void {
  tx.record(activityRecord(world, { keyid: localCaller.id, action, props: { operation, ...props }, deed }));
}

const defaultScope = 'openid email profile';
const defaultClaim = 'email';
/** Maximum length of a setting, in characters. */
const longestText = 1024;
const longestCa = 65_536;
/** Values in the table of claims, and total flags in it. */
const mostValues = 200;
const mostFlags = 1000;

/** Throws `invalid` for settings that allow no login, and for dangerous flags without `allowRoot`. */
function checkedSettings(given: SetProvider): ProviderSettings {
  const {
    issuer,
    clientId,
    clientSecret,
    name,
    scope = defaultScope,
    userClaim = defaultClaim,
    flagsClaim,
    ca,
  } = given;
  const claimFlags = checkedFlags(given.claimFlags ?? {}, given.allowRoot === true);
  if ((flagsClaim === undefined) !== (Object.keys(claimFlags).length === 0)) {
    throw fieldsError('invalid', [
      { field: 'flagsClaim', message: 'goes with claimFlags: the claim, and which of its values give which flags' },
    ]);
  }
  if (!scope.split(' ').includes('openid')) throw invalidField('scope', 'must have openid among its words');
  if (ca !== undefined && ca.length > longestCa) throw invalidField('ca', `expected at most ${longestCa} characters`);
  return {
    issuer: checkedIssuer(shortText('issuer', issuer)),
    clientId: shortText('clientId', clientId),
    clientSecret: secretText('clientSecret', clientSecret),
    scope: shortText('scope', scope),
    userClaim: shortText('userClaim', userClaim),
    createUsers: given.createUsers ?? false,
    trustEmail: given.trustEmail ?? false,
    claimFlags,
    ...(name !== undefined && { name: shortText('name', name) }),
    ...(flagsClaim !== undefined && { flagsClaim: shortText('flagsClaim', flagsClaim) }),
    ...(ca !== undefined && { ca }),
  };
}

function secretText(field: string, value: string | undefined): string {
  const text = shortText(field, value);
  // Programs put this character in place of bytes that they cannot decode, so the secret would be a wrong one.
  if (text.includes('\ufffd')) throw invalidField(field, 'expected no U+FFFD');
  return text;
}

function shortText(field: string, value: string | undefined): string {
  if (value === undefined || value.trim() === '') throw invalidField(field, 'is required');
  if (value.length > longestText) throw invalidField(field, `expected at most ${longestText} characters`);
  if (/\p{Cc}/u.test(value)) throw invalidField(field, 'expected no control characters');
  return value;
}

function checkedIssuer(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url?.username === '' && url.password === '' && url.search === '' && url.hash === '';
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopbackHost(url.hostname));
  if (isPlain && isSafe) return text;
  throw invalidField('issuer', 'expected https://host[/path] (http on this machine alone), without user, query and #');
}

function checkedFlags(value: unknown, allowRoot: boolean): Readonly<Record<string, readonly string[]>> {
  const field = 'claimFlags';
  if (!isJsonObject(value)) throw invalidField(field, 'expected an object of claim values to lists of flags');
  const entries = Object.entries(value);
  if (entries.length > mostValues) throw invalidField(field, `expected at most ${mostValues} values`);
  let count = 0;
  const checked = entries.map(([claim, flags]) => {
    if (claim === '' || claim.length > longestText) {
      throw invalidField(field, `a value has 1 to ${longestText} characters`);
    }
    if (!Array.isArray(flags) || flags.length === 0)
      throw invalidField(field, 'expected a list of flags for each value');
    count += flags.length;
    if (count > mostFlags) throw invalidField(field, `expected at most ${mostFlags} flags`);
    return [claim, flags.map((flag) => checkedFlag(flag, allowRoot))] as const;
  });
  return Object.fromEntries(checked);
}

function checkedFlag(flag: unknown, allowRoot: boolean): string {
  if (typeof flag !== 'string' || flag === '' || isLongFlag(flag)) {
    throw invalidField('claimFlags', `a flag name has 1 to ${maxFlagLength} characters`);
  }
  const lower = flag.toLowerCase();
  if (allowRoot || (lower !== '*' && !lower.startsWith('system.'))) return lower;
  throw invalidField(
    'claimFlags',
    `${lower} lets anybody who controls the provider do everything here: add --allow-root if that is meant`,
  );
}
