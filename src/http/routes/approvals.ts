// Routes of approvals. A second factor that comes with a word is checked before the transaction, with backoff after
// failures; it is consumed inside.
import type { approvalEndpoints } from '../../api/approvals.ts';
import type { EndpointOf, QueryOf } from '../../api/endpoints.ts';
import {
  createApprovalRule,
  deleteApprovalRule,
  getApprovalRule,
  listApprovalPresets,
  listApprovalRules,
  updateApprovalRule,
} from '../../core/approval-rules.ts';
import { signedChallenge } from '../../core/approval-statement.ts';
import { freshFactor, type ProvenFactor } from '../../core/approval-words.ts';
import {
  acknowledgeBrokenGlass,
  breakGlass,
  findKnown,
  getApprovalRequest,
  giveWord,
  listApprovalRequests,
  listBrokenGlass,
  withdrawRequest,
} from '../../core/approvals.ts';
import type { Caller, Context } from '../../core/context.ts';
import { openCursor, sealCursor } from '../../core/cursors.ts';
import { approvalOptions, type PasskeyPlace, verifyApproval } from '../../core/passkeys.ts';
import { checkCode, type Proof, usePasskey, useTotp } from '../../core/second-factors.ts';
import { sessionOf } from '../../core/sessions.ts';
import { invalidField, KmsError } from '../../errors.ts';
import type { Verdict } from '../../model/approval-rules.ts';
import { tell } from '../approval-notices.ts';
import type { Input, RoutesOf } from '../route.ts';
import { atPace, placeOf, triedAs } from './second-factors.ts';

export const approvalRoutes: RoutesOf<(typeof approvalEndpoints)[number]['id']> = {
  createApprovalRule: (ctx, { body }) => createApprovalRule(ctx, body),
  listApprovalRules: (ctx) => listApprovalRules(ctx),
  getApprovalRule: (ctx, { params }) => getApprovalRule(ctx, params),
  updateApprovalRule: (ctx, { params, body }) => updateApprovalRule(ctx, { id: params.id, changes: body }),
  deleteApprovalRule: (ctx, { params }) => deleteApprovalRule(ctx, params),
  listApprovalPresets: () => listApprovalPresets(),
  listApprovalRequests: {
    slices: (ctx, { query }) => pageOfRequests(ctx, query),
  },
  getApprovalRequest: (ctx, { params }) => getApprovalRequest(ctx, params),
  getApprovalOptions: (ctx, input) => optionsFor(ctx, placeOf(input), input.params.id, input.query.verdict),
  approveRequest: {
    async prepare(input, caller) {
      const given = await look(input, caller, { ...input.params, verdict: 'approve' }, input.body);
      const { reason } = input.body;
      return (ctx) => giveWord(ctx, { ...input.params, verdict: 'approve', reason, factor: use(ctx, given) });
    },
  },
  denyRequest: {
    async prepare(input, caller) {
      const given = await look(input, caller, { ...input.params, verdict: 'deny' }, input.body);
      const { reason } = input.body;
      return (ctx) => giveWord(ctx, { ...input.params, verdict: 'deny', reason, factor: use(ctx, given) });
    },
  },
  withdrawRequest: (ctx, { params }) => withdrawRequest(ctx, params),
  breakGlass: {
    async prepare(input, caller) {
      const given = await look(input, caller, { ...input.params, verdict: 'break-glass' }, input.body);
      const { reason } = input.body;
      return (ctx) => {
        const answer = breakGlass(ctx, { ...input.params, reason, factor: use(ctx, given) });
        const [latest] = ctx.tx.brokenGlass.list(1);
        if (latest) ctx.afterCommit(async () => tell(input, { kind: 'glass', id: latest.id }));
        return answer;
      };
    },
  },
  listBrokenGlass: (ctx) => listBrokenGlass(ctx),
  acknowledgeBrokenGlass: (ctx, { params }) => acknowledgeBrokenGlass(ctx, params),
};

function optionsFor(ctx: Context, place: PasskeyPlace, id: string, verdict: Verdict = 'approve') {
  findKnown(ctx, id);
  const { digest = '' } = ctx.tx.approvalRequests.detailsOf(id) ?? {};
  sessionOf(ctx.caller);
  const factors = ctx.tx.secondFactors.of(ctx.caller.id);
  const passkeyOptions = approvalOptions(place, signedChallenge(verdict, digest), factors);
  const kinds = new Set(factors.map(({ data }) => data.kind));
  return {
    fresh: freshFactor(ctx) !== undefined,
    secondFactor: [...kinds],
    ...(passkeyOptions && { passkeyOptions }),
  };
}

