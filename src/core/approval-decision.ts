// The decision whether an act may be done now, in the transaction that does it: under which rules it falls, whether it
// has the words that these need, and whether the glass is broken for it. An act that must wait becomes a request.
import { KmsError } from '../errors.ts';
import { type ActivityDetails, mostNamed, type ResourceRef } from '../model/activity-details.ts';
import { type Act, furtherActions, requestLasts } from '../model/approval-rules.ts';
import { flagName } from '../model/flags.ts';
import type { JsonObject } from '../model/json.ts';
import type { Tables } from '../store/port.ts';
import type { ApprovalRequest } from '../store/tables/approval-requests.ts';
import type { ApprovalRule } from '../store/tables/approval-rules.ts';
import { activityRecord } from './activity.ts';
import { shownObject, shownVouched } from './approval-objects.ts';
import { rulesAt, rulesFor } from './approval-rules.ts';
import { digestOf, shownFields, statedWindows, statementOf } from './approval-statement.ts';
import { brokenBy, mayBreak, type Standing, standingOf } from './approval-words.ts';
import type { Context } from './context.ts';
import { localCaller } from './credential.ts';

/** Open requests of one caller, and of a tenant. */
const mostOfCaller = 100;
const mostOpen = 1000;
/** Ended requests are kept for as many milliseconds; some older ones go with each new one. */
const kept = 30 * 86_400_000;
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
  readonly parameters: JsonObject;
  readonly body: JsonObject;
  /** Whether the body matters where a rule has a window: it does not for a use of a key. */
  readonly isUse: boolean;
  readonly deed: ActivityDetails | undefined;
  /** The object after the act. */
  readonly after: JsonObject | undefined;
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

  constructor(act: PlannedAct, rules: readonly ApprovalRule[]) {
    super('the act needs the word of others');
    this.act = act;
    this.rules = rules;
  }
}

interface OpenRequest {
  readonly request: ApprovalRequest;
  readonly standing: Standing;
  readonly brokenBy: string | undefined;
}

/** Rules, and where the caller's requests stand, before an act that may change either. */
export interface Beforehand {
  readonly rules: readonly ApprovalRule[];
  readonly open: ReadonlyMap<string, OpenRequest>;
}

/** Undefined if no rule holds: then there is nothing to decide. */
export function lookBefore({ tx, world, caller }: Pick<Deciding, 'tx' | 'world' | 'caller'>): Beforehand | undefined {
  const rules = rulesAt(tx, world.now());
  if (rules.length === 0) return undefined;
  const open = tx.approvalRequests.openOf(caller.id).map((request) => {
    const covering = rulesOf(request, rules);
    const standing = standingIn(tx, request, covering);
    return [request.act, { request, standing, brokenBy: brokenBy(tx, request) }] as const;
  });
  return { rules, open: new Map(open) };
}

/**
 * Lets an act pass that may be done now, and uses up what it was granted. Returns what its record says of that;
 * undefined if no rule covers it. Throws `NeedsWords`.
 */
export function decideAct(ctx: Deciding, act: PlannedAct, before: Beforehand): JsonObject | undefined {
  const { tx, world } = ctx;
  const now = world.now();
  const rules = rulesFor(before.rules, act);
  if (rules.length === 0) return undefined;
  const breaking = act.breaking();
  if (breaking !== undefined) return breakFor(ctx, act, breaking);
  const known = before.open.get(actHash(ctx, act, rules));
  if (!known) throw new NeedsWords(act, rules);
  const { standing } = known;
  const request = { ...known.request, broken: mayBreak(known.brokenBy, rules) };
  const isSatisfied = standing.isSatisfied && rules.every((rule) => standing.rules.some((each) => each.rule === rule));
  if (now >= openUntil(request, standing, now) || !(request.broken || isSatisfied)) throw new NeedsWords(act, rules);
  if (request.grantedAt === undefined) tx.approvalRequests.grant(request.id, now, false);
  tx.approvalRequests.noteUse(request.id);
  if (request.broken || windowsOf(request, rules).includes('once')) tx.approvalRequests.end(request.id, 'done', now);
  return told(request, standing);
}

function told({ id, details: { digest }, uses, broken }: ApprovalRequest, { rules }: Standing): JsonObject {
  return {
    id,
    digest,
    use: uses + 1,
    ...(broken && { broken }),
    rules: rules.map(({ rule, by }) => ({ id: rule.id, count: rule.count, window: rule.window, words: by })),
  };
}

