// The way of every request to a declared endpoint: tenant, credential, flag, validated input, operation. All that reads
// or writes the tenant's data happens in one transaction with the activity record, and the answer waits until it is
// durable.

import { actionOf, type Endpoint } from '../api/endpoint.ts';
import { activityRecord } from '../core/activity.ts';
import { byOperator } from '../core/authorization.ts';
import type { Caller, Context, KeyHandedOut, PublicContext } from '../core/context.ts';
import { Bearer, localCaller } from '../core/credential.ts';
import type { WrittenPage } from '../core/pages.ts';
import { noteSessionUse, purgeSessions } from '../core/sessions.ts';
import { KmsError } from '../errors.ts';
import type { Deed } from '../model/deed.ts';
import { type JsonObject, longestPage } from '../model/json.ts';
import { ownRecordHeader } from '../model/names.ts';
import type { ActivityInput, Transaction } from '../store/port.ts';
import type { Page, Slices } from '../store/sql.ts';
import { queuesTurn } from '../store/turns.ts';
import {
  type Admission,
  admit,
  admitByHeaders,
  credentialOf,
  goneMeanwhile,
  knownAsker,
  noCredential,
  sealedError,
  unknownCredential,
} from './admission.ts';
import { answeredList, answeredListText, answeredText } from './answer-text.ts';
import type { Appliance, State } from './appliance.ts';
import { type BodyRead, keptNumbers, publicBodyLimit, readJsonBody } from './body.ts';
import { consoleCookieOf } from './console-cookie.ts';
import { Exchange, type PlainOperation, type PlainSlices } from './exchange.ts';
import type { FairQueue } from './fair-queue.ts';
import { pageBody } from './input.ts';
import type { AnswerRoom, AppContext } from './request.ts';
import { brokenOff } from './request-log.ts';
import { answered, failed, type Outcome, refused, type Served, streamed } from './respond.ts';
import { baseUrlOf, type ServedPath } from './route.ts';
import { type TenantHandle, tenantOf } from './tenants.ts';

const changedMeanwhile = new KmsError('unavailable', 'the credential changed meanwhile; try again');

/** A route with its types forgotten: `app.ts` has bound each to the endpoint that it was written for. */
export type PlainRoute = PlainOperation | PlainPreparation | PlainSlices;

interface PlainPreparation {
  prepare(input: Exchange, caller: Caller | undefined): Promise<PlainOperation>;
}

