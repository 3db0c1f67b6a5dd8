// Exchange is one request to a declared endpoint on its way through the pipeline: what is known of it so far, what its
// route is given of it, and what the operation said of what it does.
import type { Endpoint } from '../api/endpoint.ts';
import type { HowLoggedIn, KeyHandedOut, PublicContext } from '../core/context.ts';
import type { Origin } from '../core/credential.ts';
import { KmsError } from '../errors.ts';
import type { Deed } from '../model/deed.ts';
import type { PageRequest, Slices } from '../store/sql.ts';
import type { Credential } from './admission.ts';
import type { Appliance, OpenState } from './appliance.ts';
import { type ConsoleCookie, originOf } from './console-cookie.ts';
import { type Checked, type CheckedInput, checkInput, type Fields, type RawInput, rawInput } from './input.ts';
import type { AnswerRoom, AppContext, RequestEnv } from './request.ts';
import type { Outcome } from './respond.ts';
import { baseUrlOf, type Input } from './route.ts';
import type { TenantHandle } from './tenants.ts';

/** A route's operation with its types forgotten. */
export type PlainOperation = (ctx: PublicContext, input: Exchange) => unknown;

/** The same of one that is too long for one go. */
export interface PlainSlices {
  slices(ctx: PublicContext, input: Exchange): Slices<unknown>;
}

export class Exchange implements Input<unknown>, CheckedInput {
  readonly appliance: Appliance;
  readonly endpoint: Endpoint;
  readonly open: OpenState;
  readonly handle: TenantHandle;
  /** Absent where the endpoint is public and none came. */
  readonly credential: Credential | undefined;
  /** Where a page of the console asks. */
  readonly cookie: ConsoleCookie | undefined;
  readonly from: Origin;
  /** Absent where answers are as long as they are. */
  readonly room: AnswerRoom | undefined;
  /** Makes another body of the answer's, where whoever called wants one. */
  readonly others: RequestEnv['answer'];
  readonly raw: RawInput;
  readonly #c: AppContext;
  /** Once the route has prepared it. */
  operation: PlainOperation | undefined = undefined;
  /** The answer that its operation began to make, where it is made while it is sent. */
  stream: Outcome['stream'] = undefined;
  /** What is to be done once the operation is durable. */
  work: (() => Promise<void>) | undefined = undefined;
  /** What the operation said that it does. */
  deed: Deed | undefined = undefined;
  /** The key that its answer hands out. */
  handedOut: KeyHandedOut | undefined = undefined;
  /** The statuses of the things that it did, each of which has a record. */
  did: readonly number[] | undefined = undefined;
  /** What each of them was, where that was said. */
  deeds: readonly Deed[] = [];
  /** Whether the operation itself denied it. */
  isDenied = false;
  /** Whose name or link a request came with that needs no credential; absent where the operation did not say. */
  named: { readonly userId: string | undefined; readonly how?: HowLoggedIn | undefined } | undefined = undefined;
  #checked: Checked | undefined = undefined;

  constructor(
    appliance: Appliance,
    endpoint: Endpoint,
    open: OpenState,
    handle: TenantHandle,
    credential: Credential | undefined,
    cookie: ConsoleCookie | undefined,
    c: AppContext,
  ) {
    this.appliance = appliance;
    this.endpoint = endpoint;
    this.open = open;
    this.handle = handle;
    this.credential = credential;
    this.cookie = cookie;
    this.from = c.env ?? {};
    this.room = c.env?.room;
    this.others = c.env?.answer;
    this.raw = rawInput(endpoint, c);
    this.#c = c;
  }

  /** What is wrong with the input. To be asked once it is known that the caller may ask, and before the parts below. */
  get problem(): KmsError | undefined {
    this.#checked ??= checkInput(this.endpoint, this.handle, this.raw);
    return this.#checked.error;
  }

  get #input(): CheckedInput {
    if (this.#checked && !this.#checked.error) return this.#checked.input;
    throw new KmsError('internal', 'expected input that was checked');
  }

  get params(): Fields {
    return this.#input.params;
  }

  get query(): Fields {
    return this.#input.query;
  }

  get body(): Fields {
    return this.#input.body;
  }

  get page(): PageRequest {
    return this.#input.page;
  }

  get asObjects(): boolean {
    return this.others !== undefined;
  }

  get address(): string {
    return this.from.remoteAddress ?? 'local';
  }

  get origin(): string {
    return originOf(this.#c, baseUrlOf(this));
  }

  get isConsole(): boolean {
    return this.cookie !== undefined;
  }

  get path(): string {
    return this.endpoint.path;
  }

  identify(userId: string | undefined, how?: HowLoggedIn): void {
    this.named = { userId, how };
  }

  afterCommit(work: () => Promise<void>): void {
    this.work = work;
  }

  /** The operation failed, and what it did was taken back. */
  failed(error: unknown): void {
    this.work = undefined;
    this.deed = undefined;
    this.did = undefined;
    this.deeds = [];
    this.isDenied = error instanceof KmsError && error.denies;
    // A refusal with an answer in it hands out what is in that.
    if (!(error instanceof KmsError && error.body)) this.handedOut = undefined;
  }
}