function breakFor(ctx: Deciding, act: PlannedAct, reason: string): JsonObject {
  const { tx, world, caller, address } = ctx;
  const id = world.newId('glass');
  const action = flagOf(act);
  const { object } = act;
  const at = world.now();
  const broken = { id, at, by: caller.id, reason, action, object, requestId: undefined };
  tx.brokenGlass.insert(broken);
  const approval = { glass: id, action, reason };
  const deed = { object: { type: 'broken-glass', id }, approval } as const;
  tx.record(activityRecord(world, { keyid: caller.id, action: 'approval.break-glass', address, deed }));
  return { glass: id, reason };
}

/** Notes broken glass for a restored backup, if a rule covers that: the appliance that could ask was not there. */
export function noteRestored({ tx, world }: Pick<Deciding, 'tx' | 'world'>): void {
  const action = furtherActions.restore;
  const act = { actions: [action], objects: [], itself: [] };
  if (rulesFor(rulesAt(tx, world.now()), act).length === 0) return;
  const id = world.newId('glass');
  const by = localCaller.id;
  const reason = 'a backup was restored';
  const at = world.now();
  tx.brokenGlass.insert({ id, at, by, reason, action, object: null, requestId: undefined });
  const deed = { object: { type: 'broken-glass', id }, approval: { glass: id, action, reason } } as const;
  tx.record(activityRecord(world, { keyid: by, action: 'approval.break-glass', deed }));
}

/** The flag that the act takes. */
function flagOf({ actions, ring }: Act): string {
  return flagName(actions[0] ?? '', ring);
}

/** The caller, and what they do to what; with a window, any use of a key is the same. */
function actHash({ caller, tenant }: Deciding, act: PlannedAct, rules: readonly ApprovalRule[]): string {
  const { operation, actions, ring = null, object, parameters } = act;
  const body = bodyOf(tenant, act, rules);
  const of = object && { type: object.type, id: object.id };
  return digestOf({ caller: caller.id, operation, actions, ring, object: of, parameters, body });
}

function bodyOf({ keys }: Deciding['tenant'], act: PlannedAct, rules: readonly ApprovalRule[]): JsonObject | null {
  return act.isUse && !isOnce(rules) ? null : shownFields(keys, act.body);
}

function isOnce(rules: readonly ApprovalRule[]): boolean {
  return rules.some(({ window }) => window === 'once');
}

/** Windows of the rules as they are now, and of those that approvers signed: none of them is ever wider. */
function windowsOf({ details }: ApprovalRequest, rules: readonly ApprovalRule[]): readonly ApprovalRule['window'][] {
  return [...rules.map(({ window }) => window), ...statedWindows(details.statement)];
}

/**
 * Until when the request is open. It waits for words for a day; a window counts from the word that completed them, and
 * is never longer than from the first grant on.
 */
export function openUntil(request: ApprovalRequest, standing: Standing, now: number): number {
  const { grantedAt, createdAt, broken } = request;
  const waits = createdAt + requestLasts;
  if (broken) return (grantedAt ?? createdAt) + requestLasts;
  const { isSatisfied, completedAt } = standing;
  const from = Math.min(grantedAt ?? Number.POSITIVE_INFINITY, isSatisfied ? completedAt : Number.POSITIVE_INFINITY);
  if (standing.rules.length === 0) return now;
  const windows = windowsOf(
    request,
    standing.rules.map(({ rule }) => rule),
  );
  const until = from + Math.min(...windows.map((window) => (window === 'once' ? requestLasts : window * 1000)));
  return isSatisfied ? until : Math.min(until, waits);
}

export interface Wait {
  readonly id: string;
  readonly needed: number;
  readonly given: number;
  /** Whether the rules want the act held for a while. */
  readonly holds: boolean;
  /** Whether the request is new, so that approvers are to be told. */
  readonly isNew: boolean;
  readonly message: string;
}

/** Makes the request for an act that was taken back, or joins it. Throws `quota` if too many are open. */
export function askFor(ctx: Deciding, { act, rules }: NeedsWords): Wait {
  const { tx, world } = ctx;
  const hash = actHash(ctx, act, rules);
  const open = tx.approvalRequests.openFor(hash);
  const live = open && lapse(ctx, open, standingIn(tx, open, rules)) ? undefined : open;
  const request = live ?? makeRequest(ctx, act, rules, hash);
  const { needed, given } = standingIn(tx, request, rules);
  const words = needed === 1 ? "another's word" : `the word of ${needed} others`;
  const what = given === 0 ? words : `${words}, and has ${given}`;
  return {
    id: request.id,
    needed,
    given,
    holds: rules.every(({ mode }) => mode === 'hold') && world.now() < request.createdAt + requestLasts,
    isNew: !live,
    message: `this needs ${what}: it waits for approval as ${request.id}; try again once it is approved`,
  };
}

