// The way of every request to a declared endpoint, from top to bottom: tenant, credential, permission, body, operation,
// record, reply. The tenant's data is read and written in one transaction with the activity record, and the answer
// waits until that is durable.
import type { Endpoint } from '../api/endpoint.ts';
import type { Caller } from '../core/context.ts';
import { Bearer, localCaller, noteKeyUse } from '../core/credential.ts';
import { noteSessionUse, purgeSessions } from '../core/sessions.ts';
import { KmsError } from '../errors.ts';
import { longestPage } from '../model/json.ts';
import type { Tables, Transaction } from '../store/port.ts';
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
import { listAnswer } from './answer.ts';
import type { AppliancePort, State } from './appliance-port.ts';
import { tell } from './approval-notices.ts';
import { overError, type WaitingOutcome } from './approval-stage.ts';
import { type BodyRead, readDecodedBody, readJsonBody } from './body.ts';
import { consoleCookieOf } from './console-cookie.ts';
import { type FairQueue, Turn } from './fair-queue.ts';
import { type Held, untilDecided } from './held-requests.ts';
import { EndpointInput, type KnownRequest, rawInput } from './input.ts';
import { OperationContext } from './operation-context.ts';
import { changedMeanwhile, operate, operateInSlices } from './operation-stage.ts';
import {
  type PlainOperation,
  type PlainPreparation,
  type PlainRoute,
  type PlainSlices,
  type PlainWork,
  throwing,
  traitsOf,
} from './plain-route.ts';
import { record, recordOutcome } from './record-stage.ts';
import type { AnswerRoom, ApiRequest } from './request.ts';
import { failed, type Outcome, type RequestResult, refusalOf, refused } from './respond.ts';
import type { PathParams, ServedPath } from './route.ts';
import type { EndpointCall } from './surface.ts';
import { baseUrlOf, resolveTenant, type TenantHandle } from './tenant-directory.ts';
import { watchOf } from './watches.ts';

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

  /**
   * One function, since each further `await` costs a hundredth of an encrypt.
   *
   * @param held the request for approval that the act was held for; it is not held a second time.
   */
  async #run(known: KnownRequest, held?: Held): Promise<RequestResult> {
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
        if (endpoint.body) body = held?.body ?? (await this.#readBody(known, asker));
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
    const ctx = new OperationContext(handle.tenant, this.#appliance.world, request, known, held?.id);
    let served: RequestResult;
    try {
      if ('prepare' in route) operation ??= this.#shortWay(input, route) ?? (await this.#prepare(input, route, turn));
      const rest = this.#appliance.requestTurn();
      if (rest) await rest;
      served = await this.#transact(input, ctx, operation);
      if (ctx.work) served.outcome = (await refusalOf(ctx.work)) ?? served.outcome;
    } catch (error) {
      ctx.watch?.loseRecord();
      served = { outcome: failed(error), action, tenant };
    } finally {
      turn?.leave();
    }
    this.#tellOf(served.outcome, ctx, known);
    const again = held || !('waits' in served.outcome) ? undefined : await this.#hold(served, known, body);
    if (again) return again;
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

  /**
   * Waits for the decision of others, if the rules want that, and returns the answer then; undefined if the present
   * answer stands. Meanwhile it holds nothing that other requests wait for.
   */
  async #hold(
    served: RequestResult,
    known: KnownRequest,
    body: BodyRead | undefined,
  ): Promise<RequestResult | undefined> {
    // Cast: the caller looked.
    const { waits } = served.outcome as WaitingOutcome;
    const { request } = known;
    if (!waits.holds) return undefined;
    request.room?.release();
    request.body.release?.();
    try {
      const state = await untilDecided(waits, known, this.#appliance.world, request);
      if (state === undefined) return undefined;
      if (state !== 'granted') return this.#reply({ ...served, outcome: refused(overError(waits, state)) }, known);
      request.body.reclaim?.();
    } catch (error) {
      return this.#reply({ ...served, outcome: failed(error) }, known);
    }
    return this.#run(known, { id: waits.id, body });
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
    const outcome = refusal ? refused(refusal) : operate(input, ctx, operation, admission);
    return recordOutcome(ctx, this.#endpoint, admission, outcome);
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
    const outcome = refusal ? refused(refusal) : yield* operateInSlices(input, ctx, work, admission);
    return recordOutcome(ctx, this.#endpoint, admission, outcome);
  }

  #decidePublic(
    tx: Transaction,
    input: EndpointInput,
    ctx: OperationContext,
    operation: PlainOperation | undefined,
  ): RequestResult {
    ctx.enter(tx);
    const outcome = operate(input, ctx, operation);
    const { identified } = ctx;
    const refusedBy = identified?.how?.refusedBy;
    const served = { outcome, action: this.#traits.action, tenant: ctx.tenant.id, refusedBy };
    if (!identified) return served;
    const { userId: keyid } = identified;
    if (keyid !== undefined) {
      record(ctx, this.#endpoint, { keyid, ringname: '', validAction: outcome.status < 400 }, outcome.status);
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
