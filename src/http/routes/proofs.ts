// Routes of proofs of API keys, and of the logins by them. Tokens are verified before the transaction, since their
// issuers' keys may have to be asked for.
import type { Answer, EndpointOf } from '../../api/endpoints.ts';
import type { proofEndpoints } from '../../api/proofs.ts';
import { findApiKey, letsIn } from '../../core/accounts.ts';
import type { PublicContext } from '../../core/context.ts';
import { isUsable } from '../../core/credential.ts';
import { compareCertificate, loginByCertificate } from '../../core/proofs/certificate-logins.ts';
import { isCovered } from '../../core/proofs/certificate-proofs.ts';
import { presentedKey } from '../../core/proofs/client-certificates.ts';
import { listProofs } from '../../core/proofs/proof-answers.ts';
import { addProof, removeProof, setProof } from '../../core/proofs/proofs.ts';
import { checkToken, type TokenVerdict } from '../../core/proofs/token-verifier.ts';
import {
  aimOf,
  checkedUse,
  compareToken,
  endWorkloadSession,
  type LoginAim,
  loginByToken,
  readWorkloadSession,
  refusedToken,
  renewWorkloadSession,
  sessionAnswer,
  type TokenOutcome,
} from '../../core/proofs/workload-sessions.ts';
import { invalidField, KmsError } from '../../errors.ts';
import { type Misfit, tokenChecks, trustOf } from '../../model/trust.ts';
import type { CredentialRow } from '../../store/tables/api-keys.ts';
import type { Input, RoutesOf } from '../route.ts';

export const proofRoutes: RoutesOf<(typeof proofEndpoints)[number]['id']> = {
  listProofs: (ctx, { params }) => listProofs(ctx, params),
  addProof: (ctx, { params, body, open, handle }) => {
    const made = addProof(ctx, { ...params, proof: body, verifier: open.people.tokens });
    // Those of other tenants are older than one that is new.
    const others = body.kind === 'certificate' && !made.renewed ? open.tenants.handles() : [];
    const isElsewhere = others.some(({ tenant, store }) => {
      if (tenant.id === handle.tenant.id) return false;
      return readOr(false, () => store.read((tables) => isCovered(tables, body)));
    });
    return isElsewhere ? { ...made, otherTenant: true } : made;
  },
  updateProof: (ctx, { params, body }) => setProof(ctx, params, body.active),
  removeProof: (ctx, { params }) => removeProof(ctx, params),
  testProof: {
    async prepare(input) {
      const { params, body, handle, open, appliance } = input;
      const { key, candidates } = await handle.store.transaction((tables) => ({
        key: findApiKey(tables, params.keyid),
        candidates: tables.proofs.ofKey(params.keyid).filter(({ kind }) => kind === 'jwt'),
      }));
      const verdicts = await Promise.all(
        candidates.map((proof) => checkToken(open.people.tokens, body.token, trustOf(proof)).catch(keysMisfit)),
      );
      const isInForce = letsIn(key, appliance.world.now());
      return () => ({
        proofs: candidates.map((proof, n) => {
          const verdict = verdicts[n];
          const misfit = verdict && 'misfit' in verdict ? verdict.misfit : undefined;
          const off = proof.active && isInForce ? undefined : offMisfit(proof.active);
          return { proof: proof.id, accepted: !misfit && !off, steps: stepsTo(misfit ?? off) };
        }),
      });
    },
  },
  workloadLogin: {
    async prepare(input) {
      const { body, open, appliance, handle } = input;
      const { lifetimes, workloads, tokens } = open.people;
      const { token, role } = body;
      if (body.certificate) {
        if (token !== undefined) throw invalidField('token', 'expected either a token or `certificate: true`');
        return certificateLogin(input);
      }
      if (token === undefined) throw invalidField('token', 'is required, or `certificate: true`');
      const origin = { tenant: handle.tenant.id, address: input.address };
      const isGood = (key: CredentialRow): boolean => isUsable(key, fromOf(input), appliance.world.now());
      let aim: LoginAim = { keyid: undefined, candidates: [], off: [] };
      const checked: TokenOutcome[] = [];
      const check = async (): Promise<TokenOutcome> => {
        const asked = { role, issuer: tokens.namedBy(token)?.issuer, now: appliance.world.now() };
        aim = await handle.store.transaction((tables) => aimOf(tables, asked));
        const compared = await compareToken(tokens, token, aim);
        const use = await handle.store.transaction((tables) => checkedUse(tables, compared, isGood));
        checked.push(use);
        return use;
      };
      const outcome = await workloads.attempt(origin, { token, role }, check).catch((error: unknown) => {
        throw withReason(error, checked[0]);
      });
      const isRecorded = !outcome.proven && workloads.isRecorded(origin, [aim.keyid, ...factsOf(outcome)]);
      return (ctx) => {
        if (!outcome.proven) throw refusal(ctx, outcome, isRecorded ? undefined : aim.keyid, role);
        const { token: accessToken, session } = loginByToken(ctx, outcome.proven, lifetimes, isGood, body.seconds);
        workloads.forgive(origin);
        return { accessToken, ...sessionAnswer(session, appliance.world.now()) };
      };
    },
  },
  getWorkloadSession: (ctx) => readWorkloadSession(ctx),
  renewWorkloadSession: (ctx, { body, open }) =>
    renewWorkloadSession(ctx, { seconds: body.seconds, lifetimes: open.people.lifetimes }),
  endWorkloadSession: (ctx) => endWorkloadSession(ctx),
};

