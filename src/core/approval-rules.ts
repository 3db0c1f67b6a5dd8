// Approval rules: making, listing, changing and deleting them; which of them cover an act, and who can approve.
import type { ApprovalRule as RuleAnswer } from '../api/approvals.ts';
import type { Body } from '../api/endpoints.ts';
import { invalidField, KmsError } from '../errors.ts';
import { type ActivityDetails, changedFields, type ResourceRef } from '../model/activity-details.ts';
import {
  type Act,
  type ApprovalTerms,
  actProblem,
  covers,
  defaultObjects,
  losesSome,
  mostRules,
  presets,
} from '../model/approval-rules.ts';
import { flagsOfText, isKnownFlag, likelyFlag } from '../model/flags.ts';
import { type JsonObject, sameJson } from '../model/json.ts';
import type { Tables } from '../store/port.ts';
import type { ApprovalRule } from '../store/tables/approval-rules.ts';
import { approversOf, isApprover, lacking, mostLookedAt } from './approvers.ts';
import type { Caller, Context } from './context.ts';
import { vouchingProblem } from './persons.ts';
import { userThing } from './users.ts';

type People = Pick<Tables, 'users' | 'secondFactors' | 'waysIn'>;

/** The rules that hold now. */
export function rulesAt({ approvalRules }: Pick<Tables, 'approvalRules'>, now: number): readonly ApprovalRule[] {
  const rules = approvalRules.list();
  if (rules.length === 0) return rules;
  return rules.filter(({ expiresAt }) => expiresAt === undefined || now < expiresAt);
}

/** Those among the rules that an act falls under, would itself change, or would take a thing away from. */
export function rulesFor(
  rules: readonly ApprovalRule[],
  act: Act & { readonly itself: readonly string[] },
): ApprovalRule[] {
  return rules.filter((rule) => act.itself.includes(rule.id) || covers(rule, act) || losesSome(rule, act));
}

export function createApprovalRule(ctx: Context, fields: Body<'createApprovalRule'>): RuleAnswer {
  const { tx, world, caller } = ctx;
  const known = tx.approvalRules.list();
  if (known.length >= mostRules) throw new KmsError('conflict', `there are ${mostRules} rules already`);
  const now = world.now();
  const draft = {
    objects: defaultObjects,
    count: 1,
    mode: 'ask' as const,
    window: 'once' as const,
    props: {},
    ...fields,
    approvers: approversGiven(tx, fields.approvers),
    breakers: idsOf(tx, 'breakers', fields.breakers ?? []),
    id: world.newId('rule'),
    expiresAt: fields.expires ?? undefined,
    createdAt: now,
    createdBy: caller.id,
    updatedAt: now,
    vouched: {},
    awaits: 0,
  };
  needFuture(fields.expires, now);
  checkRule(known, draft);
  const vouching = { ...draft, vouched: vouchedBy(tx, draft, {}) };
  const rule = { ...vouching, awaits: lacking(tx, vouching) };
  needFlag(tx, rule);
  tx.approvalRules.insert(rule);
  ctx.note({ object: ruleThing(rule), ...newlyVouched(tx, {}, rule), rule: termsTold(rule) });
  return ruleAnswer(tx, rule);
}

export function updateApprovalRule(
  ctx: Context,
  { id, changes }: { readonly id: string; readonly changes: Body<'updateApprovalRule'> },
): RuleAnswer {
  const { tx, world } = ctx;
  const rule = findRule(tx, id);
  const { approvers, breakers, expires, vouch = false, ...plain } = changes;
  const now = world.now();
  const draft: ApprovalRule = {
    ...rule,
    ...plain,
    ...(approvers && { approvers: approversGiven(tx, approvers) }),
    ...(breakers && { breakers: idsOf(tx, 'breakers', breakers) }),
    ...(expires !== undefined && { expiresAt: expires ?? undefined }),
    updatedAt: now,
  };
  const others = tx.approvalRules.list().filter((each) => each.id !== rule.id);
  needFuture(expires, now);
  const isFor = !sameJson(rule.approvers, draft.approvers);
  checkRule(others, draft);
  const vouching = vouch || isFor ? { ...draft, vouched: vouchedBy(tx, draft, vouch ? {} : rule.vouched) } : draft;
  // It awaits no more than before: others could be the requester's own.
  const after = { ...vouching, awaits: rule.awaits > 0 ? Math.min(rule.awaits, lacking(tx, vouching)) : 0 };
  if (isFor) needFlag(tx, after);
  tx.approvalRules.update(after);
  const fieldsOf = (each: ApprovalRule) => ({ name: each.name, vouched: each.vouched, ...termsTold(each) });
  const changed = changedFields(fieldsOf(rule), fieldsOf(after));
  const newly = newlyVouched(tx, rule.vouched, after);
  ctx.note({ object: ruleThing(after), changed, ...newly, rule: termsTold(after) });
  return ruleAnswer(tx, after);
}

