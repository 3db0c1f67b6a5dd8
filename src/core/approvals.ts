// Requests for approval: shown to those whom they concern, approved, denied, withdrawn; and broken glass.
import type { BrokenGlass as BrokenAnswer, ApprovalRequest as RequestAnswer } from '../api/approvals.ts';
import { KmsError } from '../errors.ts';
import type { ResourceRef } from '../model/activity-details.ts';
import { actName, furtherTold, type RequestState, requestLasts } from '../model/approval-rules.ts';
import type { JsonObject } from '../model/json.ts';
import type { Tables } from '../store/port.ts';
import type { Slices } from '../store/sql.ts';
import type { ApprovalRequest, ApprovalWord } from '../store/tables/approval-requests.ts';
import type { ApprovalRule } from '../store/tables/approval-rules.ts';
import type { BrokenGlass } from '../store/tables/broken-glass.ts';
import { areBrokenBy, type RequestNow, requestNow } from './approval-standing.ts';
import {
  approvalProblem,
  freshFactor,
  needApprover,
  noteSigner,
  type ProvenFactor,
  standingOf,
  wordProblem,
} from './approval-words.ts';
import { isApprover, welcomeApprover } from './approvers.ts';
import type { Caller, Context } from './context.ts';
import { dayLength } from './key-dependents.ts';
import { askersOf, isOfBreaker, strangersTo, vouchedByFirst } from './persons.ts';
import { sessionOf } from './sessions.ts';

const mostListed = 100;
/** Requests looked at for a list, in all and in one part. */
const mostLookedAt = 5000;
const lookedAtOnce = 20;
/** Characters of what a list tells of requests, in JSON. */
const longestList = 2 * 1024 * 1024;
/** Users of a managed key that are shown. */
const mostDependents = 20;

interface ListInput {
  readonly state?: RequestState;
  readonly mine: boolean;
  readonly inbox: boolean;
  readonly requester?: string;
  /** The place of the last one that was looked at. */
  readonly after?: number;
}

interface RequestPage {
  readonly requests: RequestAnswer[];
  /** The place to go on after; undefined at the end of the list. */
  readonly next: number | undefined;
}

/** Newest first; the inbox has those first that have waited longest, so that newer ones hide none. */
export function* listApprovalRequests(
  ctx: Context,
  { state, mine, inbox, requester, after }: ListInput,
): Slices<RequestPage> {
  const { tx, world } = ctx;
  const now = world.now();
  const isOpen = inbox || state === 'pending' || state === 'granted';
  const of = mine || !seesOthers(ctx) ? ctx.caller.id : undefined;
  const filter = { isOpen, of, requester, oldestFirst: inbox };
  const requests: RequestAnswer[] = [];
  let length = 0;
  let last = after;
  for (let looked = 0; looked < mostLookedAt; looked += lookedAtOnce) {
    const page = tx.approvalRequests.page(filter, last, lookedAtOnce);
    for (const request of page.requests) {
      const known = listed(ctx, request, { state, mine, inbox, now });
      if (known) {
        length += tx.approvalRequests.lengthOf(request.id);
        if (requests.length > 0 && length > longestList) return { requests, next: last };
        requests.push(requestAnswer(ctx, known));
      }
      last = request.seq;
      if (requests.length === mostListed) return { requests, next: last };
      if (known) yield;
    }
    if (page.next === undefined) return { requests, next: undefined };
    yield;
  }
  return { requests, next: last };
}

interface Wanted extends Pick<ListInput, 'mine' | 'inbox'> {
  readonly state: RequestState | undefined;
  readonly now: number;
}

/** The request as it stands, if the list wants it. */
function listed(ctx: Context, request: ApprovalRequest, { state, mine, inbox, now }: Wanted): RequestNow | undefined {
  // Cheap looks come first: this much is known without the words.
  if (request.endedAt !== undefined && state !== undefined && request.state !== state) return undefined;
  if (mine && !isOwn(ctx, request)) return undefined;
  const known = requestNow(ctx.tx, request, now);
  if ((state !== undefined && known.state !== state) || !concerns(ctx, known)) return undefined;
  return inbox && (known.state !== 'pending' || !mayAnswer(ctx, known).deny) ? undefined : known;
}

