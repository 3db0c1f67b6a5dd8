// Second factors beside the password. Apps that show codes (TOTP) and passkeys are added, confirmed, listed and removed
// by their user; recovery codes, made with the first factor, each replace a lost one once. A password login asks for
// one if the user has any. The tenant's policy says by permission flags which users must have one.
import type { Answer } from '../api/endpoints.ts';
import { fromBase32, toBase32 } from '../crypto/base32.ts';
import { fromBase64Url, toBase64Url } from '../crypto/bytes.ts';
import type { SentAssertion } from '../crypto/passkey.ts';
import { hashSecret } from '../crypto/secrets.ts';
import { isTotpCode, matchTotp, totpSecretLength, totpSecretText, totpUri } from '../crypto/totp.ts';
import { invalidField, KmsError } from '../errors.ts';
import type { ActivityDetails, ResourceRef } from '../model/activity-details.ts';
import { enrolFirst } from '../model/names.ts';
import { timestamp } from '../model/timestamp.ts';
import type { Store, Tables } from '../store/port.ts';
import type { SecondFactor, TotpData } from '../store/tables/second-factors.ts';
import { welcomeApprover } from './approvers.ts';
import type { Caller, Context, PublicContext, Tenant } from './context.ts';
import {
  newCreationOptions,
  type PasskeyPlace,
  secondFactorOptions,
  useChallenge,
  type VerifiedPasskey,
  type VerifiedUse,
  verifyPasskeyUse,
} from './passkeys.ts';
import { noteWayIn } from './persons.ts';
import { sessionOf } from './sessions.ts';
import { findUser, type UserRef, userThing } from './users.ts';

/** Maximum per user. */
const most = 20;
/** Milliseconds to confirm a new app. */
const confirmedWithin = 600_000;
const recoveryCodeCount = 10;
/** Bytes: 16 characters. */
const recoveryCodeLength = 10;

/** Whether the tenant requires a second factor for these flags: any part of a flag that the policy names is enough. */
function isNeeded({ secondFactorFor = [] }: Tenant, { flags }: Pick<Caller, 'flags'>): boolean {
  return secondFactorFor.some((flag) => flags.touches(flag));
}

/** Why a session may only manage its user's own login; undefined if it is not restricted. */
export function enrolmentRefusal(
  { secondFactors }: Pick<Tables, 'secondFactors'>,
  tenant: Tenant,
  caller: Caller,
): KmsError | undefined {
  if (!isNeeded(tenant, caller) || secondFactors.has(caller.id)) return undefined;
  return new KmsError('forbidden', enrolFirst);
}

/** Proof that the session is still used by its user. */
export type Proof =
  | { readonly is: 'password'; readonly passwordHash: string }
  | { readonly is: 'totp'; readonly factor: SecondFactor; readonly data: TotpData }
  | { readonly is: 'recovery-code'; readonly hash: string };

/** The proof that a code gives; undefined if it fits no factor. Changes nothing. */
export function checkCode(
  { secondFactors }: Pick<Tables, 'secondFactors'>,
  { userId, code, now }: { readonly userId: string; readonly code: string; readonly now: number },
): Proof | undefined {
  const typed = code.replace(/\s/g, '');
  if (isTotpCode(typed)) {
    for (const factor of secondFactors.of(userId)) {
      const data = factor.data.kind === 'totp' ? usedTotp(factor.data, typed, now) : undefined;
      if (data) return { is: 'totp', factor, data };
    }
    return undefined;
  }
  const bytes = fromBase32(typed, recoveryCodeLength);
  const hash = bytes && hashSecret(toBase32(bytes));
  return hash !== undefined && secondFactors.hasRecoveryCode(userId, hash) ? { is: 'recovery-code', hash } : undefined;
}

/** The app's data after the code is used. */
function usedTotp(data: TotpData, code: string, now: number): TotpData | undefined {
  const secret = fromBase64Url(data.secret);
  const lastStep = secret && matchTotp(secret, code, now, data.lastStep);
  return lastStep === undefined ? undefined : { ...data, lastStep };
}

type Used = Pick<PublicContext, 'tx' | 'world'>;

/**
 * Consumes the proof and returns what to record. Throws `invalid`, recorded as denied, if it is wrong, used or stale.
 */
function useProof({ tx, world }: Used, userId: string, proof: Proof | undefined): ActivityDetails {
  const { users, secondFactors } = tx;
  if (proof?.is === 'password' && users.passwordHash(userId) === proof.passwordHash) return {};
  if (proof?.is === 'recovery-code' && secondFactors.useRecoveryCode(userId, proof.hash)) {
    return { changed: ['recoveryCodes'] };
  }
  if (proof?.is === 'totp') return useTotp({ tx, world }, userId, proof);
  throw wrongProof();
}

