// The decision whether an act may be done now, in the transaction that does it: under which rules it falls, whether it
// has the words that these need, and whether the glass is broken for it. An act that must wait becomes a request.
import { KmsError } from '../errors.ts';
import { type ActivityDetails, mostNamed, type ResourceRef } from '../model/activity-details.ts';
import { type Act, actName, furtherActions, type RequestState, requestLasts } from '../model/approval-rules.ts';
import { isKnownFlag } from '../model/flags.ts';
import type { JsonObject } from '../model/json.ts';
import type { ApprovalRequest } from '../store/tables/approval-requests.ts';
import type { ApprovalRule } from '../store/tables/approval-rules.ts';
import { activityRecord } from './activity.ts';
import { expire, expireAnswered } from './approval-ends.ts';
import { holderOf, isAdministrator } from './approval-holders.ts';
import { isThere, shownObject, shownVouched } from './approval-objects.ts';
import { rulesAt, rulesFor } from './approval-rules.ts';
import { isOnce, lastingOf, type RequestNow, requestNow } from './approval-standing.ts';
import { digestOf, shownFields, statedFurther, statementOf } from './approval-statement.ts';
import { lackOfApprovers, standingOf } from './approval-words.ts';
import type { Context } from './context.ts';
import { localCaller } from './credential.ts';
import { vouchedByFirst } from './persons.ts';

/** Open requests of one caller with their API keys, and of a tenant; the last ones are kept for administrators. */
const mostOfHolder = 100;
const mostOpen = 1000;
const keptForAdministrators = 100;
/** A caller takes at most this part of the places that are left. */
const share = 5;
/** New requests of one caller with their API keys, in an hour. */
const mostInHour = 200;
const hour = 3_600_000;
/** Ended requests are kept for as many milliseconds, and so many of a caller; some older ones go with each new one. */
const kept = 30 * 86_400_000;
const keptOfHolder = 500;
const purgedAtOnce = 20;

/** An act that a caller is about to do, or has done in a savepoint that can be taken back. */
export interface PlannedAct extends Act {
  /** Rules that it changes. */
  readonly itself: readonly string[];
  /** Name and ring of its own record. */
  readonly recorded: string;
  readonly ringname: string;
  readonly operation: string;
  readonly object: ResourceRef | null;
  /** Ids of further things that were there before and that parameters and body mean by their names. */
  readonly besides?: readonly string[];
  readonly parameters: JsonObject;
  readonly body: JsonObject;
  /** Whether the body matters where a rule has a window: it does not for a use of a key. */
  readonly isUse: boolean;
  readonly deed: ActivityDetails | undefined;
  /** The object after the act; to be called before the act is taken back. */
  after(): JsonObject | undefined;
  /** In the words of the caller. */
  readonly reason: string | undefined;
  /** Why the administrator at the machine breaks the glass for it. Throws `forbidden` for anybody else who would. */
  readonly breaking: () => string | undefined;
}

type Deciding = Pick<Context, 'tx' | 'tenant' | 'world' | 'caller' | 'address' | 'dialect'>;

/** Thrown for an act that must wait; what it did is to be taken back, and `askFor` to be called. */
export class NeedsWords extends Error {
  readonly act: PlannedAct;
  readonly rules: readonly ApprovalRule[];
  /** The object as the act left it. */
  readonly after: JsonObject | undefined;

  constructor(act: PlannedAct, rules: readonly ApprovalRule[]) {
    super('this needs the approval of others');
    this.act = act;
    this.rules = rules;
    this.after = act.after();
  }
}

/** Rules, and the caller's requests, before an act. */
export interface Beforehand {
  readonly rules: readonly ApprovalRule[];
  /** The open request for the act of that hash, as it was before the act. */
  open(hash: string): RequestNow | undefined;
}

/**
 * Undefined if no rule holds: then there is nothing to decide.
 *
 * @param changing the operation, if it may change rules, Users or whose word counts: then the caller's requests for it
 *   are looked at beforehand. Otherwise the one for the act is enough, and nothing else costs anything.
 */