export function deleteApprovalRule(ctx: Context, { id }: { readonly id: string }): Record<string, never> {
  const rule = findRule(ctx.tx, id);
  ctx.tx.approvalRules.erase(rule.id);
  ctx.note({ object: ruleThing(rule) });
  return {};
}

/** Those that concern the caller: that they would be asked by, or that their flags lead into. */
export function listApprovalRules({ tx, caller }: Context): { rules: RuleAnswer[] } {
  const rules = tx.approvalRules.list().filter((rule) => concerns(tx, caller, rule));
  return { rules: rules.map((rule) => ruleAnswer(tx, rule)) };
}

export function getApprovalRule({ tx, caller }: Context, { id }: { readonly id: string }): RuleAnswer {
  const rule = findRule(tx, id);
  if (!concerns(tx, caller, rule)) throw noRule();
  return ruleAnswer(tx, rule);
}

export function listApprovalPresets() {
  return { presets: presets.map(({ name, title, actions }) => ({ name, title, actions: [...actions] })) };
}

function concerns({ users }: Pick<Tables, 'users'>, caller: Caller, rule: ApprovalRule): boolean {
  const { flags } = caller;
  if (flags.allows('approval.rule') || flags.allows('approval.read')) return true;
  const user = caller.kind === 'user' ? users.byId(caller.id) : undefined;
  if (user && (isApprover(rule, user) || rule.breakers.includes(user.id))) return true;
  return rule.actions.some((action) => flags.touches(action));
}

/** By id or name. */
function lookUpRule({ approvalRules }: Pick<Tables, 'approvalRules'>, ref: string): ApprovalRule | undefined {
  const rules = approvalRules.list();
  return rules.find(({ id }) => id === ref) ?? rules.find(({ name }) => name === ref);
}

/** Throws `not-found`. */
function findRule(tables: Pick<Tables, 'approvalRules'>, ref: string): ApprovalRule {
  const rule = lookUpRule(tables, ref);
  if (rule) return rule;
  throw noRule();
}

/** The rule of that id or name, if there is one. */
export function ruleNamed(tables: Pick<Tables, 'approvalRules'>, ref: string): ResourceRef | undefined {
  const rule = lookUpRule(tables, ref);
  return rule && ruleThing(rule);
}

function noRule(): KmsError {
  return new KmsError('not-found', 'there is no such rule');
}

function needFuture(expires: number | null | undefined, now: number): void {
  if (typeof expires === 'number' && expires <= now) throw invalidField('expires', 'is past');
}

/** Throws `invalid` for a rule that cannot be stored. */
function checkRule(others: readonly ApprovalRule[], rule: ApprovalRule): void {
  if (others.some(({ name }) => name === rule.name)) throw invalidField('name', 'is the name of another rule');
  if (rule.actions.length === 0) throw invalidField('actions', 'expected at least one');
  const [problem] = rule.actions.flatMap((action) => actProblem(action) ?? []);
  if (problem !== undefined) throw invalidField('actions', problem);
  if (rule.objects.length === 0) throw invalidField('objects', 'expected at least one');
  const { approvers } = rule;
  if ('users' in approvers && approvers.users.length < rule.count) {
    const who = approvers.users.length === 1 ? '1 approver' : `${approvers.users.length} approvers`;
    throw invalidField('count', `is more than the ${who}`);
  }
}

/** Refuses a flag that none of the Users has if it is probably a slip. */
function needFlag({ users }: Pick<Tables, 'users'>, { approvers }: ApprovalRule): void {
  if (!('flag' in approvers) || isKnownFlag(approvers.flag) || isHeld(users, approvers.flag)) return;
  const meant = likelyFlag(approvers.flag);
  if (meant === undefined) return;
  throw invalidField('approvers', `no User has the permission flag ${approvers.flag}; did you mean ${meant}?`);
}

