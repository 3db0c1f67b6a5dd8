// Workload sessions: a program logs in with a proof of its API key and gets a token that acts as that key. Session,
// proof and key are looked up in every request, so that whatever ends one of them ends the session.
import type { Answer } from '../../api/endpoints.ts';
import { hashSecret, isWellFormedToken, newToken } from '../../crypto/secrets.ts';
import { invalidField, KmsError } from '../../errors.ts';
import type { JsonObject } from '../../model/json.ts';
import { type Misfit, type Trust, tokenChecks, trustOf } from '../../model/trust.ts';
import type { Tables } from '../../store/port.ts';
import type { CredentialRow } from '../../store/tables/api-keys.ts';
import type { KnownProof } from '../../store/tables/proofs.ts';
import type { WorkloadSession } from '../../store/tables/workload-sessions.ts';
import { letsIn } from '../accounts.ts';
import type { Caller, Context, PublicContext } from '../context.ts';
import { fitOf, holdsNow, type PresentedCertificate, presentedKey } from './client-certificates.ts';
import { checkToken, type TokenVerifier } from './token-verifier.ts';

/** Milliseconds for which an ended session is remembered, so that use of its token is recognized and recorded. */
const remembered = 86_400_000;
/** Open sessions of one API key, of which one more erases the oldest; and as many that have ended. */
const mostSessions = 1000;
/** Expired rows purged with each new session: more than are added. */
const purgedAtOnce = 20;
/** Proofs that a token is compared with, if the login names none. */
const mostCompared = 20;

export interface WorkloadLifetimes {
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
  certificate?: PresentedCertificate,
): KnownWorkload | undefined {
  if (!isWellFormedToken('workload', token)) return undefined;
  const session = workloadSessions.byTokenHash(hashSecret(token));
  const key = session && apiKeys.credentialById(session.apikeyId);
  if (!session || !key) return undefined;
  const proof = proofs.byId(session.proofId);
  const isOpen = session.endedAt === undefined && now < session.expiresAt;
  return { session, key, isGood: isOpen && proof?.active === true && isHeld(session, proof, certificate, now) };
}

/** Whether a request may use the session by its certificate, which must still be a proof if the login was by one. */
function isHeld(
  { boundTo }: WorkloadSession,
  proof: KnownProof,
  certificate: PresentedCertificate | undefined,
  now: number,
): boolean {
  if (boundTo === undefined) return true;
  if (!certificate || boundTo !== presentedKey(certificate)) return false;
  const fit = fitOf(proof, certificate);
  return fit !== undefined && holdsNow(fit, now);
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
  /** Proofs of that key which are switched off: they tell why a token that fits one is refused. */
  readonly off: readonly Candidate[];
}

/**
 * The proofs that a login may be by. `role` is the id or name of an API key, or the id of a proof. Without it all
 * proofs that trust the issuer are compared, each of which decides for itself; those of keys that cannot be used are
 * left out.
 */
export function aimOf(
  { apiKeys, proofs }: Pick<Tables, 'apiKeys' | 'proofs'>,
  {
    role,
    issuer,
    now,
  }: { readonly role: string | undefined; readonly issuer: string | undefined; readonly now: number },
): LoginAim {
  if (role === undefined) {
    const found = issuer === undefined ? [] : proofs.activeBySubject('jwt', issuer, mostCompared + 1);
    if (found.length > mostCompared) throw invalidField('role', 'is required: several API keys trust this issuer');
    const isInUse = ({ apikeyId }: KnownProof): boolean => {
      const key = apiKeys.credentialById(apikeyId);
      return key !== undefined && letsIn(key, now);
    };
    return { keyid: undefined, candidates: found.filter(isInUse).map(candidate), off: [] };
  }
  const { keyid, proofs: all } = proofsOfRole({ apiKeys, proofs }, role, 'jwt', now);
  const isOn = ({ active }: KnownProof): boolean => active;
  const off = all.filter((proof) => !isOn(proof)).map(candidate);
  return { keyid, candidates: all.filter(isOn).map(candidate), off };
}

/** The API key that a role means, and its proofs of a kind. */
export interface MeantProofs {
  readonly keyid: string | undefined;
  readonly proofs: readonly KnownProof[];
}

/**
 * The API key of a role and its proofs of a kind, or the one proof that it names. A name is that of the key that can be
 * used; if none can, that of the last one, so that its login is refused for what is wrong with it.
 */
