// The way of a request that makes several acts at once, as some protocols allow: one transaction, in which the caller
// is known by its certificate, each act is authorized and done in a savepoint, and each has its record. The answer
// waits until all of that is durable.
import { activityRecord } from '../core/activity.ts';
import type { NeedsWords, Wait } from '../core/approval-decision.ts';
import type { Caller, Context, FurtherAct, Tenant, World } from '../core/context.ts';
import { authenticate, authenticateCertificate, type Bearer, noteKeyUse } from '../core/credential.ts';
import { rehearse } from '../core/key-rehearsal.ts';
import { inPlace, type KeyWork } from '../core/key-work.ts';
import { proofProps } from '../core/proofs/proof-answers.ts';
import { KmsError } from '../errors.ts';
import type { ActivityDetails } from '../model/activity-details.ts';
import type { Transaction } from '../store/port.ts';
import type { Slices } from '../store/sql.ts';
import type { AppliancePort, OpenState } from './appliance-port.ts';
import { tell } from './approval-notices.ts';
import { overError } from './approval-stage.ts';
import { type FairQueue, Turn } from './fair-queue.ts';
import { untilDecided } from './held-requests.ts';
import type { ApiRequest } from './request.ts';
import { atOnce } from './route.ts';
import type { TenantHandle } from './tenant-directory.ts';

/** An act as it is recorded. */
interface Act {
  readonly action: string;
  /** The managed key's name; empty if it concerns none. */
  readonly ringname: string;
  readonly status: number;
  /** The verdict of authorization. */
  readonly granted: boolean;
  readonly deed: ActivityDetails | undefined;
  readonly props: Readonly<Record<string, unknown>>;
}

type Actors = Pick<Context, 'tenant' | 'world' | 'address'>;

export class BatchContext implements Context {
  readonly tx: Transaction;
  readonly caller: Caller;
  readonly tenant: Tenant;
  readonly world: World;
  readonly address: string | undefined;
  readonly dialect: string;
  readonly acts: Act[] = [];
  /** The note of the act under way. */
  deed: ActivityDetails | undefined = undefined;
  /** Further things that the act under way does. */
  further: FurtherAct[] = [];
  /** The request for approval that the only act was held for; it makes no other. */
  readonly held: string | undefined;
  /** Set if the last act waits for approval. */
  waits: Wait | undefined = undefined;
  /** The reason for that. */
  needs: NeedsWords | undefined = undefined;

  constructor(tx: Transaction, caller: Caller, actors: Actors, dialect: string, held?: string) {
    this.tx = tx;
    this.caller = caller;
    this.tenant = actors.tenant;
    this.world = actors.world;
    this.address = actors.address;
    this.dialect = dialect;
    this.held = held;
  }

  note(deed: ActivityDetails): void {
    this.deed = deed;
  }

  handsOut(): void {}

  touches(what: FurtherAct): void {
    this.further.push(what);
  }

  did(): void {}
}

interface Batch<R> {
  readonly dialect: string;
  /** Recorded of a caller who may not come in. */
  readonly action: string;
  /** A credential beside the certificate, which is then only its company. */
  readonly credential?: Bearer | undefined;
  /** The proof that the certificate must still be; undefined for whichever it is now. */
  readonly proof?: string | undefined;
  /** Whether some of its work is to be done on another thread first. */
  readonly isCostly: boolean;
  /** Whether it is one act, so that it can be held and tried again. */
  readonly isSingle: boolean;
  /** Whether it may take more than one turn of the event loop. */
  readonly isLong: boolean;
  run(ctx: BatchContext, work: KeyWork): Slices<R>;
  /** The result of a batch whose only act is refused. */
  refusal(error: KmsError): R;
}

interface BatchResult<R> {
  readonly value: R;
  readonly caller: Caller;
  readonly acts: readonly Act[];
  readonly waits: Wait | undefined;
}

/** The refusal of a client whose certificate proves nothing here, or no longer. */
export const unknownClient = new KmsError('unauthenticated', 'the certificate proves no client that may work here now');

export class BatchWay {
  readonly #appliance: AppliancePort;
  readonly #queue: FairQueue;

  constructor(appliance: AppliancePort, queue: FairQueue) {
    this.#appliance = appliance;
    this.#queue = queue;
  }

