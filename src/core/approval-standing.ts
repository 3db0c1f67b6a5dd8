// Where a request for approval stands at a moment: under which rules it is then, until when it is open, and whether it
// has the words that these ask for, or the glass is broken for it.
import { type RequestState, requestLasts } from '../model/approval-rules.ts';
import type { Tables } from '../store/port.ts';
import type { ApprovalRequest, ApprovalWord } from '../store/tables/approval-requests.ts';
import type { ApprovalRule } from '../store/tables/approval-rules.ts';
import { canLogIn, rulesAt, rulesFor } from './approval-rules.ts';
import { type Standing, standingOf } from './approval-words.ts';

/** Milliseconds by which the clocks of two nodes may differ. */
const clockSkew = 60_000;

/** A request with the rules for it as they are now, and where it stands. */
export interface RequestNow {
  readonly request: ApprovalRequest;
  readonly words: readonly ApprovalWord[];
  readonly rules: readonly ApprovalRule[];
  readonly standing: Standing;
  readonly state: RequestState;
}

export function requestNow(
  tx: Tables,
  request: ApprovalRequest,
  now: number,
  rules: readonly ApprovalRule[] = rulesNow(tx, request, now),
): RequestNow {
  const words = tx.approvalRequests.wordsOf(request.id);
  const standing = standingOf(tx, request.requester, words, rules);
  return { request, words, rules, standing, state: stateOf(tx, request, rules, standing, now) };
}

function stateOf(
  tx: Tables,
  request: ApprovalRequest,
  rules: readonly ApprovalRule[],
  { isSatisfied }: Standing,
  now: number,
): RequestState {
  if (request.endedAt !== undefined) return request.state;
  const broken = isBroken(tx, request, rules);
  if (now >= grantedUntil(request, rules, now, broken)) return request.uses > 0 ? 'done' : 'expired';
  return isSatisfied || broken ? 'granted' : 'pending';
}

/** The state of a request now; `expired` for one that is not there any more. */
export function stateNow(tx: Tables, id: string, now: number): RequestState {
  const request = tx.approvalRequests.byId(id);
  return request ? requestNow(tx, request, now).state : 'expired';
}

/** The rules for a request, as they are now. */
export function rulesNow(tx: Pick<Tables, 'approvalRules'>, request: ApprovalRequest, now: number): ApprovalRule[] {
  return rulesFor(rulesAt(tx, now), request.terms);
}

/** Whether the glass is broken for the request, by a User who is there and whom all of these rules name for that. */
export function isBroken(
  { users }: Pick<Tables, 'users'>,
  { brokenBy }: ApprovalRequest,
  rules: readonly ApprovalRule[],
): boolean {
  const user = brokenBy === undefined ? undefined : users.byId(brokenBy);
  return user !== undefined && canLogIn(user) && areBrokenBy(rules, user.id);
}

/** Whether the rules let the User break the glass. */
export function areBrokenBy(rules: readonly ApprovalRule[], userId: string): boolean {
  return rules.length > 0 && rules.every(({ breakers }) => breakers.includes(userId));
}

/**
 * Until when the request is open. A window begins with the first grant, and is never longer than the rules say now, nor
 * than those who approved were told; a clock that was set back ends it.
 */
export function grantedUntil(
  { grantedAt, createdAt, terms }: ApprovalRequest,
  rules: readonly ApprovalRule[],
  now: number,
  broken: boolean,
): number {
  if (grantedAt === undefined) return now < createdAt - clockSkew ? now : createdAt + requestLasts;
  if (now < grantedAt - clockSkew) return now;
  if (broken) return grantedAt + requestLasts;
  return rules.length === 0 ? now : grantedAt + Math.min(terms.lasts, lastingOf(rules));
}

/** Milliseconds for which an act may be done once it is granted. */
export function lastingOf(rules: readonly ApprovalRule[]): number {
  return Math.min(...rules.map(({ window }) => (window === 'once' ? requestLasts : window * 1000)));
}

export function isOnce(rules: readonly ApprovalRule[]): boolean {
  return rules.some(({ window }) => window === 'once');
}
