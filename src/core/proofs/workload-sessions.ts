// Workload sessions: a program logs in with a proof of its API key and gets a token that acts as that key. Session,
// proof and key are looked up in every request, so that whatever ends one of them ends the session.
import type { Answer } from '../../api/endpoints.ts';
import { hashSecret, isWellFormedToken, newToken } from '../../crypto/secrets.ts';
import { invalidField, KmsError } from '../../errors.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Tables } from '../../store/port.ts';
import type { CredentialRow } from '../../store/tables/api-keys.ts';
import type { KnownProof } from '../../store/tables/proofs.ts';
import type { WorkloadSession } from '../../store/tables/workload-sessions.ts';
import type { Caller, Context, PublicContext } from '../context.ts';
import { trustOf } from './proofs.ts';
import type { TokenVerdict, TokenVerifier } from './token-verifier.ts';
import type { Misfit, Trust } from './trust.ts';

/** Milliseconds for which an ended session is remembered, so that use of its token is recognized and recorded. */
const remembered = 86_400_000;
/** Sessions of one API key; one more erases the oldest. */
const mostSessions = 1000;
/** Expired rows purged with each new session: more than are added. */
const purgedAtOnce = 20;
/** Proofs that a token is compared with, if the login names none. */
const mostCompared = 20;

interface WorkloadLifetimes {
  /** Milliseconds from a login or renewal to the end of its lease. */
  readonly workload: number;
  /** Milliseconds from the login beyond which no renewal extends. */
  readonly session: number;
}

/** A workload token's session and API key. */
export interface KnownWorkload {
  readonly session: WorkloadSession;
  readonly key: CredentialRow;
  /** False if the session, its proof, or a certificate that it is bound to is gone. */
  readonly isGood: boolean;
}

/** Undefined for an unknown token. */
export function workloadOf(
  { workloadSessions, proofs, apiKeys }: Pick<Tables, 'workloadSessions' | 'proofs' | 'apiKeys'>,
  token: string,
  now: number,
  certificate?: string,
): KnownWorkload | undefined {
  if (!isWellFormedToken('workload', token)) return undefined;
  const session = workloadSessions.byTokenHash(hashSecret(token));
  const key = session && apiKeys.credentialById(session.apikeyId);
  if (!session || !key) return undefined;
  const proof = proofs.byId(session.proofId);
  const isOpen = session.endedAt === undefined && now < session.expiresAt;
  const isHeld = session.boundTo === undefined || session.boundTo === certificate;
  return { session, key, isGood: isOpen && isHeld && proof?.active === true };
}

/** A proof that a login may be by, with its trust. */
interface Candidate {
  readonly proof: KnownProof;
  readonly trust: Trust;
}

/** The API key that a login means, if it says so and there is one, and its proofs that may fit. */
export interface LoginAim {
  readonly keyid: string | undefined;
  readonly candidates: readonly Candidate[];
}

/**
 * The proofs that a login may be by. `role` is the id or name of an API key, or the id of a proof. Without it all
 * proofs that trust the issuer are compared, each of which decides for itself.
 */
export function aimOf(
  { apiKeys, proofs }: Pick<Tables, 'apiKeys' | 'proofs'>,
  role: string | undefined,
  issuer: string | undefined,
): LoginAim {
  if (role === undefined) {
    const found = issuer === undefined ? [] : proofs.activeBySubject('jwt', issuer, mostCompared + 1);
    if (found.length > mostCompared) throw invalidField('role', 'is required: several API keys trust this issuer');
    return { keyid: undefined, candidates: found.map(candidate) };
  }
  const named = proofs.byId(role);
  const [byName, ...others] = apiKeys.idsByName(role, 2);
  const keyid = named?.apikeyId ?? apiKeys.credentialById(role)?.id ?? (others.length === 0 ? byName : undefined);
  if (keyid === undefined) return { keyid, candidates: [] };
  const all = named ? [named] : proofs.ofKey(keyid);
  const open = all.filter(({ kind, active }) => kind === 'jwt' && active);
  return { keyid, candidates: open.map(candidate) };
}