function standingIn(tx: Tables, request: ApprovalRequest, rules: readonly ApprovalRule[]): Standing {
  return standingOf(tx, request.requester, tx.approvalRequests.wordsOf(request.id), rules);
}

/** Ends a request whose time is over; returns whether it did. */
function lapse(ctx: Omit<Deciding, 'caller'>, request: ApprovalRequest, standing: Standing): boolean {
  const { tx, world } = ctx;
  const now = world.now();
  const broken = mayBreak(
    brokenBy(tx, request),
    standing.rules.map(({ rule }) => rule),
  );
  if (now < openUntil({ ...request, broken }, standing, now)) return false;
  const state = request.uses > 0 ? 'done' : 'expired';
  tx.approvalRequests.end(request.id, state, now);
  const { id, requester: keyid } = request;
  const deed = { object: { type: 'approval', id }, approval: { id } } as const;
  if (state === 'expired') tx.record(activityRecord(world, { keyid, action: 'approval.expire', deed }));
  return true;
}

/** The rules for a request that is kept, as they are now. */
export function rulesNow(tx: Pick<Tables, 'approvalRules'>, request: ApprovalRequest, now: number): ApprovalRule[] {
  return rulesOf(request, rulesAt(tx, now));
}

function rulesOf({ details }: ApprovalRequest, rules: readonly ApprovalRule[]): ApprovalRule[] {
  const { actions, ring, objects, itself } = details;
  return rulesFor(rules, { actions, ring: ring === '' ? undefined : ring, objects, itself });
}

function makeRequest(ctx: Deciding, act: PlannedAct, rules: readonly ApprovalRule[], hash: string): ApprovalRequest {
  const { tx, tenant, world, caller, address, dialect } = ctx;
  const now = world.now();
  endOverdue(ctx);
  if (tx.approvalRequests.countOpenOf(caller.id) >= mostOfCaller) {
    throw new KmsError('quota', `${mostOfCaller} requests of this caller wait for approval already`);
  }
  if (tx.approvalRequests.countOpen() >= mostOpen) {
    throw new KmsError('quota', `${mostOpen} requests wait for approval already`);
  }
  tx.approvalRequests.purge(now - kept, purgedAtOnce);
  const id = world.newId('appr');
  const { operation, object, parameters, recorded, ringname, reason, actions, ring = '', objects, itself } = act;
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
    parameters,
    body,
    rules: rules
      .map(({ id: rule, count, window, expiresAt: expires = null }) => ({ id: rule, count, window, expires }))
      .sort((a, b) => (a.id < b.id ? -1 : 1)),
    at: now,
  });
  const digest = digestOf(statement);
  const request: ApprovalRequest = {
    id,
    act: hash,
    requester: caller.id,
    state: 'pending',
    details: {
      ...{ action, actions, ring, operation, object, objects, itself, parameters, body, statement, digest },
      ...(dialect !== undefined && { dialect }),
      ...(address !== undefined && { address }),
      ...(reason !== undefined && { reason }),
      effects: { ...effectsOf(act, object && shownObject(tx, object)), ...vouchedIn(ctx, act) },
    },
    createdAt: now,
    grantedAt: undefined,
    endedAt: undefined,
    uses: 0,
    broken: false,
  };
  tx.approvalRequests.insert(request);
  const approval = { id, statement, digest, ...(reason !== undefined && { reason }) };
  const deed = { object: { type: 'approval', id }, approval } as const;
  const props = dialect === undefined ? {} : { dialect };
  tx.record(activityRecord(world, { keyid: caller.id, action: 'approval.request', address, props, deed }));
  return request;
}

/** Ends some requests whose time is over, so that they count no more. */
function endOverdue(ctx: Omit<Deciding, 'caller'>): void {
  const { tx, world } = ctx;
  for (const request of tx.approvalRequests.open(purgedAtOnce)) {
    lapse(ctx, request, standingIn(tx, request, rulesNow(tx, request, world.now())));
  }
}

function vouchedIn({ tx, caller }: Deciding, { deed = {} }: PlannedAct): JsonObject {
  const vouched = shownVouched(tx, caller.id, deed);
  return vouched ? { vouched, objects: [] } : {};
}

function effectsOf({ deed = {}, after }: PlannedAct, before: JsonObject | null | undefined): JsonObject {
  const { changed = [], granted = [], revoked = [], objects = [] } = deed;
  const few = (names: readonly string[]): readonly string[] => names.slice(0, mostNamed);
  return {
    changed,
    granted: few(granted),
    revoked: few(revoked),
    objects: objects.slice(0, mostNamed),
    ...(before && { before }),
    ...(after && { after }),
  };
}
