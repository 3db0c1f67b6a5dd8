// Approvers of a rule: who they are, and the newcomers for whom a rule vouches that was made before they were there.
import { mostVouched } from '../model/approval-rules.ts';
import { flagsOfText } from '../model/flags.ts';
import type { Tables, Transaction } from '../store/port.ts';
import type { ApprovalRule } from '../store/tables/approval-rules.ts';
import type { User } from '../store/tables/users.ts';
import { activityRecord } from './activity.ts';
import type { World } from './context.ts';
import { canLogIn } from './persons.ts';

/** Users looked through for holders of a flag. */
export const mostLookedAt = 10_000;

/** Whether the User is one whose word the rule asks for. Whether the word counts, `approval-words.ts` says. */
export function isApprover({ approvers }: ApprovalRule, user: Pick<User, 'id' | 'flagsText'>): boolean {
  if ('users' in approvers) return approvers.users.includes(user.id);
  return flagsOfText(user.flagsText).allows(approvers.flag);
}

/** Those who can log in, and are approvers. */
export function approversOf({ users }: Pick<Tables, 'users'>, rule: ApprovalRule): User[] {
  if ('users' in rule.approvers) {
    return rule.approvers.users.flatMap((id) => users.byId(id) ?? []).filter(canLogIn);
  }
  const found: User[] = [];
  users.list({ limit: mostLookedAt }, (user) => {
    if (found.length < mostVouched && canLogIn(user) && isApprover(rule, user)) found.push(user);
  });
  return found;
}

/**
 * Number of approvers that a rule still lacks. A User whom it vouches for may be gone, which leaves a place. One whose
 * account others have had access to leaves none: otherwise a caller who can change Users could let in their own.
 */
export function lacking(tx: Pick<Tables, 'users'>, rule: ApprovalRule): number {
  const known = approversOf(tx, rule).filter(({ id }) => rule.vouched[id] !== undefined);
  return Math.max(0, rule.count - known.length);
}

/**
 * Has rules that still await approvers vouch for this User, if they are one by now: to be called once somebody has a
 * second factor, or other flags.
 */
export function welcomeApprover({ tx, world }: { readonly tx: Transaction; readonly world: World }, userId: string) {
  const awaiting = tx.approvalRules.list().filter(({ awaits, vouched }) => awaits > 0 && vouched[userId] === undefined);
  const user = awaiting.length > 0 && tx.secondFactors.has(userId) ? tx.users.byId(userId) : undefined;
  if (!user || !canLogIn(user)) return;
  const now = tx.waysIn.last();
  for (const rule of awaiting.filter((each) => isApprover(each, user))) {
    const vouched = { ...rule.vouched, [userId]: now };
    tx.approvalRules.update({ ...rule, vouched, awaits: Math.min(rule.awaits, lacking(tx, { ...rule, vouched })) });
    const object = { type: 'approval-rule', id: rule.id, name: rule.name } as const;
    const objects = [{ type: 'user', id: userId, name: user.username }] as const;
    tx.record(activityRecord(world, { keyid: userId, action: 'approval.vouch', deed: { object, objects } }));
  }
}
