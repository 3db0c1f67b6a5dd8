// Requests for approval: shown to those whom they concern, approved, denied, withdrawn; and broken glass.
import type { BrokenGlass as BrokenAnswer, ApprovalRequest as RequestAnswer } from '../api/approvals.ts';
import { KmsError } from '../errors.ts';
import type { ResourceRef } from '../model/activity-details.ts';
import type { RequestState } from '../model/approval-rules.ts';
import type { JsonObject } from '../model/json.ts';
import type { Tables } from '../store/port.ts';
import type { ApprovalRequest, ApprovalWord } from '../store/tables/approval-requests.ts';
import type { ApprovalRule } from '../store/tables/approval-rules.ts';
import type { BrokenGlass } from '../store/tables/broken-glass.ts';
import { openUntil, rulesNow } from './approval-decision.ts';
import { isApprover } from './approval-rules.ts';
import {
  approvalProblem,
  brokenBy,
  freshFactor,
  mayBreak,
  needApprover,
  noteSigner,
  type ProvenFactor,
  type Standing,
  standingOf,
  wordProblem,
} from './approval-words.ts';
import type { Caller, Context } from './context.ts';
import { dayLength } from './key-dependents.ts';
import { isOfBreaker } from './persons.ts';
import { sessionOf } from './sessions.ts';

const mostListed = 100;
/** Requests looked at for a list. */
const mostLookedAt = 5000;
/** Users of a managed key that are shown. */
const mostDependents = 20;

/** A request with the rules for it as they are now, and where it stands. */
interface Known {
  readonly request: ApprovalRequest;
  readonly words: readonly ApprovalWord[];
  readonly rules: readonly ApprovalRule[];
  readonly standing: Standing;
  /** When its time is over, unless it ends before. */
  readonly until: number;
  readonly state: RequestState;
}

function knownOf({ tx, world }: Pick<Context, 'tx' | 'world'>, request: ApprovalRequest): Known {
  const now = world.now();
  const words = tx.approvalRequests.wordsOf(request.id);
  const rules = rulesNow(tx, request, now);
  const standing = standingOf(tx, request.requester, words, rules);
  const broken = mayBreak(brokenBy(tx, request), rules);
  const until = openUntil({ ...request, broken }, standing, now);
  const isGranted = broken || standing.isSatisfied;
  return { request, words, rules, standing, until, state: stateOf(request, until, isGranted, now) };
}

function stateOf(request: ApprovalRequest, until: number, isGranted: boolean, now: number): RequestState {
  if (request.endedAt !== undefined) return request.state;
  if (now >= until) return request.uses > 0 ? 'done' : 'expired';
  return isGranted ? 'granted' : 'pending';
}

interface ListInput {
  readonly state?: RequestState;
  readonly mine: boolean;
  readonly inbox: boolean;
}

/** Newest first. */
export function listApprovalRequests(ctx: Context, { state, mine, inbox }: ListInput): { requests: RequestAnswer[] } {
  const requests: RequestAnswer[] = [];
  let looked = 0;
  ctx.tx.approvalRequests.list((request) => {
    const known = knownOf(ctx, request);
    const answer = concerns(ctx, known) ? requestAnswer(ctx, known) : undefined;
    const isWanted =
      answer &&
      (state === undefined || answer.state === state) &&
      (!mine || isOwn(ctx, request)) &&
      (!inbox || (answer.state === 'pending' && answer.may.deny));
    if (isWanted) requests.push(answer);
    return requests.length === mostListed || ++looked === mostLookedAt;
  });
  return { requests };
}

export function getApprovalRequest(ctx: Context, { id }: { readonly id: string }): RequestAnswer {
  return requestAnswer(ctx, findKnown(ctx, id));
}

/** Throws `not-found` for a request that does not concern the caller, too. */
export function findKnown(ctx: Pick<Context, 'tx' | 'world' | 'caller'>, id: string): Known {
  const request = ctx.tx.approvalRequests.byId(id);
  const known = request && knownOf(ctx, request);
  if (!known || !concerns(ctx, known)) throw new KmsError('not-found', 'there is no such request');
  return known;
}

