// The appliance as a KMIP server: a message comes as the body of POST /kmip, in HTTPS or from the listener of its own,
// and is answered in one transaction. Clients are API keys, proved by the certificate of the connection.
import { lookBefore } from '../../core/approval-decision.ts';
import { Bearer } from '../../core/credential.ts';
import { isUnfinished, type KeyWork } from '../../core/key-work.ts';
import { keyIdOf } from '../../core/kmip-objects.ts';
import { KmsError } from '../../errors.ts';
import { sealedError } from '../../http/admission.ts';
import type { AppliancePort, OpenState, State } from '../../http/appliance-port.ts';
import { type BatchContext, BatchWay, unknownClient } from '../../http/batch-way.ts';
import { type ApiRequest, programsCertificate } from '../../http/request.ts';
import type { Answer } from '../../http/request-log.ts';
import { type Outcome, type RequestResult, refused } from '../../http/respond.ts';
import type { Ways } from '../../http/surface.ts';
import type { TenantHandle } from '../../http/tenant-directory.ts';
import type { KeyType } from '../../model/key-types.ts';
import type { Tables } from '../../store/port.ts';
import type { Slices } from '../../store/sql.ts';
import { approveItem, waitFor } from './approvals.ts';
import { type FoundClient, KmipClients, type NamedBearer } from './clients.ts';
import {
  answerMessage,
  type BatchItem,
  type ItemResult,
  kmipPath,
  MessageRefusal,
  messageLimits,
  type RequestMessage,
  readMessage,
  refusedMessage,
  resultItem,
  tooLong,
} from './messages.ts';
import { type Operation, Work } from './operation.ts';
import { operationOf } from './operations.ts';
import { Refusal, reasonOf, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import { encodedLength, one, type Structure } from './ttlv.ts';
import type { Version } from './versions.ts';

const mediaType = 'application/octet-stream';

export function kmipSurface(appliance: AppliancePort, ways: Ways): Answer {
  const surface = new KmipSurface(appliance, ways);
  const handle = ways.logged({ path: kmipPath, counted: 'kmip' }, (request: ApiRequest, state: State) =>
    surface.serve(request, state),
  );
  return (request) => handle(request, undefined);
}

/** By what a client shows who it is. */
interface Shown {
  readonly named: NamedBearer | undefined;
  /** Id of the proof that its certificate is. */
  readonly proof: string | undefined;
  /** Whether the message is the first of its connection. */
  readonly isNew?: boolean | undefined;
}

class KmipSurface {
  readonly #appliance: AppliancePort;
  readonly #way: BatchWay;
  readonly #clients: KmipClients;

  constructor(appliance: AppliancePort, ways: Ways) {
    this.#appliance = appliance;
    this.#way = new BatchWay(appliance, ways.queue);
    this.#clients = new KmipClients(appliance);
  }

  async serve(request: ApiRequest, state: State): Promise<RequestResult> {
    if (request.method !== 'POST' || request.path !== kmipPath) {
      return { outcome: refused(new KmsError('not-found', `messages of KMIP are POST ${kmipPath}`)) };
    }
    const certificate = programsCertificate(request);
    if (!certificate) return { outcome: refused(noCertificate) };
    const now = this.#appliance.world.now();
    if (state.sealed) {
      const outcome = told(refusedMessage(14, now, sealedError));
      // The listener must know that no certificate could be looked up.
      return { outcome: request.surface === 'kmip' ? { ...outcome, status: 503, sentStatus: 200 } : outcome };
    }
    const found = await this.#clients.find(state, certificate, request.remoteAddress);
    if (!found) return { outcome: ending(refused(unknownClient)), granted: false };
    const bytes = await request.body.read(messageLimits.bytes + 8, undefined);
    if (!bytes) return { outcome: refused(new KmsError('too-large', 'the message is too long')) };
    let message: RequestMessage;
    try {
      message = readMessage(bytes);
    } catch (error) {
      if (!(error instanceof MessageRefusal)) throw error;
      const outcome = toStranger(told(refusedMessage(error.version, now, error)));
      return { outcome, tenant: found.handles[0].tenant.id };
    }
    const { proof, hasEnded, handles } = found;
    if (hasEnded) {
      const [{ tenant }] = handles;
      this.#clients.logRefusal(request, handles[0], 'the proof that its connection began with is gone');
      return { outcome: ending(this.#refused(message, unknownClient)), tenant: tenant.id, granted: false };
    }
    const named = credentialIn(message);
    const handle = await this.#clients.tenantOf(found, named, request);
    if (proof === undefined && !named) return this.#answerStranger(request, handle, message);
    return this.#answer(request, state, handle, message, { named, proof, isNew: found.isNew });
  }

  async #answer(
    request: ApiRequest,
    state: OpenState,
    handle: TenantHandle,
    message: RequestMessage,
    { named, proof, isNew }: Shown,
  ): Promise<RequestResult> {
    const tenant = handle.tenant.id;
    const [first] = message.items;
    const operation = first && operationOf(first.operation);
    const action = operation?.action ?? 'kmip.query';
    try {
      const result = await this.#way.run({ ...request, tenant: handle.tenant.name }, state, handle, {
        dialect: 'kmip',
        action,
        credential: named?.bearer,
        proof,
        isSingle: message.items.length === 1,
        isCostly: message.items.some((item) => isCostly(handle, item)),
        isLong: message.items.length > 1 || message.items.some((item) => operationOf(item.operation)?.slices),
        run: (ctx, keys) => this.#run(ctx, keys, message, named?.name),
        refusal: (error) => this.#refusedBytes(message, error),
      });
      const { acts, caller, value } = result;
      if (named) state.people.workloads.forgive({ tenant, address: request.remoteAddress ?? 'local' });
      const did = acts.map(({ status }) => status);
      const granted = acts.every((act) => act.granted);
      return { outcome: told(value), tenant, keyid: caller.id, dialect: 'kmip', did, granted };
    } catch (error) {
      // A connection that has begun ends with its proof.
      const moved = isNew && !named ? await this.#movedTo(request, state, proof, error) : undefined;
      if (moved) return this.#answer(request, state, moved.handles[0], message, { named, proof: moved.proof });
      const why = await this.#refusal(request, state, handle, { named, action, error });
      const outcome = toStranger(this.#refused(message, why));
      const isOut = why instanceof KmsError && why.code === 'unauthenticated';
      return { outcome: isOut ? ending(outcome) : outcome, tenant, dialect: 'kmip', granted: false };
    }
  }

  /** The client by the proof that its certificate is by now, if that is not the one that this node remembers. */
  async #movedTo(
    { certificate, remoteAddress }: ApiRequest,
    state: OpenState,
    before: string | undefined,
    error: unknown,
  ): Promise<FoundClient | undefined> {
    if (!certificate || !(error instanceof KmsError) || error.code !== 'unauthenticated') return undefined;
    const found = await this.#clients.findNow(state, certificate, remoteAddress);
    return found?.proof !== undefined && found.proof !== before ? found : undefined;
  }

  /** The error to answer with; that of an unknown client is logged. */
  async #refusal(
    request: ApiRequest,
    state: OpenState,
    handle: TenantHandle,
    { named, action, error }: { named: NamedBearer | undefined; action: string; error: unknown },
  ): Promise<unknown> {
    if (!(error instanceof KmsError) || error.code !== 'unauthenticated') return error;
    const reason = named ? 'its name or password is wrong, or no longer good' : 'its proof or API key is not in force';
    this.#clients.logRefusal(request, handle, reason, named);
    return named ? this.#clients.refuseCredential(state, request, handle, { named, action, error }) : error;
  }

  /** The answer to a message of which nothing was done. */
  #refused(message: RequestMessage, error: unknown): Outcome {
    return { ...told(this.#refusedBytes(message, error)), cause: refused(error).cause };
  }

  #refusedBytes(message: RequestMessage, error: unknown): Uint8Array {
    const items = message.items.slice(0, message.onFailure === 'continue' ? undefined : 1);
    const results = items.map((item) => resultItem(message.version, item, { error }));
    return answerMessage(message.version, this.#appliance.world.now(), results);
  }

  /** The part that clients without an API key may know. */
  #answerStranger(request: ApiRequest, handle: TenantHandle, { version, items }: RequestMessage): RequestResult {
    const results = items.map((item): [BatchItem, ItemResult] => {
      try {
        const { open } = knownOperation(item, version);
        if (!open) throw unknownClient;
        return [item, { payload: open(version, item.payload) }];
      } catch (error) {
        return [item, { error }];
      }
    });
    const isOut = results.some(([, { error }]) => error === unknownClient);
    if (isOut) {
      this.#clients.logRefusal(request, handle, 'no API key has its certificate as a proof');
    }
    const now = this.#appliance.world.now();
    const answer = answerMessage(
      version,
      now,
      results.map(([item, result]) => resultItem(version, item, result)),
    );
    const outcome = toStranger(told(answer));
    return { outcome: isOut ? ending(outcome) : outcome, tenant: handle.tenant.id };
  }

  /** The answer to a message, made in the transaction. */
  *#run(ctx: BatchContext, keys: KeyWork, message: RequestMessage, name: string | undefined): Slices<Uint8Array> {
    // A name with the password of another is a wrong credential.
    if (name !== undefined && ctx.caller.id !== name) throw unknownClient;
    const { version, mostBytes, onFailure, items } = message;
    const run = () => this.#runItems(ctx, new Work(ctx, version, keys), message);
    if (mostBytes === undefined && onFailure !== 'undo') return yield* run();
    const before = ctx.acts.length;
    try {
      return yield* ctx.tx.savepointInSlices(function* () {
        const answer = yield* run();
        if (mostBytes !== undefined && answer.length > mostBytes) throw new TooLong();
        return answer;
      });
    } catch (error) {
      if (error instanceof Undone) {
        markUndone(ctx, before, error.results.length - 1);
        // The request for approval was taken back with the rest.
        if (ctx.needs) error.results.splice(-1, 1, { error: waitFor(ctx, ctx.needs) });
        return answerMessage(
          version,
          this.#appliance.world.now(),
          error.results.map((result, n) => resultItem(version, items[n], result)),
        );
      }
      if (!(error instanceof TooLong)) throw error;
      markUndone(ctx, before, ctx.acts.length - before);
      return tooLong(items[0], version, this.#appliance.world.now());
    }
  }

  *#runItems(ctx: BatchContext, work: Work, { version, items, onFailure }: RequestMessage): Slices<Uint8Array> {
    const results: ItemResult[] = [];
    for (const item of items) {
      if (results.length > 0) yield;
      const result = yield* this.#runItem(ctx, work, item);
      results.push(result);
      if (result.payload || onFailure === 'continue') continue;
      if (onFailure === 'undo') throw new Undone(results);
      break;
    }
    const now = this.#appliance.world.now();
    return answerMessage(
      version,
      now,
      results.map((result, n) => resultItem(version, items[n], result)),
    );
  }

  *#runItem(ctx: BatchContext, work: Work, item: BatchItem): Slices<ItemResult> {
    const operation = operationOf(item.operation);
    work.begin();
    ctx.needs = undefined;
    const placeholder = work.placeholder;
    const named = { action: operation?.action ?? 'kmip.query', operation: operation?.name ?? `${item.operation}` };
    try {
      const known = knownOperation(item, work.version);
      const payload = yield* ctx.tx.savepointInSlices(function* () {
        const made = yield* approved(known, work, item.payload);
        work.effort.spend('answered', encodedLength(made));
        return made;
      });
      work.answered(known.code, payload);
      this.#record(ctx, work, named, undefined);
      return { payload };
    } catch (thrown) {
      const error = waitFor(ctx, thrown);
      if (isUnfinished(error)) throw error;
      // One that was emptied stays so.
      if (work.placeholder !== undefined) work.placeholder = placeholder;
      this.#record(ctx, work, named, error);
      if (!reasonOf(error)) this.#appliance.logger.error({ err: error, route: kmipPath }, 'an operation failed');
      return { error };
    }
  }

  #record(ctx: BatchContext, work: Work, named: { action: string; operation: string }, error: unknown): void {
    const { action, operation } = named;
    if (error === undefined) {
      const { subject: ringname } = work;
      ctx.acts.push({ action, ringname, status: 200, granted: true, deed: ctx.deed, props: { operation } });
      return;
    }
    const isDenied = error instanceof KmsError && error.code === 'forbidden';
    const { name: ringname, deed: known, asked } = work.refusedObject();
    const deed = ctx.deed?.approval ? { ...known, approval: ctx.deed.approval } : known;
    const reason = reasonOf(error)?.reason ?? reasons.generalFailure;
    const props = { operation, reason, ...(asked !== undefined && { asked }) };
    ctx.acts.push({ action, ringname, status: refused(error).status, granted: !isDenied, deed, props });
  }
}