type SentAssertion = Parameters<typeof verifyApproval>[3];

interface Given {
  readonly code?: string;
  readonly passkey?: SentAssertion;
}

/** A second factor that came with a word, looked at. `none`: none came. */
type Looked =
  | { readonly is: 'none' | 'wrong' }
  | { readonly is: 'code'; readonly proof: Proof & { is: 'totp' } }
  | ({ readonly is: 'passkey' } & Awaited<ReturnType<typeof verifyApproval>>);

type RequestQuery = QueryOf<EndpointOf<'listApprovalRequests'>>;

function* pageOfRequests(ctx: Context, { cursor, ...filters }: RequestQuery) {
  const { tenant, world } = ctx;
  const { state, requester, mine, inbox } = filters;
  const scope = [tenant.id, 'listApprovalRequests', filters];
  const after = cursor === undefined ? undefined : openCursor(tenant.keys, scope, cursor);
  if (cursor !== undefined && after === undefined) {
    throw invalidField('cursor', 'is not one that this list gave out for these filters');
  }
  const given = { ...(state && { state }), ...(requester && { requester }), ...(after !== undefined && { after }) };
  const page = { ...given, mine: mine === 'true', inbox: inbox === 'true' };
  const { requests, next } = yield* listApprovalRequests(ctx, page);
  return { requests, ...(next !== undefined && { nextCursor: sealCursor(tenant.keys, scope, next, world) }) };
}

/** The word that a factor is for. */
interface Subject {
  readonly id: string;
  readonly verdict: Verdict;
}

/** Looks at what came, without consuming it. */
async function look(input: Input<unknown>, caller: Caller, word: Subject, { code, passkey }: Given): Promise<Looked> {
  if (code === undefined && passkey === undefined) return { is: 'none' };
  sessionOf(caller);
  const { handle, appliance } = input;
  const now = appliance.world.now();
  const byCode = (): Promise<Looked> =>
    handle.store.transaction((tables) => {
      const proof = checkCode(tables, { userId: caller.id, code: code ?? '', now });
      return proof?.is === 'totp' ? { is: 'code', proof } : { is: 'wrong' };
    });
  const check = passkey ? () => lookAtPasskey(input, caller, word, passkey) : byCode;
  return atPace(input, await triedAs(input, caller.id), check, ({ is }) => is !== 'wrong');
}

async function lookAtPasskey(
  input: Input<unknown>,
  caller: Caller,
  { id, verdict }: Subject,
  sent: SentAssertion,
): Promise<Looked> {
  const { store } = input.handle;
  const { factor, digest } = await store.transaction((tables) => ({
    factor: tables.secondFactors.of(caller.id).find(({ credentialId }) => credentialId === sent.id),
    digest: tables.approvalRequests.detailsOf(id)?.digest,
  }));
  if (digest === undefined) return { is: 'none' };
  try {
    const place = placeOf(input);
    return { is: 'passkey', ...(await verifyApproval(place, factor, signedChallenge(verdict, digest), sent)) };
  } catch (error) {
    if (!(error instanceof KmsError) || error.code !== 'invalid') throw error;
    return { is: 'wrong' };
  }
}

/** Consumes the factor that was looked at; undefined if none came. Throws `invalid` if it is wrong or was used. */
function use(ctx: Context, looked: Looked): ProvenFactor | undefined {
  if (looked.is === 'none') return undefined;
  try {
    if (looked.is === 'code') {
      useTotp(ctx, ctx.caller.id, looked.proof);
      return { id: looked.proof.factor.id, kind: 'totp' };
    }
    if (looked.is === 'passkey') {
      usePasskey(ctx, looked.use);
      return { id: looked.use.factor.id, kind: 'passkey', assertion: looked.assertion };
    }
  } catch (error) {
    if (!(error instanceof KmsError) || error.code !== 'invalid') throw error;
  }
  throw new KmsError('invalid', 'the code or the passkey is wrong, or was used before', { denies: true });
}