function concerns(ctx: Pick<Context, 'tx' | 'caller'>, { request, words, rules }: Known): boolean {
  const { tx, caller } = ctx;
  const { flags } = caller;
  if (flags.allows('approval.read') || flags.allows('approval.rule') || isOwn(ctx, request)) return true;
  if (words.some(({ userId }) => userId === caller.id)) return true;
  const user = caller.kind === 'user' ? tx.users.byId(caller.id) : undefined;
  return user !== undefined && rules.some((rule) => isApprover(rule, user) || rule.breakers.includes(user.id));
}

/** Whether the caller made it, or an API key that is theirs. */
function isOwn({ tx, caller }: Pick<Context, 'tx' | 'caller'>, { requester }: ApprovalRequest): boolean {
  if (requester === caller.id) return true;
  return caller.kind === 'user' && tx.apiKeys.byId(requester)?.userId === caller.id;
}

interface WordInput {
  readonly id: string;
  readonly verdict: 'approve' | 'deny';
  readonly reason: string | undefined;
  /** The factor that came with the word; undefined if none did. */
  readonly factor: ProvenFactor | undefined;
}

/** Takes the caller's word about a request. Throws `forbidden` for whose word does not count. */
export function giveWord(ctx: Context, { id, verdict, reason, factor: given }: WordInput): RequestAnswer {
  const { tx, world, caller } = ctx;
  const { request, words, rules, state } = findKnown(ctx, id);
  const session = sessionOf(caller);
  if (state !== 'pending') throw new KmsError('conflict', `the request is ${state} already`);
  needApprover(tx, caller, request, rules);
  if (words.some(({ userId }) => userId === caller.id)) {
    throw new KmsError('forbidden', 'you said your word about this already', { denies: true });
  }
  const factor = given ?? freshFactor(ctx);
  if (!factor) throw needsFactor(ctx);
  noteSigner(ctx, factor);
  const now = world.now();
  const { id: factorId, kind: factorKind, assertion } = factor;
  const signed = assertion !== undefined;
  const word = { requestId: id, userId: caller.id, verdict, at: now, factorId, factorKind, signed, reason };
  tx.approvalRequests.addWord(word);
  if (given) tx.sessions.noteFactor(session, factorId, now);
  if (verdict === 'deny') tx.approvalRequests.end(id, 'denied', now);
  else if (standingOf(tx, request.requester, [...words, word], rules).isSatisfied) {
    tx.approvalRequests.grant(id, now, false);
  }
  const approval = { id, digest: request.details.digest, verdict, ...factorTold(factor), ...(reason && { reason }) };
  ctx.note({ object: approvalThing(request), approval });
  return getApprovalRequest(ctx, { id });
}

/** The refusal of a word without a fresh second factor; it says which kinds the caller has. */
function needsFactor({ tx, caller }: Context): KmsError {
  const message = 'a second factor is needed that is at most 5 minutes old';
  const secondFactor = [...new Set(tx.secondFactors.of(caller.id).map(({ data }) => data.kind))];
  return new KmsError('forbidden', message, { denies: true, body: { message, secondFactor } });
}

function factorTold({ id, kind, assertion }: ProvenFactor): JsonObject {
  return { factor: { id, kind }, ...(assertion && { assertion }) };
}

/** Takes a request back, whatever it was granted. */
export function withdrawRequest(ctx: Context, { id }: { readonly id: string }): RequestAnswer {
  const { tx, world, caller } = ctx;
  const known = findKnown(ctx, id);
  const { request, state } = known;
  if (!isOwn(ctx, request) && !caller.flags.allows('approval.rule')) {
    throw new KmsError('forbidden', 'only who asked for it can withdraw it', { denies: true });
  }
  if (state !== 'pending' && state !== 'granted') throw new KmsError('conflict', `the request is ${state} already`);
  tx.approvalRequests.end(id, 'withdrawn', world.now());
  ctx.note({ object: approvalThing(request), approval: { id } });
  return getApprovalRequest(ctx, { id });
}

