// OperationContext is the context of one operation, and collects its side results: notes for the activity records, a
// key that was handed out, work for after the commit. All else that is known of a request is immutable.
import type {
  Caller,
  Context,
  FurtherAct,
  HowLoggedIn,
  KeyHandedOut,
  PublicContext,
  Tenant,
  World,
} from '../core/context.ts';
import { KmsError } from '../errors.ts';
import type { ActivityDetails } from '../model/activity-details.ts';
import { isHex, type JsonObject } from '../model/json.ts';
import { planHeader } from '../model/names.ts';
import type { Transaction } from '../store/port.ts';
import type { Admission } from './admission.ts';
import { type ApiRequest, headerOf } from './request.ts';
import type { Outcome } from './respond.ts';
import type { AfterCommit } from './route.ts';
import type { Watch } from './watches.ts';

/** The user under whose id a request without a credential is recorded. */
interface Identified {
  /** Undefined if the name is unknown. */
  readonly userId: string | undefined;
  readonly how?: HowLoggedIn | undefined;
}

/** How a request came. */
interface Spoken {
  readonly dialect?: string | undefined;
  readonly props?: JsonObject | undefined;
}

export class OperationContext implements Context, PublicContext, AfterCommit {
  readonly tenant: Tenant;
  readonly world: World;
  readonly address: string | undefined;
  readonly dialect: string | undefined;
  /** Facts for the record that the dialect knows. */
  readonly props: JsonObject | undefined;
  readonly isLocal: boolean;
  /** The digest of the plan that the request belongs to; undefined if it names none, or something else. */
  readonly #plan: string | undefined;
  #tx: Transaction | undefined = undefined;
  #admission: Admission | undefined = undefined;
  /** The operation's note for the request's record. */
  deed: ActivityDetails | undefined = undefined;
  /** The approval that it needed, for its record; undefined if it needed none. */
  approval: JsonObject | undefined = undefined;
  /** The key that the answer hands out. */
  handedOut: KeyHandedOut | undefined = undefined;
  /**
   * The statuses of the several acts in one request, each with its own record; absent if the request is the only act.
   */
  statuses: readonly number[] | undefined = undefined;
  /** Notes for the records of these acts, if the operation gave any. */
  deeds: readonly ActivityDetails[] = [];
  /** Further things that the operation does. */
  further: FurtherAct[] = [];
  /** Absent where the endpoint may not be watched. */
  watch: Watch | undefined = undefined;
  /** Whether the operation itself denied the request. */
  isDenied = false;
  /** Absent if the operation identified no user. */
  identified: Identified | undefined = undefined;
  /** Work to do once the operation is durable. */
  work: (() => Promise<void>) | undefined = undefined;
  /** The stream of an answer that is made while it is sent. */
  stream: Outcome['stream'] = undefined;
  /** The request for approval that the act was held for; it makes no other. */
  readonly held: string | undefined;

  constructor(
    tenant: Tenant,
    world: World,
    from: Pick<ApiRequest, 'remoteAddress' | 'local' | 'headers'>,
    call: Spoken = {},
    held?: string,
  ) {
    this.tenant = tenant;
    this.world = world;
    this.address = from.remoteAddress;
    this.isLocal = from.local === true;
    this.dialect = call.dialect;
    this.props = call.props;
    this.held = held;
    const plan = headerOf(from, planHeader);
    this.#plan = isHex(plan, 64) ? plan : undefined;
  }

  /** Begins the transaction. `admission` is absent at a public endpoint. */
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

  /** Whether the act is only tried, and will be taken back. */
  get isTry(): boolean {
    return this.props?.dryRun === true;
  }

  /** Properties of a record, with those that the request itself brings. */
  recorded(props: JsonObject | undefined): JsonObject | undefined {
    if (this.dialect !== undefined) return { ...props, ...this.props, dialect: this.dialect };
    return this.#plan === undefined ? props : { ...props, plan: this.#plan };
  }

  note(deed: ActivityDetails): void {
    this.deed = deed;
  }

  handsOut(key: KeyHandedOut): void {
    this.handedOut = key;
  }

  touches(what: FurtherAct): void {
    this.further.push(what);
  }

  did(statuses: readonly number[], deeds: readonly ActivityDetails[] = []): void {
    this.statuses = statuses;
    this.deeds = deeds;
  }

  /** Has no effect if the request had a credential: then it is recorded under the caller's id. */
  identify(userId: string | undefined, how?: HowLoggedIn): void {
    if (!this.#admission) this.identified = { userId, how };
  }

  afterCommit(work: () => Promise<void>): void {
    this.work = work;
  }

  /** A stream that is not sent must release its resources. */
  dropStream(): void {
    this.stream?.cancel().catch(() => {});
    this.stream = undefined;
  }

  /** Discards the notes of an operation that failed and was rolled back. */
  failed(error: unknown): void {
    this.work = undefined;
    this.approval = undefined;
    // A denied request is recorded with what it was about to touch.
    if (!(error instanceof KmsError && error.code === 'forbidden' && error.denies)) this.deed = undefined;
    this.statuses = undefined;
    this.deeds = [];
    this.further = [];
    this.isDenied = error instanceof KmsError && error.denies;
    // A refusal with a body hands out the keys in it.
    if (!(error instanceof KmsError && error.body)) this.handedOut = undefined;
  }
}