export function lookBefore(
  { tx, world, caller }: Pick<Deciding, 'tx' | 'world' | 'caller'>,
  changing?: string,
): Beforehand | undefined {
  const now = world.now();
  const rules = rulesAt(tx, now);
  if (rules.length === 0) return undefined;
  const look = (request: ApprovalRequest) => requestNow(tx, request, now, rulesFor(rules, request.terms));
  if (changing === undefined) {
    return {
      rules,
      open: (hash) => {
        const request = tx.approvalRequests.openFor(hash);
        return request && look(request);
      },
    };
  }
  const asked = tx.approvalRequests.answeredOf(caller.id, changing);
  const open = new Map(asked.map((request) => [request.act, look(request)]));
  return { rules, open: (hash) => open.get(hash) };
}

/**
 * Lets an act pass that may be done now, and uses up what it was granted. Returns what its record says of that;
 * undefined if no rule covers it. Throws `NeedsWords`.
 */
export function decideAct(ctx: Deciding, act: PlannedAct, before: Beforehand): JsonObject | undefined {
  const rules = rulesFor(before.rules, act);
  if (rules.length === 0) return undefined;
  const breaking = act.breaking();
  return breaking === undefined
    ? useUp(ctx, act, grantOf(ctx, act, before, rules), rules)
    : breakFor(ctx, act, rules, breaking);
}

/** Throws `NeedsWords` for an act that may not be done now, and uses nothing up. */
export function needWords(ctx: Deciding, act: PlannedAct, before: Beforehand): undefined {
  const rules = rulesFor(before.rules, act);
  if (rules.length > 0 && act.breaking() === undefined) grantOf(ctx, act, before, rules);
}

/** The request by which the act may be done now. */
function grantOf(ctx: Deciding, act: PlannedAct, before: Beforehand, rules: readonly ApprovalRule[]): RequestNow {
  const known = before.open(actHash(ctx, act, rules));
  const isGranted = known?.state === 'granted' && rules.every((rule) => known.rules.includes(rule));
  if (!known || !isGranted) throw new NeedsWords(act, rules);
  return known;
}

function useUp(
  { tx, world }: Deciding,
  act: PlannedAct,
  known: RequestNow,
  covering: readonly ApprovalRule[],
): JsonObject {
  const { request, standing, isBroken: broken } = known;
  const further = statedFurther(act.further);
  const { id, uses, terms } = request;
  const now = world.now();
  if (request.grantedAt === undefined) tx.approvalRequests.grant(id, { now, endsAt: now + terms.lasts });
  tx.approvalRequests.noteUse(id);
  if (broken || terms.isOnce || isOnceFor(act, covering)) tx.approvalRequests.end(id, 'done', now);
  return {
    id,
    digest: tx.approvalRequests.detailsOf(id)?.digest,
    use: uses + 1,
    ...(further.length > 0 && { further }),
    ...(broken && { broken }),
    rules: standing.rules.map(({ rule, by }) => ({ id: rule.id, count: rule.count, window: rule.window, words: by })),
  };
}

function breakFor(ctx: Deciding, act: PlannedAct, rules: readonly ApprovalRule[], reason: string): JsonObject {
  const { tx, world, caller, address } = ctx;
  const id = world.newId('glass');
  const action = flagOf(act);
  const { object } = act;
  const at = world.now();
  const persons = vouchedByFirst(rules);
  tx.brokenGlass.insert({ id, at, by: caller.id, reason, action, object, requestId: undefined, persons });
  const approval = { glass: id, action, reason };
  const deed = { object: { type: 'broken-glass', id }, approval } as const;
  tx.record(activityRecord(world, { keyid: caller.id, action: 'approval.break-glass', address, deed }));
  return { glass: id, reason };
}

/** Takes back the breaking of glass for an act that was refused with this status; the log keeps both. */
export function unbreak({ tx, world }: Pick<Deciding, 'tx' | 'world'>, id: string, status: number): void {
  const broken = tx.brokenGlass.byId(id);
  if (!broken) return;
  tx.brokenGlass.erase(id);
  const deed = { object: { type: 'broken-glass', id }, approval: { glass: id, action: broken.action } } as const;
  tx.record(activityRecord(world, { keyid: broken.by, action: 'approval.break-glass', status, deed }));
}