const noCertificate = new KmsError('unauthenticated', 'expected a client certificate');

/** Ends a batch of which everything is taken back. */
class Undone extends Error {
  readonly results: ItemResult[];

  constructor(results: readonly ItemResult[]) {
    super('undone');
    this.results = results.map((each, n) => (n === results.length - 1 ? each : { isUndone: true }));
  }
}

class TooLong extends Error {}

/** Acts are recorded as taken back, with a status that says so: `count` of them from `from` on. */
function markUndone(ctx: BatchContext, from: number, count: number): void {
  for (let n = from; n < from + count; n++) {
    const act = ctx.acts[n];
    if (!act) continue;
    const isDone = act.status < 400;
    const outcome = isDone ? { status: 409, deed: undefined } : {};
    ctx.acts[n] = { ...act, ...outcome, props: { ...act.props, undone: true } };
  }
}

/** Throws `Refusal` for an operation that the version has not, or an extension that must be understood. */
function knownOperation({ operation: code, isExtended }: BatchItem, version: Version): Operation {
  const operation = operationOf(code);
  if (!operation || operation.since > version) {
    throw new Refusal(reasons.operationNotSupported, 'the operation is not supported');
  }
  if (isExtended) throw new Refusal(reasons.featureNotSupported, 'the extension of the message is not known');
  return operation;
}