export function proofsOfRole(
  { apiKeys, proofs }: Pick<Tables, 'apiKeys' | 'proofs'>,
  role: string,
  kind: KnownProof['kind'],
  now: number,
): MeantProofs {
  const named = proofs.byId(role);
  const byId = named?.apikeyId ?? apiKeys.credentialById(role)?.id;
  const [byName, ...others] = byId === undefined ? apiKeys.idsToLogInByName(role, kind, now, 2) : [];
  if (others.length > 0) throw invalidField('role', 'is the name of several API keys: give the id of one');
  const keyid = byId ?? byName ?? apiKeys.lastIdByName(role, kind);
  if (keyid === undefined) return { keyid, proofs: [] };
  const all = named ? [named] : proofs.ofKey(keyid);
  return { keyid, proofs: all.filter((proof) => proof.kind === kind) };
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

interface RefusedLogin {
  readonly proven?: undefined;
  readonly misfit: Misfit;
  readonly proof: KnownProof | undefined;
  /** The subject of a token whose signature is right. */
  readonly subject: string | undefined;
}

export type TokenOutcome = { readonly proven: ProvenToken } | RefusedLogin;

/**
 * Compares a token with all candidates. Of those that refuse it, the one that went furthest tells why. Rejects with
 * `unavailable` if the keys of an issuer cannot be had and no other proof tells more.
 */
export async function compareToken(verifier: TokenVerifier, token: string, aim: LoginAim): Promise<TokenOutcome> {
  const outcome = await compareWith(verifier, token, aim);
  return outcome.proven ? outcome : ((await switchedOff(verifier, token, aim)) ?? outcome);
}

/** The refusal of a token that fits a proof which is switched off. It is verified like others before it is told so. */
async function switchedOff(
  verifier: TokenVerifier,
  token: string,
  { off }: LoginAim,
): Promise<RefusedLogin | undefined> {
  const checked = await Promise.allSettled(off.map(({ trust }) => checkToken(verifier, token, trust)));
  for (const [n, each] of checked.entries()) {
    const proof = off[n]?.proof;
    if (!proof || each.status === 'rejected' || 'misfit' in each.value) continue;
    const misfit: Misfit = { check: 'api-key', reason: 'its proof is switched off' };
    return { misfit, proof, subject: subjectIn(each.value.claims) };
  }
  return undefined;
}

async function compareWith(
  verifier: TokenVerifier,
  token: string,
  { candidates, keyid }: LoginAim,
): Promise<TokenOutcome> {
  const checked = await Promise.allSettled(candidates.map(({ trust }) => checkToken(verifier, token, trust)));
  const fitting: ProvenToken[] = [];
  let nearest: RefusedLogin | undefined;
  let problem: unknown;
  for (const [n, each] of checked.entries()) {
    const candidate = candidates[n];
    if (!candidate) continue;
    const { proof, trust } = candidate;
    if (each.status === 'rejected') problem ??= each.reason;
    else if (!('misfit' in each.value)) fitting.push({ proof, trust, claims: each.value.claims });
    else {
      const { misfit, claims } = each.value;
      if (!nearest || rankOf(misfit) > rankOf(nearest.misfit)) nearest = { misfit, proof, subject: subjectIn(claims) };
    }
  }
  const [proven] = fitting;
  if (proven && keyid === undefined && new Set(fitting.map(({ proof }) => proof.apikeyId)).size > 1) {
    throw invalidField('role', 'is required: the token fits several API keys');
  }
  if (proven) return { proven };
  if (problem !== undefined && (!nearest || rankOf(nearest.misfit) < rankOf({ check: 'audience', reason: '' }))) {
    throw problem;
  }
  return nearest ?? { misfit: unknownRole, proof: undefined, subject: undefined };
}

/** How far a token got. */
function rankOf({ check }: Misfit): number {
  return tokenChecks.indexOf(check);
}

function subjectIn(claims: JsonObject | undefined): string | undefined {
  return typeof claims?.sub === 'string' ? claims.sub.slice(0, longestSubject) : undefined;
}

/** Characters of a subject that are kept. */
const longestSubject = 1024;

/** The outcome, with a fitting token refused if its key cannot be used, or if it was used up. */
export function checkedUse(
  tables: Pick<Tables, 'apiKeys' | 'workloadSessions'>,
  outcome: TokenOutcome,
  isUsable: (key: CredentialRow) => boolean,
): TokenOutcome {
  if (!outcome.proven) return outcome;
  const { proof, claims } = outcome.proven;
  const misfit = misuseOf(tables, outcome.proven, isUsable);
  return misfit ? { misfit, proof, subject: subjectIn(claims) } : outcome;
}

function misuseOf(
  { apiKeys, workloadSessions }: Pick<Tables, 'apiKeys' | 'workloadSessions'>,
  { proof, trust, claims }: ProvenToken,
  isUsable: (key: CredentialRow) => boolean,
): Misfit | undefined {
  const key = apiKeys.credentialById(proof.apikeyId);
  if (!key || !isUsable(key)) {
    return { check: 'api-key', reason: 'its API key is disabled, expired, or not for this address' };
  }
  if (!trust.once) return undefined;
  const { jti } = claims;
  if (typeof jti !== 'string' || jti === '') return { check: 'once', claim: 'jti', reason: 'the claim jti is missing' };
  if (!workloadSessions.isUsed(trust.issuer, hashSecret(jti))) return undefined;
  return { check: 'once', claim: 'jti', reason: 'it was used before' };
}

const unknownRole: Misfit = { check: 'role', reason: 'no active API key of that name or id trusts its issuer' };

interface Opening {
  readonly proof: KnownProof;
  readonly subject: string;
  readonly details: JsonObject;
  /** Hash of the public key of the certificate that it is bound to. */
  readonly boundTo?: string;
}

/** The session that a login opened. */
export interface OpenedSession {
  readonly token: string;
  readonly session: WorkloadSession;
}

/** Throws `invalid` if the token was used before, or the key is not to be used now or from here. */
export function loginByToken(
  ctx: PublicContext,
  proven: ProvenToken,
  lifetimes: WorkloadLifetimes,
  isUsable: (key: CredentialRow) => boolean,
  seconds?: number,
): OpenedSession {
  const { tx } = ctx;
  const { proof, trust, claims } = proven;
  const subject = subjectIn(claims) ?? '';
  // Both were read before the transaction, and may be gone.
  const isGone = tx.proofs.byId(proof.id)?.active !== true;
  const misfit = isGone ? ({ check: 'api-key', reason: 'its proof is gone' } as const) : misuseOf(tx, proven, isUsable);
  const refusedBy = misfit && { refusedBy: misfit.check };
  ctx.identify?.(proof.apikeyId, { proof: proof.id, subject, ...refusedBy });
  if (misfit) throw refusedToken(misfit);
  const { jti, exp } = claims;
  // Longer than the verifier's tolerance after its expiry.
  const until = Math.ceil((typeof exp === 'number' ? exp : 0) * 1000) + 120_000;
  if (trust.once) tx.workloadSessions.useOnce(trust.issuer, hashSecret(String(jti)), until);
  const workload = leaseOf(seconds, lifetimes);
  return openWorkloadSession(ctx, { proof, subject, details: {} }, { ...lifetimes, workload });
}

/** The refusal of a token, with the check that refused it for programs. */
export function refusedToken({ check, claim, reason }: Misfit, role?: string): KmsError {
  const message = `the token was refused: ${reason}`;
  const body = { message, check, ...(claim !== undefined && { claim }), ...(role !== undefined && { role }) };
  return new KmsError('invalid', message, { body });
}

/** Opens a session of a proof that was checked. */
export function openWorkloadSession(
  { tx, world }: Pick<PublicContext, 'tx' | 'world'>,
  { proof, subject, details, boundTo }: Opening,
  { workload, session: longest }: WorkloadLifetimes,
): OpenedSession {
  const now = world.now();
  const token = newToken('workload', world.random);
  const ends = tx.apiKeys.credentialById(proof.apikeyId)?.expiresAt ?? Number.POSITIVE_INFINITY;
  const session = {
    tokenHash: hashSecret(token),
    id: world.newId('sess'),
    apikeyId: proof.apikeyId,
    proofId: proof.id,
    subject,
    boundTo,
    details,
    createdAt: now,
    expiresAt: Math.min(now + workload, ends),
    lastExpiry: Math.min(now + Math.max(workload, longest), ends),
    endedAt: undefined,
  };
  tx.workloadSessions.insert(session);
  tx.workloadSessions.keepNewest(proof.apikeyId, mostSessions, now);
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
export function leaseOf(seconds: number | undefined, { workload }: WorkloadLifetimes): number {
  return seconds === undefined ? workload : Math.min(seconds * 1000, workload);
}

/** Extends the lease, from now on, within the longest time that the login allows. */
export function renewWorkloadSession(
  { tx, caller, world }: Context,
  { seconds, lifetimes }: { readonly seconds: number | undefined; readonly lifetimes: WorkloadLifetimes },
): Answer<'renewWorkloadSession'> {
  const session = ownWorkloadSession(tx, caller);
  const ends = tx.apiKeys.credentialById(session.apikeyId)?.expiresAt ?? session.lastExpiry;
  const expiresAt = Math.min(world.now() + leaseOf(seconds, lifetimes), session.lastExpiry, ends);
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
    // Cast: the login wrote it.
    ...(session.details.certificate !== undefined && {
      certificate: session.details.certificate as NonNullable<Answer<'getWorkloadSession'>['certificate']>,
    }),
  };
}
