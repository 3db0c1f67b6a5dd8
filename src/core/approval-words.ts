// Words (approvals and denials): which of them count under a rule at the moment, and the second factor that giving one
// takes. They are checked again whenever it matters, so that those of Users who left, or are no longer approvers, stop
// counting.
import type { KeptAssertion } from '../crypto/kept-assertion.ts';
import { KmsError } from '../errors.ts';
import { factorFreshFor } from '../model/approval-rules.ts';
import type { Tables } from '../store/port.ts';
import type { ApprovalRequest, ApprovalWord } from '../store/tables/approval-requests.ts';
import type { ApprovalRule } from '../store/tables/approval-rules.ts';
import { digestOf } from './approval-statement.ts';
import { approversOf, isApprover } from './approvers.ts';
import type { Caller, Context } from './context.ts';
import { askersOf, canLogIn, factorMarks, selfApprovalProblem, vouchingProblem } from './persons.ts';
import { sessionOf } from './sessions.ts';

/** How far a request is, under one rule. */
interface RuleStanding {
  readonly rule: ApprovalRule;
  /** Users whose words count, one for each person. */
  readonly by: readonly string[];
}

export interface Standing {
  readonly rules: readonly RuleStanding[];
  /** Number of words that the rule needs which is furthest from satisfied. */
  readonly needed: number;
  readonly given: number;
  readonly isSatisfied: boolean;
  /** When the last word came that was needed, if it is satisfied. */
  readonly completedAt: number;
}

/** Where a request stands under rules; each must be satisfied. */
export function standingOf(
  tx: Tables,
  requester: string,
  words: readonly ApprovalWord[],
  rules: readonly ApprovalRule[],
) {
  const counted = rules.map((rule) => ({ rule, words: countedUnder(tx, requester, words, rule) }));
  const standings = counted.map(
    (each): RuleStanding => ({ rule: each.rule, by: each.words.map(({ userId }) => userId) }),
  );
  let [furthest] = standings;
  for (const each of standings) if (furthest && lacks(each) > lacks(furthest)) furthest = each;
  const standing: Standing = {
    rules: standings,
    needed: furthest?.rule.count ?? 0,
    given: Math.min(furthest?.by.length ?? 0, furthest?.rule.count ?? 0),
    isSatisfied: standings.every((each) => lacks(each) <= 0),
    completedAt: Math.max(...counted.map(({ rule, words: given }) => given[rule.count - 1]?.at ?? 0)),
  };
  return standing;
}

function lacks({ rule, by }: RuleStanding): number {
  return rule.count - by.length;
}

function countedUnder(
  tx: Tables,
  requester: string,
  words: readonly ApprovalWord[],
  rule: ApprovalRule,
): ApprovalWord[] {
  const asked = askersOf(tx, requester, rule);
  const marks = new Set<string>();
  const counted: ApprovalWord[] = [];
  for (const word of words) {
    if (word.verdict !== 'approve' || wordProblem(tx, asked, word, rule) !== undefined) continue;
    const own = factorMarks(tx, word.userId);
    // Accounts of one person: their second factors are the same.
    if (own.some((mark) => marks.has(mark))) continue;
    for (const mark of own) marks.add(mark);
    counted.push(word);
  }
  return counted;
}

type Askers = ReturnType<typeof askersOf>;

/**
 * Why a word does not count under the rule now; undefined if it does.
 *
 * @param asked those who could be asking, under that rule.
 */
export function wordProblem(tx: Tables, asked: Askers, word: ApprovalWord, rule: ApprovalRule): string | undefined {
  if (!tx.secondFactors.of(word.userId).some(({ id }) => id === word.factorId)) {
    return tx.users.byId(word.userId)
      ? 'the second factor that it was given with no longer exists'
      : 'the User no longer exists';
  }
  return approvalProblem(tx, word.userId, asked, rule);
}