/** A login that has to wait, with the reason for which its token was refused before. */
function withReason(error: unknown, outcome: TokenOutcome | undefined): unknown {
  if (!(error instanceof KmsError) || error.code !== 'rate-limited' || !outcome || outcome.proven) return error;
  const { message: logReason } = refusedToken(outcome.misfit);
  const { retryAfter } = error;
  return new KmsError('rate-limited', error.message, { logReason, ...(retryAfter !== undefined && { retryAfter }) });
}

/** The misfit of a token whose issuer's keys cannot be had now, with the reason, which a login does not tell. */
function keysMisfit(error: unknown): TokenVerdict {
  if (!(error instanceof KmsError) || error.code !== 'unavailable') throw error;
  return { misfit: { check: 'keys', reason: `they cannot be had now: ${error.logReason ?? error.message}` } };
}

/** The misfit of a token whose proof or key is off. */
function offMisfit(isProofOn: boolean): Misfit {
  return { check: 'api-key', reason: isProofOn ? 'the API key is disabled or expired' : 'the proof is disabled' };
}

/** Braked like logins by tokens, by the key of the certificate and the role. */
async function certificateLogin(input: Input<EndpointOf<'workloadLogin'>>): Promise<(ctx: PublicContext) => Login> {
  const { open, appliance, handle, certificate: presented } = input;
  const { role, seconds } = input.body;
  const { lifetimes, workloads } = open.people;
  const origin = { tenant: handle.tenant.id, address: input.address };
  const now = appliance.world.now();
  const isGood = (key: CredentialRow): boolean => isUsable(key, fromOf(input), now);
  const outcome = await workloads.attempt(origin, { token: presentedKey(presented) ?? '', role }, () =>
    handle.store.transaction((tables) => compareCertificate(tables, { presented, role }, isGood, now)),
  );
  const isRecorded = !outcome.proven && workloads.isRecorded(origin, [outcome.keyid, ...factsOf(outcome)]);
  return (ctx) => {
    const wanted = { presented, role, seconds, isRecorded };
    const { token, session } = loginByCertificate(ctx, wanted, lifetimes, isGood);
    workloads.forgive(origin);
    return { accessToken: token, ...sessionAnswer(session, now) };
  };
}

/** Facts of a refusal that strangers cannot vary: a subject is told by a signature that is right. */
function factsOf({ misfit, proof, subject }: RefusedFacts): readonly (string | undefined)[] {
  return [misfit.check, proof?.id, subject];
}

interface RefusedFacts {
  readonly misfit: { readonly check: string };
  readonly proof?: { readonly id: string } | undefined;
  readonly subject?: string | undefined;
}

type Login = Answer<'workloadLogin'>;

function fromOf({ isLocal, address }: { readonly isLocal: boolean; readonly address: string }) {
  return { remoteAddress: isLocal ? undefined : address, local: isLocal };
}

/** The checks that were passed, and the one that failed. */
function stepsTo(misfit: Misfit | undefined): { check: string; ok: boolean; reason?: string }[] {
  const all = tokenChecks.slice(tokenChecks.indexOf('issuer'), tokenChecks.indexOf('once'));
  if (!misfit) return all.map((check) => ({ check, ok: true }));
  // A token of another form may name no issuer.
  const before = misfit.check === 'form' ? [] : all.slice(0, all.indexOf(misfit.check));
  const passed = before.map((check) => ({ check, ok: true }));
  return [...passed, { check: misfit.check, ok: false, reason: misfit.reason }];
}

type Identify = Pick<PublicContext, 'identify'>;

/** Recorded under the API key that was meant; one that was refused just before is counted alone. */
function refusal(
  ctx: Identify,
  { misfit, proof, subject }: Exclude<TokenOutcome, { readonly proven: object }>,
  keyid: string | undefined,
  role: string | undefined,
): KmsError {
  const how = { refusedBy: misfit.check, ...(proof && { proof: proof.id }), ...(subject !== undefined && { subject }) };
  ctx.identify?.(keyid, how);
  return refusedToken(misfit, misfit.check === 'role' ? role : undefined);
}

/** The fallback while a store, of another tenant, cannot tell. */
function readOr<T>(fallback: T, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof KmsError && error.code === 'unavailable') return fallback;
    throw error;
  }
}