function wrongProof(): KmsError {
  return new KmsError('invalid', 'the current password or the code is wrong', { denies: true });
}

/** The same for a code of an app. */
export function useTotp({ tx, world }: Used, userId: string, proof: Proof & { is: 'totp' }): ActivityDetails {
  const now = tx.secondFactors.byId(userId, proof.factor.id);
  if (now?.data.kind !== 'totp' || now.data.lastStep >= proof.data.lastStep) throw wrongProof();
  tx.secondFactors.noteUse(now.id, proof.data, world.now());
  return { objects: [factorThing(now)] };
}

/** Second factor presented at a login. */
interface Presented {
  readonly code?: string;
  readonly passkey?: SentAssertion;
}

/** Result of checking it. */
export type SecondStep =
  /** The user has no second factor. */
  | { readonly is: 'none' }
  | { readonly is: 'missing' | 'wrong'; readonly wanted: Wanted }
  | { readonly is: 'code'; readonly proof: Proof; readonly wanted: Wanted }
  | { readonly is: 'passkey'; readonly use: VerifiedUse; readonly wanted: Wanted };

interface Wanted {
  readonly secondFactor: ('totp' | 'passkey' | 'recovery-code')[];
  readonly passkeyOptions?: NonNullable<ReturnType<typeof secondFactorOptions>>;
}

/** Checks the presented factor, once the password was right. */
export async function lookAtSecondStep(
  store: Pick<Store, 'transaction'>,
  place: PasskeyPlace,
  userId: string,
  { code, passkey }: Presented,
): Promise<SecondStep> {
  const now = place.world.now();
  const { factors, codes, proof } = await store.transaction((tables) => ({
    factors: tables.secondFactors.of(userId),
    codes: tables.secondFactors.countRecoveryCodes(userId),
    proof: code === undefined ? undefined : checkCode(tables, { userId, code, now }),
  }));
  if (factors.length === 0) return { is: 'none' };
  const wanted = wantedOf(place, userId, factors, codes);
  if (proof) return { is: 'code', proof, wanted };
  if (passkey) {
    const factor = factors.find(({ credentialId }) => credentialId === passkey.id);
    try {
      const use = await verifyPasskeyUse(place, factor, { purpose: 'second-factor', userId }, passkey);
      return { is: 'passkey', use, wanted };
    } catch (error) {
      if (!(error instanceof KmsError) || error.code !== 'invalid') throw error;
      return { is: 'wrong', wanted };
    }
  }
  return { is: code === undefined ? 'missing' : 'wrong', wanted };
}

function wantedOf(place: PasskeyPlace, userId: string, factors: readonly SecondFactor[], codes: number): Wanted {
  const passkeyOptions = secondFactorOptions(place, userId, factors);
  const secondFactor: Wanted['secondFactor'] = [];
  if (factors.some(({ data }) => data.kind === 'totp')) secondFactor.push('totp');
  if (passkeyOptions) secondFactor.push('passkey');
  if (codes > 0) secondFactor.push('recovery-code');
  return { secondFactor, ...(passkeyOptions && { passkeyOptions }) };
}

/**
 * Completes a login whose password was right and returns what to record. If it cannot, throws `invalid` with the wanted
 * factors.
 */
export function takeSecondStep(ctx: Used, userId: string, step: SecondStep): ActivityDetails {
  if (step.is === 'none') {
    if (!ctx.tx.secondFactors.has(userId)) return {};
    // The factor was added in the meantime: the next try learns which kinds are wanted.
    throw new KmsError('invalid', 'a second factor is needed');
  }
  try {
    if (step.is === 'code') return useProof(ctx, userId, step.proof);
    if (step.is === 'passkey') return usePasskey(ctx, step.use);
  } catch (error) {
    if (!(error instanceof KmsError) || error.code !== 'invalid') throw error;
  }
  const message =
    step.is === 'missing' ? 'a second factor is needed' : 'the second factor is wrong, or was used before';
  throw new KmsError('invalid', message, { body: { message, ...step.wanted } });
}

/** The second factor that the step proves; a recovery code is none. */
export function factorIn(step: SecondStep): SecondFactor | undefined {
  if (step.is === 'passkey') return step.use.factor;
  return step.is === 'code' && step.proof.is === 'totp' ? step.proof.factor : undefined;
}