/** Whether a User has the flag, otherwise than by `*`. */
function isHeld(users: Tables['users'], flag: string): boolean {
  let isFound = false;
  users.list({ limit: mostLookedAt }, ({ flagsText }) => {
    const held = flagsOfText(flagsText);
    isFound ||= !held.covers('*') && held.allows(flag);
  });
  return isFound;
}

type Vouched = ApprovalRule['vouched'];

/** The approvers as they are now, each vouched for by the number of the last way in; those of `before` stay. */
function vouchedBy(tx: Tables, rule: ApprovalRule, before: Vouched): Vouched {
  const now = tx.waysIn.last();
  return Object.fromEntries(approversOf(tx, rule).map(({ id }) => [id, before[id] ?? now]));
}

/** For the record, and for those who approve the change: the Users for whom the rule did not stand before. */
function newlyVouched(
  tx: Tables,
  before: Vouched,
  rule: ApprovalRule,
): Pick<ActivityDetails, 'objects' | 'objectCount'> {
  const ids = Object.keys(rule.vouched).filter(
    (id) => rule.vouched[id] !== before[id] && vouchingProblem(tx, id, { vouched: before }) !== undefined,
  );
  const objects = ids.flatMap((id) => tx.users.byId(id) ?? []).map(userThing);
  return { objects, objectCount: objects.length };
}

function approversGiven(
  tx: Tables,
  { users, flag }: Body<'createApprovalRule'>['approvers'],
): ApprovalTerms['approvers'] {
  return flag === undefined ? { users: idsOf(tx, 'approvers', users ?? []) } : { flag: flag.toLowerCase() };
}

/** Ids of Users given by id or name. */
function idsOf({ users }: Pick<Tables, 'users'>, field: string, refs: readonly string[]): string[] {
  const ids = refs.map((ref) => {
    const user = users.byId(ref) ?? users.byUsername(ref);
    if (!user) throw invalidField(field, `there is no User ${ref.slice(0, 64)}`);
    return user.id;
  });
  return [...new Set(ids)];
}

function ruleThing({ id, name }: Pick<ApprovalRule, 'id' | 'name'>): ResourceRef {
  return { type: 'approval-rule', id, name };
}

/** A rule as activity records tell it. */
export function termsTold(rule: ApprovalRule): JsonObject {
  const { actions, objects, approvers, count, mode, window, breakers, expiresAt = null, props } = rule;
  const told = { actions, objects, approvers, count, mode, window, breakers, expires: expiresAt };
  return Object.keys(props).length > 0 ? { ...told, props } : told;
}

function ruleAnswer(tx: People, rule: ApprovalRule): RuleAnswer {
  const { id, name, actions, objects, approvers, count, mode, window, breakers, props } = rule;
  return {
    id,
    name,
    actions: [...actions],
    objects: [...objects],
    approvers: 'users' in approvers ? { users: approvers.users.map((user) => userNamed(tx, user)) } : { ...approvers },
    count,
    selfApproval: false,
    mode,
    window,
    breakers: breakers.map((user) => userNamed(tx, user)),
    expires: rule.expiresAt ?? null,
    props,
    able: ableIn(tx, rule),
    createdAt: rule.createdAt,
    createdBy: rule.createdBy,
    updatedAt: rule.updatedAt,
  };
}

/** Rules that fewer can satisfy now than they need, with the number of those who can. */
export function unmetRules(
  tx: Tables,
  now: number,
): { readonly name: string; readonly able: number; readonly count: number }[] {
  const rules = rulesAt(tx, now).map((rule) => ({ name: rule.name, able: ableIn(tx, rule), count: rule.count }));
  return rules.filter(({ able, count }) => able < count);
}

function ableIn(tx: People, rule: ApprovalRule): number {
  return approversOf(tx, rule).filter(({ id }) => isAble(tx, id, rule)).length;
}

function isAble(tx: People, userId: string, rule: ApprovalRule): boolean {
  return tx.secondFactors.has(userId) && vouchingProblem(tx, userId, rule) === undefined;
}

/** A User as answers name one; without a name if they are gone. */
export function userNamed({ users }: Pick<Tables, 'users'>, id: string): { id: string; name: string } {
  return { id, name: users.byId(id)?.username ?? '' };
}