/** @param queue where requests wait for those that are worked on. */
export function serveEndpoint(
  appliance: Appliance,
  endpoint: Endpoint,
  route: PlainRoute,
  queue: FairQueue,
): ServedPath {
  const { world, logger } = appliance;
  const { method, path, access, changes = method !== 'GET' } = endpoint;
  const isPublic = access.kind === 'public';
  const backsOff = access.kind !== 'flag' && access.backoff === true;
  const action = actionOf(access);
  /**
   * What has to wait for something else than the store has bounds of its own, and would keep others from their turn.
   */
  const isQueued = !isPublic && !('prepare' in route) && !endpoint.paginated;
  const isActOfOperator = access.kind === 'flag' && access.operator === 'act';
  const tellsRecord = endpoint.id === 'searchActivity';
  const bodyLimit = Math.min(appliance.bodyLimit, isPublic ? publicBodyLimit : Number.POSITIVE_INFINITY);
  const kept = (endpoint.body && keptNumbers(endpoint.body)) ?? new Map();

  async function serve(c: AppContext, open: State): Promise<Served> {
    if (open.sealed) return { outcome: refused(sealedError), action };
    let handle: TenantHandle;
    try {
      handle = tenantOf(open, c);
    } catch (error) {
      return { outcome: refused(error), action };
    }
    const tenant = handle.tenant.id;
    let credential = credentialOf(c);
    const cookie = credential ? undefined : consoleCookieOf(c, baseUrlOf({ open, handle }));
    if (cookie?.token !== undefined) credential = new Bearer(cookie.token);
    if (!credential && !isPublic) return { outcome: refused(noCredential), action, tenant, granted: false };
    const refusal = changes ? open.refuseWrites() : undefined;
    // Not recorded: what room is left is for the records of what is still done.
    if (refusal) return { outcome: { ...refused(refusal), cause: undefined }, action, tenant };
    const exchange = new Exchange(appliance, endpoint, open, handle, credential, cookie, c);
    const wait = backsOff ? open.people.backoff.refusal({ tenant, address: exchange.address }) : undefined;
    return wait ? { outcome: refused(wait), action, tenant } : serveAsked(exchange, c);
  }

  /** One function, since each that is waited for costs a hundredth of an encrypt. */
  async function serveAsked(exchange: Exchange, c: AppContext): Promise<Served> {
    const { open, handle, credential, cookie, room } = exchange;
    const tenant = handle.tenant.id;
    let asker: string | undefined;
    if (endpoint.body || (endpoint.paginated && room)) {
      try {
        asker = askerNow(exchange) ?? (await askerFor(exchange));
        if (endpoint.body) exchange.raw.body = await bodyOf(c, asker);
        if (endpoint.paginated && room) await takeRoom(exchange, room, asker);
      } catch (error) {
        return orGone({ outcome: failed(error), action, tenant }, exchange, c);
      }
    }
    const hasTurn = isQueued && credential !== 'local';
    if (hasTurn) {
      asker ??= credential && knownAsker(handle, credential, exchange.from, world.now());
      try {
        const turn = queue.enter(tenant, asker ?? 'unknown');
        if (turn) await turn;
      } catch (error) {
        return orGone({ outcome: { ...refused(error), cause: undefined }, action, tenant }, exchange, c);
      }
    }
    let served: Served;
    try {
      if ('prepare' in route) exchange.operation ??= await prepared(exchange, route);
      else if (typeof route === 'function') exchange.operation ??= route;
      const rest = queuesTurn();
      if (rest) await rest;
      served = await transact(exchange);
      if (exchange.work) served.outcome = (await notDone(exchange.work)) ?? served.outcome;
    } catch (error) {
      served = { outcome: failed(error), action, tenant };
    } finally {
      if (hasTurn) queue.leave();
    }
    if (endpoint.paginated) served.outcome = await listOutcome(served.outcome, exchange);
    if (cookie) served.outcome = cookie.told(served.outcome, endpoint.id === 'logout');
    // Whoever has a credential learns how far the appliance is, so that one that was set back is noticed.
    if (!isPublic && served.keyid !== undefined && !c.env?.answer) served.state = open.stateOf(handle);
    return orGone(served, exchange, c);
  }

  /** What is to be done once it is durable; the refusal where that fails. */
  async function notDone(work: () => Promise<void>): Promise<Outcome | undefined> {
    try {
      await work();
      return undefined;
    } catch (error) {
      return refused(error);
    }
  }

  function orGone(served: Served, { open, handle, stream }: Exchange, c: AppContext): Served {
    // Nothing that it holds may be kept for an answer that nobody gets.
    if (stream && served.outcome.stream !== stream) stream.cancel().catch(() => {});
    const gone = served.outcome.status === 503 ? goneMeanwhile(open, c, handle) : undefined;
    return gone ? { ...served, outcome: refused(gone) } : served;
  }

  /** The caller's id, if what this node knows lets it in as far as headers and path tell. */
  function askerNow({ handle, credential, from, raw }: Exchange): string | undefined {
    if (credential === 'local') return localCaller.id;
    if (!credential || isPublic) return undefined;
    try {
      const admission = handle.store.read((tables) =>
        admitByHeaders(endpoint, handle, tables, credential, from, raw, world.now()),
      );
      return admission?.refusal ? undefined : admission?.caller.id;
    } catch (error) {
      if (error instanceof KmsError && error.code === 'unavailable') return undefined;
      throw error;
    }
  }

  /** The same for certain: another node may have let it in since. */
  async function askerFor({ handle, credential, from, raw }: Exchange): Promise<string | undefined> {
    if (!credential || isPublic) return undefined;
    const admission = await handle.store.transaction((tables) =>
      admitByHeaders(endpoint, handle, tables, credential, from, raw, world.now()),
    );
    return admission?.refusal ? undefined : admission?.caller.id;
  }

  async function bodyOf(c: AppContext, asker: string | undefined): Promise<BodyRead> {
    // The transaction decides, and should it decide otherwise, there is nothing to do it with.
    if (asker === undefined && !isPublic) return { problem: changedMeanwhile };
    return readJsonBody(c, { limit: bodyLimit, kept, holder: asker });
  }

  /**
   * Before anything is read for a list, for the bytes that it may come to. Where there is no room that is the
   * request's outcome, recorded as any other.
   */
  async function takeRoom(exchange: Exchange, room: AnswerRoom, asker: string | undefined): Promise<void> {
    try {
      // The transaction decides, and should it decide otherwise, there is no room to do it in.
      if (asker === undefined) throw changedMeanwhile;
      await room.take(longestPage, { tenant: exchange.handle.tenant.id, caller: asker });
    } catch (error) {
      exchange.operation = () => {
        throw error;
      };
    }
  }

  async function listOutcome(outcome: Outcome, { room, others }: Exchange): Promise<Outcome> {
    if (outcome.status !== 200) {
      room?.left(0);
      return outcome;
    }
    if (others) return outcome;
    // The types of the routes see to it that lists answer pages.
    const body = outcome.body as ReturnType<typeof pageBody>;
    const made = await answeredList(body, room, appliance.turn);
    return { ...made, headers: { ...outcome.headers, ...made.headers } };
  }

  /** The transaction in which the request is decided upon, done and recorded. */
  function transact(exchange: Exchange): Promise<Served> {
    const { store } = exchange.handle;
    if (isPublic) return store.transaction((tx) => openly(exchange, tx));
    if (typeof route === 'object' && 'slices' in route) {
      return store.transactionInSlices((tx) => recordedInSlices(exchange, tx, route));
    }
    return store.transaction((tx) => recorded(exchange, tx));
  }

  function recorded(exchange: Exchange, tx: Transaction): Served {
    const admission = admitted(exchange, tx);
    if (!admission) return unknown(exchange);
    const { refusal } = admission;
    return toldOf(exchange, tx, admission, refusal ? refused(refusal) : operate(exchange, tx, admission));
  }

  function* recordedInSlices(exchange: Exchange, tx: Transaction, { slices }: PlainSlices): Slices<Served> {
    const admission = admitted(exchange, tx);
    if (!admission) return unknown(exchange);
    const { refusal } = admission;
    const outcome = refusal ? refused(refusal) : yield* operateInSlices(exchange, tx, admission, slices);
    return toldOf(exchange, tx, admission, outcome);
  }

  /** Undefined for a credential that nobody has. */
  function admitted({ handle, credential, from, raw }: Exchange, tx: Transaction): Admission | undefined {
    const admission = credential && admit(endpoint, handle, tx, credential, from, raw, world.now());
    if (admission) noteUse(from.remoteAddress, tx, admission);
    return admission;
  }

  function unknown({ handle }: Exchange): Served {
    return { outcome: refused(unknownCredential), action, tenant: handle.tenant.id, granted: false };
  }

  function noteUse(address: string | undefined, tx: Transaction, { caller, refusal }: Admission): void {
    if (caller.session !== undefined) noteSessionUse({ tx, world, address }, caller.session);
    else if (!refusal && caller.kind === 'apikey') tx.apiKeys.noteUse(caller.id, world.now());
  }

  /** Records what it came to. */
  function toldOf(exchange: Exchange, tx: Transaction, admission: Admission, outcome: Outcome): Served {
    const { handedOut, isDenied, did, deeds } = exchange;
    const { ringname, caller, refusal } = admission;
    const granted = refusal === undefined && !isDenied;
    // Here, since a refusal may hand out a key too, while all else that it did is taken back.
    if (handedOut) tx.keyUses.count(handedOut.kind, handedOut.id, { at: world.now(), by: caller.id });
    const recorded = { keyid: caller.id, ringname, validAction: granted };
    let id = '';
    const statuses = did ?? [outcome.status];
    for (const [n, status] of statuses.entries()) id = record(exchange, tx, recorded, status, deeds[n]);
    const told = tellsRecord ? { ...outcome, headers: { ...outcome.headers, [ownRecordHeader]: id } } : outcome;
    return { outcome: told, action, keyid: caller.id, tenant: exchange.handle.tenant.id, granted, ringname, did };
  }

  function openly(exchange: Exchange, tx: Transaction): Served {
    const outcome = operate(exchange, tx, undefined);
    const served = { outcome, action, tenant: exchange.handle.tenant.id };
    const { named } = exchange;
    if (!named) return served;
    const { userId: keyid } = named;
    if (keyid !== undefined) {
      record(exchange, tx, { keyid, ringname: '', validAction: outcome.status < 400 }, outcome.status);
      return { ...served, keyid };
    }
    // What is recorded takes a write, and whether there is such a user must not be told by the time.
    purgeSessions({ tx, world });
    return { ...served, byNobody: true };
  }

  type Recorded = Pick<ActivityInput, 'keyid' | 'ringname' | 'validAction'>;

  /** Answers the record's id. */
  function record(exchange: Exchange, tx: Transaction, recorded: Recorded, status: number, one?: Deed): string {
    const { deed = one, from, named } = exchange;
    const props = isActOfOperator && recorded.validAction ? byOperator : named?.how && { ...named.how };
    const made = activityRecord(world, { ...recorded, action, status, props, deed, address: from.remoteAddress });
    tx.record(made);
    return made.id;
  }

  function operate(exchange: Exchange, tx: Transaction, admission: Admission | undefined): Outcome {
    const { operation, problem } = exchange;
    if (problem) return refused(problem, endpoint.silent400);
    try {
      if (!operation) throw changedMeanwhile;
      const ctx = contextOf(exchange, tx, admission);
      // Where there is no room for the answer, nothing is done.
      return tx.savepoint(() => answerOf(exchange, admission, operation(ctx, exchange)));
    } catch (error) {
      return failedOf(exchange, error);
    }
  }

  function* operateInSlices(
    exchange: Exchange,
    tx: Transaction,
    admission: Admission,
    slices: PlainSlices['slices'],
  ): Slices<Outcome> {
    const { problem } = exchange;
    if (problem) return refused(problem, endpoint.silent400);
    const ctx = contextOf(exchange, tx, admission);
    try {
      return yield* tx.savepointInSlices(function* () {
        return answerOf(exchange, admission, yield* slices(ctx, exchange));
      });
    } catch (error) {
      return failedOf(exchange, error);
    }
  }

  function failedOf(exchange: Exchange, error: unknown): Outcome {
    exchange.failed(error);
    return refused(error, endpoint.silent400);
  }

  function contextOf(exchange: Exchange, tx: Transaction, admission: Admission | undefined): PublicContext | Context {
    const { handle, from } = exchange;
    const note = (deed: Deed): void => {
      exchange.deed = deed;
    };
    const handsOut = (key: KeyHandedOut): void => {
      exchange.handedOut = key;
    };
    const did = (statuses: readonly number[], deeds: readonly Deed[] = []): void => {
      exchange.did = statuses;
      exchange.deeds = deeds;
    };
    const given = { tx, tenant: handle.tenant, world, note, address: from.remoteAddress };
    return admission
      ? { ...given, caller: admission.caller, sealed: admission.sealed, handsOut, did }
      : { ...given, identify: (userId, how) => exchange.identify(userId, how) };
  }

  function answerOf(exchange: Exchange, admitted: Admission | undefined, given: unknown): Outcome {
    const { handle, room } = exchange;
    const answer = exchange.cookie?.taken(given, world.random) ?? given;
    const holder = { tenant: handle.tenant.id, caller: admitted?.caller.id };
    // The types of the routes see to it that lists answer pages and all others objects.
    const body = endpoint.paginated
      ? pageBody(endpoint, handle, world, exchange, answer as Page<unknown> | WrittenPage<unknown>)
      : (answer as JsonObject);
    if (exchange.others) {
      const text = JSON.stringify(exchange.others(body));
      return endpoint.paginated ? answeredListText(text, room) : answeredText(text, room, holder);
    }
    if (endpoint.paginated) return answered(body);
    if (endpoint.binary || endpoint.lines) {
      const pieces = answer as AsyncIterable<string | Uint8Array>;
      const type = endpoint.lines ?? 'application/octet-stream';
      const outcome = streamed(type, pieces, brokenOff(logger, path, room));
      exchange.stream = outcome.stream;
      return outcome;
    }
    if (!endpoint.text) return answeredText(JSON.stringify(body), room, holder);
    const made = answeredText(answer as string, room, holder);
    return { ...made, headers: { ...made.headers, 'Content-Type': endpoint.text } };
  }

  /** The operation that the route prepares, if a look at the state says that the caller will be let in. */
  async function prepared(exchange: Exchange, { prepare }: PlainPreparation): Promise<PlainOperation | undefined> {
    const { handle, credential, from, raw } = exchange;
    let caller: Caller | undefined;
    if (!isPublic) {
      if (!credential) return undefined;
      const admission = await handle.store.transaction((tables) =>
        admit(endpoint, handle, tables, credential, from, raw, world.now()),
      );
      if (!admission || admission.refusal) return undefined;
      caller = admission.caller;
    }
    if (exchange.problem) return undefined;
    try {
      return await prepare(exchange, caller);
    } catch (error) {
      return () => {
        throw error;
      };
    }
  }

  return { method, path, counted: isPublic ? endpoint.id : action, noHead: method === 'GET' && changes, serve };
}