interface BreakInput {
  readonly id: string;
  readonly reason: string;
  readonly factor: ProvenFactor | undefined;
}

/** Lets a request pass without the others, by a User whom all its rules name for that. */
export function breakGlass(ctx: Context, { id, reason, factor: given }: BreakInput): RequestAnswer {
  const { tx, world, caller } = ctx;
  const { request, rules, state } = findKnown(ctx, id);
  const session = sessionOf(caller);
  if (state !== 'pending') throw new KmsError('conflict', `the request is ${state} already`);
  if (!canBreak(caller, rules)) {
    throw new KmsError('forbidden', 'the rules do not name you as one who may break the glass', { denies: true });
  }
  const factor = given ?? freshFactor(ctx);
  if (!factor) throw needsFactor(ctx);
  noteSigner(ctx, factor);
  const now = world.now();
  if (given) tx.sessions.noteFactor(session, factor.id, now);
  const glass = world.newId('glass');
  const { action, object } = request.details;
  const by = caller.id;
  tx.brokenGlass.insert({ id: glass, at: now, by, reason, action, object, requestId: id });
  tx.approvalRequests.grant(id, now, true);
  ctx.note({ object: glassThing(glass), approval: { glass, id, action, reason, ...factorTold(factor) } });
  return getApprovalRequest(ctx, { id });
}

function canBreak({ id, kind }: Caller, rules: readonly ApprovalRule[]): boolean {
  return kind === 'user' && mayBreak(id, rules);
}

/** All for holders of `approval.rule` and `approval.read`; otherwise the caller's own. */
export function listBrokenGlass({ tx, caller }: Context): { broken: BrokenAnswer[] } {
  const { flags } = caller;
  const all = flags.allows('approval.rule') || flags.allows('approval.read') || isSomeApprover(tx, caller);
  const broken = tx.brokenGlass.list(mostListed).filter(({ by }) => all || by === caller.id);
  return { broken: broken.map((each) => brokenAnswer(tx, each)) };
}

function isSomeApprover(tx: Tables, caller: Caller): boolean {
  const user = caller.kind === 'user' ? tx.users.byId(caller.id) : undefined;
  return user !== undefined && tx.approvalRules.list().some((rule) => isApprover(rule, user));
}

/** By another person than who broke it; the administrator at the machine may, if they did not. */
export function acknowledgeBrokenGlass(ctx: Context, { id }: { readonly id: string }): BrokenAnswer {
  const { tx, world, caller } = ctx;
  const broken = tx.brokenGlass.byId(id);
  if (!broken) throw new KmsError('not-found', 'no glass was broken under this id');
  if (isOfBreaker(tx, caller.id, broken)) {
    throw new KmsError('forbidden', 'another must acknowledge it than who broke it, or could be who broke it');
  }
  if (!broken.acknowledged) tx.brokenGlass.acknowledge(id, caller.id, world.now());
  ctx.note({ object: glassThing(id) });
  return brokenAnswer(tx, tx.brokenGlass.byId(id) ?? broken);
}

function approvalThing({ id, details: { action } }: ApprovalRequest): ResourceRef {
  return { type: 'approval', id, name: action };
}

function glassThing(id: string): ResourceRef {
  return { type: 'broken-glass', id };
}

function brokenAnswer(tx: Tables, { id, at, by, reason, action, object, requestId, acknowledged }: BrokenGlass) {
  return {
    id,
    at,
    by: personOf(tx, by),
    reason,
    action,
    object: object && thingAnswer(object),
    ...(requestId !== undefined && { request: requestId }),
    acknowledged: acknowledged ? { at: acknowledged.at, by: personOf(tx, acknowledged.by) } : null,
  };
}

