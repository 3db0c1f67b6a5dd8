// The way of every request to a declared endpoint, from top to bottom: tenant, credential, permission, body, operation,
// record, reply. The tenant's data is read and written in one transaction with the activity record, and the answer
// waits until that is durable.
import type { Endpoint } from '../api/endpoint.ts';
import { activityRecord } from '../core/activity.ts';
import { lookBefore } from '../core/approval-decision.ts';
import { byOperator } from '../core/authorization.ts';
import type { Caller } from '../core/context.ts';
import { Bearer, localCaller, noteKeyUse } from '../core/credential.ts';
import { proofProps } from '../core/proofs/proof-answers.ts';
import { noteSessionUse, purgeSessions } from '../core/sessions.ts';
import { KmsError } from '../errors.ts';
import type { ActivityDetails } from '../model/activity-details.ts';
import { longestPage } from '../model/json.ts';
import { ownRecordHeader } from '../model/names.ts';
import type { ActivityInput, Tables, Transaction } from '../store/port.ts';
import type { Slices } from '../store/sql.ts';
import {
  type Admission,
  admit,
  admitByHeaders,
  credentialOf,
  goneMeanwhile,
  knownAsker,
  noCredential,
  sealedError,
  unknownOf,
} from './admission.ts';
import { encodeAnswer, listAnswer } from './answer.ts';
import type { AppliancePort, State } from './appliance-port.ts';
import { tell } from './approval-notices.ts';
import { approve, type WaitingOutcome, waitFor } from './approval-stage.ts';
import { type BodyRead, readDecodedBody, readJsonBody } from './body.ts';
import { consoleCookieOf } from './console-cookie.ts';
import { type FairQueue, Turn } from './fair-queue.ts';
import { holdUntilDecided } from './held-requests.ts';
import { EndpointInput, type KnownRequest, rawInput } from './input.ts';
import { OperationContext } from './operation-context.ts';
import {
  type PlainOperation,
  type PlainPreparation,
  type PlainRoute,
  type PlainSlices,
  type PlainWork,
  throwing,
  traitsOf,
} from './plain-route.ts';
import type { AnswerRoom, ApiRequest } from './request.ts';
import { failed, type Outcome, type RequestResult, refusalOf, refused } from './respond.ts';
import type { PathParams, ServedPath } from './route.ts';
import type { EndpointCall } from './surface.ts';
import { baseUrlOf, resolveTenant, type TenantHandle } from './tenant-directory.ts';
import { type Watch, watchOf } from './watches.ts';

const changedMeanwhile = new KmsError('unavailable', 'the credential changed meanwhile; try again');

type Recorded = Pick<ActivityInput, 'keyid' | 'ringname' | 'validAction'> & Partial<Pick<ActivityInput, 'props'>>;

export class EndpointWay {
  /** Its entry in the router. */
  readonly served: ServedPath;
  readonly #appliance: AppliancePort;
  readonly #endpoint: Endpoint;
  readonly #route: PlainRoute;
  readonly #queue: FairQueue;
  readonly #traits: ReturnType<typeof traitsOf>;

  /** @param queue where requests wait while too many are running. */
  constructor(appliance: AppliancePort, endpoint: Endpoint, route: PlainRoute, queue: FairQueue) {
    const { method, path, id } = endpoint;
    const traits = traitsOf(endpoint, route);
    this.#appliance = appliance;
    this.#endpoint = endpoint;
    this.#route = route;
    this.#queue = queue;
    this.#traits = traits;
    this.served = {
      method,
      path,
      counted: traits.isPublic ? id : traits.action,
      noHead: method === 'GET' && traits.changes,
      serve: (request, state, params) => this.#answer(request, state, params, undefined),
    };
  }

  /** Answers a request that a surface decoded. */
  readonly answerCall = (request: ApiRequest, state: State, call: EndpointCall): Promise<RequestResult> =>
    this.#answer(request, state, call.params, call);

