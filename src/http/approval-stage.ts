// The stage of a request that decides whether an act needs approval. It runs in the act's savepoint, after the act,
// when its outcome is known; an act that must wait is rolled back, and becomes a request for approval.
import type { Access, Endpoint, RingSource } from '../api/endpoint.ts';
import type { EndpointId } from '../api/endpoints.ts';
import { accountThing, apiKeyThing } from '../core/accounts.ts';
import { bySecret } from '../core/api-keys.ts';
import {
  askFor,
  type Beforehand,
  decideAct,
  lookBefore,
  NeedsWords,
  needWords,
  overMessage,
  type PlannedAct,
  type Wait,
} from '../core/approval-decision.ts';
import { furtherOf, isThere, namesOf, shownObject } from '../core/approval-objects.ts';
import { ruleNamed } from '../core/approval-rules.ts';
import { hidden } from '../core/approval-statement.ts';
import type { Context } from '../core/context.ts';
import { withoutWrapping } from '../core/key-transfer.ts';
import { lookUpManagedKey } from '../core/managed-key-names.ts';
import { keyRef } from '../core/managed-keys.ts';
import { userThing } from '../core/users.ts';
import { KmsError } from '../errors.ts';
import type { ActivityDetails, ResourceRef } from '../model/activity-details.ts';
import { furtherActions, isKeyUse, longestReason, type RequestState } from '../model/approval-rules.ts';
import { isConfidentialParameter } from '../model/confidential.ts';
import { flagsOfText } from '../model/flags.ts';
import type { JsonObject } from '../model/json.ts';
import { breakGlassHeader, reasonHeader } from '../model/names.ts';
import type { Tables } from '../store/port.ts';
import type { Admission } from './admission.ts';
import type { EndpointInput } from './input.ts';
import type { OperationContext } from './operation-context.ts';
import { type ApiRequest, headerOf } from './request.ts';
import { type Outcome, refused } from './respond.ts';

/** An outcome of an act that waits. */
export interface WaitingOutcome extends Outcome {
  readonly waits: Wait;
}

/** Endpoints that no rule covers. */
const free: ReadonlySet<string> = new Set<EndpointId>(['acknowledgeBrokenGlass']);

/** Operations that change the very rule that they name. */
const changesRule: ReadonlySet<string> = new Set<EndpointId>(['updateApprovalRule', 'deleteApprovalRule']);

/** It makes a key where the name leads to a deleted one, and its clients may wrap a key in another way at each try. */
const importing: EndpointId = 'importManagedKey';

/** Acts that change no rule, no User and no word: whether they are approved is the same before and after. */
const leavesWords = /^(?:activity|asset|key|keyring|kmip|tang)\./;

/** Operations by which somebody could get at the API key or User that they name. */
const givesWayIn: ReadonlySet<string> = new Set<EndpointId>([
  'addProof',
  'updateProof',
  'inviteUser',
  'updateUser',
  'updateApiKey',
  'updateApiKeyBySecret',
]);

interface Looked extends Beforehand {
  /** The ring or managed key that is named, if it is known: one that the act makes has another id at each try. */
  readonly named: ResourceRef | undefined;
  /** The thing that is named, whose names the act may change, if it is there. */
  readonly thing: ResourceRef | undefined;
  /** The names of that thing. */
  readonly names: readonly string[];
  /** Ids of that thing, and of what the body names: their names may be others' by the time that the act is done. */
  readonly meant: readonly string[];
}

/** Looks at what an act may change, before it is done; undefined if no rule holds. */
export function lookFor(
  ctx: OperationContext,
  endpoint: Endpoint,
  input: EndpointInput,
  { ringname }: Admission,
): Looked | undefined {
  const { tx } = ctx;
  const { id, access } = endpoint;
  const before = lookBefore(ctx, access.kind === 'flag' && leavesWords.test(access.action) ? undefined : id);
  if (!before) return undefined;
  const source = access.kind === 'flag' && ringname !== '' ? access.ring : undefined;
  const named = source && ringNamed(tx, endpoint, source, input.params, ringname);
  const thing = named ?? thingNamed(tx, endpoint, input);
  const account = id === 'createApiKey' ? accountNamed(tx, input.body.accountId, input.query) : undefined;
  const meant = [thing, account].flatMap((each) => each?.id ?? []);
  return { ...before, named, thing, names: namesOf(tx, thing), meant };
}