/** Does the operation; throws `NeedsWords` if it needs approval, so that it is taken back. */
function* approved(known: Operation, work: Work, payload: Structure): Slices<Structure> {
  const { ctx } = work;
  const before = lookBefore(ctx);
  const answer = yield* performed(known, work, payload);
  if (before) approveItem(work, known, payload, before);
  return answer;
}

function* performed({ run, open, slices }: Operation, work: Work, payload: Structure): Slices<Structure> {
  if (slices) return yield* slices(work, payload);
  if (open) return open(work.version, payload);
  if (run) return run(work, payload);
  throw new KmsError('internal', 'expected an operation that does something');
}

/** Whether some work of the item is for another thread; if that is not clear, the operation tells what is wrong. */
function isCostly({ store }: TenantHandle, { operation, payload }: BatchItem): boolean {
  const costly = operationOf(operation)?.isCostly;
  if (!costly) return false;
  try {
    return costly(
      payload,
      store.read((tables) => typeNamed(tables, payload)),
    );
  } catch (error) {
    if (error instanceof KmsError) return true;
    throw error;
  }
}

function typeNamed({ managedKeys }: Pick<Tables, 'managedKeys'>, payload: Structure): KeyType | undefined {
  const id = one(payload, tags.uniqueIdentifier);
  return id?.type === 'text' ? managedKeys.byId(keyIdOf(id.value))?.type : undefined;
}

/** An API key's id and secret, as name and password; other names and passwords prove nothing here, and do no harm. */
function credentialIn({ credential }: RequestMessage): NamedBearer | undefined {
  if (!credential || !/^apik_/.test(credential.name)) return undefined;
  return { name: credential.name, bearer: new Bearer(credential.password) };
}

function told(bytes: Uint8Array): Outcome {
  // Cast: messages are encoded into memory of their own.
  return { status: 200, body: {}, content: bytes as Uint8Array<ArrayBuffer>, headers: { 'Content-Type': mediaType } };
}

function toStranger(outcome: Outcome): Outcome {
  return { ...outcome, isToStranger: true };
}

/** The last answer of its connection: who is not let in, or no longer, must begin another. */
function ending(outcome: Outcome): Outcome {
  return { ...outcome, headers: { ...outcome.headers, Connection: 'close' } };
}