/**
 * Consumes the challenge, if it is one that is used up, and returns the passkey for the record. Throws `invalid`.
 */
export function usePasskey(
  { tx, world }: Used,
  { factor, data, challenge }: Omit<VerifiedUse, 'challenge'> & Partial<VerifiedUse>,
): ActivityDetails {
  const now = world.now();
  const known = tx.secondFactors.byId(factor.userId, factor.id);
  // Two concurrent uses with the same sign count: one is from a copied passkey (Web Authentication §6.1.1).
  const isCopy = known?.data.kind === 'passkey' && data.counter > 0 && data.counter <= known.data.counter;
  if (!known || isCopy) throw new KmsError('invalid', 'the passkey was not accepted');
  if (challenge) useChallenge(tx, challenge, now);
  tx.secondFactors.noteUse(factor.id, data, now);
  return { objects: [factorThing(factor)] };
}

type FactorAnswer = Answer<'listSecondFactors'>['secondFactors'][number];

function factorAnswer({ id, name, data, createdAt, usedAt }: SecondFactor): FactorAnswer {
  return { id, kind: data.kind, name, createdAt: timestamp(createdAt), lastUsedAt: usedAt ?? null };
}

function factorThing({ id, name, data }: Pick<SecondFactor, 'id' | 'name' | 'data'>): ResourceRef {
  return { type: 'second-factor', id, name: name || data.kind };
}

/** The caller's own, oldest first. */
export function listSecondFactors({ tx, tenant, caller }: Context): Answer<'listSecondFactors'> {
  sessionOf(caller);
  const factors = tx.secondFactors.of(caller.id);
  return {
    secondFactors: factors.map(factorAnswer),
    recoveryCodes: tx.secondFactors.countRecoveryCodes(caller.id),
    needed: isNeeded(tenant, caller),
  };
}

interface Proven {
  /** Undefined if the given proof was wrong. */
  readonly proof: Proof | undefined;
}

interface BeginTotpInput extends Proven {
  readonly name: string;
  /** Name of the service shown in the app. */
  readonly issuer: string;
}

/** Makes the secret of an app, returned only here; it counts once a code confirmed it. */
export function beginTotp(ctx: Context, { name, issuer, proof }: BeginTotpInput): Answer<'beginTotp'> {
  const { tx, world, caller } = ctx;
  sessionOf(caller);
  useProof(ctx, caller.id, proof);
  needRoomForOne(tx, caller.id);
  tx.secondFactors.erasePendingOf(caller.id);
  const user = findUser(tx, { text: caller.id, is: 'id' });
  const secret = world.random(totpSecretLength);
  const id = world.newId('fact');
  tx.secondFactors.insert({
    id,
    userId: user.id,
    name,
    data: { kind: 'totp', secret: toBase64Url(secret), lastStep: -1 },
    credentialId: undefined,
    isPending: true,
    createdAt: world.now(),
  });
  return { id, secret: totpSecretText(secret), uri: totpUri(secret, { issuer, account: user.username }) };
}

/** Confirms an app by one of its codes. */
export function finishTotp(
  ctx: Context,
  { id, code }: { readonly id: string; readonly code: string },
): Answer<'finishTotp'> {
  const { tx, world, caller } = ctx;
  sessionOf(caller);
  const now = world.now();
  const factor = tx.secondFactors.byId(caller.id, id);
  if (factor?.data.kind !== 'totp' || !factor.isPending || now >= factor.createdAt + confirmedWithin) {
    throw new KmsError('not-found', 'there is no app to confirm under this id, or no longer');
  }
  const data = usedTotp(factor.data, code.replace(/\s/g, ''), now);
  if (!data) throw invalidField('code', 'is not the one that the app shows now');
  tx.secondFactors.noteUse(id, data, now);
  return added(ctx, { ...factor, data, usedAt: now });
}

interface BeginPasskeyInput extends Proven {
  readonly origin: string;
}

/** Browser options to make a passkey. */
export function beginPasskey(ctx: Context, { origin, proof }: BeginPasskeyInput): Answer<'beginPasskey'> {
  const { tx, tenant, world, caller } = ctx;
  sessionOf(caller);
  useProof(ctx, caller.id, proof);
  needRoomForOne(tx, caller.id);
  const { id, username: name, displayName } = findUser(tx, { text: caller.id, is: 'id' });
  return newCreationOptions({ tenant, world, origin }, { id, name, displayName }, tx.secondFactors.of(id));
}

interface FinishPasskeyInput {
  readonly name: string;
  readonly transports: readonly string[];
  readonly verified: VerifiedPasskey;
}