/** The rule, User, account or API key that a request names, in whichever way its endpoint takes a name. */
function thingNamed(
  tx: Tables,
  { id: operation, path }: Endpoint,
  { params, query, body }: EndpointInput,
): ResourceRef | undefined {
  if (changesRule.has(operation)) return ruleNamed(tx, textOf(params.id));
  const username = textOf(operation === 'inviteUser' ? body.username : params.username);
  if (username !== '') {
    const byName = tx.users.byUsername(username) ?? tx.users.byEmail(username);
    const user = query.id === 'true' ? tx.users.byId(username) : byName;
    return user && userThing(user);
  }
  if (path.startsWith('/auth/accounts/')) return accountNamed(tx, params.id ?? params.accountId, query);
  const keyId = textOf(params.keyid ?? params.apikeyid ?? body.apikeyid);
  const key = keyId === '' ? bySecret(tx, textOf(params.apikey ?? body.key)) : tx.apiKeys.byId(keyId);
  return key && apiKeyThing(key);
}

function accountNamed(tx: Tables, given: unknown, query: JsonObject): ResourceRef | undefined {
  const ref = textOf(given);
  const account = query.uid === 'true' ? tx.accounts.byUid(ref) : tx.accounts.byId(ref);
  return account && accountThing(account);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Lets the act that was just done stand, if it needs no approval or has it. Throws `NeedsWords`. */
export function approve(
  ctx: OperationContext,
  endpoint: Endpoint,
  input: EndpointInput,
  admission: Admission,
  before: Looked,
): void {
  if (free.has(endpoint.id)) return;
  const act = actOf(ctx, endpoint, input, admission, before);
  if (act.actions.length > 0) ctx.approval = decideAct(ctx, act, before);
}

/** Throws `forbidden` for an act that would have to wait if it were done: trying it asks for no approval. */
export function approveTry(
  ctx: OperationContext,
  endpoint: Endpoint,
  input: EndpointInput,
  admission: Admission,
  before: Looked,
): void {
  try {
    needWords(ctx, actOf(ctx, endpoint, input, admission, before), before);
  } catch (error) {
    if (!(error instanceof NeedsWords)) throw error;
    throw new KmsError('forbidden', 'this needs the approval of others', { denies: true });
  }
}

/** The outcome of an act that was taken back. Rethrows anything but `NeedsWords`. */
export function waitFor(ctx: OperationContext, error: unknown): WaitingOutcome | undefined {
  if (!(error instanceof NeedsWords)) return undefined;
  const { object } = ctx.deed ?? {};
  ctx.failed(error);
  ctx.isDenied = true;
  const waits = askFor(ctx, error, ctx.held);
  ctx.deed = { ...(object && { object }), approval: { id: waits.id } };
  return { ...refused(waitError(waits)), waits };
}

export function waitError({ id, needed, given, message }: Wait): KmsError {
  return new KmsError('forbidden', message, { denies: true, body: { message, approval: { id, needed, given } } });
}

/** The refusal of an act whose request has ended while it was held. */
export function overError(waits: Wait, state: RequestState): KmsError {
  return waitError({ ...waits, message: overMessage(waits.id, state) });
}

function actOf(
  ctx: OperationContext,
  endpoint: Endpoint,
  input: EndpointInput,
  admission: Admission,
  { named: ofRing, thing, names: before, meant }: Looked,
): PlannedAct {
  const { access, id } = endpoint;
  const { ringname } = admission;
  const { deed, tx, tenant } = ctx;
  const flag = access.kind === 'flag' ? actionsOfFlag(access) : [];
  const actions = [...flag, ...furtherActs(ctx, id)];
  const isThing = thing !== undefined && deed?.object?.id === thing.id;
  // Inviting again is done to a User who is there.
  const object = ofRing ?? (isThing ? thing : objectOf(endpoint, input, ringname, deed));
  const { params, query, body } = input;
  const ringParam = access.kind === 'flag' && access.ring?.from === 'path' ? access.ring.param : undefined;
  const named = access.kind === 'flag' && access.ring?.from === 'key' ? access.ring.param : ringParam;
  const parameters = Object.fromEntries(
    Object.entries({ ...params, ...query }).flatMap(([name, value]) => {
      if (value === undefined) return [];
      // However a ring or key was named, its id counts.
      if (object && name === named) return [[name, object.id]];
      return [[name, isConfidentialParameter(name) ? hidden(tenant.keys, value) : value]];
    }),
  );
  const names = [ringname, ...texts(params), ...before, ...namesOf(tx, object), ...namesOf(tx, deed?.object)];
  const after = namesOf(tx, deed?.object);
  const isStill = isThing && isThere(tx, thing);
  return {
    actions,
    renamed: isStill ? { from: before, to: after } : undefined,
    further: furtherOf(tx, ctx.further),
    ring: ringname === '' ? undefined : ringname,
    ringname,
    objects: [...new Set(names)].filter(Boolean),
    itself: changesRule.has(id) && object ? [object.id] : [],
    recorded: recordedAs(endpoint),
    operation: id,
    object,
    besides: meant.filter((each) => each !== object?.id),
    parameters,
    body: id === importing ? withoutWrapping(ctx, body, deed?.object) : body,
    isUse: flag.some(isKeyUse),
    deed,
    after: () => (object ? shownObject(tx, object) : undefined),
    reason: wordsIn(input.request, reasonHeader),
    breaking: () => breakingOf(ctx, input.request),
  };
}

/** The flag's, and that of the record if it is another. Restoring takes the flag of deleting, but is no such act. */
function actionsOfFlag({ action, recorded = action }: Access & { kind: 'flag' }): string[] {
  return recorded === action || recorded.endsWith('.restore') ? [recorded] : [action, recorded];
}

function recordedAs({ access }: Endpoint): string {
  return access.kind === 'flag' ? (access.recorded ?? access.action) : 'action' in access ? access.action : '';
}

/** The thing that the path names, besides rings and managed keys that are there; none where something is only made. */
function objectOf(
  endpoint: Endpoint,
  { params }: EndpointInput,
  ringname: string,
  deed: ActivityDetails | undefined,
): ResourceRef | null {
  const { access, method } = endpoint;
  const isOfRing = access.kind === 'flag' && access.ring !== undefined && ringname !== '';
  const isMade = isOfRing
    ? !recordedAs(endpoint).endsWith('.restore')
    : method === 'POST' && Object.keys(params).length === 0;
  return (!isMade && deed?.object) || null;
}

/** The ring or managed key that a request names; of managed keys deleted ones, too. */
function ringNamed(
  tx: Tables,
  { id: operation, path }: Endpoint,
  source: RingSource,
  params: JsonObject,
  name: string,
): ResourceRef | undefined {
  if (path.startsWith('/ks/') || path.startsWith('/asym/')) {
    const isAsym = path.startsWith('/asym/');
    const ring = tx.rings.byName(isAsym ? 'asym' : 'ks', name);
    return ring && { type: isAsym ? 'asym-keyring' : 'keyring', id: ring.id, name };
  }
  // The name of a deleted key may be another's by now, so that it is looked up as the operation does.
  const isAsGiven = (source.from === 'key' && operation !== importing) || source.from === 'deleted-id';
  const key = isAsGiven ? lookUpManagedKey(tx, textOf(params[source.param])) : tx.managedKeys.byName(name);
  return key && keyRef(key);
}

/** Actions that an act comes to besides that of its flag. */
function furtherActs(ctx: OperationContext, id: string): string[] {
  return makesAdministrator(ctx, id) ? [furtherActions.makeAdministrator] : [];
}

/** Whether somebody gets `*` by it, or could get at an API key or User that has it. */
function makesAdministrator({ tx, deed, caller }: OperationContext, id: string): boolean {
  if (deed?.granted?.includes('*')) return true;
  const target = deed?.object;
  if (!target || !givesWayIn.has(id)) return false;
  if (target.type === 'user' && target.id === caller.id) return false;
  const text = target.type === 'user' ? tx.users.flagsText(target.id) : tx.apiKeys.byId(target.id)?.flagsText;
  return text !== undefined && flagsOfText(text).covers('*');
}

function texts(fields: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(fields).flatMap(([name, value]) =>
    typeof value === 'string' && !isConfidentialParameter(name) ? [value] : [],
  );
}

/** The administrator's reason to break the glass. Throws `forbidden` for any other caller with that header. */
export function breakingOf({ caller }: Pick<Context, 'caller'>, request: ApiRequest): string | undefined {
  if (headerOf(request, breakGlassHeader) === undefined) return undefined;
  if (caller.kind !== 'local') {
    throw new KmsError('forbidden', 'only the administrator at the machine may break the glass in this way', {
      denies: true,
    });
  }
  const reason = wordsIn(request, breakGlassHeader);
  if (reason === undefined) throw new KmsError('invalid', 'expected a reason for breaking the glass');
  return reason;
}

/** Words of people in a header, percent-encoded; undefined if there are none. */
export function wordsIn(request: ApiRequest, name: string): string | undefined {
  const sent = headerOf(request, name)?.trim();
  if (sent === undefined || sent === '' || sent.length > longestReason * 9) return undefined;
  try {
    const words = decodeURIComponent(sent)
      .replace(/[\p{Cc}\p{Cs}]/gu, ' ')
      .trim();
    return words === '' ? undefined : [...words].slice(0, longestReason).join('');
  } catch {
    return sent.slice(0, longestReason).toWellFormed();
  }
}