/**
 * Ends what has words in a restored backup, and notes broken glass if a rule covers restoring: the appliance that could
 * ask was not there.
 */
export function noteRestored({ tx, world }: Pick<Deciding, 'tx' | 'world'>, from: 'backup' | 'shipped'): void {
  expireAnswered({ tx, world });
  const action = furtherActions.restore;
  const act = { actions: [action], objects: [], itself: [] };
  const rules = rulesFor(rulesAt(tx, world.now()), act);
  if (rules.length === 0) return;
  const persons = vouchedByFirst(rules);
  const id = world.newId('glass');
  const by = localCaller.id;
  const reason = from === 'backup' ? 'a backup was restored' : 'the appliance goes on from its shipped copy';
  const at = world.now();
  tx.brokenGlass.insert({ id, at, by, reason, action, object: null, requestId: undefined, persons });
  const deed = { object: { type: 'broken-glass', id }, approval: { glass: id, action, reason } } as const;
  tx.record(activityRecord(world, { keyid: by, action: 'approval.break-glass', deed }));
}

/** The flag that the act takes. */
function flagOf({ actions, ring }: Act): string {
  return actName(actions[0] ?? '', ring);
}

/** The caller, and what they do to what, and to which further things; with a window, any use of a key is the same. */
function actHash({ tx, caller, tenant }: Deciding, act: PlannedAct, rules: readonly ApprovalRule[]): string {
  const { operation, actions, ring = null, object, besides = [], parameters } = act;
  const body = bodyOf(tenant, act, rules);
  const of = object && { type: object.type, id: object.id };
  const further = statedFurther(act.further);
  const outcome = outcomeOf(tx, act);
  const others = (act.further ?? []).map((each) => (each.object ? [] : each.objects));
  const whole = { operation, actions, ring, object: of, further, others, parameters, body, outcome };
  return digestOf({ caller: caller.id, ...whole, ...(besides.length > 0 && { besides }) });
}

/**
 * The terms of a rule afterwards, with ids where the request has names, and the Users for whom it newly vouches, as
 * their accounts are: what makes another rule is another act.
 */
function outcomeOf({ waysIn }: Deciding['tx'], { deed = {} }: PlannedAct): JsonObject | null {
  const { object, rule = null, objects = [] } = deed;
  if (object?.type !== 'approval-rule') return null;
  return { rule, vouched: objects.map(({ id }) => ({ id, last: waysIn.lastOf(id) })) };
}

function bodyOf({ keys }: Deciding['tenant'], act: PlannedAct, rules: readonly ApprovalRule[]): JsonObject | null {
  return act.isUse && !isOnceFor(act, rules) ? null : shownFields(keys, act.body);
}

/** A rule is changed one time, whatever window it has for what it covers. */
function isOnceFor({ itself }: PlannedAct, rules: readonly ApprovalRule[]): boolean {
  return itself.length > 0 || isOnce(rules);
}

export interface Wait {
  readonly id: string;
  readonly requester: string;
  readonly needed: number;
  readonly given: number;
  /** Whether the rules want the act held for a while. */
  readonly holds: boolean;
  /** Whether the request is new, so that approvers are to be told. */
  readonly isNew: boolean;
  readonly message: string;
}

/**
 * Makes the request for an act that was taken back, or joins it. Throws `quota` if too many are open.
 *
 * @param held the request that the act was held for: no other is made.
 */
export function askFor(ctx: Deciding, needs: NeedsWords, held?: string): Wait {
  const { tx, world } = ctx;
  const { act, rules } = needs;
  const hash = actHash(ctx, act, rules);
  const open = tx.approvalRequests.openFor(hash);
  const live = open && isOver(ctx, requestNow(tx, open, world.now()), rules) ? undefined : open;
  if (!live && held !== undefined) return waitOf(ctx, tx.approvalRequests.byId(held), rules);
  const request = live ?? makeRequest(ctx, needs, hash);
  const isEarly = world.now() < request.createdAt + requestLasts;
  const holds = held === undefined && isEarly && rules.every(({ mode }) => mode === 'hold');
  return { ...waitOf(ctx, request, rules), holds, isNew: !live };
}