function candidate(proof: KnownProof): Candidate {
  return { proof, trust: trustOf(proof) };
}

/** A token that fits a proof. */
interface ProvenToken {
  readonly proof: KnownProof;
  readonly trust: Trust;
  readonly claims: JsonObject;
}

export type TokenOutcome =
  | { readonly proven: ProvenToken }
  | { readonly proven?: undefined; readonly misfit: Misfit; readonly proof: KnownProof | undefined };

/**
 * Compares a token with each candidate. Of those that refuse it, the one that went furthest tells why. Rejects with
 * `unavailable` if keys of an issuer cannot be had, unless another proof fits.
 */
export async function compareToken(
  verifier: TokenVerifier,
  token: string,
  { candidates, keyid }: LoginAim,
  order: (misfit: Misfit) => number,
): Promise<TokenOutcome> {
  const fitting: ProvenToken[] = [];
  let nearest: { misfit: Misfit; proof: KnownProof } | undefined;
  let problem: unknown;
  for (const { proof, trust } of candidates) {
    let verdict: TokenVerdict;
    try {
      verdict = await verifier.verify(token, trust);
    } catch (error) {
      problem ??= error;
      continue;
    }
    if (!('misfit' in verdict)) fitting.push({ proof, trust, claims: verdict.claims });
    else if (!nearest || order(verdict.misfit) > order(nearest.misfit)) nearest = { misfit: verdict.misfit, proof };
    if (fitting.length > 0 && keyid !== undefined) break;
  }
  const [proven] = fitting;
  if (proven && new Set(fitting.map(({ proof }) => proof.apikeyId)).size > 1) {
    throw invalidField('role', 'is required: the token fits several API keys');
  }
  if (proven) return { proven };
  if (problem !== undefined) throw problem;
  return nearest ?? { misfit: unknownRole, proof: undefined };
}

const unknownRole: Misfit = { check: 'role', reason: 'no API key of that name or id trusts its issuer' };

interface Opening {
  readonly proof: KnownProof;
  readonly subject: string;
  readonly details: JsonObject;
  /** Hash of the public key of the certificate that it is bound to. */
  readonly boundTo?: string;
}

/** The session that a login opened. */
interface OpenedSession {
  readonly token: string;
  readonly session: WorkloadSession;
}

/** Throws `invalid` if the token was used before, or the key is not to be used now or from here. */
export function loginByToken(
  ctx: PublicContext,
  { proof, trust, claims }: ProvenToken,
  lifetimes: WorkloadLifetimes,
  isUsable: (key: CredentialRow) => boolean,
  seconds?: number,
): OpenedSession {
  const { tx } = ctx;
  const subject = typeof claims.sub === 'string' ? claims.sub.slice(0, 1024) : '';
  ctx.identify?.(proof.apikeyId, { proof: proof.id, subject });
  const key = tx.apiKeys.credentialById(proof.apikeyId);
  // Both were read before the transaction, and may be gone.
  if (!key || tx.proofs.byId(proof.id)?.active !== true || !isUsable(key)) {
    refuse(ctx, proof, subject, {
      check: 'api-key',
      reason: 'its API key is disabled, expired, or not for this address',
    });
  }
  if (trust.once) useOnce(ctx, proof, claims, subject);
  const workload = leaseOf(seconds, lifetimes);
  return openWorkloadSession(ctx, { proof, subject, details: {} }, { ...lifetimes, workload });
}

function useOnce(ctx: PublicContext, proof: KnownProof, { jti, exp }: JsonObject, subject: string): void {
  if (typeof jti !== 'string' || jti === '') {
    refuse(ctx, proof, subject, { check: 'once', claim: 'jti', reason: 'the claim jti is missing' });
  }
  // Longer than the verifier's tolerance after its expiry.
  const until = (typeof exp === 'number' ? exp : 0) * 1000 + 120_000;
  if (ctx.tx.workloadSessions.useOnce(proof.id, hashSecret(String(jti)), until)) return;
  refuse(ctx, proof, subject, { check: 'once', claim: 'jti', reason: 'it was used before' });
}