/** Whether a caller could see requests of others: a reader, an approver, one who may break the glass. */
function seesOthers({ tx, caller }: Pick<Context, 'tx' | 'caller'>): boolean {
  const { flags } = caller;
  return flags.allows('approval.read') || flags.allows('approval.rule') || isSomeApprover(tx, caller);
}

export function getApprovalRequest(ctx: Context, { id }: { readonly id: string }): RequestAnswer {
  return requestAnswer(ctx, findKnown(ctx, id));
}

/** Throws `not-found` for a request that does not concern the caller, too. */
export function findKnown(ctx: Pick<Context, 'tx' | 'world' | 'caller'>, id: string): RequestNow {
  const request = ctx.tx.approvalRequests.byId(id);
  const known = request && requestNow(ctx.tx, request, ctx.world.now());
  if (!known || !concerns(ctx, known)) throw new KmsError('not-found', 'there is no such request');
  return known;
}

function concerns(ctx: Pick<Context, 'tx' | 'caller'>, { request, words, rules }: RequestNow): boolean {
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
  welcomeApprover(ctx, caller.id);
  const { request, words, rules, state } = findKnown(ctx, id);
  const session = sessionOf(caller);
  if (state !== 'pending') throw new KmsError('conflict', `the request is ${state} already`);
  needApprover(tx, caller, request, rules);
  if (words.some(({ userId }) => userId === caller.id)) {
    throw new KmsError('forbidden', 'you have decided on this already', { denies: true });
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
    tx.approvalRequests.grant(id, { now, endsAt: (request.grantedAt ?? now) + request.terms.lasts });
  }
  const { digest } = detailsOf(tx, request);
  const approval = { id, digest, verdict, ...factorTold(factor), ...(reason && { reason }) };
  ctx.note({ object: approvalThing(tx, request), approval });
  return getApprovalRequest(ctx, { id });
}

/** The refusal of a word without a fresh second factor; it says which kinds the caller has. */
function needsFactor({ tx, caller }: Context): KmsError {
  const message = 'this needs a second factor that was used within the last 5 minutes';
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
    throw new KmsError('forbidden', 'only the requester can withdraw it', { denies: true });
  }
  if (state !== 'pending' && state !== 'granted') throw new KmsError('conflict', `the request is ${state} already`);
  tx.approvalRequests.end(id, 'withdrawn', world.now());
  ctx.note({ object: approvalThing(tx, request), approval: { id } });
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
    throw new KmsError('forbidden', 'the rules do not name you among those who may break the glass', { denies: true });
  }
  const factor = given ?? freshFactor(ctx);
  if (!factor) throw needsFactor(ctx);
  noteSigner(ctx, factor);
  const now = world.now();
  if (given) tx.sessions.noteFactor(session, factor.id, now);
  const glass = world.newId('glass');
  const { action, object } = detailsOf(tx, request);
  const by = caller.id;
  const persons = vouchedByFirst(rules);
  tx.brokenGlass.insert({ id: glass, at: now, by, reason, action, object, requestId: id, persons });
  tx.approvalRequests.grant(id, { now, endsAt: (request.grantedAt ?? now) + requestLasts, brokenBy: by });
  ctx.note({ object: glassThing(glass), approval: { glass, id, action, reason, ...factorTold(factor) } });
  return getApprovalRequest(ctx, { id });
}

function canBreak({ id, kind }: Caller, rules: readonly ApprovalRule[]): boolean {
  return kind === 'user' && areBrokenBy(rules, id);
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
  return (
    user !== undefined &&
    tx.approvalRules.list().some((rule) => isApprover(rule, user) || rule.breakers.includes(user.id))
  );
}