export function finishPasskey(
  ctx: Context,
  { name, transports, verified: { passkey, rpId, challenge } }: FinishPasskeyInput,
): Answer<'finishPasskey'> {
  const { tx, world, caller } = ctx;
  const { credentialId, publicKey, counter } = passkey;
  const now = world.now();
  needRoomForOne(tx, caller.id);
  useChallenge(tx, challenge, now);
  if (tx.secondFactors.byCredentialId(credentialId)) {
    throw new KmsError('conflict', 'this passkey is known already');
  }
  const factor: SecondFactor = {
    id: world.newId('fact'),
    userId: caller.id,
    name,
    data: { kind: 'passkey', publicKey, counter, transports, rpId },
    credentialId,
    isPending: false,
    createdAt: now,
    usedAt: undefined,
  };
  tx.secondFactors.insert(factor);
  return added(ctx, factor);
}

/**
 * Records the new factor, and makes recovery codes if there are none. The first factor ends the user's other sessions:
 * they were opened without one, perhaps by the attacker who made it necessary.
 */
function added(ctx: Context, factor: SecondFactor): Answer<'finishTotp'> {
  const { tx, world, caller } = ctx;
  if (tx.secondFactors.of(caller.id).length === 1) {
    tx.sessions.endAllOf(caller.id, world.now(), sessionOf(caller));
  }
  welcomeApprover(ctx, caller.id);
  const secondFactor = factorAnswer(factor);
  if (tx.secondFactors.countRecoveryCodes(caller.id) > 0) {
    ctx.note({ object: factorThing(factor) });
    return { secondFactor };
  }
  ctx.note({ object: factorThing(factor), changed: ['recoveryCodes'] });
  return { secondFactor, recoveryCodes: replaceCodes(ctx) };
}

function replaceCodes({ tx, world, caller }: Context): string[] {
  const codes = Array.from({ length: recoveryCodeCount }, () => toBase32(world.random(recoveryCodeLength)));
  tx.secondFactors.replaceRecoveryCodes(caller.id, codes.map(hashSecret));
  return codes;
}

function needRoomForOne({ secondFactors }: Tables, userId: string): void {
  if (secondFactors.of(userId).length < most) return;
  throw new KmsError('conflict', `there are ${most} second factors already: remove one first`);
}

/** Removes one of the caller's own. Recovery codes go with the last one. */
export function removeSecondFactor(
  ctx: Context,
  { id, proof }: Proven & { readonly id: string },
): Record<string, never> {
  const { tx, tenant, caller } = ctx;
  sessionOf(caller);
  useProof(ctx, caller.id, proof);
  const factors = tx.secondFactors.of(caller.id);
  const factor = factors.find((each) => each.id === id);
  if (!factor) throw new KmsError('not-found', 'there is no such second factor');
  const isLast = factors.length === 1;
  if (isLast && isNeeded(tenant, caller)) {
    throw new KmsError('conflict', 'you need a second factor here: add another one first');
  }
  tx.secondFactors.erase(id);
  if (isLast) tx.secondFactors.replaceRecoveryCodes(caller.id, []);
  ctx.note({ object: factorThing(factor), ...(isLast && { changed: ['recoveryCodes'] }) });
  return {};
}

/** New recovery codes that replace the old ones, returned only here. */
export function renewRecoveryCodes(ctx: Context, { proof }: Proven): Answer<'renewRecoveryCodes'> {
  const { tx, caller } = ctx;
  sessionOf(caller);
  useProof(ctx, caller.id, proof);
  if (!tx.secondFactors.has(caller.id)) {
    throw new KmsError('conflict', 'there is no second factor for them to stand in for');
  }
  const user = findUser(tx, { text: caller.id, is: 'id' });
  ctx.note({ object: userThing(user), changed: ['recoveryCodes'] });
  return { recoveryCodes: replaceCodes(ctx) };
}

/** For a user who lost all of them: the next login needs only the password. The sessions end. */
export function resetSecondFactor(
  ctx: Omit<Context, 'handsOut' | 'did' | 'touches'>,
  input: { readonly user: UserRef },
): { readonly username: string; readonly removed: number } {
  const { tx, world } = ctx;
  const user = findUser(tx, input.user);
  const removed = tx.secondFactors.eraseAllOf(user.id);
  tx.sessions.endAllOf(user.id, world.now());
  noteWayIn(ctx, user.id);
  ctx.note({ object: userThing(user), changed: ['secondFactors', 'recoveryCodes'] });
  return { username: user.username, removed };
}
