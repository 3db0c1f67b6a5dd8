// Persons behind identities, as far as the appliance can know: who owns or made an API key, who could have got into a
// User's account, and whose second factors are the same. What one person asked for, the same person cannot approve.
import type { Tables } from '../store/port.ts';
import type { ApprovalRule } from '../store/tables/approval-rules.ts';
import type { Caller } from './context.ts';

/** The id of the administrator at the machine. */
const atTheMachine = 'local';

type People = Pick<Tables, 'apiKeys' | 'proofs' | 'users' | 'secondFactors' | 'userMakers'>;

/** Steps from one identity to the next. */
const mostSteps = 50;

/**
 * The identities that could have made a request of this one: itself, and for an API key its owner, its maker and those
 * who added proofs to it, further on up to the first User. The administrator at the machine, who could be behind all,
 * is so only for their own requests.
 */
function behind({ apiKeys, proofs }: People, id: string): ReadonlySet<string> {
  const found = new Set([id]);
  for (const each of found) {
    if (found.size > mostSteps) break;
    const key = apiKeys.byId(each);
    if (!key) continue;
    const makers = [key.userId, key.createdBy, ...proofs.ofKey(each).map(({ createdBy }) => createdBy)];
    for (const maker of makers) if (maker !== undefined && maker !== atTheMachine) found.add(maker);
  }
  return found;
}

/** The identities that could have got into a User's account since the rule was set, or at all if it does not vouch. */
function makersOf({ userMakers }: People, userId: string, rule: ApprovalRule): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { maker, at } of userMakers.of(userId)) {
    if (!rule.vouched.includes(userId) || at > rule.updatedAt) found.add(maker);
  }
  for (const each of found) {
    if (found.size > mostSteps) break;
    for (const { maker } of userMakers.of(each)) found.add(maker);
  }
  return found;
}

/** Texts that are equal for equal second factors. */
export function factorMarks({ secondFactors }: Pick<Tables, 'secondFactors'>, userId: string): string[] {
  return secondFactors
    .of(userId)
    .map(({ data, credentialId = '' }) => (data.kind === 'totp' ? `totp ${data.secret}` : `passkey ${credentialId}`));
}

/** Why the User cannot approve what `requester` asked for, under that rule; undefined if they can. */
export function selfApprovalProblem(
  tables: People,
  userId: string,
  requester: string,
  rule: ApprovalRule,
): string | undefined {
  const asked = behind(tables, requester);
  if (asked.has(userId)) return 'it was asked for by this User, or by an API key of theirs';
  const makers = makersOf(tables, userId, rule);
  if ([...makers].some((maker) => asked.has(maker))) {
    return 'who asked for it could have got into the account of this User, whom they invited or gave a new way in since the rule was set';
  }
  const own = new Set(factorMarks(tables, userId));
  if ([...asked].some((id) => factorMarks(tables, id).some((mark) => own.has(mark)))) {
    return 'this User has a second factor of who asked for it';
  }
  return undefined;
}

/** Notes that the caller could get into a User's account from now on. */
export function noteMaker(
  { tx, world, caller }: { tx: Pick<Tables, 'userMakers'>; world: { now(): number }; caller: Pick<Caller, 'id'> },
  userId: string,
): void {
  if (caller.id !== userId) tx.userMakers.note(userId, caller.id, world.now());
}