/** By another person than who broke it; the administrator at the machine may, if they did not. */
export function acknowledgeBrokenGlass(ctx: Context, { id }: { readonly id: string }): BrokenAnswer {
  const { tx, world, caller } = ctx;
  const broken = tx.brokenGlass.byId(id);
  if (!broken) throw new KmsError('not-found', 'no glass was broken under this id');
  const session = caller.kind === 'user' ? tx.sessions.byTokenHash(sessionOf(caller)) : undefined;
  // An identity provider can log in as any User, without their second factor.
  if (session?.byProvider && !session.factor && tx.secondFactors.has(caller.id)) {
    throw new KmsError('forbidden', 'log in with your second factor to acknowledge it', { denies: true });
  }
  if (isOfBreaker(tx, caller.id, broken)) throw brokenByCaller(tx, broken);
  if (!broken.acknowledged) tx.brokenGlass.acknowledge(id, caller.id, world.now());
  ctx.note({ object: glassThing(id) });
  return brokenAnswer(tx, tx.brokenGlass.byId(id) ?? broken);
}

function brokenByCaller(tx: Tables, broken: BrokenGlass): KmsError {
  const names = strangersTo(tx, broken).map(({ username }) => username);
  const others = names.length > 3 ? `${names.slice(0, 3).join(', ')} and others` : names.join(', ');
  return new KmsError(
    'forbidden',
    'it cannot be acknowledged by whoever broke it, nor by an identity that they could have had access to: ' +
      (others === '' ? 'a User for whom a rule vouches can' : `${others} can, with the permission flag approval.rule`),
  );
}

function approvalThing(tx: Tables, request: ApprovalRequest): ResourceRef {
  return { type: 'approval', id: request.id, name: detailsOf(tx, request).action };
}

function detailsOf({ approvalRequests }: Pick<Tables, 'approvalRequests'>, { id }: ApprovalRequest) {
  const details = approvalRequests.detailsOf(id);
  if (details) return details;
  throw new KmsError('internal', 'a request that was read has its details');
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

function requestAnswer(ctx: Context, known: RequestNow): RequestAnswer {
  const { tx } = ctx;
  const { request, words, rules, standing, until, state } = known;
  const details = detailsOf(tx, request);
  const { action, operation, dialect, address, object, reason, parameters, body, statement, digest } = details;
  return {
    id: request.id,
    state,
    requester: personOf(tx, request.requester),
    action,
    actions: request.terms.actions.map((each) => actName(each, request.terms.ring)),
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
    broken: request.brokenBy !== undefined,
    statement,
    digest,
    shown: { parameters, body, further: furtherTold(request.terms.further).map(actAnswer) },
    effects: effectsAnswer(ctx, details),
    may: mayAnswer(ctx, known),
  };
}

function actAnswer({ action, object }: ReturnType<typeof furtherTold>[number]) {
  return { action, object: object && thingAnswer(object) };
}

function wordAnswer(tx: Tables, { requester }: ApprovalRequest, word: ApprovalWord, rules: readonly ApprovalRule[]) {
  const problems = rules.map((rule) => wordProblem(tx, askersOf(tx, requester, rule), word, rule));
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

function effectsAnswer(
  { tx, world }: Context,
  { object, effects }: ReturnType<typeof detailsOf>,
): RequestAnswer['effects'] {
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

function mayAnswer(ctx: Context, { request, words, rules, state }: RequestNow): RequestAnswer['may'] {
  const { tx, caller } = ctx;
  const isOpen = state === 'pending' || state === 'granted';
  const withdraw = isOpen && (isOwn(ctx, request) || caller.flags.allows('approval.rule'));
  const none = { approve: false, deny: false, withdraw, breakGlass: false };
  if (state !== 'pending' || caller.kind !== 'user') return none;
  const breaks = canBreak(caller, rules);
  const user = tx.users.byId(caller.id);
  if (!user || !rules.some((rule) => isApprover(rule, user))) return { ...none, breakGlass: breaks };
  if (words.some(({ userId }) => userId === caller.id)) {
    return { ...none, breakGlass: breaks, problem: 'you have decided already' };
  }
  const problems = rules
    .filter((rule) => isApprover(rule, user))
    .map((rule) => approvalProblem(tx, caller.id, askersOf(tx, request.requester, rule), rule));
  const approve = problems.includes(undefined);
  const [problem] = problems;
  return { approve, deny: approve, withdraw, breakGlass: breaks, ...(!approve && problem && { problem }) };
}