function waitOf({ tx, caller }: Deciding, request: ApprovalRequest | undefined, rules: readonly ApprovalRule[]): Wait {
  const { id = '', requester = caller.id, endedAt, state = 'expired' } = request ?? {};
  const { needed, given } = standingOf(tx, requester, tx.approvalRequests.wordsOf(id), rules);
  const approval = needed === 1 ? "another user's approval" : `the approval of ${needed} others`;
  let lack: string | undefined;
  for (const rule of rules) lack ??= lackOfApprovers(tx, requester, rule);
  const what = given === 0 ? approval : `${approval}, and has ${given}`;
  const waits = `this needs ${what}: request ${id} is pending; ${lack ?? 'try again once it is approved'}`;
  const message = request && endedAt === undefined ? waits : overMessage(id, state);
  return { id, requester, needed, given, holds: false, isNew: false, message };
}

/** The message for an act whose request has ended in the meantime. */
export function overMessage(id: string, state: RequestState): string {
  const how: Partial<Record<RequestState, string>> = { denied: 'was denied', withdrawn: 'was withdrawn' };
  return `the request ${id} for this ${how[state] ?? 'is over'}; trying again makes a new one`;
}

/**
 * Whether no word can bring the request any further: its time is over, or the act falls under other rules by now than
 * those who decide it are asked by, such as after the thing got another name. If so, it is ended.
 */
function isOver(ctx: Deciding, known: RequestNow, rules: readonly ApprovalRule[]): boolean {
  const asked = new Set(rules.map(({ id }) => id));
  const isSame = known.rules.length === asked.size && known.rules.every(({ id }) => asked.has(id));
  return lapse(ctx, isSame ? known : { ...known, state: known.request.uses > 0 ? 'done' : 'expired' });
}

/** Ends a request whose time is over; returns whether it did. */
function lapse({ tx, world }: Pick<Deciding, 'tx' | 'world'>, { request, state }: RequestNow): boolean {
  if (state !== 'expired' && state !== 'done') return false;
  if (state === 'expired') expire({ tx, world }, request);
  else tx.approvalRequests.end(request.id, state, world.now());
  return true;
}

function makeRequest(ctx: Deciding, { act, rules, after }: NeedsWords, hash: string): ApprovalRequest {
  const { tx, tenant, world, caller, address, dialect } = ctx;
  const now = world.now();
  const holder = holderOf(ctx);
  endOverdue(ctx);
  needPlace(ctx, holder);
  tx.approvalRequests.purge(now - kept, purgedAtOnce);
  tx.approvalRequests.purgeOf(holder, keptOfHolder, purgedAtOnce);
  const id = world.newId('appr');
  const { operation, object, parameters, recorded, ringname, reason } = act;
  const { actions, ring, objects, isForAll, renamed, further, itself } = act;
  const action = flagOf(act);
  const body = bodyOf(tenant, act, rules);
  const statement = statementOf({
    tenant: tenant.id,
    request: id,
    requester: caller.id,
    action,
    recorded,
    ring: ringname,
    operation,
    object,
    further: statedFurther(further),
    parameters,
    body,
    rules: rules
      .map(({ id: rule, count, window, expiresAt: expires = null }) => ({ id: rule, count, window, expires }))
      .sort((a, b) => (a.id < b.id ? -1 : 1)),
    at: now,
  });
  const digest = digestOf(statement);
  const request = {
    ...({ id, act: hash, requester: caller.id, holder, state: 'pending', uses: 0 } as const),
    terms: {
      ...{ actions, objects, itself, isOnce: isOnceFor(act, rules), lasts: lastingOf(rules) },
      ...(ring !== undefined && { ring }),
      ...(isForAll && { isForAll }),
      ...(renamed && { renamed }),
      ...(further && further.length > 0 && { further }),
    },
    createdAt: now,
    grantedAt: undefined,
    endsAt: now + requestLasts,
    endedAt: undefined,
    brokenBy: undefined,
  };
  const details = {
    ...{ action, operation, object, parameters, body, statement, digest },
    ...(dialect !== undefined && { dialect }),
    ...(address !== undefined && { address }),
    ...(reason !== undefined && { reason }),
    effects: { ...effectsOf(ctx, act, { before: object && shownObject(tx, object), after }), ...vouchedIn(ctx, act) },
  };
  tx.approvalRequests.insert({ ...request, details });
  const approval = { id, statement, digest, ...(reason !== undefined && { reason }) };
  const deed = { object: { type: 'approval', id }, approval } as const;
  const props = dialect === undefined ? {} : { dialect };
  tx.record(activityRecord(world, { keyid: caller.id, action: 'approval.request', address, props, deed }));
  return request;
}