/** Why a User's word would not count under the rule now; undefined if it would. */
export function approvalProblem(tx: Tables, userId: string, asked: Askers, rule: ApprovalRule): string | undefined {
  const user = tx.users.byId(userId);
  if (!user || !canLogIn(user)) return 'the User no longer exists';
  if (!isApprover(rule, user)) return 'the User is not an approver of the rule';
  return vouchingProblem(tx, userId, rule) ?? selfApprovalProblem(tx, userId, asked);
}

/**
 * The reason why too few of a rule's approvers could say their word now, and what helps; undefined if enough could. It
 * is for people: it decides nothing.
 */
export function lackOfApprovers(tx: Tables, requester: string, rule: ApprovalRule): string | undefined {
  const asked = askersOf(tx, requester, rule);
  let able = 0;
  let problem: string | undefined;
  for (const { id, username } of approversOf(tx, rule)) {
    const own = approvalProblem(tx, id, asked, rule) ?? (tx.secondFactors.has(id) ? undefined : noFactor);
    if (own === undefined) able++;
    else problem ??= 'users' in rule.approvers ? `${username}: ${own}` : own;
    if (able >= rule.count) return undefined;
  }
  const who =
    able === 0 ? 'none of its approvers' : able === 1 ? 'only 1 of its approvers' : `only ${able} of its approvers`;
  const why = problem === undefined ? '' : ` (${problem})`;
  return `${who} can approve this now under the rule ${rule.name}${why}; the administrator at the machine can break the glass`;
}

const noFactor = 'they have no second factor yet; once they add one to their account, they can approve';

/** A second factor that the caller proved. */
export interface ProvenFactor {
  readonly id: string;
  readonly kind: 'totp' | 'passkey';
  /** A passkey's signature for this word. */
  readonly assertion?: KeptAssertion;
}

/** The factor that was proved in the session within five minutes; undefined if there is none. */
export function freshFactor({ tx, world, caller }: Pick<Context, 'tx' | 'world' | 'caller'>): ProvenFactor | undefined {
  const factor = tx.sessions.byTokenHash(sessionOf(caller))?.factor;
  const age = factor && world.now() - factor.at;
  if (!factor || age === undefined || age < 0 || age > factorFreshFor) return undefined;
  const known = tx.secondFactors.of(caller.id).find(({ id }) => id === factor.id);
  return known && { id: known.id, kind: known.data.kind };
}

/** Notes for whom a passkey signs. Throws `forbidden` if it signed for another User before: it proves one person. */
export function noteSigner({ tx, caller }: Pick<Context, 'tx' | 'caller'>, { assertion }: ProvenFactor): void {
  if (!assertion) return;
  const { credentialId, publicKey } = assertion;
  for (const mark of [`credential ${credentialId}`, `key ${publicKey}`].map(digestOf)) {
    const signer = tx.approvalRequests.signerOf(mark);
    if (signer === undefined) tx.approvalRequests.noteSigner(mark, caller.id);
    else if (signer !== caller.id) {
      throw new KmsError('forbidden', 'this passkey has signed for another User before', { denies: true });
    }
  }
}

/** A User may have a flag by their identity provider alone, which counts in sessions that it opened. */
function sessionProblem({ flags }: Caller, { approvers }: ApprovalRule): string | undefined {
  if ('users' in approvers || flags.allows(approvers.flag)) return undefined;
  return `the permission flag ${approvers.flag} is missing in this session`;
}

/** Throws `forbidden` for an approver who can say nothing about the request. */
export function needApprover(
  tx: Tables,
  caller: Caller,
  request: ApprovalRequest,
  rules: readonly ApprovalRule[],
): void {
  const problems = rules.map(
    (rule) =>
      sessionProblem(caller, rule) ?? approvalProblem(tx, caller.id, askersOf(tx, request.requester, rule), rule),
  );
  if (problems.some((problem) => problem === undefined)) return;
  const user = tx.users.byId(caller.id);
  const own = rules.findIndex((rule) => user && isApprover(rule, user));
  const problem = problems[own] ?? 'you are not an approver of this request';
  throw new KmsError('forbidden', problem, { denies: true });
}