function refuse(ctx: PublicContext, proof: KnownProof, subject: string, misfit: Misfit): never {
  ctx.identify?.(proof.apikeyId, { proof: proof.id, subject, refusedBy: misfit.check });
  throw refusedToken(misfit);
}

/** The refusal of a token, with the check that refused it for programs. */
export function refusedToken({ check, claim, reason }: Misfit, role?: string): KmsError {
  const message = `the token was refused: ${reason}`;
  const body = { message, check, ...(claim !== undefined && { claim }), ...(role !== undefined && { role }) };
  return new KmsError('invalid', message, { body });
}

/** Opens a session of a proof that was checked. */
function openWorkloadSession(
  { tx, world }: Pick<PublicContext, 'tx' | 'world'>,
  { proof, subject, details, boundTo }: Opening,
  { workload, session: longest }: WorkloadLifetimes,
): OpenedSession {
  const now = world.now();
  const token = newToken('workload', world.random);
  const session = {
    tokenHash: hashSecret(token),
    id: world.newId('sess'),
    apikeyId: proof.apikeyId,
    proofId: proof.id,
    subject,
    boundTo,
    details,
    createdAt: now,
    expiresAt: now + workload,
    lastExpiry: now + Math.max(workload, longest),
    endedAt: undefined,
  };
  tx.workloadSessions.insert(session);
  tx.workloadSessions.keepNewest(proof.apikeyId, mostSessions);
  tx.workloadSessions.purge(now - remembered, purgedAtOnce);
  tx.proofs.noteUse(proof.id, now);
  tx.apiKeys.noteUse(proof.apikeyId, now);
  return { token, session };
}

/** The workload session of the caller. Throws `invalid` for any other credential. */
function ownWorkloadSession(tables: Pick<Tables, 'workloadSessions'>, { proof }: Caller): WorkloadSession {
  const session = proof?.session === undefined ? undefined : tables.workloadSessions.byTokenHash(proof.session);
  if (!session) throw new KmsError('invalid', 'expected a workload token, as a login with a proof gives it');
  return session;
}

export function readWorkloadSession({ tx, caller, world }: Context): Answer<'getWorkloadSession'> {
  return sessionAnswer(ownWorkloadSession(tx, caller), world.now());
}

/** A lease in milliseconds. */
function leaseOf(seconds: number | undefined, { workload }: WorkloadLifetimes): number {
  return seconds === undefined ? workload : Math.min(seconds * 1000, workload);
}

/** Extends the lease, from now on, within the longest time that the login allows. */
export function renewWorkloadSession(
  { tx, caller, world }: Context,
  { seconds, lifetimes }: { readonly seconds: number | undefined; readonly lifetimes: WorkloadLifetimes },
): Answer<'renewWorkloadSession'> {
  const session = ownWorkloadSession(tx, caller);
  const expiresAt = Math.min(world.now() + leaseOf(seconds, lifetimes), session.lastExpiry);
  tx.workloadSessions.extend(session.tokenHash, expiresAt);
  return sessionAnswer({ ...session, expiresAt }, world.now());
}

export function endWorkloadSession({ tx, caller, world }: Context): Record<string, never> {
  tx.workloadSessions.end(ownWorkloadSession(tx, caller).tokenHash, world.now());
  return {};
}

export function sessionAnswer(session: WorkloadSession, now: number): Answer<'getWorkloadSession'> {
  return {
    id: session.id,
    keyid: session.apikeyId,
    proof: session.proofId,
    subject: session.subject,
    createdAt: session.createdAt,
    expiresAt: session.expiresAt,
    expiresIn: Math.max(0, Math.floor((session.expiresAt - now) / 1000)),
    renewableUntil: session.lastExpiry,
  };
}
