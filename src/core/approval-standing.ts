// The standing of a request for approval at a moment: the rules that cover it then, until when it is open, and whether
// it has the words that they ask for, or the glass is broken for it.
import { type RequestState, requestLasts } from '../model/approval-rules.ts';
import type { Tables } from '../store/port.ts';
import type { ApprovalRequest, ApprovalWord } from '../store/tables/approval-requests.ts';
import type { ApprovalRule } from '../store/tables/approval-rules.ts';
import { rulesAt, rulesFor } from './approval-rules.ts';
import { type Standing, standingOf } from './approval-words.ts';
import { canLogIn } from './persons.ts';

/** Milliseconds by which the clocks of two nodes may differ. */
const clockSkew = 60_000;

/** A request with the rules for it as they are now, and where it stands. */
export interface RequestNow {
  readonly request: ApprovalRequest;
  readonly words: readonly ApprovalWord[];
  readonly rules: readonly ApprovalRule[];
  readonly standing: Standing;
  readonly isBroken: boolean;
  /** When its time is over, unless it ends before. */
  readonly until: number;
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
  const broken = isBroken(tx, request, rules);
  const until = openUntil(request, rules, { standing, isBroken: broken, now });
  const state = stateOf(request, until, broken || standing.isSatisfied, now);
  return { request, words, rules, standing, isBroken: broken, until, state };
}

function stateOf(request: ApprovalRequest, until: number, isGranted: boolean, now: number): RequestState {
  if (request.endedAt !== undefined) return request.state;
  if (now >= until) return request.uses > 0 ? 'done' : 'expired';
  return isGranted ? 'granted' : 'pending';
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
function isBroken(
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

interface At {
  readonly standing: Standing;
  readonly isBroken: boolean;
  readonly now: number;
}

/**
 * Until when the request is open. It waits for words for a day; a window counts from the word that completed them, and
 * is never longer than from the first grant on, nor than those who approved were told. A clock that was set back ends
 * it.
 */
function openUntil(
  { grantedAt, createdAt, terms }: ApprovalRequest,
  rules: readonly ApprovalRule[],
  { standing: { isSatisfied, completedAt }, isBroken: broken, now }: At,
): number {
  if (now < (grantedAt ?? createdAt) - clockSkew) return now;
  if (broken) return (grantedAt ?? createdAt) + requestLasts;
  if (rules.length === 0) return now;
  const none = Number.POSITIVE_INFINITY;
  const from = Math.min(grantedAt ?? none, isSatisfied ? completedAt : none);
  const until = from + Math.min(terms.lasts, lastingOf(rules));
  return isSatisfied ? until : Math.min(until, createdAt + requestLasts);
}

/** Milliseconds for which an act may be done once it is granted. */
export function lastingOf(rules: readonly ApprovalRule[]): number {
  return Math.min(...rules.map(({ window }) => (window === 'once' ? requestLasts : window * 1000)));
}

export function isOnce(rules: readonly ApprovalRule[]): boolean {
  return rules.some(({ window }) => window === 'once');
}