  #answer(
    request: ApiRequest,
    open: State,
    params: PathParams,
    call: EndpointCall | undefined,
  ): Promise<RequestResult> {
    const known = this.#know(request, open, params, call);
    return 'outcome' in known ? Promise.resolve(known) : this.#run(known);
  }

  /** The request before its body is read, or an early refusal. */
  #know(
    request: ApiRequest,
    open: State,
    params: PathParams,
    call: EndpointCall | undefined,
  ): KnownRequest | RequestResult {
    const action = this.#traits.action;
    if (open.sealed) return { outcome: refused(sealedError), action };
    let handle: TenantHandle;
    try {
      handle = resolveTenant(open, request);
    } catch (error) {
      return { outcome: refused(error), action };
    }
    const tenant = handle.tenant.id;
    const { credential, cookie } = authenticate(request, call, baseUrlOf({ open, handle }));
    if (!credential && !this.#traits.isPublic)
      return { outcome: refused(noCredential), action, tenant, granted: false };
    const refusal = this.#traits.changes ? open.refuseWrites() : undefined;
    // Not recorded: the remaining disk space is reserved for requests that are still served.
    if (refusal) return { outcome: { ...refused(refusal), cause: undefined }, action, tenant };
    const { remoteAddress: address = 'local' } = request;
    const wait = this.#traits.backsOff ? open.people.backoff.refusal({ tenant, address }) : undefined;
    if (wait) return { outcome: refused(wait), action, tenant };
    const raw = call
      ? { params: call.params, query: call.query, body: undefined }
      : rawInput(this.#endpoint, request, params);
    const { codec, dialect, props, isHidden, isStale } = call ?? {};
    return { request, open, handle, credential, cookie, codec, dialect, props, isHidden, isStale, raw };
  }

  /** One function, since each further `await` costs a hundredth of an encrypt. */
  async #run(known: KnownRequest): Promise<RequestResult> {
    const { handle, credential, request } = known;
    const endpoint = this.#endpoint;
    const route = this.#route;
    const { room } = request;
    const action = this.#traits.action;
    const { id: tenant } = handle.tenant;
    let asker: string | undefined;
    let body: BodyRead | undefined;
    let operation = 'prepare' in route ? undefined : route;
    if (endpoint.body || (endpoint.paginated && room)) {
      try {
        asker = this.#authorizeNow(known) ?? (await this.#authorizeForCertain(known));
        if (endpoint.body) body = await this.#readBody(known, asker);
        if (endpoint.paginated && room) operation = (await takeRoom(room, tenant, asker)) ?? operation;
      } catch (error) {
        return this.#reply({ outcome: failed(error), action, tenant }, known);
      }
    }
    const isQueued = this.#traits.isQueued && credential !== 'local';
    const turn = isQueued ? new Turn(this.#queue, tenant, () => asker ?? this.#askerOf(known) ?? 'unknown') : undefined;
    if (turn) {
      try {
        const wait = turn.take();
        if (wait) await wait;
      } catch (error) {
        return this.#reply({ outcome: { ...refused(error), cause: undefined }, action, tenant }, known);
      }
    }
    const input = new EndpointInput(this.#appliance, endpoint, known, body);
    let ctx = new OperationContext(handle.tenant, this.#appliance.world, request, known);
    let served: RequestResult;
    for (;;) {
      try {
        let work = operation;
        if ('prepare' in route) work ??= this.#shortWay(input, route) ?? (await this.#prepare(input, route, turn));
        const rest = this.#appliance.requestTurn();
        if (rest) await rest;
        served = await this.#transact(input, ctx, work);
        if (ctx.work) served.outcome = (await refusalOf(ctx.work)) ?? served.outcome;
      } catch (error) {
        ctx.watch?.loseRecord();
        served = { outcome: failed(error), action, tenant };
      } finally {
        turn?.leave();
      }
      this.#tellOf(served.outcome, ctx, known);
      if (!('waits' in served.outcome) || !(await this.#hold(served.outcome, known, turn))) break;
      ctx = new OperationContext(handle.tenant, this.#appliance.world, request, known);
    }
    if (endpoint.paginated) served.outcome = await listAnswer(served.outcome, known, this.#appliance.turn);
    return this.#reply(served, known, ctx.stream);
  }

  /** Tells those whom a new request, or broken glass, concerns. */
  #tellOf(outcome: Outcome, { approval }: OperationContext, { open, handle }: KnownRequest): void {
    const around = { appliance: this.#appliance, open, handle };
    // Cast: the outcome of an act that waits.
    const waits = 'waits' in outcome ? (outcome as WaitingOutcome).waits : undefined;
    if (waits?.isNew) tell(around, { kind: 'request', id: waits.id });
    if (typeof approval?.glass === 'string' && outcome.status < 400)
      tell(around, { kind: 'glass', id: approval.glass });
  }

  /** Waits for the word of others, if the rules want that; returns whether to try again. */
  async #hold(outcome: Outcome, { request, handle }: KnownRequest, turn: Turn | undefined): Promise<boolean> {
    // Cast: the caller looked.
    const { waits } = outcome as WaitingOutcome;
    if (!waits.holds) return false;
    if (!(await holdUntilDecided(waits.id, handle, () => request.isGone?.() ?? false))) return false;
    await turn?.take();
    return true;
  }

  /**
   * The caller's id if cached data, headers and path already admit the request; undefined if not, or if the endpoint is
   * public.
   */
  #authorizeNow(known: KnownRequest): string | undefined {
    if (known.credential === 'local') return localCaller.id;
    if (!known.credential || this.#traits.isPublic) return undefined;
    try {
      return known.handle.store.read((tables) => this.#authorizeByHeaders(tables, known));
    } catch (error) {
      if (error instanceof KmsError && error.code === 'unavailable') return undefined;
      throw error;
    }
  }

  /** `#authorizeNow` in a transaction: another node may have granted access since. */
  async #authorizeForCertain(known: KnownRequest): Promise<string | undefined> {
    if (!known.credential || this.#traits.isPublic) return undefined;
    return known.handle.store.transaction((tables) => this.#authorizeByHeaders(tables, known));
  }

  /** The caller by whom the request queues. */
  #askerOf({ handle, credential, request }: KnownRequest): string | undefined {
    if (!credential || credential === 'local') return undefined;
    return knownAsker(handle, credential, request, this.#appliance.world.now());
  }

  #authorizeByHeaders(tables: Tables, known: KnownRequest): string | undefined {
    const admission = admitByHeaders(this.#endpoint, known, tables, this.#appliance.world.now());
    return admission?.refusal ? undefined : admission?.caller.id;
  }

  #readBody({ request, codec }: KnownRequest, asker: string | undefined): Promise<BodyRead> {
    // The transaction decides; if it admits the request after all, the answer is to try again.
    if (asker === undefined && !this.#traits.isPublic) return Promise.resolve({ problem: changedMeanwhile });
    const rules = {
      limit: this.#traits.bodyLimit(this.#appliance.bodyLimit),
      kept: this.#traits.kept,
      holder: asker,
    };
    return codec?.decode ? readDecodedBody(request, rules, codec.decode) : readJsonBody(request, rules);
  }

  /** The operation that needs no preparation this time; undefined if it does. */
  #shortWay(input: EndpointInput, { isNeeded, inPlace, inSlices }: PlainPreparation): PlainWork | undefined {
    if (input.problem !== undefined) return inPlace;
    if (!inPlace || isNeeded?.(input) !== false) return undefined;
    return inSlices?.isNeeded(input) ? inSlices : inPlace;
  }

  /** The operation that the route prepares, if a check beforehand admits the caller. */
  async #prepare(
    input: EndpointInput,
    { prepare }: PlainPreparation,
    turn: Turn | undefined,
  ): Promise<PlainWork | undefined> {
    let caller: Caller | undefined;
    if (!this.#traits.isPublic) {
      const { world } = this.#appliance;
      const admission = await input.handle.store.transaction((tx) => admit(this.#endpoint, input, tx, world.now()));
      if (!admission || admission.refusal) return undefined;
      caller = admission.caller;
    }
    if (input.problem) return undefined;
    try {
      return await prepare(input, caller, (work) => turn?.aside(work) ?? work());
    } catch (error) {
      return throwing(error);
    }
  }

  /** The transaction in which the request is authorized, performed and recorded. */
  #transact(input: EndpointInput, ctx: OperationContext, operation: PlainWork | undefined): Promise<RequestResult> {
    const { store } = input.handle;
    if (typeof operation === 'object') {
      return store.transactionInSlices((tx) => this.#decideInSlices(tx, input, ctx, operation));
    }
    if (this.#traits.isPublic) return store.transaction((tx) => this.#decidePublic(tx, input, ctx, operation));
    return store.transaction((tx) => this.#decide(tx, input, ctx, operation));
  }

  #decide(
    tx: Transaction,
    input: EndpointInput,
    ctx: OperationContext,
    operation: PlainOperation | undefined,
  ): RequestResult {
    const admission = this.#authorize(tx, input, ctx);
    if (!admission) return this.#unknown(input);
    const { refusal } = admission;
    const outcome = refusal ? refused(refusal) : this.#operate(input, ctx, operation, admission);
    return this.#recordActivity(ctx, admission, outcome);
  }

  *#decideInSlices(
    tx: Transaction,
    input: EndpointInput,
    ctx: OperationContext,
    work: PlainSlices,
  ): Slices<RequestResult> {
    const admission = this.#authorize(tx, input, ctx);
    if (!admission) return this.#unknown(input);
    const { refusal } = admission;
    const outcome = refusal ? refused(refusal) : yield* this.#operateInSlices(input, ctx, work, admission);
    return this.#recordActivity(ctx, admission, outcome);
  }

  #decidePublic(
    tx: Transaction,
    input: EndpointInput,
    ctx: OperationContext,
    operation: PlainOperation | undefined,
  ): RequestResult {
    ctx.enter(tx);
    const outcome = this.#operate(input, ctx, operation);
    const { identified } = ctx;
    const refusedBy = identified?.how?.refusedBy;
    const served = { outcome, action: this.#traits.action, tenant: ctx.tenant.id, refusedBy };
    if (!identified) return served;
    const { userId: keyid } = identified;
    if (keyid !== undefined) {
      this.#record(ctx, { keyid, ringname: '', validAction: outcome.status < 400 }, outcome.status);
      return { ...served, keyid };
    }
    // A write in place of the record, so that the time does not reveal whether the user exists.
    purgeSessions(ctx);
    return { ...served, byNobody: true };
  }

  /** The binding decision; notes the use of the credential. Undefined for an unknown one. Throws `StaleCall`. */
  #authorize(tx: Transaction, input: EndpointInput, ctx: OperationContext): Admission | undefined {
    const { world } = this.#appliance;
    input.needFresh(tx);
    const admission = admit(this.#endpoint, input, tx, world.now());
    if (!admission) return undefined;
    ctx.enter(tx, admission);
    const { caller, refusal } = admission;
    const { watchable, byPages } = this.#endpoint;
    const byPage = byPages === true && input.isConsole;
    if ((watchable || byPage) && !refusal) ctx.watch = watchOf(this.#appliance, input, caller, byPage);
    // A poll without a record writes nothing: otherwise it would itself change what is watched.
    if (watchable && ctx.watch?.isDue === false) return admission;
    const address = input.request.remoteAddress;
    if (caller.session !== undefined) noteSessionUse({ tx, world, address }, caller.session);
    else if (!refusal && caller.kind === 'apikey') noteKeyUse(tx, caller, world.now());
    return admission;
  }

  #unknown({ handle, credential, request }: EndpointInput): RequestResult {
    const { id: tenant } = handle.tenant;
    return { outcome: refused(unknownOf(credential, request)), action: this.#traits.action, tenant, granted: false };
  }

  /**
   * Runs the operation in a savepoint; if it needs approval, or there is no room for the answer, it is rolled back.
   * `admission` is absent at a public endpoint.
   */
  #operate(
    input: EndpointInput,
    ctx: OperationContext,
    operation: PlainOperation | undefined,
    admission?: Admission,
  ): Outcome {
    const { problem } = input;
    if (problem) return refused(problem, this.#endpoint.silent400);
    try {
      input.needShown(ctx.tx);
      if (!operation) throw changedMeanwhile;
      const before = admission && lookBefore(ctx);
      return ctx.tx.savepoint(() => {
        const outcome = this.#encode(input, ctx, operation(ctx, input));
        if (admission && before) approve(ctx, this.#endpoint, input, admission, before);
        return outcome;
      });
    } catch (error) {
      return this.#refuse(ctx, error);
    }
  }

  /** The outcome of an operation that was rolled back. */
  #refuse(ctx: OperationContext, error: unknown): Outcome {
    try {
      const waiting = waitFor(ctx, error);
      if (waiting) return waiting;
      ctx.failed(error);
      return refused(error, this.#endpoint.silent400);
    } catch (limit) {
      ctx.failed(limit);
      return refused(limit);
    }
  }

  #encode(input: EndpointInput, ctx: OperationContext, given: unknown): Outcome {
    const { watchable } = this.#endpoint;
    if (!watchable || !ctx.watch) return encodeAnswer(input, ctx, given);
    const { headers, isKnown } = ctx.watch.match(given, watchable.apart);
    if (isKnown) return { status: 304, body: {}, content: null, headers };
    const outcome = encodeAnswer(input, ctx, given);
    return { ...outcome, headers: { ...outcome.headers, ...headers } };
  }

  *#operateInSlices(
    input: EndpointInput,
    ctx: OperationContext,
    { slices }: PlainSlices,
    admission: Admission,
  ): Slices<Outcome> {
    const endpoint = this.#endpoint;
    const { problem } = input;
    if (problem) return refused(problem, this.#endpoint.silent400);
    try {
      input.needShown(ctx.tx);
      const before = lookBefore(ctx);
      return yield* ctx.tx.savepointInSlices(function* () {
        const outcome = encodeAnswer(input, ctx, yield* slices(ctx, input));
        if (before) approve(ctx, endpoint, input, admission, before);
        return outcome;
      });
    } catch (error) {
      return this.#refuse(ctx, error);
    }
  }

  #recordActivity(ctx: OperationContext, admission: Admission, outcome: Outcome): RequestResult {
    const { tx, handedOut, isDenied, statuses: did, deeds, tenant, world, dialect } = ctx;
    const { ringname, caller, refusal } = admission;
    const granted = refusal === undefined && !isDenied;
    // Counted here, since a refusal may hand out a key too, while its other effects are rolled back.
    if (handedOut) tx.keyUses.count(handedOut.kind, handedOut.id, { at: world.now(), by: caller.id });
    const by = proofProps(caller);
    const recorded = { keyid: caller.id, ringname, validAction: granted, ...(by && { props: by }) };
    let id = '';
    const statuses = ctx.watch && granted ? recordWatch(ctx, ctx.watch, recorded, outcome) : did;
    for (const [n, status] of (statuses ?? [outcome.status]).entries()) {
      id = this.#record(ctx, recorded, status, deeds[n]);
    }
    const tellsRecord = this.#endpoint.id === 'searchActivity';
    const told = tellsRecord ? { ...outcome, headers: { ...outcome.headers, [ownRecordHeader]: id } } : outcome;
    const { action } = this.#traits;
    return { outcome: told, action, keyid: caller.id, tenant: tenant.id, granted, ringname, dialect, did };
  }

  /** Returns the record's id. */
  #record(ctx: OperationContext, recorded: Recorded, status: number, one?: ActivityDetails): string {
    const { deed = one, address, identified, world, dialect, props: facts } = ctx;
    const how = identified?.how;
    const own = this.#traits.isActOfOperator && recorded.validAction ? byOperator : how && { ...how };
    const approved = ctx.approval && { approval: ctx.approval };
    const told = recorded.props || approved ? { ...recorded.props, ...approved, ...own } : own;
    const props = dialect === undefined ? told : { ...told, ...facts, dialect };
    const made = activityRecord(world, { ...recorded, action: this.#traits.action, status, props, deed, address });
    ctx.tx.record(made);
    return made.id;
  }

  /** The answer with the headers that depend on the caller. `stream` is the one that the operation began, if any. */
  #reply(served: RequestResult, known: KnownRequest, stream?: Outcome['stream']): RequestResult {
    const { open, handle, request, cookie, codec } = known;
    if (cookie) served.outcome = cookie.told(served.outcome, this.#endpoint.id === 'logout');
    // Authenticated callers get `Kms-State`, so that they notice a rollback.
    if (!this.#traits.isPublic && served.keyid !== undefined && !codec) served.state = open.stateOf(handle);
    // A stream that is not sent must release its resources.
    if (stream && served.outcome.stream !== stream) stream.cancel().catch(() => {});
    const gone = served.outcome.status === 503 ? goneMeanwhile(open, request, handle) : undefined;
    return gone ? { ...served, outcome: refused(gone) } : served;
  }
}

/** Records a poll as one, if it is due; returns the statuses of the records that any other request gets. */
function recordWatch(ctx: OperationContext, watch: Watch, recorded: Recorded, { status }: Outcome): readonly number[] {
  if (!watch.isDue) return [];
  watch.noteRecord();
  if (!watch.polls) return [status];
  const { world, address } = ctx;
  ctx.tx.record(activityRecord(world, { ...recorded, action: 'session.watch', status, address }));
  return [];
}

/** The credential that the surface found, the request's own (`credentialOf`), or a console page's cookie. */
function authenticate(
  request: ApiRequest,
  call: EndpointCall | undefined,
  baseUrl: string,
): Pick<KnownRequest, 'credential' | 'cookie'> {
  const credential = call ? call.credential : credentialOf(request);
  if (credential || call) return { credential, cookie: undefined };
  const cookie = consoleCookieOf(request, baseUrl);
  return { credential: cookie?.token === undefined ? undefined : new Bearer(cookie.token), cookie };
}

/**
 * Reserves room for the longest list before anything is read. If there is none, returns an operation that throws this,
 * so that the refusal is recorded like any other outcome.
 */
async function takeRoom(
  room: AnswerRoom,
  tenant: string,
  asker: string | undefined,
): Promise<PlainOperation | undefined> {
  try {
    // The transaction decides; if it admits the request after all, the answer is to try again.
    if (asker === undefined) throw changedMeanwhile;
    await room.take(longestPage, { tenant, caller: asker });
    return undefined;
  } catch (error) {
    return throwing(error);
  }
}
