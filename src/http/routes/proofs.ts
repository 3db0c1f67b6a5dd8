// Routes of proofs of API keys, and of the logins by them. Tokens are verified before the transaction, since their
// issuers' keys may have to be asked for.
import type { Answer } from '../../api/endpoints.ts';
import type { proofEndpoints } from '../../api/proofs.ts';
import { isUsable } from '../../core/credential.ts';
import { addProof, findApiKey, listProofs, removeProof, setProof, trustOf } from '../../core/proofs/proofs.ts';
import { type Misfit, tokenChecks } from '../../core/proofs/trust.ts';
import {
  aimOf,
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
import { KmsError } from '../../errors.ts';
import type { CredentialRow } from '../../store/tables/api-keys.ts';
import type { RequestScope, RoutesOf } from '../route.ts';

export const proofRoutes: RoutesOf<(typeof proofEndpoints)[number]['id']> = {
  listProofs: (ctx, { params }) => listProofs(ctx, params),
  addProof: (ctx, { params, body, open }) => addProof(ctx, { ...params, proof: body, verifier: open.people.tokens }),
  updateProof: (ctx, { params, body }) => setProof(ctx, params, body.active),
  removeProof: (ctx, { params }) => removeProof(ctx, params),
  testProof: {
    async prepare({ params, body, handle, open }) {
      const candidates = await handle.store.transaction((tables) =>
        tables.proofs.ofKey(findApiKey(tables, params.keyid).id).filter(({ kind }) => kind === 'jwt'),
      );
      const tested: Answer<'testProof'>['proofs'] = [];
      for (const proof of candidates) {
        const verdict = await open.people.tokens.verify(body.token, trustOf(proof));
        const misfit = 'misfit' in verdict ? verdict.misfit : undefined;
        tested.push({ proof: proof.id, accepted: misfit === undefined && proof.active, steps: stepsTo(misfit) });
      }
      return () => ({ proofs: tested });
    },
  },
  workloadLogin: {
    async prepare(input) {
      const { body, open, appliance, handle } = input;
      const { lifetimes, workloads } = open.people;
      const outcome = await workloads.attempt(originOf(input), body.token, async () => {
        const aim = await handle.store.transaction((tables) =>
          aimOf(tables, body.role, open.people.tokens.issuerOf(body.token)),
        );
        return { aim, told: await compareToken(open.people.tokens, body.token, aim, rankOf) };
      });
      return (ctx) => {
        const { proven } = outcome.told;
        if (!proven) throw refusal(ctx, outcome.aim, outcome.told, body.role);
        const from = { remoteAddress: input.isLocal ? undefined : input.address, local: input.isLocal };
        const isGood = (key: CredentialRow): boolean => isUsable(key, from, appliance.world.now());
        const { token, session } = loginByToken(ctx, proven, lifetimes, isGood, body.seconds);
        return { accessToken: token, ...sessionAnswer(session, appliance.world.now()) };
      };
    },
  },
  getWorkloadSession: (ctx) => readWorkloadSession(ctx),
  renewWorkloadSession: (ctx, { body, open }) =>
    renewWorkloadSession(ctx, { seconds: body.seconds, lifetimes: open.people.lifetimes }),
  endWorkloadSession: (ctx) => endWorkloadSession(ctx),
};

function originOf({ handle, address }: RequestScope & { readonly address: string }): {
  readonly tenant: string;
  readonly address: string;
} {
  return { tenant: handle.tenant.id, address };
}

/** How far a token got. */
function rankOf({ check }: Misfit): number {
  return tokenChecks.indexOf(check);
}

/** The checks that were passed, and the one that failed. */
function stepsTo(misfit: Misfit | undefined): { check: string; ok: boolean; reason?: string }[] {
  const verified = tokenChecks.slice(tokenChecks.indexOf('form'), tokenChecks.indexOf('api-key'));
  if (!misfit) return verified.map((check) => ({ check, ok: true }));
  const passed = verified.slice(0, verified.indexOf(misfit.check)).map((check) => ({ check, ok: true }));
  return [...passed, { check: misfit.check, ok: false, reason: misfit.reason }];
}

/** Recorded under the API key that was meant, if the login named one. */
function refusal(
  ctx: { identify?: ((id: string | undefined, how?: { proof?: string; refusedBy?: string }) => void) | undefined },
  { keyid }: LoginAim,
  told: TokenOutcome,
  role: string | undefined,
): KmsError {
  if (told.proven) throw new KmsError('internal', 'a token that fits is not refused');
  const { misfit, proof } = told;
  ctx.identify?.(keyid ?? proof?.apikeyId, { refusedBy: misfit.check, ...(proof && { proof: proof.id }) });
  return refusedToken(misfit, misfit.check === 'role' ? role : undefined);
}