  /** Throws `unauthenticated`, and as the store does. An act that waits may be held, and tried once more. */
  async run<R>(request: ApiRequest, open: OpenState, handle: TenantHandle, batch: Batch<R>): Promise<BatchResult<R>> {
    const result = await this.#runOnce(request, open, handle, batch);
    const { waits } = result;
    if (waits?.isNew) tell({ appliance: this.#appliance, open, handle }, { kind: 'request', id: waits.id });
    if (!waits?.holds || !batch.isSingle) return result;
    const state = await untilDecided(waits, { open, handle }, this.#appliance.world, request);
    if (state === 'granted') return this.#runOnce(request, open, handle, batch, waits.id);
    return state === undefined ? result : { ...result, value: batch.refusal(overError(waits, state)) };
  }

  async #runOnce<R>(
    request: ApiRequest,
    open: OpenState,
    handle: TenantHandle,
    batch: Batch<R>,
    held?: string,
  ): Promise<BatchResult<R>> {
    const refusal = open.refuseWrites();
    if (refusal) throw refusal;
    const turn = new Turn(this.#queue, handle.tenant.id, () => this.#asker(request, handle, batch));
    const wait = turn.take();
    if (wait) await wait;
    try {
      const prepared = batch.isCostly ? await this.#rehearse(request, open, handle, batch, turn) : undefined;
      const rest = this.#appliance.requestTurn();
      if (rest) await rest;
      try {
        return await this.#transact(request, handle, batch, prepared?.work ?? inPlace(this.#appliance.world), held);
      } finally {
        prepared?.wipe();
      }
    } finally {
      turn.leave();
    }
  }

  /** The caller by whom the request queues. */
  #asker(request: ApiRequest, { store }: TenantHandle, batch: Pick<Batch<unknown>, 'credential' | 'proof'>): string {
    try {
      return store.read((tx) => this.#callerOf(tx, request, batch)?.caller.id) ?? 'unknown';
    } catch (error) {
      if (error instanceof KmsError && error.code === 'unavailable') return 'unknown';
      throw error;
    }
  }

  #callerOf(
    tx: Pick<Transaction, 'apiKeys' | 'proofs' | 'sessions' | 'users' | 'workloadSessions'>,
    from: ApiRequest,
    { credential, proof }: Pick<Batch<unknown>, 'credential' | 'proof'>,
  ) {
    const now = this.#appliance.world.now();
    if (credential) return authenticate(tx, credential, from, now);
    const found = authenticateCertificate(tx, from, now);
    return proof === undefined || found?.caller.proof?.id === proof ? found : undefined;
  }

  async #rehearse<R>(request: ApiRequest, open: OpenState, handle: TenantHandle, batch: Batch<R>, turn: Turn) {
    const found = await handle.store.transaction((tx) => this.#callerOf(tx, request, batch));
    if (!found?.usable) return undefined;
    const { world } = this.#appliance;
    const { caller } = found;
    const actors = { caller, tenant: handle.tenant, world, address: request.remoteAddress, dialect: batch.dialect };
    return rehearse({
      actors,
      worker: {
        run: (orders, from) =>
          turn.aside(() => open.keyWorker.run(orders, { ...from, isGone: () => request.isGone?.() ?? false })),
      },
      transactionInSlices: (run) => handle.store.transactionInSlices(run),
      operation: (ctx, work) => batch.run(new BatchContext(ctx.tx, caller, actors, batch.dialect), work),
    });
  }

  async #transact<R>(
    request: ApiRequest,
    { tenant, store }: TenantHandle,
    batch: Batch<R>,
    work: KeyWork,
    held: string | undefined,
  ): Promise<BatchResult<R>> {
    const decide = (tx: Transaction) => this.#decide(tx, request, tenant, batch, work, held);
    const done = batch.isLong
      ? await store.transactionInSlices(decide)
      : await store.transaction((tx) => atOnce(decide(tx)));
    if (done) return done;
    throw unknownClient;
  }

  /** Undefined for an unknown caller, and for one who may not come in now: that is recorded. */
  *#decide<R>(
    tx: Transaction,
    request: ApiRequest,
    tenant: Tenant,
    batch: Batch<R>,
    work: KeyWork,
    held: string | undefined,
  ): Slices<BatchResult<R> | undefined> {
    const { world } = this.#appliance;
    const { remoteAddress: address } = request;
    const { action, dialect } = batch;
    const found = this.#callerOf(tx, request, batch);
    if (!found) return undefined;
    const { caller } = found;
    const by = { keyid: caller.id, address };
    const props = { ...proofProps(caller), dialect };
    if (!found.usable) {
      tx.record(activityRecord(world, { ...by, action, validAction: false, status: 401, props }));
      return undefined;
    }
    noteKeyUse(tx, caller, world.now());
    const ctx = new BatchContext(tx, caller, { tenant, world, address }, dialect, held);
    const value = yield* batch.run(ctx, work);
    for (const act of ctx.acts) {
      const { granted: validAction, props: more, ...told } = act;
      tx.record(activityRecord(world, { ...by, ...told, validAction, props: { ...props, ...more } }));
    }
    return { value, caller, acts: ctx.acts, waits: ctx.waits };
  }
}
