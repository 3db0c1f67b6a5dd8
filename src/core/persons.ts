// Persons behind identities, as far as the appliance can know: who was given a way into an API key or a User's account,
// and whose second factors are the same. What one person asked for, the same person cannot approve.
import { shellQuoted } from '../model/shell.ts';
import type { Tables } from '../store/port.ts';
import type { ApprovalRule } from '../store/tables/approval-rules.ts';
import type { BrokenGlass } from '../store/tables/broken-glass.ts';
import type { User } from '../store/tables/users.ts';
import { mostWays } from '../store/tables/ways-in.ts';
import type { Caller } from './context.ts';

export function canLogIn({ hasPassword, lastLoginAt }: User): boolean {
  return hasPassword || lastLoginAt !== undefined;
}

type People = Pick<Tables, 'secondFactors' | 'waysIn'>;

/** Ways that are looked at behind one identity. */
const mostBehind = 2000;

/** Notes that the caller could get into an API key or a User's account from now on. */
export function noteWayIn(
  { tx, caller }: { readonly tx: Pick<Tables, 'waysIn'>; readonly caller: Pick<Caller, 'id'> },
  identity: string,
): void {
  if (caller.id !== identity) tx.waysIn.note(identity, caller.id);
}

/**
 * The identities that could act as this one: itself, those that were given a way in, and those that had one into them
 * by then. `vouchedAt` tells, by the number of the last way in, up to when an identity was known to be a person of its
 * own; 0 if it was not. Undefined if they are too many to tell.
 */
export function behind(
  { waysIn }: Pick<Tables, 'waysIn'>,
  id: string,
  vouchedAt: (identity: string) => number,
): ReadonlySet<string> | undefined {
  /** Each with the last way by which it could have got in; one that is set again is looked at again. */
  const reached = new Map([[id, Number.POSITIVE_INFINITY]]);
  let looked = 0;
  for (const [each, until] of reached) {
    const ways = waysIn.since(each, vouchedAt(each));
    looked += ways.length;
    if (ways.length > mostWays || looked > mostBehind) return undefined;
    for (const { who, first, reach } of ways) {
      const at = Math.min(reach, until);
      if (first > until || at <= (reached.get(who) ?? -1)) continue;
      reached.delete(who);
      reached.set(who, at);
    }
  }
  return new Set(reached.keys());
}

/** Those who could be asking where `requester` asks. Users for whom the rule vouches are persons of their own. */
export function askersOf(
  tables: People,
  requester: string,
  { vouched }: Pick<ApprovalRule, 'vouched'>,
): ReadonlySet<string> | undefined {
  return behind(tables, requester, (id) => vouched[id] ?? 0);
}

/** Texts that are equal for equal second factors. */
export function factorMarks({ secondFactors }: Pick<Tables, 'secondFactors'>, userId: string): string[] {
  return secondFactors
    .of(userId)
    .map(({ data, credentialId = '' }) => (data.kind === 'totp' ? `totp ${data.secret}` : `passkey ${credentialId}`));
}

/** Why the User cannot approve what one of these, given by `askersOf`, asked for; undefined if they can. */
export function selfApprovalProblem(
  tables: People,
  userId: string,
  asked: ReadonlySet<string> | undefined,
): string | undefined {
  if (!asked) return 'too many could have asked for it: the appliance cannot rule out that this User did';
  if (asked.has(userId)) return 'it was asked for by this User, or by an identity that they could have had access to';
  if (shareFactors(tables, userId, asked)) return 'this User has the same second factor as the requester';
  return undefined;
}

function shareFactors(tables: People, userId: string, others: Iterable<string>): boolean {
  const own = new Set(factorMarks(tables, userId));
  if (own.size === 0) return false;
  return [...others].some((id) => factorMarks(tables, id).some((mark) => own.has(mark)));
}

/** Why the rule does not stand for a User, as their account is now; undefined if it does. */
export function vouchingProblem(
  { waysIn }: Pick<Tables, 'waysIn'>,
  userId: string,
  { vouched, name, awaits = 0 }: Pick<ApprovalRule, 'vouched'> & Partial<Pick<ApprovalRule, 'name' | 'awaits'>>,
): string | undefined {
  const at = vouched[userId];
  if (at === undefined && awaits > 0) return undefined;
  const help = `ask for \`kms approval rule update ${shellWord(name ?? 'RULE')} --vouch\``;
  if (at === undefined) {
    return `the rule does not vouch for this User, who became an approver after it was made; ${help}`;
  }
  if (waysIn.since(userId, at).every(({ who }) => isOwnKey(waysIn, userId, who, at))) return undefined;
  return `somebody else could have had access to this User's account since the rule vouched for it; ${help}`;
}

function shellWord(text: string): string {
  return /^[\w.-]+$/.test(text) && !text.startsWith('-') ? text : shellQuoted(text);
}

/** Whether an API key was made by that User alone, after the way of that number. */
function isOwnKey(waysIn: People['waysIn'], userId: string, id: string, after: number): boolean {
  const ways = isUser(id) ? [] : waysIn.since(id, 0);
  return ways.length > 0 && ways.every(({ who, first }) => who === userId && first > after);
}

type Broken = Pick<BrokenGlass, 'by' | 'persons'>;

/**
 * Whether an identity may be who broke the glass: the same, one that they had a way into, or a User with a second
 * factor of theirs. Users for whom the rule vouched before are persons of their own; only if none of them could
 * acknowledge it any more, those for whom a rule vouches now.
 */
export function isOfBreaker(
  tables: People & Pick<Tables, 'approvalRules' | 'users'>,
  id: string,
  broken: Broken,
): boolean {
  const isLeft = strangersTo(tables, broken).length > 0;
  return couldBeBreaker(tables, id, isLeft ? broken : { ...broken, persons: vouchedNow(tables.approvalRules.list()) });
}

/** Users for whom the rule vouched before, and who are certainly not who broke the glass. */
export function strangersTo(tables: People & Pick<Tables, 'users'>, broken: Broken): User[] {
  const users = Object.keys(broken.persons).flatMap((id) => tables.users.byId(id) ?? []);
  return users.filter((user) => canLogIn(user) && !couldBeBreaker(tables, user.id, broken));
}

function couldBeBreaker(tables: People, id: string, { by, persons }: Broken): boolean {
  const could = behind(tables, id, (each) => persons[each] ?? 0);
  return !could || could.has(by) || shareFactors(tables, by, could);
}

/**
 * Users for whom the first of these rules vouches, each with the last way in by then. The caller who breaks the glass
 * could not have changed that rule alone, but could have made the others.
 */
export function vouchedByFirst([first]: readonly Pick<ApprovalRule, 'vouched'>[]): ApprovalRule['vouched'] {
  return first?.vouched ?? {};
}

/** The Users for whom one of the rules vouches, each with the last way in by then. */
function vouchedNow(rules: readonly Pick<ApprovalRule, 'vouched'>[]): ApprovalRule['vouched'] {
  const all = new Map<string, number>();
  for (const { vouched } of rules) {
    for (const [id, at] of Object.entries(vouched)) all.set(id, Math.max(at, all.get(id) ?? 0));
  }
  return Object.fromEntries(all);
}

function isUser(id: string): boolean {
  return id.startsWith('user_');
}
