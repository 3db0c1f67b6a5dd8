// OperationContext is what an operation is given beside its input, and where it leaves what it says of its doing: notes
// for the request's records, a key that was handed out, work for after the commit. All else that is known of a request
// does not change.
import type { Caller, Context, HowLoggedIn, KeyHandedOut, PublicContext, Tenant, World } from '../core/context.ts';
import { KmsError } from '../errors.ts';
import type { Deed } from '../model/deed.ts';
import type { Transaction } from '../store/port.ts';
import type { Admission } from './admission.ts';
import type { Outcome } from './respond.ts';
import type { AfterCommit } from './route.ts';

/** Under whose id a request is recorded that came without a credential. */
interface Identified {
  /** Undefined for a name that nobody has. */
  readonly userId: string | undefined;
  readonly how?: HowLoggedIn | undefined;
}

export class OperationContext implements Context, PublicContext, AfterCommit {
  readonly tenant: Tenant;
  readonly world: World;
  readonly address: string | undefined;
  #tx: Transaction | undefined = undefined;
  #admission: Admission | undefined = undefined;
  /** The operation's note for the record of the request. */
  deed: Deed | undefined = undefined;
  /** The key that its answer hands out. */
  handedOut: KeyHandedOut | undefined = undefined;
  /** The statuses of the things that it did, each of which has a record; absent for one that is the request itself. */
  statuses: readonly number[] | undefined = undefined;
  /** Notes for the records of these, where the operation gave any. */
  deeds: readonly Deed[] = [];
  /** Whether the operation itself denied the request. */
  isDenied = false;
  /** Absent where the operation did not say. */
  identified: Identified | undefined = undefined;
  /** To be done once the operation is durable. */
  work: (() => Promise<void>) | undefined = undefined;
  /** The answer that was begun, where it is made while it is sent. */
  stream: Outcome['stream'] = undefined;

  constructor(tenant: Tenant, world: World, address: string | undefined) {
    this.tenant = tenant;
    this.world = world;
    this.address = address;
  }

  /** Begins its transaction. `admission` is absent at a public endpoint. */
  enter(tx: Transaction, admission?: Admission): void {
    this.#tx = tx;
    this.#admission = admission;
  }

  get tx(): Transaction {
    if (this.#tx) return this.#tx;
    throw new KmsError('internal', 'an operation runs in a transaction');
  }

  get caller(): Caller {
    if (this.#admission) return this.#admission.caller;
    throw new KmsError('internal', 'a public endpoint has no caller');
  }

  /** Absent at a public endpoint. */
  get callerId(): string | undefined {
    return this.#admission?.caller.id;
  }

  get sealed(): Context['sealed'] {
    return this.#admission?.sealed;
  }

  note(deed: Deed): void {
    this.deed = deed;
  }

  handsOut(key: KeyHandedOut): void {
    this.handedOut = key;
  }

  did(statuses: readonly number[], deeds: readonly Deed[] = []): void {
    this.statuses = statuses;
    this.deeds = deeds;
  }

  /** Without effect where a credential came, which says under whose id the request is recorded. */
  identify(userId: string | undefined, how?: HowLoggedIn): void {
    if (!this.#admission) this.identified = { userId, how };
  }

  afterCommit(work: () => Promise<void>): void {
    this.work = work;
  }

  /** The operation failed, and what it did was taken back. */
  failed(error: unknown): void {
    this.work = undefined;
    this.deed = undefined;
    this.statuses = undefined;
    this.deeds = [];
    this.isDenied = error instanceof KmsError && error.denies;
    // A refusal with an answer in it hands out what is in that.
    if (!(error instanceof KmsError && error.body)) this.handedOut = undefined;
  }
}