/** A caller, with the name that people know it by. */
export function personOf({ apiKeys, users }: Pick<Tables, 'apiKeys' | 'users'>, id: string) {
  const name = id.startsWith('user_') ? users.byId(id)?.username : apiKeys.byId(id)?.name;
  return { id, name: name ?? '' };
}

function thingAnswer({ type, id, name }: ResourceRef): { type: string; id: string; name?: string } {
  return name === undefined ? { type, id } : { type, id, name };
}

function requestAnswer(ctx: Context, known: Known): RequestAnswer {
  const { tx } = ctx;
  const { request, words, rules, standing, until, state } = known;
  const { details } = request;
  const { action, operation, dialect, address, object, reason, parameters, body, statement, digest } = details;
  return {
    id: request.id,
    state,
    requester: personOf(tx, request.requester),
    action,
    operation,
    ...(dialect !== undefined && { dialect }),
    ...(address !== undefined && { address }),
    object: object && thingAnswer(object),
    ...(reason !== undefined && { reason }),
    createdAt: request.createdAt,
    expiresAt: request.endedAt ?? until,
    needed: standing.needed,
    given: standing.given,
    rules: standing.rules.map(({ rule, by }) => ({
      id: rule.id,
      name: rule.name,
      count: rule.count,
      given: by.length,
      window: rule.window,
    })),
    words: words.map((word) => wordAnswer(tx, request, word, rules)),
    uses: request.uses,
    broken: request.broken,
    statement,
    digest,
    shown: { parameters, body },
    effects: effectsAnswer(ctx, request),
    may: mayAnswer(ctx, known),
  };
}

function wordAnswer(tx: Tables, { requester }: ApprovalRequest, word: ApprovalWord, rules: readonly ApprovalRule[]) {
  const problems = rules.map((rule) => wordProblem(tx, requester, word, rule));
  const counts = word.verdict === 'deny' || problems.includes(undefined);
  const [problem] = problems;
  return {
    by: personOf(tx, word.userId),
    verdict: word.verdict,
    at: word.at,
    factor: word.factorKind,
    signed: word.signed,
    ...(word.reason !== undefined && { reason: word.reason }),
    counts,
    ...(!counts && problem !== undefined && { problem }),
  };
}

function effectsAnswer({ tx, world }: Context, { details }: ApprovalRequest): RequestAnswer['effects'] {
  const { object, effects } = details;
  // Cast: `approval-decision.ts` wrote them.
  const known = effects as unknown as RequestAnswer['effects'];
  if (object?.type !== 'managed-key') return known;
  const uses = tx.managedKeyUses.since(object.id, world.now() - 30 * dayLength);
  const dependents = uses.slice(0, mostDependents).map(({ caller, operation, count: times, usedAt }) => ({
    by: personOf(tx, caller),
    operation,
    uses: times,
    lastUsedAt: usedAt,
  }));
  return { ...known, dependents };
}

function mayAnswer(ctx: Context, { request, words, rules, state }: Known): RequestAnswer['may'] {
  const { tx, caller } = ctx;
  const isOpen = state === 'pending' || state === 'granted';
  const withdraw = isOpen && (isOwn(ctx, request) || caller.flags.allows('approval.rule'));
  const none = { approve: false, deny: false, withdraw, breakGlass: false };
  if (state !== 'pending' || caller.kind !== 'user') return none;
  const breaks = canBreak(caller, rules);
  const user = tx.users.byId(caller.id);
  if (!user || !rules.some((rule) => isApprover(rule, user))) return { ...none, breakGlass: breaks };
  if (words.some(({ userId }) => userId === caller.id)) {
    return { ...none, breakGlass: breaks, problem: 'you said your word already' };
  }
  const problems = rules
    .filter((rule) => isApprover(rule, user))
    .map((rule) => approvalProblem(tx, caller.id, request.requester, rule));
  const approve = problems.includes(undefined);
  const [problem] = problems;
  return { approve, deny: approve, withdraw, breakGlass: breaks, ...(!approve && problem && { problem }) };
}