const wayOut = 'withdraw some, or have them decided; each expires 24 hours after it was made';

/** Throws `quota` if the caller, or the tenant, has too many requests already. */
function needPlace({ tx, world, caller }: Deciding, holder: string): void {
  const now = world.now();
  if (tx.approvalRequests.countMadeBy(holder, now - hour, now) >= mostInHour) {
    throw new KmsError(
      'quota',
      `this caller made ${mostInHour} requests within an hour: wait until some of them are older than that`,
    );
  }
  const isAdministrators = isAdministrator(caller);
  const left = mostOpen - tx.approvalRequests.countOpen(now) - (isAdministrators ? 0 : keptForAdministrators);
  if (left <= 0) throw new KmsError('quota', `too many requests are pending already: ${wayOut}`);
  const most = Math.min(mostOfHolder, isAdministrators ? left : Math.ceil(left / share));
  if (tx.approvalRequests.countOpenOf(holder, now) >= most) {
    throw new KmsError('quota', `${most} requests of this caller are pending already: ${wayOut}`);
  }
}

/** Ends some requests whose time is over. */
function endOverdue(ctx: Pick<Deciding, 'tx' | 'world'>): void {
  const now = ctx.world.now();
  for (const request of ctx.tx.approvalRequests.overdue(now, purgedAtOnce))
    lapse(ctx, requestNow(ctx.tx, request, now));
}

function vouchedIn({ tx, caller }: Deciding, { deed = {} }: PlannedAct): JsonObject {
  const vouched = shownVouched(tx, caller.id, deed);
  const { length } = deed.objects ?? [];
  const vouchedCount = length > mostNamed ? length : undefined;
  return vouched ? { vouched, vouchedCount, objects: [], objectCount: undefined } : {};
}

function effectsOf(
  { tx, tenant }: Deciding,
  { deed = {} }: PlannedAct,
  { before, after }: { readonly before: JsonObject | null | undefined; readonly after: JsonObject | undefined },
): JsonObject {
  const { changed = [], granted = [], revoked = [], objects = [], objectCount = objects.length } = deed;
  const there = objects.filter((each) => isThere(tx, each));
  // Those that are gone by now were made by the act.
  const affected = objectCount - objects.length + there.length;
  return {
    changed,
    granted: mightiest(granted),
    revoked: mightiest(revoked),
    ...(granted.length > mostNamed && { grantedCount: granted.length }),
    ...(revoked.length > mostNamed && { revokedCount: revoked.length }),
    objects: there.slice(0, mostNamed),
    ...(affected > mostNamed && { objectCount: affected }),
    // People may have written secrets into what is theirs, as in props.
    ...(before && { before: shownFields(tenant.keys, before) }),
    ...(after && { after: shownFields(tenant.keys, after) }),
  };
}

/** Some of the flags: those that grant something here come first, and of these the wildcards. */
function mightiest(names: readonly string[]): readonly string[] {
  const rank = (name: string): number => (name === '*' ? 0 : !isKnownFlag(name) ? 3 : name.includes('*') ? 1 : 2);
  return [...names].sort((a, b) => rank(a) - rank(b)).slice(0, mostNamed);
}
